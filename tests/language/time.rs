//! Every date, time, period and zone prints as text that reads back equal.

use crate::common;

use jiff::civil::{self, Date, DateTime};
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};
use lispbox::lang::value::{Period, Time};
use proptest::prelude::*;

fn dates() -> impl Strategy<Value = Date> {
    (-9999_i16..=9999, 1_i8..=12, 1_i8..=28).prop_map(|(year, month, day)| civil::date(year, month, day))
}

fn clocks() -> impl Strategy<Value = civil::Time> {
    let nanos = prop_oneof![Just(0), (0..1_000_i32).prop_map(|n| n * 1_000_000), 0..1_000_000_000_i32];
    let seconds = prop_oneof![Just(0_i8), 0_i8..60];
    (0_i8..24, 0_i8..60, seconds, nanos)
        .prop_map(|(hour, minute, second, nano)| civil::time(hour, minute, second, nano))
}

fn instants() -> impl Strategy<Value = Timestamp> {
    let span = Timestamp::MIN.as_nanosecond()..=Timestamp::MAX.as_nanosecond();
    let whole = Timestamp::MIN.as_second()..=Timestamp::MAX.as_second();
    prop_oneof![
        span.prop_map(|nanos| Timestamp::from_nanosecond(nanos).expect("within the calendar")),
        whole.prop_map(|seconds| Timestamp::from_second(seconds).expect("within the calendar")),
    ]
}

fn zones() -> impl Strategy<Value = TimeZone> {
    let names = ["Europe/Paris", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Monrovia", "UTC"];
    prop_oneof![
        prop::sample::select(names.to_vec()).prop_map(|name| TimeZone::get(name).expect("it is in the program")),
        (-64_800_i32..=64_800).prop_map(|seconds| TimeZone::fixed(Offset::from_seconds(seconds).expect("18 hours"))),
    ]
}

fn times() -> impl Strategy<Value = Time> {
    prop_oneof![
        instants().prop_map(Time::Instant),
        dates().prop_map(Time::Date),
        clocks().prop_map(Time::Clock),
        (dates(), clocks()).prop_map(|(date, clock)| Time::DateTime(DateTime::from_parts(date, clock))),
        (instants(), zones()).prop_map(|(at, zone)| Time::Zoned(Box::new(at.to_zoned(zone)))),
        (any::<i64>(), -999_999_999..=999_999_999_i32).prop_map(|(seconds, nanos)| {
            let seconds = seconds / 2;
            Time::Duration(SignedDuration::new(seconds, nanos))
        }),
        (-100_i32..100, any::<i32>(), -3_i32..3).prop_map(|(years, months, days)| Time::Period(Period {
            years,
            months,
            days
        })),
        dates().prop_map(|date| Time::YearMonth(date.first_of_month())),
        zones().prop_map(Time::Zone),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_000) })]

    #[test]
    fn what_is_printed_reads_back_equal(time in times()) {
        let text = time.readable();
        match Time::read(time.tag(), &text) {
            Some(Ok(back)) => prop_assert_eq!(&back, &time, "#{} \"{}\"", time.tag(), text),
            other => prop_assert!(false, "#{} {:?}: {:?}", time.tag(), text, other),
        }
    }

    #[test]
    fn no_text_is_more_than_an_error(text in "[0-9A-Za-z:/+., \\-()éZT]{0,40}", pattern in "[yMdHhmsSaEXVZzGQwDn'\\[\\] .:/%-]{0,12}") {
        let quoted = |text: &str| format!("{text:?}");
        for program in [
            format!("(time/parse {})", quoted(&text)),
            format!("(time/parse {} {})", quoted(&text), quoted(&pattern)),
            format!("(time/format (time/now \"Europe/Paris\") {})", quoted(&pattern)),
            format!("(time/plus (time/now) {})", quoted(&text)),
            format!("(time/zone {})", quoted(&text)),
        ] {
            let reply = common::eval(&program);
            if let Some(failure) = &reply.failure {
                prop_assert_ne!(&failure.error, "InternalError", "{}", program);
            }
        }
    }
}
