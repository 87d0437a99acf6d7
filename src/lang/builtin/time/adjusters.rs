//! `TemporalAdjusters`: rules that move a date. A rule is a keyword, or a vector of a keyword and a day of the week.

use super::calendar::{plus_days, plus_months};
use super::names::weekday;
use super::units::too_far;
use crate::builtin::arguments::{integer, take};
use crate::error::{Error, Outcome};
use crate::native::Builtin;
use crate::value::Value;
use jiff::civil::{Date, Weekday};

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "TemporalAdjusters/firstDayOfMonth",
        &["[]"],
        "Adjuster to the first day of the month.",
        &[("(str (.with (LocalDate/of 2024 2 10) (TemporalAdjusters/firstDayOfMonth)))", "\"2024-02-01\"")],
        |_, _| Ok(Value::keyword("first-day-of-month")),
    ),
    Builtin::new(
        "TemporalAdjusters/lastDayOfMonth",
        &["[]"],
        "Adjuster to the last day of the month.",
        &[("(str (.with (LocalDate/of 2024 2 10) (TemporalAdjusters/lastDayOfMonth)))", "\"2024-02-29\"")],
        |_, _| Ok(Value::keyword("last-day-of-month")),
    ),
    Builtin::new(
        "TemporalAdjusters/firstDayOfNextMonth",
        &["[]"],
        "Adjuster to the first day of the next month.",
        &[("(str (.with (LocalDate/of 2024 2 10) (TemporalAdjusters/firstDayOfNextMonth)))", "\"2024-03-01\"")],
        |_, _| Ok(Value::keyword("first-day-of-next-month")),
    ),
    Builtin::new(
        "TemporalAdjusters/firstDayOfYear",
        &["[]"],
        "Adjuster to the first day of the year.",
        &[("(str (.with (LocalDate/of 2024 2 10) (TemporalAdjusters/firstDayOfYear)))", "\"2024-01-01\"")],
        |_, _| Ok(Value::keyword("first-day-of-year")),
    ),
    Builtin::new(
        "TemporalAdjusters/lastDayOfYear",
        &["[]"],
        "Adjuster to the last day of the year.",
        &[("(str (.with (LocalDate/of 2024 2 10) (TemporalAdjusters/lastDayOfYear)))", "\"2024-12-31\"")],
        |_, _| Ok(Value::keyword("last-day-of-year")),
    ),
    Builtin::new(
        "TemporalAdjusters/firstDayOfNextYear",
        &["[]"],
        "Adjuster to the first day of the next year.",
        &[("(str (.with (LocalDate/of 2024 2 10) (TemporalAdjusters/firstDayOfNextYear)))", "\"2025-01-01\"")],
        |_, _| Ok(Value::keyword("first-day-of-next-year")),
    ),
    Builtin::new(
        "TemporalAdjusters/next",
        &["[day]"],
        "Adjuster to the next such day of the week.",
        &[("(str (.with (LocalDate/of 2024 2 10) (TemporalAdjusters/next DayOfWeek/MONDAY)))", "\"2024-02-12\"")],
        |_, arguments| rule("next", arguments),
    ),
    Builtin::new(
        "TemporalAdjusters/nextOrSame",
        &["[day]"],
        "Adjuster to the same day or the next such day of the week.",
        &[("(str (.with (LocalDate/of 2024 2 12) (TemporalAdjusters/nextOrSame DayOfWeek/MONDAY)))", "\"2024-02-12\"")],
        |_, arguments| rule("next-or-same", arguments),
    ),
    Builtin::new(
        "TemporalAdjusters/previous",
        &["[day]"],
        "Adjuster to the previous such day of the week.",
        &[("(str (.with (LocalDate/of 2024 2 12) (TemporalAdjusters/previous DayOfWeek/MONDAY)))", "\"2024-02-05\"")],
        |_, arguments| rule("previous", arguments),
    ),
    Builtin::new(
        "TemporalAdjusters/previousOrSame",
        &["[day]"],
        "Adjuster to the same day or the previous such day of the week.",
        &[(
            "(str (.with (LocalDate/of 2024 2 14) (TemporalAdjusters/previousOrSame DayOfWeek/MONDAY)))",
            "\"2024-02-12\"",
        )],
        |_, arguments| rule("previous-or-same", arguments),
    ),
    Builtin::new(
        "TemporalAdjusters/firstInMonth",
        &["[day]"],
        "Adjuster to the month's first such day of the week.",
        &[(
            "(str (.with (LocalDate/of 2024 2 14) (TemporalAdjusters/firstInMonth DayOfWeek/MONDAY)))",
            "\"2024-02-05\"",
        )],
        |_, arguments| rule("first-in-month", arguments),
    ),
    Builtin::new(
        "TemporalAdjusters/lastInMonth",
        &["[day]"],
        "Adjuster to the month's last such day of the week.",
        &[(
            "(str (.with (LocalDate/of 2024 2 14) (TemporalAdjusters/lastInMonth DayOfWeek/MONDAY)))",
            "\"2024-02-26\"",
        )],
        |_, arguments| rule("last-in-month", arguments),
    ),
];

fn rule(name: &str, arguments: &mut [Value]) -> Outcome<Value> {
    day(&arguments[0])?;
    Ok(Value::vector(vec![Value::keyword(name), take(arguments, 0)]))
}

/// Parses a day of the week: its name as a string or keyword, or its number, where Monday is 1.
fn day(given: &Value) -> Result<Weekday, Error> {
    let number = match given {
        Value::Str(name) => weekday(name.as_str()),
        Value::Keyword(name) => weekday(name.as_str()),
        other => integer(other).ok().and_then(|number| i8::try_from(number).ok()),
    };
    let day = number.and_then(|number| Weekday::from_monday_one_offset(number).ok());
    day.ok_or_else(|| Error::expected("a day of the week such as `DayOfWeek/MONDAY` or `:monday`", given))
}

/// Moves a date by a rule.
///
/// # Errors
/// Returns `TypeError` if the value is not a rule, or `ArithmeticError` if the result is outside of the calendar.
pub fn adjusted(date: Date, adjuster: &Value) -> Result<Date, Error> {
    let unknown = || {
        Error::expected("a rule of `TemporalAdjusters`, a date or a time of day", adjuster)
            .suggest("such as (TemporalAdjusters/firstDayOfMonth) or (TemporalAdjusters/next DayOfWeek/MONDAY)")
    };
    let of_year = |month: i8, day: i8| Date::new(date.year(), month, day).map_err(|_| too_far());
    match adjuster {
        Value::Keyword(name) => match name.as_str() {
            "first-day-of-month" => Ok(date.first_of_month()),
            "last-day-of-month" => Ok(date.last_of_month()),
            "first-day-of-next-month" => plus_months(date.first_of_month(), 1),
            "first-day-of-year" => of_year(1, 1),
            "last-day-of-year" => of_year(12, 31),
            "first-day-of-next-year" => plus_months(of_year(1, 1)?, 12),
            _ => Err(unknown()),
        },
        Value::Vector(rule) if rule.len() == 2 => {
            let (Some(Value::Keyword(name)), Some(given)) = (rule.get(0), rule.get(1)) else { return Err(unknown()) };
            let wanted = day(given)?;
            // The number of days until and since the wanted day of the week.
            let until = |date: Date| i64::from(date.weekday().until(wanted));
            let since = |date: Date| i64::from(date.weekday().since(wanted));
            let full = |days: i64| if days == 0 { 7 } else { days };
            match name.as_str() {
                "next" => plus_days(date, full(until(date))),
                "next-or-same" => plus_days(date, until(date)),
                "previous" => plus_days(date, -full(since(date))),
                "previous-or-same" => plus_days(date, -since(date)),
                "first-in-month" => {
                    let first = date.first_of_month();
                    plus_days(first, until(first))
                }
                "last-in-month" => {
                    let last = date.last_of_month();
                    plus_days(last, -since(last))
                }
                _ => Err(unknown()),
            }
        }
        _ => Err(unknown()),
    }
}
