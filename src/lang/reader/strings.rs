//! Strings and their escapes.

use super::ReadError;
use crate::span::Span;

/// Decodes the contents of a string token.
pub(super) fn string(text: &str, span: Span) -> Result<String, ReadError> {
    let body = &text[1..text.len() - 1];
    let mut decoded = String::with_capacity(body.len());
    let mut rest = body;
    while let Some(at) = rest.find('\\') {
        decoded.push_str(&rest[..at]);
        let escape = &rest[at..];
        let (character, length) = unescape(escape).map_err(|(length, message, suggestion)| {
            let start = span.start as usize + 1 + (body.len() - escape.len());
            let error = ReadError::new("InvalidEscape", Span::new(start, start + length), message);
            match suggestion {
                Some(suggestion) => error.suggest(suggestion),
                None => error,
            }
        })?;
        decoded.push(character);
        rest = &escape[length..];
    }
    decoded.push_str(rest);
    Ok(decoded)
}

/// The length, message and suggestion of an invalid escape.
type BadEscape = (usize, String, Option<&'static str>);

/// Decodes the escape at the start of `text`; returns its character, and its length in bytes.
fn unescape(text: &str) -> Result<(char, usize), BadEscape> {
    let Some(selector) = text[1..].chars().next() else {
        return Err((1, "a backslash ends the string".to_string(), None));
    };
    let simple = match selector {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        '"' | '\\' => selector,
        'u' => return unicode_escape(text),
        '0'..='7' => {
            let digits = text[1..].bytes().take(3).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
            return match u8::from_str_radix(&text[1..1 + digits], 8) {
                Ok(value) => Ok((char::from(value), 1 + digits)),
                Err(_) => Err((4, format!("octal escape `{}` is beyond `\\377`", &text[..4]), None)),
            };
        }
        _ => {
            let length = 1 + selector.len_utf8();
            let message = match selector {
                '\n' => "a backslash at the end of a line is not an escape".to_string(),
                _ => format!("`{}` is not an escape in a string", &text[..length]),
            };
            let suggestion = match selector {
                '\n' => "a string may run over several lines without it",
                '\'' | '`' => "it needs no backslash",
                'x' | 'U' | 'N' => "a character by number is written `\\u0041`, with four hexadecimal digits",
                _ => "a backslash is written `\\\\`; for a regex write `#\"…\"`, where backslashes stay as they are",
            };
            return Err((length, message, Some(suggestion)));
        }
    };
    Ok((simple, 2))
}

/// Decodes `\uXXXX`, or two of them that form a surrogate pair.
fn unicode_escape(text: &str) -> Result<(char, usize), BadEscape> {
    let unit = |text: &str| {
        let digits = text.strip_prefix("\\u")?.get(..4)?;
        let all = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        u16::from_str_radix(digits, 16).ok().filter(|_| all)
    };
    let Some(first) = unit(text) else {
        let length = 2 + text[2..].bytes().take(4).take_while(u8::is_ascii_hexdigit).count();
        let message = format!("`{}` is not a Unicode escape: `\\u` takes four hexadecimal digits", &text[..length]);
        let suggestion = "beyond U+FFFF write the character itself, or a surrogate pair such as `\\uD83D\\uDE00`";
        return Err((length, message, text[2..].starts_with('{').then_some(suggestion)));
    };
    if let Some(character) = char::from_u32(u32::from(first)) {
        return Ok((character, 6));
    }
    let pair = unit(&text[6..]).and_then(|second| char::decode_utf16([first, second]).next()?.ok());
    match pair {
        Some(character) => Ok((character, 12)),
        None => Err((6, format!("`{}` is half of a surrogate pair", &text[..6]), None)),
    }
}
