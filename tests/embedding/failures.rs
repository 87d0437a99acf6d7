//! The description of a failed run: the position of the error, and messages that are safe to display.

use crate::common::engine;
use lispbox::lang::{Access, Call, Decision, Engine, Failure, NoArguments, Outcome, Session, ToolError, Tools, World};
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

#[test]
fn words_of_the_application_do_not_control_a_terminal() {
    const WORDS: &str = "a\u{1b}[2Jb\u{202e}c\nd";
    const SHOWN: &str = "a\\u001b[2Jb\\u202ec\nd";
    let mut tools = Tools::new();
    tools.tool("t/failed", |_: NoArguments, _: &Call| -> Result<(), ToolError> { Err(ToolError::failed(WORDS)) });
    tools.tool("t/panics", |_: NoArguments, _: &Call| -> Result<(), ToolError> { panic!("{WORDS}") });
    for name in ["t/denied", "t/asked", "t/refused"] {
        tools.tool(name, |_: serde_json::Value, _: &Call| Ok(()));
    }
    let seen = std::sync::Mutex::new(Vec::new());
    let world = World::new(tools)
        .on_request(|request| match request.tool {
            "denied" => Access::Deny(WORDS.to_owned()),
            "asked" | "refused" => Access::Ask(WORDS.to_owned()),
            _ => Access::Allow,
        })
        .on_question(|question| match &*question.tool {
            "refused" => Decision::Denied(WORDS.to_owned()),
            _ => Decision::Pending,
        })
        .on_call(|call| seen.lock().expect("no panic here").push(call.to_string()));
    let mut session = engine().session();
    for (program, message) in [
        ("(t/failed)", format!("ToolError: {SHOWN}")),
        ("(t/panics)", format!("ToolPanic: `t/panics` panicked: {SHOWN}")),
        ("(t/denied)", format!("ToolDenied: `t/denied` may not be called: {SHOWN}")),
        ("(t/refused)", format!("ToolDenied: `t/refused` may not be called: {SHOWN}")),
    ] {
        let failure = session.run(program).eval::<()>(&world).expect("input").into_result().expect_err("it fails");
        assert_eq!(failure.to_string(), message);
        assert_eq!(format!("{}: {}", failure.error, failure.message), message, "for whoever shows the message alone");
        assert!(failure.rendered.starts_with(&message.replace('\n', "\n> ")), "{}", failure.rendered);
    }
    // The error that a program makes itself.
    let raised = session.run("(throw (ex-info \"a\u{1b}[2Jb\" {}))").eval::<()>(&world).expect("input");
    assert_eq!(raised.into_result().expect_err("it fails").to_string(), "ExceptionInfo: a\\u001b[2Jb");
    let asked = session.run("(t/asked {:to \"x\u{202e}y\"})").eval::<()>(&world).expect("input");
    let Outcome::Suspended(run) = asked else { panic!("{asked:?}") };
    let question = run.questions().next().expect("it waits").to_string();
    assert_eq!(question, format!("t/asked {{\"to\":\"x\\u202ey\"}}, because {SHOWN}"));
    assert!(seen.lock().expect("no panic here").iter().all(|line| !line.contains(['\u{1b}', '\u{202e}'])));
}
