//! Time since 1970 as a number or in digits: its size tells the unit.

use crate::lang::value::time::text::fraction;
use jiff::Timestamp;

/// Seconds, milliseconds, microseconds or nanoseconds since 1970, told apart by their size.
pub fn epoch(number: i64) -> Option<Timestamp> {
    match number.unsigned_abs() {
        0..100_000_000_000 => Timestamp::from_second(number),
        100_000_000_000..100_000_000_000_000 => Timestamp::from_millisecond(number),
        100_000_000_000_000..100_000_000_000_000_000 => Timestamp::from_microsecond(number),
        _ => Timestamp::from_nanosecond(number.into()),
    }
    .ok()
}

/// Epoch time in digits, of which there are as many as any time since 1973 has; seconds may have a
/// fraction.
pub fn epoch_text(text: &str) -> Option<Timestamp> {
    let (whole, part) = text.split_once('.').map_or((text, None), |(whole, part)| (whole, Some(part)));
    let digits = whole.bytes().all(|byte| byte.is_ascii_digit());
    match (whole.len(), part) {
        (9 | 10, Some(part)) if digits => Timestamp::new(whole.parse().ok()?, fraction(part)?).ok(),
        (9 | 10 | 13 | 16 | 19, None) if digits => epoch(whole.parse().ok()?),
        _ => None,
    }
}

/// Seconds since 1970 with a fraction, or milliseconds.
pub fn epoch_float(number: f64) -> Option<Timestamp> {
    if !number.is_finite() || number.abs() > 1e15 {
        return None;
    }
    let millis = if number.abs() < 1e11 { number * 1e3 } else { number };
    // A double has microseconds at most in our times.
    Timestamp::from_microsecond((millis * 1e3).round() as i64).ok()
}
