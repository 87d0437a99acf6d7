//! Folds look-alike characters to ASCII, so that `іgnоrе` compares as a person reads it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Characters that look like an ASCII letter or sign and do not decompose to it, each with the latter. These are the
/// common ones of Unicode's list of confusables. Those that NFKD decomposes (full-width, mathematical, circled,
/// accented) are not listed.
const LOOKALIKES: &[(char, &str)] = &[
    ('a', "аαɑⱥᴀ⍺"),
    ('b', "ЬƄɓʙ"),
    ('c', "сϲᴄⅽꮯ"),
    ('d', "ԁɗđᴅⅾꓒ"),
    ('e', "еεɛєҽᴇℯ℮ə"),
    ('f', "ƒꜰſϝꬵẝ"),
    ('g', "ɡցɢǥ"),
    ('h', "һհʜħ"),
    ('i', "іιıɩɪӏꙇⲓ"),
    ('j', "јϳʝᴊ"),
    ('k', "кκᴋƙⲕ"),
    ('l', "ⅼǀłʟɭ∣"),
    ('m', "мᴍⅿɱ"),
    ('n', "ոпηɴŋπռ"),
    ('o', "оοσօøᴏഠ၀ⲟ"),
    ('p', "рρᴘþ⍴ⲣ"),
    ('q', "ԛգզɋ"),
    ('r', "гᴦʀɾⲅꭇ"),
    ('s', "ѕꜱʂƽꮪ"),
    ('t', "тτᴛŧƭ"),
    ('u', "υսᴜʋʊꞟ"),
    ('v', "νѵᴠⅴ∨ʌ"),
    ('w', "ԝωѡɯᴡա"),
    ('x', "хχⅹ×ⲭ"),
    ('y', "уγʏүყ"),
    ('z', "ᴢʐȥƶⲍ"),
    ('A', "АΑᎪꓮ"),
    ('B', "ВΒᏴꓐ"),
    ('C', "СϹᏟꓚ"),
    ('D', "ᎠꓓĐ"),
    ('E', "ЕΕᎬꓰ"),
    ('F', "ϜꓝҒ"),
    ('G', "ԌᏀꓖ"),
    ('H', "НΗᎻꓧ"),
    ('I', "ІΙӀᏆꓲ"),
    ('J', "ЈᎫꓙ"),
    ('K', "КΚᏦꓗ"),
    ('L', "ᏞꓡԼ"),
    ('M', "МΜᎷꓟ"),
    ('N', "Νꓠ"),
    ('O', "ОΟՕꓳ"),
    ('P', "РΡᏢꓑ"),
    ('Q', "Ԛ"),
    ('R', "ᎡᏒꓣ"),
    ('S', "ЅՏᏚꓢ"),
    ('T', "ТΤᎢꓔ"),
    ('U', "Սꓴ"),
    ('V', "ᏙꓦѴ"),
    ('W', "ᎳꓪԜ"),
    ('X', "ХΧꓫ"),
    ('Y', "УΥҮꓬ"),
    ('Z', "ΖᏃꓜ"),
    ('[', "【〖〔❲⁅⎡⌈⌊⦋⦍⦏⟦⦗「『〈《⟨⟪⸢"),
    (']', "】〗〕❳⁆⎤⌉⌋⦌⦎⦐⟧⦘」』〉》⟩⟫⸣"),
    (':', "∶ː꞉։׃⁚܃܄"),
    ('|', "│┃❘❙"),
    ('<', "‹ᐸ❮˂"),
    ('>', "›ᐳ❯˃"),
    ('-', "‐‑‒–—―−"),
    ('\'', "’‘ʼ′`´"),
];

/// Replaces characters that look like ASCII letters or signs by the latter, and removes accents.
pub fn fold(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let decomposed = text.nfkd().filter(|c| c.is_ascii() || !is_combining_mark(*c));
    Cow::Owned(decomposed.map(|c| if c.is_ascii() { c } else { lookalike(c) }).collect())
}

fn lookalike(c: char) -> char {
    static PLAIN: LazyLock<HashMap<char, char>> = LazyLock::new(|| {
        LOOKALIKES.iter().rev().flat_map(|(plain, alike)| alike.chars().map(|c| (c, *plain))).collect()
    });
    PLAIN.get(&c).copied().unwrap_or(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_that_look_alike_are_one() {
        for text in ["іgnоrе", "ｉｇｎｏｒｅ", "𝗂𝗀𝗇𝗈𝗋𝖾", "𝓲𝓰𝓷𝓸𝓻𝓮", "ⓘⓖⓝⓞⓡⓔ", "ïg̃ñörè", "ιgηοrε", "ɪɢɴᴏʀᴇ"]
        {
            assert_eq!(fold(text), "ignore", "{text}");
        }
        assert_eq!(fold("［ѕession： x】"), "[session: x]");
        assert_eq!(fold("plain"), "plain");
        assert_eq!(fold("日本"), "日本");
    }

    #[test]
    fn each_letter_stands_for_one_other() {
        let all: Vec<char> = LOOKALIKES.iter().flat_map(|(_, alike)| alike.chars()).collect();
        for (index, c) in all.iter().enumerate() {
            assert!(!all[..index].contains(c), "{c}");
        }
    }
}
