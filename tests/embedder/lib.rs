//! Decimals, dates and JSON of a program that embeds lispbox come back as what they are. Run with and without
//! `--features arbitrary_precision`.

#![cfg(test)]

use bigdecimal::BigDecimal;
use jiff::civil;
use lispbox_lang::value::Value;
use lispbox_lang::{Call, Engine, Exact, Metered, Scalar, Tools, World, exact};
use proptest::prelude::*;
use rust_decimal::Decimal;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fmt::Debug;
use std::str::FromStr;
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: Metered<std::alloc::System> = Metered::new(std::alloc::System);

fn engine() -> Arc<Engine> {
    Engine::builder().build().expect("the allocator is metered")
}

#[derive(Deserialize)]
struct Given<T> {
    it: T,
}

/// A tool that returns its argument, which it has read as that type.
fn echo<T: Serialize + DeserializeOwned + 'static>() -> World<'static> {
    let mut tools = Tools::new();
    tools.tool("t/echo", |given: Given<T>, _: &Call| Ok(given.it));
    World::new(tools)
}

fn evaluated<T: DeserializeOwned>(program: &str, world: &World<'_>) -> T {
    let outcome = engine().session().run(program).eval::<T>(world).unwrap_or_else(|error| panic!("{program}: {error}"));
    outcome.into_result().unwrap_or_else(|failure| panic!("{program}: {}", failure.rendered))
}

fn refused(program: &str, world: &World<'_>) -> String {
    let outcome = engine().session().run(program).eval::<Value>(world).expect("nothing to convert");
    outcome.into_result().expect_err("it is refused").message
}

/// Passes a value through arguments, results, data, parameters and a stored session.
fn there_and_back<T>(value: T) -> Result<(), TestCaseError>
where
    T: Scalar + Serialize + DeserializeOwned + Clone + PartialEq + Debug + 'static,
{
    let (engine, world, value) = (engine(), echo::<Exact<T>>(), Exact(value));
    let mut session = engine.session();
    let run = session.run("(t/echo {:it it})").set("it", &value);
    let back = run.eval::<Exact<T>>(&world).map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert_eq!(back.into_result().map_err(|failure| failure.rendered), Ok(value.clone()), "through a tool");
    let back = session.run("data").data(&[value.clone()]).eval::<Vec<Exact<T>>>(&world).expect("it fits");
    prop_assert_eq!(back.done(), Some(vec![value.clone()]), "as data");
    session.set("kept", &value).expect("it is data");
    let mut session = engine.restore(&session.encode().expect("it is data")).expect("it is a session");
    prop_assert_eq!(session.get::<Exact<T>>("kept").expect("it fits"), Some(value), "in a stored session");
    Ok(())
}

#[test]
fn plain_decimals_read_all_digits_of_an_argument() {
    let digits = "12345678901234567890.12345678901";
    let big: String = evaluated(&format!("(t/echo {{:it {digits}M}})"), &echo::<BigDecimal>());
    assert_eq!(big, digits);
    let decimal: String = evaluated("(t/echo {:it 12345678901234567.89M})", &echo::<Decimal>());
    assert_eq!(decimal, "12345678901234567.89");
    let cents: String = evaluated("(t/echo {:it 19.90M})", &echo::<Decimal>());
    assert_eq!(cents, "19.90");
    assert_eq!(evaluated::<Decimal>("19.90M", &World::default()).to_string(), "19.90");
}

#[test]
fn programs_calculate_with_exact_decimals() {
    let world = echo::<Exact<Decimal>>();
    assert_eq!(evaluated::<String>("(pr-str (+ 1M (t/echo {:it 19.90M})))", &world), "20.90M");
    let too_long = "argument `it` of `t/echo`: expected a decimal of at most 28 digits, got \
                    12345678901234567890.12345678901M (a decimal)";
    assert_eq!(refused("(t/echo {:it 12345678901234567890.12345678901M})", &world), too_long);
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Order {
    #[serde(with = "exact")]
    total: Decimal,
    #[serde(with = "exact")]
    day: chrono::NaiveDate,
    #[serde(with = "exact", default)]
    paid: Option<jiff::Timestamp>,
}

#[test]
fn fields_hold_decimals_and_dates() {
    let order = Order {
        total: Decimal::from_str("19.90").unwrap(),
        day: chrono::NaiveDate::from_ymd_opt(2026, 3, 1).unwrap(),
        paid: Some("2026-03-02T10:00:00.5Z".parse().unwrap()),
    };
    let mut session = engine().session();
    let run = session.run("(pr-str data)").data(&order);
    let text = run.eval::<String>(&World::default()).unwrap().done().unwrap();
    assert_eq!(text, "{:total 19.90M, :day #time/date \"2026-03-01\", :paid #inst \"2026-03-02T10:00:00.500-00:00\"}");
    let run = session.run("data").data(&order);
    assert_eq!(run.eval::<Order>(&World::default()).unwrap().done(), Some(order.clone()));
    // Other formats have the texts of these types.
    let text = serde_json::to_string(&order).unwrap();
    assert_eq!(text, r#"{"total":"19.90","day":"2026-03-01","paid":"2026-03-02T10:00:00.5Z"}"#);
    assert_eq!(serde_json::from_str::<Order>(&text).unwrap(), order);
    // A text of a date is read as well.
    let written = "{:total \"19.90\" :day \"2026-03-01\"}";
    assert_eq!(evaluated::<Order>(written, &World::default()), Order { paid: None, ..order });
}

#[test]
fn what_has_no_counterpart_is_an_error() {
    let leap = chrono::NaiveTime::from_hms_nano_opt(23, 59, 59, 1_500_000_000).unwrap();
    let error = engine().session().run("data").data(&Exact(leap)).eval::<Value>(&World::default()).unwrap_err();
    assert!(
        error.to_string().starts_with("`data` cannot be given to the program: the time is out of range"),
        "{error}"
    );
    let world = echo::<Exact<civil::Date>>();
    assert_eq!(refused("(t/echo {:it 7})", &world), "argument `it` of `t/echo`: expected a date, got 7 (an integer)");
}

#[test]
fn json_is_data_whatever_features_are_on() {
    let data = json!({"b": 1, "a": [1.5, -0.25, 1e300, null, true, "x", 18446744073709551615u64], "c": {"n": -7}});
    let text = "{:b 1, :a [1.5 -0.25 1.0E300 nil true \"x\" 18446744073709551615N], :c {:n -7}}";
    let mut session = engine().session();
    let run = session.run("(pr-str data)").data(&data);
    assert_eq!(run.eval::<String>(&World::default()).unwrap().done().as_deref(), Some(text));
    let run = session.run("(pr-str it)").set("it", &data);
    assert_eq!(run.eval::<String>(&World::default()).unwrap().done().as_deref(), Some(text));
    session.set("kept", &data).unwrap();
    assert_eq!(session.run("(pr-str kept)").eval::<String>(&World::default()).unwrap().done().as_deref(), Some(text));
    // Through a tool whose arguments and result are any JSON.
    let world = echo::<serde_json::Value>();
    let run = session.run("(pr-str (t/echo {:it it}))").set("it", &data["a"]);
    let items = "[1.5 -0.25 1.0E300 nil true \"x\" 18446744073709551615N]";
    assert_eq!(run.eval::<String>(&world).unwrap().done().as_deref(), Some(items));
    let run = session.run("data").data(&data);
    assert_eq!(run.eval::<serde_json::Value>(&World::default()).unwrap().done(), Some(data));
}

#[test]
fn raw_json_is_data() {
    let raw = serde_json::value::RawValue::from_string(r#"{"a": [1, 2.5, "x"]}"#.to_owned()).unwrap();
    let mut session = engine().session();
    let run = session.run("(pr-str data)").data(&raw);
    assert_eq!(run.eval::<String>(&World::default()).unwrap().done().as_deref(), Some("{:a [1 2.5 \"x\"]}"));
    let mut tools = Tools::new();
    tools.tool("t/raw", move |_: lispbox_lang::NoArguments, _: &Call| Ok(raw.clone()));
    assert_eq!(evaluated::<String>("(pr-str (t/raw))", &World::new(tools)), "{:a [1 2.5 \"x\"]}");
}

#[cfg(feature = "arbitrary_precision")]
#[test]
fn long_numbers_of_json_keep_their_digits() {
    let data: serde_json::Value =
        serde_json::from_str("[0.12345678901234567890123, 123456789012345678901234567890]").unwrap();
    let mut session = engine().session();
    let run = session.run("(pr-str data)").data(&data);
    let text = "[0.12345678901234567890123M 123456789012345678901234567890N]";
    assert_eq!(run.eval::<String>(&World::default()).unwrap().done().as_deref(), Some(text));
    let mut tools = Tools::new();
    tools.tool("t/json", move |_: lispbox_lang::NoArguments, _: &Call| Ok(data.clone()));
    assert_eq!(evaluated::<String>("(pr-str (t/json))", &World::new(tools)), text);
}

#[test]
fn decimals_of_a_program_have_exponents_like_those_of_lisp() {
    let read = |scale: i64| {
        let number = Exact(BigDecimal::new(1.into(), scale));
        let read = engine().session().run("data").data(&number).eval::<Value>(&World::default());
        read.map(drop).map_err(|error| error.to_string())
    };
    assert_eq!((read(1_000_000), read(-1_000_000)), (Ok(()), Ok(())));
    for scale in [1_000_001, -1_000_001, i64::MAX, i64::MIN] {
        let error = read(scale).expect_err("refused");
        assert!(error.contains("an exponent of at most 1000000"), "{error}");
    }
    // No power of ten with a million digits is computed to see that they do not fit.
    for program in ["(t/echo {:it 1e-1000000M})", "(t/echo {:it 15e-999999M})"] {
        let failed = engine().session().run(program).eval::<Value>(&echo::<Exact<Decimal>>()).expect("it runs");
        assert!(failed.into_result().is_err(), "{program}");
    }
    let zeros: String =
        evaluated("(str (t/echo {:it 1.50000000000000000000000000000000000M}))", &echo::<Exact<Decimal>>());
    assert_eq!(zeros.trim_end_matches('0'), "1.5");
}

const FIRST: i64 = -62_135_596_800;
const LAST: i64 = 253_402_207_200;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_decimal_comes_back(digits in any::<i128>(), scale in 0u32..=28, exponent in -40i64..40) {
        let number = BigDecimal::new(digits.into(), exponent);
        there_and_back(number)?;
        let bounded = Decimal::from_i128_with_scale(digits >> 33, scale);
        there_and_back(bounded)?;
    }

    #[test]
    fn any_instant_comes_back(seconds in FIRST..LAST, nanos in 0i32..1_000_000_000, offset in -43_200i32..43_200) {
        let at = jiff::Timestamp::new(seconds, nanos).unwrap();
        there_and_back(at)?;
        let offset = offset / 60 * 60;
        let zone = jiff::tz::TimeZone::fixed(jiff::tz::Offset::from_seconds(offset).unwrap());
        let zoned = at.to_zoned(zone);
        there_and_back(zoned.clone())?;
        there_and_back(zoned.datetime())?;
        there_and_back(zoned.date())?;
        there_and_back(zoned.time())?;

        let chrono_at = chrono::DateTime::from_timestamp(seconds, nanos as u32).unwrap();
        there_and_back(chrono_at)?;
        let fixed = chrono_at.with_timezone(&chrono::FixedOffset::east_opt(offset).unwrap());
        there_and_back(fixed)?;
        there_and_back(fixed.naive_local())?;
        there_and_back(fixed.naive_local().date())?;
        there_and_back(fixed.naive_local().time())?;

        let nanoseconds = i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        let time_at = time::OffsetDateTime::from_unix_timestamp_nanos(nanoseconds).unwrap();
        let time_at = time_at.to_offset(time::UtcOffset::from_whole_seconds(offset).unwrap());
        there_and_back(time_at)?;
        there_and_back(time_at.date())?;
        there_and_back(time_at.time())?;
        there_and_back(time::PrimitiveDateTime::new(time_at.date(), time_at.time()))?;
    }

    #[test]
    fn any_duration_comes_back(seconds in any::<i32>(), nanos in 0i32..1_000_000_000) {
        there_and_back(jiff::SignedDuration::new(seconds.into(), nanos))?;
    }
}
