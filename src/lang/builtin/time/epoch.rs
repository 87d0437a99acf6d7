//! Unix time as a number or as digits; the magnitude determines the unit.

use crate::value::time::text::fraction;
use jiff::Timestamp;

/// Converts seconds, milliseconds, microseconds or nanoseconds since 1970, distinguished by magnitude.
pub fn epoch(number: i64) -> Option<Timestamp> {
    match number.unsigned_abs() {
        0..100_000_000_000 => Timestamp::from_second(number),
        100_000_000_000..100_000_000_000_000 => Timestamp::from_millisecond(number),
        100_000_000_000_000..100_000_000_000_000_000 => Timestamp::from_microsecond(number),
        _ => Timestamp::from_nanosecond(number.into()),
    }
    .ok()
}

/// Parses Unix time written in digits: 9 or 10 digits are seconds, with an optional fraction; 13, 16 or 19 digits are
/// milliseconds, microseconds or nanoseconds.
pub fn epoch_text(text: &str) -> Option<Timestamp> {
    let (whole, part) = text.split_once('.').map_or((text, None), |(whole, part)| (whole, Some(part)));
    let digits = whole.bytes().all(|byte| byte.is_ascii_digit());
    match (whole.len(), part) {
        (9 | 10, Some(part)) if digits => Timestamp::new(whole.parse().ok()?, fraction(part)?).ok(),
        (9 | 10 | 13 | 16 | 19, None) if digits => epoch(whole.parse().ok()?),
        _ => None,
    }
}

/// Converts fractional seconds or milliseconds since 1970, distinguished by magnitude.
pub fn epoch_float(number: f64) -> Option<Timestamp> {
    if !number.is_finite() || number.abs() > 1e15 {
        return None;
    }
    let millis = if number.abs() < 1e11 { number * 1e3 } else { number };
    // For present-day times a double resolves microseconds at best.
    Timestamp::from_microsecond((millis * 1e3).round() as i64).ok()
}
