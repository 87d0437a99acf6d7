//! Recognising dates and times in the free-form text of mail, calendars, logs and invoices.

use super::calendar::in_zone;
use super::epoch::epoch_text;
use super::names::{month, weekday, zone_of_word};
use crate::error::Error;
use crate::value::time::text::{Pieces, date_with_offset, fraction, offset as offset_of, week_or_ordinal, year_month};
use crate::value::time::{Time, zone};
use jiff::civil::{self, Date};
use jiff::tz::{Offset, TimeZone};

/// Maximum length of a date, in bytes.
const LONGEST: usize = 200;

/// The components of a date and time.
#[derive(Debug, Default)]
pub struct Parts {
    /// Year, month and day
    pub date: Option<Date>,
    /// Time of day
    pub clock: Option<civil::Time>,
    /// Offset from UTC
    pub offset: Option<Offset>,
    /// Time zone
    pub zone: Option<TimeZone>,
}

impl Parts {
    /// Combines the parts to a value: an instant if they denote a time in UTC, a date and time with or without an
    /// offset or zone, or a single part. Fails if there is neither a date nor a time of day, or if the result is out of
    /// range.
    pub fn time(self) -> Result<Time, Error> {
        let zone = self.zone.or_else(|| self.offset.map(TimeZone::fixed));
        match (self.date, self.clock, zone) {
            (Some(date), Some(clock), Some(zone)) => {
                let local = date.to_datetime(clock);
                let zoned = match self.offset {
                    Some(offset) => offset.to_timestamp(local).map_err(|_| super::units::too_far())?.to_zoned(zone),
                    None => in_zone(local, &zone, None)?,
                };
                Ok(if *zoned.time_zone() == TimeZone::UTC {
                    Time::Instant(zoned.timestamp())
                } else {
                    Time::Zoned(Box::new(zoned))
                })
            }
            (Some(date), Some(clock), None) => Ok(Time::DateTime(date.to_datetime(clock))),
            (Some(date), None, _) => Ok(Time::Date(date)),
            (None, Some(clock), _) => Ok(Time::Clock(clock)),
            (None, None, _) => Err(Error::new("InvalidTime", "there is neither a date nor a time in it")),
        }
    }
}

/// Creates the error for text that is not a date.
pub fn unreadable(text: &str, why: &str) -> Error {
    let shown: String = text.chars().take(60).collect();
    Error::new("InvalidTime", format!("cannot read a date or time from `{shown}`{why}")).suggest(
        "write it as `2024-03-05T14:00:00Z` or `5 Mar 2024 14:00 +0100`, or give its pattern: (time/parse s \"dd.MM.yyyy HH:mm\")",
    )
}

/// Parses a date or time. `day_first` resolves an ambiguous order of day and month.
///
/// # Errors
/// Returns `InvalidTime` if the text is not recognised, or `AmbiguousDate` if the order of day and month is unknown.
pub fn recognise(text: &str, day_first: Option<bool>) -> Result<Time, Error> {
    let trimmed = text.trim();
    if trimmed.len() > LONGEST || trimmed.is_empty() {
        return Err(unreadable(text, ""));
    }
    let by_week = week_or_ordinal(trimmed).map(|(date, rest)| format!("{date}{rest}"));
    if let Some(pieces) = Pieces::read(by_week.as_deref().unwrap_or(trimmed)) {
        let Pieces { date, clock, offset, zone: name } = pieces;
        let zone = match name {
            Some(name) => Some(zone(name).ok_or_else(|| unreadable(text, ": there is no such zone"))?),
            None => None,
        };
        return Parts { date, clock, offset, zone }.time();
    }
    if let Some(date) = date_with_offset(trimmed) {
        return Ok(Time::Date(date));
    }
    if let Some(first) = year_month(trimmed) {
        return Ok(Time::YearMonth(first));
    }
    if let Some(at) = epoch_text(trimmed) {
        return Ok(Time::Instant(at));
    }
    let mut words = Words::new(trimmed, day_first);
    words.read()?;
    words.finish()
}

/// A token of text.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Token<'t> {
    Number(&'t str),
    Word(&'t str),
    Mark(char),
}

/// The minus sign, which a hyphen before a number is unless it follows a word or another number.
const MINUS: char = '\u{2212}';

/// Tokenizes text, and skips comments in parentheses, which occur in mail.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    let mut nesting = 0_usize;
    let mut joins = false;
    while let Some(first) = rest.chars().next() {
        let run = |test: fn(char) -> bool| rest.find(|c| !test(c)).unwrap_or(rest.len());
        let length = match first {
            c if c.is_ascii_digit() => run(|c| c.is_ascii_digit()),
            c if c.is_alphabetic() => run(|c| c.is_alphabetic() || c == '_'),
            c => c.len_utf8(),
        };
        let (piece, after) = rest.split_at(length);
        rest = after;
        match first {
            '(' => nesting += 1,
            ')' => nesting = nesting.saturating_sub(1),
            _ if nesting > 0 || first.is_whitespace() => {}
            c if c.is_ascii_digit() => found.push(Token::Number(piece)),
            c if c.is_alphabetic() => found.push(Token::Word(piece)),
            // ` - ` between two parts is no sign.
            '-' if rest.starts_with(char::is_whitespace) => found.push(Token::Mark(',')),
            '-' if !joins && rest.starts_with(|c: char| c.is_ascii_digit()) => found.push(Token::Mark(MINUS)),
            c => found.push(Token::Mark(c)),
        }
        joins = first.is_alphanumeric();
    }
    found
}

/// The state of a token-by-token parser.
struct Words<'t> {
    text: &'t str,
    tokens: Vec<Token<'t>>,
    at: usize,
    day_first: Option<bool>,
    year: Option<i16>,
    month: Option<i8>,
    day: Option<i8>,
    clock: Option<civil::Time>,
    offset: Option<Offset>,
    zone: Option<TimeZone>,
    /// The time was `24:00`, the beginning of the next day.
    ends_day: bool,
}

impl<'t> Words<'t> {
    fn new(text: &'t str, day_first: Option<bool>) -> Words<'t> {
        Words {
            text,
            tokens: tokens(text),
            at: 0,
            day_first,
            year: None,
            month: None,
            day: None,
            clock: None,
            offset: None,
            zone: None,
            ends_day: false,
        }
    }

    fn peek(&self, ahead: usize) -> Option<Token<'t>> {
        self.tokens.get(self.at + ahead).copied()
    }

    fn read(&mut self) -> Result<(), Error> {
        while let Some(token) = self.peek(0) {
            let understood = match token {
                Token::Number(digits) => self.number(digits)?,
                Token::Word(word) => self.word(word),
                Token::Mark(mark) => self.mark(mark),
            };
            if !understood {
                let shown = match token {
                    Token::Number(text) | Token::Word(text) => text.to_string(),
                    Token::Mark(mark) => mark.to_string(),
                };
                return Err(unreadable(self.text, &format!(": `{shown}` is not understood there")));
            }
        }
        Ok(())
    }

    fn word(&mut self, word: &str) -> bool {
        let mut length = 1;
        let lower = word.to_lowercase();
        if weekday(word).is_some() || matches!(&*lower, "at" | "on" | "of" | "the" | "t") {
        } else if let Some(month) = month(word) {
            if self.month.replace(month).is_some() {
                return false;
            }
        } else {
            // `America/Argentina/Buenos_Aires`
            let mut name = word.to_string();
            while let (Some(Token::Mark('/')), Some(Token::Word(next))) = (self.peek(length), self.peek(length + 1)) {
                name.push('/');
                name.push_str(next);
                length += 2;
            }
            match zone_of_word(&name) {
                Some(zone) if self.zone.is_none() => self.zone = Some(zone),
                _ => return false,
            }
        }
        self.at += length;
        true
    }

    fn mark(&mut self, mark: char) -> bool {
        match mark {
            '+' | '-' | MINUS if self.clock.is_some() && (mark != '-' || self.offset.is_none()) => {
                let Some(Token::Number(digits)) = self.peek(1) else { return false };
                let mut used = 2;
                let (hours, mut minutes) = match digits.len() {
                    1 | 2 => (digits, "0"),
                    4 => digits.split_at(2),
                    _ => return false,
                };
                if let (Some(Token::Mark(':')), Some(Token::Number(digits))) = (self.peek(2), self.peek(3)) {
                    (minutes, used) = (digits, 4);
                }
                let number = |digits: &str| digits.parse::<i32>().ok().filter(|n| *n < 60);
                let (Some(hours), Some(minutes)) = (number(hours), number(minutes)) else { return false };
                let sign = if mark == '+' { 1 } else { -1 };
                let Some(offset) = offset_of(sign * (hours * 3600 + minutes * 60)) else { return false };
                // Go writes the offset once more as the name of the zone, `+0300 +03`.
                if self.offset.replace(offset).is_some_and(|before| before != offset) {
                    return false;
                }
                // `GMT+1` is an offset relative to GMT, not a time in GMT.
                if self.zone.as_ref().is_some_and(|zone| *zone == TimeZone::UTC) {
                    self.zone = None;
                }
                self.at += used;
            }
            ',' | '.' | '[' | ']' | '-' => self.at += 1,
            ':' if self.year.is_some() && self.clock.is_none() => self.at += 1,
            _ => return false,
        }
        true
    }

    fn number(&mut self, digits: &str) -> Result<bool, Error> {
        if let (Some(Token::Mark(mark @ ('/' | '-' | '.' | ':'))), Some(middle), Some(Token::Mark(again)), Some(last)) =
            (self.peek(1), self.peek(2), self.peek(3), self.peek(4))
            && mark == again
            && (mark != ':' || digits.len() == 4)
            && self.day.is_none()
            && let Token::Number(last) = last
        {
            match middle {
                Token::Number(middle) => self.numeric(mark, digits, middle, last)?,
                Token::Word(word) => match (month(word), digits.len()) {
                    (Some(month), 4) => self.set(year(digits), Some(month), small(last)),
                    (Some(month), _) => self.set(year(last), Some(month), small(digits)),
                    _ => return Ok(false),
                },
                Token::Mark(_) => return Ok(false),
            }
            self.at += 5;
            return Ok(true);
        }
        if self.clock.is_none() && self.clock_at(digits) {
            return Ok(true);
        }
        let compact = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
        match digits.len() {
            8 | 12 | 14 if self.day.is_none() && self.year.is_none() => {
                self.set(year(compact(0, 4)), small(compact(4, 6)), small(compact(6, 8)));
                if digits.len() > 8 {
                    self.set_clock(compact(8, 10), compact(10, 12), compact(12, 14), "");
                }
            }
            4 | 6 if self.year.is_some() && self.day.is_some() && self.clock.is_none() => {
                self.set_clock(compact(0, 2), compact(2, 4), compact(4, 6), "");
                if self.clock.is_none() {
                    return Ok(false);
                }
            }
            4 if self.year.is_none() => self.year = year(digits),
            1 | 2 if self.day.is_none() => {
                self.day = small(digits);
                if let Some(Token::Word(suffix)) = self.peek(1)
                    && ["st", "nd", "rd", "th"].iter().any(|known| known.eq_ignore_ascii_case(suffix))
                {
                    self.at += 1;
                }
            }
            2 if self.year.is_none() => self.year = year(digits),
            _ => return Ok(false),
        }
        self.at += 1;
        Ok(true)
    }

    /// Parses `14:00`, `14:00:05.5`, `2:30 PM`, `2pm`, `2:30 p.m.`
    fn clock_at(&mut self, hours: &str) -> bool {
        let mut used = 1;
        let (mut minutes, mut seconds, mut part) = ("0", "", "");
        if hours.len() > 2 {
            return false;
        }
        let number_behind = |used: usize, marks: &[char]| match (self.peek(used), self.peek(used + 1)) {
            (Some(Token::Mark(mark)), Some(Token::Number(digits))) if marks.contains(&mark) => Some(digits),
            _ => None,
        };
        if let Some(digits) = number_behind(used, &[':']) {
            (minutes, used) = (digits, 3);
            if let Some(digits) = number_behind(used, &[':']) {
                (seconds, used) = (digits, 5);
                if let Some(digits) = number_behind(used, &['.', ',']) {
                    (part, used) = (digits, 7);
                }
            }
        }
        let mut afternoon = None;
        if let Some(Token::Word(word)) = self.peek(used) {
            afternoon = match &*word.to_lowercase() {
                "am" => Some(false),
                "pm" => Some(true),
                "a" | "p" if matches!(self.peek(used + 2), Some(Token::Word("m" | "M"))) => {
                    used += 2;
                    Some(word.eq_ignore_ascii_case("p"))
                }
                _ => None,
            };
            used += usize::from(afternoon.is_some());
        }
        if used == 1 {
            return false;
        }
        let hour = match (small(hours), afternoon) {
            (Some(hour @ 1..=12), Some(afternoon)) => hour % 12 + if afternoon { 12 } else { 0 },
            (Some(hour), None) => hour,
            _ => return false,
        };
        self.set_clock(&hour.to_string(), minutes, seconds, part);
        self.at += used;
        self.clock.is_some()
    }

    fn set_clock(&mut self, hours: &str, minutes: &str, seconds: &str, part: &str) {
        let is_zero = |digits: &str| digits.bytes().all(|digit| digit == b'0');
        self.ends_day = hours == "24" && [minutes, seconds, part].into_iter().all(is_zero);
        self.clock = clock(if self.ends_day { "0" } else { hours }, minutes, seconds, part);
    }

    fn set(&mut self, year: Option<i16>, month: Option<i8>, day: Option<i8>) {
        (self.year, self.month, self.day) = (year, month, day);
    }

    /// Parses three numbers. A first number of four digits, or one that is no day, is the year, followed by month and day;
    /// otherwise the year comes last. If `day_first` is not given, the day comes first with dots or if only the first
    /// number exceeds 12.
    fn numeric(&mut self, mark: char, first: &str, second: &str, third: &str) -> Result<(), Error> {
        if first.len() == 4 {
            self.set(year(first), small(second), small(third));
            return Ok(());
        }
        let written = format!("{first}{mark}{second}{mark}{third}");
        let (Some(a), Some(b), 2 | 4) = (small(first), small(second), third.len()) else {
            return Err(unreadable(self.text, &format!(": `{written}` is not a date")));
        };
        let day_first = match self.day_first {
            Some(day_first) => day_first,
            None if mark == '.' => true,
            None if a > 31 && third.len() == 2 => {
                self.set(year(first), Some(b), small(third));
                return Ok(());
            }
            None if a > 12 && b > 12 => return Err(unreadable(self.text, &format!(": `{written}` is not a date"))),
            None if a > 12 && b <= 12 => true,
            None if (b > 12 && a <= 12) || a == b => false,
            None => return Err(ambiguous(&written, a, b)),
        };
        let (day, month) = if day_first { (a, b) } else { (b, a) };
        self.set(year(third), Some(month), Some(day));
        Ok(())
    }

    fn finish(self) -> Result<Time, Error> {
        let Words { text, year, month, day, clock, offset, zone, ends_day, .. } = self;
        let lacks = |what: &str| unreadable(text, &format!(": it has no {what}"));
        let date = match (year, month, day) {
            (None, None, None) => None,
            (Some(year), Some(month), Some(day)) => Some(Date::new(year, month, day).map_err(|_| {
                unreadable(text, &format!(": there is no day {day} in month {month} of the year {year}"))
            })?),
            (Some(year), Some(month), None) if clock.is_none() => {
                let first = Date::new(year, month, 1).map_err(|_| unreadable(text, ": there is no such month"))?;
                return Ok(Time::YearMonth(first));
            }
            (None, Some(_), Some(_)) => {
                let error = lacks("year");
                return Err(error.suggest("put the year before it, as in (time/parse (str \"2024 \" s))"));
            }
            (_, None, _) => return Err(lacks("month")),
            _ => return Err(lacks("day")),
        };
        let date = match date {
            Some(date) if ends_day => Some(date.tomorrow().map_err(|_| unreadable(text, ""))?),
            date => date,
        };
        Parts { date, clock, offset, zone }.time().map_err(|_| unreadable(text, ""))
    }
}

fn ambiguous(written: &str, a: i8, b: i8) -> Error {
    let shown: String = written.chars().take(30).collect();
    Error::new("AmbiguousDate", format!("`{shown}` may be day-first or month-first")).suggest(format!(
        "say which: (time/parse s :day-first true) reads day {a} of month {b}, `:day-first false` day {b} of month {a}; or give a pattern: (time/parse s \"dd/MM/yyyy\")"
    ))
}

fn small(digits: &str) -> Option<i8> {
    digits.parse().ok()
}

/// Parses a year. Two digits denote a year from 1970 to 2069.
fn year(digits: &str) -> Option<i16> {
    let number = digits.parse::<i16>().ok()?;
    Some(match digits.len() {
        2 if number < 70 => 2000 + number,
        2 => 1900 + number,
        _ => number,
    })
}

/// Builds a time of day; a leap second, written as 60, becomes second 59.
fn clock(hours: &str, minutes: &str, seconds: &str, part: &str) -> Option<civil::Time> {
    let second = if seconds.is_empty() { 0 } else { small(seconds)? };
    let nanos = if part.is_empty() { 0 } else { fraction(part.get(..9).unwrap_or(part))? };
    let second = if second == 60 { 59 } else { second };
    civil::Time::new(small(hours)?, small(minutes)?, second, nanos).ok()
}
