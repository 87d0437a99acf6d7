//! Lengths of time: durations in exact units, periods in calendar units.

use super::calendar::{apart, length, period_between};
use super::given::{self, date_of, value};
use super::units::{Amount, Unit, exact, is_unit};
use crate::builtin::arguments::integer;
use crate::builtin::arithmetic::float;
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;
use crate::value::time::{Period, Time};
use jiff::SignedDuration;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "time/duration",
        &["[amount]", "[n unit]", "[from to]", "[n unit & more]"],
        "A length of time in seconds: from numbers and units, a map of units, text (\"PT1H30M\", \"1h 30m\"), or \
         between two times.",
        &[
            ("(str (time/duration 90 :minutes))", "\"PT1H30M\""),
            ("(str (time/duration {:hours 1 :minutes 30}))", "\"PT1H30M\""),
            ("(str (time/duration \"2024-03-05T14:00:00Z\" \"2024-03-06T14:00:00Z\"))", "\"PT24H\""),
        ],
        duration,
    ),
    Builtin::new(
        "time/period",
        &["[amount]", "[n unit]", "[from to]", "[years months days]"],
        "A length of time in years, months and days: from numbers and units, a map of units, text (\"P1Y2M\"), or \
         between two dates.",
        &[
            ("(str (time/period {:years 1 :months 2}))", "\"P1Y2M\""),
            ("(str (time/period \"2024-01-31\" \"2024-03-01\"))", "\"P1M1D\""),
        ],
        period,
    ),
    Builtin::new(
        "time/nanos",
        &["[x]"],
        "A duration of `x` nanoseconds; or the nanoseconds of a duration.",
        &[("(time/nanos (time/duration 1 :micros))", "1000")],
        |machine, arguments| both_ways(machine, &arguments[0], "nanos"),
    ),
    Builtin::new(
        "time/millis",
        &["[x]"],
        "A duration of `x` milliseconds; or the whole milliseconds of a duration.",
        &[("(time/millis (time/duration 2 :seconds))", "2000"), ("(str (time/millis 1500))", "\"PT1.5S\"")],
        |machine, arguments| both_ways(machine, &arguments[0], "millis"),
    ),
    Builtin::new(
        "time/seconds",
        &["[x]", "[x nanos]"],
        "A duration of `x` seconds, plus `nanos` nanoseconds; or the whole seconds of a duration.",
        &[
            ("(time/seconds (time/duration 2 :minutes))", "120"),
            ("(str (time/seconds 90))", "\"PT1M30S\""),
            ("(str (Duration/ofSeconds 5 -1))", "\"PT4.999999999S\""),
        ],
        |machine, arguments| match arguments {
            [seconds, nanos] => {
                let whole = Amount::times(seconds, Unit::Exact(1_000_000_000))?;
                let amount = whole.plus(Amount::times(nanos, Unit::Exact(1))?)?;
                Ok(value(Time::Duration(amount.duration()?)))
            }
            _ => both_ways(machine, &arguments[0], "seconds"),
        },
    ),
    Builtin::new(
        "time/minutes",
        &["[x]"],
        "A duration of `x` minutes; or the whole minutes of a duration.",
        &[
            ("(time/minutes (time/between \"2024-03-05T14:00\" \"2024-03-05T15:30\"))", "90"),
            ("(str (time/minutes 90))", "\"PT1H30M\""),
        ],
        |machine, arguments| both_ways(machine, &arguments[0], "minutes"),
    ),
    Builtin::new(
        "time/hours",
        &["[x]"],
        "A duration of `x` hours; or the whole hours of a duration.",
        &[("(time/hours (time/duration 150 :minutes))", "2"), ("(str (time/hours 2))", "\"PT2H\"")],
        |machine, arguments| both_ways(machine, &arguments[0], "hours"),
    ),
    Builtin::new(
        "time/days",
        &["[x]"],
        "A period of `x` days; or the days of a period, or the whole 24-hour days of a duration.",
        &[("(time/days (time/duration 50 :hours))", "2"), ("(str (time/days 3))", "\"P3D\"")],
        |machine, arguments| both_ways(machine, &arguments[0], "days"),
    ),
    Builtin::new(
        "time/weeks",
        &["[x]"],
        "A period of `x` weeks; or the whole weeks of a period or duration.",
        &[("(str (time/weeks 2))", "\"P14D\""), ("(time/weeks (time/days 20))", "2")],
        |machine, arguments| both_ways(machine, &arguments[0], "weeks"),
    ),
    Builtin::new(
        "time/months",
        &["[x]"],
        "A period of `x` months; or the months of a period, excluding its years.",
        &[("(str (time/months 3))", "\"P3M\"")],
        |machine, arguments| both_ways(machine, &arguments[0], "months"),
    ),
    Builtin::new(
        "time/years",
        &["[x]"],
        "A period of `x` years; or the years of a period.",
        &[("(str (time/years 3))", "\"P3Y\""), ("(time/years (time/period 1 2 3))", "1")],
        |machine, arguments| both_ways(machine, &arguments[0], "years"),
    ),
    Builtin::new(
        ".toTotalMonths",
        &["[period]"],
        "All the months of a period, including its years.",
        &[("(.toTotalMonths (Period/of 1 2 3))", "14")],
        |_, arguments| {
            let Period { years, months, .. } = the_period(&arguments[0])?;
            Ok(Value::Int(i64::from(years) * 12 + i64::from(months)))
        },
    ),
    Builtin::new(
        ".normalized",
        &["[period]"],
        "The period with its months carried into years, leaving fewer than twelve.",
        &[("(str (.normalized (Period/ofMonths 14)))", "\"P1Y2M\"")],
        |_, arguments| {
            let Period { years, months, days } = the_period(&arguments[0])?;
            let total = i64::from(years) * 12 + i64::from(months);
            let amount = Amount { years: total / 12, months: total % 12, days: days.into(), nanos: 0 };
            Ok(value(Time::Period(amount.period()?)))
        },
    ),
    Builtin::new(
        ".getSeconds",
        &["[duration]"],
        "The whole seconds of a duration, rounded down.",
        &[("(.getSeconds (Duration/ofMillis -1500))", "-2")],
        |_, arguments| Ok(Value::Int(floor_seconds(the_duration(&arguments[0])?))),
    ),
    Builtin::new(
        ".toHoursPart",
        &["[duration]"],
        "The hours of a duration beyond its whole days.",
        &[("(.toHoursPart (Duration/ofMinutes 1590))", "2")],
        |_, arguments| Ok(Value::Int(the_duration(&arguments[0])?.as_hours() % 24)),
    ),
    Builtin::new(
        ".toMinutesPart",
        &["[duration]"],
        "The minutes of a duration beyond its whole hours.",
        &[("(.toMinutesPart (Duration/ofMinutes 150))", "30")],
        |_, arguments| Ok(Value::Int(the_duration(&arguments[0])?.as_mins() % 60)),
    ),
    Builtin::new(
        ".toSecondsPart",
        &["[duration]"],
        "The seconds of a duration beyond its whole minutes.",
        &[("(.toSecondsPart (Duration/ofSeconds 150))", "30")],
        |_, arguments| Ok(Value::Int(floor_seconds(the_duration(&arguments[0])?) % 60)),
    ),
    Builtin::new(
        ".toMillisPart",
        &["[duration]"],
        "The milliseconds of a duration beyond its whole seconds.",
        &[("(.toMillisPart (Duration/ofMillis 1500))", "500")],
        |_, arguments| Ok(Value::Int(the_duration(&arguments[0])?.as_millis().rem_euclid(1_000) as i64)),
    ),
    Builtin::new(
        ".isNegative",
        &["[length]"],
        "True if a duration is below zero, or any part of a period.",
        &[("(.isNegative (Duration/ofSeconds -1))", "true")],
        |_, arguments| {
            Ok(Value::Bool(match the_length(&arguments[0])? {
                Length::Duration(duration) => duration.is_negative(),
                Length::Period(Period { years, months, days }) => years < 0 || months < 0 || days < 0,
            }))
        },
    ),
    Builtin::new(
        ".isZero",
        &["[length]"],
        "True if a duration or period is zero.",
        &[("(.isZero Duration/ZERO)", "true")],
        |_, arguments| {
            Ok(Value::Bool(match the_length(&arguments[0])? {
                Length::Duration(duration) => duration.is_zero(),
                Length::Period(period) => period == Period::default(),
            }))
        },
    ),
    Builtin::new(
        ".negated",
        &["[length]"],
        "The negated duration or period.",
        &[("(str (.negated (Duration/ofHours 2)))", "\"PT-2H\"")],
        |_, arguments| multiplied(&arguments[0], -1),
    ),
    Builtin::new(
        ".multipliedBy",
        &["[length n]"],
        "A duration or period times `n`.",
        &[("(str (.multipliedBy (Duration/ofMinutes 5) 3))", "\"PT15M\"")],
        |_, arguments| multiplied(&arguments[0], integer(&arguments[1])?),
    ),
    Builtin::new(
        ".dividedBy",
        &["[duration n]"],
        "A duration divided by `n`; or how often another duration fits into it.",
        &[("(str (.dividedBy (Duration/ofMinutes 5) 2))", "\"PT2M30S\"")],
        |_, arguments| {
            let nanos = the_duration(&arguments[0])?.as_nanos();
            let divided = |by: i128| {
                let error = || Error::new("ArithmeticError", "a duration cannot be divided by zero");
                nanos.checked_div(by).ok_or_else(error)
            };
            match &arguments[1] {
                Value::Time(_) => {
                    let count = divided(the_duration(&arguments[1])?.as_nanos())?;
                    Ok(Value::Int(i64::try_from(count).map_err(|_| super::units::too_far())?))
                }
                other => Ok(value(Time::Duration(exact(divided(integer(other)?.into())?)?))),
            }
        },
    ),
];

/// Java's names.
pub const ALIASES: &[(&str, &str)] = &[
    ("Duration/between", "time/duration"),
    ("Duration/of", "time/duration"),
    ("Period/between", "time/period"),
    ("Period/of", "time/period"),
    (".toNanos", "time/nanos"),
    (".toMillis", "time/millis"),
    (".toSeconds", ".getSeconds"),
    (".toMinutes", "time/minutes"),
    (".toHours", "time/hours"),
    (".toDays", "time/days"),
    (".toDaysPart", "time/days"),
    (".getDays", "time/days"),
    (".getMonths", "time/months"),
    (".getYears", "time/years"),
    ("Duration/ofNanos", "time/nanos"),
    ("Duration/ofMillis", "time/millis"),
    ("Duration/ofSeconds", "time/seconds"),
    ("Duration/ofMinutes", "time/minutes"),
    ("Duration/ofHours", "time/hours"),
    ("Period/ofDays", "time/days"),
    ("Period/ofWeeks", "time/weeks"),
    ("Period/ofMonths", "time/months"),
    ("Period/ofYears", "time/years"),
];

enum Length {
    Duration(SignedDuration),
    Period(Period),
}

fn the_length(given: &Value) -> Result<Length, Error> {
    match given {
        Value::Time(time) => match &**time {
            Time::Duration(duration) => Ok(Length::Duration(*duration)),
            Time::Period(period) => Ok(Length::Period(*period)),
            _ => Err(Error::expected("a duration or period", given)),
        },
        other => Err(Error::expected("a duration or period", other)),
    }
}

fn the_duration(given: &Value) -> Result<SignedDuration, Error> {
    match the_length(given) {
        Ok(Length::Duration(duration)) => Ok(duration),
        _ => Err(Error::expected("a duration", given).suggest("such as (time/duration 90 :minutes)")),
    }
}

fn the_period(given: &Value) -> Result<Period, Error> {
    match the_length(given) {
        Ok(Length::Period(period)) => Ok(period),
        _ => Err(Error::expected("a period", given).suggest("such as (time/period {:months 3})")),
    }
}

fn floor_seconds(duration: SignedDuration) -> i64 {
    duration.as_secs() - i64::from(duration.subsec_nanos() < 0)
}

/// Converts the arguments to an amount of time, or returns `None` if they are two times.
fn amount(machine: &mut Machine, arguments: &[Value]) -> Outcome<Option<Amount>> {
    match arguments {
        [one] => Amount::of(machine, one).map(Some),
        [_, second] if !is_unit(second) => Ok(None),
        pairs => {
            let mut sum = Amount::default();
            for pair in pairs.chunks(2) {
                machine.charge(1)?;
                let [count, unit] = pair else {
                    return Err(Error::unmet("ArityError", "numbers and units in turn")
                        .suggest("such as (time/duration 1 :hour 30 :minutes)")
                        .into());
                };
                sum = sum.plus(Amount::times(count, Unit::of(unit)?)?)?;
            }
            Ok(Some(sum))
        }
    }
}

fn duration(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if let Some(amount) = amount(machine, arguments)? {
        return Ok(value(Time::Duration(amount.duration()?)));
    }
    let from = given::time(machine, &arguments[0])?;
    let to = given::time(machine, &arguments[1])?;
    Ok(value(Time::Duration(apart(&from, &to)?)))
}

fn period(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if let [years, months, days] = arguments {
        let amount = Amount { years: integer(years)?, months: integer(months)?, days: integer(days)?, nanos: 0 };
        return Ok(value(Time::Period(amount.period()?)));
    }
    if let Some(amount) = amount(machine, arguments)? {
        return Ok(value(Time::Period(amount.period()?)));
    }
    let from = given::time(machine, &arguments[0])?;
    let to = given::time(machine, &arguments[1])?;
    Ok(value(Time::Period(period_between(date_of(&from)?, date_of(&to)?)?)))
}

/// Converts a number to a length of time in a unit, and a length of time to the number of such units.
fn both_ways(machine: &mut Machine, given: &Value, unit: &str) -> Outcome<Value> {
    let Some((_, kind)) = Unit::find(unit) else { return Ok(Value::Nil) };
    if float(given).is_ok() {
        let amount = Amount::times(given, kind)?;
        return Ok(value(match kind {
            Unit::Exact(_) => Time::Duration(amount.duration()?),
            _ if amount.nanos != 0 => Time::Duration(amount.duration()?),
            _ => Time::Period(amount.period()?),
        }));
    }
    let amount = Amount::of(machine, given)?;
    let count = match (kind, length(kind)) {
        (Unit::Days(each), _) if amount.nanos == 0 => i128::from(amount.days / each),
        (_, Some(each)) => amount.duration()?.as_nanos() / each,
        (Unit::Years(_), _) => amount.years.into(),
        _ => amount.months.into(),
    };
    Ok(Value::Int(i64::try_from(count).map_err(|_| super::units::too_far())?))
}

fn multiplied(given: &Value, by: i64) -> Outcome<Value> {
    Ok(value(match the_length(given)? {
        Length::Duration(duration) => {
            let product = duration.as_nanos().checked_mul(by.into()).ok_or_else(super::units::too_far)?;
            Time::Duration(exact(product)?)
        }
        Length::Period(Period { years, months, days }) => {
            let times = |n: i32| i64::from(n).checked_mul(by).ok_or_else(super::units::too_far);
            let amount = Amount { years: times(years)?, months: times(months)?, days: times(days)?, nanos: 0 };
            Time::Period(amount.period()?)
        }
    }))
}
