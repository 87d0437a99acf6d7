//! Parsing and formatting dates, and the current time.

use super::given::{self, Format, READING, WRITING, value};
use crate::builtin::arguments::integer;
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::{Builtin, OptionSet};
use crate::value::Value;
use crate::value::time::Time;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "time/parse",
        &["[s]", "[s pattern]", "[s & options]", "[s pattern & options]"],
        "Parses a date or time: most formats are recognized, others need a pattern.\n\
         The pattern is Java's (\"dd.MM.yyyy HH:mm\") or strftime's (\"%d.%m.%Y\"). A time in UTC is an instant, one \
         with another offset or a zone keeps it, one without is a date and time, and a day alone a date. Numbers are \
         seconds, milliseconds, microseconds or nanoseconds since 1970, by their size. Options: `:zone` reads times \
         without a zone there and converts all times to it; `:pattern`; `:day-first` true or false decides how 05/03/2024 is read.",
        &[
            ("(str (time/parse \"Tue, 5 Mar 2024 14:00:00 +0100\"))", "\"2024-03-05T14:00+01:00\""),
            ("(str (time/parse \"March 5, 2024 2:30 PM\"))", "\"2024-03-05T14:30\""),
            ("(time/parse \"05.03.2024\" \"dd.MM.yyyy\")", "#time/date \"2024-03-05\""),
            ("(str (time/parse \"05/03/2024\" :day-first true))", "\"2024-03-05\""),
        ],
        parse,
    )
    .with_options(&PARSE),
    Builtin::new(
        "time/format",
        &["[t]", "[t pattern]", "[t & options]", "[t pattern & options]"],
        "Formats a time as text: ISO 8601, or with a pattern of Java's (\"yyyy-MM-dd HH:mm\") or strftime's \
         (\"%Y-%m-%d\").\n\
         Options: `:zone` shows it in that zone; `:pattern`.",
        &[
            ("(time/format \"2024-03-05T14:00:00Z\" \"EEEE, d MMMM yyyy\")", "\"Tuesday, 5 March 2024\""),
            ("(time/format \"2024-03-05T14:00:00Z\" \"%H:%M\" :zone \"Asia/Tokyo\")", "\"23:00\""),
            ("(time/format (time/date 2024 3 5))", "\"2024-03-05\""),
        ],
        format,
    )
    .with_options(&FORMAT),
    Builtin::new(
        "time/now",
        &["[]", "[zone]"],
        "The current time, as an instant or in a zone.",
        &[
            ("(instance? Instant (time/now))", "true"),
            ("(str (time/zone (time/now \"Asia/Tokyo\")))", "\"Asia/Tokyo\""),
        ],
        |machine, arguments| match arguments.first().cloned() {
            Some(zone) => in_zone_now(machine, &zone),
            None => Ok(value(Time::Instant(given::now(machine)))),
        },
    ),
    Builtin::new(
        "time/today",
        &["[]", "[zone]"],
        "The current date in UTC, or in a zone.",
        &[("(instance? LocalDate (time/today))", "true")],
        |machine, arguments| {
            let zone = zone_or_utc(machine, arguments.first())?;
            Ok(value(Time::Date(zone.to_datetime(given::now(machine)).date())))
        },
    ),
    Builtin::new(
        "LocalDateTime/now",
        &["[]", "[zone]"],
        "The current local date and time in UTC, or in a zone.",
        &[("(instance? LocalDateTime (LocalDateTime/now))", "true")],
        |machine, arguments| {
            let zone = zone_or_utc(machine, arguments.first())?;
            Ok(value(Time::DateTime(zone.to_datetime(given::now(machine)))))
        },
    ),
    Builtin::new(
        "LocalTime/now",
        &["[]", "[zone]"],
        "The current time of day in UTC or a zone.",
        &[("(instance? LocalTime (LocalTime/now))", "true")],
        |machine, arguments| {
            let zone = zone_or_utc(machine, arguments.first())?;
            Ok(value(Time::Clock(zone.to_datetime(given::now(machine)).time())))
        },
    ),
    Builtin::new(
        "ZonedDateTime/now",
        &["[]", "[zone]"],
        "The current date and time with its zone, by default UTC.",
        &[("(str (.getZone (ZonedDateTime/now (ZoneId/of \"Europe/Paris\"))))", "\"Europe/Paris\"")],
        |machine, arguments| {
            let zone = arguments.first().cloned().unwrap_or_else(|| Value::string("UTC"));
            in_zone_now(machine, &zone)
        },
    ),
    Builtin::new(
        "YearMonth/now",
        &["[]", "[zone]"],
        "The current month in UTC, or in a zone.",
        &[("(instance? YearMonth (YearMonth/now))", "true")],
        |machine, arguments| {
            let zone = zone_or_utc(machine, arguments.first())?;
            Ok(value(Time::YearMonth(zone.to_datetime(given::now(machine)).date().first_of_month())))
        },
    ),
    Builtin::new(
        "Year/now",
        &["[]", "[zone]"],
        "The current year in UTC, or in a zone.",
        &[("(< 2000 (Year/now))", "true")],
        |machine, arguments| {
            let zone = zone_or_utc(machine, arguments.first())?;
            Ok(Value::Int(zone.to_datetime(given::now(machine)).year().into()))
        },
    ),
    Builtin::new(
        "time/epoch-seconds",
        &["[t]", "[t zone]"],
        "Whole seconds since 1970-01-01T00:00:00Z; a time without a zone is read in UTC, or in `zone`.",
        &[("(time/epoch-seconds \"2024-03-05T14:00:00Z\")", "1709647200")],
        |machine, arguments| {
            Ok(Value::Int(timestamp(machine, arguments)?.as_nanosecond().div_euclid(1_000_000_000) as i64))
        },
    ),
    Builtin::new(
        "time/epoch-millis",
        &["[t]", "[t zone]"],
        "Whole milliseconds since 1970-01-01T00:00:00Z; a time without a zone is read in UTC, or in `zone`.",
        &[("(time/epoch-millis \"2024-03-05T14:00:00.5Z\")", "1709647200500")],
        |machine, arguments| {
            Ok(Value::Int(timestamp(machine, arguments)?.as_nanosecond().div_euclid(1_000_000) as i64))
        },
    ),
    Builtin::new(
        "time/from-epoch",
        &["[n]", "[n unit]"],
        "The instant `n` seconds, milliseconds, microseconds or nanoseconds after 1970, told apart by magnitude.",
        &[
            ("(str (time/from-epoch 1709647200))", "\"2024-03-05T14:00:00Z\""),
            ("(str (time/from-epoch 5 :millis))", "\"1970-01-01T00:00:00.005Z\""),
        ],
        from_epoch,
    ),
    Builtin::new(
        "Instant/ofEpochMilli",
        &["[n]"],
        "The instant `n` milliseconds after 1970-01-01T00:00:00Z.",
        &[("(str (Instant/ofEpochMilli 1500))", "\"1970-01-01T00:00:01.500Z\"")],
        |_, arguments| {
            let at = Timestamp::from_millisecond(integer(&arguments[0])?).map_err(|_| super::units::too_far())?;
            Ok(value(Time::Instant(at)))
        },
    ),
    Builtin::new(
        "Instant/ofEpochSecond",
        &["[n]", "[n nanos]"],
        "The instant `n` seconds after 1970-01-01T00:00:00Z.",
        &[("(str (Instant/ofEpochSecond 0))", "\"1970-01-01T00:00:00Z\"")],
        |_, arguments| {
            let nanos = arguments.get(1).map(integer).transpose()?.unwrap_or(0);
            let sum = i128::from(integer(&arguments[0])?) * 1_000_000_000 + i128::from(nanos);
            let at = Timestamp::from_nanosecond(sum).map_err(|_| super::units::too_far())?;
            Ok(value(Time::Instant(at)))
        },
    ),
    Builtin::new(
        "java.util.Date.",
        &["[]", "[t]"],
        "The current time, or `t` milliseconds after 1970, as an instant.",
        &[("(.getTime (java.util.Date. 5))", "5")],
        |machine, arguments| match arguments.first().cloned() {
            None => Ok(value(Time::Instant(given::now(machine)))),
            Some(Value::Int(millis)) => {
                let at = Timestamp::from_millisecond(millis).map_err(|_| super::units::too_far())?;
                Ok(value(Time::Instant(at)))
            }
            Some(other) => {
                let time = given::time(machine, &other)?;
                Ok(value(Time::Instant(super::calendar::timestamp(&time, &TimeZone::UTC)?)))
            }
        },
    ),
];

/// Java's names and those of other libraries.
pub const ALIASES: &[(&str, &str)] = &[
    ("Instant/now", "time/now"),
    ("LocalDate/now", "time/today"),
    ("OffsetDateTime/now", "ZonedDateTime/now"),
    ("Date.", "java.util.Date."),
    (".toEpochMilli", "time/epoch-millis"),
    (".getTime", "time/epoch-millis"),
    ("inst-ms", "time/epoch-millis"),
    ("time/to-millis", "time/epoch-millis"),
    (".getEpochSecond", "time/epoch-seconds"),
    (".toEpochSecond", "time/epoch-seconds"),
    ("time/to-epoch", "time/epoch-seconds"),
    ("time/from-millis", "Instant/ofEpochMilli"),
    ("time/unparse", "time/format"),
];

fn zone_or_utc(machine: &mut Machine, zone: Option<&Value>) -> Outcome<TimeZone> {
    zone.map_or(Ok(TimeZone::UTC), |zone| given::zone(machine, zone))
}

fn in_zone_now(machine: &mut Machine, zone: &Value) -> Outcome<Value> {
    let zone = given::zone(machine, zone)?;
    Ok(value(Time::Zoned(Box::new(given::now(machine).to_zoned(zone)))))
}

static PARSE: OptionSet = OptionSet { function: "time/parse", accepted: READING };

static FORMAT: OptionSet = OptionSet { function: "time/format", accepted: WRITING };

fn parse(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    // Accept `(time/parse "dd.MM.yyyy" "05.03.2024")`: only dates contain digits.
    if let [Value::Str(first), Value::Str(second), ..] = arguments {
        let has_digits = |text: &str| text.len() < 1_000 && text.bytes().any(|byte| byte.is_ascii_digit());
        if !has_digits(first.as_str()) && has_digits(second.as_str()) {
            arguments.swap(0, 1);
        }
    }
    let (text, rest) = arguments.split_at_mut(1);
    let format = Format::from_arguments(machine, &PARSE, rest)?;
    match &text[0] {
        Value::Str(text) => Ok(value(format.read(machine, text.as_str())?)),
        other => {
            let time = given::time(machine, other)?;
            Ok(value(format.placed(time)?))
        }
    }
}

fn format(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if let [Value::Str(_) | Value::Keyword(_), Value::Time(_) | Value::Int(_), ..] = arguments {
        arguments.swap(0, 1);
    }
    let (time, rest) = arguments.split_at_mut(1);
    let format = Format::from_arguments(machine, &FORMAT, rest)?;
    let time = given::time(machine, &time[0])?;
    format.write(machine, &time)
}

fn timestamp(machine: &mut Machine, arguments: &[Value]) -> Outcome<Timestamp> {
    let time = given::time(machine, &arguments[0])?;
    let zone = zone_or_utc(machine, arguments.get(1))?;
    Ok(super::calendar::timestamp(&time, &zone)?)
}

fn from_epoch(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match arguments.get(1) {
        None => match &arguments[0] {
            number @ (Value::Int(_) | Value::Float(_)) => Ok(value(given::time(machine, number)?)),
            other => Err(Error::expected("a number of seconds or milliseconds since 1970", other).into()),
        },
        Some(unit) => {
            let amount = super::units::Amount::times(&arguments[0], super::units::Unit::of(unit)?)?;
            Ok(value(super::calendar::plus(&Time::Instant(Timestamp::UNIX_EPOCH), amount)?))
        }
    }
}
