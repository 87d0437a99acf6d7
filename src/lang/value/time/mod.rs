//! Dates, times, zones and durations: the types of jiff, under the names of `java.time`.
//!
//! They print as tagged text that reads back: `#inst "…"` for a point in time, and tags such as `#time/date
//! "2024-02-29"` for the others. The time zone database is bundled with the program; that of the host is never read.

pub mod text;

use jiff::civil::{self, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// A date, a time, a duration, or a time zone.
#[derive(Clone, Debug)]
pub enum Time {
    /// A point in time
    Instant(Timestamp),
    /// A calendar day
    Date(civil::Date),
    /// A time of day
    Clock(civil::Time),
    /// A calendar day and a time of day, without a zone
    DateTime(DateTime),
    /// A point in time, in a zone or at a fixed offset from UTC
    Zoned(Box<Zoned>),
    /// A duration in seconds and nanoseconds
    Duration(SignedDuration),
    /// A duration in calendar units
    Period(Period),
    /// A month of a year, represented by its first day
    YearMonth(civil::Date),
    /// A time zone
    Zone(TimeZone),
}

/// A duration in calendar units, each with its own sign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Period {
    /// Years
    pub years: i32,
    /// Months
    pub months: i32,
    /// Days
    pub days: i32,
}

impl Time {
    /// Returns a readable name for the kind of this value, with its article.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Time::Instant(_) => "an instant",
            Time::Date(_) => "a date",
            Time::Clock(_) => "a time of day",
            Time::DateTime(_) => "a date and time",
            Time::Zoned(zoned) if is_fixed(zoned) => "a date and time with an offset",
            Time::Zoned(_) => "a date and time with a zone",
            Time::Duration(_) => "a duration",
            Time::Period(_) => "a period",
            Time::YearMonth(_) => "a year and month",
            Time::Zone(_) => "a time zone",
        }
    }

    /// Returns the tag that precedes its text when it is printed readably.
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
            Time::YearMonth(_) => "time/year-month",
            Time::Zone(_) => "time/zone",
        }
    }

    /// Compares two times; `None` if they are of incomparable kinds or have no order.
    pub(crate) fn compare(&self, other: &Time) -> Option<Ordering> {
        Some(match (self, other) {
            (Time::Instant(a), Time::Instant(b)) => a.cmp(b),
            (Time::Date(a), Time::Date(b)) => a.cmp(b),
            (Time::Clock(a), Time::Clock(b)) => a.cmp(b),
            (Time::DateTime(a), Time::DateTime(b)) => a.cmp(b),
            (Time::Zoned(a), Time::Zoned(b)) => a.cmp(b),
            (Time::Instant(a), Time::Zoned(b)) => a.cmp(&b.timestamp()),
            (Time::Zoned(a), Time::Instant(b)) => a.timestamp().cmp(b),
            (Time::Duration(a), Time::Duration(b)) => a.cmp(b),
            (Time::YearMonth(a), Time::YearMonth(b)) => a.cmp(b),
            _ => return None,
        })
    }
}

/// True for a date and time at a fixed offset from UTC.
pub fn is_fixed(zoned: &Zoned) -> bool {
    zoned.time_zone().iana_name().is_none_or(|name| name == "UTC")
}

/// Returns the zone of that name (`Europe/Paris`) or offset from UTC (`+02:00`, `Z`); `None` if it is unknown or
/// malformed.
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
        let offset = text::offset(sign * seconds)?;
        return well_formed.then(|| TimeZone::fixed(offset));
    }
    TimeZone::get(text).ok()
}

impl PartialEq for Time {
    fn eq(&self, other: &Time) -> bool {
        match (self, other) {
            (Time::Zoned(a), Time::Zoned(b)) => {
                a.timestamp() == b.timestamp()
                    && a.offset() == b.offset()
                    && a.time_zone().iana_name() == b.time_zone().iana_name()
            }
            (Time::Instant(_), Time::Zoned(_)) | (Time::Zoned(_), Time::Instant(_)) => false,
            (Time::Period(a), Time::Period(b)) => a == b,
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
            Time::Period(period) => period.hash(state),
            Time::YearMonth(first) => first.hash(state),
            Time::Zone(zone) => zone.iana_name().hash(state),
        }
    }
}
