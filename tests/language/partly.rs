//! Partial reads: where only a part of a sequence is read, functions are called for that part alone.

use crate::common;

use std::sync::Arc;

use common::{Scripted, session};
use lispbox::lang::{Request, ToolReply};
use serde_json::json;

/// A tool that returns its argument as the identifier of a record, and another one that fails from 5 on.
fn host() -> Scripted {
    let schema = || json!({"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]});
    Scripted::new()
        .tool("t/get", schema(), |arguments| {
            ToolReply::Json(json!({"id": arguments["id"], "tags": ["a", "b"]}).to_string())
        })
        .tool("t/frail", schema(), |arguments| match arguments["id"].as_u64() {
            Some(id) if id >= 5 => ToolReply::Error(lispbox::lang::ToolError::failed("no such record")),
            _ => ToolReply::Json(arguments.to_string()),
        })
}

/// Checks the value of a program and the identifiers for which it called a tool.
fn check(program: &str, value: &str, calls: impl IntoIterator<Item = u64>) {
    let host = Arc::new(host());
    let reply = session().eval(Request::new(program), host.clone());
    assert_eq!(reply.value.as_deref(), Some(value), "{program}: {:?}", reply.failure);
    let made = host.calls.lock().expect("not poisoned");
    let made: Vec<serde_json::Value> = made
        .iter()
        .map(|call| serde_json::from_str::<serde_json::Value>(&call.arguments).expect("JSON")["id"].clone())
        .collect();
    let expected: Vec<serde_json::Value> = calls.into_iter().map(|id| json!(id)).collect();
    assert_eq!(made, expected, "{program}");
}

#[test]
fn a_tool_is_called_for_the_items_that_are_read() {
    for source in [
        "(vec (range 100))",
        "(range 100)",
        "(list* (range 100))",
        "(sorted-set 0 1 2 3 4 5 6 7)",
        "(map identity (range 100))",
    ] {
        let with = |program: &str| program.replace("xs", source);
        check(&with("(map :id (take 3 (map t/get xs)))"), "(0 1 2)", 0..3);
        check(&with("(->> xs (map #(t/get {:id %})) (map :id) (take 3))"), "(0 1 2)", 0..3);
        check(&with("(:id (first (map t/get xs)))"), "0", 0..1);
        check(&with("(:id (second (map t/get xs)))"), "1", 0..2);
        check(&with("(:id (nth (map t/get xs) 3))"), "3", 0..4);
        check(&with("(:id (first (drop 2 (map t/get xs))))"), "2", 0..3);
        check(&with("(some #(when (= 3 (:id %)) :found) (map t/get xs))"), ":found", 0..4);
        check(&with("(every? #(< (:id %) 2) (map t/get xs))"), "false", 0..3);
        check(&with("(not-any? #(= 1 (:id %)) (map t/get xs))"), "false", 0..2);
        check(&with("(empty? (filter #(:id (t/get {:id %})) xs))"), "false", 0..1);
        check(&with("(first (filter #(< 2 (:id (t/get {:id %}))) xs))"), "3", 0..4);
        check(&with("(first (remove #(> 2 (:id (t/get {:id %}))) xs))"), "2", 0..3);
        check(&with("(first (keep #(when (< 2 %) (:id (t/get {:id %}))) xs))"), "3", 3..4);
        check(&with("(take 3 (mapcat #(:tags (t/get {:id %})) xs))"), "(\"a\" \"b\" \"a\")", 0..2);
        check(&with("(first (map-indexed (fn [i x] [i (:id (t/get {:id x}))]) xs))"), "[0 0]", 0..1);
        check(&with("(take-while #(< % 2) (map #(:id (t/get {:id %})) xs))"), "(0 1)", 0..3);
        check(&with("(first (for [x xs :when (odd? x)] (:id (t/get {:id x}))))"), "1", 1..2);
        check(&with("(take 2 (for [x xs y [1 2]] (+ y (:id (t/get {:id (+ x y)})))))"), "(2 4)", 1..3);
        check(&with("(first (take 5 (map (comp :id t/get) xs)))"), "0", 0..1);
        check(&with("(count (take 3 (distinct (map (comp :id t/get) xs))))"), "3", 0..3);
        check(&with("(do (defn one [x] (t/get {:id x})) (map :id (take 2 (map one xs))))"), "(0 1)", 0..2);
        check(&with("(let [one t/get] (map :id (take 2 (map one xs))))"), "(0 1)", 0..2);
        check(&with("(map :id (take 2 (map (partial t/get :id) xs)))"), "(0 1)", 0..2);
        // The other order of the arguments.
        check(&with("(map :id (take (map t/get xs) 2))"), "(0 1)", 0..2);
    }
    check("(map :id (take 2 (map (fn [a b] (t/get {:id (+ a b)})) [1 2 3 4] (range 9))))", "(1 3)", [1, 3]);
    check("(map :id (take 1 (map (fn [[k v]] (t/get {:id v})) {:a 1 :b 2})))", "(1)", [1]);
    check("(into [] (comp (map t/get) (map :id) (take 2)) (range 9))", "[0 1]", 0..2);
    check("(sequence (comp (map t/get) (map :id) (take 2)) (range 9))", "(0 1)", 0..2);
}

#[test]
fn a_part_is_computed_where_it_is_asked_for() {
    // The effects keep the order of the program, and errors are caught where they happen.
    check("(let [a (take 2 (map t/get [1 2 3])) b (t/get {:id 9})] (count a))", "2", [1, 2, 9]);
    check("(do (take 2 (map t/get [1 2 3])) (t/get {:id 9}) nil)", "nil", [1, 2, 9]);
    check("(try (take 3 (map t/frail [4 5 6])) (catch Exception e :failed))", ":failed", [4, 5]);
    check(
        "(def ^:dynamic *x* 1) (binding [*x* 2] (take 2 (map #(:id (t/get {:id (+ *x* %)})) [1 2 3])))",
        "(3 4)",
        [3, 4],
    );
    check("(with-out-str (take 1 (map #(do (print %) (t/get {:id %})) [1 2 3])))", "\"1\"", [1]);
    // A whole read is eager, in order.
    check("(let [all (map t/get [1 2 3]) b (t/get {:id 9})] (count all))", "3", [1, 2, 3, 9]);
    check("(do (map t/get [1 2 3]) nil)", "nil", [1, 2, 3]);
    // Infinite sequences stay lazy.
    check("(let [a (take 2 (map t/get (iterate inc 1)))] (t/get {:id 9}) (map :id a))", "(1 2)", [9, 1, 2]);
}

#[test]
fn prints_and_changes_are_those_of_the_part() {
    for (program, prints) in [
        ("(take 2 (map #(do (println %) %) [1 2 3 4]))", "1\n2\n"),
        ("(first (filter #(do (println %) (even? %)) [1 2 3 4]))", "1\n2\n"),
        ("(let [n (atom 0)] (first (map (fn [x] (swap! n inc) x) [1 2 3])) (println @n))", "1\n"),
    ] {
        assert_eq!(common::eval(program).prints, prints, "{program}");
    }
}

#[test]
fn all_branches_of_a_parallel_map_are_taken() {
    let host = Arc::new(host());
    let reply = session().eval(Request::new("(count (take 2 (pmap t/get [1 2 3])))"), host.clone());
    assert_eq!((reply.value.as_deref(), reply.calls.len()), (Some("2"), 3));
    // They are made side by side, in no order.
    assert_eq!(host.calls.lock().expect("not poisoned").len(), 3);
}

#[test]
fn a_plan_counts_the_items_of_the_source() {
    let tools = || {
        let mut tools = lispbox::lang::Tools::new();
        tools.tool("t/get", |_: lispbox::lang::NoArguments, _: &lispbox::lang::Call| Ok(1));
        lispbox::lang::World::new(tools)
    };
    for (program, most) in [
        ("(take 2 (map (fn [x] (t/get)) [1 2 3]))", Some(3)),
        ("(first (filter (fn [x] (t/get)) (range 4)))", Some(4)),
        ("(some (fn [x] (t/get)) [1 2])", Some(2)),
        ("(all-pages t/get)", None),
        ("(count (all-pages t/get {:a 1}))", None),
    ] {
        let plan = session().run(program).plan(&tools()).expect("a plan");
        assert_eq!(plan.unknown, Vec::new(), "{program}");
        assert_eq!(plan.calls.iter().map(|call| call.most).collect::<Vec<_>>(), [most], "{program}");
    }
}
