//! Conversion of arguments to dates, zones and patterns, from values, text and numbers.

use super::calendar::in_zone;
use super::epoch::{epoch, epoch_float};
use super::names::{month, zone_of_word};
use super::pattern::{Pattern, named};
use super::recognise::recognise;
use super::units::too_far;
use crate::builtin::arguments::integer;
use crate::builtin::options::{FLAG, GIVEN, Given, INTERNAL};
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::{OptionKind, OptionSet, OptionSpec};
use crate::value::Value;
use crate::value::time::{self as value_time, Time};
use jiff::civil::{self, Date};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use std::sync::Arc;

/// Wraps a time as a value.
pub fn value(time: Time) -> Value {
    Value::Time(Arc::new(time))
}

/// Converts an argument to a date or time: a time, text that denotes one, a number since 1970, or a calendar entry's
/// map with `dateTime` or `date`.
///
/// # Errors
/// Returns `TypeError`, `InvalidTime` or `AmbiguousDate` if the argument is not a time, or `ArithmeticError` if a
/// number is out of range.
pub fn time(machine: &mut Machine, given: &Value) -> Outcome<Time> {
    machine.charge(1)?;
    Ok(match given {
        Value::Time(time) => (**time).clone(),
        Value::Str(text) => {
            machine.charge(text.as_str().len().min(200) as u64 / 8)?;
            recognise(text.as_str(), None)?
        }
        Value::Int(number) => Time::Instant(epoch(*number).ok_or_else(too_far)?),
        Value::Float(number) => Time::Instant(epoch_float(*number).ok_or_else(too_far)?),
        Value::Map(map) => match ["dateTime", "date-time", "date"]
            .iter()
            .find_map(|key| [Value::keyword(key), Value::string(key)].iter().find_map(|key| map.get(key).cloned()))
        {
            Some(inner @ (Value::Str(_) | Value::Time(_) | Value::Int(_))) => return time(machine, &inner),
            _ => return Err(not_a_time(given).into()),
        },
        other => return Err(not_a_time(other).into()),
    })
}

fn not_a_time(given: &Value) -> Error {
    let error = Error::expected("a date or time", given);
    if given.is_nil() { error } else { error.suggest("such as \"2024-03-05\", \"2024-03-05T14:00:00Z\" or (time/now)") }
}

/// Converts an argument to a time zone: a zone, its name, its offset from UTC, or the zone of a time.
///
/// # Errors
/// Returns `TypeError` if the argument is none of these, or `UnknownZone` if no zone has that name.
pub fn zone(machine: &mut Machine, given: &Value) -> Outcome<TimeZone> {
    machine.charge(1)?;
    let name = match given {
        Value::Time(time) => match &**time {
            Time::Zone(zone) => return Ok(zone.clone()),
            Time::Zoned(zoned) => return Ok(zoned.time_zone().clone()),
            Time::Instant(_) => return Ok(TimeZone::UTC),
            _ => return Err(Error::expected("a time zone", given).into()),
        },
        Value::Str(name) => name.as_str(),
        Value::Keyword(name) => name.as_str(),
        other => return Err(Error::expected("a time zone such as \"Europe/Paris\"", other).into()),
    };
    if let Some(zone) = zone_named(name) {
        return Ok(zone);
    }
    machine.charge(2_000)?;
    let shown: String = name.chars().take(60).collect();
    let error = Error::new("UnknownZone", format!("there is no time zone `{shown}`"));
    let names: Vec<String> = jiff::tz::db().available().map(|name| name.as_str().to_string()).collect();
    let ending = format!("/{}", name.replace(' ', "_").to_lowercase());
    let same_city = names.iter().find(|known| known.to_lowercase().ends_with(&ending));
    let near = crate::error::suggest::closest(name, names.iter().map(String::as_str));
    Err(match same_city.map(String::as_str).or(near) {
        Some(near) => error.suggest(format!("Did you mean \"{near}\"?")),
        None => error.suggest("zones are \"Europe/Paris\", \"America/New_York\", \"UTC\", \"+02:00\""),
    }
    .into())
}

fn zone_named(name: &str) -> Option<TimeZone> {
    if name.len() > 60 {
        return None;
    }
    let distance = name.strip_prefix("UTC").or_else(|| name.strip_prefix("GMT")).filter(|rest| !rest.is_empty());
    // Pads the hours: `+2` becomes `+02`, `+5:30` becomes `+05:30`.
    let full = |text: &str| match text.strip_prefix(['+', '-']) {
        Some(rest) if rest.len() == 1 || rest.find(':') == Some(1) => {
            text.replacen(['+', '-'], &format!("{}0", &text[..1]), 1)
        }
        _ => text.to_string(),
    };
    value_time::zone(&full(distance.unwrap_or(name))).or_else(|| zone_of_word(name))
}

/// Returns the current time of the host's clock.
pub fn now(machine: &mut Machine) -> Timestamp {
    Timestamp::from_millisecond(machine.core.host.now_millis()).unwrap_or_default()
}

/// Returns a time in a zone. A date or local time is interpreted in that zone; a point in time stays the same.
///
/// # Errors
/// Returns `TypeError` if the value is not a date or a point in time, or `ArithmeticError` if the result is out of
/// range.
pub fn zoned(time: &Time, zone: &TimeZone) -> Result<Zoned, Error> {
    match (time, super::calendar::local(time)) {
        (Time::Date(_) | Time::DateTime(_) | Time::YearMonth(_), Some(local)) => in_zone(local, zone, None),
        _ => Ok(super::calendar::timestamp(time, zone)?.to_zoned(zone.clone())),
    }
}

/// Returns the date of a time.
///
/// # Errors
/// Returns `TypeError` if the value has no date.
pub fn date_of(time: &Time) -> Result<Date, Error> {
    match (time, super::calendar::local(time)) {
        (Time::Clock(_), _) | (_, None) => {
            Err(Error::unmet("TypeError", format!("a date, got {} ({time})", time.kind())))
        }
        (_, Some(local)) => Ok(local.date()),
    }
}

/// Returns the time of day of a time.
///
/// # Errors
/// Returns `TypeError` if the value has no time of day.
pub fn clock_of(time: &Time) -> Result<civil::Time, Error> {
    match (time, super::calendar::local(time)) {
        (Time::Date(_) | Time::YearMonth(_), _) | (_, None) => {
            Err(Error::new("TypeError", format!("{} has no time of day", time.kind())))
        }
        (_, Some(local)) => Ok(local.time()),
    }
}

/// Returns an integer within bounds; the error message names the bounds.
///
/// # Errors
/// Returns `TypeError` if the value is not an integer, or `InvalidTime` if it is out of bounds.
pub fn bounded(given: &Value, what: &str, least: i64, most: i64) -> Result<i64, Error> {
    let number = integer(given)?;
    if (least..=most).contains(&number) {
        return Ok(number);
    }
    Err(Error::new("InvalidTime", format!("{what} must be from {least} to {most}, got {number}")))
}

/// Builds a date from year, month and day. The month may be its name; the day defaults to 1.
///
/// # Errors
/// Returns `InvalidTime`, which names the wrong field, or `TypeError` if a field is not an integer.
pub fn date(given: &[Value]) -> Result<Date, Error> {
    let year = bounded(&given[0], "the year", -9999, 9999)? as i16;
    let month = match &given[1] {
        Value::Str(name) if month(name.as_str()).is_some() => month(name.as_str()).unwrap_or(1),
        other => bounded(other, "the month", 1, 12)? as i8,
    };
    let Some(day) = given.get(2) else { return Date::new(year, month, 1).map_err(|_| too_far()) };
    let day = bounded(day, "the day", 1, 31)? as i8;
    Date::new(year, month, day).map_err(|_| no_such_day(year, month, day))
}

/// Creates the error for a day that its month does not have.
pub fn no_such_day(year: i16, month: i8, day: i8) -> Error {
    let name = super::names::MONTHS.get(month as usize - 1).copied().unwrap_or_default();
    let days = Date::new(year, month, 1).map_or(31, |first| first.days_in_month());
    Error::new("InvalidTime", format!("{name} {year} has {days} days, got {day}"))
}

/// Builds a time of day from hours, minutes, and optionally seconds and nanoseconds.
///
/// # Errors
/// Returns `InvalidTime`, which names the wrong field, or `TypeError` if a field is not an integer.
pub fn clock(given: &[Value]) -> Result<civil::Time, Error> {
    let part = |at: usize, what: &str, most: i64| given.get(at).map_or(Ok(0), |given| bounded(given, what, 0, most));
    let (hour, minute) = (part(0, "the hour", 23)?, part(1, "the minute", 59)?);
    let (second, nanos) = (part(2, "the second", 59)?, part(3, "the nanosecond", 999_999_999)?);
    civil::Time::new(hour as i8, minute as i8, second as i8, nanos as i32).map_err(|_| too_far())
}

/// Options of the functions that parse times.
pub const READING: &[OptionSpec] = &[PATTERN, ZONE, OptionSpec::new("day-first", &FLAG), SIMPLE];

/// Options of the functions that format times.
pub const WRITING: &[OptionSpec] = &[PATTERN, ZONE, SIMPLE];

const PATTERN: OptionSpec = OptionSpec::new("pattern", &TEXT_OR_NAME).or(&["format"]);

const ZONE: OptionSpec = OptionSpec::new("zone", &GIVEN);

/// Part of the formatters that `SimpleDateFormat` makes.
const SIMPLE: OptionSpec = OptionSpec::new("simple", &INTERNAL);

static FORMATTER: OptionSet = OptionSet { function: "DateTimeFormatter", accepted: READING };

static TEXT_OR_NAME: OptionKind = OptionKind {
    wanted: "a pattern such as \"yyyy-MM-dd HH:mm\"",
    fits: |value| matches!(value, Value::Str(_) | Value::Keyword(_)),
};

/// Settings for formatting or parsing dates.
#[derive(Default)]
pub struct Format {
    /// The pattern; without one, output is ISO 8601 and input is recognised automatically
    pub pattern: Option<String>,
    /// The zone of the output, or in which input is interpreted
    pub zone: Option<TimeZone>,
    /// Order of day and month in `05/03/2024`
    pub day_first: Option<bool>,
    /// True for `SimpleDateFormat`, which parses points in time
    pub simple: bool,
}

impl Format {
    /// Reads the settings from a pattern, the name of a formatter, or a map as returned by `.withZone`.
    ///
    /// # Errors
    /// Returns `InvalidPattern` if a keyword names no formatter, `TypeError` if the argument is none of these, or the
    /// error of an invalid option, such as `UnknownZone`.
    pub fn of(machine: &mut Machine, given: &Value) -> Outcome<Format> {
        let mut format = Format::default();
        match given {
            Value::Str(pattern) => format.pattern = Some(pattern.as_str().to_string()),
            Value::Keyword(name) => {
                let shouted = name.as_str().to_uppercase().replace('-', "_");
                format.pattern = match &*shouted {
                    "ISO" => None,
                    "DATE" => Some("yyyy-MM-dd".to_string()),
                    "TIME" => Some("HH:mm".to_string()),
                    "RFC_2822" | "RFC2822" | "RFC_1123" | "HTTP" | "MAIL" => Some("RFC_1123_DATE_TIME".to_string()),
                    other => match named(other) {
                        Some(name) => Some(name.to_string()),
                        None => {
                            let error =
                                Error::new("InvalidPattern", format!("there is no format `:{}`", name.as_str()));
                            return Err(error
                                .suggest("use :iso, :date, :time, :rfc-2822, or a pattern such as \"yyyy-MM-dd HH:mm\"")
                                .into());
                        }
                    },
                };
            }
            Value::Map(map) => format.take(machine, &FORMATTER.of_map(map)?)?,
            other => return Err(Error::expected("a pattern such as \"yyyy-MM-dd HH:mm\"", other).into()),
        }
        Ok(format)
    }

    /// Applies options.
    fn take(&mut self, machine: &mut Machine, given: &Given) -> Outcome<()> {
        if let Some(pattern) = given.get("pattern") {
            self.pattern = Format::of(machine, pattern)?.pattern;
        }
        if let Some(given) = given.get("zone") {
            self.zone = Some(zone(machine, given)?);
        }
        if given.takes("day-first") {
            self.day_first = given.get("day-first").map(Value::is_truthy).or(self.day_first);
        }
        self.simple |= given.is_on("simple");
        Ok(())
    }

    /// Reads the settings from an optional leading pattern and options, given as a map or as keys and values.
    ///
    /// # Errors
    /// Returns `UnknownOption` or `TypeError` if an argument is invalid, and the errors of [`Format::of`].
    pub fn from_arguments(machine: &mut Machine, set: &'static OptionSet, given: &mut [Value]) -> Outcome<Format> {
        let is_pattern = |given: &Value| !matches!(given, Value::Map(_)) && !set.has(given);
        let (mut format, rest) = match given.first() {
            Some(first) if given.len() % 2 == 1 && is_pattern(first) => (Format::of(machine, first)?, &mut given[1..]),
            // A formatter, followed by options.
            Some(Value::Map(first)) if given.len() > 1 => {
                let mut format = Format::default();
                format.take(machine, &set.of_map(first)?)?;
                (format, &mut given[1..])
            }
            _ => (Format::default(), given),
        };
        format.take(machine, &set.read(rest)?)?;
        Ok(format)
    }

    /// Formats a time.
    ///
    /// # Errors
    /// Returns an error if the pattern is invalid or does not fit the time, or if the result is out of range.
    pub fn write(&self, machine: &mut Machine, time: &Time) -> Outcome<Value> {
        let shown = match &self.zone {
            Some(zone) => Time::Zoned(Box::new(zoned(time, zone)?)),
            None => time.clone(),
        };
        let Some(pattern) = &self.pattern else { return Ok(Value::string(&shown.to_string())) };
        machine.charge(1 + pattern.len() as u64 / 8)?;
        Ok(Value::string(&Pattern::read(pattern)?.write(&shown)?))
    }

    /// Parses a time from text.
    ///
    /// # Errors
    /// Returns an error if the pattern is invalid or the text does not denote a time.
    pub fn read(&self, machine: &mut Machine, text: &str) -> Outcome<Time> {
        machine.charge(1 + text.len().min(1000) as u64 / 8)?;
        let time = match &self.pattern {
            Some(_) if text.len() > 1_000 => {
                return Err(super::recognise::unreadable(text, ": it is too long").into());
            }
            Some(pattern) => {
                machine.charge(pattern.len() as u64 / 8)?;
                Pattern::read(pattern)?.parse(text, pattern)?
            }
            None => recognise(text, self.day_first)?,
        };
        self.placed(time)
    }

    /// Converts a time to the requested zone.
    ///
    /// # Errors
    /// Returns `ArithmeticError` if the result is out of range.
    pub fn placed(&self, time: Time) -> Outcome<Time> {
        match (&self.zone, time) {
            (Some(zone), time @ (Time::Instant(_) | Time::DateTime(_) | Time::Zoned(_))) => {
                Ok(Time::Zoned(Box::new(zoned(&time, zone)?)))
            }
            (_, time) => Ok(time),
        }
    }
}
