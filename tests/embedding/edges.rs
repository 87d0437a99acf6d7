//! Values that Rust, JSON or serde represent badly, and names that are taken: each is exact, or refused with its place.

use crate::common::engine;
use crate::values::echo;
use lispbox::lang::value::Value;
use lispbox::lang::{Call, EvalError, NoArguments, ToolError, Tools, World};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::thread;
use std::time::Instant;

/// Evaluates a program to a type, or to the text of the error.
fn read<T: for<'de> Deserialize<'de>>(program: &str, world: &World<'_>) -> Result<T, String> {
    match engine().session().run(program).eval::<T>(world) {
        Ok(outcome) => outcome.into_result().map_err(|failure| failure.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn a_value_is_serialized_up_to_a_depth_on_any_thread() {
    let world = World::default();
    let nested = |levels: usize| format!("(reduce (fn [a _] [a]) [] (range {levels}))");
    let serialized = |levels: usize| {
        let value: Value = read(&nested(levels), &world).expect("a value");
        let work = move || serde_json::to_string(&value).map(|text| text.len()).map_err(|error| error.to_string());
        let small = thread::Builder::new().stack_size(1 << 20).spawn(work).expect("a thread");
        small.join().expect("it neither panics nor overflows its stack")
    };
    assert_eq!(serialized(200), Ok(402));
    for levels in [256, 3_000, 100_000] {
        let error = serialized(levels).expect_err("too deep");
        assert!(error.contains("nests at most 256 deep"), "{error}");
    }
    assert_eq!(serialized(255), Ok(512), "an error leaves nothing behind");
}

#[test]
fn lazy_parts_of_what_leaves_a_run_are_computed() {
    let world = World::default();
    for (program, shown) in [
        ("(take 3 (iterate inc 1))", "(1 2 3)"),
        ("{:a (lazy-seq [1 2])}", "{:a (1 2)}"),
        ("[(cons 1 (lazy-seq [2]))]", "[(1 2)]"),
        ("(map vector [1] (lazy-seq [(lazy-seq [2])]))", "([1 (2)])"),
    ] {
        assert_eq!(read::<Value>(program, &world).expect("a value").to_string(), shown, "{program}");
    }
    assert!(read::<Value>("(lazy-seq (throw (ex-info \"late\" {})))", &world).expect_err("it raises").contains("late"));
}

#[test]
fn keys_of_a_program_are_no_markers_of_serde_json() {
    for (key, value) in [("RawValue", "\"\\\"eve\\\"\""), ("Number", "\"12\""), ("RawValue", "\"1\" \"b\" 2")] {
        let map = format!("{{\"$serde_json::private::{key}\" {value}}}");
        for program in [map.clone(), format!("[1 {{:a {map}}}]")] {
            let error = read::<Json>(&program, &World::default()).expect_err("refused");
            assert!(error.contains("which serde_json reserves"), "{program}: {error}");
        }
        let error = read::<Json>(&format!("(t/echo {{:it {map}}})"), &echo::<Json>()).expect_err("refused");
        assert!(error.contains("which serde_json reserves"), "{error}");
    }
    assert_eq!(read::<Json>("{\"$serde_json\" 1}", &World::default()), Ok(json!({"$serde_json": 1})));
}

#[test]
fn numbers_that_json_lacks_are_refused_and_all_others_are_exact() {
    let world = World::default();
    for program in ["##NaN", "##Inf", "[1.5 {:a ##-Inf}]"] {
        assert!(
            read::<Json>(program, &world).expect_err("JSON lacks it").contains("a number that JSON has"),
            "{program}"
        );
    }
    assert!(read::<f64>("##NaN", &world).expect("a double").is_nan());
    for program in ["-9223372036854775808", "9223372036854775807", "9007199254740993"] {
        let error = read::<f64>(program, &world).expect_err("no double is that number");
        assert!(error.contains("a number that a double represents exactly"), "{program}: {error}");
    }
    assert_eq!(read::<f64>("-9007199254740992", &world), Ok(-9_007_199_254_740_992.0));
    let begun = Instant::now();
    for program in ["1e-1000000M", "1.5e-999999M", "1e1000000M"] {
        read::<i64>(program, &world).expect_err("no integer of 64 bits");
    }
    for program in ["0e-1000000M", "0M", "0.000M"] {
        assert_eq!(read::<i64>(program, &world), Ok(0), "{program}");
    }
    assert_eq!(read::<i64>("1200e-2M", &world), Ok(12));
    assert!(begun.elapsed().as_secs() < 5, "no power of ten is computed: {:?}", begun.elapsed());
}

#[test]
fn the_place_of_an_error_names_the_variant() {
    #[derive(Debug, Serialize, Deserialize)]
    enum Step {
        Move { to: Vec<i64> },
        Pair(i64, i64),
        Note(i64),
    }
    for (program, place) in [
        ("[{:Move {:to [1 \"x\"]}}]", "[0].Move.to[1]"),
        ("[{:Pair [1 \"x\"]}]", "[0].Pair[1]"),
        ("[{:Note \"x\"}]", "[0].Note"),
    ] {
        let error = read::<Vec<Step>>(program, &World::default()).expect_err("it does not fit");
        assert!(error.contains(&format!("at {place}")), "{program}: {error}");
    }
}

#[test]
fn what_definitions_return_is_nothing() {
    for program in
        ["(def a 1)", "(defn f [] 1)", "(defrecord P [a])", "(defprotocol Q (g [x]))", "(defmulti m :k)", "nil"]
    {
        assert_eq!(read::<()>(program, &World::default()), Ok(()), "{program}");
    }
    assert!(read::<()>("1", &World::default()).is_err());
}

#[test]
fn a_tool_must_not_have_the_name_of_a_function_of_the_language() {
    for name in ["time/now", "json/parse", "Math/Round", "str/upper_case", "set/union"] {
        let mut tools = Tools::new();
        tools.tool(name, |_: Json, _: &Call| -> Result<i64, ToolError> { Ok(1) });
        let refused = engine().session().run("1").eval::<i64>(&World::new(tools));
        assert!(matches!(&refused, Err(EvalError::Conflict(tool)) if tool == name), "{name}: {refused:?}");
    }
    let mut tools = Tools::new();
    tools.tool("time/zone-of-office", |_: Json, _: &Call| -> Result<i64, ToolError> { Ok(1) });
    assert_eq!(read::<i64>("(time/zone-of-office)", &World::new(tools)), Ok(1));
}

#[test]
fn no_entry_of_a_map_is_lost_where_two_keys_are_the_same_text() {
    let raw = |text: &str| RawValue::from_string(text.to_owned()).expect("it is JSON");
    #[derive(Serialize)]
    struct Order {
        id: u64,
        #[serde(flatten)]
        rest: BTreeMap<&'static str, u64>,
    }
    let order = || Order { id: 1, rest: BTreeMap::from([("id", 2)]) };
    let mut tools = Tools::new();
    tools.tool("t/raw", |_: NoArguments, _: &Call| Ok([raw("{\"a\":1,\"a\":2}")]));
    tools.tool("t/order", |_: NoArguments, _: &Call| Ok(order()));
    tools.tool("t/fine", |_: NoArguments, _: &Call| Ok(Order { id: 1, rest: BTreeMap::from([("total", 2)]) }));
    let world = World::new(tools);
    let twice = "the key `a` occurs twice in an object of the raw JSON";
    let mut session = engine().session();
    for text in ["{\"a\":1,\"a\":2}", "[{\"b\":{\"a\":1,\"\\u0061\":[]}}]"] {
        let error = session.run("data").data(&raw(text)).eval::<Value>(&world).expect_err("a key occurs twice");
        assert!(error.to_string().ends_with(twice), "{error}");
    }
    let data = raw("[{\"a\":{\"a\":1}},{\"a\":2}]");
    let shown = session.run("(pr-str data)").data(&data).eval::<String>(&world).expect("it is data").done();
    assert_eq!(shown.as_deref(), Some("[{:a {:a 1}} {:a 2}]"));
    let error = session.run("data").data(&order()).eval::<Value>(&world).expect_err("a key occurs twice");
    assert!(error.to_string().ends_with("the key :id occurs twice"), "{error}");
    for (program, problem) in [("(t/raw)", twice), ("(t/order)", "two keys of the map mean `id`")] {
        let error = read::<Value>(program, &world).expect_err("a key occurs twice");
        assert!(error.starts_with("ToolError: `t/") && error.ends_with(problem), "{error}");
    }
    assert_eq!(read::<u64>("(:total (t/fine))", &world), Ok(2));
    // The other way.
    let error = read::<Box<RawValue>>("[{:a 1 \"a\" 2}]", &world).map(|_| ()).expect_err("two keys are one in JSON");
    assert!(error.ends_with("two keys of the map mean `a`"), "{error}");
}
