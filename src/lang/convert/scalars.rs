//! The decimals and dates of other crates.

#![cfg(any(feature = "rust_decimal", feature = "bigdecimal", feature = "jiff", feature = "chrono", feature = "time"))]

use super::exact::Scalar;
use crate::error::describe;
use crate::value::Value;
#[cfg(any(feature = "jiff", feature = "chrono", feature = "time"))]
use crate::value::time::Time;
use std::sync::Arc;

#[cfg(any(feature = "rust_decimal", feature = "bigdecimal"))]
mod decimals {
    use super::{Arc, Scalar, Value, describe};
    use crate::value::decimal;
    use bigdecimal::BigDecimal;

    /// Returns the decimal that a number, or a text of digits, is written as.
    fn decimal_of(value: &Value) -> Result<BigDecimal, String> {
        let read = match value {
            Value::Decimal(number) => Some((**number).clone()),
            Value::Int(number) => Some((*number).into()),
            Value::BigInt(number) => Some((**number).clone().into()),
            Value::Float(number) if number.is_finite() => decimal::read(&format!("{number:?}")),
            Value::Str(digits) => decimal::read(digits.as_str()),
            _ => None,
        };
        read.ok_or_else(|| format!("expected a decimal, got {}", describe(value)))
    }

    #[cfg(feature = "bigdecimal")]
    impl Scalar for BigDecimal {
        fn to_scalar(&self) -> Result<Value, String> {
            if self.fractional_digit_count().unsigned_abs() > decimal::MAX_SCALE.unsigned_abs() {
                return Err(format!("expected a decimal with an exponent of at most {}", decimal::MAX_SCALE));
            }
            Ok(Value::Decimal(Arc::new(self.clone())))
        }

        fn from_scalar(value: &Value) -> Result<BigDecimal, String> {
            decimal_of(value)
        }
    }

    #[cfg(feature = "rust_decimal")]
    impl Scalar for rust_decimal::Decimal {
        fn to_scalar(&self) -> Result<Value, String> {
            Ok(Value::Decimal(Arc::new(BigDecimal::new(self.mantissa().into(), self.scale().into()))))
        }

        fn from_scalar(value: &Value) -> Result<rust_decimal::Decimal, String> {
            const LONGEST: i64 = 28;
            let unfit = || format!("expected a decimal of at most {LONGEST} digits, got {}", describe(value));
            let number = decimal_of(value)?;
            let scale = number.fractional_digit_count();
            // Zeros at the end of a longer fraction are not significant, and a whole number has no exponent.
            let number = match scale {
                0..=LONGEST => number,
                ..0 if scale >= -LONGEST => number.with_scale(0),
                _ if scale > LONGEST && decimal::ends_in_zeros(&number, scale - LONGEST) => number.with_scale(LONGEST),
                _ => return Err(unfit()),
            };
            let (digits, scale) = number.into_bigint_and_scale();
            let digits = i128::try_from(digits).map_err(|_| unfit())?;
            rust_decimal::Decimal::try_from_i128_with_scale(digits, scale as u32).map_err(|_| unfit())
        }
    }
}

/// Returns the value of a time.
#[cfg(any(feature = "jiff", feature = "chrono", feature = "time"))]
fn time(time: Time) -> Result<Value, String> {
    Ok(Value::Time(Arc::new(time)))
}

/// Returns the time that a value is, or that the text of one is read as with this tag.
#[cfg(any(feature = "jiff", feature = "chrono", feature = "time"))]
fn time_of(value: &Value, tag: &str, what: &str) -> Result<Time, String> {
    match value {
        Value::Time(time) => Some((**time).clone()),
        Value::Str(text) => Time::read(tag, text.as_str()).and_then(Result::ok),
        _ => None,
    }
    .ok_or_else(|| format!("expected {what}, got {}", describe(value)))
}

#[cfg(any(feature = "jiff", feature = "chrono", feature = "time"))]
macro_rules! times {
    ($($type:ty, $what:literal, $tag:literal: |$self:ident| $to:expr, $($pattern:pat => $from:expr),+;)*) => {
        $(impl Scalar for $type {
            fn to_scalar(&self) -> Result<Value, String> {
                let $self = self;
                time($to)
            }

            fn from_scalar(value: &Value) -> Result<$type, String> {
                match time_of(value, $tag, $what)? {
                    $($pattern => $from,)+
                    _ => Err(format!("expected {}, got {}", $what, describe(value))),
                }
            }
        })*
    };
}

#[cfg(feature = "jiff")]
mod jiffs {
    use super::{Scalar, Time, Value, describe, time, time_of};
    use jiff::{SignedDuration, Timestamp, Zoned, civil};

    times! {
        Timestamp, "an instant", "inst": |at| Time::Instant(*at),
            Time::Instant(at) => Ok(at), Time::Zoned(at) => Ok(at.timestamp());
        Zoned, "a date and time with a zone", "time/zoned-date-time": |at| Time::Zoned(Box::new(at.clone())),
            Time::Zoned(at) => Ok(*at);
        civil::Date, "a date", "time/date": |date| Time::Date(*date), Time::Date(date) => Ok(date);
        civil::Time, "a time of day", "time/time": |clock| Time::Clock(*clock), Time::Clock(clock) => Ok(clock);
        civil::DateTime, "a date and time", "time/date-time": |at| Time::DateTime(*at), Time::DateTime(at) => Ok(at);
        SignedDuration, "a duration", "time/duration": |length| Time::Duration(*length),
            Time::Duration(length) => Ok(length);
    }
}

/// The error for a time that the other side cannot hold.
#[cfg(any(feature = "chrono", feature = "time"))]
fn out_of_range<E: std::fmt::Display>(error: E) -> String {
    format!("the time is out of range: {error}")
}

#[cfg(feature = "chrono")]
mod chronos {
    use super::{Scalar, Time, Value, describe, out_of_range, time, time_of};
    use chrono::{DateTime, Datelike, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime, Timelike, Utc};
    use jiff::tz::{Offset, TimeZone};
    use jiff::{Timestamp, civil};

    const RANGE: &str = "the time is out of range";

    fn instant(seconds: i64, nanos: u32) -> Result<Timestamp, String> {
        if nanos >= 1_000_000_000 {
            return Err("a leap second has no counterpart".to_owned());
        }
        Timestamp::new(seconds, nanos as i32).map_err(out_of_range)
    }

    fn utc(at: Timestamp) -> Result<DateTime<Utc>, String> {
        // Before 1970, the nanoseconds of jiff count backwards.
        let nanos = at.as_nanosecond();
        let (seconds, nanos) = (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
        DateTime::from_timestamp(seconds as i64, nanos as u32).ok_or_else(|| RANGE.to_owned())
    }

    fn date(date: NaiveDate) -> Result<civil::Date, String> {
        let year = i16::try_from(date.year()).map_err(out_of_range)?;
        civil::Date::new(year, date.month() as i8, date.day() as i8).map_err(out_of_range)
    }

    fn naive_date(date: civil::Date) -> Result<NaiveDate, String> {
        NaiveDate::from_ymd_opt(date.year().into(), date.month() as u32, date.day() as u32)
            .ok_or_else(|| RANGE.to_owned())
    }

    fn clock(clock: NaiveTime) -> Result<civil::Time, String> {
        let (hour, minute, second) = (clock.hour() as i8, clock.minute() as i8, clock.second() as i8);
        // Those of a leap second are out of the range of jiff.
        civil::Time::new(hour, minute, second, clock.nanosecond() as i32).map_err(out_of_range)
    }

    fn naive_time(clock: civil::Time) -> Result<NaiveTime, String> {
        let (hour, minute, second) = (clock.hour() as u32, clock.minute() as u32, clock.second() as u32);
        NaiveTime::from_hms_nano_opt(hour, minute, second, clock.subsec_nanosecond() as u32)
            .ok_or_else(|| RANGE.to_owned())
    }

    times! {
        DateTime<Utc>, "an instant", "inst":
            |at| Time::Instant(instant(at.timestamp(), at.timestamp_subsec_nanos())?),
            Time::Instant(at) => utc(at), Time::Zoned(at) => utc(at.timestamp());
        DateTime<FixedOffset>, "a date and time with an offset", "time/offset-date-time":
            |at| {
                let zone = Offset::from_seconds(at.offset().local_minus_utc()).map_err(out_of_range)?;
                let at = instant(at.timestamp(), at.timestamp_subsec_nanos())?;
                Time::Zoned(Box::new(at.to_zoned(TimeZone::fixed(zone))))
            },
            Time::Instant(at) => utc(at).map(|at| at.fixed_offset()),
            Time::Zoned(at) => {
                let offset = FixedOffset::east_opt(at.offset().seconds()).ok_or_else(|| RANGE.to_owned())?;
                utc(at.timestamp()).map(|at| at.with_timezone(&offset))
            };
        NaiveDate, "a date", "time/date": |at| Time::Date(date(*at)?), Time::Date(date) => naive_date(date);
        NaiveTime, "a time of day", "time/time": |at| Time::Clock(clock(*at)?), Time::Clock(at) => naive_time(at);
        NaiveDateTime, "a date and time", "time/date-time":
            |at| Time::DateTime(date(at.date())?.to_datetime(clock(at.time())?)),
            Time::DateTime(at) => Ok(naive_date(at.date())?.and_time(naive_time(at.time())?));
    }
}

#[cfg(feature = "time")]
mod times {
    use super::{Scalar, Time, Value, describe, out_of_range, time, time_of};
    use ::time::{Date, Month, OffsetDateTime, PrimitiveDateTime, Time as Clock, UtcOffset};
    use jiff::tz::{Offset, TimeZone};
    use jiff::{Timestamp, civil};

    fn date(date: Date) -> Result<civil::Date, String> {
        let year = i16::try_from(date.year()).map_err(out_of_range)?;
        civil::Date::new(year, u8::from(date.month()) as i8, date.day() as i8).map_err(out_of_range)
    }

    fn own_date(date: civil::Date) -> Result<Date, String> {
        let month = Month::try_from(date.month() as u8).map_err(out_of_range)?;
        Date::from_calendar_date(date.year().into(), month, date.day() as u8).map_err(out_of_range)
    }

    fn clock(clock: Clock) -> Result<civil::Time, String> {
        let (hour, minute, second, nanosecond) = clock.as_hms_nano();
        civil::Time::new(hour as i8, minute as i8, second as i8, nanosecond as i32).map_err(out_of_range)
    }

    fn own_clock(clock: civil::Time) -> Result<Clock, String> {
        let (hour, minute, second) = (clock.hour() as u8, clock.minute() as u8, clock.second() as u8);
        Clock::from_hms_nano(hour, minute, second, clock.subsec_nanosecond() as u32).map_err(out_of_range)
    }

    fn own(at: Timestamp) -> Result<OffsetDateTime, String> {
        OffsetDateTime::from_unix_timestamp_nanos(at.as_nanosecond()).map_err(out_of_range)
    }

    times! {
        OffsetDateTime, "a date and time with an offset", "time/offset-date-time":
            |at| {
                let zone = Offset::from_seconds(at.offset().whole_seconds()).map_err(out_of_range)?;
                let at = Timestamp::from_nanosecond(at.unix_timestamp_nanos()).map_err(out_of_range)?;
                Time::Zoned(Box::new(at.to_zoned(TimeZone::fixed(zone))))
            },
            Time::Instant(at) => own(at),
            Time::Zoned(at) => {
                let offset = UtcOffset::from_whole_seconds(at.offset().seconds()).map_err(out_of_range)?;
                own(at.timestamp()).map(|at| at.to_offset(offset))
            };
        Date, "a date", "time/date": |at| Time::Date(date(*at)?), Time::Date(date) => own_date(date);
        Clock, "a time of day", "time/time": |at| Time::Clock(clock(*at)?), Time::Clock(at) => own_clock(at);
        PrimitiveDateTime, "a date and time", "time/date-time":
            |at| Time::DateTime(date(at.date())?.to_datetime(clock(at.time())?)),
            Time::DateTime(at) => Ok(PrimitiveDateTime::new(own_date(at.date())?, own_clock(at.time())?));
    }
}
