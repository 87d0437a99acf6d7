//! Quotients of integers: as doubles, and doubles as quotients.

use num_bigint::BigInt;
use num_traits::ToPrimitive;

/// The quotient of two integers that may both be beyond the range of doubles.
pub fn inexact(left: &BigInt, right: &BigInt) -> f64 {
    if let (Ok(left), Ok(right)) = (i64::try_from(left), i64::try_from(right)) {
        return left as f64 / right as f64;
    }
    // Sixty-six bits of the quotient are more than a double keeps.
    let shift = 66 + right.bits() as i64 - left.bits() as i64;
    let quotient = match u64::try_from(shift) {
        Ok(shift) => (left << shift) / right,
        Err(_) => (left >> shift.unsigned_abs()) / right,
    };
    // In two steps, since either alone may leave the range.
    let half = i32::try_from(-shift / 2).unwrap_or(i32::MIN);
    let other = i32::try_from(-shift - i64::from(half)).unwrap_or(i32::MIN);
    quotient.to_f64().unwrap_or(f64::NAN) * 2_f64.powi(half) * 2_f64.powi(other)
}

/// The simplest fraction that is that double: `0.6666666666666666` is 2 over 3. `None` where its parts are
/// beyond 2⁵³, so that no double tells them from their neighbours.
pub fn simplest(number: f64) -> Option<(i64, i64)> {
    const MOST: f64 = 9_007_199_254_740_992.0;
    let (mut rest, mut before, mut now) = (number.abs(), (0.0, 1.0), (1.0, 0.0));
    loop {
        let whole = rest.trunc();
        let next = (whole * now.0 + before.0, whole * now.1 + before.1);
        if !(next.0 <= MOST && next.1 <= MOST) {
            return None;
        }
        if next.0 / next.1 == number.abs() {
            return Some((next.0.copysign(number) as i64, next.1 as i64));
        }
        (before, now, rest) = (now, next, (rest - whole).recip());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions() {
        assert_eq!(simplest(2.0 / 3.0), Some((2, 3)));
        assert_eq!(simplest(-0.1), Some((-1, 10)));
        assert_eq!(simplest(355.0 / 113.0), Some((355, 113)));
        assert_eq!(simplest(f64::INFINITY), None);
        assert_eq!(simplest(f64::NAN), None);
        assert_eq!(simplest(5e-324), None);
    }
}
