//! Conversion between kinds of time: instants, dates, times of day, zones.

use super::given::{self, clock_of, date_of, value, zoned};
use super::units::too_far;
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::{Builtin, OptionSet};
use crate::value::Value;
use crate::value::time::Time;
use jiff::tz::TimeZone;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "time/instant",
        &["[t]", "[t zone]"],
        "The point in time; a time without a zone is read in UTC, or in `zone`.",
        &[
            ("(str (time/instant \"2024-03-05T14:00:00+01:00\"))", "\"2024-03-05T13:00:00Z\""),
            ("(str (time/instant \"2024-03-05\" \"Asia/Tokyo\"))", "\"2024-03-04T15:00:00Z\""),
        ],
        |machine, arguments| {
            let time = given::time(machine, &arguments[0])?;
            let zone = arguments.get(1).map_or(Ok(TimeZone::UTC), |zone| given::zone(machine, zone))?;
            Ok(value(Time::Instant(super::calendar::timestamp(&time, &zone)?)))
        },
    ),
    Builtin::new(
        "time/date",
        &["[t]", "[t zone]", "[year month day]"],
        "The date of a time (in its own zone, or in `zone`), or from a year, a month and a day.",
        &[
            ("(time/date \"2024-03-05T23:30:00Z\")", "#time/date \"2024-03-05\""),
            ("(time/date \"2024-03-05T23:30:00Z\" \"Asia/Tokyo\")", "#time/date \"2024-03-06\""),
            ("(time/date 2024 3 5)", "#time/date \"2024-03-05\""),
        ],
        |machine, arguments| {
            if arguments.len() == 3 {
                return Ok(value(Time::Date(given::date(arguments)?)));
            }
            let time = shown(machine, arguments)?;
            Ok(value(Time::Date(date_of(&time)?)))
        },
    ),
    Builtin::new(
        "time/time-of-day",
        &["[t]", "[t zone]"],
        "The time of day, without the date.",
        &[("(str (time/time-of-day \"2024-03-05T14:30:00Z\"))", "\"14:30\"")],
        |machine, arguments| {
            let time = shown(machine, arguments)?;
            Ok(value(Time::Clock(clock_of(&time)?)))
        },
    ),
    Builtin::new(
        "time/date-time",
        &["[t]", "[t zone]", "[year month day & hour-minute-second-nano]"],
        "The date and time of day without a zone, of a time in its own zone or in `zone`; or from numbers.",
        &[
            ("(str (time/date-time \"2024-03-05T14:00:00Z\" \"Asia/Tokyo\"))", "\"2024-03-05T23:00\""),
            ("(str (time/date-time 2024 3 5 14 30))", "\"2024-03-05T14:30\""),
        ],
        |machine, arguments| {
            if arguments.len() > 2 {
                let local = given::date(&arguments[..3])?.to_datetime(given::clock(&arguments[3..])?);
                return Ok(value(Time::DateTime(local)));
            }
            let time = shown(machine, arguments)?;
            match (super::calendar::local(&time), &time) {
                (Some(local), Time::Instant(_) | Time::Date(_) | Time::DateTime(_) | Time::Zoned(_)) => {
                    Ok(value(Time::DateTime(local)))
                }
                _ => Err(Error::expected("a date or a point in time", &value(time)).into()),
            }
        },
    ),
    Builtin::new(
        "time/year-month",
        &["[t]"],
        "The year and month of a time.",
        &[("(str (time/year-month \"2024-03-05\"))", "\"2024-03\"")],
        |machine, arguments| {
            let time = given::time(machine, &arguments[0])?;
            Ok(value(Time::YearMonth(date_of(&time)?.first_of_month())))
        },
    ),
    Builtin::new(
        "time/in-zone",
        &["[t zone]"],
        "Converts a point in time to a zone; a time without a zone is read in that zone.",
        &[
            (
                "(str (time/in-zone \"2024-03-05T14:00:00Z\" \"Europe/Paris\"))",
                "\"2024-03-05T15:00+01:00[Europe/Paris]\"",
            ),
            ("(str (time/in-zone \"2024-03-05T14:00\" \"Europe/Paris\"))", "\"2024-03-05T14:00+01:00[Europe/Paris]\""),
        ],
        in_zone,
    ),
    Builtin::new(
        "time/utc",
        &["[t]"],
        "Converts a point in time to UTC, as an instant; a time without a zone is read in UTC.",
        &[("(str (time/utc \"2024-03-05T14:00:00+01:00\"))", "\"2024-03-05T13:00:00Z\"")],
        |machine, arguments| {
            let time = given::time(machine, &arguments[0])?;
            Ok(value(Time::Instant(super::calendar::timestamp(&time, &TimeZone::UTC)?)))
        },
    ),
    Builtin::new(
        ".withZoneSameLocal",
        &["[t zone]"],
        "The local date and time, reinterpreted in another zone.",
        &[(
            "(str (.withZoneSameLocal (time/in-zone \"2024-03-05T14:00\" \"Europe/Paris\") \"Asia/Tokyo\"))",
            "\"2024-03-05T14:00+09:00[Asia/Tokyo]\"",
        )],
        |machine, arguments| {
            let time = given::time(machine, &arguments[0])?;
            let zone = given::zone(machine, &arguments[1])?;
            let local = date_of(&time)?.to_datetime(clock_of(&time)?);
            Ok(value(Time::Zoned(Box::new(super::calendar::in_zone(local, &zone, None)?))))
        },
    ),
    Builtin::new(
        "time/zone",
        &["[zone]"],
        "A time zone by name or UTC offset; of a time, its zone, or nil.",
        &[
            ("(str (time/zone \"Europe/Paris\"))", "\"Europe/Paris\""),
            ("(str (time/zone \"+5:30\"))", "\"+05:30\""),
            ("(str (time/zone (time/parse \"2024-03-05T14:00+01:00\")))", "\"+01:00\""),
        ],
        |machine, arguments| {
            if let Value::Time(time) = &arguments[0]
                && matches!(&**time, Time::Date(_) | Time::DateTime(_) | Time::Clock(_) | Time::YearMonth(_))
            {
                return Ok(Value::Nil);
            }
            Ok(value(Time::Zone(given::zone(machine, &arguments[0])?)))
        },
    ),
    Builtin::new(
        "time/offset",
        &["[t]"],
        "The offset of a time from UTC, as a zone: `+01:00`.",
        &[("(str (time/offset (time/in-zone \"2024-07-01\" \"Europe/Paris\")))", "\"+02:00\"")],
        |machine, arguments| {
            let time = given::time(machine, &arguments[0])?;
            let offset = match &time {
                Time::Zoned(zoned) => zoned.offset(),
                Time::Instant(_) => jiff::tz::Offset::UTC,
                other => return Err(Error::new("TypeError", format!("{} has no zone", other.kind())).into()),
            };
            Ok(value(Time::Zone(TimeZone::fixed(offset))))
        },
    ),
    Builtin::new(
        "time/time?",
        &["[x]"],
        "True for dates, times, instants, durations, periods and zones; false for text.",
        &[("(time/time? (time/now))", "true"), ("(time/time? \"2024-03-05\")", "false")],
        |_, arguments| Ok(Value::Bool(matches!(arguments[0], Value::Time(_)))),
    ),
    Builtin::new(
        "inst?",
        &["[x]"],
        "True for points in time: instants, and dates and times with a zone.",
        &[("(inst? #inst \"2024-03-05\")", "true"), ("(inst? \"2024-03-05\")", "false")],
        |_, arguments| {
            let is_instant = |time: &Time| matches!(time, Time::Instant(_) | Time::Zoned(_));
            Ok(Value::Bool(matches!(&arguments[0], Value::Time(time) if is_instant(time))))
        },
    ),
    Builtin::new(
        "time/valid?",
        &["[s]", "[s pattern]", "[s & options]", "[s pattern & options]"],
        "True if `time/parse` can read the text as a date or time, with the options of `time/parse`.",
        &[("(time/valid? \"2024-02-30\")", "false"), ("(time/valid? \"5 Mar 2024\")", "true")],
        |machine, arguments| {
            let (text, rest) = arguments.split_at_mut(1);
            let format = given::Format::from_arguments(machine, &VALID, rest)?;
            Ok(Value::Bool(match &text[0] {
                Value::Str(text) => match format.read(machine, text.as_str()) {
                    Ok(_) => true,
                    Err(signal) => match signal.into_raised() {
                        crate::error::Raised::Error(_) => false,
                        crate::error::Raised::Fault(fault) => return Err(fault.into()),
                        crate::error::Raised::Halt(halt) => return Err(halt.into()),
                    },
                },
                Value::Time(_) => true,
                _ => false,
            }))
        },
    )
    .with_options(&VALID),
];

static VALID: OptionSet = OptionSet { function: "time/valid?", accepted: given::READING };

/// Java's names and those of other libraries.
pub const ALIASES: &[(&str, &str)] = &[
    (".toInstant", "time/instant"),
    ("Instant/from", "time/instant"),
    ("time/to-instant", "time/instant"),
    (".toLocalDate", "time/date"),
    ("LocalDate/from", "time/date"),
    ("LocalDate/ofInstant", "time/date"),
    ("time/local-date", "time/date"),
    ("time/to-date", "time/date"),
    (".toLocalTime", "time/time-of-day"),
    ("LocalTime/from", "time/time-of-day"),
    ("LocalTime/ofInstant", "time/time-of-day"),
    ("time/local-time", "time/time-of-day"),
    (".toLocalDateTime", "time/date-time"),
    ("LocalDateTime/from", "time/date-time"),
    ("LocalDateTime/ofInstant", "time/date-time"),
    ("time/local-date-time", "time/date-time"),
    ("YearMonth/from", "time/year-month"),
    (".atZone", "time/in-zone"),
    (".atOffset", "time/in-zone"),
    (".withZoneSameInstant", "time/in-zone"),
    (".withOffsetSameInstant", "time/in-zone"),
    (".withOffsetSameLocal", ".withZoneSameLocal"),
    (".atZoneSameInstant", "time/in-zone"),
    (".atZoneSimilarLocal", ".withZoneSameLocal"),
    ("ZonedDateTime/ofInstant", "time/in-zone"),
    ("OffsetDateTime/ofInstant", "time/in-zone"),
    ("ZonedDateTime/ofLocal", "time/in-zone"),
    ("time/to-zone", "time/in-zone"),
    ("time/with-zone", "time/in-zone"),
    ("time/zoned-date-time", "time/in-zone"),
    (".getZone", "time/zone"),
    ("ZoneId/of", "time/zone"),
    ("ZoneOffset/of", "time/zone"),
    ("time/zone-id", "time/zone"),
    (".getOffset", "time/offset"),
    ("time/parseable?", "time/valid?"),
];

/// Converts the first argument to a time; a point in time moves to the zone given as the second argument, if any.
fn shown(machine: &mut Machine, arguments: &[Value]) -> Outcome<Time> {
    let time = given::time(machine, &arguments[0])?;
    match (arguments.get(1), &time) {
        (Some(zone), Time::Instant(_) | Time::Zoned(_)) => {
            let zone = given::zone(machine, zone)?;
            Ok(Time::Zoned(Box::new(zoned(&time, &zone)?)))
        }
        _ => Ok(time),
    }
}

fn in_zone(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let time = given::time(machine, &arguments[0])?;
    let zone = given::zone(machine, &arguments[1])?;
    match &time {
        Time::Clock(_) | Time::Duration(_) | Time::Period(_) | Time::Zone(_) => {
            Err(Error::expected("a date or a point in time", &arguments[0]).into())
        }
        _ => Ok(value(Time::Zoned(Box::new(zoned(&time, &zone).map_err(|_| too_far())?)))),
    }
}
