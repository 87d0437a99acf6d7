//! Functions that a host adds to the language are called, found, snapshotted and limited like builtins.

use crate::common;

use common::{Scripted, host, run};
use lispbox::lang::Builtin;
use lispbox::lang::arguments::{string, take};
use lispbox::lang::{
    EncodeError, EncodeReason, Engine, EngineBuilder, Host, Limits, Request, Session, ToolReply, Value,
};
use serde_json::json;
use std::sync::{Arc, Mutex};

/// A value that one session leaves for another.
static LEFT: Mutex<Value> = Mutex::new(Value::Nil);

static FUNCTIONS: [Builtin; 6] = [
    Builtin::new("shop/price", &["[item]"], "What an item costs, in cents.", &[], |_, arguments| {
        let item = take(arguments, 0);
        Ok(Value::Int(100 * string(&item)?.len() as i64))
    }),
    Builtin::new("shop/calls", &["[]"], "How many tools were called so far.", &[], |machine, _| {
        let calls = machine.host::<Scripted>().map(|host| host.calls.lock().expect("not poisoned").len());
        Ok(calls.map_or(Value::Nil, |calls| Value::Int(calls as i64)))
    }),
    Builtin::new("shop/apply", &["[f x]"], "What `f` makes of `x`.", &[], |machine, arguments| {
        let (function, argument) = (take(arguments, 0), take(arguments, 1));
        machine.call1(&function, argument)
    }),
    Builtin::new("shop/forever", &["[]"], "Works until it is stopped.", &[], |machine, _| {
        loop {
            machine.charge(100)?;
        }
    }),
    Builtin::new("shop/leave", &["[x]"], "Leaves `x` for whoever takes it.", &[], |_, arguments| {
        *LEFT.lock().expect("not poisoned") = take(arguments, 0);
        Ok(Value::Nil)
    }),
    Builtin::new("shop/take", &["[]"], "What was left.", &[], |_, _| Ok(LEFT.lock().expect("not poisoned").clone())),
];

fn builder() -> EngineBuilder {
    Engine::builder().functions("The shop", &FUNCTIONS)
}

fn session() -> Session {
    builder().build().expect("the names are free").session()
}

#[test]
fn they_are_called_like_the_languages_own() {
    let mut session = session();
    assert_eq!(run(&mut session, "(shop/price \"tea\")"), "300");
    assert_eq!(run(&mut session, "(map shop/price [\"a\" \"bb\"])"), "(100 200)");
    assert_eq!(run(&mut session, "(shop/apply #(* 2 %) 21)"), "42");
    assert_eq!(run(&mut session, "(= shop/price @#'shop/price)"), "true");
    assert_eq!(run(&mut session, "(shop/calls)"), "0");
}

#[test]
fn what_is_wrong_with_a_call_is_said_as_of_a_builtin() {
    let mut session = session();
    let error = run(&mut session, "(shop/price 1 2)");
    assert!(error.contains("`shop/price` takes 1 argument, got 2: `(shop/price item)`"), "{error}");
    let error = run(&mut session, "(+ 1 (shop/price 5))");
    assert!(error.contains("TypeError: `shop/price` expected a string, got 5"), "{error}");
    let error = run(&mut session, "(shop/prise \"tea\")");
    assert!(error.contains("Did you mean shop/price?"), "{error}");
}

#[test]
fn they_are_documented_and_found() {
    let mut session = session();
    let host: Arc<dyn Host> = Arc::new(Scripted::new());
    let doc = session.explain("shop/price", host.clone()).expect("it is known");
    assert!(doc.contains("(shop/price item)") && doc.contains("What an item costs, in cents."), "{doc}");
    let found = session.describe(Some("costs cents"), host.clone());
    assert!(found.contains("shop/price"), "{found}");
    assert!(session.describe(Some("shop"), host).contains("shop/calls"));
}

#[test]
fn a_session_keeps_them_by_name() {
    let mut session = session();
    run(&mut session, "(def price shop/price) (defn double-price [item] (* 2 (shop/price item)))");
    let text = session.encode(common::host()).expect("it encodes");
    let mut other = self::session();
    other.decode(&text, common::host()).expect("the same engine has them");
    assert_eq!(run(&mut other, "[(price \"tea\") (double-price \"tea\")]"), "[300 600]");
    let refused = common::session().decode(&text, common::host()).expect_err("this engine has none");
    assert!(refused.contains("shop/price"), "{refused}");
}

#[test]
fn limits_hold_inside_of_them() {
    let limits = Limits { fuel: 100_000, ..Limits::default() };
    let reply = session().eval(Request { limits, ..Request::new("(shop/forever)") }, common::host());
    assert_eq!(reply.failure.and_then(|failure| failure.limit).as_deref(), Some("fuel"));
}

#[test]
fn they_need_names_that_are_free_and_have_a_namespace() {
    static TAKEN: [Builtin; 1] = [Builtin::new("str/join", &["[x]"], "", &[], |_, _| Ok(Value::Nil))];
    static BARE: [Builtin; 1] = [Builtin::new("price", &["[x]"], "", &[], |_, _| Ok(Value::Nil))];
    let problem = |builder: EngineBuilder| builder.build().err().map(|error| error.to_string()).unwrap_or_default();
    assert!(problem(Engine::builder().functions("Mine", &TAKEN)).contains("has a function `str/join` already"));
    assert!(problem(Engine::builder().functions("Mine", &BARE)).contains("such as `host/price`"));
    assert!(problem(builder().functions("Twice", &FUNCTIONS)).contains("has a function `shop/price` already"));
}

#[test]
fn a_tool_may_evaluate_in_a_session_of_its_own() {
    let engine = builder().build().expect("the names are free");
    let inner = engine.clone();
    let host = Scripted::new().tool("nested/eval", json!({"properties": {"program": {}}}), move |arguments| {
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
    let error = session.encode(host()).expect_err("it holds an atom of another session");
    assert_eq!(error, EncodeError { name: Some("held".to_owned()), reason: EncodeReason::Foreign });
    assert_eq!(error.to_string(), "`held` cannot be written: it holds an atom or a sequence of another session");
    run(&mut session, "(session/forget 'held)");
    assert_eq!(session.encode(host()).expect_err("so does the other").name.as_deref(), Some("alias"));
    run(&mut session, "(def alias 2)");
    session.encode(host()).expect("nothing is in the way");
    // `*1` counts as well.
    run(&mut session, "(shop/take)");
    assert_eq!(session.encode(host()).expect_err("the last value").name.as_deref(), Some("*1"));
    run(&mut session, "1 2 3");
    run(&mut session, "2");
    run(&mut session, "3");
    session.encode(host()).expect("nothing is in the way");

    run(&mut session, "(def long (vec (range 1000000)))");
    let stopped = Scripted::new();
    stopped.cancelled.store(true, std::sync::atomic::Ordering::Relaxed);
    let error = session.encode(Arc::new(stopped)).expect_err("it was stopped");
    assert_eq!(error, EncodeError { name: Some("long".to_owned()), reason: EncodeReason::Cancelled });
}
