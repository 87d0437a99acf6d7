//! A text as its readers may see it, in linear time: without what hides words from a pattern.

use std::borrow::Cow;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};
use percent_encoding::percent_decode_str;

use crate::lang::foreign_text::{fold, shows_nothing};

/// The different views of a text: as it is shown, without markup, with the letters that others imitate, with digits and
/// signs as the letters that they stand for, and with percent-encoding undone.
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
    add(folded);
    add(bare);
    if let Some(decoded) = percent_decoded(text) {
        add(fold(&without_markup(&decoded)).into_owned());
    }
    views
}

/// A text as a reader sees it: without characters that show nothing, with one blank for each stretch of blanks and
/// line ends, also of those that a printed string has as `\n`, and with `\uXXXX` as the character it stands for.
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

/// The character of `uXXXX`, and what stands behind it.
fn escaped(text: &str) -> Option<(char, &str)> {
    let digits = text.strip_prefix('u')?.get(..4)?;
    let number = u32::from_str_radix(digits, 16).ok()?;
    // Half of a pair alone is no character; tags, which come in pairs, show nothing.
    Some((char::from_u32(number).unwrap_or('\u{200B}'), &text[5..]))
}

/// The same without tags of HTML and the signs of Markdown, and with what character references stand for.
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

/// The longest tag that is taken for one, in bytes.
const LONGEST_TAG: usize = 2_000;

/// How often character references are undone: `&amp;#105;` is one of a reference.
const ROUNDS: usize = 2;

/// Stands for `<` while references are undone, so that there are no tags.
const LESS: &str = "\u{F0000}";

/// A text with what its character references stand for, all that HTML knows.
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

/// `1gn0re` as `ignore`: digits and signs beside letters as the letters that they look like.
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

/// The text that percent-encoding stands for, if there are several encoded characters.
fn percent_decoded(text: &str) -> Option<String> {
    let is_encoded = |part: &&str| part.get(..2).is_some_and(|code| code.bytes().all(|byte| byte.is_ascii_hexdigit()));
    (text.split('%').skip(1).filter(is_encoded).take(2).count() == 2)
        .then(|| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned())
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
    }

    #[test]
    fn views_of_hostile_texts_take_linear_time() {
        for unit in ["<", "&", "&#", "<a ", "\\u", "%4", "a\u{301}", "&amp;", "<!--", "1a "] {
            let text = unit.repeat((1 << 20) / unit.len());
            assert!(!views(&text).is_empty());
        }
    }
}
