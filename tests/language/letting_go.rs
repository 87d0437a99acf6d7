//! Garbage is dropped incrementally: a program ends in time however much it releases, the memory accounting stays
//! exact, and no program runs out of memory because of garbage that is waiting to be dropped.

use crate::common;

use common::{Scripted, host, run, session};
use lispbox::lang::{Engine, Request, Residence, Session, Status, ToolReply, World};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Defines a function that builds a vector of that many levels and ignores its argument.
fn levels(count: u32) -> String {
    format!("(defn levels [_] (reduce (fn [a _] [a]) [] (range {count})))")
}

/// Checks that the session holds no more memory than before, once the next evaluation has begun.
fn nothing_is_left(session: &mut Session, before: u64, program: &str) {
    run(session, "1");
    let after = session.live_bytes();
    assert!(after < before + 64_000, "{program}: {before} bytes before, {after} after");
}

#[test]
fn the_next_evaluation_begins_with_what_is_left() {
    let mut session = session();
    run(&mut session, &levels(400_000));
    let before = session.live_bytes();
    // Each program ends by releasing all of its data: a vector, cells, or the keys of a map.
    for program in [
        "(do (levels nil) 1)",
        "(do (vec (map (fn [i] (atom [i])) (range 200000))) 1)",
        "(do (zipmap (map str (range 100000)) (map vector (range 100000))) 1)",
        "(def held (levels nil)) (def held nil)",
    ] {
        run(&mut session, program);
        nothing_is_left(&mut session, before, program);
    }
}

#[test]
fn a_program_that_was_stopped_leaves_nothing() {
    let mut session = session();
    run(&mut session, &levels(300_000));
    let before = session.live_bytes();
    let mut request = Request::new("(loop [kept []] (recur (conj kept (levels nil))))");
    request.limits.set("memory", "64MiB").expect("a known limit");
    let reply = session.eval(request, host());
    assert_eq!(reply.failure.and_then(|failure| failure.limit).as_deref(), Some("memory"));
    nothing_is_left(&mut session, before, "what was stopped");
}

#[test]
fn what_waits_to_be_dropped_is_not_held_against_a_program() {
    let mut session = session();
    let mut request = Request::new(format!("{} (dotimes [_ 30] (levels nil)) :done", levels(200_000)));
    request.limits.set("memory", "32MiB").expect("a known limit");
    request.limits.set("compute", "60s").expect("a known limit");
    let reply = session.eval(request, host());
    assert_eq!(reply.value.as_deref(), Some(":done"), "{reply:?}");
}

#[test]
fn branches_hand_on_what_they_let_go_of() {
    let tools = || {
        let echo = Scripted::new().tool("t/echo", json!({"type": "object"}), |_| ToolReply::Json("1".to_string()));
        Arc::new(echo)
    };
    let mut session = session();
    run(&mut session, &levels(100_000));
    let before = session.live_bytes();
    let mut request = Request::new("(reduce + (pmap (fn [_] (levels nil) (t/echo) (levels nil) (t/echo)) (range 6)))");
    request.limits.set("memory", "48MiB").expect("a known limit");
    request.limits.set("compute", "60s").expect("a known limit");
    let reply = session.eval(request, tools());
    assert_eq!((reply.status, reply.value.as_deref()), (Status::Ok, Some("6")), "{reply:?}");
    nothing_is_left(&mut session, before, "pmap");
}

#[test]
fn what_a_program_was_given_is_counted_only_where_it_is_kept() {
    let mut session = session();
    session.bind("text", &format!("{:?}", "x".repeat(10_000_000)), host()).expect("it is JSON");
    let before = session.live_bytes();
    assert!(before >= 10_000_000, "{before} bytes for a text of ten million");
    for _ in 0..300 {
        let mut request = Request::new("1");
        request.name = Some("n".repeat(1_000));
        assert_eq!(session.eval(request, host()).value.as_deref(), Some("1"));
    }
    let after = session.live_bytes();
    assert!(before.abs_diff(after) < 64_000, "{before} bytes before, {after} after");
}

#[test]
fn the_text_of_a_program_is_counted_where_a_function_keeps_it() {
    let text = format!("(defn f [] 1) ; {}", "x".repeat(1_000));
    let mut session = session();
    let mut rest = |times: usize, by_run: bool| {
        for _ in 0..times {
            if by_run {
                let _ = session.run(text.as_str()).reply(&World::default()).expect("nothing is converted");
            } else {
                run(&mut session, &text);
            }
        }
        (0..3).for_each(|_| drop(run(&mut session, "nil")));
        session.live_bytes()
    };
    let once = rest(1, false);
    assert!(once > 1_000, "{once} bytes");
    assert_eq!((rest(100, false), rest(100, true)), (once, once));
    run(&mut session, "(def f nil)");
    assert!(session.live_bytes() < once - 1_000, "{} bytes", session.live_bytes());
}

#[test]
fn replies_are_not_counted() {
    let echo = Scripted::new().tool("t/echo", json!({"type": "object"}), |_| ToolReply::Json("1".to_string()));
    let host = Arc::new(echo);
    let mut session = session();
    run(&mut session, "(def a 1)");
    // Each reply has other parts: JSON or the reason why there is none, what was printed, defined, called, cut off or wrong.
    for program in [
        "[\"a long text of a value\" {:key :value}]",
        "{:a 1 \"a\" 2}",
        "(println (apply str (repeat 100 \"printed\")))",
        "(def a 1)",
        "(t/echo {:text \"some arguments\"})",
        "(vec (range 10000))",
        "(throw (ex-info \"a failure with data\" {:key [1 2 3]}))",
        "(loop [] (recur))",
        "(unbalanced",
    ] {
        let mut rest = |times: usize| {
            for _ in 0..times {
                let mut request = Request::new(program);
                request.limits.output = 1_000;
                request.limits.fuel = 100_000;
                session.eval(request, host.clone());
            }
            // `*1` to `*3` and `*e` hold values.
            run(&mut session, "(throw (ex-info \"\" {}))");
            (0..3).for_each(|_| drop(run(&mut session, "nil")));
            session.live_bytes()
        };
        let before = rest(1);
        assert_eq!(rest(100), before, "{program}");
    }
}

/// Reports a process that has grown by 48 MiB since the first query.
#[derive(Default)]
struct Grown(AtomicBool);

impl Residence for Grown {
    fn resident(&self) -> Option<u64> {
        Some(if self.0.swap(true, Ordering::Relaxed) { 148 << 20 } else { 100 << 20 })
    }
}

#[test]
fn cells_do_not_hide_what_the_process_has_grown_by() {
    for cells in ["nil", "(mapv atom (range 1000))"] {
        let engine = Engine::builder().residence(Grown::default()).build().expect("an engine");
        let program = format!("(def cells {cells}) (def held (vec (range 100000))) (loop [] (recur))");
        let mut request = Request::new(program);
        request.limits.set("memory", "16MiB").expect("a known limit");
        let reply = engine.session().eval(request, host());
        assert_eq!(reply.failure.and_then(|failure| failure.limit).as_deref(), Some("memory"), "{cells}");
    }
}
