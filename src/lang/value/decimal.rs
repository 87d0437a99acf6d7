//! Exact decimals with the semantics of Java's `BigDecimal`: `1.10M` keeps its zero and equals `1.1M`.
//!
//! A decimal is an integer and a power of ten, so a short text can denote a number with very many digits. Code that
//! would write out the zeros checks their number first.

use super::Value;
use crate::meter::owe;
use bigdecimal::BigDecimal;
use num_bigint::{BigInt, Sign};
use num_integer::Integer;
use num_traits::{Signed, Zero};
use std::cmp::Ordering;
use std::f64::consts::LOG10_2;
use std::fmt::Write;
use std::hash::{Hash, Hasher};

/// Maximum magnitude of the power of ten of a decimal.
pub const MAX_SCALE: i64 = 1_000_000;

/// Parses digits with an optional point and exponent; `None` if they are malformed or beyond [`MAX_SCALE`].
pub fn read(text: &str) -> Option<BigDecimal> {
    let value: BigDecimal = if text.len() > AT_ONCE { read_long(text)? } else { text.parse().ok()? };
    (value.fractional_digit_count().abs() <= MAX_SCALE).then_some(value)
}

/// Returns whether a decimal has no other digits than zeros in that many of its last places. That many digits are computed
/// only if the decimal has them.
pub fn ends_in_zeros(value: &BigDecimal, places: i64) -> bool {
    if places <= 0 || value.is_zero() {
        return true;
    }
    u64::try_from(places).is_ok_and(|places| places <= digits(value))
        && value.with_scale(value.fractional_digit_count() - places) == *value
}

fn read_long(text: &str) -> Option<BigDecimal> {
    let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let integer = read_integer(&format!("{whole}{fraction}"), 10)?;
    let scale = (fraction.len() as i64).checked_sub(exponent.parse().ok()?)?;
    Some(BigDecimal::new(integer, scale))
}

/// Maximum number of digits parsed directly.
const AT_ONCE: usize = 2_000;

/// Parses an integer with an optional sign. Long ones are parsed in halves, because direct parsing takes time quadratic
/// in the number of digits.
pub fn read_integer(text: &str, radix: u32) -> Option<BigInt> {
    if text.len() <= AT_ONCE {
        return BigInt::parse_bytes(text.as_bytes(), radix);
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let number = read_halves(digits.as_bytes(), radix)?;
    Some(if text.starts_with('-') { -number } else { number })
}

fn read_halves(digits: &[u8], radix: u32) -> Option<BigInt> {
    if digits.len() <= AT_ONCE {
        let only_digits = digits.iter().all(u8::is_ascii_alphanumeric);
        return only_digits.then(|| BigInt::parse_bytes(digits, radix)).flatten();
    }
    let (above, below) = digits.split_at(digits.len() / 2);
    let power = BigInt::from(radix).pow(below.len() as u32);
    Some(read_halves(above, radix)? * power + read_halves(below, radix)?)
}

/// Converts to the nearest double, with ties to even; an infinity or zero out of range.
pub fn to_double(value: &BigDecimal) -> f64 {
    // In bits. The midpoint of two adjacent doubles has at most 767 significant digits.
    const ENOUGH: u64 = 2_700;
    let (unscaled, scale) = value.as_bigint_and_scale();
    let (mut digits, mut scale) = (unscaled.into_owned(), scale);
    if digits.bits() > ENOUGH {
        // Callers that convert a number to a double do not charge for its digits.
        owe(square_effort(digits.bits()) / 16);
        let cut = ((digits.bits() - ENOUGH) as f64 * LOG10_2) as u32;
        let (above, below) = digits.div_rem(&BigInt::from(10).pow(cut));
        // An extra digit records whether anything was cut off (a sticky digit).
        let sticky = below.signum();
        digits = above * 10 + sticky;
        scale -= i64::from(cut) - 1;
    }
    // The standard library rounds correctly for any number of digits.
    format!("{digits}e{}", -scale).parse().unwrap_or(f64::NAN)
}

/// Returns the number of steps for finding the nearest double, in addition to the first. Only long decimals take any.
pub fn double_effort(value: &BigDecimal) -> u64 {
    let words = bits(value) / 64;
    words.saturating_mul(words.isqrt()) / 8
}

/// Writes a decimal like Java's `toString`: plain, or with an exponent where plain notation would begin with many zeros
/// or end with zeros that are not significant.
pub fn write(out: &mut String, value: &BigDecimal) {
    let (unscaled, scale) = value.as_bigint_and_exponent();
    let digits = unscaled.abs().to_string();
    if unscaled.is_negative() {
        out.push('-');
    }
    let adjusted = digits.len() as i64 - 1 - scale;
    if scale == 0 {
        out.push_str(&digits);
    } else if scale > 0 && adjusted >= -6 {
        let whole = digits.len() as i64 - scale;
        if whole > 0 {
            let (before, behind) = digits.split_at(whole as usize);
            let _ = write!(out, "{before}.{behind}");
        } else {
            let _ = write!(out, "0.{}{digits}", "0".repeat(whole.unsigned_abs() as usize));
        }
    } else {
        out.push_str(&digits[..1]);
        if digits.len() > 1 {
            let _ = write!(out, ".{}", &digits[1..]);
        }
        if adjusted != 0 {
            let _ = write!(out, "E{adjusted:+}");
        }
    }
}

/// True if the two are the same number, regardless of trailing zeros.
pub fn equal(left: &BigDecimal, right: &BigDecimal) -> bool {
    order(left, right) == Ordering::Equal
}

/// Returns the number of bits of the unscaled integer.
pub fn bits(value: &BigDecimal) -> u64 {
    value.as_bigint_and_scale().0.bits()
}

/// Estimates the number of digits of the unscaled integer: exact, or one too many. An exact count would need a power of
/// ten of that length.
pub fn digits(value: &BigDecimal) -> u64 {
    (bits(value) as f64 * LOG10_2) as u64 + 1
}

/// Hashes a decimal without its trailing zeros, so that equal decimals hash alike.
pub fn hash<H: Hasher>(value: &BigDecimal, state: &mut H) {
    let (unscaled, scale) = value.as_bigint_and_scale();
    let (digits, zeros) = without_zeros(unscaled.into_owned());
    let power = if digits.is_zero() { 0 } else { scale - zeros };
    (digits, power).hash(state);
}

/// Returns an integer without its trailing decimal zeros, and their number. Removes zeros in groups of growing, then of
/// shrinking size, so that an integer with few trailing zeros needs only a few divisions by small powers of ten.
fn without_zeros(mut number: BigInt) -> (BigInt, i64) {
    let mut zeros = 0;
    let mut group = 1_u32;
    // The number of trailing zero bits is an upper bound for the number of trailing decimal zeros.
    while let Some(most) = number.trailing_zeros().filter(|most| *most > 0) {
        if u64::from(group) <= most {
            let (quotient, rest) = number.div_rem(&BigInt::from(10).pow(group));
            if rest.is_zero() {
                number = quotient;
                zeros += i64::from(group);
                group *= 2;
                continue;
            }
        }
        if group == 1 {
            break;
        }
        group /= 2;
    }
    (number, zeros)
}

/// Returns the decimal without trailing zeros.
pub fn without_zeros_at_end(value: &BigDecimal) -> BigDecimal {
    let (unscaled, scale) = value.as_bigint_and_scale();
    let (digits, zeros) = without_zeros(unscaled.into_owned());
    let scale = if digits.is_zero() { 0 } else { scale - zeros };
    BigDecimal::new(digits, scale)
}

/// Returns the number of steps for an operation on an integer of `bits` bits that takes quadratic time, such as
/// computing its digits.
pub fn square_effort(bits: u64) -> u64 {
    let words = bits / 64;
    words.saturating_mul(words) / 8
}

/// Returns the number of steps for comparing a decimal with another value, in addition to the first. If the powers of
/// ten differ, one of the integers is scaled up.
pub fn comparing_effort(left: &BigDecimal, right: &Value) -> u64 {
    let (other, scale) = match right {
        Value::Float(_) => return double_effort(left),
        Value::Decimal(right) => (bits(right), right.fractional_digit_count()),
        Value::BigInt(right) => (right.bits(), 0),
        Value::Int(_) => (64, 0),
        _ => return 0,
    };
    let own = bits(left);
    let apart = scale.abs_diff(left.fractional_digit_count());
    if apart == 0 {
        return own.min(other) / 512;
    }
    // The scaled integer is at most about as long as the longer one: if the magnitudes differ, neither is scaled.
    square_effort(own.max(other))
}

/// Compares a decimal exactly with an integer or a decimal; `None` for all other values.
pub fn compare(left: &BigDecimal, right: &Value) -> Option<Ordering> {
    Some(match right {
        Value::Decimal(right) => order(left, right),
        Value::Int(right) => order(left, &BigDecimal::from(*right)),
        Value::BigInt(right) => order(left, &BigDecimal::from((**right).clone())),
        _ => return None,
    })
}

/// Orders two decimals. If the signs or the magnitudes differ, no integer is scaled.
fn order(left: &BigDecimal, right: &BigDecimal) -> Ordering {
    let sign = |value: &BigDecimal| match value.sign() {
        Sign::Minus => -1,
        Sign::NoSign => 0,
        Sign::Plus => 1,
    };
    match sign(left).cmp(&sign(right)) {
        Ordering::Equal if left.is_zero() => Ordering::Equal,
        Ordering::Equal => {
            let ((own, scale), (other, other_scale)) = (left.as_bigint_and_scale(), right.as_bigint_and_scale());
            if scale == other_scale {
                return own.cmp(&other);
            }
            // Bounds on the decimal exponent, from the bit length of the unscaled integer.
            let least = |bits: u64, scale: i64| ((bits - 1) as f64 * LOG10_2).floor() as i64 - 1 - scale;
            let most = |bits: u64, scale: i64| (bits as f64 * LOG10_2).ceil() as i64 + 1 - scale;
            let larger = least(own.bits(), scale) > most(other.bits(), other_scale);
            let smaller = most(own.bits(), scale) < least(other.bits(), other_scale);
            match (larger, smaller) {
                (false, false) => left.cmp(right),
                (larger, _) if larger == left.is_negative() => Ordering::Less,
                _ => Ordering::Greater,
            }
        }
        unequal => unequal,
    }
}

/// Converts an integer to a decimal of scale zero.
pub fn of_integer(value: BigInt) -> BigDecimal {
    BigDecimal::from(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_numbers_read_as_short_ones_do() {
        let digits: String = (1..3_000_u32).map(|n| n.to_string()).collect();
        for text in [digits.clone(), format!("-{digits}"), format!("+{digits}")] {
            assert_eq!(read_integer(&text, 10), text.parse().ok());
            assert_eq!(read_integer(&text, 16), BigInt::parse_bytes(text.as_bytes(), 16));
        }
        for text in [format!("-{digits}.{digits}e-7"), format!("{digits}E+12"), format!("0.{digits}"), digits.clone()] {
            assert_eq!(read(&text), text.parse().ok());
        }
        for text in [format!("{digits}x"), format!("{digits}.1.2"), format!("{digits}e"), format!("--{digits}")] {
            assert!(read(&text).is_none() && read_integer(&text, 10).is_none());
        }
    }

    #[test]
    fn the_nearest_double() {
        let long = |digits: &str| format!("{digits}{}", "0".repeat(2_000));
        for (text, double) in [
            ("1E+300", 1e300),
            ("0.1", 0.1),
            ("-2.5E-7", -2.5e-7),
            ("1E+400", f64::INFINITY),
            ("-1E+400", f64::NEG_INFINITY),
            ("1E-400", 0.0),
            ("5E-324", 5e-324),
            ("2.4703282292062327E-324", 0.0),
            ("2.4703282292062328E-324", 5e-324),
            // Ties round to even; the smallest excess rounds up.
            ("9007199254740993", 9_007_199_254_740_992.0),
            ("9007199254740995", 9_007_199_254_740_996.0),
            (&format!("{}E-2000", long("9007199254740993")), 9_007_199_254_740_992.0),
            (&format!("{}1E-2001", long("9007199254740993")), 9_007_199_254_740_994.0),
            (&format!("-{}1E-2001", long("9007199254740993")), -9_007_199_254_740_994.0),
            (&long("1"), f64::INFINITY),
        ] {
            assert_eq!(to_double(&read(text).expect("a decimal")), double, "{text}");
        }
    }

    #[test]
    fn decimals_print_as_in_java() {
        for (text, printed) in [
            ("1.50", "1.50"),
            ("-0.001", "-0.001"),
            ("1e3", "1E+3"),
            ("12.5e3", "1.25E+4"),
            ("0.0000001", "1E-7"),
            ("0.000001", "0.000001"),
            ("0", "0"),
            ("0.00", "0.00"),
            ("123456789012345678901234567890.5", "123456789012345678901234567890.5"),
        ] {
            let mut out = String::new();
            write(&mut out, &read(text).expect("a decimal"));
            assert_eq!(out, printed);
        }
        assert!(read("1e99999999999").is_none() && read("1e2000000").is_none());
    }
}
