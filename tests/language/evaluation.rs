//! Tests for the points 6 to 11 of `docs/values.md`, about evaluation, each of which fails if its point is violated.

use crate::common;

use common::{Scripted, engine, eval, host, run, session, value, with_limit};
use lispbox::lang::{CallId, Engine, Question, Request, Status, ToolReply};
use serde_json::json;
use std::io::Write;
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier, Mutex};

// 6. Memory is metered.

#[test]
fn ten_gigabytes_in_all_run_under_sixty_four_megabytes() {
    let program =
        "(let [s (apply str (repeat 1000000 \"x\"))] (loop [i 0] (if (< i 10000) (do (subs s 1) (recur (inc i))) i)))";
    let reply = with_limit(program, &[("memory", "64MiB"), ("compute", "60s"), ("fuel", "1e10")]);
    assert_eq!(reply.value.as_deref(), Some("10000"), "{reply:?}");
    assert!(reply.spent.memory_bytes < 64 << 20);
}

#[test]
fn what_does_not_fit_is_refused_before_it_is_built() {
    for program in [
        "(vec (range 10000000000))",
        "(apply str (repeat 1000000000 \"x\"))",
        "(loop [s \"x\"] (recur (str s s)))",
        "(loop [v []] (recur (conj v v)))",
        "(loop [v [1]] (recur (into v v)))",
        "(reduce conj [] (range))",
        "(doall (iterate inc 0))",
    ] {
        let reply = with_limit(program, &[("memory", "32MiB"), ("compute", "60s")]);
        let failure = reply.failure.expect("a limit is hit");
        assert!(matches!(failure.limit.as_deref(), Some("memory" | "fuel")), "{program}: {}", failure.rendered);
        assert!(reply.spent.memory_bytes < 64 << 20, "{program}: {} bytes", reply.spent.memory_bytes);
    }
}

#[test]
fn memory_that_is_freed_on_another_thread_is_credited() {
    let engine = engine();
    let mut session = engine.session();
    run(&mut session, "(def big (vec (range 100000)))");
    let big = session.live_bytes();
    assert!(big > 1_600_000, "{big}");
    // Keeps the thread of the first evaluation busy, so that the next evaluation runs on another one.
    let (entered, has_entered) = channel();
    let (leave, may_leave) = channel::<()>();
    let may_leave = Mutex::new(may_leave);
    let entered = Mutex::new(entered);
    let blocking = Scripted::new().tool("t/block", json!({"type": "object"}), move |_| {
        entered.lock().expect("not poisoned").send(()).expect("the test waits");
        may_leave.lock().expect("not poisoned").recv().expect("the test goes on");
        ToolReply::Json("1".to_string())
    });
    let mut busy = engine.session();
    let thread = std::thread::spawn(move || busy.eval(Request::new("(t/block)"), Arc::new(blocking)).value);
    has_entered.recv().expect("the tool is called");
    run(&mut session, "(def big nil)");
    leave.send(()).expect("the tool waits");
    assert_eq!(thread.join().expect("no panic").as_deref(), Some("1"));
    assert!(session.live_bytes() < 50_000, "{} bytes are left", session.live_bytes());
}

// 7. Fuel.

#[test]
fn fuel_is_the_same_every_time() {
    let program = "(->> (range 1000) (map #(* % %)) (filter even?) (group-by #(mod % 7)) (sort-by key) (map (fn [[k v]] [k (count v)])))";
    let first = eval(program).spent.fuel;
    assert!(first > 3_000, "{first}");
    for _ in 0..3 {
        assert_eq!(eval(program).spent.fuel, first);
    }
    // A limit trips at the same step, and the message reports it.
    let failure = with_limit("(loop [i 0] (recur (inc i)))", &[("fuel", "12345")]).failure.expect("a limit");
    assert_eq!(failure.limit.as_deref(), Some("fuel"));
    assert!(failure.message.contains("12346 steps, allowed 12345 steps"), "{}", failure.message);
}

// 8. A form is a transaction.

#[test]
fn a_form_that_fails_leaves_no_trace_and_the_earlier_ones_stay() {
    let mut session = session();
    run(&mut session, "(def a (atom 1)) (def x 1)");
    let program = "(def y 2) (swap! a inc) (do (def x 5) (def z 9) (reset! a 100) (nth [] 3)) (def never 1)";
    let reply = session.eval(Request::new(program), host());
    assert_eq!(reply.failure.expect("it fails").error, "IndexOutOfBounds");
    assert_eq!(reply.defined, ["y"]);
    assert_eq!(run(&mut session, "[x y @a]"), "[1 2 2]");
    assert!(run(&mut session, "z").contains("UnboundVariable"));
    assert!(run(&mut session, "never").contains("UnboundVariable"));
    // A limit rolls back its form as well.
    let mut request = Request::new("(do (reset! a :lost) (loop [] (recur)))");
    request.limits.set("fuel", "1e5").expect("a known limit");
    assert_eq!(session.eval(request, host()).status, Status::Limit);
    assert_eq!(run(&mut session, "@a"), "2");
}

#[test]
fn lazy_values_are_forced_before_a_form_is_kept() {
    // A definition does not force lazy values. The value of a form is forced when it is shown; an error in a value that
    // is not shown has no effect.
    let seen = "(def seen (atom 0)) (defn look [x] (swap! seen inc) x)";
    let items = "(map look (take 3 (iterate inc 0)))";
    assert_eq!(value(&format!("{seen} (def xs {items}) @seen")), "0");
    assert_eq!(value(&format!("{seen} {items} @seen")), "3");
    assert_eq!(value("(map (fn [x] (nth [] x)) (take 3 (iterate inc 0))) :kept"), ":kept");
    assert_eq!(
        eval("(map (fn [x] (nth [] x)) (take 3 (iterate inc 0)))").failure.expect("it fails").error,
        "IndexOutOfBounds"
    );
    assert_eq!(
        value("(try (map (fn [x] (nth [] x)) (take 3 (iterate inc 0))) (catch Exception e :caught))"),
        ":caught"
    );
}

#[test]
fn limits_and_cancellation_are_never_caught() {
    let reply =
        with_limit("(try (loop [] (recur)) (catch Throwable e :caught) (finally (println :no)))", &[("fuel", "1e5")]);
    assert_eq!(reply.status, Status::Limit);
    assert_eq!(reply.prints, "");
    let cancelled = Scripted::new();
    cancelled.cancelled.store(true, std::sync::atomic::Ordering::Relaxed);
    let reply =
        session().eval(Request::new("(try (loop [] (recur)) (catch Throwable e :caught))"), Arc::new(cancelled));
    assert_eq!(reply.status, Status::Cancelled);
}

// 9. Host calls have stable identities.

#[test]
fn host_calls_are_identified_by_form_branch_and_ordinal() {
    let ids = || {
        let host =
            Arc::new(Scripted::new().tool("t/echo", json!({"type": "object", "properties": {"x": {}}}), |arguments| {
                ToolReply::Json(arguments["x"].to_string())
            }));
        let program = "(t/echo 1) (do (t/echo 2) (t/echo 3)) (pmap (fn [x] (t/echo x) (t/echo x)) [4 5])";
        let reply = session().eval(Request::new(program), host.clone());
        assert_eq!(reply.value.as_deref(), Some("(4 5)"));
        let mut calls: Vec<(CallId, String)> = host
            .calls
            .lock()
            .expect("not poisoned")
            .iter()
            .map(|call| (call.id.clone(), call.arguments.clone()))
            .collect();
        calls.sort_by_key(|(id, _)| (id.form, id.branch.clone(), id.ordinal));
        calls
    };
    let first = ids();
    let shown: Vec<String> =
        first.iter().map(|(id, arguments)| format!("{} {:?} {} {arguments}", id.form, id.branch, id.ordinal)).collect();
    assert_eq!(
        shown,
        [
            "0 [] 0 {\"x\":1}",
            "1 [] 0 {\"x\":2}",
            "1 [] 1 {\"x\":3}",
            "2 [0, 0] 0 {\"x\":4}",
            "2 [0, 0] 1 {\"x\":4}",
            "2 [0, 1] 0 {\"x\":5}",
            "2 [0, 1] 1 {\"x\":5}",
        ]
    );
    assert_eq!(ids(), first);
}

#[test]
fn replies_can_be_errors_denials_and_questions() {
    let host = Arc::new(
        Scripted::new()
            .tool("t/denied", json!({"type": "object"}), |_| ToolReply::Denied("by rule t/*".to_string()))
            .tool("t/unapproved", json!({"type": "object"}), |_| ToolReply::Unapproved("nobody is there".to_string()))
            .tool("t/ask", json!({"type": "object"}), |_| {
                ToolReply::Ask(Box::new(Question {
                    id: CallId::default(),
                    server: "t".into(),
                    tool: "ask".into(),
                    is_guarded: false,
                    arguments: "{}".to_owned(),
                    reason: "may it?".to_owned(),
                }))
            }),
    );
    let unapproved = "ToolNeedsApproval";
    for (program, code) in [("(t/denied)", "ToolDenied"), ("(t/unapproved)", unapproved), ("(t/ask)", unapproved)] {
        let reply = session().eval(Request::new(program), host.clone());
        assert_eq!(reply.failure.expect("it fails").error, code);
        let caught = session().eval(Request::new(format!("(try {program} (catch Exception e :caught))")), host.clone());
        assert_eq!(caught.value.as_deref(), Some(":caught"));
    }
}

// 10. `pmap` overlaps waiting, not computing.

#[test]
fn pmap_calls_tools_side_by_side_and_keeps_the_order() {
    // The barrier opens only when eight calls wait at the same time.
    let barrier = Arc::new(Barrier::new(8));
    let host = Arc::new(Scripted::new().tool(
        "t/wait",
        json!({"type": "object", "properties": {"n": {}}}),
        move |arguments| {
            barrier.wait();
            ToolReply::Json(arguments["n"].to_string())
        },
    ));
    let program = "(def seen (atom [])) (pmap (fn [n] (let [r (t/wait n)] (swap! seen conj r) r)) (range 16)) @seen";
    let mut request = Request::new(program);
    request.limits.set("parallel", "8").expect("a known limit");
    let reply = session().eval(request, host);
    // The side effects happen in the order of the items, whatever the order of the replies.
    assert_eq!(reply.value.as_deref(), Some("[0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15]"), "{reply:?}");
    assert_eq!(reply.calls.len(), 16);
}

#[test]
fn the_first_failing_branch_ends_the_others() {
    let host = Arc::new(Scripted::new().tool("t/fail", json!({"type": "object", "properties": {"n": {}}}), |_| {
        ToolReply::Denied("never".to_string())
    }));
    let reply = session().eval(Request::new("(pmap t/fail (range 100))"), host);
    assert_eq!(reply.failure.expect("it fails").error, "ToolDenied");
    assert!(reply.calls.len() <= 33, "{} calls", reply.calls.len());
}

// 11. An evaluation can move to another process.

#[test]
fn a_session_goes_to_another_process_and_comes_back() {
    const ROLE: &str = "LISPBOX_TEST_ROLE";
    if std::env::var(ROLE).is_ok() {
        // In the child process: decodes a session, runs a program in it, and encodes it again.
        let text = std::io::read_to_string(std::io::stdin()).expect("text comes in");
        let mut session = engine().session();
        session.decode(&text).expect("it decodes");
        assert_eq!(run(&mut session, "(swap! total + (twice 4)) @total"), "18");
        let text = session.encode().expect("it encodes");
        std::io::stderr().write_all(format!("<<{text}>>").as_bytes()).expect("text goes out");
        return;
    }
    let mut session = session();
    run(&mut session, "(def total (atom 10)) (defn twice [x] (* 2 x))");
    let text = session.encode().expect("it encodes");
    let mut child = std::process::Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "evaluation::a_session_goes_to_another_process_and_comes_back", "--nocapture"])
        .env(ROLE, "other")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("it starts");
    child.stdin.take().expect("piped").write_all(text.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let printed = String::from_utf8(output.stderr).expect("text");
    let returned = printed.split_once("<<").and_then(|(_, rest)| rest.rsplit_once(">>")).map(|(text, _)| text);
    session.decode(returned.unwrap_or_else(|| panic!("{printed}"))).expect("it decodes");
    assert_eq!(run(&mut session, "(swap! total + (twice 1)) @total"), "20");
}

#[test]
fn engines_are_shared_by_threads() {
    let engine: Arc<Engine> = engine();
    let threads: Vec<_> = (0..4)
        .map(|n| {
            let engine = engine.clone();
            std::thread::spawn(move || run(&mut engine.session(), &format!("(reduce + (range {n}0))")))
        })
        .collect();
    let results: Vec<String> = threads.into_iter().map(|thread| thread.join().expect("no panic")).collect();
    assert_eq!(results, ["0", "45", "190", "435"]);
}
