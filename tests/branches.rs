//! What the branches of `pmap` share and what each has for itself, while they wait for tools.

mod common;

use common::{Scripted, host, run, session};
use lispbox::lang::{Request, ToolReply};
use serde_json::json;
use std::sync::Arc;

/// The value of a program in which `(t/echo x)` is a tool, and what it printed.
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
    // What stands around the branches is theirs together.
    assert_eq!(with_tool("(with-in-str \"a\\nb\" (pmap (fn [i] (t/echo i) (read-line)) [1 2]))").0, "(\"a\" \"b\")");
}

#[test]
fn each_run_of_tests_has_its_own_counts() {
    let program = "(deftest checks (t/echo 1) (is true) (t/echo 2) (is true))
                   (map (juxt :test :pass) (pmap (fn [i] (run-tests)) [1 2]))";
    assert_eq!(with_tool(program).0, "([1 2] [1 2])");
    // Checks in branches belong to the run around them.
    let program = "(deftest checks (doall (pmap (fn [i] (t/echo i) (is (= i i))) [1 2 3]))) (:pass (run-tests))";
    assert_eq!(with_tool(program).0, "3");
}

#[test]
fn redefinitions_of_branches_end_in_any_order() {
    let program = "(def a 0) [(pmap (fn [i] (with-redefs [a i] (t/echo i) (when (= i 1) (t/echo i)) a)) [1 2 3]) a]";
    assert_eq!(with_tool(program).0, "[(1 2 3) 0]");
    // Around the branches it holds in them.
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
    // A failure is the same for all who wait.
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
