//! What the classes of `java.time` make: `LocalDate/of`, `LocalDateTime/parse` and their kin.

use super::calendar::{of_epoch_day, plus_days};
use super::given::{self, Format, bounded, clock_of, date_of, value};
use super::names::{MONTHS, WEEKDAYS, month, weekday};
use super::units::{Amount, Unit, too_far};
use crate::lang::builtin::Builtin;
use crate::lang::builtin::arguments::{integer, string, take};
use crate::lang::error::{Error, Outcome};
use crate::lang::eval::Machine;
use crate::lang::value::Value;
use crate::lang::value::map::Map;
use crate::lang::value::time::Time;
use crate::lang::value::time::text::example;
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::{Offset, TimeZone};
use std::sync::Arc;

/// The entries of this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "LocalDate/of",
        &["[year month day]"],
        "A date; the month is a number or a constant.",
        &[
            ("(str (LocalDate/of 2024 3 5))", "\"2024-03-05\""),
            ("(str (LocalDate/of 2024 Month/MARCH 5))", "\"2024-03-05\""),
        ],
        |_, arguments| Ok(value(Time::Date(given::date(arguments)?))),
    ),
    Builtin::new(
        "LocalDate/ofEpochDay",
        &["[days]"],
        "The date so many days after 1970-01-01.",
        &[("(str (LocalDate/ofEpochDay 19723))", "\"2024-01-01\"")],
        |_, arguments| Ok(value(Time::Date(of_epoch_day(integer(&arguments[0])?)?))),
    ),
    Builtin::new(
        "LocalDate/ofYearDay",
        &["[year day]"],
        "The date of a day of the year.",
        &[("(str (LocalDate/ofYearDay 2024 60))", "\"2024-02-29\"")],
        |_, arguments| {
            let year = bounded(&arguments[0], "the year", -9999, 9999)?;
            let first = Date::new(year as i16, 1, 1).map_err(|_| too_far())?;
            let day = bounded(&arguments[1], "the day of the year", 1, first.days_in_year().into())?;
            Ok(value(Time::Date(plus_days(first, day - 1)?)))
        },
    ),
    Builtin::new(
        "LocalTime/of",
        &["[hour minute]", "[hour minute second]", "[hour minute second nano]"],
        "A time of day.",
        &[("(str (LocalTime/of 14 30))", "\"14:30\"")],
        |_, arguments| Ok(value(Time::Clock(given::clock(arguments)?))),
    ),
    Builtin::new(
        "LocalTime/ofSecondOfDay",
        &["[seconds]"],
        "The time of day so many seconds after midnight.",
        &[("(str (LocalTime/ofSecondOfDay 3600))", "\"01:00\"")],
        |_, arguments| {
            let seconds = bounded(&arguments[0], "the second of the day", 0, 86_399)?;
            Ok(value(Time::Clock(super::calendar::clock_of(i128::from(seconds) * 1_000_000_000))))
        },
    ),
    Builtin::new(
        "LocalDateTime/of",
        &["[date time]", "[year month day hour minute & second-nano]"],
        "A date and time without a zone.",
        &[("(str (LocalDateTime/of 2024 3 5 14 30))", "\"2024-03-05T14:30\"")],
        |machine, arguments| Ok(value(Time::DateTime(local(machine, arguments)?))),
    ),
    Builtin::new(
        "LocalDateTime/ofEpochSecond",
        &["[seconds nanos offset]"],
        "The date and time so many seconds after 1970 at a distance from UTC.",
        &[("(str (LocalDateTime/ofEpochSecond 0 0 ZoneOffset/UTC))", "\"1970-01-01T00:00\"")],
        |machine, arguments| {
            let nanos = i32::try_from(integer(&arguments[1])?).map_err(|_| too_far())?;
            let at = Timestamp::new(integer(&arguments[0])?, nanos).map_err(|_| too_far())?;
            Ok(value(Time::DateTime(given::zone(machine, &arguments[2])?.to_datetime(at))))
        },
    ),
    Builtin::new(
        "ZonedDateTime/of",
        &["[date-time zone]", "[date time zone]", "[year month day hour minute second nano zone]"],
        "A date and time with a zone.",
        &[(
            "(str (ZonedDateTime/of 2024 3 5 14 30 0 0 (ZoneId/of \"Europe/Paris\")))",
            "\"2024-03-05T14:30+01:00[Europe/Paris]\"",
        )],
        |machine, arguments| {
            let Some((zone, rest)) = arguments.split_last_mut() else { return Ok(Value::Nil) };
            let zone = given::zone(machine, zone)?;
            let local = local(machine, rest)?;
            Ok(value(Time::Zoned(Box::new(super::calendar::in_zone(local, &zone, None)?))))
        },
    ),
    Builtin::new(
        "YearMonth/of",
        &["[year month]"],
        "A month of a year.",
        &[
            ("(str (YearMonth/of 2024 2))", "\"2024-02\""),
            ("(str (.atEndOfMonth (YearMonth/of 2024 2)))", "\"2024-02-29\""),
        ],
        |_, arguments| Ok(value(Time::YearMonth(given::date(arguments)?))),
    ),
    Builtin::new(
        "Year/of",
        &["[year]"],
        "A year, which is a number.",
        &[("(Year/of 2024)", "2024")],
        |_, arguments| Ok(Value::Int(bounded(&arguments[0], "the year", -9999, 9999)?)),
    ),
    Builtin::new(
        "DayOfWeek/of",
        &["[n]"],
        "The name of a day of the week, Monday being 1.",
        &[("(DayOfWeek/of 3)", "\"WEDNESDAY\"")],
        |_, arguments| {
            let day = bounded(&arguments[0], "the day of the week", 1, 7)?;
            Ok(Value::string(&WEEKDAYS[day as usize - 1].to_uppercase()))
        },
    ),
    Builtin::new(
        "DayOfWeek/valueOf",
        &["[name]"],
        "The name of a day of the week, checked.",
        &[("(DayOfWeek/valueOf \"MONDAY\")", "\"MONDAY\"")],
        |_, arguments| of_name(&arguments[0], &WEEKDAYS, "a day of the week such as \"MONDAY\""),
    ),
    Builtin::new(
        "DayOfWeek/values",
        &["[]"],
        "The names of the days of the week.",
        &[("(first (DayOfWeek/values))", "\"MONDAY\"")],
        |_, _| Ok(Value::vector(WEEKDAYS.iter().map(|name| Value::string(&name.to_uppercase())).collect())),
    ),
    Builtin::new(
        "Month/of",
        &["[n]"],
        "The name of a month, January being 1.",
        &[("(Month/of 2)", "\"FEBRUARY\"")],
        |_, arguments| {
            let month = bounded(&arguments[0], "the month", 1, 12)?;
            Ok(Value::string(&MONTHS[month as usize - 1].to_uppercase()))
        },
    ),
    Builtin::new(
        "Month/valueOf",
        &["[name]"],
        "The name of a month, checked.",
        &[("(Month/valueOf \"MARCH\")", "\"MARCH\"")],
        |_, arguments| of_name(&arguments[0], &MONTHS, "a month such as \"MARCH\""),
    ),
    Builtin::new("Month/values", &["[]"], "The names of the months.", &[("(count (Month/values))", "12")], |_, _| {
        Ok(Value::vector(MONTHS.iter().map(|name| Value::string(&name.to_uppercase())).collect()))
    }),
    Builtin::new(
        ".getValue",
        &["[x]"],
        "The number of a day of the week (Monday is 1), of a month or of a year; the value of an entry of a map.",
        &[("(.getValue DayOfWeek/MONDAY)", "1"), ("(.getValue Month/MARCH)", "3")],
        |_, arguments| match &arguments[0] {
            Value::Int(year) => Ok(Value::Int(*year)),
            Value::Vector(entry) if entry.len() == 2 => Ok(entry.get(1).cloned().unwrap_or_default()),
            given => {
                let name = string(given).map_err(|_| Error::expected("a day of the week or a month", given))?;
                match weekday(name).or_else(|| month(name)) {
                    Some(number) => Ok(Value::Int(number.into())),
                    None => Err(Error::expected("a day of the week or a month", given).into()),
                }
            }
        },
    ),
    Builtin::new(
        ".getDisplayName",
        &["[name style]", "[name style locale]"],
        "The English name of a day of the week or a month: whole, shortened or as a letter.",
        &[("(.getDisplayName DayOfWeek/MONDAY TextStyle/SHORT Locale/ENGLISH)", "\"Mon\"")],
        |_, arguments| {
            let given = string(&arguments[0])?;
            let name = weekday(given)
                .and_then(|at| WEEKDAYS.get(at as usize - 1))
                .or_else(|| month(given).and_then(|at| MONTHS.get(at as usize - 1)));
            let Some(name) = name else {
                return Err(Error::expected("a day of the week or a month", &arguments[0]).into());
            };
            Ok(Value::string(match &arguments[1] {
                Value::Keyword(style) if style.as_str() == "short" => &name[..3],
                Value::Keyword(style) if style.as_str() == "narrow" => &name[..1],
                _ => name,
            }))
        },
    ),
    Builtin::new(
        "ZoneOffset/ofHours",
        &["[hours]"],
        "The zone so many hours from UTC.",
        &[("(str (ZoneOffset/ofHours -5))", "\"-05:00\"")],
        |_, arguments| offset(bounded(&arguments[0], "the hours from UTC", -18, 18)? * 3600),
    ),
    Builtin::new(
        "ZoneOffset/ofHoursMinutes",
        &["[hours minutes]"],
        "The zone so many hours and minutes from UTC.",
        &[("(str (ZoneOffset/ofHoursMinutes 5 30))", "\"+05:30\"")],
        |_, arguments| {
            let hours = bounded(&arguments[0], "the hours from UTC", -18, 18)?;
            offset(hours * 3600 + bounded(&arguments[1], "the minutes from UTC", -59, 59)? * 60)
        },
    ),
    Builtin::new(
        "Duration/ofDays",
        &["[n]"],
        "A duration of so many days of twenty-four hours.",
        &[("(str (Duration/ofDays 1))", "\"PT24H\"")],
        |_, arguments| Ok(value(Time::Duration(Amount::times(&arguments[0], Unit::Days(1))?.duration()?))),
    ),
    Builtin::new(
        "Instant/parse",
        &["[s]"],
        "The instant that text of ISO 8601 spells.",
        &[("(str (Instant/parse \"2024-03-05T14:00:00+01:00\"))", "\"2024-03-05T13:00:00Z\"")],
        |machine, arguments| {
            let time = strict(machine, arguments, "time/offset-date-time", "2024-03-05T14:00:00Z")?;
            Ok(value(Time::Instant(super::calendar::timestamp(&time, &TimeZone::UTC)?)))
        },
    ),
    Builtin::new(
        "LocalDate/parse",
        &["[s]", "[s formatter]"],
        "The date that text spells: as `2024-03-05`, or in a pattern.",
        &[
            ("(str (LocalDate/parse \"2024-03-05\"))", "\"2024-03-05\""),
            ("(str (LocalDate/parse \"05.03.2024\" (DateTimeFormatter/ofPattern \"dd.MM.yyyy\")))", "\"2024-03-05\""),
        ],
        |machine, arguments| {
            let time = strict(machine, arguments, "time/date", "2024-03-05")?;
            Ok(value(Time::Date(date_of(&time)?)))
        },
    ),
    Builtin::new(
        "LocalTime/parse",
        &["[s]", "[s formatter]"],
        "The time of day that text spells: as `14:30`, or in a pattern.",
        &[("(str (LocalTime/parse \"2:30 PM\" (DateTimeFormatter/ofPattern \"h:mm a\")))", "\"14:30\"")],
        |machine, arguments| {
            let time = strict(machine, arguments, "time/time", "14:30:00")?;
            Ok(value(Time::Clock(clock_of(&time)?)))
        },
    ),
    Builtin::new(
        "LocalDateTime/parse",
        &["[s]", "[s formatter]"],
        "The date and time that text spells: as `2024-03-05T14:30`, or in a pattern.",
        &[("(str (LocalDateTime/parse \"2024-03-05T14:30\"))", "\"2024-03-05T14:30\"")],
        |machine, arguments| {
            let time = strict(machine, arguments, "time/date-time", "2024-03-05T14:30:00")?;
            Ok(value(Time::DateTime(date_of(&time)?.to_datetime(clock_of(&time)?))))
        },
    ),
    Builtin::new(
        "ZonedDateTime/parse",
        &["[s]", "[s formatter]"],
        "The date and time with its offset or zone that text spells.",
        &[(
            "(str (ZonedDateTime/parse \"2024-03-05T14:30+01:00[Europe/Paris]\"))",
            "\"2024-03-05T14:30+01:00[Europe/Paris]\"",
        )],
        |machine, arguments| match strict(machine, arguments, "time/zoned-date-time", "2024-03-05T14:30:00+01:00")? {
            time @ Time::Zoned(_) => Ok(value(time)),
            Time::Instant(at) => Ok(value(Time::Zoned(Box::new(at.to_zoned(TimeZone::UTC))))),
            other => Err(Error::new("InvalidTime", format!("the text names no zone: it is {}", other.kind()))
                .suggest("LocalDateTime/parse reads times without a zone")
                .into()),
        },
    ),
    Builtin::new(
        "YearMonth/parse",
        &["[s]", "[s formatter]"],
        "The month of a year that text spells: as `2024-03`, or in a pattern.",
        &[("(str (YearMonth/parse \"2024-03\"))", "\"2024-03\"")],
        |machine, arguments| {
            let time = strict(machine, arguments, "time/year-month", "2024-03")?;
            Ok(value(Time::YearMonth(date_of(&time)?.first_of_month())))
        },
    ),
    Builtin::new(
        "Duration/parse",
        &["[s]"],
        "The duration that text of ISO 8601 spells: `PT1H30M`.",
        &[("(str (Duration/parse \"PT90M\"))", "\"PT1H30M\"")],
        |machine, arguments| strict(machine, arguments, "time/duration", "PT1H30M").map(value),
    ),
    Builtin::new(
        "Period/parse",
        &["[s]"],
        "The period that text of ISO 8601 spells: `P1Y2M3D`.",
        &[("(str (Period/parse \"P2W\"))", "\"P14D\"")],
        |machine, arguments| strict(machine, arguments, "time/period", "P1Y2M3D").map(value),
    ),
    Builtin::new(
        "DateTimeFormatter/ofPattern",
        &["[pattern]", "[pattern locale]"],
        "A formatter, which is its pattern: the language is English.",
        &[("(.format (LocalDate/of 2024 3 5) (DateTimeFormatter/ofPattern \"d MMM yyyy\"))", "\"5 Mar 2024\"")],
        |machine, arguments| {
            let pattern = string(&arguments[0])?;
            machine.charge(pattern.len() as u64 / 8)?;
            super::pattern::Pattern::read(pattern)?;
            Ok(take(arguments, 0))
        },
    ),
    Builtin::new(
        ".withZone",
        &["[formatter zone]"],
        "A formatter that shows times in a zone: a map of both.",
        &[(
            "(.format (.withZone (DateTimeFormatter/ofPattern \"HH:mm\") (ZoneId/of \"Asia/Tokyo\")) (Instant/parse \"2024-03-05T14:00:00Z\"))",
            "\"23:00\"",
        )],
        |machine, arguments| {
            let zone = given::zone(machine, &arguments[1])?;
            let mut map = Map::default();
            map.insert(Value::keyword("pattern"), take(arguments, 0));
            map.insert(Value::keyword("zone"), value(Time::Zone(zone)));
            Ok(Value::Map(Arc::new(map)))
        },
    ),
    Builtin::new(
        ".withLocale",
        &["[formatter locale]"],
        "The same formatter: the language is English.",
        &[("(.withLocale (DateTimeFormatter/ofPattern \"MMM\") Locale/ENGLISH)", "\"MMM\"")],
        |_, arguments| Ok(take(arguments, 0)),
    ),
    Builtin::new(
        "java.text.SimpleDateFormat.",
        &["[pattern]", "[pattern locale]"],
        "A formatter that reads points in time, in UTC where the text has no zone.",
        &[("(.format (java.text.SimpleDateFormat. \"yyyy-MM-dd\") (java.util.Date. 0))", "\"1970-01-01\"")],
        |_, arguments| {
            super::pattern::Pattern::read(string(&arguments[0])?)?;
            let mut map = Map::default();
            map.insert(Value::keyword("pattern"), take(arguments, 0));
            map.insert(Value::keyword("simple"), Value::Bool(true));
            Ok(Value::Map(Arc::new(map)))
        },
    ),
    Builtin::new(
        ".format",
        &["[t formatter]", "[formatter t]"],
        "A time as text in a pattern.",
        &[("(.format (LocalDate/of 2024 3 5) DateTimeFormatter/ISO_DATE)", "\"2024-03-05\"")],
        |machine, arguments| {
            if !matches!(arguments[0], Value::Time(_)) {
                arguments.swap(0, 1);
            }
            let time = given::time(machine, &arguments[0])?;
            Format::of(machine, &arguments[1])?.write(machine, &time)
        },
    ),
    Builtin::new(
        ".parse",
        &["[formatter s]"],
        "The time that text in a pattern spells.",
        &[("(.getTime (.parse (java.text.SimpleDateFormat. \"yyyy-MM-dd\") \"2024-03-05\"))", "1709596800000")],
        |machine, arguments| {
            let format = Format::of(machine, &arguments[0])?;
            let time = format.read(machine, string(&arguments[1])?)?;
            Ok(value(match (format.simple, time) {
                (true, time) => Time::Instant(super::calendar::timestamp(&time, &TimeZone::UTC)?),
                (false, time) => time,
            }))
        },
    ),
];

/// Java's other names.
pub const ALIASES: &[(&str, &str)] = &[
    ("OffsetDateTime/of", "ZonedDateTime/of"),
    ("OffsetDateTime/parse", "ZonedDateTime/parse"),
    ("ZonedDateTime/from", "ZonedDateTime/parse"),
    ("Year/parse", "parse-long"),
    ("SimpleDateFormat.", "java.text.SimpleDateFormat."),
];

fn offset(seconds: i64) -> Outcome<Value> {
    let offset = i32::try_from(seconds).ok().and_then(|seconds| Offset::from_seconds(seconds).ok());
    Ok(value(Time::Zone(TimeZone::fixed(offset.ok_or_else(too_far)?))))
}

fn of_name(given: &Value, names: &[&str], what: &str) -> Outcome<Value> {
    let name = string(given)?;
    if name.len() < 12 && names.iter().any(|known| known.to_uppercase() == name) {
        return Ok(given.clone());
    }
    let error = Error::new("IllegalArgument", format!("expected {what}, got {}", crate::lang::error::describe(given)));
    Err(error.suggest("they are written in capitals").into())
}

/// A date and a time of day, one date and time, or numbers.
fn local(machine: &mut Machine, given: &[Value]) -> Outcome<DateTime> {
    match given {
        [date @ Value::Int(_), month, day, clock @ ..] => {
            let date = given::date(&[date.clone(), month.clone(), day.clone()])?;
            Ok(date.to_datetime(given::clock(clock)?))
        }
        [date, clock] => {
            let (date, clock) = (given::time(machine, date)?, given::time(machine, clock)?);
            Ok(date_of(&date)?.to_datetime(clock_of(&clock)?))
        }
        [one] => {
            let time = given::time(machine, one)?;
            Ok(date_of(&time)?.to_datetime(clock_of(&time)?))
        }
        _ => Err(Error::new("ArityError", "expected a year, month, day, hour and minute").into()),
    }
}

/// Text in a pattern, or in the form that this kind of time has.
fn strict(machine: &mut Machine, arguments: &[Value], tag: &str, shown: &str) -> Outcome<Time> {
    let text = match &arguments[0] {
        // What is a time already needs no reading.
        Value::Time(time) => return Ok((**time).clone()),
        given => string(given)?,
    };
    if let Some(formatter) = arguments.get(1) {
        return Format::of(machine, formatter)?.read(machine, text);
    }
    machine.charge(1 + text.len().min(100) as u64 / 8)?;
    let read = if text.len() > 100 { None } else { Time::read(tag, text).and_then(Result::ok) };
    Ok(read.ok_or_else(|| {
        let start: String = text.chars().take(60).collect();
        let error = Error::new("InvalidTime", format!("expected text such as `{}`, got `{start}`", example(tag)));
        error.suggest(format!("write `{shown}`, give a pattern, or read other spellings with (time/parse s)"))
    })?)
}
