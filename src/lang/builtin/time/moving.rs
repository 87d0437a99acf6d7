//! Moving times forwards and backwards, and truncating them to a unit.

use super::calendar::{between, local, order, plus, timestamp, truncate, with_local};
use super::given::{self, value};
use super::units::{Amount, Unit, is_unit};
use crate::builtin::arguments::integer;
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;
use crate::value::release::Scratch;
use crate::value::time::Time;
use jiff::tz::TimeZone;
use std::cmp::Ordering;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "time/plus",
        &["[t amount]", "[t n unit & more]"],
        "Adds an amount to a time, or to a duration or a period.\n\
         The amount is a number and its unit, a duration or period, text such as \"PT90M\" or \"1h 30m\", or a map of \
         units. Days and longer units follow the calendar of the time's zone, hours and shorter ones elapsed time; a \
         day that its month lacks becomes the month's last.",
        &[
            ("(time/plus (time/date 2024 1 31) 1 :month)", "#time/date \"2024-02-29\""),
            ("(str (time/plus \"2024-03-05T14:00:00Z\" {:days 3 :hours 2}))", "\"2024-03-08T16:00:00Z\""),
            ("(str (time/plus \"2024-03-05T14:00:00Z\" (time/duration 90 :minutes)))", "\"2024-03-05T15:30:00Z\""),
        ],
        |machine, arguments| moved(machine, arguments, false),
    ),
    Builtin::new(
        "time/minus",
        &["[t amount]", "[t n unit & more]"],
        "Subtracts an amount, as in `time/plus`, from a time; of two times, the duration between them.",
        &[
            ("(time/minus (time/date 2024 3 31) 1 :month)", "#time/date \"2024-02-29\""),
            ("(str (time/minus \"2024-03-05T14:00:00Z\" \"2024-03-05T12:30:00Z\"))", "\"PT1H30M\""),
        ],
        |machine, arguments| moved(machine, arguments, true),
    ),
    Builtin::new(
        "time/ago",
        &["[amount]", "[n unit & more]"],
        "The instant `amount` before now.",
        &[("(time/before? (time/ago 7 :days) (time/now))", "true")],
        |machine, arguments| from_now(machine, arguments, true),
    ),
    Builtin::new(
        "time/from-now",
        &["[amount]", "[n unit & more]"],
        "The instant `amount` after now.",
        &[("(time/after? (time/from-now 2 :hours) (time/now))", "true")],
        |machine, arguments| from_now(machine, arguments, false),
    ),
    Builtin::new(
        "time/truncate",
        &["[t unit]", "[t n unit]"],
        "A time truncated (rounded down) to a unit; weeks begin on Monday.\n\
         With a number, truncated to multiples of `n` units: `15 :minutes` gives quarters of an hour.",
        &[
            ("(str (time/truncate \"2024-03-05T14:37:05Z\" :hour))", "\"2024-03-05T14:00:00Z\""),
            ("(time/truncate (time/date 2024 3 7) :week)", "#time/date \"2024-03-04\""),
            ("(str (time/truncate \"2024-03-05T14:37:05Z\" 15 :minutes))", "\"2024-03-05T14:30:00Z\""),
        ],
        |machine, arguments| {
            let time = given::time(machine, &arguments[0])?;
            let (count, unit) = count_and_unit(&arguments[1..])?;
            Ok(value(truncate(&time, count, unit)?))
        },
    ),
    Builtin::new(
        "time/end-of",
        &["[t unit]"],
        "The last day of the unit that a date is in, or the last nanosecond of the unit that a time is in.",
        &[
            ("(time/end-of (time/date 2024 2 10) :month)", "#time/date \"2024-02-29\""),
            ("(str (time/end-of \"2024-03-05T14:00\" :day))", "\"2024-03-05T23:59:59.999999999\""),
        ],
        end_of,
    ),
    Builtin::new(
        "time/between",
        &["[from to]", "[from to unit]"],
        "The number of whole units from one time to another; without a unit, the duration.\n\
         It is negative if the second is earlier. A time without a zone is read in the other's.",
        &[
            ("(time/between \"2024-03-05\" \"2024-03-19\" :days)", "14"),
            ("(time/between \"2024-01-31\" \"2024-02-29\" :months)", "0"),
            ("(str (time/between \"2024-03-05T14:00:00Z\" \"2024-03-05T15:30:00Z\"))", "\"PT1H30M\""),
        ],
        whole_units,
    ),
    Builtin::new(
        "time/days-between",
        &["[from to]"],
        "The number of whole days from one time to another, as of `time/between` with `:days`.",
        &[("(time/days-between \"2024-03-05\" \"2024-03-19\")", "14")],
        days_between,
    ),
    Builtin::new(
        "time/range",
        &["[from to]", "[from to unit]", "[from to n unit]"],
        "The times from one up to but not including another, in steps of a day or of `n` units.",
        &[
            ("(map str (time/range \"2024-02-28\" \"2024-03-02\"))", "(\"2024-02-28\" \"2024-02-29\" \"2024-03-01\")"),
            (
                "(map str (time/range \"2024-01-31\" \"2024-04-01\" :months))",
                "(\"2024-01-31\" \"2024-02-29\" \"2024-03-31\")",
            ),
        ],
        range,
    ),
];

/// Java's names and those of other libraries.
pub const ALIASES: &[(&str, &str)] = &[
    (".plus", "time/plus"),
    (".minus", "time/minus"),
    ("time/add", "time/plus"),
    ("time/subtract", "time/minus"),
    (".truncatedTo", "time/truncate"),
    ("time/truncate-to", "time/truncate"),
    ("time/start-of", "time/truncate"),
    ("time/floor", "time/truncate"),
    (".between", "time/between"),
    ("time/diff", "time/between"),
    ("time/time-between", "time/between"),
    (".datesUntil", "time/range"),
];

/// Parses a unit with an optional count before or after it.
fn count_and_unit(given: &[Value]) -> Result<(i64, Unit), Error> {
    match given {
        [unit] => Ok((1, Unit::of(unit)?)),
        [unit, count] if is_unit(unit) => Ok((integer(count)?, Unit::of(unit)?)),
        [count, unit, ..] => Ok((integer(count)?, Unit::of(unit)?)),
        [] => Ok((1, Unit::Days(1))),
    }
}

/// Parses a length of time: one value, or alternating numbers and units.
fn amount(machine: &mut Machine, name: &str, given: &[Value]) -> Outcome<Amount> {
    if let [one] = given {
        if let Value::Int(_) | Value::Float(_) = one {
            return Err(Error::expected("a length of time with its unit", one)
                .suggest(format!("name the unit: ({name} t 3 :days)"))
                .into());
        }
        return Amount::of(machine, one);
    }
    let mut sum = Amount::default();
    for pair in given.chunks(2) {
        machine.charge(1)?;
        let [first, second] = pair else {
            return Err(Error::new("ArityError", format!("`{name}` takes numbers and units in turn"))
                .suggest(format!("such as ({name} t 3 :days)"))
                .into());
        };
        let (count, unit) = if is_unit(first) { (second, first) } else { (first, second) };
        sum = sum.plus(Amount::times(count, Unit::of(unit)?)?)?;
    }
    Ok(sum)
}

fn moved(machine: &mut Machine, arguments: &mut [Value], back: bool) -> Outcome<Value> {
    let name = if back { "time/minus" } else { "time/plus" };
    if let [Value::Str(day), Value::Int(steps)] = arguments
        && let Some(next) = super::constants::cycle(day.as_str(), if back { -(*steps % 84) } else { *steps % 84 })
    {
        return Ok(Value::string(&next));
    }
    let is_length = |given: &Value| matches!(given, Value::Time(time) if Amount::of_time(time).is_some());
    if let [first, second] = arguments
        && is_length(first)
        && !is_length(second)
        && matches!(second, Value::Time(_))
        && !back
    {
        arguments.swap(0, 1);
    }
    let time = given::time(machine, &arguments[0])?;
    if let ([_, second @ (Value::Time(_) | Value::Str(_))], true) = (&*arguments, back)
        && !is_length(second)
        && (matches!(second, Value::Time(_)) || Amount::of(machine, second).is_err())
    {
        let earlier = given::time(machine, second)?;
        return Ok(value(Time::Duration(super::calendar::apart(&earlier, &time)?)));
    }
    let amount = amount(machine, name, &arguments[1..])?;
    let amount = if back { amount.negated()? } else { amount };
    Ok(value(plus(&time, amount)?))
}

fn from_now(machine: &mut Machine, arguments: &mut [Value], back: bool) -> Outcome<Value> {
    let amount = amount(machine, if back { "time/ago" } else { "time/from-now" }, arguments)?;
    let now = Time::Instant(given::now(machine));
    Ok(value(plus(&now, if back { amount.negated()? } else { amount })?))
}

fn end_of(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let time = given::time(machine, &arguments[0])?;
    let unit = Unit::of(&arguments[1])?;
    let (start, next) = match truncate(&time, 1, unit)? {
        // The end of an hour is determined by elapsed time, the end of a day by the calendar.
        start if matches!(unit, Unit::Exact(_)) => (start.clone(), plus(&start, Amount::whole(1, unit)?)?),
        start => {
            let Some(begin) = local(&start) else { return Err(super::pattern_write::not_formattable(&time).into()) };
            let day_after = plus(&Time::DateTime(begin), Amount::whole(1, unit)?)?;
            let last = match &day_after {
                Time::DateTime(next) => with_local(&start, *next)?,
                _ => start.clone(),
            };
            (start, last)
        }
    };
    let back = match &start {
        Time::Date(_) => Amount { days: -1, ..Amount::default() },
        Time::YearMonth(_) => Amount { months: -1, ..Amount::default() },
        _ => Amount { nanos: -1, ..Amount::default() },
    };
    Ok(value(plus(&next, back)?))
}

fn days_between(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let [from, to] = arguments else { return Ok(Value::Nil) };
    whole_units(machine, &mut [std::mem::take(from), std::mem::take(to), Value::keyword("days")])
}

fn whole_units(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.len() == 3 && is_unit(&arguments[0]) {
        arguments.rotate_left(1);
    }
    let from = given::time(machine, &arguments[0])?;
    let to = given::time(machine, &arguments[1])?;
    Ok(match arguments.get(2) {
        None => value(Time::Duration(super::calendar::apart(&from, &to)?)),
        Some(unit) => Value::Int(between(&from, &to, Unit::of(unit)?)?),
    })
}

fn range(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let from = given::time(machine, &arguments[0])?;
    let to = given::time(machine, &arguments[1])?;
    let step = match &arguments[2..] {
        [one @ Value::Time(_)] => Amount::of(machine, one)?,
        rest => {
            let (count, unit) = count_and_unit(rest)?;
            Amount::whole(count, unit)?
        }
    };
    // An end without a zone is interpreted in the zone of the start.
    let to = match super::calendar::zone_of(&from) {
        Some(zone) => Time::Instant(timestamp(&to, &zone)?),
        None if super::calendar::zone_of(&to).is_some() => {
            let zone = super::calendar::zone_of(&to).unwrap_or(TimeZone::UTC);
            Time::DateTime(zone.to_datetime(timestamp(&to, &zone)?))
        }
        None => to,
    };
    if step == Amount::default() || order(&plus(&from, step)?, &from)? != Ordering::Greater {
        return Err(Error::new("ArgumentError", "a range of times needs a positive step")
            .suggest("such as :days or 15 :minutes")
            .into());
    }
    let mut times = Scratch::from(Vec::new());
    let mut steps = Amount::default();
    let mut next = from.clone();
    while order(&next, &to)? == Ordering::Less {
        machine.charge(4)?;
        times.push(value(next));
        machine.grown(times.len())?;
        // Always computed from the start, so that the 31st reappears after a short month.
        steps = steps.plus(step)?;
        next = plus(&from, steps)?;
    }
    Ok(Value::list(times.into_vec()))
}
