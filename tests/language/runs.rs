//! Programs run by an embedder: typed input and results, tools as closures, cancellation, and the record of calls.

use crate::common;

use common::engine;
use lispbox::lang::{
    Call, CancelHandle, ConvertError, ErrorCode, EvalError, Limits, NoArguments, Outcome, Program, Reply, RestoreError,
    SeededRandom, Session, SessionError, TestClock, ToolError, Tools, Value, World,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn session() -> Session {
    engine().session()
}

/// Evaluates a program without tools; returns its value.
fn value<T: DeserializeOwned>(program: &str) -> T {
    match session().run(program).eval(&World::default()) {
        Ok(Outcome::Done(value)) => value,
        Ok(other) => panic!("{program}: {:?}", other.into_result().err()),
        Err(error) => panic!("{program}: {error}"),
    }
}

/// Evaluates a program whose result does not fit the type; returns the message.
fn unfit<T: DeserializeOwned + std::fmt::Debug>(program: &str) -> String {
    match session().run(program).eval::<T>(&World::default()) {
        Err(EvalError::Result(error)) => error.to_string(),
        other => panic!("{program}: {other:?}"),
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Mail {
    id: u64,
    sent_by: String,
    labels: Vec<String>,
    size: Option<f64>,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Kind {
    Plain,
    Reply(u64),
    Forward { of: u64, to: Vec<String> },
    Pair(i8, i8),
}

fn mail(id: u64, kind: Kind) -> Mail {
    Mail { id, sent_by: format!("ann{id}@example.org"), labels: vec!["new".into()], size: None, kind }
}

#[test]
fn structs_go_in_and_come_out_unchanged() {
    let mails = vec![
        mail(1, Kind::Plain),
        mail(u64::MAX, Kind::Reply(7)),
        Mail { size: Some(0.1), ..mail(3, Kind::Forward { of: 1, to: vec!["bob".into()] }) },
        mail(4, Kind::Pair(-1, 2)),
    ];
    let mut session = session();
    let run = session.run("(vec (reverse data))").data(&mails);
    let mut back = run.eval::<Vec<Mail>>(&World::default()).expect("they fit").done().expect("it runs");
    back.reverse();
    assert_eq!(back, mails);
    let run = session
        .run("[(map :sent-by data) (:kind (first data)) (-> data (nth 2) :kind :Forward :to)]")
        .data(&mails[..3]);
    let (senders, kind, to) =
        run.eval::<(Vec<String>, Kind, Vec<String>)>(&World::default()).expect("they fit").done().expect("it runs");
    assert_eq!((senders.len(), kind, to), (3, Kind::Plain, vec!["bob".to_string()]));
}

#[test]
fn structs_with_skipped_fields_keep_the_others() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Sparse {
        #[serde(skip_serializing_if = "Option::is_none", default)]
        a: Option<u8>,
        b: u8,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        c: Option<Box<Sparse>>,
    }
    let sparse = |a, b, c: Option<Sparse>| Sparse { a, b, c: c.map(Box::new) };
    let all = [
        sparse(Some(1), 2, None),
        sparse(None, 3, Some(sparse(Some(4), 5, None))),
        sparse(Some(6), 7, Some(sparse(None, 8, None))),
        sparse(None, 9, None),
        sparse(Some(10), 11, None),
    ];
    let mut session = session();
    let back = session.run("data").data(&all).eval::<Vec<Sparse>>(&World::default()).expect("they fit").done();
    assert_eq!(back.as_deref(), Some(&all[..]));
    let keys = session.run("(mapv keys data)").data(&all).eval::<Vec<Vec<String>>>(&World::default());
    assert_eq!(keys.expect("they fit").done().expect("it runs")[1], ["b", "c"]);
}

#[test]
fn numbers_are_exact_or_an_error() {
    assert_eq!(value::<i128>("123456789012345678901234567890N"), 123_456_789_012_345_678_901_234_567_890);
    assert_eq!(value::<u128>("340282366920938463463374607431768211455N"), u128::MAX);
    assert_eq!(value::<u8>("255.0"), 255);
    assert_eq!(value::<i64>("(/ 6 2)"), 3);
    assert_eq!(value::<f64>("0.1M"), 0.1);
    assert_eq!(value::<f64>("9007199254740992"), 9_007_199_254_740_992.0);
    assert_eq!(
        value::<serde_json::Value>("{:a [1 2.5 nil true \"x\" :y]}"),
        serde_json::json!({"a": [1, 2.5, null, true, "x", "y"]})
    );
    assert!(unfit::<f64>("[1]").contains("expected a number, got [1] (a vector)"));
    assert_eq!(
        unfit::<f64>("9007199254740993"),
        "expected a number that a double represents exactly, got 9007199254740993 (an integer)"
    );
    assert!(unfit::<f64>("1.234567890123456789012M").contains("represents exactly"));
    assert!(unfit::<serde_json::Value>("123456789012345678901234567890123456789012N").contains("at most 128 bits"));
    assert_eq!(unfit::<Vec<u8>>("[1 256]"), "at [1]: invalid value: integer `256`, expected u8");
    assert_eq!(unfit::<i64>("1.5"), "expected an integer, got 1.5 (a double)");
}

#[test]
fn what_json_cannot_carry_is_an_error_that_says_where() {
    assert_eq!(unfit::<HashMap<String, i64>>("{:a 1 \"a\" 2}"), "two keys of the map mean `a`");
    assert_eq!(
        unfit::<serde_json::Value>("{:rows [{:f inc}]}"),
        "at rows[0].f: expected data, got #<function inc> (a function)"
    );
    assert_eq!(unfit::<Mail>("{:id 1 :sent-by nil}"), "at sentBy: expected a string, got nil");
    assert!(unfit::<Mail>("{:id 1}").starts_with("missing field `sentBy`"));
}

#[test]
fn the_json_of_a_reply_is_exact_or_says_why_it_is_missing() {
    let reply = |program: &str| {
        let reply = session().run(program).reply(&World::default()).expect("nothing is converted");
        (reply.json.map(|json| json.to_string()), reply.json_error)
    };
    assert_eq!(
        reply("{:a [1 2.5M 18446744073709551615N]}"),
        (Some(r#"{"a":[1,2.5,18446744073709551615]}"#.into()), None)
    );
    for (program, reason) in [
        (
            "{:rows [{:n 1} {:n 123456789012345678901234567890N}]}",
            "at rows[1].n: readers of JSON would round the number 123456789012345678901234567890",
        ),
        ("1.234567890123456789012M", "readers of JSON would round the number 1.234567890123456789012"),
        ("{:a 1 \"a\" 2}", "JSON cannot represent a map of which two keys are written \"a\""),
        ("[##NaN]", "JSON cannot represent ##NaN (a double)"),
    ] {
        assert_eq!(reply(program), (None, Some(reason.to_owned())), "{program}");
    }
    assert_eq!(reply("(range 100000)"), (None, None), "a value that is cut says so itself");
}

#[test]
fn a_failure_keeps_its_rendering_when_it_is_serialized() {
    let reply = session().run("(def a 1)\n(/ a 0)").reply(&World::default()).expect("nothing is converted");
    let text = serde_json::to_string(&reply).expect("it is data");
    let back: Reply = serde_json::from_str(&text).expect("it is read");
    let failure = reply.failure.expect("it fails");
    assert!(failure.rendered.contains("(/ a 0)"), "{}", failure.rendered);
    assert_eq!(failure.code(), ErrorCode::ArithmeticError);
    assert_eq!(back.failure, Some(failure));
}

#[test]
fn advice_is_for_the_embedder() {
    let outcome = session().run("(mail/search)").eval::<Value>(&World::default()).expect("nothing is converted");
    let failure = outcome.into_result().expect_err("there is no tool");
    assert_eq!(
        failure.message,
        "`mail/search` is not defined: there is no server `mail`, since no tools are registered"
    );
    assert_eq!(failure.suggestion.as_deref(), Some("`Tools::tool(\"mail/search\", …)` registers one"));
    let limits = Limits { fuel: 100, ..Limits::default() };
    let outcome = session().run("(loop [] (recur))").limits(limits).eval::<Value>(&World::default());
    let failure = outcome.expect("nothing is converted").into_result().expect_err("it is endless");
    assert_eq!(failure.code(), ErrorCode::LimitExceeded);
    assert_eq!(failure.suggestion.as_deref(), Some("`Run::limits` allows more"));
}

/// Collects what a subscriber writes.
#[cfg(feature = "cli")]
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

#[cfg(feature = "cli")]
impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no writer panics").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(feature = "cli")]
#[test]
fn runs_and_calls_are_spans() {
    use tracing_subscriber::fmt::format::FmtSpan;
    let log = Log::default();
    let written = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(move || written.clone())
        .with_ansi(false)
        .without_time()
        .with_span_events(FmtSpan::CLOSE)
        .finish();
    tracing::subscriber::with_default(subscriber, || {
        let mut tools = Tools::new();
        tools.tool("mail/count", |_: NoArguments, _: &Call| {
            tracing::info!("counting");
            Ok(3)
        });
        let world = World::new(tools);
        let outcome = session().run("(mail/count)").name("nightly").eval::<i64>(&world).expect("it fits");
        assert_eq!(outcome.done(), Some(3));
    });
    let text = String::from_utf8(log.0.lock().expect("no writer panics").clone()).expect("it is text");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[0].contains("run{program=\"nightly\"}:call{server=\"mail\" tool=\"count\""), "{text}");
    assert!(lines[0].ends_with("counting"), "{text}");
    assert!(lines[1].contains("outcome=\"ok\" result_bytes=1}: lispbox::call: close"), "{text}");
    assert!(lines[2].contains("run{program=\"nightly\" status=\"ok\" fuel="), "{text}");
}

#[test]
fn values_dates_bytes_keys_and_lazy_parts_come_out() {
    assert_eq!(value::<Vec<i64>>("(map inc (filter odd? (range 10)))"), [2, 4, 6, 8, 10]);
    assert_eq!(value::<BTreeMap<i64, String>>("{1 \"a\" 2 :b}"), BTreeMap::from([(1, "a".into()), (2, "b".into())]));
    assert_eq!(value::<HashMap<u8, ()>>("{\"7\" nil}"), HashMap::from([(7, ())]));
    assert_eq!(value::<String>("#time/date \"2024-02-29\""), "2024-02-29");
    assert_eq!(value::<(char, String)>("[\\a :key]"), ('a', "key".into()));
    assert_eq!(value::<Value>("{:a 1.50M}").to_string(), "{:a 1.50M}");
    assert_eq!(value::<HashMap<String, Value>>("{:a :b}")["a"], Value::keyword("b"));
    assert_eq!(
        value::<BTreeMap<String, Vec<u64>>>("(group-by (fn [x] (if (odd? x) :odd :even)) [1 2 3])")["odd"],
        [1, 3]
    );
    let failed =
        session().run("[1 (map (fn [x] (/ x 0)) [1])]").eval::<(i64, Vec<i64>)>(&World::default()).expect("it fits");
    assert!(matches!(failed, Outcome::Failed(failure) if failure.error == "ArithmeticError"));
}

#[test]
fn results_are_not_bounded_by_the_output_limit_nor_charged_to_the_session() {
    let mut session = session();
    let limits = Limits { output: 100, ..Limits::default() };
    let run = session.run("(mapv str (range 100000))").limits(limits);
    assert_eq!(run.eval::<Vec<String>>(&World::default()).expect("it fits").done().map(|all| all.len()), Some(100_000));
    // `*1`, `*2` and `*3` hold earlier values.
    for _ in 0..3 {
        assert_eq!(session.run("1").eval::<i64>(&World::default()).expect("it fits").done(), Some(1));
    }
    assert!(session.live_bytes() < 100_000, "{}", session.live_bytes());
}

#[test]
fn data_and_parameters_are_not_kept() {
    let mut session = session();
    session.set("limit", &1).expect("a name");
    let before = session.encode().expect("it encodes");
    let changes = session.changes();
    let run = session.run("[limit data]").data(&[1, 2]).set("limit", &5);
    assert_eq!(run.eval::<(u8, Vec<u8>)>(&World::default()).expect("it fits").done(), Some((5, vec![1, 2])));
    assert_eq!(session.get::<u8>("limit").expect("a number"), Some(1));
    assert_eq!(session.names(), ["limit"]);
    assert_eq!(session.changes(), changes);
    let strip =
        |text: &str| text.lines().filter(|line| line.starts_with("(define")).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(strip(&session.encode().expect("it encodes")), strip(&before));
    // A definition by the program itself is kept.
    let run = session.run("(def limit (inc limit))").set("limit", &6);
    assert!(run.eval::<Value>(&World::default()).expect("it fits").done().is_some());
    assert_eq!(session.get::<u8>("limit").expect("a number"), Some(7));
}

#[test]
fn data_that_has_no_counterpart_or_is_too_large_stops_the_run() {
    let mut session = session();
    let deep = (0..300).fold(serde_json::json!(1), |inner, _| serde_json::json!([inner]));
    let error = session.run("1").data(&deep).eval::<i64>(&World::default()).expect_err("it nests too deep");
    assert!(error.to_string().starts_with("`data` cannot be given to the program: at [0]"), "{error}");
    let limits = Limits { memory: 4 << 20, ..Limits::default() };
    let large = vec![7_u64; 1_000_000];
    let outcome = session.run("1").data(&large).limits(limits).eval::<i64>(&World::default()).expect("it converts");
    assert!(matches!(outcome, Outcome::Limited(failure) if failure.limit.as_deref() == Some("memory")));
    let error = session.run("1").set("not a name", &1).eval::<i64>(&World::default()).expect_err("no name");
    assert_eq!(error.to_string(), "`not a name` cannot be defined: expected a plain name, such as `mails`");
}

#[test]
fn definitions_are_set_returned_and_removed() {
    let mut session = session();
    session.set("mails", &[mail(1, Kind::Plain)]).expect("a name");
    assert_eq!(session.get::<Vec<Mail>>("mails").expect("they fit"), Some(vec![mail(1, Kind::Plain)]));
    assert!(
        matches!(session.get::<u8>("mails"), Err(SessionError::Convert(error)) if error.to_string().starts_with("expected an integer"))
    );
    assert!(session.remove("mails") && !session.remove("mails"));
    assert_eq!(session.get::<u8>("mails").expect("nothing"), None);
    for name in ["", "a b", "1", ":a", "a/b", "(a)", "if", "a;b", "nil"] {
        assert!(matches!(session.set(name, &1), Err(SessionError::Name(_))), "{name}");
    }
}

#[test]
fn restoring_says_why_it_fails() {
    let engine = engine();
    let error = |text: &str| engine.restore(text).expect_err("it is no session of this engine");
    assert!(matches!(error("{}"), RestoreError::NotASession(_)));
    assert!(matches!(error("(lispbox-session 99)\n(history nil nil nil nil)\n"), RestoreError::Version(_)));
    let mut session = engine.session();
    session.set("a", &1).expect("a name");
    let text = session.encode().expect("it encodes");
    assert!(matches!(error(&text[..text.len() - 5]), RestoreError::Damaged(_)));
    let missing = text.replace("(define a 1)", "(define a [(builtin my/b) (builtin my/a) (builtin core/inc)])");
    assert_eq!(error(&missing), RestoreError::Missing(vec!["my/a".into(), "my/b".into()]));
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Search {
    text: String,
    #[serde(default)]
    limit: Option<usize>,
}

#[test]
fn tools_are_closures_over_the_callers_data() {
    let mails = [mail(1, Kind::Plain), mail(2, Kind::Plain)];
    let calls = AtomicUsize::new(0);
    let mut tools = Tools::new();
    tools
        .tool("mail/search", |search: Search, _: &Call| {
            calls.fetch_add(1, Ordering::Relaxed);
            let fits = mails.iter().filter(|mail| mail.sent_by.contains(&search.text));
            Ok(fits.take(search.limit.unwrap_or(9)).collect::<Vec<_>>())
        })
        .read_only()
        .doc("Mails by sender.");
    tools.tool("mail/fail", |_: NoArguments, _: &Call| -> Result<(), ToolError> {
        Err(ToolError::failed("no mail today"))
    });
    let world = World::new(tools);
    let mut session = session();
    let mut run = |program: &str| session.run(program).reply(&world).expect("no input").text(2_000);
    assert_eq!(run("(map :id (mail/search \"ann\"))"), "(1 2)\n[1 tool call]");
    assert_eq!(run("(:id (first (mail/search {:text \"ann\" :limit 1})))"), "1\n[1 tool call]");
    assert!(run("(mail/search)").contains("ToolArgumentError: `mail/search` needs the argument `text`"));
    assert!(
        run("(mail/search :tekst \"a\")").contains("`mail/search` has no argument `tekst`"),
        "{}",
        run("(mail/search :tekst \"a\")")
    );
    assert!(run("(mail/fail)").contains("ToolError: no mail today"));
    assert!(run("(doc mail/search)").contains("Mails by sender."));
    assert_eq!(calls.load(Ordering::Relaxed), 2);
}

#[test]
fn a_panic_in_a_tool_is_an_error_of_the_call_also_in_branches() {
    let mut tools = Tools::new();
    tools.tool("web/panic", |_: NoArguments, _: &Call| -> Result<i64, ToolError> { panic!("the cable is cut") });
    let world = World::new(tools);
    let mut session = session();
    for program in ["(web/panic)", "(pmap (fn [i] (web/panic)) [1 2])", "(mapv (fn [i] (web/panic)) [1])"] {
        let outcome = session.run(program).eval::<Value>(&world).expect("it fits");
        let Outcome::Failed(failure) = outcome else { panic!("{program}") };
        assert_eq!((&*failure.error, &*failure.message), ("ToolPanic", "`web/panic` panicked: the cable is cut"));
    }
    let outcomes: Vec<_> = session.report().calls.iter().map(|call| call.outcome).collect();
    assert_eq!(outcomes, ["ToolPanic"]);
    assert!(session.live_bytes() < 100_000, "{}", session.live_bytes());
}

#[test]
fn a_deadline_that_passes_in_a_tool_ends_the_run_when_it_returns() {
    let clock = Arc::new(TestClock::at_millis(0));
    let slow = clock.clone();
    let mut tools = Tools::new();
    tools.tool("web/slow", move |_: NoArguments, call: &Call| {
        assert_eq!(call.deadline(), Duration::from_millis(500));
        slow.advance(Duration::from_secs(3));
        assert!(call.cancelled());
        Ok(1)
    });
    let world = World::new(tools).clock(clock);
    let limits = Limits { total: Duration::from_millis(500), ..Limits::default() };
    let outcome = session().run("(def a (web/slow))").limits(limits).eval::<Value>(&world).expect("it fits");
    assert!(matches!(outcome, Outcome::Limited(failure) if failure.limit.as_deref() == Some("total")));
}

#[test]
fn a_handle_cancels_the_run_and_the_session_can_still_be_written() {
    let cancel = CancelHandle::new();
    let stopper = cancel.clone();
    let mut tools = Tools::new();
    tools.tool("web/get", move |_: NoArguments, call: &Call| {
        stopper.cancel();
        assert!(call.cancelled());
        Ok(1)
    });
    let world = World::new(tools).cancelled_by(&cancel);
    let mut session = session();
    let outcome = session.run("(def a 1) (def b (web/get)) (def c 2)").eval::<Value>(&world).expect("it fits");
    assert!(matches!(outcome, Outcome::Cancelled));
    assert_eq!(session.names(), ["a"]);
    assert!(session.encode().expect("it encodes").contains("(define a 1)"));
}

#[test]
fn a_run_that_is_cancelled_before_it_begins_does_nothing() {
    let cancel = CancelHandle::new();
    cancel.cancel();
    let world = World::default().cancelled_by(&cancel);
    let mut session = session();
    assert!(matches!(session.run("(def a 1)").eval::<Value>(&world), Ok(Outcome::Cancelled)));
    assert!(session.names().is_empty());
}

#[test]
fn calls_are_recorded_and_observed() {
    let seen = Mutex::new(Vec::new());
    let progress = Mutex::new(Vec::new());
    let mut tools = Tools::new();
    tools.tool("mail/count", |search: Search, call: &Call| {
        call.progress(1.0, Some(2.0), "half");
        Ok(search.text.len())
    });
    let world = World::new(tools)
        .on_call(|call| seen.lock().expect("not poisoned").push(call.clone()))
        .on_progress(|made| progress.lock().expect("not poisoned").push((made.id.ordinal, made.tool, made.message)));
    let mut session = session();
    let run = session.run("1 (mapv (fn [text] (mail/count :text text)) [\"ab\" \"abc\"])");
    assert_eq!(run.eval::<Vec<u8>>(&world).expect("it fits").done(), Some(vec![2, 3]));
    let report = session.report();
    assert_eq!(report.calls, *seen.lock().expect("not poisoned"));
    let first = &report.calls[0];
    assert_eq!(
        (first.id.form, first.id.ordinal, &*first.arguments, first.outcome, first.result_bytes),
        (1, 0, "{\"text\":\"ab\"}", "ok", 1)
    );
    assert!(first.fuel > 0 && first.memory > 0 && first.fuel < report.calls[1].fuel);
    assert_eq!(progress.lock().expect("not poisoned")[1], (1, "mail/count".into(), "half".into()));
}

#[test]
fn evaluations_that_share_a_world_do_not_mix() {
    fn is_send<T: Send>() {}
    fn is_shared<T: Send + Sync>() {}
    is_send::<Session>();
    is_shared::<Program>();
    is_shared::<World<'_>>();
    let both = std::sync::Barrier::new(2);
    let mut tools = Tools::new();
    // The first call of each evaluation has the same identity. The failure in one must not abandon that of the other.
    tools.tool("web/get", |search: Search, call: &Call| {
        if search.text == "wait" {
            both.wait();
            for _ in 0..1_000 {
                std::thread::yield_now();
                assert!(!call.cancelled());
            }
        }
        if search.text == "fail" { Err(ToolError::failed("no page")) } else { Ok(search.text) }
    });
    let world = World::new(tools);
    let engine = engine();
    let run = |program: &str| {
        let mut session = engine.session();
        let outcome = session.run(program).eval::<Value>(&world).expect("it fits");
        (outcome.done().is_some(), session.report().calls.len())
    };
    std::thread::scope(|scope| {
        let one = scope.spawn(|| run("(pmap web/get [\"wait\" \"go\"])"));
        let other = scope.spawn(|| run("(web/get \"wait\")"));
        assert_eq!(one.join().expect("no panic"), (true, 2));
        assert_eq!(other.join().expect("no panic"), (true, 1));
    });
}

#[test]
fn only_what_the_program_allocates_is_charged() {
    let kept = Mutex::new(Vec::new());
    let world = World::default().on_print(|text| kept.lock().expect("not poisoned").push(text.repeat(100)));
    let mut session = session();
    for _ in 0..200 {
        let _ = session.run("(dotimes [_ 100] (println \"a line of text\"))").eval::<()>(&world);
    }
    assert_eq!(kept.lock().expect("not poisoned").len(), 20_000);
    assert!(session.live_bytes() < 100_000, "{}", session.live_bytes());
}

#[test]
fn programs_are_compiled_once_and_run_in_many_threads() {
    let engine = engine();
    let program = engine.compile("(def seen (inc (or seen 0))) (* factor seen)").err().map(|failure| failure.error);
    assert_eq!(program, None, "names are resolved when a program runs");
    let program = engine.compile("(reduce + (map (fn [x] (* factor x)) (range 100)))").expect("it is read");
    let threads: Vec<_> = (0..2_u64)
        .map(|factor| {
            let (engine, program) = (engine.clone(), program.clone());
            std::thread::spawn(move || {
                let mut session = engine.session();
                (0..50).all(|_| {
                    let run = session.run(&program).set("factor", &factor);
                    run.eval::<u64>(&World::default()).expect("it fits").done() == Some(4_950 * factor)
                })
            })
        })
        .collect();
    assert!(threads.into_iter().all(|thread| thread.join().expect("no panic")));
    assert_eq!(engine.compile("(a").expect_err("it is cut off").line, Some(1));
}

#[test]
fn seeded_worlds_repeat_their_runs() {
    let run = |seed| {
        let world = World::default().clock(Arc::new(TestClock::at_millis(1))).random(SeededRandom::new(seed));
        session()
            .run("[(rand-int 1000000) (str (now)) (shuffle (range 5))]")
            .eval::<serde_json::Value>(&world)
            .expect("it fits")
            .done()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn errors_are_standard_errors_with_sources() {
    fn passed_on() -> Result<i64, Box<dyn std::error::Error>> {
        Ok(session().run("(/ 1 0)").eval::<i64>(&World::default())?.into_result()?)
    }
    assert_eq!(passed_on().expect_err("it fails").to_string(), "ArithmeticError: divide by zero");
    let error =
        session().run("{:a [1 :b]}").eval::<HashMap<String, Vec<i64>>>(&World::default()).expect_err("it does not fit");
    let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<ConvertError>());
    assert_eq!(source.map(ConvertError::place).as_deref(), Some("a[1]"));
}

#[test]
fn conversions_are_held_to_the_limits() {
    let mut builder = lispbox::lang::Engine::builder();
    builder.function("my/sum", |numbers: Vec<i64>| numbers.iter().sum::<i64>());
    builder.function("my/texts", |texts: Vec<String>| texts.len());
    builder.function("my/any", |value: serde_json::Value| value.is_null());
    let engine = builder.build().expect("the names are free");
    let limit = |program: &str| {
        let limits = Limits { memory: 64 << 20, ..Limits::default() };
        let outcome = engine.session().run(program).limits(limits).eval::<Vec<String>>(&World::default());
        match outcome.expect("it fits, or ends before") {
            Outcome::Limited(failure) => failure.limit.unwrap_or_default(),
            other => panic!("{program}: {other:?}"),
        }
    };
    let texts = "(vec (repeat 10000 (apply str (repeat 100000 \"xyz \"))))";
    assert!(["fuel", "memory"].contains(&&*limit("(my/sum (range))")));
    assert_eq!(limit(&format!("(my/texts {texts})")), "memory");
    assert_eq!(limit(texts), "memory");
    assert!(["fuel", "memory"].contains(&&*limit("(my/any (nth (iterate (fn [x] [x x]) 1) 60))")));
}

#[test]
fn parts_that_nest_too_deep_do_not_hide_lazy_parts_from_the_account() {
    #[derive(Deserialize)]
    struct Flat {
        items: Vec<i64>,
    }
    let mut session = session();
    let program = "(def xs (map inc (range 100000)))
                   {:deep (reduce (fn [inner _] [inner]) 1 (range 300)) :items xs}";
    let flat = session.run(program).eval::<Flat>(&World::default()).expect("it fits").done();
    assert_eq!(flat.map(|flat| flat.items.len()), Some(100_000));
    // The realised sequence is charged to the session that holds it.
    assert!(session.live_bytes() > 1_000_000, "{}", session.live_bytes());
}

#[test]
fn data_of_a_run_does_not_count_towards_the_session() {
    let data = vec![1_u64; 500_000];
    let limits = Limits { session: 1 << 20, bindings: 1, ..Limits::default() };
    let mut session = session();
    let run = session.run("(def kept (count data)) kept").data(&data).limits(limits);
    assert_eq!(run.eval::<usize>(&World::default()).expect("it fits").done(), Some(500_000));
    let large = vec![1_u64; 5_000_000];
    assert!(
        matches!(session.set("large", &large), Err(SessionError::Failed(failure)) if failure.limit.as_deref() == Some("session"))
    );
    assert_eq!(session.names(), ["kept"]);
}

#[test]
fn keys_that_would_overwrite_each_other_are_an_error() {
    assert_eq!(unfit::<HashMap<u64, String>>("{1 :a \"1\" :b}"), "two keys of the map mean `1`");
    assert_eq!(value::<HashMap<(i64, i64), u8>>("{[1 2] 3}"), HashMap::from([((1, 2), 3)]));
    assert!(unfit::<HashMap<(i64, i64), u8>>("{[1 2 3] 3}").contains("expected 2 items, got more"));
}
