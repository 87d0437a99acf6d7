//! JSON as JavaScript and Python write it where JSON has no form: halves of surrogate pairs, and numbers that are none.

use std::borrow::Cow;

/// The replacement for half of a surrogate pair, as an escape.
const REPLACEMENT: &[u8] = b"\\ufffd";
/// The numbers that JSON does not have.
const NO_NUMBERS: &[&[u8]] = &[b"NaN", b"-Infinity", b"Infinity"];

/// True if a text that is not JSON may be JSON once it is [`forgiven`].
fn is_forgivable(text: &[u8]) -> bool {
    let has = |part: &[u8]| text.windows(part.len()).any(|window| window.eq_ignore_ascii_case(part));
    has(b"\\ud") || has(b"NaN") || has(b"Infinity") || std::str::from_utf8(text).is_err()
}

/// Returns a text in which halves of surrogate pairs and bytes that are not UTF-8 are U+FFFD, and numbers that JSON does
/// not have are `null`; `None` if there are none. JavaScript writes the first when it cuts a text, Python the second.
pub(in crate::server) fn forgiven(text: &[u8]) -> Option<Vec<u8>> {
    if !is_forgivable(text) {
        return None;
    }
    let text = String::from_utf8_lossy(text);
    let is_changed = matches!(text, Cow::Owned(_));
    let bytes = text.as_bytes();
    let (mut out, mut at, mut is_inside) = (Vec::with_capacity(bytes.len()), 0, false);
    while at < bytes.len() {
        let rest = &bytes[at..];
        let (part, replacement): (usize, Option<&[u8]>) = match rest[0] {
            b'"' => {
                is_inside = !is_inside;
                (1, None)
            }
            b'\\' if is_inside => match escape(rest) {
                Some(0xd800..=0xdbff) => match escape(&rest[6..]) {
                    Some(0xdc00..=0xdfff) => (12, None),
                    _ => (6, Some(REPLACEMENT)),
                },
                Some(0xdc00..=0xdfff) => (6, Some(REPLACEMENT)),
                _ => (2.min(rest.len()), None),
            },
            _ if is_inside => (1, None),
            _ => match NO_NUMBERS.iter().find(|word| rest.starts_with(word)) {
                Some(word) => (word.len(), Some(b"null".as_slice())),
                None => (1, None),
            },
        };
        out.extend_from_slice(replacement.unwrap_or(&rest[..part]));
        at += part;
    }
    (is_changed || out != bytes).then_some(out)
}

/// Returns the number of a `\uXXXX` at the beginning of a text.
fn escape(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}
