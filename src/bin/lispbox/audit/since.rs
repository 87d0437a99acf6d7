//! `--since`: a time, or an age.

use jiff::civil::{Date, DateTime};
use jiff::fmt::temporal::Pieces;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Zoned};

/// The largest offset of any time zone from UTC, in seconds.
const LARGEST_OFFSET: i32 = 14 * 3_600;

/// The time from which records are selected. Dates and times without an offset are in UTC, like those of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Since(Timestamp);

impl Since {
    /// True for a record at or after this time. A record whose time cannot be parsed is included, so that tampering
    /// cannot hide a record.
    pub fn has(self, time: &str) -> bool {
        time.parse::<Timestamp>().map_or(true, |time| time >= self.0)
    }

    /// Parses `1h`, `2026-11-23` and similar forms, relative to `now`.
    fn read(text: &str, now: Timestamp) -> Result<Since, String> {
        let words = text.trim().to_lowercase();
        let now = now.to_zoned(TimeZone::UTC);
        time(&words, &now).map(Since).ok_or_else(|| {
            format!(
                "expected how long ago (`30s`, `5m`, `1h`, `2d`, `1w`), a date (`2026-11-23`, `today`, `yesterday`) or a \
                 time in UTC or with an offset (`2026-11-23T10:30`, `2026-11-23T10:30:00+01:00`), got `{text}`"
            )
        })
    }
}

impl std::str::FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Since, String> {
        Since::read(text, Timestamp::now())
    }
}

fn time(words: &str, now: &Zoned) -> Option<Timestamp> {
    let start_of = |day: Date| Some(day.to_zoned(TimeZone::UTC).ok()?.timestamp());
    match words {
        "now" => return Some(now.timestamp()),
        "today" => return start_of(now.date()),
        "yesterday" => return start_of(now.date().yesterday().ok()?),
        _ => {}
    }
    if let Some(ago) = ago(words) {
        return Some(now.checked_sub(ago).ok()?.timestamp());
    }
    if let Ok(time) = words.parse::<Timestamp>() {
        let offset = Pieces::parse(words).ok()?.to_numeric_offset();
        return offset.is_none_or(|offset| offset.seconds().abs() <= LARGEST_OFFSET).then_some(time);
    }
    let is_plain_date = words.len() == "2026-11-23".len();
    if is_plain_date {
        return start_of(words.parse().ok()?);
    }
    // A text with an offset or a zone has been parsed as a timestamp above, or is invalid.
    let has_time = words.contains(['t', ' ', ':']) && !words.contains(['[', '+', 'z']);
    let time: DateTime = has_time.then(|| words.parse().ok()).flatten()?;
    Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

/// Parses the duration of `90s`, `1h30m`, `2 days ago`.
fn ago(words: &str) -> Option<Span> {
    let mut rest = words.strip_suffix("ago").unwrap_or(words).trim();
    if rest.is_empty() {
        return None;
    }
    let mut sum = Span::new();
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        let count: i64 = rest[..end].parse().ok()?;
        rest = rest[end..].trim_start();
        let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let span = match &rest[..end] {
            "s" | "sec" | "secs" | "second" | "seconds" => Span::new().try_seconds(count),
            "m" | "min" | "mins" | "minute" | "minutes" => Span::new().try_minutes(count),
            "h" | "hr" | "hrs" | "hour" | "hours" => Span::new().try_hours(count),
            "d" | "day" | "days" => Span::new().try_days(count),
            "w" | "wk" | "wks" | "week" | "weeks" => Span::new().try_days(count.checked_mul(7)?),
            _ => return None,
        };
        // Days have 24 hours in UTC.
        sum = sum.checked_add((span.ok()?, jiff::SpanRelativeTo::days_are_24_hours())).ok()?;
        rest = rest[end..].trim_start();
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: &str = "2026-11-23T10:30:00Z";

    fn since(text: &str) -> Result<String, String> {
        Since::read(text, NOW.parse().expect("a time")).map(|since| since.0.to_string())
    }

    #[test]
    fn durations_and_dates_are_understood() {
        for (text, expected) in [
            ("30s", "2026-11-23T10:29:30Z"),
            ("5m", "2026-11-23T10:25:00Z"),
            ("1h", "2026-11-23T09:30:00Z"),
            ("1H", "2026-11-23T09:30:00Z"),
            ("1h30m", "2026-11-23T09:00:00Z"),
            ("2d", "2026-11-21T10:30:00Z"),
            ("1w", "2026-11-16T10:30:00Z"),
            ("2 days ago", "2026-11-21T10:30:00Z"),
            ("now", "2026-11-23T10:30:00Z"),
            ("today", "2026-11-23T00:00:00Z"),
            (" Yesterday ", "2026-11-22T00:00:00Z"),
            ("2026-11-01", "2026-11-01T00:00:00Z"),
            ("2026-11-01T10:30", "2026-11-01T10:30:00Z"),
            ("2026-11-01 10:30:05", "2026-11-01T10:30:05Z"),
            ("2026-11-01T10:30:00Z", "2026-11-01T10:30:00Z"),
            ("2026-11-01T10:30:00.392+01:00", "2026-11-01T09:30:00.392Z"),
            ("2026-11-01T10:30:00-05:00", "2026-11-01T15:30:00Z"),
            ("2026-11-01T10:30:00+14:00", "2026-10-31T20:30:00Z"),
        ] {
            assert_eq!(since(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn nonsense_is_an_error() {
        for text in [
            "",
            "ago",
            "h",
            "1",
            "-1h",
            "1x",
            "1h2",
            "1.5h",
            "tomorrow",
            "last tuesday",
            "2026",
            "2026-11",
            "2026-13-01",
            "2026-02-30",
            "2026-11-23T25:00",
            "10:30",
            "2026-11-23T10:30+banana",
            "2026-11-23T10:30:00+25:00",
            "2026-11-23T10:30:00-14:01",
            "2026-11-23T10:30:00+99:00",
            "2026-11-23T10:30[Europe/Berlin]",
            "99999999999999999999d",
            "999999999999d",
        ] {
            let problem = since(text).expect_err(text);
            assert!(
                problem.starts_with("expected how long ago") && problem.ends_with(&format!("got `{text}`")),
                "{problem}"
            );
        }
    }

    #[test]
    fn records_are_compared_as_times() {
        let since = Since::read("2026-11-23T10:30:00+01:00", Timestamp::UNIX_EPOCH).expect("a time");
        assert!(since.has("2026-11-23T09:30:00.000Z") && !since.has("2026-11-23T09:29:59.999Z"));
        assert!(since.has("not a time"));
    }

    proptest! {
        #[test]
        fn a_longer_time_ago_is_earlier(count in 1i64..1_000, more in 1i64..1_000, unit in 0usize..5) {
            let unit = ["s", "m", "h", "d", "w"][unit];
            let at = |count: i64| {
                Since::read(&format!("{count}{unit}"), NOW.parse().expect("a time")).expect("a length of time").0
            };
            prop_assert!(at(count + more) < at(count));
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,30}") {
            let _ = Since::read(&text, NOW.parse().expect("a time"));
        }
    }
}
