//! Redaction of a JSON text: of its strings, keys and numbers.
//!
//! It works on the text, so that everything without a secret is preserved, including the digits of numbers and the
//! order of keys.

use std::borrow::Cow;
use std::collections::HashSet;

use memchr::{memchr, memchr2, memchr3};

use super::matching::Matcher;
use super::{MASK, masked};

/// Redacts a JSON text; the result is valid JSON. Masked keys of an object remain distinct from each other.
pub(super) fn redact<'t>(matcher: &Matcher, text: &'t str) -> Cow<'t, str> {
    let bytes = text.as_bytes();
    // 0xE2 is the first byte of the Unicode line separators, which need no escape.
    let is_encoded = || memchr3(b'\\', b'%', b'&', bytes).is_some() || memchr(0xE2, bytes).is_some();
    let may_be_in = is_encoded() || matcher.has_numbers || matcher.is_plainly_in(bytes);
    if !may_be_in && matcher.in_pairs(bytes).is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    let mut copied = 0;
    // The masked keys of each open object.
    let mut objects: Vec<HashSet<String>> = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let from = at;
        at += 1;
        match byte {
            b'"' => {
                let end = string_end(bytes, at);
                let inside = &text[at..end];
                let ranges = matcher.find_in_string(inside.as_bytes());
                if !ranges.is_empty() {
                    let mut shown = masked(inside, &ranges);
                    if is_key(bytes, end + 1)
                        && let Some(keys) = objects.last_mut()
                    {
                        shown = distinct(shown, keys);
                    }
                    out.push_str(&text[copied..at]);
                    out.push_str(&shown);
                    copied = end;
                }
                at = end + 1;
            }
            b'-' | b'0'..=b'9' => {
                let length = bytes[from..].iter().take_while(|byte| is_of_a_number(**byte)).count();
                at = from + length;
                if matcher.has_numbers && is_secret_number(matcher, &text[from..at]) {
                    out.push_str(&text[copied..from]);
                    out.push_str(&format!("\"{MASK}\""));
                    copied = at;
                }
            }
            b'{' => objects.push(HashSet::new()),
            b'}' => drop(objects.pop()),
            _ => {}
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// Returns the end of the string whose content begins at `at`: its closing quotation mark, or the end of the text.
fn string_end(text: &[u8], mut at: usize) -> usize {
    while let Some(found) = text.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += found;
        if text[at] == b'"' {
            return at;
        }
        at += 2;
    }
    text.len()
}

fn is_key(text: &[u8], behind: usize) -> bool {
    let rest = text.get(behind..).unwrap_or_default();
    rest.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':')
}

/// Makes a masked key distinct from the other masked keys of its object.
fn distinct(key: String, keys: &mut HashSet<String>) -> String {
    let mut own = key.clone();
    let mut count = 1;
    while !keys.insert(own.clone()) {
        count += 1;
        own = format!("{key} {count}");
    }
    own
}

fn is_of_a_number(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E')
}

/// Returns whether a number contains a secret, including when it is written with an exponent.
fn is_secret_number(matcher: &Matcher, token: &str) -> bool {
    if matcher.is_plainly_in(token.as_bytes()) {
        return true;
    }
    let Some((mantissa, exponent)) = token.split_once(['e', 'E']) else { return false };
    let Ok(exponent) = exponent.parse::<usize>() else { return false };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    // Secrets do not have longer numbers.
    if exponent > 400 || fraction.len() > exponent {
        return false;
    }
    let digits = format!("{whole}{fraction}{}", "0".repeat(exponent - fraction.len()));
    matcher.is_plainly_in(digits.as_bytes())
}
