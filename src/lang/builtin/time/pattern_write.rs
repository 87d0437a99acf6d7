//! Formatting dates with Java's patterns, in English.

use super::calendar::clock_nanos;
use super::names::{MONTHS, WEEKDAYS};
use super::pattern::Item;
use super::weeks::{Count, week, week_of_month};
use crate::error::Error;
use crate::value::time::Time;
use crate::value::time::text::write_offset;
use jiff::Timestamp;
use jiff::civil::{self, Date};
use jiff::tz::{Offset, TimeZone};
use std::fmt::Write;

/// The fields of a time that a pattern can show.
struct View<'t> {
    time: &'t Time,
    date: Option<Date>,
    clock: Option<civil::Time>,
    offset: Option<Offset>,
    zone: Option<(TimeZone, Timestamp)>,
}

/// Creates the error for a value that cannot be formatted.
pub fn not_formattable(time: &Time) -> Error {
    Error::unmet("TypeError", format!("a date or a time to format, got {} ({time})", time.kind()))
}

impl View<'_> {
    fn of(time: &Time) -> Result<View<'_>, Error> {
        let mut view = View { time, date: None, clock: None, offset: None, zone: None };
        match time {
            Time::Instant(at) => {
                let local = TimeZone::UTC.to_datetime(*at);
                (view.date, view.clock) = (Some(local.date()), Some(local.time()));
                (view.offset, view.zone) = (Some(Offset::UTC), Some((TimeZone::UTC, *at)));
            }
            Time::Date(date) | Time::YearMonth(date) => view.date = Some(*date),
            Time::Clock(clock) => view.clock = Some(*clock),
            Time::DateTime(local) => (view.date, view.clock) = (Some(local.date()), Some(local.time())),
            Time::Zoned(zoned) => {
                (view.date, view.clock) = (Some(zoned.date()), Some(zoned.time()));
                view.offset = Some(zoned.offset());
                view.zone = Some((zoned.time_zone().clone(), zoned.timestamp()));
            }
            other => return Err(not_formattable(other)),
        }
        Ok(view)
    }

    fn lacks(&self, what: &str) -> Error {
        Error::new("TypeError", format!("{} has no {what}", self.time.kind())).suggest(match what {
            "zone" => "give it one: (time/in-zone t \"Europe/Paris\"), or take the zone out of the pattern",
            _ => "take it out of the pattern, or make a date and time: (time/date-time t)",
        })
    }

    fn date(&self) -> Result<Date, Error> {
        self.date.ok_or_else(|| self.lacks("date"))
    }

    fn clock(&self) -> Result<civil::Time, Error> {
        self.clock.ok_or_else(|| self.lacks("time of day"))
    }

    fn offset(&self) -> Result<Offset, Error> {
        self.offset.ok_or_else(|| self.lacks("zone"))
    }
}

/// Formats a time with a pattern.
///
/// # Errors
/// Returns `TypeError` if the pattern requires a field that the time does not have.
pub fn write(items: &[Item], time: &Time) -> Result<String, Error> {
    let view = View::of(time)?;
    let mut out = String::new();
    // Output length at the start of each open optional section, for backtracking.
    let mut starts: Vec<usize> = Vec::new();
    let mut at = 0;
    while let Some(item) = items.get(at) {
        at += 1;
        match item {
            Item::Text(text) => out.push_str(text),
            Item::Optional => starts.push(out.len()),
            Item::End => drop(starts.pop()),
            Item::Field(letter, count) => {
                if let Err(error) = field(&mut out, &view, *letter, *count) {
                    let Some(start) = starts.pop() else { return Err(error) };
                    out.truncate(start);
                    at += end(&items[at..]);
                }
            }
        }
    }
    Ok(out)
}

/// Returns the number of items up to and including the end of the current optional section.
pub fn end(items: &[Item]) -> usize {
    let mut open = 1;
    for (at, item) in items.iter().enumerate() {
        match item {
            Item::Optional => open += 1,
            Item::End => open -= 1,
            _ => {}
        }
        if open == 0 {
            return at + 1;
        }
    }
    items.len()
}

fn name(out: &mut String, name: &str, count: usize) {
    out.push_str(match count {
        4 => name,
        5 => &name[..1],
        _ => &name[..3],
    });
}

fn field(out: &mut String, view: &View, letter: char, count: usize) -> Result<(), Error> {
    let number: i64 = match letter {
        'G' => {
            let era = if view.date()?.year() > 0 { ["AD", "Anno Domini"] } else { ["BC", "Before Christ"] };
            let era = era[usize::from(count == 4)];
            out.push_str(if count == 5 { &era[..1] } else { era });
            return Ok(());
        }
        'u' | 'y' | 'Y' | 'J' => {
            let date = view.date()?;
            let year = match letter {
                'Y' => week(date, Count::English).0,
                'J' => week(date, Count::Iso).0,
                _ => date.year(),
            };
            let of_era = if letter == 'y' && year < 1 { 1 - year } else { year };
            if count == 2 { i64::from(of_era.rem_euclid(100)) } else { of_era.into() }
        }
        'M' | 'L' if count > 2 => {
            name(out, MONTHS[view.date()?.month() as usize - 1], count);
            return Ok(());
        }
        'M' | 'L' => view.date()?.month().into(),
        'd' => view.date()?.day().into(),
        'D' => view.date()?.day_of_year().into(),
        'Q' | 'q' => {
            let quarter = (i64::from(view.date()?.month()) + 2) / 3;
            let ordinal = ["1st", "2nd", "3rd", "4th"][quarter as usize - 1];
            match count {
                3 => out.push_str(&format!("Q{quarter}")),
                4 => out.push_str(&format!("{ordinal} quarter")),
                5 => return padded(out, quarter, 1),
                _ => return padded(out, quarter, count),
            }
            return Ok(());
        }
        'w' => week(view.date()?, Count::English).1,
        'j' => week(view.date()?, Count::Iso).1,
        'W' => week_of_month(view.date()?),
        'i' => view.date()?.weekday().to_monday_one_offset().into(),
        'E' | 'e' | 'c' if letter == 'E' || count > 2 => {
            name(out, WEEKDAYS[view.date()?.weekday().to_monday_zero_offset() as usize], count);
            return Ok(());
        }
        'e' | 'c' => view.date()?.weekday().to_sunday_one_offset().into(),
        'a' => {
            out.push_str(if view.clock()?.hour() < 12 { "AM" } else { "PM" });
            return Ok(());
        }
        'H' => view.clock()?.hour().into(),
        'k' => (i64::from(view.clock()?.hour()) + 23) % 24 + 1,
        'K' => i64::from(view.clock()?.hour()) % 12,
        'h' => (i64::from(view.clock()?.hour()) + 11) % 12 + 1,
        'm' => view.clock()?.minute().into(),
        's' => view.clock()?.second().into(),
        'S' => {
            let digits = format!("{:09}", view.clock()?.subsec_nanosecond());
            out.push_str(&digits[..count.min(9)]);
            return Ok(());
        }
        'f' => {
            let digits = format!("{:09}", view.clock()?.subsec_nanosecond());
            match digits.trim_end_matches('0') {
                "" => {}
                digits => out.push_str(&format!(".{digits}")),
            }
            return Ok(());
        }
        'n' => view.clock()?.subsec_nanosecond().into(),
        'N' => i64::try_from(clock_nanos(view.clock()?)).unwrap_or_default(),
        'A' => i64::try_from(clock_nanos(view.clock()?) / 1_000_000).unwrap_or_default(),
        _ => return zone_field(out, view, letter, count),
    };
    padded(out, number, count)
}

fn padded(out: &mut String, number: i64, count: usize) -> Result<(), Error> {
    let sign = if number < 0 { "-" } else { "" };
    // Writing to a string never fails.
    let _ = write!(out, "{sign}{:0count$}", number.unsigned_abs(), count = count.min(20));
    Ok(())
}

fn zone_field(out: &mut String, view: &View, letter: char, count: usize) -> Result<(), Error> {
    let offset = view.offset()?;
    let mut colons = String::new();
    // Writing to a string never fails.
    let _ = write_offset(&mut colons, offset);
    if offset.is_zero() && !matches!((letter, count), ('X', _) | ('Z', 5) | ('V' | 'R', _)) {
        colons = "+00:00".to_string();
    }
    let plain = colons.replace(':', "");
    let short = plain.strip_suffix("00").filter(|short| short.len() == 3).unwrap_or(&plain);
    match (letter, count) {
        ('X' | 'x', 1) => out.push_str(short),
        ('X' | 'x', 2 | 4) | ('Z', 1..=3) => out.push_str(&plain),
        ('X' | 'x', _) | ('Z', 5) => out.push_str(&colons),
        ('Z' | 'O', 4) if offset.is_zero() => out.push_str("GMT"),
        ('Z' | 'O', 4) => out.push_str(&format!("GMT{colons}")),
        ('O', _) => {
            let hours = offset.seconds() / 3600;
            let minutes = offset.seconds().abs() / 60 % 60;
            match (hours, minutes) {
                (0, 0) => out.push_str("GMT"),
                (_, 0) => out.push_str(&format!("GMT{hours:+}")),
                _ => out.push_str(&format!("GMT{hours:+}:{minutes:02}")),
            }
        }
        ('g', _) if offset.is_zero() => out.push_str("GMT"),
        ('g', _) => out.push_str(&plain),
        (letter, _) => {
            let (zone, at) = view.zone.as_ref().ok_or_else(|| view.lacks("zone"))?;
            match (letter, zone.iana_name()) {
                ('R', Some("UTC") | None) => {}
                ('R', Some(name)) => out.push_str(&format!("[{name}]")),
                ('V', Some(name)) => out.push_str(name),
                ('z', Some(_)) => out.push_str(zone.to_offset_info(*at).abbreviation()),
                _ => out.push_str(&colons),
            }
        }
    }
    Ok(())
}
