//! What an application learns of a run that failed: where, and in words that can be shown.

use crate::common::engine;
use lispbox::lang::{Call, Engine, Failure, NoArguments, Session, Tools, World};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

fn failure(session: &mut Session, program: &str) -> Failure {
    let outcome = session.run(program).eval::<i64>(&World::default()).expect("input");
    *outcome.into_result().expect_err("it fails")
}

#[test]
fn the_line_of_a_failure_is_in_the_source_that_it_names() {
    let engine = engine();
    let mut session = engine.session();
    let place = |Failure { source, line, .. }: &Failure| (source.clone().unwrap_or_default(), line.unwrap_or_default());
    let half = "(def a 1)\n(def b 2)\n(defn half [n]\n  (/ n 0))";
    session.run(half).eval::<()>(&World::default()).expect("input").done().expect("it succeeds");
    assert_eq!(place(&failure(&mut session, "a\n(+ a :b)")), ("program 2".to_owned(), 2));
    // A function of an earlier program.
    let failed = failure(&mut session, "(half a)");
    assert_eq!(place(&failed), ("program 1".to_owned(), 4));
    assert!(failed.rendered.contains("program 1:4:3"), "{}", failed.rendered);
    // A session that was stored twice.
    for programs in [4, 4] {
        let text = session.encode().expect("it is data");
        let mut restored = engine.restore(&text).expect("it is a session");
        let failed = failure(&mut restored, "(half a)");
        let (source, line) = place(&failed);
        assert_eq!(source, "stored program 1");
        let written = text.lines().nth(line as usize - 1).expect("a line of the session");
        assert!(written.contains("(/ n 0)"), "{written}");
        assert!(failed.rendered.contains(&format!("stored program 1:{line}:")), "{}", failed.rendered);
        assert_eq!(place(&failure(&mut restored, "(+ a :b)")), (format!("program {}", programs + 1), 1));
        session = engine.restore(&text).expect("it is a session");
    }
    // Nothing has a place before a program runs.
    let json = serde_json::to_value(failure(&mut session, "(half a)")).expect("it is data");
    assert_eq!(json["source"], "stored program 1");
}

/// A type of an application whose code has a defect.
#[derive(Debug)]
struct Faulty;

impl Serialize for Faulty {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        panic!("it is not written")
    }
}

impl<'de> Deserialize<'de> for Faulty {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Faulty, D::Error> {
        panic!("it is not read")
    }
}

#[test]
fn a_panic_of_a_type_of_the_application_names_the_type() {
    let name = std::any::type_name::<Faulty>();
    let written = format!("the code that converts `{name}` panicked: it is not written");
    let read = format!("the code that converts `{name}` panicked: it is not read");
    let world = World::default();
    let mut session = engine().session();
    let live = session.live_bytes();
    for _ in 0..3 {
        let error = session.run("data").data(&Faulty).eval::<()>(&world).expect_err("it panics");
        assert_eq!(error.to_string(), format!("`data` cannot be given to the program: {written}"));
    }
    assert_eq!(session.live_bytes(), live);
    let error = session.run("1").eval::<Faulty>(&world).expect_err("it panics");
    assert_eq!(error.to_string(), format!("the result does not fit its type: {read}"));
    assert_eq!(session.set("a", &Faulty).expect_err("it panics").to_string(), written);
    session.set("a", &1).expect("it succeeds");
    assert_eq!(session.get::<Faulty>("a").expect_err("it panics").to_string(), read);
    // Tools and functions are named as they are called.
    let mut tools = Tools::new();
    tools.tool("t/in", |_: HashMap<String, Faulty>, _: &Call| Ok(1));
    tools.tool("t/asked", |_: HashMap<String, Faulty>, _: &Call| Ok(1)).needs_approval();
    tools.tool("t/out", |_: NoArguments, _: &Call| Ok(Faulty));
    let world = World::new(tools);
    let mut builder = Engine::builder();
    builder.function("my/in", |_: Faulty| 1);
    builder.function("my/out", || Faulty);
    let mut session = builder.build().expect("it succeeds").session();
    for (program, message) in [
        ("(t/in {:a 1})", "ToolPanic: `t/in` panicked: it is not read"),
        ("(t/asked {:a 1})", "ToolPanic: `t/asked` panicked: it is not read"),
        ("(t/out)", "ToolPanic: `t/out` panicked: it is not written"),
        ("(my/in 1)", "FunctionPanic: `my/in` panicked: it is not read"),
        ("(my/out)", "FunctionPanic: `my/out` panicked: it is not written"),
    ] {
        let outcome = session.run(program).eval::<i64>(&world).expect("input");
        assert_eq!(outcome.into_result().expect_err("it panics").to_string(), message);
    }
    assert_eq!(session.run("(+ 1 1)").eval::<i64>(&world).expect("input").done(), Some(2));
}
