//! Numbers: Clojure's syntax, and error messages for the syntax of other languages.

use num_bigint::BigInt;

use super::{ReadError, excerpt};
use crate::form::FormKind;
use crate::span::Span;
use crate::value::quotient;

/// Maximum number of digits of an integer: decoding takes quadratic time.
const MAX_DIGITS: usize = 10_000;

/// Reads a number token. Common Lisp's `1+` and `1-` are names that look like numbers.
pub(super) fn number(text: &str, span: Span) -> Result<FormKind, ReadError> {
    if matches!(text, "1+" | "1-") {
        return Ok(FormKind::Symbol(text.to_string()));
    }
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let bytes = digits.as_bytes();
    if bytes.len() < 19 && (bytes[0] != b'0' || bytes.len() == 1) && bytes.iter().all(u8::is_ascii_digit) {
        let value = bytes.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
        return Ok(FormKind::Int(if negative { -value } else { value }));
    }
    if let Some((radix, digits, big)) = integer(digits) {
        if digits.len() > MAX_DIGITS {
            let message = format!("an integer of {} digits: at most {MAX_DIGITS} are read", digits.len());
            return Err(ReadError::new("InvalidNumber", span, message));
        }
        if let Some(value) = BigInt::parse_bytes(digits.as_bytes(), radix) {
            let value = if negative { -value } else { value };
            return Ok(match i64::try_from(&value) {
                Ok(value) if !big => FormKind::Int(value),
                _ => FormKind::BigInt(value),
            });
        }
    } else if let Some(decimal) = digits.strip_suffix('M').filter(|decimal| is_decimal(decimal)) {
        if decimal.len() > MAX_DIGITS {
            let message = format!("a decimal of {} characters: at most {MAX_DIGITS} are read", decimal.len());
            return Err(ReadError::new("InvalidNumber", span, message));
        }
        if let Some(value) = crate::value::decimal::read(decimal) {
            return Ok(FormKind::Decimal(if negative { -value } else { value }));
        }
        let message =
            format!("the exponent of `{}` is too large: decimals have at most a million places", excerpt(text));
        return Err(ReadError::new("InvalidNumber", span, message));
    } else if is_float(digits)
        && let Ok(value) = text.parse()
    {
        return Ok(FormKind::Float(value));
    }
    match text.split_once('/') {
        Some((above, below)) if is_ratio(above, below) => ratio(above, below, span),
        // In Clojure, a number begins with a digit, so this is a name.
        _ if text.starts_with('.') => Ok(FormKind::Symbol(text.to_string())),
        _ => Err(not_a_number(text, digits, span)),
    }
}

/// Returns whether these are the parts of a ratio such as `-2/3`.
fn is_ratio(above: &str, below: &str) -> bool {
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    all_digits(above.strip_prefix(['+', '-']).unwrap_or(above)) && all_digits(below)
}

/// Evaluates `(/ above below)`: an integer if it divides evenly, else a double.
fn ratio(above: &str, below: &str, span: Span) -> Result<FormKind, ReadError> {
    if above.len().max(below.len()) > MAX_DIGITS {
        let message = format!("a ratio of more than {MAX_DIGITS} digits");
        return Err(ReadError::new("InvalidNumber", span, message));
    }
    let digits = |text: &str| BigInt::parse_bytes(text.trim_start_matches('+').as_bytes(), 10).unwrap_or_default();
    let (above, below) = (digits(above), digits(below));
    if below == BigInt::default() {
        return Err(ReadError::new("InvalidNumber", span, "divide by zero")
            .suggest("a ratio `a/b` needs a `b` other than 0; infinity is written `##Inf`"));
    }
    let whole = &above / &below;
    if &whole * &below == above {
        return Ok(i64::try_from(&whole).map_or(FormKind::BigInt(whole), FormKind::Int));
    }
    Ok(FormKind::Float(quotient::inexact(&above, &below)))
}

/// Splits an integer without its sign into radix and digits, and returns whether it ends in `N`.
fn integer(text: &str) -> Option<(u32, &str, bool)> {
    let all = |digits: &str, radix: u32| !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
    let (body, big) = text.strip_suffix('N').map_or((text, false), |body| (body, true));
    if let Some(hex) = body.strip_prefix("0x").or_else(|| body.strip_prefix("0X")) {
        return all(hex, 16).then_some((16, hex, big));
    }
    if let Some(octal) = body.strip_prefix('0').filter(|octal| !octal.is_empty()) {
        return all(octal, 8).then_some((8, octal, big));
    }
    if all(body, 10) {
        return Some((10, body, big));
    }
    // In `36rN`, the `N` is a digit: an integer with a radix has no suffix.
    let (radix, digits) = text.split_once(['r', 'R'])?;
    let radix = radix.parse().ok().filter(|radix| (2..=36).contains(radix))?;
    all(digits, radix).then_some((radix, digits, false))
}

/// Returns whether the text consists of digits with a point, an exponent or both, without a sign.
fn is_float(text: &str) -> bool {
    text.contains(['.', 'e', 'E']) && is_decimal(text)
}

/// Returns whether the text consists of digits, optionally with a point or an exponent, without a sign.
fn is_decimal(text: &str) -> bool {
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent_is_fine = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && all_digits(digits)
    });
    all_digits(whole) && all_digits(part) && (whole.len() + part.len() > 0) && exponent_is_fine
}

fn not_a_number(text: &str, digits: &str, span: Span) -> ReadError {
    let shown = excerpt(text);
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let error = ReadError::new("InvalidNumber", span, format!("`{shown}` is not a number"));
    let digits_of = |prefix: [&str; 2]| {
        let rest = digits.strip_prefix(prefix[0]).or_else(|| digits.strip_prefix(prefix[1]));
        rest.filter(|rest| all_digits(rest)).map(excerpt)
    };
    if let Some(binary) = digits_of(["0b", "0B"]) {
        return error.suggest(format!("binary is written `2r{binary}`"));
    }
    if let Some(octal) = digits_of(["0o", "0O"]) {
        return error.suggest(format!("octal is written `8r{octal}`"));
    }
    if all_digits(&digits.replace('_', "")) {
        let plain = excerpt(&text.replace('_', ""));
        if digits.contains('_') {
            return error.suggest(format!("write it without `_`: `{plain}`"));
        }
        let decimal = excerpt(digits.trim_start_matches('0'));
        return error.suggest(format!("a leading 0 means octal, which has no 8 or 9; in decimal write `{decimal}`"));
    }
    match text {
        _ if text.ends_with(['\'', ':']) => error,
        _ => error.suggest(format!("a name cannot begin with a digit; if it is text, write `\"{shown}\"`")),
    }
}

/// Reads `##Inf` and its kin.
pub(super) fn symbolic_number(text: &str, span: Span) -> Result<FormKind, ReadError> {
    match text {
        "##Inf" | "##+Inf" => Ok(FormKind::Float(f64::INFINITY)),
        "##-Inf" => Ok(FormKind::Float(f64::NEG_INFINITY)),
        "##NaN" => Ok(FormKind::Float(f64::NAN)),
        _ => Err(ReadError::new("InvalidNumber", span, format!("`{}` is not a number", excerpt(text)))
            .suggest("the symbolic numbers are `##Inf`, `##-Inf` and `##NaN`; comments begin with `;`")),
    }
}
