//! Parsing dates with Java's patterns: English names, case-insensitive.

use super::names::{month, weekday, zone_of_word};
use super::pattern::Item;
use super::pattern_write::end;
use super::recognise::Parts;
use super::weeks::{self, Count};
use crate::error::Error;
use crate::value::time::text::{fraction, leading_offset};
use crate::value::time::zone;
use jiff::civil::{self, Date, Weekday};
use jiff::tz::{Offset, TimeZone};

/// The fields parsed so far.
#[derive(Clone, Debug, Default)]
struct Fields {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    /// The week-based year
    week_year: Option<i64>,
    /// The number of the week in that year
    week: Option<i64>,
    /// The week numbering scheme
    count: Count,
    week_of_month: Option<i64>,
    weekday: Option<Weekday>,
    hour: Option<i64>,
    /// The hour of a twelve-hour clock
    half_hour: Option<i64>,
    afternoon: Option<bool>,
    minute: Option<i64>,
    second: Option<i64>,
    nanos: Option<i32>,
    offset: Option<Offset>,
    zone: Option<TimeZone>,
}

/// Creates the error for text that does not match a pattern.
pub fn misfit(text: &str, pattern: &str, why: &str) -> Error {
    let shown: String = text.chars().take(60).collect();
    Error::new("InvalidTime", format!("`{shown}` does not fit the pattern `{pattern}`: {why}")).suggest(
        "a pattern is `yyyy-MM-dd HH:mm`, `EEE, d MMM yyyy` or `%Y-%m-%d`; (time/parse s) without one reads most spellings",
    )
}

/// Parses text with a pattern.
///
/// # Errors
/// Returns `InvalidTime` if the text does not match the pattern.
pub fn read(items: &[Item], text: &str, pattern: &str) -> Result<Parts, Error> {
    let mut fields = Fields::default();
    let mut rest = text;
    // The state at the start of each open optional section, for backtracking.
    let mut starts: Vec<(&str, Fields)> = Vec::new();
    let mut at = 0;
    while let Some(item) = items.get(at) {
        at += 1;
        let after = match item {
            Item::Text(wanted) => rest.strip_prefix(wanted.as_str()),
            Item::Field(letter, count) => fields.take(rest, *letter, *count),
            Item::Optional => {
                starts.push((rest, fields.clone()));
                Some(rest)
            }
            Item::End => {
                starts.pop();
                Some(rest)
            }
        };
        match (after, item) {
            (Some(after), _) => rest = after,
            (None, item) => match starts.pop() {
                Some((start, before)) => {
                    (rest, fields) = (start, before);
                    at += end(&items[at..]);
                }
                None => {
                    let wanted = match item {
                        Item::Text(text) => format!("`{text}`"),
                        Item::Field(letter, count) => what(*letter, *count),
                        Item::Optional | Item::End => String::new(),
                    };
                    let here: String = rest.chars().take(20).collect();
                    return Err(misfit(
                        text,
                        pattern,
                        &match &*here {
                            "" => format!("expected {wanted}, but the text ends"),
                            here => format!("expected {wanted} at `{here}`"),
                        },
                    ));
                }
            },
        }
    }
    if !rest.is_empty() {
        let here: String = rest.chars().take(20).collect();
        return Err(misfit(text, pattern, &format!("`{here}` is left over")));
    }
    fields.parts().map_err(|why| misfit(text, pattern, &why))
}

/// Describes what a pattern letter expects, for messages.
fn what(letter: char, count: usize) -> String {
    let pattern = letter.to_string().repeat(count.min(9));
    let meaning = match letter {
        'u' | 'y' | 'Y' | 'J' => "a year",
        'M' | 'L' if count > 2 => "the name of a month",
        'M' | 'L' => "a month",
        'd' => "a day",
        'D' => "a day of the year",
        'E' | 'e' | 'c' | 'i' => "a day of the week",
        'w' | 'j' => "a week of the year",
        'W' => "a week of the month",
        'H' | 'h' | 'k' | 'K' => "hours",
        'm' => "minutes",
        's' => "seconds",
        'S' => "a fraction of a second",
        'a' => "AM or PM",
        _ => "a zone",
    };
    match count {
        2 if !matches!(letter, 'V' | 'X' | 'x') => format!("{meaning} of two digits (`{pattern}`)"),
        _ => format!("{meaning} (`{pattern}`)"),
    }
}

/// Returns a year in the range of the calendar.
fn near(year: i64) -> Result<i16, String> {
    i16::try_from(year).map_err(|_| "the year is too far away".to_string())
}

/// Splits a number of `least` to `most` digits from the start of text.
fn number(text: &str, least: usize, most: usize) -> Option<(i64, &str)> {
    let length = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
    if length < least {
        return None;
    }
    let (digits, rest) = text.split_at(length);
    Some((digits.parse().ok()?, rest))
}

/// Splits a word from the start of text.
fn word(text: &str) -> Option<(&str, &str)> {
    let length = text.find(|c: char| !c.is_alphabetic()).unwrap_or(text.len());
    (length > 0).then(|| text.split_at(length))
}

impl Fields {
    /// Parses the field of a pattern letter; returns the remaining text, or `None` if the text does not match.
    fn take<'t>(&mut self, text: &'t str, letter: char, count: usize) -> Option<&'t str> {
        let digits = |most: usize| number(text, count.min(most), if count == 1 { most } else { count });
        match letter {
            'G' => {
                let (era, rest) = word(text)?;
                return era.eq_ignore_ascii_case("ad").then_some(rest);
            }
            'u' | 'y' | 'Y' | 'J' => {
                let negative = text.strip_prefix('-').filter(|_| letter == 'u');
                let (year, rest) = number(negative.unwrap_or(text), count, if count == 1 { 4 } else { count })?;
                let year = if count == 2 { 2000 + year } else { year };
                let year = if negative.is_some() { -year } else { year };
                let place = if matches!(letter, 'Y' | 'J') { &mut self.week_year } else { &mut self.year };
                *place = Some(year);
                return Some(rest);
            }
            'M' | 'L' if count > 2 => {
                let (name, rest) = word(text)?;
                self.month = Some(month(name)?.into());
                return Some(rest);
            }
            'E' | 'e' | 'c' if letter == 'E' || count > 2 => {
                let (name, rest) = word(text)?;
                self.weekday = Some(weeks::weekday(weekday(name)?.into(), Count::Iso)?);
                return Some(rest);
            }
            'a' => {
                let (name, rest) = word(text)?;
                self.afternoon = match &*name.to_ascii_lowercase() {
                    "am" => Some(false),
                    "pm" => Some(true),
                    _ => return None,
                };
                return Some(rest);
            }
            'S' | 'f' => {
                let text = if letter == 'f' {
                    match text.strip_prefix(['.', ',']) {
                        Some(text) => text,
                        None => return Some(text),
                    }
                } else {
                    text
                };
                let most = if letter == 'f' { 9 } else { count };
                let length = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
                if letter == 'S' && length < count {
                    return None;
                }
                self.nanos = Some(fraction(&text[..length.min(9)])?);
                return Some(&text[length..]);
            }
            'X' | 'x' | 'Z' | 'O' | 'g' | 'V' | 'z' | 'R' => return self.take_zone(text, letter),
            _ => {}
        }
        let (read, rest) = match letter {
            'W' | 'e' | 'c' | 'i' => number(text, count, count)?,
            'D' => digits(3)?,
            'n' | 'N' | 'A' => digits(18)?,
            _ => digits(2)?,
        };
        match letter {
            'M' | 'L' => self.month = Some(read),
            'd' => self.day = Some(read),
            'D' => self.day_of_year = Some(read),
            'w' => self.week = Some(read),
            'j' => (self.week, self.count) = (Some(read), Count::Iso),
            'W' => self.week_of_month = Some(read),
            'e' | 'c' => self.weekday = Some(weeks::weekday(read, Count::English)?),
            'i' => self.weekday = Some(weeks::weekday(read, Count::Iso)?),
            'H' | 'k' => self.hour = Some(read % if letter == 'k' { 24 } else { 100 }),
            'h' | 'K' => self.half_hour = Some(if letter == 'h' && read == 12 { 0 } else { read }),
            'm' => self.minute = Some(read),
            's' => self.second = Some(read),
            'n' => self.nanos = i32::try_from(read).ok(),
            _ => {}
        }
        Some(rest)
    }

    fn take_zone<'t>(&mut self, text: &'t str, letter: char) -> Option<&'t str> {
        if letter == 'R' {
            let Some(inside) = text.strip_prefix('[') else { return Some(text) };
            let (name, rest) = inside.split_once(']')?;
            self.zone = Some(zone(name)?);
            return Some(rest);
        }
        let plain = match text.get(..3) {
            Some(start) if "OZg".contains(letter) && start.eq_ignore_ascii_case("gmt") => &text[3..],
            _ => text,
        };
        if let Some((offset, rest)) = leading_offset(plain) {
            self.offset = Some(offset);
            return Some(rest);
        }
        if plain.len() < text.len() {
            self.offset = Some(Offset::UTC);
            return Some(plain);
        }
        let length = text.find(|c: char| !(c.is_alphanumeric() || "/_+-".contains(c))).unwrap_or(text.len());
        let (name, rest) = text.split_at(length);
        self.zone = Some(zone_of_word(name).or_else(|| zone(name))?);
        Some(rest)
    }

    /// Returns the date denoted by a week of a year or of a month and a day of the week, if such fields were parsed.
    fn date_of_week(&self) -> Result<Option<Date>, String> {
        let number = match (self.week, self.week_of_month) {
            (None, None) if self.week_year.is_some() => return Err("it names no week".to_string()),
            (None, None) => return Ok(None),
            (Some(week), _) => week,
            (None, Some(week)) => week,
        };
        let day = self.weekday.ok_or("it has no day of the week")?;
        let year = if self.week.is_some() { self.week_year } else { self.year };
        let year = year.ok_or("it has no year of the week, which is `YYYY`")?;
        let year = near(year)?;
        let date = match (self.week, self.month) {
            (Some(week), _) => weeks::date_of_week(year, week, day, self.count),
            (None, Some(month)) => Date::new(year, i8::try_from(month).unwrap_or(-1), 1)
                .ok()
                .and_then(|first| weeks::date_in_month(first, number, day)),
            (None, None) => return Err("it has no month".to_string()),
        };
        date.map(Some).ok_or(format!("there is no such day in week {number}"))
    }

    fn parts(self) -> Result<Parts, String> {
        let small = |number: i64| i8::try_from(number).unwrap_or(-1);
        let of_week = if self.day.is_none() && self.day_of_year.is_none() { self.date_of_week()? } else { None };
        let year = self.year.map(near);
        let date = match (year.transpose()?, self.month, self.day, self.day_of_year) {
            _ if of_week.is_some() => of_week,
            (Some(year), Some(month), day, None) => {
                let day = day.unwrap_or(1);
                let date = Date::new(year, small(month), small(day));
                Some(date.map_err(|_| format!("there is no day {day} in month {month} of the year {year}"))?)
            }
            (Some(year), None, None, day) => {
                let days = day.unwrap_or(1) - 1;
                let first = Date::new(year, 1, 1).ok();
                let date = first.and_then(|first| super::calendar::plus_days(first, days).ok());
                Some(date.filter(|date| date.year() == year).ok_or("there is no such day of the year")?)
            }
            (None, None, None, None) => None,
            (None, ..) => return Err("it has no year".to_string()),
            _ => return Err("it has no month".to_string()),
        };
        let hour = match (self.hour, self.half_hour, self.afternoon) {
            (Some(hour), ..) => Some(hour),
            (None, Some(hour), afternoon) => Some(hour + if afternoon == Some(true) { 12 } else { 0 }),
            _ => None,
        };
        let clock = match hour {
            None => None,
            Some(hour) => {
                let (minute, second) = (self.minute.unwrap_or(0), self.second.unwrap_or(0));
                let clock = civil::Time::new(small(hour), small(minute), small(second), self.nanos.unwrap_or(0));
                Some(clock.map_err(|_| format!("there is no time {hour}:{minute:02}:{second:02}"))?)
            }
        };
        if let (Some(date), Some(weekday)) = (date, self.weekday)
            && date.weekday() != weekday
        {
            return Err(format!("{date} is no {weekday:?}"));
        }
        if date.is_none() && clock.is_none() {
            return Err("it names neither a date nor hours".to_string());
        }
        Ok(Parts { date, clock, offset: self.offset, zone: self.zone })
    }
}
