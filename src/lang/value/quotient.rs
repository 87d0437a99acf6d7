//! Conversions between quotients of integers and doubles.

use num_bigint::BigInt;
use num_traits::ToPrimitive;

/// Computes the quotient of two integers, both of which can exceed the range of doubles.
pub fn inexact(left: &BigInt, right: &BigInt) -> f64 {
    if let (Ok(left), Ok(right)) = (i64::try_from(left), i64::try_from(right)) {
        return left as f64 / right as f64;
    }
    // A quotient of at least sixty-six bits has more precision than a double.
    let shift = 66 + right.bits() as i64 - left.bits() as i64;
    let quotient = match u64::try_from(shift) {
        Ok(shift) => (left << shift) / right,
        Err(_) => (left >> shift.unsigned_abs()) / right,
    };
    // Scale in two steps, because a single factor can exceed the range of doubles.
    let half = i32::try_from(-shift / 2).unwrap_or(i32::MIN);
    let other = i32::try_from(-shift - i64::from(half)).unwrap_or(i32::MIN);
    quotient.to_f64().unwrap_or(f64::NAN) * 2_f64.powi(half) * 2_f64.powi(other)
}

/// Finds a simple fraction for a double: the first convergent of its continued fraction whose quotient is exactly that
/// double. `0.6666666666666666` gives 2 over 3. `None` if a part would exceed 2⁵³, beyond which doubles do not
/// represent every integer.
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
