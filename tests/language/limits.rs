//! The messages about limits of memory, and the time that the limit `compute` counts.

use crate::common;

use common::{host, session};
use lispbox::lang::{Host, Reply, Request, Status};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

fn within(limits: &[(&str, &str)], program: &str, host: Arc<dyn Host>) -> Reply {
    let mut request = Request::new(program);
    for (name, value) in limits {
        request.limits.set(name, value).expect("a known limit");
    }
    session().eval(request, host)
}

/// Returns the message of the limit that the program exceeds, up to what is allowed.
fn message(limits: &[(&str, &str)], program: &str) -> String {
    let reply = within(limits, program, host());
    assert_eq!(reply.status, Status::Limit, "{program}: {reply:?}");
    let message = reply.failure.expect("a limit").message;
    let held = message.find("(held by ").unwrap_or_else(|| panic!("{message}"));
    message[held..].split(", allowed").next().unwrap_or_default().to_owned()
}

#[test]
fn the_message_about_memory_names_what_holds_it() {
    let limits = [("memory", "64MiB"), ("session", "1GiB"), ("compute", "60s"), ("total", "60s")];
    let endless = "(loop [v []] (recur (conj v (str (count v) \" items have been added\"))))";
    assert_eq!(message(&limits, endless), "(held by what form 1 computes)");
    let after = format!("(def big (vec (range 2000000))) (def small 1) {endless}");
    assert_eq!(message(&limits, &after), "(held by `big` with about 30 MiB and what form 3 computes)");
    let atom = format!("(def kept (atom {{:rows (vec (range 1000000))}})) {endless}");
    assert_eq!(message(&limits, &atom), "(held by `kept` with about 15 MiB and what form 2 computes)");
}

#[test]
fn the_message_about_a_session_names_its_largest_definitions() {
    let limits = [("session", "8MiB"), ("compute", "60s"), ("total", "60s")];
    let rows =
        "(def rows (vec (map (fn [i] {:id i}) (range 100000)))) (def texts (vec (repeat 200000 \"a\"))) (def c 1)";
    let named = "(held by `rows` with about 6 MiB, `texts` with about 3 MiB and the value of form 2)";
    assert_eq!(message(&limits, rows), named);
    let two = "(def a (vec (range 300000))) (def b (vec (range 400000)))";
    assert_eq!(message(&limits, two), "(held by `b` with about 6 MiB, `a` with about 4 MiB and the value of form 2)");
}

#[test]
fn values_that_are_shared_are_not_said_to_hold_more_than_there_is() {
    let nested = "(def a (vec (range 100000))) (def b (vec (repeat 100000 a))) (def c (vec (repeat 100000 b))) \
                  (def d (vec (repeat 100000 c))) (def e (vec (repeat 100000 d))) \
                  (def f (vec (repeat 100000 e)))";
    let limits = [("session", "8MiB"), ("memory", "64MiB"), ("compute", "60s"), ("total", "60s")];
    let held = message(&limits, nested);
    assert!(held.starts_with("(held by `") && held.contains(" with about 64 MiB"), "{held}");
}

/// A machine on which each look at the clock finds 10 ms passed, of which a processor ran the evaluation for a part.
struct Busy {
    looks: AtomicU64,
    ran: Option<Duration>,
}

impl Host for Busy {
    fn monotonic(&self) -> Duration {
        Duration::from_millis(10 * self.looks.fetch_add(1, Ordering::Relaxed))
    }

    fn processor_time(&self) -> Option<Duration> {
        let looks = self.looks.load(Ordering::Relaxed);
        self.ran.map(|ran| ran * u32::try_from(looks).unwrap_or(u32::MAX))
    }
}

#[test]
fn waiting_for_a_busy_machine_is_not_computing() {
    let limits = [("compute", "1s"), ("total", "600s")];
    let program = "(reduce + (map inc (range 200000)))";
    let on = |ran: Option<u64>| {
        let busy = Busy { looks: AtomicU64::new(0), ran: ran.map(Duration::from_micros) };
        within(&limits, program, Arc::new(busy))
    };
    let waited = on(Some(20));
    assert_eq!(waited.value.as_deref(), Some("20000100000"), "{waited:?}");
    assert!(waited.spent.total_ms > 2_000 && waited.spent.compute_ms < 1_000, "{:?}", waited.spent);
    for ran in [Some(10_000), None] {
        let limit = on(ran).failure.and_then(|failure| failure.limit);
        assert_eq!(limit.as_deref(), Some("compute"), "{ran:?}");
    }
    let late = within(&[("compute", "1s"), ("total", "2s")], program, {
        Arc::new(Busy { looks: AtomicU64::new(0), ran: Some(Duration::from_micros(20)) })
    });
    assert_eq!(late.failure.and_then(|failure| failure.limit).as_deref(), Some("total"));
}
