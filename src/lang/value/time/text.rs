//! Formatting and parsing of dates and times in ISO 8601, as Java writes them.

use super::{Period, Time, is_fixed, zone};
use jiff::civil::{self, Date, DateTime, ISOWeekDate, Weekday};
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};
use std::fmt::{self, Write};

impl Time {
    /// Returns the text that follows the tag: the same as [`Display`](fmt::Display), except for points in time, which
    /// Clojure writes with milliseconds and `-00:00`. A fraction finer than milliseconds is written with nine digits.
    pub fn readable(&self) -> String {
        match self {
            Time::Instant(at) => {
                let local = TimeZone::UTC.to_datetime(*at);
                let nanos = local.subsec_nanosecond();
                let fraction =
                    if nanos % 1_000_000 == 0 { format!("{:03}", nanos / 1_000_000) } else { format!("{nanos:09}") };
                let mut out = String::new();
                // Writing to a string cannot fail.
                let _ = write_date(&mut out, local.date());
                let (hour, minute, second) = (local.hour(), local.minute(), local.second());
                let _ = write!(out, "T{hour:02}:{minute:02}:{second:02}.{fraction}-00:00");
                out
            }
            other => other.to_string(),
        }
    }

    /// Parses tagged text; `None` for tags that do not denote a time.
    ///
    /// # Errors
    /// Returns a sentence that describes the expected text.
    pub fn read(tag: &str, text: &str) -> Option<Result<Time, String>> {
        let pieces = || Pieces::read(text);
        let read = match tag {
            "inst" | "time/instant" => instant(text),
            "time/date" => pieces().and_then(|pieces| match pieces {
                Pieces { date: Some(date), clock: None, offset: None, zone: None } => Some(Time::Date(date)),
                _ => None,
            }),
            "time/time" => pieces().and_then(|pieces| match pieces {
                Pieces { date: None, clock: Some(clock), offset: None, zone: None } => Some(Time::Clock(clock)),
                _ => None,
            }),
            "time/date-time" => pieces().and_then(|pieces| match pieces {
                Pieces { date: Some(date), clock: Some(clock), offset: None, zone: None } => {
                    Some(Time::DateTime(date.to_datetime(clock)))
                }
                _ => None,
            }),
            "time/offset-date-time" | "time/zoned-date-time" => pieces().and_then(Pieces::zoned),
            "time/duration" => duration(text).map(Time::Duration),
            "time/period" => period(text).map(Time::Period),
            "time/year-month" => year_month(text).map(Time::YearMonth),
            "time/zone" => zone(text).map(Time::Zone),
            _ => return None,
        };
        Some(read.ok_or_else(|| format!("expected text such as `{}` after `#{tag}`", example(tag))))
    }
}

/// Returns an example of the text that follows a tag.
pub fn example(tag: &str) -> &'static str {
    match tag {
        "time/date" => "2024-02-29",
        "time/time" => "10:30:00",
        "time/date-time" => "2024-02-29T10:30:00",
        "time/zoned-date-time" => "2024-02-29T10:30:00+01:00[Europe/Paris]",
        "time/offset-date-time" => "2024-02-29T10:30:00+01:00",
        "time/duration" => "PT1H30M",
        "time/period" => "P1Y2M3D",
        "time/year-month" => "2024-02",
        "time/zone" => "Europe/Paris",
        _ => "2024-02-29T10:30:00Z",
    }
}

/// The parts of a date and time in ISO 8601; each can be missing.
#[derive(Clone, Copy, Debug)]
pub struct Pieces<'t> {
    /// The day
    pub date: Option<Date>,
    /// The time of day
    pub clock: Option<civil::Time>,
    /// The offset from UTC
    pub offset: Option<Offset>,
    /// The name of the zone
    pub zone: Option<&'t str>,
}

impl<'t> Pieces<'t> {
    /// Parses `2024-02-29`, `10:30`, `2024-02-29T10:30:05.5+01:00[Europe/Paris]` and similar forms. The whole text must
    /// match.
    pub fn read(text: &'t str) -> Option<Pieces<'t>> {
        let mut pieces = Pieces { date: None, clock: None, offset: None, zone: None };
        let mut rest = text;
        if let Some((date, after)) = leading_date(rest) {
            pieces.date = Some(date);
            rest = after;
            match rest.strip_prefix(['T', 't', ' ']) {
                None if rest.is_empty() => return Some(pieces),
                None => return None,
                Some(after) => rest = after,
            }
        }
        let (clock, after) = match rest.strip_prefix("24:00").map(|after| (after, midnight_again(after))) {
            // The end of a day is the beginning of the next one.
            Some((_, Some(after))) => {
                pieces.date = pieces.date.map(Date::tomorrow).transpose().ok()?;
                (civil::Time::midnight(), after)
            }
            _ => leading_clock(rest)?,
        };
        pieces.clock = Some(clock);
        rest = after;
        if let Some((offset, after)) = leading_offset(rest) {
            pieces.offset = Some(offset);
            rest = after;
        }
        if let Some(name) = rest.strip_prefix('[') {
            pieces.zone = Some(name.strip_suffix(']')?);
            rest = "";
        }
        rest.is_empty().then_some(pieces)
    }

    /// Returns the point in time that the parts denote, in its zone or at its offset.
    fn zoned(self) -> Option<Time> {
        let local = self.date?.to_datetime(self.clock?);
        let zoned = match (self.offset, self.zone) {
            (None, None) => return None,
            (Some(offset), None) => offset.to_timestamp(local).ok()?.to_zoned(TimeZone::fixed(offset)),
            (Some(offset), Some(name)) => offset.to_timestamp(local).ok()?.to_zoned(zone(name)?),
            (None, Some(name)) => local.to_zoned(zone(name)?).ok()?,
        };
        Some(Time::Zoned(Box::new(zoned)))
    }
}

/// Parses a point in time. Only the year is required, as in Clojure's `#inst`.
fn instant(text: &str) -> Option<Time> {
    let whole = match text.len() {
        4 => format!("{text}-01-01"),
        7 => format!("{text}-01"),
        _ => text.to_string(),
    };
    let pieces = Pieces::read(&whole)?;
    let local = pieces.date?.to_datetime(pieces.clock.unwrap_or(civil::Time::midnight()));
    let offset = pieces.offset.unwrap_or(Offset::UTC);
    pieces.zone.is_none().then_some(())?;
    offset.to_timestamp(local).ok().map(Time::Instant)
}

/// Parses a month of a year, `2024-02`. Returns its first day.
pub fn year_month(text: &str) -> Option<Date> {
    let (date, rest) = leading_date(&format!("{text}-01")).map(|(date, rest)| (date, rest.len()))?;
    (rest == 0).then_some(date)
}

/// Parses `count` digits at the start of a text. Returns the number and the rest.
fn digits(text: &str, count: usize) -> Option<(i16, &str)> {
    let (number, rest) = text.split_at_checked(count)?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then_some(())?;
    Some((number.parse().ok()?, rest))
}

fn leading_date(text: &str) -> Option<(Date, &str)> {
    let negative = text.starts_with('-');
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let length = unsigned.bytes().take_while(u8::is_ascii_digit).count();
    let (year, rest) = if length == 4 || length == 6 { digits(unsigned, length)? } else { return None };
    let (month, rest) = digits(rest.strip_prefix('-')?, 2)?;
    let (day, rest) = digits(rest.strip_prefix('-')?, 2)?;
    let date = Date::new(if negative { -year } else { year }, i8::try_from(month).ok()?, i8::try_from(day).ok()?);
    Some((date.ok()?, rest))
}

/// Parses the rest of `24:00`, `24:00:00` or `24:00:00.000`. Returns what follows it.
fn midnight_again(text: &str) -> Option<&str> {
    let Some(rest) = text.strip_prefix(':') else { return Some(text) };
    let rest = rest.strip_prefix("00")?;
    Some(rest.strip_prefix(['.', ',']).map_or(rest, |zeros| zeros.trim_start_matches('0')))
}

/// Parses a day with an offset from UTC and no time of day, as in XML: `2024-02-29+01:00`.
pub fn date_with_offset(text: &str) -> Option<Date> {
    let (date, rest) = leading_date(text)?;
    leading_offset(rest).filter(|(_, rest)| rest.is_empty()).map(|_| date)
}

/// Parses a day by its week (`2024-W10-2`, `2024W102`; Monday if the day is missing) or by its number in the year
/// (`2024-065`, `2024065`), at the start of a text. Returns the day and the rest.
pub fn week_or_ordinal(text: &str) -> Option<(Date, &str)> {
    let (year, rest) = digits(text, 4)?;
    let dashed = rest.strip_prefix('-');
    let rest = dashed.unwrap_or(rest);
    let Some(after) = rest.strip_prefix(['W', 'w']) else {
        let (day, rest) = digits(rest, 3)?;
        if rest.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            return None;
        }
        let first = Date::new(year, 1, 1).ok()?;
        let date = first.with().day_of_year(day).build().ok()?;
        return Some((date, rest));
    };
    let (week, rest) = digits(after, 2)?;
    let of_day = if dashed.is_some() { rest.strip_prefix('-') } else { Some(rest) };
    let (day, rest) = of_day.and_then(|rest| digits(rest, 1)).unwrap_or((1, rest));
    let day = Weekday::from_monday_one_offset(i8::try_from(day).ok()?).ok()?;
    let date = ISOWeekDate::new(year, i8::try_from(week).ok()?, day).ok()?.date();
    Some((date, rest))
}

fn leading_clock(text: &str) -> Option<(civil::Time, &str)> {
    let (hour, rest) = digits(text, 2)?;
    let (minute, mut rest) = digits(rest.strip_prefix(':')?, 2)?;
    let (mut second, mut nanos) = (0, 0);
    if let Some(after) = rest.strip_prefix(':') {
        (second, rest) = digits(after, 2)?;
        if let Some(after) = rest.strip_prefix(['.', ',']) {
            let length = after.bytes().take_while(u8::is_ascii_digit).count();
            nanos = fraction(after.get(..length)?)?;
            rest = &after[length..];
        }
    }
    let of = |number: i16| i8::try_from(number).ok();
    Some((civil::Time::new(of(hour)?, of(minute)?, of(second)?, nanos).ok()?, rest))
}

/// Converts the digits after the decimal point to nanoseconds.
pub fn fraction(digits: &str) -> Option<i32> {
    if digits.is_empty() || digits.len() > 9 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(digits.parse::<i32>().ok()? * 10_i32.pow(9 - digits.len() as u32))
}

/// Parses an offset from UTC at the start of a text: `Z`, `+01`, `+0100`, `+01:00` or `+01:00:30`. Returns the offset
/// and the rest.
pub fn leading_offset(text: &str) -> Option<(Offset, &str)> {
    if let Some(rest) = text.strip_prefix(['Z', 'z']) {
        return Some((Offset::UTC, rest));
    }
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let (hours, mut rest) = digits(text.strip_prefix(['+', '-'])?, 2)?;
    let mut seconds = i32::from(hours) * 3600;
    for unit in [60, 1] {
        match digits(rest.strip_prefix(':').unwrap_or(rest), 2) {
            Some((number, after)) if number < 60 => {
                seconds += i32::from(number) * unit;
                rest = after;
            }
            _ => break,
        }
    }
    Some((offset(sign * seconds)?, rest))
}

/// Returns the offset of that many seconds from UTC; `None` beyond the 18 hours that ISO 8601 and Java have.
pub fn offset(seconds: i32) -> Option<Offset> {
    const MOST: i32 = 18 * 3600;
    (-MOST..=MOST).contains(&seconds).then(|| Offset::from_seconds(seconds).ok())?
}

/// The parts of an ISO 8601 duration: the calendar part and the exact part.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lengths {
    /// Years, months and days
    pub period: Period,
    /// Hours, minutes and seconds
    pub exact: SignedDuration,
}

impl Lengths {
    /// Parses `P1Y2M3DT4H5M6.7S`. Each part can have its own sign.
    pub fn read(text: &str) -> Option<Lengths> {
        let signless = text.strip_prefix(['-', '+']).unwrap_or(text);
        let mut sign = if text.starts_with('-') { -1 } else { 1 };
        let mut rest = signless.strip_prefix(['P', 'p'])?;
        let whole_sign = sign;
        let mut lengths = Lengths::default();
        let mut exact = false;
        let mut parts = 0;
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix(['T', 't']) {
                if exact || after.is_empty() {
                    return None;
                }
                exact = true;
                rest = after;
                continue;
            }
            sign = whole_sign;
            if let Some(after) = rest.strip_prefix(['-', '+']) {
                sign = if rest.starts_with('-') { -whole_sign } else { whole_sign };
                rest = after;
            }
            let length = rest.bytes().take_while(u8::is_ascii_digit).count();
            let number = rest.get(..length)?.parse::<i64>().ok()? * sign;
            rest = &rest[length..];
            let mut nanos = 0;
            if let Some(after) = rest.strip_prefix(['.', ',']) {
                let length = after.bytes().take_while(u8::is_ascii_digit).count();
                nanos = fraction(&after[..length])?;
                rest = &after[length..];
                if !exact || !rest.starts_with(['S', 's']) {
                    return None;
                }
            }
            let unit = rest.chars().next()?;
            rest = &rest[unit.len_utf8()..];
            lengths.add(number, nanos * sign as i32, exact, unit.to_ascii_uppercase())?;
            parts += 1;
        }
        (parts > 0).then_some(lengths)
    }

    fn add(&mut self, number: i64, nanos: i32, exact: bool, unit: char) -> Option<()> {
        let add = |field: &mut i32, number: i64| -> Option<()> {
            *field = field.checked_add(i32::try_from(number).ok()?)?;
            Some(())
        };
        match (exact, unit) {
            (false, 'Y') => add(&mut self.period.years, number),
            (false, 'M') => add(&mut self.period.months, number),
            (false, 'W') => add(&mut self.period.days, number.checked_mul(7)?),
            (false, 'D') => add(&mut self.period.days, number),
            (true, 'H' | 'M' | 'S') => {
                let seconds = match unit {
                    'H' => 3600,
                    'M' => 60,
                    _ => 1,
                };
                let part = SignedDuration::new(number.checked_mul(seconds)?, nanos);
                self.exact = self.exact.checked_add(part)?;
                Some(())
            }
            _ => None,
        }
    }
}

/// Parses a duration without years and months. A day counts as twenty-four hours.
pub fn duration(text: &str) -> Option<SignedDuration> {
    let lengths = Lengths::read(text)?;
    let Period { years: 0, months: 0, days } = lengths.period else { return None };
    lengths.exact.checked_add(SignedDuration::from_secs(i64::from(days) * 86_400))
}

/// Parses a period, which has no hours, minutes and seconds.
pub fn period(text: &str) -> Option<Period> {
    let lengths = Lengths::read(text)?;
    lengths.exact.is_zero().then_some(lengths.period)
}

fn write_date(out: &mut impl Write, date: Date) -> fmt::Result {
    let sign = if date.year() < 0 { "-" } else { "" };
    write!(out, "{sign}{:04}-{:02}-{:02}", date.year().unsigned_abs(), date.month(), date.day())
}

/// Writes a time of day. Omits zero seconds unless `seconds` is set.
fn write_clock(out: &mut impl Write, clock: civil::Time, seconds: bool) -> fmt::Result {
    write!(out, "{:02}:{:02}", clock.hour(), clock.minute())?;
    let nanos = clock.subsec_nanosecond();
    if seconds || clock.second() != 0 || nanos != 0 {
        write!(out, ":{:02}", clock.second())?;
    }
    match nanos {
        0 => Ok(()),
        n if n % 1_000_000 == 0 => write!(out, ".{:03}", n / 1_000_000),
        n if n % 1_000 == 0 => write!(out, ".{:06}", n / 1_000),
        n => write!(out, ".{n:09}"),
    }
}

fn write_local(out: &mut impl Write, local: DateTime) -> fmt::Result {
    write_date(out, local.date())?;
    out.write_char('T')?;
    write_clock(out, local.time(), false)
}

/// Writes an offset from UTC as `Z` or `+01:00`.
pub fn write_offset(out: &mut impl Write, offset: Offset) -> fmt::Result {
    let seconds = offset.seconds();
    if seconds == 0 {
        return out.write_char('Z');
    }
    let (sign, seconds) = (if seconds < 0 { '-' } else { '+' }, seconds.abs());
    write!(out, "{sign}{:02}:{:02}", seconds / 3600, seconds / 60 % 60)?;
    if seconds % 60 == 0 { Ok(()) } else { write!(out, ":{:02}", seconds % 60) }
}

fn write_instant(out: &mut impl Write, at: Timestamp) -> fmt::Result {
    let local = TimeZone::UTC.to_datetime(at);
    write_date(out, local.date())?;
    out.write_char('T')?;
    write_clock(out, local.time(), true)?;
    out.write_char('Z')
}

fn write_duration(out: &mut impl Write, duration: SignedDuration) -> fmt::Result {
    let (whole, nanos) = (duration.as_secs(), duration.subsec_nanos());
    let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
    out.write_str("PT")?;
    if hours != 0 {
        write!(out, "{hours}H")?;
    }
    if minutes != 0 {
        write!(out, "{minutes}M")?;
    }
    if seconds == 0 && nanos == 0 {
        return if whole == 0 { out.write_str("0S") } else { Ok(()) };
    }
    let sign = if seconds == 0 && nanos < 0 { "-" } else { "" };
    write!(out, "{sign}{seconds}")?;
    if nanos != 0 {
        let digits = format!("{:09}", nanos.unsigned_abs());
        write!(out, ".{}", digits.trim_end_matches('0'))?;
    }
    out.write_char('S')
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('P')?;
        for (number, unit) in [(self.years, 'Y'), (self.months, 'M'), (self.days, 'D')] {
            if number != 0 {
                write!(f, "{number}{unit}")?;
            }
        }
        if *self == Period::default() { f.write_str("0D") } else { Ok(()) }
    }
}

/// Writes ISO 8601 as Java does, without the tag.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Time::Instant(at) => write_instant(f, *at),
            Time::Date(date) => write_date(f, *date),
            Time::Clock(clock) => write_clock(f, *clock, false),
            Time::DateTime(local) => write_local(f, *local),
            Time::Zoned(zoned) => {
                write_local(f, zoned.datetime())?;
                write_offset(f, zoned.offset())?;
                match zoned.time_zone().iana_name() {
                    Some(name) if !is_fixed(zoned) => write!(f, "[{name}]"),
                    _ => Ok(()),
                }
            }
            Time::Duration(duration) => write_duration(f, *duration),
            Time::Period(period) => write!(f, "{period}"),
            Time::YearMonth(first) => {
                let mut text = String::new();
                write_date(&mut text, *first)?;
                f.write_str(text.strip_suffix("-01").unwrap_or(&text))
            }
            Time::Zone(zone) => match (zone.iana_name(), zone.to_fixed_offset()) {
                (Some(name), _) => f.write_str(name),
                (None, Ok(offset)) => write_offset(f, offset),
                (None, Err(_)) => f.write_str("UTC"),
            },
        }
    }
}
