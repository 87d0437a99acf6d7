//! Runs that fail after they have made changes, and corrected programs that make none of these again.

use crate::common::engine;
use lispbox::lang::{Call, FailedRun, Limits, NoArguments, Outcome, ToolError, Tools, World};
use std::collections::HashMap;
use std::sync::Mutex;

/// Tools that keep the messages that they send, or refuse.
fn sending(sent: &Mutex<Vec<String>>) -> Tools<'_> {
    let mut tools = Tools::new();
    tools.tool("mail/send", |to: HashMap<String, String>, _: &Call| {
        sent.lock().expect("no test panics here").push(to["to"].clone());
        Ok(format!("sent to {}", to["to"]))
    });
    tools.tool("mail/refuse", |_: NoArguments, _: &Call| Err::<(), _>(ToolError::failed("no")));
    tools
}

#[test]
fn a_corrected_program_makes_none_of_the_changes_again_that_a_failed_one_has_made() {
    let sent = Mutex::default();
    let world = World::new(sending(&sent));
    let mut session = engine().session();
    let cut_short = Limits { calls: 2, ..Limits::default() };
    let three = "(mapv (fn [to] (mail/send {:to to})) [\"ann\" \"ann\" \"bob\"])";
    let limited = session.run(three).limits(cut_short).retryable().eval::<Vec<String>>(&world).expect("input");
    assert!(matches!(limited, Outcome::Limited(_)), "{limited:?}");
    let failed = session.report().failed.clone().expect("it has made changes");
    assert_eq!(failed.made().iter().map(ToString::to_string).collect::<Vec<_>>(), ["mail/send 2 times"]);
    // The second attempt fails too, after one more change.
    let program = format!("{three} (mail/refuse)");
    let again =
        session.retry(failed, program.as_str()).limits(Limits::default()).eval::<String>(&world).expect("input");
    assert!(matches!(again, Outcome::Failed(_)), "{again:?}");
    let failed = session.report().failed.clone().expect("it has made changes");
    assert_eq!(failed.made()[0].to_string(), "mail/send 3 times");
    let failed = FailedRun::decode(&failed.encode()).expect("it is its text");
    let program = "(mapv (fn [to] (mail/send {:to to})) [\"bob\" \"ann\" \"ann\" \"ann\"])";
    let done = session.retry(failed, program).eval::<Vec<String>>(&world).expect("input").done().expect("it is done");
    assert_eq!(done, ["sent to bob", "sent to ann", "sent to ann", "sent to ann"]);
    assert_eq!(*sent.lock().expect("no test panics here"), ["ann", "ann", "bob", "ann"]);
    assert!(session.report().failed.is_none());
}

#[test]
fn only_changes_of_retryable_runs_that_end_badly_are_kept() {
    let sent = Mutex::default();
    let world = World::new(sending(&sent));
    let mut session = engine().session();
    for (program, is_retryable) in
        [("(mail/send {:to \"a\"}) (/ 1 0)", false), ("(mail/refuse)", true), ("(mail/send {:to \"a\"})", true)]
    {
        let run = session.run(program);
        let run = if is_retryable { run.retryable() } else { run };
        let _ = run.eval::<String>(&world).expect("input");
        assert!(session.report().failed.is_none(), "{program}");
    }
    let reply = session.run("(mail/send {:to \"a\"}) (/ 1 0)").retryable().reply(&world).expect("input");
    assert!(reply.text(1_000).ends_with("[made before the error: mail/send once]"), "{}", reply.text(1_000));
    assert!(session.report().failed.is_some());
}

#[test]
fn a_result_that_does_not_fit_leaves_a_run_that_goes_on() {
    let sent = Mutex::default();
    let world = World::new(sending(&sent));
    let mut session = engine().session();
    let unfit = session.run("(mail/send {:to \"ann\"})").retryable().eval::<Vec<i64>>(&world);
    assert!(unfit.is_err());
    let failed = session.report().failed.clone().expect("it has made a change");
    let done = session.retry(failed, "(mail/send {:to \"ann\"})").eval::<String>(&world).expect("input").done();
    assert_eq!((done.as_deref(), sent.lock().expect("no test panics here").len()), (Some("sent to ann"), 1));
}

#[test]
fn numbers_that_doubles_do_not_tell_apart_make_other_calls() {
    let paid = Mutex::new(Vec::new());
    let mut tools = Tools::new();
    tools.tool("bank/pay", |_: HashMap<String, lispbox::lang::value::Value>, call: &Call| {
        paid.lock().expect("no test panics here").push(call.name());
        Ok(1)
    });
    let world = World::new(tools);
    let mut session = engine().session();
    let _ =
        session.run("(bank/pay {:n 12345678901234567.89M}) (/ 1 0)").retryable().eval::<i64>(&world).expect("input");
    let failed = session.report().failed.clone().expect("it has made a change");
    let corrected = "[(bank/pay {:n 12345678901234567.89M}) (bank/pay {:n 12345678901234567.91M})]";
    assert!(session.retry(failed, corrected).eval::<Vec<i64>>(&world).expect("input").done().is_some());
    assert_eq!(paid.lock().expect("no test panics here").len(), 2);
}

#[test]
fn changes_with_long_arguments_are_found_again_beyond_the_room_of_a_run() {
    let sent = Mutex::default();
    let world = World::new(sending(&sent));
    let mut session = engine().session();
    // Six calls of 16 MiB each: the run keeps 64 MiB.
    let program = |count: usize, end: &str| {
        let text = "(reduce (fn [s _] (str s s)) \"c\" (range 24))";
        format!("(let [t {text}] (dotimes [n {count}] (mail/send {{:to (str n) :text t}}))) {end}")
    };
    let limits = Limits { memory: 1 << 30, fuel: 1_000_000_000, ..Limits::default() };
    let failing = program(6, "(/ 1 0)");
    let outcome = session.run(failing.as_str()).limits(limits).retryable().eval::<()>(&world).expect("input");
    assert_eq!(outcome.into_result().expect_err("it fails").error, "ArithmeticError");
    let failed = session.report().failed.clone().expect("it has made changes");
    assert_eq!(failed.made()[0].to_string(), "mail/send 6 times");
    let corrected = program(7, ":done");
    let done = session.retry(failed, corrected.as_str()).eval::<String>(&world).expect("input");
    assert_eq!(done.into_result().expect("it ends"), "done");
    assert_eq!(*sent.lock().expect("no test panics here"), ["0", "1", "2", "3", "4", "5", "6"]);
}
