//! Dates, times, zones and durations: jiff's, under the names of `java.time`.
//!
//! They print as tagged text that reads back: `#inst "…"` for a point in time, `#time/date "2024-02-29"`
//! and their kin for the others. The zones' rules are part of the program: the host's are never read.

use jiff::civil::{self, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp, Zoned};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

/// A date, a time, or a length of time.
#[derive(Clone, Debug)]
pub enum Time {
    /// A point in time
    Instant(Timestamp),
    /// A day of the calendar
    Date(civil::Date),
    /// A time of day
    Clock(civil::Time),
    /// A day and a time of day, wherever that may be
    DateTime(DateTime),
    /// A point in time as a zone, or a fixed distance from UTC, shows it
    Zoned(Box<Zoned>),
    /// A length of time in seconds and nanoseconds
    Duration(SignedDuration),
    /// A length of time in units of the calendar: years, months, weeks, days
    Period(Box<Span>),
    /// A time zone
    Zone(TimeZone),
}

impl Time {
    /// What a person calls this kind of value, with its article.
    pub fn kind(&self) -> &'static str {
        match self {
            Time::Instant(_) => "an instant",
            Time::Date(_) => "a date",
            Time::Clock(_) => "a time of day",
            Time::DateTime(_) => "a date and time",
            Time::Zoned(zoned) if is_fixed(zoned) => "a date and time with an offset",
            Time::Zoned(_) => "a date and time with a zone",
            Time::Duration(_) => "a duration",
            Time::Period(_) => "a period",
            Time::Zone(_) => "a time zone",
        }
    }

    /// The tag that its text stands behind when it is printed readably.
    pub fn tag(&self) -> &'static str {
        match self {
            Time::Instant(_) => "inst",
            Time::Date(_) => "time/date",
            Time::Clock(_) => "time/time",
            Time::DateTime(_) => "time/date-time",
            Time::Zoned(zoned) if is_fixed(zoned) => "time/offset-date-time",
            Time::Zoned(_) => "time/zoned-date-time",
            Time::Duration(_) => "time/duration",
            Time::Period(_) => "time/period",
            Time::Zone(_) => "time/zone",
        }
    }

    /// Its text behind the tag: as [`Display`](fmt::Display) has it, but for points in time, which
    /// Clojure writes with milliseconds and `-00:00`.
    pub fn readable(&self) -> String {
        match self {
            Time::Instant(at) => {
                let local = at.to_zoned(TimeZone::UTC).datetime();
                let places = if at.subsec_nanosecond() % 1_000_000 == 0 { 3 } else { 9 };
                format!("{local:.places$}-00:00")
            }
            other => other.to_string(),
        }
    }

    /// What tagged text stands for; `None` for tags that are not about time.
    ///
    /// # Errors
    /// A sentence that says what was expected.
    pub fn read(tag: &str, text: &str) -> Option<Result<Time, String>> {
        let read = match tag {
            "inst" | "time/instant" => instant(text),
            "time/date" => text.parse().map(Time::Date).ok(),
            "time/time" => text.parse().map(Time::Clock).ok(),
            "time/date-time" => text.parse().map(Time::DateTime).ok(),
            "time/zoned-date-time" => text.parse().map(|zoned| Time::Zoned(Box::new(zoned))).ok(),
            "time/offset-date-time" => with_offset(text),
            "time/duration" => text.parse().map(Time::Duration).ok(),
            "time/period" => text.parse().map(|span| Time::Period(Box::new(span))).ok(),
            "time/zone" => zone(text).map(Time::Zone),
            _ => return None,
        };
        Some(read.ok_or_else(|| format!("expected text such as `{}` behind `#{tag}`", example(tag))))
    }

    /// How two of them stand to each other; `None` where they are of different kinds or have no order.
    pub fn compare(&self, other: &Time) -> Option<Ordering> {
        Some(match (self, other) {
            (Time::Instant(a), Time::Instant(b)) => a.cmp(b),
            (Time::Date(a), Time::Date(b)) => a.cmp(b),
            (Time::Clock(a), Time::Clock(b)) => a.cmp(b),
            (Time::DateTime(a), Time::DateTime(b)) => a.cmp(b),
            (Time::Zoned(a), Time::Zoned(b)) => a.cmp(b),
            (Time::Instant(a), Time::Zoned(b)) => a.cmp(&b.timestamp()),
            (Time::Zoned(a), Time::Instant(b)) => a.timestamp().cmp(b),
            (Time::Duration(a), Time::Duration(b)) => a.cmp(b),
            _ => return None,
        })
    }
}

/// True for a date and time at a fixed distance from UTC.
pub fn is_fixed(zoned: &Zoned) -> bool {
    zoned.time_zone().iana_name().is_none_or(|name| name == "UTC")
}

/// The zone of that name (`Europe/Paris`), or at that distance from UTC (`+02:00`, `Z`).
pub fn zone(text: &str) -> Option<TimeZone> {
    if matches!(text, "Z" | "UTC" | "GMT") {
        return Some(TimeZone::UTC);
    }
    if let Some(distance) = text.strip_prefix(['+', '-']) {
        let digits: String = distance.chars().filter(|c| *c != ':').collect();
        let number = |at: usize| digits.get(at..at + 2).map_or(Some(0), |two| two.parse::<i32>().ok());
        let well_formed = matches!(digits.len(), 2 | 4 | 6) && digits.bytes().all(|byte| byte.is_ascii_digit());
        let seconds = number(0)? * 3600 + number(2)? * 60 + number(4)?;
        let sign = if text.starts_with('-') { -1 } else { 1 };
        let offset = jiff::tz::Offset::from_seconds(sign * seconds).ok()?;
        return well_formed.then(|| TimeZone::fixed(offset));
    }
    TimeZone::get(text).ok()
}

/// A point in time, of which only the year must be given, as in Clojure's `#inst`.
fn instant(text: &str) -> Option<Time> {
    let at = text.parse::<Timestamp>().ok().or_else(|| {
        let whole = match text.len() {
            4 => format!("{text}-01-01"),
            7 => format!("{text}-01"),
            _ => text.to_string(),
        };
        let local = whole.parse::<DateTime>().ok()?;
        local.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
    });
    at.map(Time::Instant)
}

/// A date and time with its distance from UTC: `2024-02-29T10:00:00+01:00`.
fn with_offset(text: &str) -> Option<Time> {
    let at = text.parse::<Timestamp>().ok()?;
    let distance = match text.rfind(['+', '-', 'Z', 'z']) {
        Some(sign) if text.is_char_boundary(sign) => &text[sign..],
        _ => return None,
    };
    let distance = if distance.eq_ignore_ascii_case("z") { "Z" } else { distance };
    Some(Time::Zoned(Box::new(at.to_zoned(zone(distance)?))))
}

fn example(tag: &str) -> &'static str {
    match tag {
        "time/date" => "2024-02-29",
        "time/time" => "10:30:00",
        "time/date-time" => "2024-02-29T10:30:00",
        "time/zoned-date-time" => "2024-02-29T10:30:00+01:00[Europe/Paris]",
        "time/offset-date-time" => "2024-02-29T10:30:00+01:00",
        "time/duration" => "PT1H30M",
        "time/period" => "P1Y2M3D",
        "time/zone" => "Europe/Paris",
        _ => "2024-02-29T10:30:00Z",
    }
}

/// The text of ISO 8601, without the tag.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Time::Instant(at) => write!(f, "{at}"),
            Time::Date(date) => write!(f, "{date}"),
            Time::Clock(time) => write!(f, "{time}"),
            Time::DateTime(local) => write!(f, "{local}"),
            Time::Zoned(zoned) if is_fixed(zoned) => {
                write!(f, "{}", zoned.timestamp().display_with_offset(zoned.offset()))
            }
            Time::Zoned(zoned) => write!(f, "{zoned}"),
            Time::Duration(duration) => write!(f, "{duration}"),
            Time::Period(span) => write!(f, "{span}"),
            Time::Zone(zone) => match zone.iana_name() {
                Some(name) => f.write_str(name),
                None => match zone.to_fixed_offset() {
                    Ok(offset) => write!(f, "{offset}"),
                    Err(_) => f.write_str("UTC"),
                },
            },
        }
    }
}

impl PartialEq for Time {
    fn eq(&self, other: &Time) -> bool {
        match (self, other) {
            (Time::Zoned(a), Time::Zoned(b)) => {
                a.timestamp() == b.timestamp() && a.offset() == b.offset() && is_fixed(a) == is_fixed(b)
            }
            (Time::Instant(_), Time::Zoned(_)) | (Time::Zoned(_), Time::Instant(_)) => false,
            (Time::Period(a), Time::Period(b)) => a.fieldwise() == b.fieldwise(),
            (Time::Zone(a), Time::Zone(b)) => a == b,
            (a, b) => a.compare(b) == Some(Ordering::Equal),
        }
    }
}

impl Eq for Time {}

impl Hash for Time {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Time::Instant(at) => at.hash(state),
            Time::Date(date) => date.hash(state),
            Time::Clock(time) => time.hash(state),
            Time::DateTime(local) => local.hash(state),
            Time::Zoned(zoned) => zoned.timestamp().hash(state),
            Time::Duration(duration) => duration.hash(state),
            Time::Period(span) => span.fieldwise().hash(state),
            Time::Zone(zone) => zone.iana_name().hash(state),
        }
    }
}
