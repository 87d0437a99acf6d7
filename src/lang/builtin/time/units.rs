//! Units of time and amounts of them: `:days`, `{:days 3 :hours 2}`, durations and periods.

use crate::builtin::arithmetic::float;
use crate::error::suggest::closest;
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::value::Value;
use crate::value::time::text::Lengths;
use crate::value::time::{Period, Time};
use jiff::SignedDuration;

/// Nanoseconds of a day of twenty-four hours.
pub const DAY: i128 = 86_400_000_000_000;

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number of nanoseconds, less than a day
    Exact(i64),
    /// A number of days
    Days(i64),
    /// A number of months, less than a year
    Months(i64),
    /// A number of years
    Years(i64),
}

/// The units: name in the plural, abbreviations and other names, unit.
const UNITS: &[(&str, &[&str], Unit)] = &[
    ("nanos", &["nanosecond", "ns"], Unit::Exact(1)),
    ("micros", &["microsecond", "us"], Unit::Exact(1_000)),
    ("millis", &["millisecond", "ms"], Unit::Exact(1_000_000)),
    ("seconds", &["sec", "s"], Unit::Exact(1_000_000_000)),
    ("minutes", &["min"], Unit::Exact(60_000_000_000)),
    ("hours", &["hr", "h"], Unit::Exact(3_600_000_000_000)),
    ("half-days", &["halfday"], Unit::Exact(43_200_000_000_000)),
    ("days", &["d"], Unit::Days(1)),
    ("weeks", &["w", "isoweek"], Unit::Days(7)),
    ("months", &["mo"], Unit::Months(1)),
    ("quarters", &["q"], Unit::Months(3)),
    ("years", &["yr", "y"], Unit::Years(1)),
    ("decades", &[], Unit::Years(10)),
    ("centuries", &["century"], Unit::Years(100)),
];

impl Unit {
    /// Finds a unit by name, singular or plural, case-insensitively.
    pub fn find(name: &str) -> Option<(&'static str, Unit)> {
        let plain: String = name.chars().take(32).filter(|c| !"-_".contains(*c)).flat_map(char::to_lowercase).collect();
        let singular = if plain.len() > 2 { plain.strip_suffix('s').unwrap_or(&plain) } else { &plain };
        UNITS
            .iter()
            .find(|(plural, others, _)| {
                let known = plural.strip_suffix('s').unwrap_or(plural);
                known == singular
                    || *plural == plain
                    || others.iter().any(|other| *other == singular || *other == plain)
            })
            .map(|(plural, _, unit)| (*plural, *unit))
    }

    /// Converts a keyword or string to a unit.
    ///
    /// # Errors
    /// Returns `UnknownUnit` if no unit has that name, or `TypeError` if the value is not a name.
    pub fn of(value: &Value) -> Result<Unit, Error> {
        let Some(name) = value.as_text() else {
            return Err(Error::expected("a unit of time such as `:days`", value));
        };
        match Unit::find(name) {
            Some((_, unit)) => Ok(unit),
            None => {
                let error = Error::new("UnknownUnit", format!("there is no unit of time `{name}`")).about(name);
                let names = UNITS.iter().map(|(plural, ..)| *plural);
                Err(match closest(name, names) {
                    _ if name == "m" => error.suggest("write `:minutes` or `:months`"),
                    Some(nearest) => error.suggest(format!("Did you mean :{nearest}?")),
                    None => error.suggest(
                        "units include :millis, :seconds, :minutes, :hours, :days, :weeks, :months, :quarters and :years",
                    ),
                })
            }
        }
    }
}

/// True if the value is the name of a unit.
pub fn is_unit(value: &Value) -> bool {
    matches!(value, Value::Keyword(_) | Value::Str(_)) && Unit::of(value).is_ok()
}

/// A length of time: a calendar part and an exact part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Years
    pub years: i64,
    /// Months
    pub months: i64,
    /// Days
    pub days: i64,
    /// Exact part, in nanoseconds
    pub nanos: i128,
}

/// Creates the error for a result outside of the calendar.
pub fn too_far() -> Error {
    Error::new("ArithmeticError", "the result lies outside of the years -9999 to 9999")
}

impl Amount {
    /// Multiplies a unit by a number; a fractional number of days counts twenty-four hours a day.
    ///
    /// # Errors
    /// Returns `TypeError` if the count is not a number or the fraction has no fixed length, or `ArithmeticError` if
    /// the result is out of range.
    pub fn times(count: &Value, unit: Unit) -> Result<Amount, Error> {
        let count = match count {
            Value::Int(count) => *count,
            other => {
                let count = float(other).map_err(|_| Error::expected("a number of units", other))?;
                if count.fract() != 0.0 || !count.is_finite() || count.abs() > 9e15 {
                    return Amount::fraction(count, unit);
                }
                count as i64
            }
        };
        Amount::whole(count, unit)
    }

    /// Multiplies a unit by an integer.
    ///
    /// # Errors
    /// Returns `ArithmeticError` if the result is out of range.
    pub fn whole(count: i64, unit: Unit) -> Result<Amount, Error> {
        let product = |each: i64| count.checked_mul(each).ok_or_else(too_far);
        let amount = Amount::default();
        Ok(match unit {
            Unit::Exact(each) => Amount { nanos: i128::from(count) * i128::from(each), ..amount },
            Unit::Days(each) => Amount { days: product(each)?, ..amount },
            Unit::Months(each) => Amount { months: product(each)?, ..amount },
            Unit::Years(each) => Amount { years: product(each)?, ..amount },
        })
    }

    fn fraction(count: f64, unit: Unit) -> Result<Amount, Error> {
        let each = match unit {
            Unit::Exact(each) => each as f64,
            Unit::Days(each) => each as f64 * DAY as f64,
            Unit::Months(_) | Unit::Years(_) => {
                return Err(Error::expected("a whole number of months or years", &Value::Float(count)));
            }
        };
        let nanos = (count * each).round();
        if nanos.is_finite() && nanos.abs() < 1e30 {
            Ok(Amount { nanos: nanos as i128, ..Amount::default() })
        } else {
            Err(too_far())
        }
    }

    /// Converts a duration or a period; returns `None` for all other times.
    pub fn of_time(time: &Time) -> Option<Amount> {
        match time {
            Time::Duration(duration) => Some(Amount { nanos: duration.as_nanos(), ..Amount::default() }),
            Time::Period(period) => Some(Amount::of_period(*period)),
            _ => None,
        }
    }

    fn of_period(period: Period) -> Amount {
        let Period { years, months, days } = period;
        Amount { years: years.into(), months: months.into(), days: days.into(), nanos: 0 }
    }

    /// Converts a duration or a period, text that denotes one (`PT1H30M`, `P3D`, `1h 30m`), or a map of units.
    ///
    /// # Errors
    /// Returns `TypeError` if the value is none of these, or the errors of [`Unit::of`] and [`Amount::times`] for an
    /// entry of a map.
    pub fn of(machine: &mut Machine, value: &Value) -> Outcome<Amount> {
        let what = "a length of time such as `(time/duration 90 :minutes)` or `{:hours 1 :minutes 30}`";
        match value {
            Value::Time(time) => Ok(Amount::of_time(time).ok_or_else(|| Error::expected(what, value))?),
            Value::Str(text) => Ok(Amount::read(text.as_str()).ok_or_else(|| Error::expected(what, value))?),
            Value::Map(map) => {
                machine.charge(map.len() as u64)?;
                let mut sum = Amount::default();
                for (unit, count) in map.iter() {
                    sum = sum.plus(Amount::times(count, Unit::of(unit)?)?)?;
                }
                Ok(sum)
            }
            other => Err(Error::expected(what, other).into()),
        }
    }

    /// Parses text in ISO 8601 format, or a list such as `1h 30m` and `2 days 4 hours`.
    pub fn read(text: &str) -> Option<Amount> {
        if text.len() > 100 {
            return None;
        }
        if let Some(Lengths { period, exact }) = Lengths::read(text) {
            return Some(Amount { nanos: exact.as_nanos(), ..Amount::of_period(period) });
        }
        let mut rest = text.trim();
        let negative = rest.starts_with('-');
        rest = rest.strip_prefix('-').unwrap_or(rest);
        let mut sum = Amount::default();
        while !rest.is_empty() {
            let length = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
            let number = rest[..length].parse::<f64>().ok()?;
            rest = rest[length..].trim_start();
            let length = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
            let unit = match &rest[..length] {
                "m" => Unit::Exact(60_000_000_000),
                name => Unit::find(name)?.1,
            };
            sum = sum.plus(Amount::times(&Value::Float(number), unit).ok()?).ok()?;
            rest = rest[length..].trim_start_matches([' ', ',']);
        }
        if sum == Amount::default() && !text.contains('0') {
            return None;
        }
        if negative { sum.negated().ok() } else { Some(sum) }
    }

    /// Returns the sum of two amounts.
    ///
    /// # Errors
    /// Returns `ArithmeticError` on overflow.
    pub fn plus(self, other: Amount) -> Result<Amount, Error> {
        let sum = |a: i64, b: i64| a.checked_add(b).ok_or_else(too_far);
        Ok(Amount {
            years: sum(self.years, other.years)?,
            months: sum(self.months, other.months)?,
            days: sum(self.days, other.days)?,
            nanos: self.nanos.checked_add(other.nanos).ok_or_else(too_far)?,
        })
    }

    /// Returns the negated amount.
    ///
    /// # Errors
    /// Returns `ArithmeticError` on overflow.
    pub fn negated(self) -> Result<Amount, Error> {
        let negate = |n: i64| n.checked_neg().ok_or_else(too_far);
        Ok(Amount {
            years: negate(self.years)?,
            months: negate(self.months)?,
            days: negate(self.days)?,
            nanos: -self.nanos,
        })
    }

    /// Returns the number of months, including those of the years.
    ///
    /// # Errors
    /// Returns `ArithmeticError` on overflow.
    pub fn total_months(self) -> Result<i64, Error> {
        self.years.checked_mul(12).and_then(|months| months.checked_add(self.months)).ok_or_else(too_far)
    }

    /// Converts the amount to a duration; a day counts twenty-four hours.
    ///
    /// # Errors
    /// Returns `TypeError` if the amount has months or years, whose length varies, or `ArithmeticError` if it is too
    /// long.
    pub fn duration(self) -> Result<SignedDuration, Error> {
        if self.years != 0 || self.months != 0 {
            return Err(Error::new("TypeError", "months and years have no fixed length and cannot make a duration")
                .suggest("use a period: (time/period {:months 1}), or add it to a date with time/plus"));
        }
        exact(i128::from(self.days) * DAY + self.nanos)
    }

    /// Converts the amount to a period.
    ///
    /// # Errors
    /// Returns `TypeError` if the amount has an exact part, or `ArithmeticError` if it is too long.
    pub fn period(self) -> Result<Period, Error> {
        if self.nanos != 0 {
            return Err(Error::new("TypeError", "a period has years, months, weeks and days, but nothing below a day")
                .suggest("use a duration: (time/duration 90 :minutes)"));
        }
        let small = |n: i64| {
            i32::try_from(n).map_err(|_| {
                Error::new(
                    "ArithmeticError",
                    format!("a period counts its years, months and days up to {} each, got {n}", i32::MAX),
                )
            })
        };
        Ok(Period { years: small(self.years)?, months: small(self.months)?, days: small(self.days)? })
    }
}

/// Creates a duration from nanoseconds.
///
/// # Errors
/// Returns `ArithmeticError` if it is too long.
pub fn exact(nanos: i128) -> Result<SignedDuration, Error> {
    SignedDuration::try_from_nanos_i128(nanos).ok_or_else(|| Error::new("ArithmeticError", "the duration is too long"))
}
