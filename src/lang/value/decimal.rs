//! Exact decimals as Java's `BigDecimal` has them: `1.10M` keeps its zero, and equals `1.1M`.
//!
//! A decimal is an integer and a power of ten, so its text can stand for a number of any length:
//! whatever would write the zeros out asks for their count first.

use super::Value;
use bigdecimal::BigDecimal;
use num_bigint::{BigInt, Sign};
use num_traits::{FromPrimitive, Signed, Zero};
use std::cmp::Ordering;
use std::fmt::Write;

/// The largest power of ten, up or down, that a decimal may have.
pub const MAX_SCALE: i64 = 1_000_000;

/// What digits, perhaps with a point and an exponent, stand for; `None` beyond [`MAX_SCALE`].
pub fn read(text: &str) -> Option<BigDecimal> {
    let value: BigDecimal = text.parse().ok()?;
    (value.fractional_digit_count().abs() <= MAX_SCALE).then_some(value)
}

/// The exact value of a double; `None` for infinite ones and NaN.
pub fn of_float(value: f64) -> Option<BigDecimal> {
    BigDecimal::from_f64(value)
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

/// How a decimal stands to a number of any kind, exactly; `None` for what is no number.
pub fn compare(left: &BigDecimal, right: &Value) -> Option<Ordering> {
    Some(match right {
        Value::Decimal(right) => order(left, right),
        Value::Int(right) => order(left, &BigDecimal::from(*right)),
        Value::BigInt(right) => order(left, &BigDecimal::from((**right).clone())),
        Value::Float(right) if right.is_nan() => Ordering::Equal,
        Value::Float(right) => match of_float(*right) {
            Some(right) => order(left, &right),
            None if *right > 0.0 => Ordering::Less,
            None => Ordering::Greater,
        },
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
            let magnitude = |value: &BigDecimal| value.digits() as i64 - value.fractional_digit_count();
            let by_size = magnitude(left).cmp(&magnitude(right));
            match (by_size, left.is_negative()) {
                (Ordering::Equal, _) => left.cmp(right),
                (unequal, false) => unequal,
                (unequal, true) => unequal.reverse(),
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
