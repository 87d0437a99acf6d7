//! Exact decimals as Java's `BigDecimal` has them: `1.10M` keeps its zero, and equals `1.1M`.
//!
//! A decimal is an integer and a power of ten, so its text can stand for a number of any length:
//! whatever would write the zeros out asks for their count first.

use super::Value;
use crate::lang::meter::owe;
use bigdecimal::BigDecimal;
use num_bigint::{BigInt, Sign};
use num_integer::Integer;
use num_traits::{Signed, Zero};
use std::cmp::Ordering;
use std::f64::consts::LOG10_2;
use std::fmt::Write;
use std::hash::{Hash, Hasher};

/// The largest power of ten, up or down, that a decimal may have.
pub const MAX_SCALE: i64 = 1_000_000;

/// What digits, perhaps with a point and an exponent, stand for; `None` beyond [`MAX_SCALE`].
pub fn read(text: &str) -> Option<BigDecimal> {
    let value: BigDecimal = if text.len() > AT_ONCE { read_long(text)? } else { text.parse().ok()? };
    (value.fractional_digit_count().abs() <= MAX_SCALE).then_some(value)
}

fn read_long(text: &str) -> Option<BigDecimal> {
    let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let integer = read_integer(&format!("{whole}{fraction}"), 10)?;
    let scale = (fraction.len() as i64).checked_sub(exponent.parse().ok()?)?;
    Some(BigDecimal::new(integer, scale))
}

/// How many digits are read in one go.
const AT_ONCE: usize = 2_000;

/// The integer that digits, perhaps with a sign, spell. Long ones are read in halves: the time for reading
/// them in one go grows with the square of their number.
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

/// The nearest double, of two that are equally near the even one; beyond the range an infinity or zero.
pub fn to_double(value: &BigDecimal) -> f64 {
    // Halfway between two doubles, no number has more significant digits than 767.
    const ENOUGH: u64 = 2_700;
    let (unscaled, scale) = value.as_bigint_and_scale();
    let (mut digits, mut scale) = (unscaled.into_owned(), scale);
    if digits.bits() > ENOUGH {
        // Whoever asks for a plain number does not pay for its digits.
        owe(square_effort(digits.bits()) / 16);
        let cut = ((digits.bits() - ENOUGH) as f64 * LOG10_2) as u32;
        let (above, below) = digits.div_rem(&BigInt::from(10).pow(cut));
        // One digit behind the others tells whether anything was cut off.
        let sticky = below.signum();
        digits = above * 10 + sticky;
        scale -= i64::from(cut) - 1;
    }
    // The standard library rounds correctly, whatever the number of digits.
    format!("{digits}e{}", -scale).parse().unwrap_or(f64::NAN)
}

/// The steps that finding the nearest double takes, beside the first: only long decimals take any.
pub fn double_effort(value: &BigDecimal) -> u64 {
    let words = bits(value) / 64;
    words.saturating_mul(words.isqrt()) / 8
}

/// A decimal as Java's `toString` writes it: plain, or with an exponent where plain digits would begin
/// with many zeros or end with made-up ones.
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

/// True if the two are the same number, whatever zeros they keep.
pub fn equal(left: &BigDecimal, right: &BigDecimal) -> bool {
    order(left, right) == Ordering::Equal
}

/// How many bits its integer has.
pub fn bits(value: &BigDecimal) -> u64 {
    value.as_bigint_and_scale().0.bits()
}

/// About how many digits its integer has: as many, or one more. To count them takes a power of ten of that length.
pub fn digits(value: &BigDecimal) -> u64 {
    (bits(value) as f64 * LOG10_2) as u64 + 1
}

/// Feeds a hasher with what equal decimals have in common: their digits without the zeros at the end.
pub fn hash<H: Hasher>(value: &BigDecimal, state: &mut H) {
    let (unscaled, scale) = value.as_bigint_and_scale();
    let (digits, zeros) = without_zeros(unscaled.into_owned());
    let power = if digits.is_zero() { 0 } else { scale - zeros };
    (digits, power).hash(state);
}

/// An integer without the zeros at its end, and how many those were. An integer that ends in few zeros is
/// only walked through; they are taken off in ever larger groups, and then in ever smaller ones.
fn without_zeros(mut number: BigInt) -> (BigInt, i64) {
    let mut zeros = 0;
    let mut group = 1_u32;
    // No more zeros than its bits end in.
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

/// The decimal without zeros at its end.
pub fn without_zeros_at_end(value: &BigDecimal) -> BigDecimal {
    let (unscaled, scale) = value.as_bigint_and_scale();
    let (digits, zeros) = without_zeros(unscaled.into_owned());
    let scale = if digits.is_zero() { 0 } else { scale - zeros };
    BigDecimal::new(digits, scale)
}

/// The steps of work on an integer of so many bits whose time grows with the square of its length, as finding
/// its digits does.
pub fn square_effort(bits: u64) -> u64 {
    let words = bits / 64;
    words.saturating_mul(words) / 8
}

/// The steps that comparing a decimal with a number takes beside the first: where their powers of ten
/// differ, one of them is written out.
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
    // As long as the longer one at most: of other lengths, none is written out.
    square_effort(own.max(other))
}

/// How a decimal stands to a number that is no double, exactly; `None` for all other values.
pub fn compare(left: &BigDecimal, right: &Value) -> Option<Ordering> {
    Some(match right {
        Value::Decimal(right) => order(left, right),
        Value::Int(right) => order(left, &BigDecimal::from(*right)),
        Value::BigInt(right) => order(left, &BigDecimal::from((**right).clone())),
        _ => return None,
    })
}

/// The order of two decimals. Where signs and magnitudes already tell, no zeros are written out.
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
            // Between which powers of ten it lies, as far as the length of its integer tells.
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

/// An integer as a decimal without places.
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
            // Halves go to the even one, the least bit more goes up.
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
