//! The factory methods of the `java.time` classes: `LocalDate/of`, `LocalDateTime/parse` and related ones.

use super::calendar::{of_epoch_day, plus_days};
use super::given::{self, bounded, clock_of, date_of, value};
use super::names::{MONTHS, WEEKDAYS, month, weekday};
use super::units::{Amount, Unit, too_far};
use crate::builtin::arguments::{integer, string};
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;
use crate::value::time::Time;
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

/// The builtins defined in this file.
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
        "The date `days` days after 1970-01-01.",
        &[("(str (LocalDate/ofEpochDay 19723))", "\"2024-01-01\"")],
        |_, arguments| Ok(value(Time::Date(of_epoch_day(integer(&arguments[0])?)?))),
    ),
    Builtin::new(
        "LocalDate/ofYearDay",
        &["[year day]"],
        "The date of day `day` of the year.",
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
        "The time of day `seconds` after midnight.",
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
        "The date and time `seconds` after 1970, at an offset from UTC.",
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
        "The name of a day of the week; Monday is 1.",
        &[("(DayOfWeek/of 3)", "\"WEDNESDAY\"")],
        |_, arguments| {
            let day = bounded(&arguments[0], "the day of the week", 1, 7)?;
            Ok(Value::string(&WEEKDAYS[day as usize - 1].to_uppercase()))
        },
    ),
    Builtin::new(
        "DayOfWeek/valueOf",
        &["[name]"],
        "The name of a day of the week, validated.",
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
        "The name of a month; January is 1.",
        &[("(Month/of 2)", "\"FEBRUARY\"")],
        |_, arguments| {
            let month = bounded(&arguments[0], "the month", 1, 12)?;
            Ok(Value::string(&MONTHS[month as usize - 1].to_uppercase()))
        },
    ),
    Builtin::new(
        "Month/valueOf",
        &["[name]"],
        "The name of a month, validated.",
        &[("(Month/valueOf \"MARCH\")", "\"MARCH\"")],
        |_, arguments| of_name(&arguments[0], &MONTHS, "a month such as \"MARCH\""),
    ),
    Builtin::new("Month/values", &["[]"], "The names of the months.", &[("(count (Month/values))", "12")], |_, _| {
        Ok(Value::vector(MONTHS.iter().map(|name| Value::string(&name.to_uppercase())).collect()))
    }),
    Builtin::new(
        ".getValue",
        &["[x]"],
        "The number of a day of the week (Monday is 1), of a month or of a year; the value of a map entry.",
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
        "The English name of a day of the week or a month: full, short or as one letter.",
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
        "The zone `hours` hours from UTC.",
        &[("(str (ZoneOffset/ofHours -5))", "\"-05:00\"")],
        |_, arguments| offset(bounded(&arguments[0], "the hours from UTC", -18, 18)? * 3600),
    ),
    Builtin::new(
        "ZoneOffset/ofHoursMinutes",
        &["[hours minutes]"],
        "The zone at an offset in hours and minutes from UTC.",
        &[("(str (ZoneOffset/ofHoursMinutes 5 30))", "\"+05:30\"")],
        |_, arguments| {
            let hours = bounded(&arguments[0], "the hours from UTC", -18, 18)?;
            offset(hours * 3600 + bounded(&arguments[1], "the minutes from UTC", -59, 59)? * 60)
        },
    ),
    Builtin::new(
        "Duration/ofDays",
        &["[n]"],
        "A duration of `n` days of 24 hours.",
        &[("(str (Duration/ofDays 1))", "\"PT24H\"")],
        |_, arguments| Ok(value(Time::Duration(Amount::times(&arguments[0], Unit::Days(1))?.duration()?))),
    ),
];

/// Java's other names.
pub const ALIASES: &[(&str, &str)] = &[("OffsetDateTime/of", "ZonedDateTime/of")];

fn offset(seconds: i64) -> Outcome<Value> {
    let offset = i32::try_from(seconds).ok().and_then(crate::value::time::text::offset);
    Ok(value(Time::Zone(TimeZone::fixed(offset.ok_or_else(too_far)?))))
}

fn of_name(given: &Value, names: &[&str], what: &str) -> Outcome<Value> {
    let name = string(given)?;
    if name.len() < 12 && names.iter().any(|known| known.to_uppercase() == name) {
        return Ok(given.clone());
    }
    let error = Error::unmet("IllegalArgument", format!("{what}, got {}", crate::error::describe(given)));
    Err(error.suggest("they are written in capitals").into())
}

/// Builds a local date and time from a date and a time of day, from one value with both, or from numbers.
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
        _ => Err(Error::unmet("ArityError", "a year, month, day, hour and minute").into()),
    }
}
