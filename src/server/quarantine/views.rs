//! Views of a text as its readers may see it, computed in linear time: without disguises that hide words from a
//! pattern.

use std::borrow::Cow;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};
use percent_encoding::percent_decode_str;

use crate::lang::internal::foreign_text::{fold, shows_nothing};

/// Returns the distinct views of a text: as displayed, without markup, with lookalike letters folded, with digits and
/// signs replaced by the letters that they resemble, with percent-encoding decoded, with joined words separated, and
/// with spelled-out letters joined.
pub(super) fn views(text: &str) -> Vec<String> {
    let mut views = vec![visible(text)];
    let mut add = |view: String| {
        if !views.contains(&view) {
            views.push(view);
        }
    };
    let bare = without_markup(text);
    let folded = fold(&bare).into_owned();
    add(letters_for_digits(&folded));
    if let Some(decoded) = percent_decoded(text) {
        add(fold(&without_markup(&decoded)).into_owned());
    }
    if folded.contains(is_joint) || text.contains('_') {
        add(apart(&fold(&visible(text))));
    }
    add(together(&folded));
    add(folded);
    add(bare);
    views
}

/// Returns a text as displayed: without invisible characters, with one blank for each run of blanks and line breaks,
/// including the `\n` of printed strings, and with `\uXXXX` decoded.
fn visible(text: &str) -> String {
    let mut visible = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(mut c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        if c == '\\' {
            if let Some(behind) = rest.strip_prefix(['n', 't', 'r']) {
                (c, rest) = (' ', behind);
            } else if let Some((escaped, behind)) = escaped(rest) {
                (c, rest) = (escaped, behind);
            }
        }
        if c.is_whitespace() {
            if !visible.ends_with(' ') {
                visible.push(' ');
            }
        } else if !shows_nothing(c) {
            visible.push(c);
        }
    }
    visible
}

/// Returns the character of `uXXXX`, and the rest of the text.
fn escaped(text: &str) -> Option<(char, &str)> {
    let digits = text.strip_prefix('u')?.get(..4)?;
    let number = u32::from_str_radix(digits, 16).ok()?;
    // An unpaired surrogate is not a character. Tag characters, which need a pair, are invisible anyway.
    Some((char::from_u32(number).unwrap_or('\u{200B}'), &text[5..]))
}

/// Returns the text without HTML tags and Markdown signs, with character references decoded.
fn without_markup(text: &str) -> String {
    let decoded = without_references(text);
    let mut bare = String::with_capacity(decoded.len());
    let mut rest = &*decoded;
    while let Some(start) = rest.find('<') {
        bare.push_str(&rest[..start]);
        let behind = &rest[start + 1..];
        let is_tag = behind.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '!');
        let near = &behind[..behind.floor_char_boundary(LONGEST_TAG)];
        match near.find('>').filter(|_| is_tag) {
            Some(end) => rest = &behind[end + 1..],
            None => {
                bare.push('<');
                rest = behind;
            }
        }
    }
    bare.push_str(rest);
    bare.retain(|c| !matches!(c, '*' | '_' | '`' | '~'));
    visible(&bare)
}

/// Maximum length of an HTML tag, in bytes.
const LONGEST_TAG: usize = 2_000;

/// Number of rounds of decoding character references: `&amp;#105;` contains a nested one.
const ROUNDS: usize = 2;

/// Replaces `<` while references are decoded, so that the tokenizer finds no tags.
const LESS: &str = "\u{F0000}";

/// Decodes all HTML character references in a text.
fn without_references(text: &str) -> Cow<'_, str> {
    let mut decoded = Cow::Borrowed(text);
    for _ in 0..ROUNDS {
        if !decoded.contains('&') {
            break;
        }
        let hidden = decoded.replace('<', LESS);
        let mut out = String::with_capacity(hidden.len());
        let emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| -> Option<()> {
            if let CallbackEvent::String { value } = event {
                out.push_str(&String::from_utf8_lossy(value));
            }
            None
        });
        for _ in Tokenizer::new_with_emitter(hidden.as_str(), emitter) {}
        decoded = Cow::Owned(out.replace(LESS, "<"));
    }
    decoded
}

/// `1gn0re` to `ignore`: replaces digits and signs beside letters by the letters that they resemble.
fn letters_for_digits(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_inclusive(' ') {
        if word.contains(|c: char| c.is_ascii_alphabetic()) && word.contains(|c| letter(c).is_some()) {
            out.extend(word.chars().map(|c| letter(c).unwrap_or(c)));
        } else {
            out.push_str(word);
        }
    }
    out
}

fn letter(c: char) -> Option<char> {
    Some(match c {
        '0' => 'o',
        '1' | '!' => 'i',
        '3' => 'e',
        '4' | '@' => 'a',
        '5' | '$' => 's',
        '7' => 't',
        _ => return None,
    })
}

/// Returns whether a sign may separate words in place of a blank.
fn is_joint(c: char) -> bool {
    matches!(c, '_' | '-' | '.' | '+' | '|' | '/' | ',' | '·' | '•')
}

/// `ignore_all` to `ignore all`, after joining spelled-out letters.
fn apart(text: &str) -> String {
    let joined = together(text);
    let mut out = String::with_capacity(joined.len());
    let mut rest = joined.chars().peekable();
    while let Some(c) = rest.next() {
        let is_between = is_joint(c)
            && out.ends_with(char::is_alphanumeric)
            && rest.peek().is_some_and(|next| next.is_alphanumeric());
        out.push(if is_between { ' ' } else { c });
    }
    out
}

/// Minimum number of letters of a word that is spelled letter by letter.
const SPELLED: usize = 4;

/// `i.g.n.o.r.e` and `i g n o r e` to `ignore`.
fn together(text: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    let is_letter = |at: usize| characters.get(at).is_some_and(|c| c.is_alphanumeric());
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < characters.len() {
        let joint = characters.get(at + 1).copied().filter(|c| *c == ' ' || is_joint(*c));
        let begins = is_letter(at) && (at == 0 || !is_letter(at - 1));
        let mut count = 1;
        if let Some(joint) = joint.filter(|_| begins) {
            // A letter of a longer word ends the spelled-out word.
            while characters.get(at + 2 * count - 1) == Some(&joint)
                && is_letter(at + 2 * count)
                && !is_letter(at + 2 * count + 1)
            {
                count += 1;
            }
        }
        let taken = if count >= SPELLED {
            out.extend((0..count).map(|letter| characters[at + 2 * letter]));
            2 * count - 1
        } else {
            // The last letter may be the first of a word with another separator.
            let taken = (2 * count - 2).max(1);
            out.extend(&characters[at..at + taken]);
            taken
        };
        at += taken;
    }
    out
}

/// Number of rounds of percent-decoding: `%2569` encodes `%69`.
const PERCENT_ROUNDS: usize = 3;

/// Returns the percent-decoded text; `None` if it contains no encoded characters.
fn percent_decoded(text: &str) -> Option<String> {
    let is_encoded = |part: &str| part.get(..2).is_some_and(|code| code.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let has_encoded = |text: &str| text.split('%').skip(1).any(is_encoded);
    let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let mut decoded = has_encoded(text).then(|| decode(&text.replace('+', " ")))?;
    for _ in 1..PERCENT_ROUNDS {
        if !has_encoded(&decoded) {
            break;
        }
        decoded = decode(&decoded);
    }
    Some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_words_is_taken_away() {
        assert_eq!(visible("a\\n\\u200bb\\ud83dc \u{200B}\n d"), "a bc d");
        assert_eq!(visible("\\u12 \\"), "\\u12 \\");
        for text in ["&#105;gnore", "&#x69;gnore", "&amp;#105;gnore", "i<b>gn</b>ore", "&Igrave;gnore", "&ifr;gnore"] {
            assert_eq!(fold(&without_markup(text)).to_lowercase(), "ignore", "{text}");
        }
        assert_eq!(without_markup("a < b &lt;x&gt; &nosuch; & c"), "a < b  &nosuch; & c".replace("  ", " "));
        assert_eq!(letters_for_digits("1gn0r3 4ll in 2024"), "ignore ail in 2024".replace("ail", "all"));
        assert_eq!(percent_decoded("ignore%20all%20x").as_deref(), Some("ignore all x"));
        assert_eq!(percent_decoded("100% of 5%"), None);
        assert_eq!(percent_decoded("%252569gnore").as_deref(), Some("ignore"));
        assert_eq!(together("i.g.n.o.r.e a.l.l x, o n e two a b c"), "ignore a.l.l x, o n e two a b c");
        assert_eq!(together("i g n o r e a l l"), "ignoreall");
        assert_eq!(together("do i-g-n-o-r-e me"), "do ignore me");
        assert_eq!(apart("ignore_all.previous-x i_g_n_o_r_e"), "ignore all previous x ignore");
    }

    #[test]
    fn views_of_hostile_texts_take_linear_time() {
        for unit in ["<", "&", "&#", "<a ", "\\u", "%4", "a\u{301}", "&amp;", "<!--", "1a ", "a b ", "a.", "a_b", "%25"]
        {
            let text = unit.repeat((1 << 20) / unit.len());
            assert!(!views(&text).is_empty());
        }
    }
}
