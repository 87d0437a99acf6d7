//! Views of a text in which escapes are decoded, and the way back from a place in a view to the text.
//!
//! A view is a second text; no table of positions is kept. Places found in it are brought back by decoding the text once
//! more, so that a view costs at most as many bytes as the text itself, however many escapes there are.

use std::ops::Range;

use memchr::{memchr, memchr2, memchr3};

/// The encodings that a view removes, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Escapes {
    /// Escapes of strings, as JSON, Lisp, JavaScript and Python write them.
    Strings,
    /// Those, percent-encoding, and the character references of HTML and XML.
    All,
    /// Line breaks, with the indentation behind them.
    LineBreaks,
}

/// A piece of the text and the bytes that it stands for.
struct Unit<'t> {
    source: Range<usize>,
    decoded: Decoded<'t>,
}

enum Decoded<'t> {
    /// It stands for itself.
    Literal(&'t [u8]),
    /// An escape, which can be covered only as a whole.
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

/// The text without these escapes; nothing where there are none.
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

/// The ranges of the text from which these ranges of its view come; both are sorted and apart.
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
        Escapes::LineBreaks => memchr2(b'\n', b'\r', text),
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
                // A sign that begins no escape stands for itself.
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

/// The escape with which this begins: its length, and the bytes that it stands for.
fn escape(text: &[u8], escapes: Escapes) -> Option<Escape> {
    match text[0] {
        b'\\' => string_escape(text),
        b'%' => {
            let byte = u8::try_from(number(text.get(1..3)?, 16)?).ok()?;
            Some((3, [byte, 0, 0, 0], 1))
        }
        b'&' => reference(text),
        _ if escapes == Escapes::LineBreaks => {
            let length = text.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            Some((length, [0; 4], 0))
        }
        _ => None,
    }
}

fn string_escape(text: &[u8]) -> Option<Escape> {
    let letter = *text.get(1)?;
    let single = |c: u8| Some((2, [c, 0, 0, 0], 1));
    match letter {
        b'"' | b'\\' | b'/' | b'\'' => single(letter),
        b'b' => single(8),
        b'f' => single(12),
        b'n' => single(b'\n'),
        b'r' => single(b'\r'),
        b't' => single(b'\t'),
        b'x' => character(4, number(text.get(2..4)?, 16)?),
        b'U' => character(10, number(text.get(2..10)?, 16)?),
        b'u' if text.get(2) == Some(&b'{') => {
            let digits = text[3..].iter().take(9).position(|byte| *byte == b'}')?;
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
        b'0'..=b'3' => character(4, number(text.get(1..4)?, 8)?),
        _ => None,
    }
}

/// `&amp;`, `&#47;`, `&#x2f;` and such.
fn reference(text: &[u8]) -> Option<Escape> {
    let end = text.iter().take(12).position(|byte| *byte == b';')?;
    let name = &text[1..end];
    let code = match name {
        b"amp" => u32::from(b'&'),
        b"lt" => u32::from(b'<'),
        b"gt" => u32::from(b'>'),
        b"quot" => u32::from(b'"'),
        b"apos" => u32::from(b'\''),
        [b'#', b'x' | b'X', digits @ ..] => number(digits, 16)?,
        [b'#', digits @ ..] => number(digits, 10)?,
        _ => return None,
    };
    character(end + 1, code)
}

fn number(digits: &[u8], radix: u32) -> Option<u32> {
    // A sign would be accepted by the parser.
    let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|c| c.is_ascii_alphanumeric()))?;
    u32::from_str_radix(digits, radix).ok()
}

/// An escape of so many bytes; half a surrogate pair stands for no character.
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
        assert_eq!(strings(r"C:\Programs \u12 \q \"), None, "no escapes: {:?}", strings(r"C:\Programs \u12 \q \"));
        assert_eq!(view("a%2Fb%zz&amp;&#47;&#x2f;&nope;100%", Escapes::All).as_deref(), Some("a/b%zz&//&nope;100%"));
        assert_eq!(view("one\r\n   two", Escapes::LineBreaks).as_deref(), Some("onetwo"));
        assert_eq!(view("a%2Fb", Escapes::Strings), None);
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
