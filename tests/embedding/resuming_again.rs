//! A resumption that ends before it has called anything leaves its run waiting; any other uses it up.

use crate::common::engine;
use lispbox::lang::{
    Call, CancelHandle, ErrorCode, EvalError, Limits, NoArguments, Outcome, Session, Suspended, ToolError, Tools, World,
};
use serde::Deserialize;
use std::sync::Mutex;

#[derive(Deserialize)]
struct Mail {
    to: String,
}

type Sent = Mutex<Vec<String>>;

fn tools(sent: &Sent) -> Tools<'_> {
    let send = |mail: Mail, _: &Call| -> Result<String, ToolError> {
        sent.lock().expect("no panic here").push(mail.to.clone());
        Ok(format!("sent to {}", mail.to))
    };
    let mut tools = Tools::new();
    tools.tool("mail/send", send).needs_approval();
    tools.tool("mail/note", send);
    tools
}

/// Runs a program until it waits, and approves its calls.
fn approved(session: &mut Session, program: &str, world: &World<'_>) -> Suspended {
    let outcome = session.run(program).data("ann").eval::<String>(world).expect("input");
    let Outcome::Suspended(mut run) = outcome else { panic!("{outcome:?}") };
    let questions: Vec<_> = run.questions().cloned().collect();
    questions.iter().for_each(|question| run.approve(&question.id).expect("it is open"));
    *run
}

#[test]
fn a_resumption_that_has_called_nothing_leaves_its_run_waiting() {
    let sent = Sent::default();
    let world = World::new(tools(&sent));
    let engine = engine();
    let mut session = engine.session();
    session.run("(def state (atom :old))").eval::<()>(&world).expect("input").done().expect("it succeeds");
    let program = "(def before (name @state)) (do (reduce + (range 1000)) (str before \" \" (mail/send {:to data})))";
    let run = approved(&mut session, program, &world);
    let failed = |session: &mut Session, outcome: Outcome<String>| {
        assert_eq!(session.report().suspended.as_deref(), Some(&run));
        outcome.into_result().expect_err("it fails").code()
    };
    // Cancelled before it begins.
    let cancel = CancelHandle::new();
    cancel.cancel();
    let cancelled = World::new(tools(&sent)).cancelled_by(&cancel);
    let outcome = session.resume(run.clone()).eval(&cancelled).expect("input");
    assert_eq!(failed(&mut session, outcome), ErrorCode::Cancelled);
    // A limit that is too low.
    let limits = Limits { fuel: 100, ..Limits::default() };
    let outcome = session.resume(run.clone()).limits(limits).eval(&world).expect("input");
    assert_eq!(failed(&mut session, outcome), ErrorCode::LimitExceeded);
    // A world without the tool.
    let outcome = session.resume(run.clone()).eval(&World::default()).expect("input");
    failed(&mut session, outcome);
    // As text too, in a session that was stored meanwhile.
    let mut session = engine.restore(&session.encode().expect("it is data")).expect("it is a session");
    let outcome = session.resume(run.clone()).eval(&World::default()).expect("input");
    failed(&mut session, outcome);
    assert!(sent.lock().expect("no panic here").is_empty());
    let copy = Suspended::decode(&run.encode()).expect("it is a run");
    let outcome = session.resume(copy).eval::<String>(&world).expect("input");
    assert_eq!(outcome.done().as_deref(), Some("old sent to ann"));
    assert!(matches!(session.resume(run).eval::<String>(&world), Err(EvalError::AlreadyResumed(2))));
    assert_eq!(*sent.lock().expect("no panic here"), ["ann"]);
}

#[test]
fn a_run_that_takes_another_course_waits_until_its_session_is_as_it_was() {
    let sent = Sent::default();
    let world = World::new(tools(&sent));
    let mut session = engine().session();
    session.run("(def to (atom \"ann\"))").eval::<()>(&world).expect("input").done().expect("it succeeds");
    let run = approved(&mut session, "(mail/send {:to @to})", &world);
    session.run("(reset! to \"bob\")").eval::<String>(&world).expect("input").done().expect("it succeeds");
    let outcome = session.resume(run).eval::<String>(&world).expect("input");
    assert_eq!(outcome.into_result().expect_err("it is another mail").code(), ErrorCode::ReplayDiverged);
    let run = session.report().suspended.clone().expect("it waits");
    session.run("(reset! to \"ann\")").eval::<String>(&world).expect("input").done().expect("it succeeds");
    let outcome = session.resume(*run).eval::<String>(&world).expect("input");
    assert_eq!(outcome.done().as_deref(), Some("sent to ann"));
    assert_eq!(*sent.lock().expect("no panic here"), ["ann"]);
}

#[test]
fn a_run_that_has_called_something_or_was_refused_is_used_up() {
    let sent = Sent::default();
    let world = World::new(tools(&sent));
    let mut session = engine().session();
    let is_used_up = |session: &mut Session, run: Suspended| {
        assert!(session.report().suspended.is_none());
        matches!(session.resume(run).eval::<String>(&world), Err(EvalError::AlreadyResumed(_)))
    };
    // The call that was approved, and one that needs no approval.
    for program in ["(do (mail/send {:to data}) (/ 1 0))", "(do (mail/note {:to data}) (mail/send {:to data}) (/ 1 0))"]
    {
        let run = approved(&mut session, program, &world);
        let outcome = session.resume(run.clone()).eval::<String>(&world).expect("input");
        assert_eq!(outcome.into_result().expect_err("it fails").code(), ErrorCode::ArithmeticError);
        assert!(is_used_up(&mut session, run));
    }
    assert_eq!(sent.lock().expect("no panic here").len(), 3);
    // A refusal is the answer.
    let outcome = session.run("(mail/send {:to \"ann\"})").eval::<String>(&world).expect("input");
    let Outcome::Suspended(mut run) = outcome else { panic!("{outcome:?}") };
    let call = run.questions().next().expect("it waits").id.clone();
    run.deny(&call, "not to her").expect("it is open");
    let outcome = session.resume(run.clone()).eval::<String>(&world).expect("input");
    assert_eq!(outcome.into_result().expect_err("it is refused").code(), ErrorCode::ToolDenied);
    assert!(is_used_up(&mut session, *run));
    // A form is kept: it would be evaluated a second time.
    session.run("(def count (atom 0))").eval::<()>(&world).expect("input").done().expect("it succeeds");
    let program = "(do (swap! count inc) (try (mail/send {:to \"ann\"}) (catch Exception e nil))) (loop [] (recur))";
    let outcome = session.run(program).eval::<String>(&world).expect("input");
    let Outcome::Suspended(mut run) = outcome else { panic!("{outcome:?}") };
    run.deny(&call, "not to her").expect("it is open");
    let limits = Limits { fuel: 10_000, ..Limits::default() };
    let outcome = session.resume(run.clone()).limits(limits).eval::<String>(&world).expect("input");
    assert_eq!(outcome.into_result().expect_err("it does not end").code(), ErrorCode::LimitExceeded);
    assert!(is_used_up(&mut session, *run));
    assert_eq!(session.run("@count").eval::<i64>(&world).expect("input").done(), Some(1));
    // One that has made a change and can be attempted again goes on that way.
    let program = "(do (mail/note {:to \"eve\"}) (mail/send {:to \"ann\"}))";
    let outcome = session.run(program).retryable().eval::<String>(&world).expect("input");
    let Outcome::Suspended(mut run) = outcome else { panic!("{outcome:?}") };
    let call = run.questions().next().expect("it waits").id.clone();
    run.approve(&call).expect("it is open");
    let limits = Limits { fuel: 1, ..Limits::default() };
    let outcome = session.resume(run.clone()).limits(limits).retryable().eval::<String>(&world).expect("input");
    assert_eq!(outcome.into_result().expect_err("it does not end").code(), ErrorCode::LimitExceeded);
    assert!(session.report().failed.is_some());
    assert!(is_used_up(&mut session, *run));
}

#[test]
fn a_run_that_waits_again_can_be_discarded() {
    let mut tools = Tools::new();
    tools.tool("disk/format", |_: NoArguments, _: &Call| Ok(())).needs_approval();
    let world = World::new(tools);
    let mut session = engine().session();
    let run = approved(&mut session, "(do (disk/format) (count data))", &world);
    let outcome = session.resume(run).eval::<String>(&World::default()).expect("input");
    assert!(outcome.done().is_none());
    let run = session.report().suspended.clone().expect("it waits");
    session.discard(*run.clone());
    assert!(matches!(session.resume(*run).eval::<String>(&world), Err(EvalError::AlreadyResumed(1))));
    assert_eq!(session.bindings(), 0);
}

#[test]
fn data_of_a_resumption_replaces_that_of_its_run() {
    let sent = Sent::default();
    let world = World::new(tools(&sent));
    let mut session = engine().session();
    let program = "(def first data) (do (mail/send {:to \"eve\"}) (str first \" \" data))";
    let run = approved(&mut session, program, &world);
    let outcome = session.resume(run).data("bob").eval::<String>(&world).expect("input");
    assert_eq!(outcome.done().as_deref(), Some("ann bob"));
    // What a call was approved with is not replaced.
    let run = approved(&mut session, "(mail/send {:to data})", &world);
    let outcome = session.resume(run).data("bob").eval::<String>(&world).expect("input");
    assert_eq!(outcome.into_result().expect_err("it is another mail").code(), ErrorCode::ReplayDiverged);
    let run = session.report().suspended.clone().expect("it waits");
    let outcome = session.resume(*run).eval::<String>(&world).expect("input");
    assert_eq!(outcome.done().as_deref(), Some("sent to ann"));
    assert_eq!(*sent.lock().expect("no panic here"), ["eve", "ann"]);
}
