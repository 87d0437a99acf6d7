//! Suspended runs are resumed once, with the definitions that they began with, and never guess an outcome.

use crate::common::engine;
use lispbox::lang::{Call, ErrorCode, EvalError, NoArguments, Outcome, Session, Suspended, ToolError, Tools, World};
use serde::Deserialize;
use std::sync::{Barrier, Mutex};

#[derive(Deserialize)]
struct Mail {
    to: String,
}

type Sent = Mutex<Vec<String>>;

fn mailbox(sent: &Sent) -> World<'_> {
    let send = |mail: Mail, _: &Call| -> Result<String, ToolError> {
        sent.lock().expect("it succeeds").push(mail.to.clone());
        Ok(format!("sent to {}", mail.to))
    };
    let mut tools = Tools::new();
    tools.tool("mail/send", send).needs_approval();
    tools.tool("mail/note", send);
    World::new(tools)
}

fn suspended(outcome: Result<Outcome<String>, EvalError>) -> Suspended {
    match outcome {
        Ok(Outcome::Suspended(run)) => *run,
        other => panic!("expected a suspended run, got {other:?}"),
    }
}

fn approved(mut run: Suspended) -> Suspended {
    let questions: Vec<_> = run.questions().cloned().collect();
    questions.iter().for_each(|question| run.approve(&question.id).expect("it succeeds"));
    run
}

fn is_refused(outcome: Result<Outcome<String>, EvalError>, number: u32) -> bool {
    matches!(outcome, Err(EvalError::AlreadyResumed(refused)) if refused == number)
}

fn stored(session: &mut Session) -> Session {
    engine().restore(&session.encode().expect("it succeeds")).expect("it succeeds")
}

#[test]
fn a_run_is_resumed_once() {
    let sent = Sent::default();
    let world = mailbox(&sent);
    let mut session = engine().session();
    let run = approved(suspended(session.run("(mail/send {:to \"ann\"})").eval(&world)));
    let number = run.number();
    let outcome = session.resume(run.clone()).eval::<String>(&world).unwrap();
    assert_eq!(outcome.done().as_deref(), Some("sent to ann"));
    assert!(is_refused(session.resume(run.clone()).eval(&world), number));
    // Nor by its text, nor in a restored session.
    let copy = Suspended::decode(&run.encode()).unwrap();
    assert!(is_refused(stored(&mut session).resume(copy).eval(&world), number));
    let message = session.resume(run).eval::<String>(&world).unwrap_err().to_string();
    let expected = "run 1 does not wait in this session: it has been resumed or discarded, or it was suspended in \
                    another session";
    assert_eq!(message, expected);
    assert_eq!(*sent.lock().unwrap(), ["ann"]);
}

#[test]
fn an_earlier_state_of_a_run_is_not_resumed() {
    let sent = Sent::default();
    let world = mailbox(&sent);
    let mut session = engine().session();
    let program = "(do (mail/send {:to \"ann\"}) (mail/send {:to \"bob\"}))";
    let first = approved(suspended(session.run(program).eval(&world)));
    let second = suspended(session.resume(first.clone()).eval(&world));
    assert_eq!(*sent.lock().unwrap(), ["ann"]);
    // The first state knows nothing of the mail to ann.
    assert!(is_refused(stored(&mut session).resume(first.clone()).eval(&world), first.number()));
    let outcome = stored(&mut session).resume(approved(second)).eval::<String>(&world).unwrap();
    assert_eq!(outcome.done().as_deref(), Some("sent to bob"));
    assert_eq!(*sent.lock().unwrap(), ["ann", "bob"]);
}

#[test]
fn a_run_is_not_resumed_in_a_fork() {
    let sent = Sent::default();
    let world = mailbox(&sent);
    let mut session = engine().session();
    let run = approved(suspended(session.run("(mail/send {:to data})").data("ann").eval(&world)));
    let mut fork = session.fork();
    assert!(is_refused(fork.resume(run.clone()).eval(&world), run.number()));
    assert!(session.resume(run).eval::<String>(&world).unwrap().done().is_some());
    assert_eq!(*sent.lock().unwrap(), ["ann"]);
}

#[test]
fn a_discarded_run_is_not_resumed() {
    let sent = Sent::default();
    let world = mailbox(&sent);
    let mut session = engine().session();
    let run = approved(suspended(session.run("(mail/send {:to \"ann\"})").eval(&world)));
    session.discard(run.clone());
    assert!(is_refused(session.resume(run).eval(&world), 1));
    assert_eq!(session.bindings(), 0);
}

#[test]
fn several_runs_wait_in_a_session() {
    let sent = Sent::default();
    let world = mailbox(&sent);
    let mut session = engine().session();
    let runs: Vec<Suspended> = ["ann", "bob"]
        .iter()
        .map(|to| approved(suspended(session.run("(mail/send {:to data})").data(to).eval(&world))))
        .collect();
    let mut session = stored(&mut session);
    for run in runs.into_iter().rev() {
        assert!(session.resume(run.clone()).eval::<String>(&world).unwrap().done().is_some());
        assert!(is_refused(session.resume(run.clone()).eval(&world), run.number()));
    }
    assert_eq!(*sent.lock().unwrap(), ["bob", "ann"]);
}

#[test]
fn a_run_keeps_the_definitions_that_it_began_with() {
    let sent = Sent::default();
    let world = mailbox(&sent);
    let mut session = engine().session();
    let program = "(def to \"ann\") (defn greeted [who] (str \"dear \" who)) (defmacro twice [x] `(str ~x ~x))
                   (mail/send {:to (greeted (twice to))})
                   (def after (greeted to))
                   after";
    let run = approved(suspended(session.run(program).eval(&world)));
    // Another program of the session goes on meanwhile.
    let other = "(def to \"eve\") (defn greeted [who] (str \"hello \" who)) (def twice 2) (greeted to)";
    let other = session.run(other).eval::<String>(&world).unwrap();
    assert_eq!(other.done().as_deref(), Some("hello eve"));
    let mut session = stored(&mut session);
    assert_eq!(session.resume(run).eval::<String>(&world).unwrap().done().as_deref(), Some("dear ann"));
    assert_eq!(*sent.lock().unwrap(), ["dear annann"]);
    // The session has the definitions of both, the latest of each.
    let names = session.run("(str to \" \" (greeted 1) \" \" twice \" \" after)").eval::<String>(&world).unwrap();
    assert_eq!(names.done().as_deref(), Some("eve hello 1 2 dear ann"));
    assert_eq!(session.names(), ["to", "greeted", "twice", "after"]);
}

/// Runs a program until its process dies during its call; returns the text of the run and of the session before it.
fn cut_off(program: &str, world: &World<'_>) -> (Suspended, Session) {
    let mut session = engine().session();
    let before = session.encode().expect("it succeeds");
    let stored = Mutex::new(Vec::new());
    let store = |run: &Suspended| {
        stored.lock().expect("it succeeds").push(run.encode());
        Ok(())
    };
    session.run(program).checkpoint(store).eval::<String>(world).expect("it succeeds").done().expect("it ends");
    let first = stored.lock().expect("it succeeds")[0].clone();
    (Suspended::decode(&first).expect("it succeeds"), engine().restore(&before).expect("it succeeds"))
}

#[test]
fn a_run_waits_until_the_outcome_of_its_call_is_known() {
    let sent = Sent::default();
    let world = mailbox(&sent);
    let (run, mut session) = cut_off("(mail/note {:to \"ann\"})", &world);
    sent.lock().unwrap().clear();
    // Resumed without an answer, it waits again, and nothing is sent.
    let run = suspended(session.resume(run).eval(&world));
    let questions: Vec<String> = run.questions().map(ToString::to_string).collect();
    assert_eq!(questions, [r#"mail/note {"to":"ann"}, because it is not known whether it was made"#]);
    let mut run = Suspended::decode(&run.encode()).unwrap();
    let call = run.unknown().next().unwrap().clone();
    assert!(run.approve(&call).is_err(), "approval is no answer");
    run.happened(&call, "sent before").unwrap();
    assert_eq!(run.questions().count(), 0);
    let mut session = stored(&mut session);
    assert_eq!(session.resume(run).eval::<String>(&world).unwrap().done().as_deref(), Some("sent before"));
    assert!(sent.lock().unwrap().is_empty());
}

#[test]
fn a_call_that_did_not_happen_is_made() {
    let sent = Sent::default();
    let world = mailbox(&sent);
    let (mut run, mut session) = cut_off("(mail/note {:to \"ann\"})", &world);
    sent.lock().unwrap().clear();
    let call = run.unknown().next().unwrap().clone();
    run.did_not_happen(&call).unwrap();
    assert_eq!(session.resume(run).eval::<String>(&world).unwrap().done().as_deref(), Some("sent to ann"));
    assert_eq!(*sent.lock().unwrap(), ["ann"]);
}

#[test]
fn unknown_calls_of_branches_are_asked_about_together() {
    // Neither call ends before both have begun.
    let begun = Barrier::new(2);
    let mut tools = Tools::new();
    tools.tool("mail/note", |mail: Mail, _: &Call| {
        begun.wait();
        Ok(mail.to)
    });
    let world = World::new(tools);
    let mut session = engine().session();
    let before = session.encode().unwrap();
    let stored = Mutex::new(Vec::new());
    let store = |run: &Suspended| {
        stored.lock().unwrap().push(run.encode());
        Ok(())
    };
    let program = "(str/join \",\" (pmap (fn [to] (mail/note {:to to})) [\"ann\" \"bob\"]))";
    session.run(program).checkpoint(store).eval::<String>(&world).unwrap().done().unwrap();
    let runs = stored.into_inner().unwrap();
    let mut runs = runs.iter().map(|text| Suspended::decode(text).unwrap());
    let both = runs.find(|run| run.unknown().count() == 2).expect("both had begun");
    let mut session = engine().restore(&before).unwrap();
    let run = suspended(session.resume(both).eval(&world));
    assert_eq!((run.unknown().count(), run.questions().count()), (2, 2));
}

#[test]
fn a_changed_program_still_diverges() {
    let sent = Sent::default();
    let world = mailbox(&sent);
    let mut session = engine().session();
    let run = session.run("(def to (atom \"ann\"))").eval::<()>(&world).unwrap();
    assert!(run.done().is_some());
    let run = approved(suspended(session.run("(mail/send {:to @to})").eval(&world)));
    assert!(session.run("(reset! to \"eve\")").eval::<String>(&world).unwrap().done().is_some());
    let failure = session.resume(run).eval::<String>(&world).unwrap().into_result().unwrap_err();
    assert_eq!(failure.code(), ErrorCode::ReplayDiverged);
    assert!(sent.lock().unwrap().is_empty());
}

#[test]
fn a_tool_without_arguments_is_asked_about_too() {
    let mut tools = Tools::new();
    tools.tool("disk/format", |_: NoArguments, _: &Call| Ok(())).needs_approval();
    let world = World::new(tools);
    let mut session = engine().session();
    let Outcome::Suspended(run) = session.run("(disk/format)").eval::<()>(&world).unwrap() else { panic!() };
    assert_eq!(session.resume(approved(*run)).eval::<()>(&world).unwrap().done(), Some(()));
}

#[test]
fn the_reply_of_a_suspended_run_names_its_questions() {
    let sent = Sent::default();
    let world = mailbox(&sent);
    let mut session = engine().session();
    let reply = session.run("(mail/note {:to \"x\"}) (mail/send {:to \"ann\"})").reply(&world).unwrap();
    assert_eq!(
        reply.text(10_000),
        "Suspended: a person has to decide first on:\n\
         - mail/send {\"to\":\"ann\"}, because this tool needs the approval of a person\n\
         The run goes on from here once the decision is there: do not send the program again.\n\
         [nothing was defined; 1 tool call]"
    );
    assert!(session.report().suspended.is_some());
}

#[test]
fn calls_that_a_person_refuses_or_that_cannot_be_stored_first_are_observed() {
    let seen = std::sync::Mutex::new(Vec::new());
    let mut tools = Tools::new();
    tools.tool("disk/format", |_: NoArguments, _: &Call| Ok(())).needs_approval();
    tools.tool("disk/write", |_: NoArguments, _: &Call| Ok(1));
    let observe = |call: &lispbox::lang::CallReport| {
        seen.lock().expect("no test panics here").push((call.tool.to_string(), call.outcome));
    };
    let no = |_: &lispbox::lang::Question| lispbox::lang::Decision::Denied("not now".to_owned());
    let world = World::new(tools).on_call(observe).on_question(no);
    let mut session = engine().session();
    let _ = session.run("(disk/format)").eval::<()>(&world).expect("input");
    let full = |_: &Suspended| Err("the disk is full".to_owned());
    let _ = session.run("(disk/write)").checkpoint(full).eval::<i64>(&world).expect("input");
    let seen = std::mem::take(&mut *seen.lock().expect("no test panics here"));
    let expected = [("format", "asked"), ("format", "ToolDenied"), ("write", "ServerUnavailable")];
    assert_eq!(seen, expected.map(|(tool, outcome)| (tool.to_owned(), outcome)));
    // The second checkpoint, behind the call.
    let stored = std::sync::atomic::AtomicU32::new(0);
    let once = |_: &Suspended| match stored.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
        0 => Ok(()),
        _ => Err("the disk is full".to_owned()),
    };
    let done = session.run("(disk/write)").checkpoint(once).eval::<i64>(&world).expect("input").done();
    assert_eq!((done, session.report().unstored.as_deref()), (Some(1), Some("the disk is full")));
}
