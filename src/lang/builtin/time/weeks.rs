//! Week numbering in patterns. English weeks begin on Sunday, and the first week of a year or month is the one that
//! contains its first day. Only the formatter `ISO_WEEK_DATE` uses ISO 8601 weeks.

use super::calendar::plus_days;
use jiff::civil::{Date, ISOWeekDate, Weekday};

/// A week numbering scheme.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Count {
    /// English: weeks begin on Sunday.
    #[default]
    English,
    /// ISO 8601: weeks begin on Monday.
    Iso,
}

/// Returns the week-based year of a date and the number of the week in it.
pub fn week(date: Date, count: Count) -> (i16, i64) {
    if count == Count::Iso {
        let week = date.iso_week_date();
        return (week.year(), week.week().into());
    }
    // The week belongs to the year of its Saturday.
    let saturday = i64::from(date.day_of_year()) + 6 - i64::from(date.weekday().to_sunday_zero_offset());
    if saturday > i64::from(date.days_in_year()) {
        return (date.year().saturating_add(1), 1);
    }
    (date.year(), (saturday - 1) / 7 + 1)
}

/// Returns the number of a date's week in its month.
pub fn week_of_month(date: Date) -> i64 {
    let first = i64::from(date.first_of_month().weekday().to_sunday_zero_offset());
    (i64::from(date.day()) - 1 + first) / 7 + 1
}

/// Returns the day of the week with a number, counting from 1.
pub fn weekday(number: i64, count: Count) -> Option<Weekday> {
    let number = i8::try_from(number).ok()?;
    match count {
        Count::English => Weekday::from_sunday_one_offset(number).ok(),
        Count::Iso => Weekday::from_monday_one_offset(number).ok(),
    }
}

/// Returns the date of a day in a week of a year; `None` if the year has no such week.
pub fn date_of_week(year: i16, number: i64, day: Weekday, count: Count) -> Option<Date> {
    if count == Count::Iso {
        return ISOWeekDate::new(year, i8::try_from(number).ok()?, day).ok().map(|week| week.date());
    }
    let first = Date::new(year, 1, 1).ok()?;
    let days = (number - 1) * 7 + i64::from(day.to_sunday_zero_offset() - first.weekday().to_sunday_zero_offset());
    plus_days(first, days).ok().filter(|date| week(*date, count) == (year, number))
}

/// Returns the date of a day in a week of a month; `None` if the month has no such day.
pub fn date_in_month(first: Date, number: i64, day: Weekday) -> Option<Date> {
    let days = (number - 1) * 7 + i64::from(day.to_sunday_zero_offset() - first.weekday().to_sunday_zero_offset());
    plus_days(first, days).ok().filter(|date| date.first_of_month() == first)
}
