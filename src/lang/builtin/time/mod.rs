//! Dates and times: `time/` for pipelines, and the API of `java.time`, over the same values.
//!
//! [`given`] converts arguments to times, [`recognise`] and [`pattern`] parse text, and [`calendar`] does the
//! arithmetic; the other files hold the tables.

pub(super) mod adjusters;
mod calendar;
pub(super) mod classes;
pub mod constants;
mod epoch;
pub(super) mod fields;
pub(super) mod formatters;
mod given;
pub(super) mod kinds;
pub(super) mod lengths;
pub(super) mod methods;
pub(super) mod moving;
mod names;
pub(super) mod parsing;
mod pattern;
mod pattern_read;
mod pattern_write;
pub(super) mod questions;
mod recognise;
mod units;
mod weeks;

/// The fully qualified names of Java's classes, which may be used in place of the simple ones.
pub const NAMESPACES: &[(&str, &str)] = &[
    ("java.time.Instant", "Instant"),
    ("java.time.LocalDate", "LocalDate"),
    ("java.time.LocalTime", "LocalTime"),
    ("java.time.LocalDateTime", "LocalDateTime"),
    ("java.time.OffsetDateTime", "OffsetDateTime"),
    ("java.time.ZonedDateTime", "ZonedDateTime"),
    ("java.time.ZoneId", "ZoneId"),
    ("java.time.ZoneOffset", "ZoneOffset"),
    ("java.time.Duration", "Duration"),
    ("java.time.Period", "Period"),
    ("java.time.Year", "Year"),
    ("java.time.YearMonth", "YearMonth"),
    ("java.time.DayOfWeek", "DayOfWeek"),
    ("java.time.Month", "Month"),
    ("java.time.format.DateTimeFormatter", "DateTimeFormatter"),
    ("java.time.temporal.TemporalAdjusters", "TemporalAdjusters"),
    ("java-time", "time"),
    ("java-time.api", "time"),
    ("jt", "time"),
    ("clj-time.core", "time"),
];
