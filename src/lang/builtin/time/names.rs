//! Names of months, weekdays and time zones in the text of dates.

use crate::value::time::zone;
use jiff::tz::{Offset, TimeZone};

/// The months, January first.
pub const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The days of the week, Monday first.
pub const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// Abbreviations of time zones used in mail and logs, with their offset from UTC in minutes. Of several zones with an
/// abbreviation, the one in English mail counts (`BST` is British, `CST` American); `IST` has too many meanings.
const ABBREVIATIONS: &[(&str, i32)] = &[
    ("Z", 0),
    ("UT", 0),
    ("UTC", 0),
    ("GMT", 0),
    ("WET", 0),
    ("WEST", 60),
    ("CET", 60),
    ("CEST", 120),
    ("EET", 120),
    ("EEST", 180),
    ("MSK", 180),
    ("JST", 540),
    ("EST", -300),
    ("EDT", -240),
    ("CST", -360),
    ("CDT", -300),
    ("MST", -420),
    ("MDT", -360),
    ("PST", -480),
    ("PDT", -420),
    ("AKST", -540),
    ("AKDT", -480),
    ("HST", -600),
    ("HDT", -540),
    ("AST", -240),
    ("ADT", -180),
    ("NST", -210),
    ("NDT", -150),
    ("BRT", -180),
    ("ART", -180),
    ("BST", 60),
    ("WAT", 60),
    ("CAT", 120),
    ("SAST", 120),
    ("EAT", 180),
    ("TRT", 180),
    ("PKT", 300),
    ("ICT", 420),
    ("WIB", 420),
    ("AWST", 480),
    ("HKT", 480),
    ("SGT", 480),
    ("KST", 540),
    ("ACST", 570),
    ("ACDT", 630),
    ("AEST", 600),
    ("AEDT", 660),
    ("NZST", 720),
    ("NZDT", 780),
];

/// Returns the index of a word among names; the word may be any prefix of at least three letters.
fn place(word: &str, names: &[&str]) -> Option<usize> {
    let long_enough = word.len() >= 3 && word.is_ascii();
    let begins = |name: &&str| name.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    if long_enough { names.iter().position(begins) } else { None }
}

/// Returns the number of a month, full or abbreviated, counting from 1.
pub fn month(word: &str) -> Option<i8> {
    place(word, &MONTHS).map(|at| at as i8 + 1)
}

/// Returns the number of a day of the week, full or abbreviated, where Monday is 1.
pub fn weekday(word: &str) -> Option<i8> {
    place(word, &WEEKDAYS).map(|at| at as i8 + 1)
}

/// Resolves an abbreviation of a time zone, or a full name with a `/`, as found in the text of dates.
pub fn zone_of_word(word: &str) -> Option<TimeZone> {
    let short = ABBREVIATIONS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
    match short {
        Some((_, minutes)) => Offset::from_seconds(minutes * 60).ok().map(TimeZone::fixed),
        None if word.contains('/') => zone(word),
        None => None,
    }
}
