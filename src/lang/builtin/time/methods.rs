//! The methods of `java.time` that change a time: `.plusDays`, `.withMonth`, `.atTime` and related ones.

use super::adjusters::adjusted;
use super::calendar::{local, plus, with_local};
use super::given::{self, bounded, date_of, no_such_day, value};
use super::units::{Amount, Unit, too_far};
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;
use crate::value::time::Time;
use jiff::civil::{self, Date, DateTime};

const MINUTE: i64 = 60_000_000_000;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        ".plusYears",
        &["[t n]"],
        "A time `n` years later.",
        &[("(str (.plusYears (LocalDate/of 2024 2 29) 1))", "\"2025-02-28\"")],
        |machine, arguments| moved(machine, arguments, Unit::Years(1), false),
    ),
    Builtin::new(
        ".plusMonths",
        &["[t n]"],
        "A time `n` months later.",
        &[("(str (.plusMonths (LocalDate/of 2024 1 31) 1))", "\"2024-02-29\"")],
        |machine, arguments| moved(machine, arguments, Unit::Months(1), false),
    ),
    Builtin::new(
        ".plusWeeks",
        &["[t n]"],
        "A time `n` weeks later.",
        &[("(str (.plusWeeks (LocalDate/of 2024 2 28) 1))", "\"2024-03-06\"")],
        |machine, arguments| moved(machine, arguments, Unit::Days(7), false),
    ),
    Builtin::new(
        ".plusDays",
        &["[t n]"],
        "A time `n` days later.",
        &[("(str (.plusDays (LocalDate/of 2024 2 28) 2))", "\"2024-03-01\"")],
        |machine, arguments| moved(machine, arguments, Unit::Days(1), false),
    ),
    Builtin::new(
        ".plusHours",
        &["[t n]"],
        "A time `n` hours later.",
        &[("(str (.plusHours (LocalTime/of 23 0) 2))", "\"01:00\"")],
        |machine, arguments| moved(machine, arguments, Unit::Exact(60 * MINUTE), false),
    ),
    Builtin::new(
        ".plusMinutes",
        &["[t n]"],
        "A time `n` minutes later.",
        &[("(str (.plusMinutes (LocalTime/of 23 0) 45))", "\"23:45\"")],
        |machine, arguments| moved(machine, arguments, Unit::Exact(MINUTE), false),
    ),
    Builtin::new(
        ".plusSeconds",
        &["[t n]"],
        "A time `n` seconds later.",
        &[("(str (.plusSeconds (LocalTime/of 23 0) 45))", "\"23:00:45\"")],
        |machine, arguments| moved(machine, arguments, Unit::Exact(1_000_000_000), false),
    ),
    Builtin::new(
        ".plusMillis",
        &["[t n]"],
        "A time `n` milliseconds later.",
        &[("(str (.plusMillis Instant/EPOCH 5))", "\"1970-01-01T00:00:00.005Z\"")],
        |machine, arguments| moved(machine, arguments, Unit::Exact(1_000_000), false),
    ),
    Builtin::new(
        ".plusNanos",
        &["[t n]"],
        "A time `n` nanoseconds later.",
        &[("(str (.plusNanos Instant/EPOCH 5))", "\"1970-01-01T00:00:00.000000005Z\"")],
        |machine, arguments| moved(machine, arguments, Unit::Exact(1), false),
    ),
    Builtin::new(
        ".minusYears",
        &["[t n]"],
        "A time `n` years earlier.",
        &[("(str (.minusYears (LocalDate/of 2024 2 29) 1))", "\"2023-02-28\"")],
        |machine, arguments| moved(machine, arguments, Unit::Years(1), true),
    ),
    Builtin::new(
        ".minusMonths",
        &["[t n]"],
        "A time `n` months earlier.",
        &[("(str (.minusMonths (LocalDate/of 2024 3 31) 1))", "\"2024-02-29\"")],
        |machine, arguments| moved(machine, arguments, Unit::Months(1), true),
    ),
    Builtin::new(
        ".minusWeeks",
        &["[t n]"],
        "A time `n` weeks earlier.",
        &[("(str (.minusWeeks (LocalDate/of 2024 3 6) 1))", "\"2024-02-28\"")],
        |machine, arguments| moved(machine, arguments, Unit::Days(7), true),
    ),
    Builtin::new(
        ".minusDays",
        &["[t n]"],
        "A time `n` days earlier.",
        &[("(str (.minusDays (LocalDate/of 2024 3 1) 1))", "\"2024-02-29\"")],
        |machine, arguments| moved(machine, arguments, Unit::Days(1), true),
    ),
    Builtin::new(
        ".minusHours",
        &["[t n]"],
        "A time `n` hours earlier.",
        &[("(str (.minusHours (LocalTime/of 1 0) 2))", "\"23:00\"")],
        |machine, arguments| moved(machine, arguments, Unit::Exact(60 * MINUTE), true),
    ),
    Builtin::new(
        ".minusMinutes",
        &["[t n]"],
        "A time `n` minutes earlier.",
        &[("(str (.minusMinutes (LocalTime/of 1 0) 15))", "\"00:45\"")],
        |machine, arguments| moved(machine, arguments, Unit::Exact(MINUTE), true),
    ),
    Builtin::new(
        ".minusSeconds",
        &["[t n]"],
        "A time `n` seconds earlier.",
        &[("(str (.minusSeconds (LocalTime/of 1 0) 15))", "\"00:59:45\"")],
        |machine, arguments| moved(machine, arguments, Unit::Exact(1_000_000_000), true),
    ),
    Builtin::new(
        ".minusMillis",
        &["[t n]"],
        "A time `n` milliseconds earlier.",
        &[("(str (.minusMillis Instant/EPOCH 5))", "\"1969-12-31T23:59:59.995Z\"")],
        |machine, arguments| moved(machine, arguments, Unit::Exact(1_000_000), true),
    ),
    Builtin::new(
        ".minusNanos",
        &["[t n]"],
        "A time `n` nanoseconds earlier.",
        &[("(str (.minusNanos Instant/EPOCH 5))", "\"1969-12-31T23:59:59.999999995Z\"")],
        |machine, arguments| moved(machine, arguments, Unit::Exact(1), true),
    ),
    Builtin::new(
        ".withYear",
        &["[t year]"],
        "The time in another year.",
        &[("(str (.withYear (LocalDate/of 2024 2 29) 2023))", "\"2023-02-28\"")],
        |machine, arguments| {
            let year = bounded(&arguments[1], "the year", -9999, 9999)? as i16;
            with_date(machine, arguments, |date| fitting(year, date.month(), date.day()))
        },
    ),
    Builtin::new(
        ".withMonth",
        &["[t month]"],
        "The time in another month.",
        &[("(str (.withMonth (LocalDate/of 2024 1 31) 2))", "\"2024-02-29\"")],
        |machine, arguments| {
            let month = bounded(&arguments[1], "the month", 1, 12)? as i8;
            with_date(machine, arguments, |date| fitting(date.year(), month, date.day()))
        },
    ),
    Builtin::new(
        ".withDayOfMonth",
        &["[t day]"],
        "The time on another day of the month.",
        &[("(str (.withDayOfMonth (LocalDate/of 2024 2 10) 1))", "\"2024-02-01\"")],
        |machine, arguments| {
            let day = bounded(&arguments[1], "the day", 1, 31)? as i8;
            with_date(machine, arguments, |date| {
                Date::new(date.year(), date.month(), day).map_err(|_| no_such_day(date.year(), date.month(), day))
            })
        },
    ),
    Builtin::new(
        ".withDayOfYear",
        &["[t day]"],
        "The time on another day of the year.",
        &[("(str (.withDayOfYear (LocalDate/of 2024 2 10) 366))", "\"2024-12-31\"")],
        |machine, arguments| {
            let given = arguments[1].clone();
            with_date(machine, arguments, |date| {
                let day = bounded(&given, "the day of the year", 1, date.days_in_year().into())?;
                super::calendar::plus_days(fitting(date.year(), 1, 1)?, day - 1)
            })
        },
    ),
    Builtin::new(
        ".withHour",
        &["[t hour]"],
        "The time at another hour.",
        &[("(str (.withHour (LocalTime/of 14 30) 9))", "\"09:30\"")],
        |machine, arguments| {
            let hour = bounded(&arguments[1], "the hour", 0, 23)? as i8;
            with_clock(machine, arguments, |clock| clock.with().hour(hour).build())
        },
    ),
    Builtin::new(
        ".withMinute",
        &["[t minute]"],
        "The time at another minute.",
        &[("(str (.withMinute (LocalTime/of 14 30) 0))", "\"14:00\"")],
        |machine, arguments| {
            let minute = bounded(&arguments[1], "the minute", 0, 59)? as i8;
            with_clock(machine, arguments, |clock| clock.with().minute(minute).build())
        },
    ),
    Builtin::new(
        ".withSecond",
        &["[t second]"],
        "The time at another second.",
        &[("(str (.withSecond (LocalTime/of 14 30) 5))", "\"14:30:05\"")],
        |machine, arguments| {
            let second = bounded(&arguments[1], "the second", 0, 59)? as i8;
            with_clock(machine, arguments, |clock| clock.with().second(second).build())
        },
    ),
    Builtin::new(
        ".withNano",
        &["[t nano]"],
        "The time with another fraction of its second.",
        &[("(str (.withNano (LocalTime/of 14 30 5 9) 0))", "\"14:30:05\"")],
        |machine, arguments| {
            let nano = bounded(&arguments[1], "the nanosecond", 0, 999_999_999)? as i32;
            with_clock(machine, arguments, |clock| clock.with().subsec_nanosecond(nano).build())
        },
    ),
    Builtin::new(
        ".with",
        &["[t adjuster]"],
        "A date moved by an adjuster of `TemporalAdjusters`, or with its date or time of day replaced.",
        &[("(str (.with (LocalDate/of 2024 2 10) (TemporalAdjusters/lastDayOfMonth)))", "\"2024-02-29\"")],
        |machine, arguments| {
            let time = given::time(machine, &arguments[0])?;
            let Some(before) = local(&time) else { return Err(Error::expected("a date", &arguments[0]).into()) };
            let after = match &arguments[1] {
                Value::Time(part) => match &**part {
                    Time::Date(date) => date.to_datetime(before.time()),
                    Time::Clock(clock) => before.date().to_datetime(*clock),
                    _ => return Err(Error::expected("a date or a time of day", &arguments[1]).into()),
                },
                adjuster => adjusted(before.date(), adjuster)?.to_datetime(before.time()),
            };
            Ok(value(with_local(&time, after)?))
        },
    ),
    Builtin::new(
        ".atStartOfDay",
        &["[date]", "[date zone]"],
        "The start of a day, in a zone if one is given.",
        &[("(str (.atStartOfDay (LocalDate/of 2024 3 5)))", "\"2024-03-05T00:00\"")],
        |machine, arguments| {
            let time = given::time(machine, &arguments[0])?;
            let start = date_of(&time)?.to_datetime(civil::Time::midnight());
            in_optional_zone(machine, start, arguments.get(1).cloned())
        },
    ),
    Builtin::new(
        ".atTime",
        &["[date time]", "[date hour minute]", "[date hour minute second]", "[date hour minute second nano]"],
        "A date at a time of day.",
        &[("(str (.atTime (LocalDate/of 2024 3 5) 14 30))", "\"2024-03-05T14:30\"")],
        |machine, arguments| {
            let time = given::time(machine, &arguments[0])?;
            let clock = match &arguments[1..] {
                [one] => {
                    let clock = given::time(machine, one)?;
                    given::clock_of(&clock)?
                }
                numbers => given::clock(numbers)?,
            };
            Ok(value(Time::DateTime(date_of(&time)?.to_datetime(clock))))
        },
    ),
    Builtin::new(
        ".atDate",
        &["[time date]"],
        "A time of day on a date.",
        &[("(str (.atDate (LocalTime/of 14 30) (LocalDate/of 2024 3 5)))", "\"2024-03-05T14:30\"")],
        |machine, arguments| {
            let (clock, date) = (given::time(machine, &arguments[0])?, given::time(machine, &arguments[1])?);
            Ok(value(Time::DateTime(date_of(&date)?.to_datetime(given::clock_of(&clock)?))))
        },
    ),
    Builtin::new(
        ".atDay",
        &["[year-month day]"],
        "A day of a month, or of a year.",
        &[
            ("(str (.atDay (YearMonth/of 2024 2) 29))", "\"2024-02-29\""),
            ("(str (.atDay (Year/of 2024) 60))", "\"2024-02-29\""),
        ],
        |machine, arguments| {
            if let Value::Int(_) = &arguments[0] {
                let year = bounded(&arguments[0], "the year", -9999, 9999)? as i16;
                let day = bounded(&arguments[1], "the day of the year", 1, 366)?;
                return Ok(value(Time::Date(super::calendar::plus_days(fitting(year, 1, 1)?, day - 1)?)));
            }
            let first = given::time(machine, &arguments[0])?;
            let first = date_of(&first)?;
            let day = bounded(&arguments[1], "the day", 1, 31)? as i8;
            let date = Date::new(first.year(), first.month(), day);
            Ok(value(Time::Date(date.map_err(|_| no_such_day(first.year(), first.month(), day))?)))
        },
    ),
    Builtin::new(
        ".atEndOfMonth",
        &["[year-month]"],
        "The last day of a month.",
        &[("(str (.atEndOfMonth (YearMonth/of 2024 2)))", "\"2024-02-29\"")],
        |machine, arguments| {
            let time = given::time(machine, &arguments[0])?;
            Ok(value(Time::Date(date_of(&time)?.last_of_month())))
        },
    ),
    Builtin::new(
        ".until",
        &["[from to]", "[from to unit]"],
        "The number of whole units from one time to another; without a unit, the period between two dates.",
        &[("(str (.until (LocalDate/of 2024 1 31) (LocalDate/of 2024 3 1)))", "\"P1M1D\"")],
        |machine, arguments| {
            let (from, to) = (given::time(machine, &arguments[0])?, given::time(machine, &arguments[1])?);
            Ok(match arguments.get(2) {
                Some(unit) => Value::Int(super::calendar::between(&from, &to, Unit::of(unit)?)?),
                None => value(Time::Period(super::calendar::period_between(date_of(&from)?, date_of(&to)?)?)),
            })
        },
    ),
];

fn moved(machine: &mut Machine, arguments: &mut [Value], unit: Unit, back: bool) -> Outcome<Value> {
    let time = given::time(machine, &arguments[0])?;
    let amount = Amount::times(&arguments[1], unit)?;
    Ok(value(plus(&time, if back { amount.negated()? } else { amount })?))
}

/// Returns a day of a month, clamped to the month's last day.
fn fitting(year: i16, month: i8, day: i8) -> Result<Date, Error> {
    let first = Date::new(year, month, 1).map_err(|_| too_far())?;
    Date::new(year, month, day.min(first.days_in_month())).map_err(|_| too_far())
}

fn with_date(
    machine: &mut Machine,
    arguments: &[Value],
    change: impl FnOnce(Date) -> Result<Date, Error>,
) -> Outcome<Value> {
    let time = given::time(machine, &arguments[0])?;
    let before = date_of(&time)?;
    let clock = local(&time).map_or(civil::Time::midnight(), DateTime::time);
    Ok(value(with_local(&time, change(before)?.to_datetime(clock))?))
}

fn with_clock(
    machine: &mut Machine,
    arguments: &[Value],
    change: impl FnOnce(civil::Time) -> Result<civil::Time, jiff::Error>,
) -> Outcome<Value> {
    let time = given::time(machine, &arguments[0])?;
    let clock = change(given::clock_of(&time)?).map_err(|_| too_far())?;
    let date = local(&time).map_or(Date::ZERO, DateTime::date);
    Ok(value(with_local(&time, date.to_datetime(clock))?))
}

fn in_optional_zone(machine: &mut Machine, local: DateTime, zone: Option<Value>) -> Outcome<Value> {
    Ok(value(match zone {
        None => Time::DateTime(local),
        Some(zone) => {
            let zone = given::zone(machine, &zone)?;
            Time::Zoned(Box::new(super::calendar::in_zone(local, &zone, None)?))
        }
    }))
}
