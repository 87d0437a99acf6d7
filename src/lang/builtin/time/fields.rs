//! The fields of a time: year, month, hour and related ones.

use super::given::{self, clock_of, date_of};
use super::names::{MONTHS, WEEKDAYS};
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;
use crate::value::time::Time;
use jiff::civil::{self, Date};

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "time/year",
        &["[t]"],
        "The year.",
        &[("(time/year \"2024-03-05\")", "2024")],
        |machine, arguments| {
            match &arguments[0] {
                // Java's `Year` is a number here.
                Value::Int(year @ -9999..=9999) => Ok(Value::Int(*year)),
                _ => of_date(machine, arguments, |date| date.year().into()),
            }
        },
    ),
    Builtin::new(
        "time/month",
        &["[t]"],
        "The month, from 1 (January).",
        &[("(time/month \"2024-03-05\")", "3")],
        |machine, arguments| of_date(machine, arguments, |date| date.month().into()),
    ),
    Builtin::new(
        "time/day",
        &["[t]"],
        "The day of the month.",
        &[("(time/day \"2024-03-05\")", "5")],
        |machine, arguments| of_date(machine, arguments, |date| date.day().into()),
    ),
    Builtin::new(
        "time/hour",
        &["[t]"],
        "The hour, from 0 to 23.",
        &[("(time/hour \"2024-03-05T14:30:00Z\")", "14")],
        |machine, arguments| of_clock(machine, arguments, |clock| clock.hour().into()),
    ),
    Builtin::new(
        "time/minute",
        &["[t]"],
        "The minute of the hour.",
        &[("(time/minute \"2024-03-05T14:30:00Z\")", "30")],
        |machine, arguments| of_clock(machine, arguments, |clock| clock.minute().into()),
    ),
    Builtin::new(
        "time/second",
        &["[t]"],
        "The second of the minute.",
        &[("(time/second \"2024-03-05T14:30:05Z\")", "5")],
        |machine, arguments| of_clock(machine, arguments, |clock| clock.second().into()),
    ),
    Builtin::new(
        "time/nano",
        &["[t]"],
        "The nanoseconds within the second, of a time or a duration.",
        &[("(time/nano \"2024-03-05T14:30:05.5Z\")", "500000000")],
        |machine, arguments| match &arguments[0] {
            Value::Time(time) if let Time::Duration(duration) = &**time => {
                Ok(Value::Int(i64::from(duration.subsec_nanos()).rem_euclid(1_000_000_000)))
            }
            _ => of_clock(machine, arguments, |clock| clock.subsec_nanosecond().into()),
        },
    ),
    Builtin::new(
        "time/day-of-week",
        &["[t]"],
        "The day of the week, as a keyword.",
        &[("(time/day-of-week \"2024-03-05\")", ":tuesday")],
        |machine, arguments| {
            let name = weekday(date_given(machine, &arguments[0])?);
            Ok(Value::keyword(&name.to_lowercase()))
        },
    ),
    Builtin::new(
        "time/day-of-year",
        &["[t]"],
        "The day of the year.",
        &[("(time/day-of-year \"2024-12-31\")", "366")],
        |machine, arguments| of_date(machine, arguments, |date| date.day_of_year().into()),
    ),
    Builtin::new(
        "time/week",
        &["[t]"],
        "The week of the year by ISO 8601: weeks begin on Monday, and week 1 contains the year's first Thursday.",
        &[("(time/week \"2024-03-05\")", "10"), ("(time/week \"2024-12-30\")", "1")],
        |machine, arguments| of_date(machine, arguments, |date| date.iso_week_date().week().into()),
    ),
    Builtin::new(
        "time/iso-week",
        &["[t]"],
        "The year and the week by ISO 8601, as text that sorts: `2024-W10`.",
        &[("(time/iso-week \"2024-12-30\")", "\"2025-W01\"")],
        |machine, arguments| {
            let week = date_given(machine, &arguments[0])?.iso_week_date();
            Ok(Value::string(&format!("{:04}-W{:02}", week.year(), week.week())))
        },
    ),
    Builtin::new(
        "time/quarter",
        &["[t]"],
        "The quarter of the year, from 1 to 4.",
        &[("(time/quarter \"2024-05-01\")", "2")],
        |machine, arguments| of_date(machine, arguments, |date| (i64::from(date.month()) + 2) / 3),
    ),
    Builtin::new(
        "time/days-in-month",
        &["[t]"],
        "The number of days in the month.",
        &[("(time/days-in-month \"2024-02-10\")", "29")],
        |machine, arguments| of_date(machine, arguments, |date| date.days_in_month().into()),
    ),
    Builtin::new(
        "time/leap-year?",
        &["[t]"],
        "True if the year, or that of a time, has 366 days.",
        &[("(time/leap-year? \"2024-02-10\")", "true"), ("(time/leap-year? 1900)", "false")],
        |machine, arguments| {
            let year = match &arguments[0] {
                Value::Int(year @ -9999..=9999) => *year,
                other => date_given(machine, other)?.year().into(),
            };
            Ok(Value::Bool(year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)))
        },
    ),
    Builtin::new(
        ".lengthOfYear",
        &["[t]"],
        "The number of days in the year.",
        &[("(.lengthOfYear (LocalDate/of 2024 2 10))", "366")],
        |machine, arguments| of_date(machine, arguments, |date| date.days_in_year().into()),
    ),
    Builtin::new(
        ".getDayOfWeek",
        &["[t]"],
        "The day of the week as Java names it, as a string.",
        &[("(.getDayOfWeek (LocalDate/of 2024 3 5))", "\"TUESDAY\"")],
        |machine, arguments| {
            let name = weekday(date_given(machine, &arguments[0])?);
            Ok(Value::string(&name.to_uppercase()))
        },
    ),
    Builtin::new(
        ".getMonth",
        &["[t]"],
        "The month as Java names it, as a string.",
        &[("(.getMonth (LocalDate/of 2024 3 5))", "\"MARCH\"")],
        |machine, arguments| {
            let month = date_given(machine, &arguments[0])?.month();
            Ok(Value::string(&MONTHS[month as usize - 1].to_uppercase()))
        },
    ),
    Builtin::new(
        ".toEpochDay",
        &["[t]"],
        "Days since 1970-01-01.",
        &[("(.toEpochDay (LocalDate/of 2024 1 1))", "19723")],
        |machine, arguments| of_date(machine, arguments, super::calendar::epoch_day),
    ),
    Builtin::new(
        ".toSecondOfDay",
        &["[t]"],
        "Whole seconds since midnight.",
        &[("(.toSecondOfDay (LocalTime/of 1 0))", "3600")],
        |machine, arguments| {
            of_clock(machine, arguments, |clock| (super::calendar::clock_nanos(clock) / 1_000_000_000) as i64)
        },
    ),
    Builtin::new(
        ".toNanoOfDay",
        &["[t]"],
        "Nanoseconds since midnight.",
        &[("(.toNanoOfDay (LocalTime/of 0 0 1))", "1000000000")],
        |machine, arguments| of_clock(machine, arguments, |clock| super::calendar::clock_nanos(clock) as i64),
    ),
    Builtin::new(
        ".getTotalSeconds",
        &["[zone]"],
        "The offset from UTC, in seconds, of a fixed-offset zone.",
        &[("(.getTotalSeconds (ZoneOffset/ofHours -5))", "-18000")],
        |machine, arguments| {
            let zone = given::zone(machine, &arguments[0])?;
            match zone.to_fixed_offset() {
                Ok(offset) => Ok(Value::Int(offset.seconds().into())),
                Err(_) => Err(Error::expected("a fixed distance from UTC", &arguments[0])
                    .suggest("ask a time in that zone: (.getOffset t)")
                    .into()),
            }
        },
    ),
];

/// Java's names and those of other libraries.
pub const ALIASES: &[(&str, &str)] = &[
    (".getYear", "time/year"),
    (".getMonthValue", "time/month"),
    (".getDayOfMonth", "time/day"),
    (".getDayOfYear", "time/day-of-year"),
    (".getHour", "time/hour"),
    (".getMinute", "time/minute"),
    (".getSecond", "time/second"),
    (".getNano", "time/nano"),
    (".lengthOfMonth", "time/days-in-month"),
    (".isLeapYear", "time/leap-year?"),
    (".isLeap", "time/leap-year?"),
    ("Year/isLeap", "time/leap-year?"),
    ("Year/from", "time/year"),
    ("DayOfWeek/from", ".getDayOfWeek"),
    ("Month/from", ".getMonth"),
    ("time/day-of-month", "time/day"),
    ("time/weekday", "time/day-of-week"),
    ("time/week-of-year", "time/week"),
    (".getId", "str"),
    (".name", "name"),
];

fn date_given(machine: &mut Machine, given: &Value) -> Outcome<Date> {
    let time = given::time(machine, given)?;
    Ok(date_of(&time)?)
}

fn weekday(date: Date) -> &'static str {
    WEEKDAYS[date.weekday().to_monday_zero_offset() as usize]
}

fn of_date(machine: &mut Machine, arguments: &[Value], field: fn(Date) -> i64) -> Outcome<Value> {
    date_given(machine, &arguments[0]).map(|date| Value::Int(field(date)))
}

fn of_clock(machine: &mut Machine, arguments: &[Value], field: fn(civil::Time) -> i64) -> Outcome<Value> {
    let time = given::time(machine, &arguments[0])?;
    Ok(Value::Int(field(clock_of(&time)?)))
}
