//! Runs that wait for a person: what they keep, what they undo, and that each effect happens once.

use crate::common;

use common::engine;
use lispbox::lang::{
    Call, CallId, Decision, ErrorCode, Limits, Outcome, Question, RunError, SeededRandom, Session, Suspended,
    TestClock, ToolError, Tools, World,
};
use proptest::prelude::*;
use serde::Deserialize;
use std::sync::{Arc, Mutex};

#[derive(Deserialize)]
struct Mail {
    to: String,
}

/// The recipients of the mails that were sent, in order.
type Sent = Mutex<Vec<String>>;

/// A mailbox that sends mail within the house, and outside of it if a person approves.
fn mailbox(sent: &Sent) -> Tools<'_> {
    let send = |mail: Mail, _: &Call| -> Result<String, ToolError> {
        sent.lock().expect("not poisoned").push(mail.to.clone());
        Ok(format!("sent to {}", mail.to))
    };
    let mut tools = Tools::new();
    tools.tool("mail/send", send);
    tools.tool("mail/send_outside", send).needs_approval();
    tools
}

/// The recipients, sorted: branches make their calls at the same time.
fn sorted(sent: &Sent) -> Vec<String> {
    let mut sent = sent.lock().expect("not poisoned").clone();
    sent.sort();
    sent
}

fn suspended(outcome: Outcome<String>) -> Suspended {
    match outcome {
        Outcome::Suspended(run) => *run,
        other => panic!("expected a suspended run, got {other:?}"),
    }
}

fn approve_all(run: &mut Suspended) {
    let calls: Vec<CallId> = run.questions().map(|question| question.id.clone()).collect();
    calls.iter().for_each(|call| run.approve(call).expect("it is asked"));
}

/// Moves a run and its session to a new process.
fn moved(run: &Suspended, session: &mut Session) -> (Suspended, Session) {
    let (run, session) = (run.encode(), session.encode().expect("it can be stored"));
    (Suspended::decode(&run).expect("it is a run"), engine().restore(&session).expect("it is a session"))
}

const FIVE: &str =
    "(str/join \",\" (pmap (fn [n] (if (= n 3) (mail/send_outside {:to \"3\"}) (mail/send {:to (str n)})))
                                         (range 1 6)))";

#[test]
fn each_of_five_mails_is_sent_once() {
    let sent = Sent::default();
    let world = World::new(mailbox(&sent));
    let mut session = engine().session();
    let run = suspended(session.run(FIVE).eval::<String>(&world).unwrap());
    assert_eq!(sorted(&sent), ["1", "2", "4", "5"]);
    let questions: Vec<&Question> = run.questions().collect();
    assert_eq!(questions.len(), 1);
    assert_eq!((&*questions[0].tool, &*questions[0].arguments), ("send_outside", r#"{"to":"3"}"#));

    let (mut run, mut session) = moved(&run, &mut session);
    approve_all(&mut run);
    let outcome = session.resume(run).eval::<String>(&world).unwrap();
    assert_eq!(outcome.done().as_deref(), Some("sent to 1,sent to 2,sent to 3,sent to 4,sent to 5"));
    assert_eq!(sorted(&sent), ["1", "2", "3", "4", "5"]);
}

#[test]
fn calls_of_parallel_branches_are_asked_about_together() {
    let sent = Sent::default();
    let asked = Mutex::new(Vec::new());
    let world = World::new(mailbox(&sent)).on_question(|question| {
        asked
            .lock()
            .expect("not poisoned")
            .push((question.arguments.clone(), sent.lock().expect("not poisoned").len()));
        if question.arguments.contains('4') { Decision::Denied("not to 4".to_owned()) } else { Decision::Approved }
    });
    let program = "(pmap (fn [n] (try (if (odd? n) (mail/send {:to (str n)}) (mail/send_outside {:to (str n)}))
                                       (catch Exception e (:error (ex-data e)))))
                         (range 1 7))";
    let program = format!("(str/join \",\" {program})");
    let outcome = engine().session().run(program).eval::<String>(&world).unwrap();
    assert_eq!(outcome.done().as_deref(), Some("sent to 1,sent to 2,sent to 3,ToolDenied,sent to 5,sent to 6"));
    // All other branches had ended.
    let asked = asked.lock().expect("not poisoned");
    assert_eq!(asked.iter().map(|(_, sent)| *sent).collect::<Vec<_>>(), [3, 3, 3]);
    assert_eq!(sorted(&sent), ["1", "2", "3", "5", "6"]);
}

#[test]
fn earlier_forms_stay_and_the_running_one_is_undone() {
    let sent = Sent::default();
    let world = World::new(mailbox(&sent));
    let mut session = engine().session();
    let program = "(println \"first\") (def a 1)
                   (println \"second\") (do (def a 2) (def b 3) (println \"inside\") (mail/send_outside {:to \"x\"}))";
    let run = suspended(session.run(program).eval::<String>(&world).unwrap());
    assert_eq!(session.names(), ["a"]);
    assert_eq!(session.get::<i64>("a").unwrap(), Some(1));
    assert_eq!(session.report().prints, "first\nsecond\n");
    let mut run = run;
    approve_all(&mut run);
    let outcome = session.resume(run).eval::<String>(&world).unwrap();
    assert_eq!(outcome.done().as_deref(), Some("sent to x"));
    assert_eq!(session.get::<i64>("a").unwrap(), Some(2));
    let report = session.report();
    assert_eq!(report.prints, "first\nsecond\ninside\n");
    assert_eq!(report.defined, ["a", "b"]);
}

#[test]
fn data_and_parameters_come_along() {
    let sent = Sent::default();
    let world = World::new(mailbox(&sent));
    let mut session = engine().session();
    let program = "(def n (count data)) (str (mail/send_outside {:to who}) (:size (first data)) n)";
    let data = serde_json::json!([{"size": 12345678901234567890u64}]);
    let run = session.run(program).data(&data).set("who", "ann");
    let run = suspended(run.eval::<String>(&world).unwrap());
    // Another program with other data runs in the session meanwhile.
    let other = session.run("(count data)").data(&[1, 2, 3]).eval::<i64>(&world).unwrap();
    assert_eq!(other.done(), Some(3));
    let (mut run, mut session) = moved(&run, &mut session);
    assert_eq!(session.names(), ["n"]);
    approve_all(&mut run);
    let outcome = session.resume(run).eval::<String>(&world).unwrap();
    assert_eq!(outcome.done().as_deref(), Some("sent to ann123456789012345678901"));
    assert!(!session.encode().unwrap().contains("run/"), "the data is dropped with the run");
}

#[test]
fn a_session_without_the_data_of_the_run_is_refused() {
    let sent = Sent::default();
    let world = World::new(mailbox(&sent));
    let run =
        suspended(engine().session().run("(mail/send_outside {:to data})").data("ann").eval::<String>(&world).unwrap());
    let mut run = run;
    approve_all(&mut run);
    let failure = engine().session().resume(run).eval::<String>(&world).unwrap().into_result().unwrap_err();
    assert_eq!(failure.code(), ErrorCode::ReplayDiverged);
    assert!(failure.message.contains("does not hold the value of `data`"), "{}", failure.message);
    assert!(sent.lock().expect("not poisoned").is_empty());
}

#[test]
fn a_changed_argument_sends_nothing() {
    let sent = Sent::default();
    let world = World::new(mailbox(&sent));
    let mut session = engine().session();
    let _ = session.run("(def to (atom \"ann\"))").eval::<()>(&world);
    let program =
        "(try (mail/send_outside {:to @to}) (catch Exception e \"caught\") (finally (mail/send {:to \"f\"})))";
    let mut run = suspended(session.run(program).eval::<String>(&world).unwrap());
    approve_all(&mut run);
    let changed = session.run("(reset! to \"mallory\")").eval::<String>(&world).unwrap();
    assert!(changed.done().is_some());
    let failure = session.resume(run).eval::<String>(&world).unwrap().into_result().unwrap_err();
    assert_eq!(failure.code(), ErrorCode::ReplayDiverged);
    assert!(failure.message.contains(r#"{"to":"ann"} of `mail/send_outside`, now they are {"to":"mallory"}"#));
    assert!(sent.lock().expect("not poisoned").is_empty());
}

#[test]
fn a_decision_needs_an_open_question() {
    let sent = Sent::default();
    let world = World::new(mailbox(&sent));
    let mut run = suspended(engine().session().run("(mail/send_outside {:to \"a\"})").eval::<String>(&world).unwrap());
    let other = CallId { form: 7, branch: vec![1, 2], ordinal: 3 };
    let message = run.approve(&other).unwrap_err().to_string();
    assert_eq!(message, "the run has no open question about call 3 of form 7 in branch [1, 2]");
    let call = run.questions().next().unwrap().id.clone();
    run.deny(&call, "no").unwrap();
    assert!(run.approve(&call).is_err(), "it has been decided on");
    assert_eq!(run.questions().count(), 0);
}

#[test]
fn a_run_that_is_not_decided_waits_on() {
    let sent = Sent::default();
    let world = World::new(mailbox(&sent));
    let mut session = engine().session();
    let program = "(str (mail/send {:to \"a\"}) (mail/send_outside {:to \"b\"}) (mail/send_outside {:to \"c\"}))";
    let run = suspended(session.run(program).eval::<String>(&world).unwrap());
    let run = suspended(session.resume(run).eval::<String>(&world).unwrap());
    let mut run = suspended(session.resume(run).eval::<String>(&world).unwrap());
    approve_all(&mut run);
    let mut run = suspended(session.resume(run).eval::<String>(&world).unwrap());
    assert_eq!(run.questions().next().unwrap().arguments, r#"{"to":"c"}"#);
    approve_all(&mut run);
    let outcome = session.resume(run).eval::<String>(&world).unwrap();
    assert_eq!(outcome.done().as_deref(), Some("sent to asent to bsent to c"));
    assert_eq!(*sent.lock().expect("not poisoned"), ["a", "b", "c"]);
}

#[test]
fn a_branch_that_waits_for_the_value_of_a_parked_one_does_not_hang() {
    let sent = Sent::default();
    let world = World::new(mailbox(&sent));
    let mut session = engine().session();
    let program = "(let [d (delay (mail/send_outside {:to \"a\"}))]
                     (str/join \",\" (pmap (fn [n] (str n @d)) (range 4))))";
    for parallel in [1, 2, 3, 32] {
        sent.lock().expect("not poisoned").clear();
        let limits = Limits { fuel: 100_000, parallel, ..Limits::default() };
        let mut run = suspended(session.run(program).limits(limits).eval::<String>(&world).unwrap());
        approve_all(&mut run);
        let outcome = session.resume(run).eval::<String>(&world).unwrap();
        assert_eq!(outcome.done().as_deref(), Some("0sent to a,1sent to a,2sent to a,3sent to a"), "{parallel}");
        assert_eq!(*sent.lock().expect("not poisoned"), ["a"]);
    }
}

#[test]
fn a_failing_branch_ends_those_that_would_ask() {
    let sent = Sent::default();
    let asked = Mutex::new(0);
    let world = World::new(mailbox(&sent)).on_question(|_| {
        *asked.lock().expect("not poisoned") += 1;
        Decision::Approved
    });
    let program = "(try (pmap (fn [n] (if (= n 2) (/ 1 0) (mail/send_outside {:to (str n)}))) (range 5))
                        (catch ArithmeticException e \"failed\"))";
    let outcome = engine().session().run(program).eval::<String>(&world).unwrap();
    assert_eq!(outcome.done().as_deref(), Some("failed"));
    assert_eq!((*asked.lock().expect("not poisoned"), sent.lock().expect("not poisoned").len()), (0, 0));
}

#[test]
fn more_calls_than_can_be_parked_are_asked_about_in_turn() {
    let sent = Sent::default();
    let world = World::new(mailbox(&sent));
    let mut session = engine().session();
    let program = "(str (count (pmap (fn [n] (mail/send_outside {:to (str n)})) (range 150))))";
    let mut run = suspended(session.run(program).eval::<String>(&world).unwrap());
    let mut rounds = vec![run.questions().count()];
    loop {
        approve_all(&mut run);
        let (again, mut restored) = moved(&run, &mut session);
        match restored.resume(again).eval::<String>(&world).unwrap() {
            Outcome::Suspended(next) => run = *next,
            other => break assert_eq!(other.done().as_deref(), Some("150")),
        }
        session = restored;
        rounds.push(run.questions().count());
    }
    assert_eq!(rounds, [64, 64, 22]);
    let mut sent = sent.lock().expect("not poisoned").clone();
    sent.sort();
    sent.dedup();
    assert_eq!(sent.len(), 150);
}

#[test]
fn the_clock_and_random_numbers_stay_as_they_were() {
    let sent = Sent::default();
    let clock = Arc::new(TestClock::at_millis(1_000));
    let world = World::new(mailbox(&sent)).clock(clock.clone());
    let mut session = engine().session();
    let program = "(def first-draw (rand-int 1000000))
                   (let [now (System/currentTimeMillis) draw (rand-int 1000000)]
                     (mail/send {:to (str now \"-\" draw \"-\" first-draw)})
                     (mail/send_outside {:to (str now \"-\" draw \"-\" first-draw)})
                     (str (= draw (rand-int 1000000)) (System/currentTimeMillis)))";
    let mut run = suspended(session.run(program).eval::<String>(&world).unwrap());
    approve_all(&mut run);
    clock.advance(std::time::Duration::from_secs(86_400));
    let (run, mut session) = moved(&run, &mut session);
    let outcome = session.resume(run).eval::<String>(&world).unwrap();
    assert_eq!(outcome.done().as_deref(), Some("false86401000"), "the clock goes on after the call");
    let sent = sent.lock().expect("not poisoned");
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[0], sent[1]);
    assert!(sent[0].starts_with("1000-"), "{}", sent[0]);
}

#[test]
fn a_text_that_is_no_run_is_refused() {
    for text in ["", "null", "[1]", "{\"lispbox-run\":\"one\"}", "{\"lispbox-run\":1}"] {
        assert!(matches!(Suspended::decode(text), Err(RunError::NotARun(_))), "{text}");
    }
    let message = RunError::Version(2).to_string();
    assert!(message.starts_with("the run was suspended by another version of lispbox"), "{message}");
}

/// Expressions of one number, which may call tools.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("n".to_owned()),
        (0..9_i64).prop_map(|n| n.to_string()),
        (0..5_i64).prop_map(|n| format!("(t/read {{:n (+ n {n})}})")),
        (0..5_i64).prop_map(|n| format!("(t/ask {{:n (+ n {n})}})")),
        (0..5_i64).prop_map(|n| format!("(t/act {{:n (+ n {n})}})")),
        Just("(rand-int 100)".to_owned()),
        // The time goes on while the run waits, so the course may only depend on that it is read.
        Just("(do (System/currentTimeMillis) 0)".to_owned()),
        Just("(count @seen)".to_owned()),
        Just("(do (println \"seen\" n (count @seen)) n)".to_owned()),
        Just("(count (name (gensym)))".to_owned()),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(+ {a} {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(do (swap! seen conj {a}) {b})")),
            (inner.clone(), 2..5_u32).prop_map(|(a, count)| format!("(reduce + (pmap (fn [n] {a}) (range {count})))")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(reduce + (pcalls (fn [] {a}) (fn [] {b})))")),
            inner.clone().prop_map(|a| format!("(try {a} (catch Exception e -1))")),
            (inner.clone(), inner.clone())
                .prop_map(|(a, b)| format!("(let [d (delay {a})] (reduce + (pmap (fn [n] (+ @d {b})) (range 3))))")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(let [n {a}] {b})")),
            inner.prop_map(|a| format!("(count (with-out-str (println {a})))")),
        ]
    })
}

/// Programs of several forms.
pub fn program() -> impl Strategy<Value = String> {
    prop::collection::vec(expression(), 1..4).prop_map(|forms| {
        let mut program = "(def seen (atom [])) (def n 1)\n".to_owned();
        for (at, form) in forms.iter().enumerate() {
            program.push_str(&format!("(def value-{at} {form})\n"));
        }
        program.push_str("(str @seen)");
        program
    })
}

#[derive(Deserialize)]
struct Number {
    n: i64,
}

/// What a run has done, as far as it must not depend on when a person decides.
#[derive(Debug, PartialEq)]
struct Course {
    result: Result<String, (ErrorCode, String)>,
    prints: String,
    fuel: u64,
    defined: Vec<String>,
    values: Vec<Option<i64>>,
    /// The calls that had an effect, sorted.
    effects: Vec<String>,
}

fn decide(question: &Question, denied: i64) -> Decision {
    let number: serde_json::Value = serde_json::from_str(&question.arguments).expect("JSON");
    if number["n"] == denied { Decision::Denied("no".to_owned()) } else { Decision::Approved }
}

/// Runs a program whose questions are answered at once, or in as many rounds as it takes.
fn course(program: &str, denied: i64, at_once: bool, pending: u64) -> Course {
    let effects = Mutex::new(Vec::new());
    let clock = Arc::new(TestClock::at_millis(1_700_000_000_000));
    let mut tools = Tools::new();
    tools.tool("t/read", |number: Number, _: &Call| Ok(number.n * 10)).read_only();
    let act = |number: Number, call: &Call| -> Result<i64, ToolError> {
        effects.lock().expect("not poisoned").push(format!("{} {}", call.name(), number.n));
        if number.n == 7 { Err(ToolError::failed("seven")) } else { Ok(number.n * 3) }
    };
    tools.tool("t/act", act);
    tools.tool("t/ask", act).needs_approval();
    let rounds = Mutex::new(0_u64);
    let world = World::new(tools).clock(clock.clone()).random(SeededRandom::new(5)).on_question(|question| {
        *rounds.lock().expect("not poisoned") += 1;
        if at_once || (*rounds.lock().expect("not poisoned")).is_multiple_of(pending) {
            decide(question, denied)
        } else {
            Decision::Pending
        }
    });
    let mut session = engine().session();
    let mut outcome = session.run(program).eval::<String>(&world).expect("it has no input");
    while let Outcome::Suspended(run) = outcome {
        clock.advance(std::time::Duration::from_secs(86_400));
        let (mut run, restored) = moved(&run, &mut session);
        session = restored;
        let open: Vec<Question> = run.questions().cloned().collect();
        for question in open {
            match decide(&question, denied) {
                Decision::Approved => run.approve(&question.id).expect("it is asked"),
                _ => run.deny(&question.id, "no").expect("it is asked"),
            }
        }
        outcome = session.resume(run).eval::<String>(&world).expect("it has no input");
    }
    let result = outcome.into_result().map_err(|failure| (failure.code(), failure.rendered));
    let report = session.report();
    let (prints, fuel, defined) = (report.prints.clone(), report.spent.fuel, report.defined.clone());
    let values = (0..4).map(|at| session.get::<i64>(&format!("value-{at}")).expect("a number")).collect();
    let mut effects = effects.lock().expect("not poisoned").clone();
    effects.sort();
    Course { result, prints, fuel, defined, values, effects }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn a_run_takes_the_same_course_whenever_a_person_decides(
        program in program(), denied in 0..9_i64, pending in 2..5_u64,
    ) {
        let at_once = course(&program, denied, true, 2);
        prop_assert_eq!(&at_once, &course(&program, denied, false, pending), "{}", program);
        prop_assert_eq!(&at_once, &course(&program, denied, false, u64::MAX), "{}", program);
    }
}

/// A form that is suspended again and again generates the names that it would have generated at once.
#[test]
fn generated_names_do_not_depend_on_the_rounds() {
    let sequential = "(str (mapv (fn [n] (let [asked (t/ask {:n n})] (str asked (gensym)))) (range 12)))";
    let concurrent = "(str (pmap (fn [n] (mapv (fn [n] (let [asked (t/ask {:n n})] (str asked (gensym)))) (range 3)))
                                 (range 3)))";
    for program in [sequential, concurrent] {
        let at_once = course(program, 99, true, 2);
        for pending in [2, 3, 4, u64::MAX] {
            assert_eq!(at_once, course(program, 99, false, pending));
        }
    }
}

#[test]
fn a_run_whose_process_dies_in_a_call_goes_on_from_its_checkpoint() {
    let sent = Sent::default();
    let mut tools = mailbox(&sent);
    let read = Mutex::new(0);
    tools
        .tool("mail/count", |_: lispbox::lang::NoArguments, _: &Call| {
            *read.lock().expect("not poisoned") += 1;
            Ok(7)
        })
        .read_only();
    let world = World::new(tools);
    let program = "(def n (mail/count)) (str (mail/send {:to \"a\"}) n (mail/send {:to \"b\"}) (mail/send {:to data}))";
    let disk = Mutex::new(Vec::new());
    let store = |run: &Suspended| {
        disk.lock().expect("not poisoned").push(run.encode());
        Ok(())
    };
    let mut session = engine().session();
    let before = session.encode().expect("it can be stored");
    let run = session.run(program).data("c").checkpoint(store);
    let whole = run.eval::<String>(&world).expect("it has input").done().expect("it is done");
    let spent = session.report().spent.fuel;
    assert_eq!(whole, "sent to a7sent to bsent to c");
    let disk = disk.into_inner().expect("not poisoned");
    assert_eq!(disk.len(), 6, "before and after each call that changes something");

    // The process dies at each of these moments; a person knows whether the call in progress happened.
    for (at, text) in disk.iter().enumerate() {
        for happened in [true, false] {
            sent.lock().expect("not poisoned").clear();
            let mut run = Suspended::decode(text).expect("it is a run");
            let unknown: Vec<CallId> = run.unknown().cloned().collect();
            assert_eq!(unknown.len(), usize::from(at % 2 == 0), "checkpoint {at}");
            for call in &unknown {
                let to = ["a", "b", "c"][at / 2];
                assert_eq!(run.arguments(call), Some(format!("{{\"to\":\"{to}\"}}").as_str()));
                if happened {
                    run.happened(call, &format!("sent to {to}")).expect("it is unknown");
                } else {
                    run.did_not_happen(call).expect("it is unknown");
                }
                assert!(run.did_not_happen(call).is_err(), "it is known now");
            }
            let mut session = engine().restore(&before).expect("it is a session");
            let again = session.resume(run).data("c").eval::<String>(&world).expect("it has input");
            assert_eq!(again.done().as_ref(), Some(&whole));
            assert_eq!(session.report().spent.fuel, spent);
            let done = at.div_ceil(2) + usize::from(happened && at % 2 == 0);
            assert_eq!(*sent.lock().expect("not poisoned"), ["a", "b", "c"][done..], "checkpoint {at}");
        }
    }
    assert_eq!(*read.lock().expect("not poisoned"), 1, "replies that are logged are not asked for again");
}

#[test]
fn a_call_before_which_the_checkpoint_fails_is_not_made() {
    let sent = Sent::default();
    let world = World::new(mailbox(&sent));
    let mut session = engine().session();
    let run = session.run("(mail/send {:to \"a\"})").checkpoint(|_| Err("the disk is full".to_owned()));
    let failure = run.eval::<String>(&world).expect("no input").into_result().expect_err("it is not called");
    assert_eq!(
        failure.message,
        "`mail/send` was not called, because the checkpoint before it failed: the disk is full"
    );
    assert!(sent.lock().expect("not poisoned").is_empty());
    // A run whose unknown call nobody has settled sends nothing.
    let disk = Mutex::new(String::new());
    let store = |run: &Suspended| {
        let mut disk = disk.lock().expect("not poisoned");
        if disk.is_empty() {
            *disk = run.encode();
        }
        Ok(())
    };
    let before = session.encode().expect("it can be stored");
    session.run("(mail/send {:to \"a\"})").checkpoint(store).eval::<String>(&world).expect("no input").done();
    sent.lock().expect("not poisoned").clear();
    let run = Suspended::decode(&disk.lock().expect("not poisoned")).expect("it is a run");
    let mut session = engine().restore(&before).expect("it is a session");
    let run = suspended(session.resume(run).eval::<String>(&world).expect("no input"));
    assert_eq!(run.unknown().count(), 1);
    assert!(sent.lock().expect("not poisoned").is_empty());
}
