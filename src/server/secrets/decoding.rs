//! Decoded views of a text, and the mapping of positions in a view back to the text.
//!
//! A view is a second text without a table of positions. Positions in it are mapped back by decoding the text once
//! more, so that a view takes at most as many bytes as the text itself, regardless of the number of escapes.

use std::ops::Range;

use memchr::{memchr, memchr3, memchr3_iter};

use super::references::{named_character, named_reference};

/// The encodings that a view removes, one level of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Escapes {
    /// String escapes, as in JSON, Lisp, JavaScript and Python.
    Strings,
    /// String escapes, percent-encoding, and HTML and XML character references.
    All,
    /// Line breaks, with the blanks around them.
    LineBreaks,
    /// Soft line breaks of quoted-printable: a `=` before a line break.
    SoftBreaks,
}

/// A piece of the text and the bytes that it represents.
struct Unit<'t> {
    source: Range<usize>,
    decoded: Decoded<'t>,
}

enum Decoded<'t> {
    /// Literal text.
    Literal(&'t [u8]),
    /// An escape, which can be masked only as a whole.
    Escape([u8; 4], usize),
}

impl Decoded<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Decoded::Literal(bytes) => bytes,
            Decoded::Escape(bytes, length) => &bytes[..*length],
        }
    }
}

/// Returns the text with these escapes decoded; `None` if it contains none.
pub(super) fn decoded(text: &[u8], escapes: Escapes) -> Option<Vec<u8>> {
    next_special(text, escapes)?;
    let mut view = Vec::with_capacity(text.len());
    let mut has_changed = false;
    for unit in units(text, escapes) {
        has_changed |= matches!(unit.decoded, Decoded::Escape(..));
        view.extend_from_slice(unit.decoded.bytes());
    }
    has_changed.then_some(view)
}

/// Maps ranges of the view back to ranges of the text; both are sorted and disjoint.
pub(super) fn located(text: &[u8], escapes: Escapes, ranges: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut found = Vec::with_capacity(ranges.len());
    let mut wanted = ranges.iter();
    let Some(mut range) = wanted.next() else { return found };
    let mut start = None;
    let mut at = 0;
    for unit in units(text, escapes) {
        let end = at + unit.decoded.bytes().len();
        let is_literal = matches!(unit.decoded, Decoded::Literal(_));
        loop {
            if start.is_none() && range.start < end {
                start = Some(if is_literal { unit.source.start + (range.start - at) } else { unit.source.start });
            }
            let Some(from) = start.filter(|_| range.end <= end) else { break };
            let to = if is_literal { unit.source.start + (range.end - at) } else { unit.source.end };
            found.push(from..to);
            start = None;
            match wanted.next() {
                Some(next) => range = next,
                None => return found,
            }
        }
        at = end;
    }
    found
}

fn next_special(text: &[u8], escapes: Escapes) -> Option<usize> {
    match escapes {
        Escapes::Strings => memchr(b'\\', text),
        Escapes::All => memchr3(b'\\', b'%', b'&', text),
        Escapes::LineBreaks => line_break(text),
        Escapes::SoftBreaks => memchr(b'=', text),
    }
}

/// Returns the start of the first line break, including the blanks before it.
fn line_break(text: &[u8]) -> Option<usize> {
    let at = memchr3_iter(b'\n', b'\r', 0xE2, text).find(|at| text[*at] != 0xE2 || separator(&text[*at..]) > 0)?;
    let blanks = text[..at].iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    Some(at - blanks)
}

/// Returns the length of the Unicode line or paragraph separator at the beginning of the text; 0 if there is none.
fn separator(text: &[u8]) -> usize {
    if matches!(text, [0xE2, 0x80, 0xA8 | 0xA9, ..]) { 3 } else { 0 }
}

/// Returns the length of the blanks and line breaks at the beginning of the text.
fn blanks(text: &[u8]) -> usize {
    let mut length = 0;
    loop {
        match text.get(length) {
            Some(byte) if byte.is_ascii_whitespace() => length += 1,
            Some(0xE2) if separator(&text[length..]) > 0 => length += 3,
            _ => return length,
        }
    }
}

fn units(text: &[u8], escapes: Escapes) -> impl Iterator<Item = Unit<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        let from = at;
        let length = match next_special(rest, escapes) {
            Some(0) => {
                if let Some((length, bytes, count)) = escape(rest, escapes) {
                    at += length;
                    return Some(Unit { source: from..at, decoded: Decoded::Escape(bytes, count) });
                }
                // A special character that begins no escape is literal.
                1 + next_special(&rest[1..], escapes).unwrap_or(rest.len() - 1)
            }
            Some(length) => length,
            None => rest.len(),
        };
        at += length;
        Some(Unit { source: from..at, decoded: Decoded::Literal(&rest[..length]) })
    })
}

type Escape = (usize, [u8; 4], usize);

/// Decodes the escape at the beginning of the text: returns its length and the bytes that it represents.
fn escape(text: &[u8], escapes: Escapes) -> Option<Escape> {
    match text[0] {
        b'\\' => string_escape(text, escapes),
        b'%' => {
            let byte = u8::try_from(number(text.get(1..3)?, 16)?).ok()?;
            Some((3, [byte, 0, 0, 0], 1))
        }
        b'&' => reference(text),
        b'=' if escapes == Escapes::SoftBreaks => {
            let gap = text[1..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).take(LONGEST).count();
            let line_end = match text.get(1 + gap..)? {
                [b'\r', b'\n', ..] => 2,
                [b'\r' | b'\n', ..] => 1,
                _ => return None,
            };
            nothing(1 + gap + line_end)
        }
        _ if escapes == Escapes::LineBreaks => nothing(blanks(text)),
        _ => None,
    }
}

/// Maximum number of characters of a number, a name or blanks inside an escape; more leading zeros do not occur in
/// practice.
const LONGEST: usize = 40;

/// An escape that represents no bytes.
fn nothing(length: usize) -> Option<Escape> {
    Some((length, [0; 4], 0))
}

fn string_escape(text: &[u8], escapes: Escapes) -> Option<Escape> {
    let letter = *text.get(1)?;
    let single = |c: u8| Some((2, [c, 0, 0, 0], 1));
    match letter {
        b'b' => single(8),
        b'f' => single(12),
        b'n' => single(b'\n'),
        b'r' => single(b'\r'),
        b't' => single(b'\t'),
        b'v' => single(11),
        b'x' => character(4, number(text.get(2..4)?, 16)?),
        b'U' => match text.get(2..10).and_then(|digits| number(digits, 16)) {
            Some(code) => character(10, code),
            None => nothing(1),
        },
        b'N' if text.get(2) == Some(&b'{') => {
            let length = text[3..].iter().take(LONGEST).position(|byte| *byte == b'}')?;
            character(4 + length, u32::from(named_character(std::str::from_utf8(&text[3..3 + length]).ok()?)?))
        }
        b'u' if text.get(2) == Some(&b'{') => {
            let digits = text[3..].iter().take(LONGEST).position(|byte| *byte == b'}')?;
            character(4 + digits, number(&text[3..3 + digits], 16)?)
        }
        b'u' => {
            let first = number(text.get(2..6)?, 16)?;
            let second = || match (text.get(6..8)?, text.get(8..12)?) {
                (br"\u", digits) => number(digits, 16).filter(|second| (0xDC00..0xE000).contains(second)),
                _ => None,
            };
            match (first, (0xD800..0xDC00).contains(&first).then(second).flatten()) {
                (_, Some(second)) => character(12, 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)),
                _ => character(6, first),
            }
        }
        b'0'..=b'7' => {
            let most = if letter < b'4' { 3 } else { 2 };
            let count = text[1..].iter().take(most).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
            character(1 + count, number(&text[1..1 + count], 8)?)
        }
        // A string that continues in the next line.
        b'\n' | b'\r' => nothing(1 + blanks(&text[1..])),
        // These begin an escape of their own.
        b'%' | b'&' if escapes == Escapes::All => None,
        // Before any other letter only the backslash is an escape, since it may also be a literal backslash.
        b'a'..=b'z' | b'A'..=b'Z' => nothing(1),
        // Any other character represents itself.
        _ => single(letter),
    }
}

/// `&amp;`, `&#47;`, `&#x2f;` and similar; browsers also accept numbers and some names without the `;`.
fn reference(text: &[u8]) -> Option<Escape> {
    let count = |from: usize, is_inside: fn(&u8) -> bool| {
        text.get(from..).unwrap_or_default().iter().take(LONGEST).take_while(|byte| is_inside(byte)).count()
    };
    let (end, code) = match text.get(1..)? {
        [b'#', b'x' | b'X', ..] => {
            let end = 3 + count(3, u8::is_ascii_hexdigit);
            (end, number(&text[3..end], 16)?)
        }
        [b'#', ..] => {
            let end = 2 + count(2, u8::is_ascii_digit);
            (end, number(&text[2..end], 10)?)
        }
        _ => {
            let end = 1 + count(1, u8::is_ascii_alphanumeric);
            let (length, c) = named_reference(&text[1..end], text.get(end) == Some(&b';'))?;
            (1 + length, u32::from(c))
        }
    };
    character(end + usize::from(text.get(end) == Some(&b';')), code)
}

fn number(digits: &[u8], radix: u32) -> Option<u32> {
    // The parser would accept a sign.
    let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|c| c.is_ascii_alphanumeric()))?;
    u32::from_str_radix(digits, radix).ok()
}

/// An escape of `length` bytes; an invalid code point, such as half a surrogate pair, becomes U+FFFD.
fn character(length: usize, code: u32) -> Option<Escape> {
    let mut bytes = [0; 4];
    let count = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER).encode_utf8(&mut bytes).len();
    Some((length, bytes, count))
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::*;

    fn view(text: &str, escapes: Escapes) -> Option<String> {
        decoded(text.as_bytes(), escapes).map(|view| String::from_utf8_lossy(&view).into_owned())
    }

    #[test]
    fn escapes_are_decoded_once() {
        let strings = |text| view(text, Escapes::Strings);
        assert_eq!(strings(r#"a\/b\u0026\u002Fc\"\\n"#).as_deref(), Some(r#"a/b&/c"\n"#));
        assert_eq!(strings(r"\uD83D\ude00 \ud83d \x41\u{1F600}\U00000041\101").as_deref(), Some("😀 \u{fffd} A😀AA"));
        assert_eq!(strings(r"\u12 \x \"), None, "no escapes: {:?}", strings(r"\u12 \x \"));
        assert_eq!(strings(r"\57\53\7a\101\400 \Z\-\U\N").as_deref(), Some("/+\u{7}aA 0 Z-UN"));
        assert_eq!(strings(r"\N{SOLIDUS}\N{plus sign}\u{000000005a}\N{NOBODY}").as_deref(), Some("/+Z\\N{NOBODY}"));
        assert_eq!(strings("one\\\n  two\\\r\nthree").as_deref(), Some("onetwothree"));
        assert_eq!(view("a%2Fb%zz&amp;&#47;&#x2f;&nope;100%", Escapes::All).as_deref(), Some("a/b%zz&//&nope;100%"));
        let references = "&sol;&plus;&#000000000090;&#90&#x5A;&#x5a&ampk&AMP;&lt&solidus;&#;&#xg;&";
        assert_eq!(view(references, Escapes::All).as_deref(), Some("/+ZZZZ&k&<&solidus;&#;&#xg;&"));
        assert_eq!(
            view("one \t\r\n   two\u{2028}three \u{2014} x", Escapes::LineBreaks).as_deref(),
            Some("onetwothree \u{2014} x")
        );
        assert_eq!(view("one \u{2014} x", Escapes::LineBreaks), None);
        assert_eq!(view("a==\r\nb=\n c=d= ", Escapes::SoftBreaks).as_deref(), Some("a=b c=d= "));
        assert_eq!(view("a%2Fb", Escapes::Strings), None);
    }

    #[test]
    fn views_of_hostile_texts_take_linear_time() {
        for unit in [" ", "\u{2014}", " \u{2014}", "=", "= ", "\\", "\\u{", "\\N{", "&#", "&#0", "&a", "\n", " \n"] {
            let text = unit.repeat((1 << 20) / unit.len());
            for escapes in [Escapes::Strings, Escapes::All, Escapes::LineBreaks, Escapes::SoftBreaks] {
                assert!(view(&text, escapes).is_none_or(|view| view.len() <= text.len()));
            }
        }
    }

    #[test]
    fn places_in_a_view_are_found_in_the_text() {
        let text = r"ab\u0063d\/e%2Ff";
        let located = |ranges: &[Range<usize>]| located(text.as_bytes(), Escapes::All, ranges);
        assert_eq!(view(text, Escapes::All).as_deref(), Some("abcd/e/f"));
        assert_eq!(located(slice::from_ref(&(0..2))), vec![0..2; 1]);
        assert_eq!(located(&[1..3, 4..5, 7..8]), [1..8, 9..11, 15..16]);
        assert_eq!(located(slice::from_ref(&(0..8))), vec![0..16; 1]);
    }
}
