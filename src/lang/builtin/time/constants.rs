//! The constants of `java.time`: days of the week and months are strings with their names, units are keywords,
//! formatters are the names of patterns.

use super::names::{MONTHS, WEEKDAYS, month, weekday};
use super::pattern::named;
use super::units::Unit;
use crate::value::Value;
use crate::value::time::{Period, Time};
use jiff::civil::{self, Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// The packages that may qualify a class name.
const PACKAGES: [&str; 5] = ["java.time.temporal.", "java.time.format.", "java.time.", "java.util.", "java.text."];

/// Strips the package from the name of a class or of its member.
fn without_package(name: &str) -> &str {
    PACKAGES.iter().find_map(|package| name.strip_prefix(package)).unwrap_or(name)
}

/// Returns the value of a constant of `java.time`; `None` for all other names.
pub fn constant(name: &str) -> Option<Value> {
    let (class, constant) = without_package(name).split_once('/')?;
    let shouted = |names: &[&str]| {
        let found = names.iter().any(|name| name.to_uppercase() == constant);
        found.then(|| Value::string(constant))
    };
    let time = match (class, constant) {
        ("DayOfWeek", _) => return shouted(&WEEKDAYS),
        ("Month", _) => return shouted(&MONTHS),
        ("ChronoUnit", _) if constant == constant.to_uppercase() => {
            return Unit::find(constant).map(|(plural, _)| Value::keyword(plural));
        }
        ("DateTimeFormatter", _) => return named(constant).map(Value::string),
        ("TextStyle", "FULL" | "SHORT" | "NARROW") => return Some(Value::keyword(&constant.to_lowercase())),
        ("Locale", "ENGLISH" | "US" | "UK" | "ROOT") => return Some(Value::string("en")),
        ("ZoneOffset", "UTC") => Time::Zone(TimeZone::UTC),
        ("Instant", "EPOCH") => Time::Instant(Timestamp::UNIX_EPOCH),
        ("Instant", "MIN") => Time::Instant(Timestamp::MIN),
        ("Instant", "MAX") => Time::Instant(Timestamp::MAX),
        ("LocalDate", "MIN") => Time::Date(Date::MIN),
        ("LocalDate", "MAX") => Time::Date(Date::MAX),
        ("LocalDate", "EPOCH") => Time::Date(civil::date(1970, 1, 1)),
        ("LocalDateTime", "MIN") => Time::DateTime(DateTime::MIN),
        ("LocalDateTime", "MAX") => Time::DateTime(DateTime::MAX),
        ("LocalTime", "MIN" | "MIDNIGHT") => Time::Clock(civil::Time::midnight()),
        ("LocalTime", "MAX") => Time::Clock(civil::Time::MAX),
        ("LocalTime", "NOON") => Time::Clock(civil::time(12, 0, 0, 0)),
        ("Duration", "ZERO") => Time::Duration(SignedDuration::ZERO),
        ("Period", "ZERO") => Time::Period(Period::default()),
        _ => return None,
    };
    Some(super::given::value(time))
}

/// Returns the name of the day of the week or month that is `steps` after the named one, cyclically.
pub fn cycle(name: &str, steps: i64) -> Option<String> {
    let (names, at): (&[&str], i8) = match (weekday(name), month(name)) {
        (Some(at), _) => (&WEEKDAYS, at),
        (_, Some(at)) => (&MONTHS, at),
        _ => return None,
    };
    let next = (i64::from(at) - 1 + steps).rem_euclid(names.len() as i64);
    names.get(next as usize).map(|name| name.to_uppercase())
}
