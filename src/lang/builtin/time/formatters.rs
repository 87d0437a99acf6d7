//! Java's parsers, each of which accepts only the text of its own kind, and its formatters, which are patterns.

use super::given::{self, Format, clock_of, date_of, value};
use crate::builtin::arguments::{string, take};
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;
use crate::value::map::Map;
use crate::value::time::Time;
use crate::value::time::text::example;
use jiff::tz::TimeZone;
use std::sync::Arc;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "Instant/parse",
        &["[s]"],
        "Parses an instant in ISO 8601.",
        &[("(str (Instant/parse \"2024-03-05T14:00:00+01:00\"))", "\"2024-03-05T13:00:00Z\"")],
        |machine, arguments| {
            let time = strict(machine, arguments, "time/offset-date-time", "2024-03-05T14:00:00Z")?;
            Ok(value(Time::Instant(super::calendar::timestamp(&time, &TimeZone::UTC)?)))
        },
    ),
    Builtin::new(
        "LocalDate/parse",
        &["[s]", "[s formatter]"],
        "Parses a date: as `2024-03-05`, or with a pattern.",
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
        "Parses a time of day: as `14:30`, or with a pattern.",
        &[("(str (LocalTime/parse \"2:30 PM\" (DateTimeFormatter/ofPattern \"h:mm a\")))", "\"14:30\"")],
        |machine, arguments| {
            let time = strict(machine, arguments, "time/time", "14:30:00")?;
            Ok(value(Time::Clock(clock_of(&time)?)))
        },
    ),
    Builtin::new(
        "LocalDateTime/parse",
        &["[s]", "[s formatter]"],
        "Parses a date and time: as `2024-03-05T14:30`, or with a pattern.",
        &[("(str (LocalDateTime/parse \"2024-03-05T14:30\"))", "\"2024-03-05T14:30\"")],
        |machine, arguments| {
            let time = strict(machine, arguments, "time/date-time", "2024-03-05T14:30:00")?;
            Ok(value(Time::DateTime(date_of(&time)?.to_datetime(clock_of(&time)?))))
        },
    ),
    Builtin::new(
        "ZonedDateTime/parse",
        &["[s]", "[s formatter]"],
        "Parses a date and time with an offset or zone.",
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
        "Parses a month of a year: as `2024-03`, or with a pattern.",
        &[("(str (YearMonth/parse \"2024-03\"))", "\"2024-03\"")],
        |machine, arguments| {
            let time = strict(machine, arguments, "time/year-month", "2024-03")?;
            Ok(value(Time::YearMonth(date_of(&time)?.first_of_month())))
        },
    ),
    Builtin::new(
        "Duration/parse",
        &["[s]"],
        "Parses an ISO 8601 duration: `PT1H30M`.",
        &[("(str (Duration/parse \"PT90M\"))", "\"PT1H30M\"")],
        |machine, arguments| strict(machine, arguments, "time/duration", "PT1H30M").map(value),
    ),
    Builtin::new(
        "Period/parse",
        &["[s]"],
        "Parses an ISO 8601 period: `P1Y2M3D`.",
        &[("(str (Period/parse \"P2W\"))", "\"P14D\"")],
        |machine, arguments| strict(machine, arguments, "time/period", "P1Y2M3D").map(value),
    ),
    Builtin::new(
        "DateTimeFormatter/ofPattern",
        &["[pattern]", "[pattern locale]"],
        "A formatter, which is the pattern itself; the language is English.",
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
        "The formatter unchanged: the language is English.",
        &[("(.withLocale (DateTimeFormatter/ofPattern \"MMM\") Locale/ENGLISH)", "\"MMM\"")],
        |_, arguments| Ok(take(arguments, 0)),
    ),
    Builtin::new(
        "java.text.SimpleDateFormat.",
        &["[pattern]", "[pattern locale]"],
        "A formatter that parses points in time, in UTC if the text has no zone.",
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
        "Formats a time with a pattern.",
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
        "Parses text with a pattern as a time.",
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
    ("OffsetDateTime/parse", "ZonedDateTime/parse"),
    ("ZonedDateTime/from", "ZonedDateTime/parse"),
    ("Year/parse", "parse-long"),
    ("SimpleDateFormat.", "java.text.SimpleDateFormat."),
];

/// Parses text with a pattern, or in the standard form of this kind of time.
fn strict(machine: &mut Machine, arguments: &[Value], tag: &str, shown: &str) -> Outcome<Time> {
    let text = match &arguments[0] {
        // A value that is already a time needs no parsing.
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
        let error = Error::unmet("InvalidTime", format!("text such as `{}`, got `{start}`", example(tag)));
        error.suggest(format!("write `{shown}`, give a pattern, or read other spellings with (time/parse s)"))
    })?)
}
