//! Dates and times: `time/` for pipelines, and `java.time` as programs write it, over the same values.
//!
//! [`given`] makes times of arguments, [`recognise`] and [`pattern`] of text; [`calendar`] reckons with
//! them; the tables stand in the files beside.

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

/// The tables, in the order of the reference.
pub const PARSING: &[Builtin] = parsing::TABLE;
/// From one kind to another.
pub const KINDS: &[Builtin] = kinds::TABLE;
/// Sums, differences, truncation.
pub const MOVING: &[Builtin] = moving::TABLE;
/// Durations and periods.
pub const LENGTHS: &[Builtin] = lengths::TABLE;
/// Questions about times.
pub const QUESTIONS: &[Builtin] = questions::TABLE;
/// Parts of times.
pub const FIELDS: &[Builtin] = fields::TABLE;
/// What Java's classes make.
pub const CLASSES: &[Builtin] = classes::TABLE;
/// Java's parsers and formatters.
pub const FORMATTERS: &[Builtin] = formatters::TABLE;
/// Java's methods.
pub const METHODS: &[Builtin] = methods::TABLE;
/// Java's rules that move dates.
pub const ADJUSTERS: &[Builtin] = adjusters::TABLE;

/// Other names of what is in these files.
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

/// The packages of Java's classes, which names may be written with.
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
