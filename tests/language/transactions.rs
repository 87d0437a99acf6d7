//! A top-level form takes effect completely or not at all, whatever kinds of state it changes. Work that is deferred
//! until its value is printed belongs to it.

use crate::common;

use common::{Scripted, host, moved, run, session, state};
use lispbox::lang::{Reply, Request, Session, Status, ToolReply};
use serde_json::json;
use std::sync::Arc;

fn evaluate(session: &mut Session, program: &str, limits: &[(&str, &str)]) -> Reply {
    let mut request = Request::new(program);
    for (name, value) in limits {
        request.limits.set(name, value).expect("a known limit");
    }
    session.eval(request, host())
}

/// Definitions, a change of their state, a question, and the answer if the change has been rolled back.
const CHANGES: &[[&str; 4]] = &[
    ["(def d (delay (atom 0)))", "(swap! @d inc)", "[(realized? d) @@d]", "[false 0]"],
    ["(def d (delay (throw (ex-info \"no\" {}))))", "(try @d (catch Exception e nil))", "(realized? d)", "false"],
    [
        "(def n (atom 0)) (def xs (map (fn [x] (swap! n inc) x) (iterate inc 0)))",
        "(doall (take 3 xs))",
        "[@n (doall (take 2 xs)) @n]",
        "[0 (0 1) 2]",
    ],
    [
        "(def n (atom 0)) (def xs (lazy-seq (swap! n inc) (cons 1 (lazy-seq (swap! n inc) nil))))",
        "(count xs)",
        "[@n (first xs) @n]",
        "[0 1 1]",
    ],
    [
        "(def calls (atom 0)) (def f (memoize (fn [x] (swap! calls inc) x)))",
        "[(f 1) (f 2)]",
        "[(f 1) (f 1) @calls]",
        "[1 1 1]",
    ],
    ["(def v (volatile! [1]))", "(vswap! v conj 2)", "@v", "[1]"],
    ["(def t (transient [1]))", "(conj! t 2)", "(persistent! t)", "[1]"],
    ["(def t (transient {:a 1}))", "(persistent! t)", "(:a t)", "1"],
    ["(def m (re-matcher #\"[a-z]\" \"abc\"))", "[(re-find m) (re-find m)]", "(re-find m)", "\"a\""],
    ["(def r ((partition-all 2) conj))", "(r [] 1)", "[(r [] 1) (r [] 2)]", "[[] [[1 2]]]"],
    ["(def r ((distinct) conj))", "(r [] 1)", "(r [] 1)", "[1]"],
    [
        "(def xs (sequence (comp (map inc) (partition-all 2)) (iterate inc 0)))",
        "(doall (take 3 xs))",
        "(take 2 xs)",
        "([1 2] [3 4])",
    ],
    ["(defmulti kind :k) (defmethod kind :default [_] :none)", "(defmethod kind :a [_] :a)", "(kind {:k :a})", ":none"],
    ["(defmulti kind :k) (defmethod kind :a [_] :a)", "(remove-method kind :a)", "(kind {:k :a})", ":a"],
    ["(derive :b :c)", "(derive :a :b)", "[(isa? :a :b) (isa? :b :c)]", "[false true]"],
    [
        "(defprotocol Sized (size [x])) (extend-protocol Sized String (size [s] (count s)))",
        "(extend-protocol Sized Long (size [n] n))",
        "[(satisfies? Sized 1) (size \"ab\")]",
        "[false 2]",
    ],
    ["(def x 1)", "(alter-meta! #'x assoc :n 1)", "(:n (meta #'x))", "nil"],
    ["(def x 1)", "(alter-var-root #'x inc)", "x", "1"],
    ["(def x 1)", "(session/forget 'x)", "x", "1"],
    ["(def a (atom 1))", "(add-watch a :w (fn [_ _ _ _] nil))", "(reset! a 2)", "2"],
    ["(def ^:dynamic *b* 1) (def a (atom nil))", "(binding [*b* 2] (reset! a (delay *b*)) @@a)", "[*b* @a]", "[1 nil]"],
    ["(def x 1)", "(require '[clojure.string :as s])", "(try (s/upper-case \"a\") (catch Exception e :none))", ""],
];

#[test]
fn a_form_that_fails_undoes_every_kind_of_change() {
    for [definitions, change, question, answer] in CHANGES {
        for (ending, limits) in
            [("(throw (ex-info \"undone\" {}))", &[][..]), ("(loop [] (recur))", &[("fuel", "100000")][..])]
        {
            let mut session = session();
            run(&mut session, definitions);
            let mut session = if ending.starts_with("(loop") { moved(&mut session) } else { session };
            let before = state(&mut session);
            let reply = evaluate(&mut session, &format!("(do {change} {ending})"), limits);
            assert!(reply.failure.is_some(), "{change}");
            assert_eq!(state(&mut session), before, "{change}");
            if !answer.is_empty() {
                assert_eq!(&run(&mut session, question), answer, "{definitions} {change}");
            } else {
                assert!(run(&mut session, question).starts_with("UnboundVariable"), "{change}");
            }
        }
    }
}

#[test]
fn what_is_computed_while_a_value_is_shown_is_kept_with_its_form() {
    let mut session = session();
    run(&mut session, "(def seen (atom [])) (defn look [x] (swap! seen conj x) (def latest x) x)");
    run(&mut session, "(def d (delay (look :d))) (def xs (map look (iterate inc 0)))");
    // The contents of a vector are not evaluated before it is printed.
    assert_eq!(run(&mut session, "[(take 3 xs)]"), "[(0 1 2)]");
    assert_eq!(
        run(&mut session, "[(atom (map look (iterate inc 7)))] (/ 1 0)").lines().next(),
        Some("ArithmeticError: divide by zero")
    );
    assert_eq!(run(&mut session, "[latest @seen]"), "[2 [0 1 2]]");
    assert_eq!(run(&mut moved(&mut session), "[latest @seen (realized? d)]"), "[2 [0 1 2] false]");
}

#[test]
fn a_value_that_cannot_be_shown_undoes_its_form() {
    let mut session = session();
    run(&mut session, "(def a (atom 0)) :before");
    for (shown, limits, error) in [
        ("[(map (fn [x] (swap! a inc) (/ 1 x)) (iterate dec 3))]", &[][..], "ArithmeticError"),
        ("[(filter (fn [x] (swap! a inc) (neg? x)) (iterate inc 0))]", &[("fuel", "50000")][..], "LimitExceeded"),
        (
            "[(map (fn [x] (swap! a inc) (vec (range 100000))) (iterate inc 0))]",
            &[("memory", "20MiB"), ("output", "1GiB")][..],
            "LimitExceeded",
        ),
    ] {
        let before = state(&mut session);
        let reply =
            evaluate(&mut session, &format!("(def first-form 1) (do (reset! a 5) (def kept 1) {shown})"), limits);
        assert_eq!(reply.failure.as_ref().map(|failure| failure.error.as_str()), Some(error), "{shown}");
        assert_eq!(reply.value, None, "{shown}");
        assert_eq!(reply.defined, ["first-form"], "{shown}");
        assert_eq!(run(&mut session, "(do (session/forget 'first-form) [@a *1])"), "[0 :before]", "{shown}");
        run(&mut session, ":before");
        assert_eq!(state(&mut session), before, "{shown}");
    }
}

/// Creates a host whose tool `pages/page` returns its numeric argument, and which records its calls.
fn pages() -> Arc<Scripted> {
    let schema = json!({"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]});
    Arc::new(
        Scripted::new().tool("pages/page", schema, |arguments| {
            ToolReply::Json(json!({"number": arguments["number"]}).to_string())
        }),
    )
}

/// Returns the value of the program, and the number of its tool calls.
fn called(session: &mut Session, host: &Arc<Scripted>, program: &str) -> (String, usize) {
    let before = host.calls.lock().expect("not poisoned").len();
    let reply = session.eval(Request::new(program), host.clone());
    assert_eq!(reply.status, Status::Ok, "{program}: {:?}", reply.failure);
    (reply.value.unwrap_or_default(), host.calls.lock().expect("not poisoned").len() - before)
}

#[test]
fn a_sequence_over_a_tool_makes_the_calls_that_were_asked_for() {
    let host = pages();
    let mut session = session();
    for (program, value, calls) in [
        ("(def pages (map pages/page (iterate inc 1)))", "#'pages", 0),
        ("(defn fetch [n] (:number (pages/page n)))", "#'fetch", 0),
        ("(def numbers (->> (range) (map fetch) (filter odd?)))", "#'numbers", 0),
        ("(defonce rest-of-it (lazy-seq (cons (fetch 50) (map fetch (iterate inc 51)))))", "#'rest-of-it", 0),
        ("(map :number (take 3 pages))", "(1 2 3)", 3),
        ("(:number (first pages))", "1", 0),
        ("(map :number (take 4 pages))", "(1 2 3 4)", 1),
        ("(take 2 numbers)", "(1 3)", 4),
        ("(first rest-of-it)", "50", 1),
        ("(second rest-of-it)", "51", 1),
        ("(def some-pages (take 2 (map fetch (iterate inc 10)))) (vec some-pages)", "[10 11]", 2),
        ("(map fetch (iterate inc 20)) :done", ":done", 1),
        ("(def held (atom nil)) (reset! held (map fetch (iterate inc 30))) (take 3 @held)", "(30 31 32)", 3),
        ("(take 3 (try (map fetch (iterate inc 40)) (catch Exception e [])))", "(40 41 42)", 3),
        ("(take 2 (map fetch [1 2 3]))", "(1 2)", 2),
    ] {
        assert_eq!(called(&mut session, &host, program), (value.to_string(), calls), "{program}");
    }
}

#[test]
fn a_look_at_the_session_makes_no_calls() {
    let host = pages();
    let mut session = session();
    called(&mut session, &host, "(def pages (map (comp :number pages/page) (iterate inc 1))) (take 2 pages)");
    let known = session.describe(None, host.clone());
    assert!(known.contains("  pages  lazy sequence: (1 2 …)"), "{known}");
    assert!(session.definitions(host.clone()).iter().any(|word| word.summary == "lazy sequence: (1 2 …)"));
    let mut request = Request::new("(source pages)");
    request.limits.set("fuel", "1e5").expect("a known limit");
    assert_eq!(session.eval(request, host.clone()).prints, "(def pages (1 2 …))\n");
    assert_eq!(host.calls.lock().expect("not poisoned").len(), 2);
}

#[test]
fn a_sequence_over_a_tool_goes_on_where_it_was_after_a_move() {
    let host = pages();
    let mut session = session();
    called(
        &mut session,
        &host,
        "(def scale 10) (def pages (map (fn [n] (* scale (:number (pages/page n)))) (iterate inc 1)))",
    );
    let mut unasked = moved(&mut session);
    assert_eq!(called(&mut unasked, &host, "(take 2 pages)"), ("(10 20)".to_string(), 2));
    called(&mut session, &host, "(take 2 pages)");
    let mut asked = moved(&mut session);
    for session in [&mut session, &mut asked] {
        assert_eq!(called(session, &host, "(take 2 pages)"), ("(10 20)".to_string(), 0));
        assert_eq!(called(session, &host, "(take 4 pages)"), ("(10 20 30 40)".to_string(), 2));
    }
    // The calls are the same, with the same identities.
    let calls = host.calls.lock().expect("not poisoned");
    let of = |at: usize| (&calls[at].id, &calls[at].arguments);
    assert_eq!((of(4), of(5)), (of(6), of(7)));
}
