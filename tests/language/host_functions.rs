//! Closures that an embedder adds to the language are called, found, serialized and limited like builtins.

use crate::common;

use common::{host, run};
use lispbox::lang::{
    EncodeError, EncodeReason, Engine, EngineBuilder, Error, Host, Limits, Machine, Outcome, Request, Session, Signal,
    ToolReply, Value, World, outside,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

/// A value that one session leaves for another.
static LEFT: Mutex<Value> = Mutex::new(Value::Nil);

#[derive(Deserialize, Serialize)]
struct Item {
    name: String,
    cents: u64,
}

fn builder() -> EngineBuilder {
    let mut builder = Engine::builder();
    builder
        .function("shop/price", |item: String| 100 * item.len())
        .arguments("[item]")
        .doc("What an item costs, in cents.");
    builder.function("shop/discounted", |item: Item, percent: u64| {
        if percent > 100 {
            return Err(Error::new("TooMuch", format!("{percent} percent are too many")));
        }
        Ok(Item { cents: item.cents * (100 - percent) / 100, ..item })
    });
    builder.function("shop/apply", |machine: &mut Machine, function: Value, argument: Value| {
        machine.call1(&function, argument)
    });
    builder.function("shop/forever", |machine: &mut Machine| -> Result<(), Signal> {
        loop {
            machine.charge(100)?;
        }
    });
    builder.function("shop/leave", |value: Value| *LEFT.lock().expect("not poisoned") = value);
    builder.function("shop/take", || LEFT.lock().expect("not poisoned").clone());
    builder.function("shop/panic", |reason: String| -> i64 { panic!("no {reason} left") });
    builder
}

fn session() -> Session {
    builder().build().expect("the names are free").session()
}

#[test]
fn they_are_called_like_the_languages_own() {
    let mut session = session();
    assert_eq!(run(&mut session, "(shop/price \"tea\")"), "300");
    assert_eq!(run(&mut session, "(map shop/price [\"a\" \"bb\"])"), "(100 200)");
    assert_eq!(
        run(&mut session, "((partial shop/discounted {:name \"tea\" :cents 300}) 50)"),
        "{:name \"tea\", :cents 150}"
    );
    assert_eq!(run(&mut session, "(apply shop/price [\"tea\"])"), "300");
    assert_eq!(run(&mut session, "(shop/apply #(* 2 %) 21)"), "42");
    assert_eq!(run(&mut session, "(= shop/price @#'shop/price)"), "true");
    assert_eq!(
        run(&mut session, "[(fn? shop/price) (ifn? shop/price) shop/price]"),
        "[true true #<function shop/price>]"
    );
    assert_eq!(
        run(&mut session, "(try (shop/discounted {:name \"tea\" :cents 1} 200) (catch :TooMuch e (ex-message e)))"),
        "\"200 percent are too many\""
    );
}

#[test]
fn they_hold_what_they_capture_until_the_engine_is_dropped() {
    let counter = Arc::new(AtomicI64::new(0));
    let mut builder = Engine::builder();
    let counted = counter.clone();
    builder.function("my/count", move || counted.fetch_add(1, Ordering::Relaxed));
    let mut session = builder.build().expect("the name is free").session();
    assert_eq!(run(&mut session, "(def f my/count) [(f) (f) (my/count)]"), "[0 1 2]");
    assert_eq!(Arc::strong_count(&counter), 2);
    drop(session);
    assert_eq!(Arc::strong_count(&counter), 1);
}

#[test]
fn what_is_wrong_with_a_call_is_said_as_of_a_builtin() {
    let mut session = session();
    let error = run(&mut session, "(shop/price 1 2)");
    assert!(error.contains("`shop/price` takes 1 argument, got 2: `(shop/price item)`"), "{error}");
    let error = run(&mut session, "(+ 1 (shop/price 5))");
    assert!(error.contains("TypeError: `shop/price` argument 1: expected a string, got 5 (an integer)"), "{error}");
    let error = run(&mut session, "(shop/discounted {:name \"tea\" :cents \"1\"} 5)");
    assert!(
        error.contains("`shop/discounted` argument 1: at cents: expected an integer, got \"1\" (a string)"),
        "{error}"
    );
    let error = run(&mut session, "(shop/prise \"tea\")");
    assert!(error.contains("Did you mean shop/price?"), "{error}");
}

#[test]
fn a_panic_is_an_error_of_the_call() {
    let mut session = session();
    let caught = "(def kept 1) (try (shop/panic \"tea\") (catch :FunctionPanic e (ex-message e)))";
    assert_eq!(run(&mut session, caught), "\"`shop/panic` panicked: no tea left\"");
    let error = run(&mut session, "(mapv shop/panic [\"tea\"])");
    assert!(error.contains("FunctionPanic: `shop/panic` panicked: no tea left"), "{error}");
    let error = run(&mut session, "(pmap shop/panic [\"tea\" \"milk\"])");
    assert!(error.contains("FunctionPanic: `shop/panic` panicked: no tea left"), "{error}");
    assert_eq!(run(&mut session, "(inc kept)"), "2");
}

#[test]
fn they_are_documented_and_found() {
    let mut session = session();
    let host: Arc<dyn Host> = host();
    let doc = session.explain("shop/price", host.clone()).expect("it is known");
    assert!(doc.contains("(shop/price item)") && doc.contains("What an item costs, in cents."), "{doc}");
    let found = session.describe(Some("costs cents"), host.clone());
    assert!(found.contains("shop/price"), "{found}");
    assert!(session.describe(Some("shop"), host).contains("shop/apply"));
}

#[test]
fn a_session_keeps_them_by_name() {
    let mut session = session();
    run(&mut session, "(def price shop/price) (defn double-price [item] (* 2 (shop/price item)))");
    let text = session.encode().expect("it encodes");
    let mut other = self::session();
    other.decode(&text).expect("the same engine has them");
    assert_eq!(run(&mut other, "[(price \"tea\") (double-price \"tea\")]"), "[300 600]");
    let refused = common::session().decode(&text).expect_err("this engine has none");
    assert_eq!(refused.to_string(), "the snapshot uses functions that this engine does not have: shop/price");
}

#[test]
fn limits_hold_inside_of_them() {
    let limits = Limits { fuel: 100_000, ..Limits::default() };
    let outcome = session().run("(shop/forever)").limits(limits).eval::<()>(&World::default()).expect("it converts");
    assert!(matches!(outcome, Outcome::Limited(failure) if failure.limit.as_deref() == Some("fuel")));
}

#[test]
fn memory_that_they_release_before_they_return_counts() {
    let mut builder = Engine::builder();
    builder.function("my/grow", |bytes: usize| vec![1_u8; bytes].len());
    builder.function("my/outside", |bytes: usize| outside(|| vec![1_u8; bytes].len()));
    let mut session = builder.build().expect("the names are free").session();
    let limits = Limits { memory: 64 << 20, ..Limits::default() };
    let run = session.run("(my/grow 200000000)").limits(limits.clone());
    let outcome = run.eval::<u64>(&World::default()).expect("it converts");
    assert!(matches!(outcome, Outcome::Limited(failure) if failure.limit.as_deref() == Some("memory")));
    let run = session.run("(my/outside 200000000)").limits(limits);
    assert_eq!(run.eval::<u64>(&World::default()).expect("it converts").done(), Some(200_000_000));
}

#[test]
fn they_need_names_that_are_free_and_have_a_namespace() {
    let problem = |name: &str, arguments: &str| {
        let mut builder = builder();
        builder.function(name, |x: i64| x).arguments(arguments);
        builder.build().err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(problem("str/join", "[x]").contains("has a function `str/join` already"));
    assert!(problem("price", "[x]").contains("such as `host/price`"));
    assert!(problem("shop/price", "[x]").contains("has a function `shop/price` already"));
    assert_eq!(problem("my/f", "[x y]"), "the arguments of `my/f` need 1 name in brackets, got `[x y]`");
    assert_eq!(problem("my/f", "[x]"), "");
}

#[test]
fn a_tool_may_evaluate_in_a_session_of_its_own() {
    let engine = builder().build().expect("the names are free");
    let inner = engine.clone();
    let host = common::Scripted::new().tool("nested/eval", json!({"properties": {"program": {}}}), move |arguments| {
        let program = arguments["program"].as_str().expect("a text");
        let reply = inner.session().eval(Request::new(program), common::host());
        ToolReply::Json(reply.value.unwrap_or_default())
    });
    let program = "(def kept (vec (range 100000)))
                   (+ (nested/eval {:program \"(count (vec (range 300000)))\"}) (count kept))";
    let mut session = engine.session();
    let reply = session.eval(Request::new(program), Arc::new(host));
    assert_eq!(reply.value.as_deref(), Some("400000"));
    // The memory of the inner session is not charged to the outer one.
    assert!((1_600_000..2_600_000).contains(&session.live_bytes()), "{}", session.live_bytes());
}

#[test]
fn what_cannot_be_written_is_named() {
    let mut session = session();
    run(&mut session, "(def before 1)");
    run(&mut builder().build().expect("the names are free").session(), "(shop/leave [(atom 1)])");
    run(&mut session, "(def held {:deep [(fn [] (shop/take)) (shop/take)]})");
    run(&mut session, "(def alias held)");
    let error = session.encode().expect_err("it holds an atom of another session");
    assert_eq!(error, EncodeError { name: Some("held".to_owned()), reason: EncodeReason::Foreign });
    assert_eq!(error.to_string(), "`held` cannot be written: it holds an atom or a sequence of another session");
    run(&mut session, "(session/forget 'held)");
    assert_eq!(session.encode().expect_err("so does the other").name.as_deref(), Some("alias"));
    run(&mut session, "(def alias 2)");
    session.encode().expect("nothing is in the way");
    // `*1` counts as well.
    run(&mut session, "(shop/take)");
    assert_eq!(session.encode().expect_err("the last value").name.as_deref(), Some("*1"));
    run(&mut session, "1 2 3");
    run(&mut session, "2");
    run(&mut session, "3");
    session.encode().expect("nothing is in the way");
}
