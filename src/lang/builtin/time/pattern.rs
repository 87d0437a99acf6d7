//! Date patterns: Java's (`yyyy-MM-dd HH:mm`), the formatters that Java names, and strftime's (`%Y-%m-%d`).

use super::recognise::Parts;
use super::{pattern_read, pattern_write};
use crate::error::Error;
use crate::value::time::Time;
use jiff::fmt::strtime::BrokenDownTime;

/// Maximum length of a pattern, in bytes.
const LONGEST: usize = 500;

/// A component of a pattern.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// Literal text
    Text(String),
    /// A pattern letter and its repeat count
    Field(char, usize),
    /// Start of an optional section, which extends to the matching `End`
    Optional,
    /// End of an optional section
    End,
}

/// Letters with a meaning in Java's patterns.
const LETTERS: &str = "GuyYMLdDQqEecahHkKmsSnNAVzOXxZwW";

/// Letters that only the named formatters use: `f` is a fraction of the second if there is one, `R` the zone's name in
/// square brackets if it has one, `J`, `j` and `i` the year, week and day of the week by ISO 8601, `g` the offset from
/// UTC as `GMT` or `+0100`.
const PRIVATE: &str = "fRJjig";

/// Java's named formatters and their patterns.
const NAMED: &[(&str, &str)] = &[
    ("ISO_LOCAL_DATE", "uuuu-MM-dd"),
    ("ISO_DATE", "uuuu-MM-dd[XXX]"),
    ("ISO_OFFSET_DATE", "uuuu-MM-ddXXX"),
    ("BASIC_ISO_DATE", "uuuuMMdd[XX]"),
    ("ISO_LOCAL_TIME", "HH:mm[:ssf]"),
    ("ISO_TIME", "HH:mm[:ssf][XXX]"),
    ("ISO_OFFSET_TIME", "HH:mm[:ssf]XXX"),
    ("ISO_LOCAL_DATE_TIME", "uuuu-MM-dd'T'HH:mm[:ssf]"),
    ("ISO_OFFSET_DATE_TIME", "uuuu-MM-dd'T'HH:mm[:ssf]XXX"),
    ("ISO_ZONED_DATE_TIME", "uuuu-MM-dd'T'HH:mm[:ssf]XXXR"),
    ("ISO_DATE_TIME", "uuuu-MM-dd'T'HH:mm[:ssf][XXX][R]"),
    ("ISO_INSTANT", "uuuu-MM-dd'T'HH:mm:ssfXXX"),
    ("ISO_ORDINAL_DATE", "uuuu-DDD[XXX]"),
    ("ISO_WEEK_DATE", "JJJJ-'W'jj-i[XXX]"),
    ("RFC_1123_DATE_TIME", "[EEE, ]d MMM uuuu HH:mm[:ss] g"),
];

/// Returns the value of `DateTimeFormatter/NAME`, which is the name itself.
pub fn named(name: &str) -> Option<&'static str> {
    NAMED.iter().find(|(known, _)| *known == name).map(|(known, _)| *known)
}

/// A compiled pattern.
pub enum Pattern {
    /// A pattern of Java's
    Java(Vec<Item>),
    /// A pattern for a point in time in UTC
    Instant(Vec<Item>),
    /// A strftime pattern
    Percent(String),
}

/// Creates the error for an invalid pattern.
fn invalid(pattern: &str, why: &str, instead: &str) -> Error {
    let shown: String = pattern.chars().take(60).collect();
    Error::new("InvalidPattern", format!("the pattern `{shown}` {why}")).suggest(instead.to_string())
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// Returns `InvalidPattern` if the pattern is too long or malformed.
    pub fn read(pattern: &str) -> Result<Pattern, Error> {
        if pattern.len() > LONGEST {
            return Err(invalid(pattern, "is too long", "a pattern has at most 500 characters"));
        }
        if pattern.contains('%') {
            return Ok(Pattern::Percent(pattern.to_string()));
        }
        if let Some((name, items)) = NAMED.iter().find(|(name, _)| *name == pattern) {
            let items = compile(items, true)?;
            return Ok(if *name == "ISO_INSTANT" { Pattern::Instant(items) } else { Pattern::Java(items) });
        }
        let items = compile(pattern, false)?;
        check(pattern, &items)?;
        Ok(Pattern::Java(items))
    }

    /// Formats a time.
    ///
    /// # Errors
    /// Returns `TypeError` if the pattern requires a field that the time does not have, or `InvalidPattern` if a
    /// strftime pattern does not fit the time.
    pub fn write(&self, time: &Time) -> Result<String, Error> {
        match self {
            Pattern::Java(items) => pattern_write::write(items, time),
            Pattern::Instant(items) => {
                let zone = jiff::tz::TimeZone::UTC;
                let at = super::calendar::timestamp(time, &zone)?;
                pattern_write::write(items, &Time::Zoned(Box::new(at.to_zoned(zone))))
            }
            Pattern::Percent(pattern) => {
                let broken = match time {
                    Time::Instant(at) => BrokenDownTime::from(*at),
                    Time::Date(date) | Time::YearMonth(date) => BrokenDownTime::from(*date),
                    Time::Clock(clock) => BrokenDownTime::from(*clock),
                    Time::DateTime(local) => BrokenDownTime::from(*local),
                    Time::Zoned(zoned) => BrokenDownTime::from(&**zoned),
                    other => return Err(pattern_write::not_formattable(other)),
                };
                broken.to_string(pattern).map_err(|error| {
                    invalid(
                        pattern,
                        &format!("does not fit {}: {error}", time.kind()),
                        "see strftime: %Y-%m-%d %H:%M:%S",
                    )
                })
            }
        }
    }

    /// Parses a time from text.
    ///
    /// # Errors
    /// Returns `InvalidTime` if the text does not match the pattern.
    pub fn parse(&self, text: &str, pattern: &str) -> Result<Time, Error> {
        match self {
            Pattern::Java(items) | Pattern::Instant(items) => pattern_read::read(items, text, pattern)?.time(),
            Pattern::Percent(pattern) => {
                let broken = BrokenDownTime::parse(pattern, text)
                    .map_err(|error| pattern_read::misfit(text, pattern, &error.to_string()))?;
                if let Some(at) = broken.timestamp() {
                    return Ok(Time::Instant(at));
                }
                let date = broken.to_date().ok();
                let clock = broken.hour().and(broken.to_time().ok());
                let zone = broken.iana_time_zone().and_then(crate::value::time::zone);
                if date.is_none() && clock.is_none() {
                    return Err(pattern_read::misfit(text, pattern, "it names no whole date"));
                }
                Parts { date, clock, offset: broken.offset(), zone }.time()
            }
        }
    }
}

/// Compiles a pattern of Java's; `private` permits the letters reserved for named formatters.
fn compile(pattern: &str, private: bool) -> Result<Vec<Item>, Error> {
    let mut items: Vec<Item> = Vec::new();
    let text = |items: &mut Vec<Item>, c: char| match items.last_mut() {
        Some(Item::Text(text)) => text.push(c),
        _ => items.push(Item::Text(c.to_string())),
    };
    let mut open = 0_usize;
    let mut letters = pattern.chars().peekable();
    while let Some(c) = letters.next() {
        match c {
            '\'' if letters.next_if_eq(&'\'').is_some() => text(&mut items, '\''),
            '\'' => loop {
                match letters.next() {
                    Some('\'') if letters.next_if_eq(&'\'').is_some() => text(&mut items, '\''),
                    Some('\'') => break,
                    Some(c) => text(&mut items, c),
                    None => return Err(invalid(pattern, "has a quote that is not closed", "write '' for a quote")),
                }
            },
            '[' => {
                open += 1;
                items.push(Item::Optional);
            }
            ']' if open > 0 => {
                open -= 1;
                items.push(Item::End);
            }
            c if c.is_ascii_alphabetic() => {
                let mut count = 1;
                while letters.next_if_eq(&c).is_some() {
                    count += 1;
                }
                if !(LETTERS.contains(c) || private && PRIVATE.contains(c)) {
                    let instead = "letters stand for parts of the date, as in `yyyy-MM-dd HH:mm:ss`; text goes between quotes: 'T'";
                    return Err(invalid(pattern, &format!("has the letter `{c}`, which means nothing there"), instead));
                }
                let most = if c == 'W' { 1 } else { 2 };
                if matches!(c, 'w' | 'W') && count > most || (c == 'c' && count == 2) {
                    let letters = c.to_string().repeat(count.min(9));
                    let instead = "a week is `w` or `ww`, the week of a month `W`, a day of the week `c` or `ccc`";
                    return Err(invalid(pattern, &format!("has `{letters}`, which means nothing there"), instead));
                }
                items.push(Item::Field(c, count));
            }
            c => text(&mut items, c),
        }
    }
    for _ in 0..open {
        items.push(Item::End);
    }
    Ok(items)
}

/// Rejects letters that are valid but commonly confused with others, such as `Y` for the year or `m` for the month.
fn check(pattern: &str, items: &[Item]) -> Result<(), Error> {
    let has = |letters: &str| items.iter().any(|item| matches!(item, Item::Field(c, _) if letters.contains(*c)));
    if has("Y") && has("Md") && !has("w") {
        return Err(invalid(
            pattern,
            "has `Y`, the year that a week belongs to",
            "the year is `yyyy`, as in `yyyy-MM-dd`",
        ));
    }
    if has("D") && has("M") && !has("d") {
        return Err(invalid(
            pattern,
            "has `D`, the day of the year",
            "the day of the month is `dd`, as in `yyyy-MM-dd`",
        ));
    }
    if has("m") && has("yu") && !has("HhKkM") {
        return Err(invalid(pattern, "has `m`, which is minutes", "the month is `MM`, as in `yyyy-MM-dd`"));
    }
    Ok(())
}
