//! Finds numbers in JSON text that a reader which keeps doubles would round (RFC 8259, section 6).

use crate::error::path::{self, Step};
use std::fmt;

/// Most significant digits of a number that always survive the conversion to a double and back.
const SAFE_DIGITS: usize = 15;

/// A number that readers of JSON would round, with its place.
#[derive(Debug, PartialEq, Eq)]
pub struct Rounded {
    /// The keys and indices that lead to the number, such as `items[2].total`; empty for the value itself.
    pub place: String,
    /// The number as written.
    pub number: String,
}

impl fmt::Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 60;
        if !self.place.is_empty() {
            write!(f, "at {}: ", self.place)?;
        }
        let shown = &self.number[..self.number.len().min(SHOWN)];
        let cut = if self.number.len() > SHOWN { "…" } else { "" };
        write!(f, "readers of JSON would round the number {shown}{cut}")
    }
}

/// Returns the first number in valid JSON text that is neither an integer of 64 bits nor written like the nearest
/// double.
pub fn first_rounded(text: &str) -> Option<Rounded> {
    let mut tokens = Tokens { text, at: 0 };
    while let Some(token) = tokens.next() {
        if let Token::Number(number) = token
            && !survives(number)
        {
            return Some(Rounded { place: place(text, tokens.at), number: number.to_owned() });
        }
    }
    None
}

/// True if a reader that keeps 64-bit integers and doubles keeps the number.
pub fn survives(number: &str) -> bool {
    let digits = number.bytes().filter(u8::is_ascii_digit).count();
    if digits <= SAFE_DIGITS && !number.contains(['e', 'E']) {
        return true;
    }
    if number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok() {
        return true;
    }
    match number.parse::<f64>() {
        Ok(double) if double.is_finite() => significant(number) == significant(&format!("{double:e}")),
        _ => false,
    }
}

/// Returns the significant digits of a number and the power of ten of the first one.
fn significant(number: &str) -> (String, i64) {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let mantissa = mantissa.trim_start_matches('-');
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let leading_zeros = digits.len() - digits.trim_start_matches('0').len();
    let digits = digits.trim_matches('0').to_owned();
    let power = match digits.is_empty() {
        true => 0,
        false => exponent
            .parse()
            .unwrap_or(if exponent.starts_with('-') { i64::MIN } else { i64::MAX })
            .saturating_add(whole.len() as i64 - leading_zeros as i64),
    };
    (digits, power)
}

/// Returns valid JSON text with its numbers as strings, each in one notation of its exact value: `1.20` and `12e-1` are the
/// same, `0.1` and `0.10000000000000000001` are not. Its strings are marked, so that none is taken for a number.
pub fn with_exact_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    let (mut tokens, mut copied) = (Tokens { text, at: 0 }, 0);
    while let Some(token) = tokens.next() {
        let (length, marked) = match token {
            Token::Text(inner) => (inner.len() + 2, format!("\"s{inner}\"")),
            Token::Number(number) => {
                let (digits, power) = significant(number);
                let sign = if number.starts_with('-') && !digits.is_empty() { "-" } else { "" };
                (number.len(), format!("\"n{sign}{digits}e{power}\""))
            }
            Token::Mark(_) => continue,
        };
        out.push_str(&text[copied..tokens.at - length]);
        out.push_str(&marked);
        copied = tokens.at;
    }
    out.push_str(&text[copied..]);
    out
}

/// Returns the number in a field of a JSON object, as it is written. A name with escapes is not found.
pub fn number_in<'t>(object: &'t str, name: &str) -> Option<&'t str> {
    let mut tokens = Tokens { text: object, at: 0 };
    let (mut depth, mut latest, mut is_value) = (0_usize, "", false);
    for token in &mut tokens {
        match token {
            Token::Number(number) if depth == 1 && is_value && latest == name => return Some(number),
            Token::Text(text) => latest = text,
            Token::Mark(b'{' | b'[') => depth += 1,
            Token::Mark(b'}' | b']') => depth = depth.saturating_sub(1),
            Token::Number(_) | Token::Mark(_) => {}
        }
        is_value = matches!(token, Token::Mark(b':'));
    }
    None
}

enum Token<'t> {
    Text(&'t str),
    Number(&'t str),
    Mark(u8),
}

/// The strings (without quotes), numbers and structural characters of valid JSON text.
struct Tokens<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Iterator for Tokens<'t> {
    type Item = Token<'t>;

    fn next(&mut self) -> Option<Token<'t>> {
        let bytes = self.text.as_bytes();
        loop {
            let start = self.at;
            let first = *bytes.get(start)?;
            self.at += 1;
            match first {
                b'"' => {
                    loop {
                        self.at += memchr::memchr2(b'"', b'\\', bytes.get(self.at..)?)?;
                        if bytes[self.at] == b'"' {
                            break;
                        }
                        self.at += 2;
                    }
                    self.at += 1;
                    return Some(Token::Text(&self.text[start + 1..self.at - 1]));
                }
                b'-' | b'0'..=b'9' => {
                    let rest = &bytes[start..];
                    let length = rest
                        .iter()
                        .position(|byte| !matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9'))
                        .unwrap_or(rest.len());
                    self.at = start + length;
                    return Some(Token::Number(&self.text[start..self.at]));
                }
                b'[' | b']' | b'{' | b'}' | b',' | b':' => return Some(Token::Mark(first)),
                _ => {}
            }
        }
    }
}

/// Returns the place of the token that ends at `end`.
fn place(text: &str, end: usize) -> String {
    let mut path: Vec<Step<'_>> = Vec::new();
    let mut tokens = Tokens { text, at: 0 };
    let mut latest = "";
    while let Some(token) = tokens.next() {
        if tokens.at >= end {
            break;
        }
        match token {
            Token::Text(text) => latest = text,
            Token::Number(_) => {}
            Token::Mark(b'[') => path.push(Step::Index(0)),
            Token::Mark(b'{') => path.push(Step::Key("".into())),
            Token::Mark(b']' | b'}') => drop(path.pop()),
            Token::Mark(b':') => {
                if let Some(step) = path.last_mut() {
                    *step = Step::Key(latest.into());
                }
            }
            Token::Mark(_) => {
                if let Some(Step::Index(index)) = path.last_mut() {
                    *index += 1;
                }
            }
        }
    }
    path::written(path.iter())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_doubles_hold_survive() {
        for number in [
            "0",
            "-0.0",
            "1.5",
            "0.1",
            "1e22",
            "100000000000000000000",
            "18446744073709551615",
            "-9223372036854775808",
            "5e-324",
            "1.7976931348623157e308",
            "0.30000000000000004",
            "1E400000000000000000000000",
        ] {
            assert_eq!(survives(number), !number.starts_with("1E4"), "{number}");
        }
        for number in [
            "123456789012345678901234567890",
            "0.1234567890123456789012",
            "1e309",
            "18446744073709551617",
            "0.00001e-9223372036854775808",
        ] {
            assert!(!survives(number), "{number}");
        }
    }

    #[test]
    fn numbers_have_one_notation_of_their_exact_value() {
        let same = |one: &str, other: &str| with_exact_numbers(one) == with_exact_numbers(other);
        for (one, other) in
            [("10", "10.0"), ("1.20", "12e-1"), ("-0.0", "0"), ("[1e2]", "[100]"), ("1E-7", "0.0000001")]
        {
            assert!(same(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("12345678901234567.89", "12345678901234567.91"),
            ("12345678901234567890123", "12345678901234567890124"),
            ("0.1", "0.10000000000000000001"),
            ("1", "-1"),
            ("1", "10"),
            ("1.20", "\"1.20\""),
            ("1", "\"n1e1\""),
        ] {
            assert!(!same(one, other), "{one} {other}");
        }
        assert_eq!(with_exact_numbers(r#"{"a\"1": [1, "2", true]}"#), r#"{"sa\"1": ["n1e1", "s2", true]}"#);
    }

    #[test]
    fn the_number_in_a_field_is_returned_as_it_is_written() {
        let object = r#"{"a":{"b":1},"c":[2],"b":1.10,"d":"b","e":-3}"#;
        let found: Vec<_> = ["a", "b", "c", "d", "e"].map(|name| number_in(object, name)).into();
        assert_eq!(found, [None, Some("1.10"), None, None, Some("-3")]);
    }

    #[test]
    fn the_place_of_a_rounded_number_is_reported() {
        let text = r#"{"a":[1,{"b \" [":[2,[3,4],"]}",12345678901234567890123]}],"c":1}"#;
        let rounded = first_rounded(text).expect("it is rounded");
        assert_eq!(rounded.place, r#"a[1].b \" [[3]"#);
        assert_eq!(rounded.number, "12345678901234567890123");
        let rounded = first_rounded("12345678901234567890123").expect("it is rounded");
        assert_eq!(rounded.to_string(), "readers of JSON would round the number 12345678901234567890123");
        assert_eq!(first_rounded(r#"["12345678901234567890123", 1.5, true, null]"#), None);
    }
}
