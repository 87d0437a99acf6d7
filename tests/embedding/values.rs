//! Values of all kinds go to and from tools, data, parameters and results as what they are, or are refused.

use crate::common::engine;
use lispbox::lang::value::Value;
use lispbox::lang::{Call, Engine, Exact, Limits, Scalar, ToolError, Tools, World, exact};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::sync::Mutex;

/// An amount of money, in cents.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Cents(i64);

impl Scalar for Cents {
    fn to_scalar(&self) -> Result<Value, String> {
        Ok(Value::decimal(self.0, 2))
    }

    fn from_scalar(value: &Value) -> Result<Cents, String> {
        let digits = match value {
            Value::Decimal(_) => value.to_string(),
            other => return Err(format!("expected an amount, got {other}")),
        };
        let (whole, cents) = digits.split_once('.').unwrap_or((&digits, "00"));
        format!("{whole}{cents:0<2}").parse().map(Cents).map_err(|_| format!("expected an amount, got {digits}"))
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Invoice {
    id: u64,
    #[serde(with = "exact")]
    total: Cents,
    #[serde(with = "exact", default)]
    discount: Option<Cents>,
    lines: Vec<Exact<Cents>>,
}

fn invoice() -> Invoice {
    Invoice { id: 7, total: Cents(1_990), discount: None, lines: vec![Exact(Cents(1_000)), Exact(Cents(990))] }
}

/// A tool that returns its argument, which it has read as that type.
pub fn echo<T: Serialize + for<'de> Deserialize<'de> + 'static>() -> World<'static> {
    #[derive(Deserialize)]
    struct Given<T> {
        it: T,
    }
    let mut tools = Tools::new();
    tools.tool("t/echo", |given: Given<T>, _: &Call| -> Result<T, ToolError> { Ok(given.it) });
    World::new(tools)
}

pub fn evaluated<T: for<'de> Deserialize<'de>>(program: &str, world: &World<'_>) -> T {
    let outcome = engine().session().run(program).eval::<T>(world).expect("it fits");
    outcome.into_result().unwrap_or_else(|failure| panic!("{program}: {}", failure.rendered))
}

pub fn failure(program: &str, world: &World<'_>) -> String {
    let outcome = engine().session().run(program).eval::<Value>(world).expect("no result to convert");
    outcome.into_result().expect_err("it fails").to_string()
}

#[test]
fn a_tool_gets_the_digits_of_a_decimal() {
    let seen = Mutex::new(Vec::new());
    #[derive(Deserialize)]
    struct Fee {
        amount: Value,
    }
    let mut tools = Tools::new();
    tools.tool("bank/fee", |fee: Fee, _: &Call| {
        seen.lock().unwrap().push(fee.amount.to_string());
        Ok(())
    });
    let world = World::new(tools);
    for amount in ["12345678901234567890.12345678901M", "12345678901234567.89M", "19.90M", "1.0E+30M"] {
        let _: () = evaluated(&format!("(bank/fee {{:amount {amount}}})"), &world);
    }
    drop(world);
    let digits = ["12345678901234567890.12345678901", "12345678901234567.89", "19.90", "1.0E+30"];
    assert_eq!(*seen.lock().unwrap(), digits);
}

#[test]
fn programs_calculate_with_the_decimals_that_tools_return() {
    let mut tools = Tools::new();
    tools.tool("n/out", |_: HashMap<String, Value>, _: &Call| Ok(Exact(Cents(1_990))));
    tools.tool("n/invoice", |_: HashMap<String, Value>, _: &Call| Ok(invoice()));
    let world = World::new(tools);
    assert_eq!(evaluated::<String>("(pr-str (+ 1M (n/out)))", &world), "20.90M");
    assert_eq!(evaluated::<String>("(pr-str (reduce + (:lines (n/invoice))))", &world), "19.90M");
    assert_eq!(evaluated::<Invoice>("(n/invoice)", &world), invoice());
    assert_eq!(evaluated::<Option<Value>>("(:discount (n/invoice))", &world), None);
}

#[test]
fn data_and_parameters_hold_decimals() {
    let (world, mut session, given, rate) = (World::default(), engine().session(), invoice(), Exact(Cents(5)));
    let run = session.run("[(pr-str (:total data)) (pr-str (+ rate 1))]").data(&given).set("rate", &rate);
    assert_eq!(run.eval::<Vec<String>>(&world).unwrap().done().unwrap(), ["19.90M", "1.05M"]);
    session.set("kept", &invoice()).unwrap();
    assert_eq!(session.get::<Invoice>("kept").unwrap(), Some(invoice()));
    // Another format gets what the type gives it by itself.
    let text = serde_json::to_string(&invoice()).unwrap();
    assert_eq!(text, r#"{"id":7,"total":1990,"discount":null,"lines":[1000,990]}"#);
    assert_eq!(serde_json::from_str::<Invoice>(&text).unwrap(), invoice());
}

#[test]
fn a_value_of_any_kind_passes_through_a_tool_unchanged() {
    let world = echo::<Value>();
    for program in [
        "nil",
        "true",
        "-7",
        "123456789012345678901234567890",
        "1.5",
        "1.0E300",
        "19.90M",
        "1.0E+30M",
        "\"a \\\"quoted\\\" text\\n\"",
        "\"#d not a mark\"",
        "\\a",
        ":key",
        ":some/key",
        "(keyword \"a b\")",
        "'symbol",
        "#inst \"2026-03-01T10:00:00.123Z\"",
        "#time/date \"2026-03-01\"",
        "#time/zoned-date-time \"2026-03-01T10:00:00+01:00[Europe/Paris]\"",
        "#time/duration \"PT1H\"",
        "[1 [2 \"3\"] {:a {:b []}}]",
        "'(1 2)",
        "()",
        "#{1 :a \"b\"}",
        "{\"a\" 1, :b 2, 3 4, [5] #{6}}",
        "(sorted-map :b 1 :a 2)",
        "(map inc [1 2 3])",
        "{:deep [(map inc [1 2]) {:lazy (filter odd? (range 9))}]}",
        "(cons 1 (lazy-seq [2 3]))",
        "(range 5)",
    ] {
        let same =
            format!("(let [it {program}] [(= it (t/echo {{:it it}})) (= (class it) (class (t/echo {{:it it}})))])");
        let is_lazy = ["(map", "(cons", "(range", "(sorted", "{:deep"].iter().any(|lazy| program.starts_with(lazy));
        let (is_equal, is_alike): (bool, bool) = evaluated(&same, &world);
        assert!(is_equal && (is_alike || is_lazy), "{program}");
    }
    // JSON, in which a person sees the arguments, has no infinity.
    assert!(failure("(t/echo {:it ##Inf})", &world).starts_with("JsonError: "));
    let mut tools = Tools::new();
    tools.tool("t/out", |_: HashMap<String, Value>, _: &Call| Ok([f64::INFINITY, f64::NEG_INFINITY, f64::NAN]));
    assert_eq!(evaluated::<String>("(pr-str (t/out))", &World::new(tools)), "[##Inf ##-Inf ##NaN]");
}

#[test]
fn a_function_is_no_data() {
    let mut session = engine().session();
    let outcome = session.run("inc").eval::<Value>(&World::default()).unwrap().done().unwrap();
    let mut tools = Tools::new();
    tools.tool("t/function", move |_: HashMap<String, Value>, _: &Call| Ok(vec![outcome.clone()]));
    assert_eq!(
        failure("(t/function)", &World::new(tools)),
        "ToolError: `t/function` returned a result that is not data: at [0]: expected data, got #<function inc> (a \
         function)"
    );
}

#[test]
fn a_number_that_does_not_fit_is_an_error_that_names_the_argument() {
    let of = |program: &str| {
        let world = echo::<u8>();
        failure(program, &world)
    };
    let expected = "ToolArgumentError: argument `it` of `t/echo`: ";
    assert_eq!(of("(t/echo {:it 1.5})"), format!("{expected}expected an integer, got 1.5 (a double)"));
    assert!(
        of("(t/echo {:it 256})").starts_with(&format!("{expected}invalid value: integer `256`")),
        "{}",
        of("(t/echo {:it 256})")
    );
    let world = echo::<f64>();
    assert_eq!(
        failure("(t/echo {:it 9007199254740993})", &world),
        format!("{expected}expected a number that a double represents exactly, got 9007199254740993 (an integer)")
    );
    assert_eq!(evaluated::<f64>("(t/echo {:it 0.1M})", &world), 0.1);
    assert_eq!(evaluated::<i64>("(t/echo {:it 3.0})", &echo::<i64>()), 3);
    assert_eq!(evaluated::<f32>("(t/echo {:it 0.1})", &echo::<f32>()), 0.1);
    assert!(failure("(t/echo {:it 0.123456789})", &echo::<f32>()).contains("represents exactly"));
    // A single is the double that is written like it, on each way into a program.
    let mut session = engine().session();
    let world = echo::<f32>();
    let program = "(mapv str (conj data (t/echo {:it 0.1}) 0.1))";
    let shown = session.run(program).data(&[0.1_f32, -16.1, 1e-9, 3.0, 1e30]).eval::<Vec<String>>(&world).unwrap();
    assert_eq!(shown.done().unwrap(), ["0.1", "-16.1", "1.0E-9", "3.0", "1.0E30", "0.1", "0.1"]);
    session.set("rate", &0.7_f32).unwrap();
    assert_eq!(session.run("(= rate 0.7)").eval::<bool>(&world).unwrap().done(), Some(true));
}

#[test]
fn a_map_with_other_keys_than_text_is_returned_as_it_is() {
    let mut tools = Tools::new();
    tools.tool("t/count", |_: HashMap<String, Value>, _: &Call| Ok(BTreeMap::from([(1, "one"), (2, "two")])));
    assert_eq!(evaluated::<String>("(get (t/count) 2)", &World::new(tools)), "two");
}

#[test]
fn a_result_is_refused_while_it_is_written() {
    /// A list that fails the test if it is written to its end.
    struct Endless;
    impl Serialize for Endless {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            use serde::ser::SerializeSeq;
            let mut list = serializer.serialize_seq(None)?;
            for _ in 0..1_000_000 {
                list.serialize_element(&"x".repeat(1_000))?;
            }
            panic!("a gigabyte was written");
        }
    }
    let mut tools = Tools::new();
    tools.tool("t/all", |_: HashMap<String, Value>, _: &Call| Ok(Endless));
    let limits = Limits { memory: 16 << 20, ..Limits::default() };
    let outcome = engine().session().run("(t/all)").limits(limits).eval::<Value>(&World::new(tools)).unwrap();
    let failure = outcome.into_result().unwrap_err();
    assert_eq!(failure.error, "ToolResultTooLarge");
    assert!(failure.message.starts_with("`t/all` returned a result that takes more than the "), "{failure}");
}

#[test]
fn a_definition_is_no_value() {
    let mut session = engine().session();
    assert_eq!(session.run("(def tax 19)").eval::<()>(&World::default()).unwrap().done(), Some(()));
    assert!(session.run("19").eval::<()>(&World::default()).is_err());
}

#[test]
fn json_data_is_what_it_says() {
    let mut session = engine().session();
    let data = json!({"a": 1, "b": [1.5, null, "x"], "c": 18446744073709551615u64});
    let run = session.run("(pr-str data)").data(&data);
    let expected = "{:a 1, :b [1.5 nil \"x\"], :c 18446744073709551615N}";
    assert_eq!(run.eval::<String>(&World::default()).unwrap().done().as_deref(), Some(expected));
    let raw = serde_json::value::RawValue::from_string(r#"{"a": [1, 2.5]}"#.to_owned()).unwrap();
    let run = session.run("(pr-str data)").data(&raw);
    assert_eq!(run.eval::<String>(&World::default()).unwrap().done().as_deref(), Some("{:a [1 2.5]}"));
    // Raw text comes back as JSON, with all digits.
    let raw = session.run("{:a 19.90M :b [:k]}").eval::<Box<serde_json::value::RawValue>>(&World::default());
    assert_eq!(raw.unwrap().done().unwrap().get(), r#"{"a":19.90,"b":["k"]}"#);
}

pub fn there_and_back<T>(engine: &std::sync::Arc<Engine>, value: &T) -> Result<(), TestCaseError>
where
    T: Serialize + for<'de> Deserialize<'de> + PartialEq + Debug + 'static,
{
    let world = echo::<T>();
    let mut session = engine.session();
    let back = session.run("(t/echo {:it it})").set("it", value).eval::<T>(&world).expect("it succeeds");
    let back = back.into_result().map_err(|failure| TestCaseError::fail(failure.rendered))?;
    prop_assert_eq!(&back, value, "through a tool");
    let back = session.run("data").data(value).eval::<T>(&world).expect("it succeeds");
    prop_assert_eq!(&back.done().expect("it succeeds"), value, "as data");
    session.set("kept", value).expect("it succeeds");
    let mut session = engine.restore(&session.encode().expect("it succeeds")).expect("it succeeds");
    prop_assert_eq!(
        &session.get::<T>("kept").expect("it succeeds").expect("it succeeds"),
        value,
        "in a stored session"
    );
    Ok(())
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Shape {
    Unit,
    One(i64),
    Two(String, bool),
    Fields { a: Option<i128>, b: Vec<u8> },
}

fn shape() -> impl Strategy<Value = Shape> {
    prop_oneof![
        Just(Shape::Unit),
        any::<i64>().prop_map(Shape::One),
        (".*", any::<bool>()).prop_map(|(text, flag)| Shape::Two(text, flag)),
        (any::<Option<i128>>(), any::<Vec<u8>>()).prop_map(|(a, b)| Shape::Fields { a, b }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_value_of_a_supported_type_comes_back(
        whole in any::<(i8, u16, i64, u64, i128, u128)>(),
        doubles in prop::collection::vec(any::<f64>().prop_filter("a number", |number| number.is_finite()), 0..4),
        single in any::<f32>().prop_filter("a number", |number| number.is_finite()),
        text in ".*",
        letter in any::<char>(),
        cents in any::<i64>(),
        by_number in prop::collection::btree_map(any::<i32>(), any::<bool>(), 0..4),
        by_text in prop::collection::btree_map(".*", any::<Option<bool>>(), 0..4),
        shapes in prop::collection::vec(shape(), 0..4),
    ) {
        let engine = engine();
        there_and_back(&engine, &whole)?;
        there_and_back(&engine, &doubles)?;
        there_and_back(&engine, &single)?;
        there_and_back(&engine, &text)?;
        there_and_back(&engine, &letter)?;
        there_and_back(&engine, &Exact(Cents(cents % 1_000_000_000_000)))?;
        there_and_back(&engine, &by_number)?;
        there_and_back(&engine, &by_text)?;
        there_and_back(&engine, &shapes)?;
    }
}
