//! Predicates and comparisons on times: order, containment, overlap.

use super::calendar::{order, plus, timestamp, zone_of};
use super::given::{self, date_of, zoned};
use super::units::{Amount, Unit};
use crate::builtin::arguments::take;
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;
use crate::value::time::Time;
use jiff::Timestamp;
use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use std::cmp::Ordering;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "time/before?",
        &["[a b & more]"],
        "True if each time is before the next.\n\
         A time without a zone is read in the other's, and a day begins at midnight.",
        &[
            ("(time/before? \"2024-03-05\" \"2024-03-06\")", "true"),
            ("(time/before? \"2024-03-05T14:00:00+01:00\" \"2024-03-05T13:30:00Z\")", "true"),
        ],
        |machine, arguments| in_order(machine, arguments, |order| order == Ordering::Less),
    ),
    Builtin::new(
        "time/after?",
        &["[a b & more]"],
        "True if each time is after the next.",
        &[("(time/after? \"2024-03-06\" \"2024-03-05\")", "true")],
        |machine, arguments| in_order(machine, arguments, |order| order == Ordering::Greater),
    ),
    Builtin::new(
        "time/equal?",
        &["[a b & more]"],
        "True if all are the same point in time, regardless of zone.",
        &[("(time/equal? \"2024-03-05T14:00:00+01:00\" \"2024-03-05T13:00:00Z\")", "true")],
        |machine, arguments| in_order(machine, arguments, |order| order == Ordering::Equal),
    ),
    Builtin::new(
        "time/same-day?",
        &["[a b]", "[a b zone]"],
        "True if two times are on one date: in the zone if one is given, else each in its own.",
        &[
            ("(time/same-day? \"2024-03-05T08:00\" \"2024-03-05T23:00\")", "true"),
            ("(time/same-day? \"2024-03-05T08:00:00Z\" \"2024-03-05T23:00:00Z\" \"Asia/Tokyo\")", "false"),
        ],
        |machine, arguments| {
            let zone = arguments.get(2).cloned().map(|zone| given::zone(machine, &zone)).transpose()?;
            let mut days = [Date::ZERO; 2];
            for (day, given) in days.iter_mut().zip(arguments.iter()) {
                let time = given::time(machine, given)?;
                *day = match (&zone, &time) {
                    (Some(zone), Time::Instant(_) | Time::Zoned(_)) => zoned(&time, zone)?.date(),
                    _ => date_of(&time)?,
                };
            }
            Ok(Value::Bool(days[0] == days[1]))
        },
    ),
    Builtin::new(
        "time/within?",
        &["[t from to]"],
        "True if a time is between two others, inclusive; an upper bound that is a date counts to its end.",
        &[
            ("(time/within? \"2024-03-31T18:00\" \"2024-03-01\" \"2024-03-31\")", "true"),
            ("(time/within? \"2024-04-01\" \"2024-03-01\" \"2024-03-31\")", "false"),
        ],
        |machine, arguments| {
            let time = given::time(machine, &arguments[0])?;
            let from = given::time(machine, &arguments[1])?;
            let to = given::time(machine, &arguments[2])?;
            let ends = match (&to, &time) {
                (Time::Date(_), Time::Instant(_) | Time::DateTime(_) | Time::Zoned(_)) => {
                    order(&time, &plus(&to, Amount::whole(1, Unit::Days(1))?)?)? == Ordering::Less
                }
                _ => order(&time, &to)? != Ordering::Greater,
            };
            Ok(Value::Bool(ends && order(&time, &from)? != Ordering::Less))
        },
    ),
    Builtin::new(
        "time/overlaps?",
        &["[a b]", "[a-start a-end b-start b-end]"],
        "True if two time ranges overlap; one that ends as the other begins does not.\n\
         A range is `[start end]` or a map with `:start` and `:end` (or `:from` and `:to`), as in calendars.",
        &[
            (
                "(time/overlaps? {:start \"2024-03-05T14:00\" :end \"2024-03-05T15:00\"} {:start \"2024-03-05T14:30\" :end \"2024-03-05T16:00\"})",
                "true",
            ),
            (
                "(time/overlaps? \"2024-03-05T14:00\" \"2024-03-05T15:00\" \"2024-03-05T15:00\" \"2024-03-05T16:00\")",
                "false",
            ),
        ],
        overlaps,
    ),
    Builtin::new(
        "time/min",
        &["[t & more]"],
        "The earliest of the times.",
        &[("(str (time/min \"2024-03-05\" \"2024-01-01\"))", "\"2024-01-01\"")],
        |machine, arguments| extreme(machine, arguments, Ordering::Less),
    ),
    Builtin::new(
        "time/max",
        &["[t & more]"],
        "The latest of the times.",
        &[("(str (time/max \"2024-03-05\" \"2024-01-01\"))", "\"2024-03-05\"")],
        |machine, arguments| extreme(machine, arguments, Ordering::Greater),
    ),
    Builtin::new(
        "time/weekend?",
        &["[t]"],
        "True for times on Saturdays and Sundays.",
        &[("(time/weekend? \"2024-03-09\")", "true"), ("(time/weekend? \"2024-03-08\")", "false")],
        |machine, arguments| {
            let time = given::time(machine, &arguments[0])?;
            Ok(Value::Bool(matches!(date_of(&time)?.weekday(), Weekday::Saturday | Weekday::Sunday)))
        },
    ),
];

/// Java's names.
pub const ALIASES: &[(&str, &str)] = &[
    (".isBefore", "time/before?"),
    (".before", "time/before?"),
    (".isAfter", "time/after?"),
    (".after", "time/after?"),
    (".isEqual", "time/equal?"),
    ("time/earliest", "time/min"),
    ("time/latest", "time/max"),
    ("time/between?", "time/within?"),
];

fn in_order(machine: &mut Machine, arguments: &mut [Value], test: fn(Ordering) -> bool) -> Outcome<Value> {
    let mut before = given::time(machine, &arguments[0])?;
    for next in &arguments[1..] {
        let next = given::time(machine, next)?;
        if !test(order(&before, &next)?) {
            return Ok(Value::Bool(false));
        }
        before = next;
    }
    Ok(Value::Bool(true))
}

fn extreme(machine: &mut Machine, arguments: &mut [Value], wanted: Ordering) -> Outcome<Value> {
    let mut best = given::time(machine, &arguments[0])?;
    for next in &arguments[1..] {
        let next = given::time(machine, next)?;
        if order(&next, &best)? == wanted {
            best = next;
        }
    }
    Ok(given::value(best))
}

/// Parses the two ends of an interval.
fn stretch(machine: &mut Machine, given: Value) -> Outcome<[Time; 2]> {
    const NAMES: [[&str; 2]; 6] = [
        ["start", "end"],
        ["from", "to"],
        ["start-time", "end-time"],
        ["starts-at", "ends-at"],
        ["start-date", "end-date"],
        ["begin", "end"],
    ];
    let ends = match &given {
        Value::Map(map) => NAMES.iter().find_map(|names| {
            let end = |name: &str| {
                let key = [Value::keyword(name), Value::string(name)];
                key.iter().find_map(|key| map.get(key).cloned())
            };
            Some([end(names[0])?, end(names[1])?])
        }),
        Value::Vector(vector) if vector.len() == 2 => {
            Some([0, 1].map(|at| vector.get(at).cloned().unwrap_or_default()))
        }
        _ => None,
    };
    let Some([start, end]) = ends else {
        return Err(
            Error::expected("a stretch of time: `[start end]` or a map with `:start` and `:end`", &given).into()
        );
    };
    Ok([given::time(machine, &start)?, given::time(machine, &end)?])
}

fn overlaps(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let times: [Time; 4] = if arguments.len() == 4 {
        let mut time = |at: usize| given::time(machine, &arguments[at]);
        [time(0)?, time(1)?, time(2)?, time(3)?]
    } else {
        let first = take(arguments, 0);
        let second = take(arguments, 1);
        let [[a, b], [c, d]] = [stretch(machine, first)?, stretch(machine, second)?];
        [a, b, c, d]
    };
    let zone = times.iter().find_map(zone_of).unwrap_or(TimeZone::UTC);
    let mut points = [Timestamp::UNIX_EPOCH; 4];
    for (point, time) in points.iter_mut().zip(&times) {
        *point = match time {
            Time::Clock(_) => {
                let local = super::calendar::local(time).unwrap_or_default();
                TimeZone::UTC.to_timestamp(local).map_err(|_| super::units::too_far())?
            }
            time => timestamp(time, &zone)?,
        };
    }
    let [a, b, c, d] = points;
    Ok(Value::Bool(a < d && c < b))
}
