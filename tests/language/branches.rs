//! State that the branches of `pmap` share, and state that each branch keeps separate, while they wait for tools.

use crate::common;

use common::{Scripted, host, run, session};
use lispbox::lang::{CallId, Catalogue, Host, Request, Server, Tool, ToolCall, ToolError, ToolReply};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Condvar, Mutex};
use std::time::{Duration, Instant};

/// Evaluates a program for which `(t/echo x)` is a tool; returns its value and its output.
fn with_tool(program: &str) -> (String, String) {
    let schema = json!({"type": "object", "properties": {"x": {}}});
    let host = Scripted::new().tool("t/echo", schema, |arguments| ToolReply::Json(arguments["x"].to_string()));
    let reply = session().eval(Request::new(program), Arc::new(host));
    let failure = reply.failure.map(|failure| failure.rendered);
    (failure.or(reply.value).unwrap_or_default(), reply.prints)
}

#[test]
fn each_branch_prints_to_its_own_text() {
    let program = "(pmap (fn [i] (with-out-str (print \"a\" i) (t/echo i) (print \"b\" i))) [1 2 3])";
    assert_eq!(with_tool(program), ("(\"a 1b 1\" \"a 2b 2\" \"a 3b 3\")".to_string(), String::new()));
    let program =
        "(with-out-str (print (pmap (fn [i] (print i) (with-out-str (print i) (t/echo i) (print i))) [1 2])))";
    assert_eq!(with_tool(program), ("\"12(11 22)\"".to_string(), String::new()));
    let program =
        "[(try (pmap (fn [i] (with-out-str (print i) (t/echo i) (nth [] i))) [1 2]) (catch Exception e :failed))
                    (print :out)]";
    assert_eq!(with_tool(program), ("[:failed nil]".to_string(), ":out".to_string()));
}

#[test]
fn each_branch_reads_from_its_own_text() {
    let program = "(pmap (fn [i] (with-in-str (str \"a\" i \"\\nb\" i \"\\n\")
                                   (let [x (read-line)] (t/echo i) [x (read-line)]))) [1 2 3])";
    assert_eq!(with_tool(program).0, "([\"a1\" \"b1\"] [\"a2\" \"b2\"] [\"a3\" \"b3\"])");
    // Branches share input that was bound outside of them.
    assert_eq!(with_tool("(with-in-str \"a\\nb\" (pmap (fn [i] (t/echo i) (read-line)) [1 2]))").0, "(\"a\" \"b\")");
}

#[test]
fn each_run_of_tests_has_its_own_counts() {
    let program = "(deftest checks (t/echo 1) (is true) (t/echo 2) (is true))
                   (map (juxt :test :pass) (pmap (fn [i] (run-tests)) [1 2]))";
    assert_eq!(with_tool(program).0, "([1 2] [1 2])");
    // Checks in branches count towards the enclosing run.
    let program = "(deftest checks (doall (pmap (fn [i] (t/echo i) (is (= i i))) [1 2 3]))) (:pass (run-tests))";
    assert_eq!(with_tool(program).0, "3");
}

#[test]
fn redefinitions_of_branches_end_in_any_order() {
    let program = "(def a 0) [(pmap (fn [i] (with-redefs [a i] (t/echo i) (when (= i 1) (t/echo i)) a)) [1 2 3]) a]";
    assert_eq!(with_tool(program).0, "[(1 2 3) 0]");
    // A redefinition outside of the branches applies inside of them.
    assert_eq!(
        with_tool("(def a 0) [(with-redefs [a 5] (doall (pmap (fn [i] (t/echo i) a) [1 2]))) a]").0,
        "[(5 5) 0]"
    );
}

#[test]
fn a_branch_waits_for_what_another_realises() {
    let program = "(def n (atom 0)) (let [d (delay (swap! n inc) (t/echo 7))] [(pmap (fn [_] @d) [1 2 3]) @n])";
    assert_eq!(with_tool(program).0, "[(7 7 7) 1]");
    let program = "(let [xs (lazy-seq (cons (t/echo 1) (lazy-seq [(t/echo 2)])))] (pmap (fn [_] (vec xs)) [1 2 3]))";
    assert_eq!(with_tool(program).0, "([1 2] [1 2] [1 2])");
    let program = "(let [d2 (delay (t/echo 1)) d1 (delay (inc @d2))] [(pmap deref [d2 d1]) @d2 @d1])";
    assert_eq!(with_tool(program).0, "[(1 2) 1 2]");
    // All waiting branches observe the same failure.
    let program = "(let [d (delay (t/echo 1) (nth [] 5))] (pmap (fn [_] (try @d (catch Exception e :failed))) [1 2]))";
    assert_eq!(with_tool(program).0, "(:failed :failed)");
}

#[test]
fn branches_that_wait_for_each_other_are_told() {
    let program = "(def a (atom nil)) (def b (atom nil))
                   (reset! a (delay (t/echo 1) @@b)) (reset! b (delay (t/echo 2) @@a))
                   (pmap (fn [x] (try @@x (catch Exception e (ex-message e)))) [a b])";
    let told = "\"a lazy sequence or delay needs its own value to compute itself\"";
    assert_eq!(with_tool(program).0, format!("({told} {told})"));
    let program = "(def a (atom nil)) (reset! a (delay (pmap (fn [i] (t/echo i) @@a) [1 2]))) (try @@a (catch Exception e (ex-message e)))";
    assert_eq!(with_tool(program).0, told);
}

#[test]
fn a_delay_that_failed_in_a_form_that_is_undone_may_be_tried_again() {
    let mut session = session();
    run(&mut session, "(def a (atom 1)) (def d (delay (/ 1 @a)))");
    assert!(run(&mut session, "(do (reset! a 0) @d)").contains("zero"));
    assert_eq!(run(&mut session, "@d"), "1");
    run(&mut session, "(def e (delay (/ 1 0)))");
    let program = "(try @e (catch Exception e (ex-message e)))";
    assert_eq!(run(&mut session, program), run(&mut session, program));
    let reply = session.eval(Request::new("(realized? d)"), host());
    assert_eq!(reply.value.as_deref(), Some("true"));
}

/// Returns the largest number of concurrent tool calls while `program` runs. Calls return once `limit` of them are under
/// way, so that a host with fewer at a time ends with the panic below.
fn most_at_once(program: &str, limit: usize) -> usize {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new((Mutex::new(0), Condvar::new())));
    let seen = Arc::clone(&most);
    let host = Scripted::new().tool("t/echo", json!({"type": "object", "properties": {"x": {}}}), move |arguments| {
        let (largest, changed) = &*seen;
        let mut largest = largest.lock().expect("no call panics");
        *largest = (*largest).max(now.fetch_add(1, Ordering::SeqCst) + 1);
        changed.notify_all();
        let waited = changed.wait_timeout_while(largest, Duration::from_secs(20), |largest| *largest < limit);
        assert!(!waited.expect("no call panics").1.timed_out(), "{limit} calls are allowed and never were under way");
        now.fetch_sub(1, Ordering::SeqCst);
        ToolReply::Json(arguments["x"].to_string())
    });
    let mut request = Request::new(program);
    request.limits.set("parallel", &limit.to_string()).expect("a known limit");
    let reply = session().eval(request, Arc::new(host));
    assert!(reply.failure.is_none(), "{:?}", reply.failure);
    *most.0.lock().expect("no call panics")
}

#[test]
fn the_calls_of_parallel_are_under_way_together() {
    let together = Arc::new(Barrier::new(3));
    let host = Scripted::new().tool("t/meet", json!({"type": "object", "properties": {"x": {}}}), move |arguments| {
        together.wait();
        ToolReply::Json(arguments["x"].to_string())
    });
    let program = "(parallel {:mail (t/meet 1) :today (inc (t/meet 2)) :files [(t/meet 3)]})";
    let reply = session().eval(Request::new(program), Arc::new(host));
    assert_eq!(reply.value.as_deref(), Some("{:mail 1, :today 3, :files [3]}"));
}

#[test]
fn no_more_calls_are_under_way_than_are_allowed() {
    let calls: String = (0..40).map(|n| format!("(t/echo {n}) ")).collect();
    assert_eq!(most_at_once(&format!("(pcalls {calls})"), 4), 4);
    assert_eq!(most_at_once(&format!("(count (parallel [{calls}]))"), 32), 32);
}

/// A host whose tool `t/wait` answers when its call is cancelled, or after a long time; `t/fail` fails.
#[derive(Default)]
struct Patient {
    scripted: Option<Scripted>,
    given_up: Mutex<Vec<CallId>>,
    changed: Condvar,
}

impl Patient {
    fn new() -> Arc<Patient> {
        let error = |_: &serde_json::Value| ToolReply::Error(failure());
        let scripted = Scripted::new()
            .tool("t/fail", json!({"type": "object"}), error)
            .tool("t/wait", json!({"type": "object"}), |_| ToolReply::Json("0".into()))
            .tool("t/one", json!({"type": "object"}), |_| ToolReply::Json("1".into()));
        Arc::new(Patient { scripted: Some(scripted), ..Patient::default() })
    }

    fn scripted(&self) -> &Scripted {
        self.scripted.as_ref().expect("set above")
    }
}

fn failure() -> ToolError {
    ToolError::failed("no such mailbox")
}

impl Host for Patient {
    fn servers(&self) -> Vec<Server> {
        self.scripted().servers()
    }

    fn tools(&self, server: &str) -> Result<Vec<Arc<Tool>>, ToolError> {
        self.scripted().tools(server)
    }

    fn catalogue(&self) -> Catalogue {
        self.scripted().catalogue()
    }

    fn call(&self, call: ToolCall) -> ToolReply {
        if &*call.tool != "wait" {
            return self.scripted().call(call);
        }
        let given_up = self.given_up.lock().expect("not poisoned");
        let waiting = |given_up: &mut Vec<CallId>| !given_up.contains(&call.id);
        let waited = self.changed.wait_timeout_while(given_up, Duration::from_secs(60), waiting);
        if waited.expect("not poisoned").1.timed_out() {
            ToolReply::Text("too late".into())
        } else {
            ToolReply::Stopped
        }
    }

    fn give_up(&self, call: &CallId) {
        self.given_up.lock().expect("not poisoned").push(call.clone());
        self.changed.notify_all();
    }

    fn now_millis(&self) -> i64 {
        0
    }

    fn random(&self) -> u64 {
        4
    }

    fn monotonic(&self) -> Duration {
        self.scripted().monotonic()
    }
}

#[test]
fn the_first_error_that_is_not_caught_ends_the_other_branches() {
    let host = Patient::new();
    let begun = Instant::now();
    let program = "(def n (atom 0))
                   (def d (delay (t/one)))
                   [(try (parallel {:a (t/one)
                                    :b (inc (t/fail))
                                    :c (do (t/wait) (swap! n inc))
                                    :d (with-out-str (print 1) (t/wait) (swap! n inc))
                                    :e (try (t/wait) (catch Exception e (swap! n inc)) (finally (swap! n inc)))
                                    :f (do @d (t/wait) (swap! n inc))})
                         (catch Exception e (ex-message e)))
                    @n @d (t/one)]";
    let reply = session().eval(Request::new(program), host.clone());
    let value = reply.failure.map(|failure| failure.rendered).or(reply.value).unwrap_or_default();
    assert_eq!(value, "[\"no such mailbox\" 0 1 1]");
    assert!(begun.elapsed() < Duration::from_secs(30), "nothing was waited for to its end");
    assert_eq!(host.given_up.lock().expect("not poisoned").len(), 4);
    let stopped = reply.calls.iter().filter(|call| call.outcome == "stopped").count();
    assert_eq!(stopped, 4, "{:?}", reply.calls);
}

#[test]
fn branches_that_never_began_stay_so() {
    let host = Patient::new();
    let mut request =
        Request::new("(try (pmap (fn [n] (if (= n 1) (t/fail) (t/one))) (range 100)) (catch Exception e :failed))");
    request.limits.set("parallel", "2").expect("a known limit");
    let reply = session().eval(request, host);
    assert_eq!((reply.value.as_deref(), reply.calls.len() < 5), (Some(":failed"), true));
}
