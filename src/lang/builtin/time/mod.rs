//! Dates and times: `time/` for pipelines, and the API of `java.time`, over the same values.
//!
//! [`given`] converts arguments to times, [`recognise`] and [`pattern`] parse text, and [`calendar`] does the
//! arithmetic; the other files hold the tables.

mod adjusters;
mod calendar;
mod classes;
pub mod constants;
mod epoch;
mod fields;
mod formatters;
mod given;
mod kinds;
mod lengths;
mod methods;
mod moving;
mod names;
mod parsing;
mod pattern;
mod pattern_read;
mod pattern_write;
mod questions;
mod recognise;
mod units;
mod weeks;

use super::Builtin;

/// Parsing, formatting, and the current time. These tables are in the order of the reference.
pub const PARSING: &[Builtin] = parsing::TABLE;
/// Conversion between kinds of time.
pub const KINDS: &[Builtin] = kinds::TABLE;
/// Sums, differences, truncation.
pub const MOVING: &[Builtin] = moving::TABLE;
/// Durations and periods.
pub const LENGTHS: &[Builtin] = lengths::TABLE;
/// Predicates and comparisons.
pub const QUESTIONS: &[Builtin] = questions::TABLE;
/// Fields of times.
pub const FIELDS: &[Builtin] = fields::TABLE;
/// Factory methods of Java's classes.
pub const CLASSES: &[Builtin] = classes::TABLE;
/// Java's parsers and formatters.
pub const FORMATTERS: &[Builtin] = formatters::TABLE;
/// Java's methods.
pub const METHODS: &[Builtin] = methods::TABLE;
/// Java's rules that move dates.
pub const ADJUSTERS: &[Builtin] = adjusters::TABLE;

/// Aliases of builtins of these files.
pub const ALIASES: &[&[(&str, &str)]] = &[
    parsing::ALIASES,
    kinds::ALIASES,
    moving::ALIASES,
    lengths::ALIASES,
    questions::ALIASES,
    fields::ALIASES,
    classes::ALIASES,
    formatters::ALIASES,
];

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
