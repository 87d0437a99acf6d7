//! Vars whose effects span several programs: rolled-back forms, snapshots, branches, memory.

use crate::common;

use common::{Scripted, host, moved, run, session};
use lispbox::lang::{Request, Session, ToolReply};
use serde_json::json;
use std::sync::Arc;

#[test]
fn a_form_that_fails_leaves_definitions_and_their_metadata_as_they_were() {
    let mut session = session();
    run(&mut session, "(def ^{:unit :eur} x \"Price.\" 1) (def ^:dynamic *d* 1) (declare later)");
    let failing = [
        "(do (alter-var-root #'x inc) (nth [] 3))",
        "(do (alter-meta! #'x assoc :unit :usd) (nth [] 3))",
        "(do (reset-meta! #'x {:doc \"other\"}) (nth [] 3))",
        "(do (intern 'user 'x 5) (nth [] 3))",
        "(do (def later 5) (nth [] 3))",
        "(binding [*d* 5] (set! *d* 6) (nth [] 3))",
        "(binding [*d* 5] (def *d* 7) (nth [] 3))",
        "(with-redefs [x 5] (nth [] 3))",
        "(do (def once 1) (nth [] 3))",
    ];
    for program in failing {
        assert!(run(&mut session, program).contains("IndexOutOfBounds"), "{program}");
        let now = "[x (meta #'x) *d* (bound? #'later) (resolve 'once)]";
        assert_eq!(run(&mut session, now), "[1 {:unit :eur, :doc \"Price.\", :name x} 1 false nil]", "after {program}");
    }
    let mut request = Request::new("(binding [*d* 5] (with-redefs [x 6] (loop [] (recur))))");
    request.limits.set("fuel", "1e5").expect("a known limit");
    assert!(session.eval(request, host()).failure.is_some());
    assert_eq!(run(&mut session, "[x *d*]"), "[1 1]");
}

#[test]
fn a_var_outlives_what_it_refers_to() {
    let mut session = session();
    run(&mut session, "(def kept (atom nil))");
    run(&mut session, "(reset! kept #'kept)");
    assert_eq!(run(&mut session, "@kept"), "#'kept");
    run(&mut session, "(def x 1) (def v #'x)");
    assert!(run(&mut session, "(do (def y 2) (reset! kept #'y) (nth [] 3))").contains("IndexOutOfBounds"));
    assert_eq!(run(&mut session, "[@kept v @v]"), "[#'kept #'x 1]");
}

#[test]
fn what_changes_is_reported_as_defined() {
    let mut session = session();
    let reply = session.eval(Request::new("(def x 1)"), host());
    assert_eq!((reply.value.as_deref(), &reply.defined[..]), (Some("#'x"), &["x".to_string()][..]));
    assert_eq!(session.eval(Request::new("(alter-var-root #'x inc)"), host()).defined, ["x"]);
    assert_eq!(session.eval(Request::new("(alter-meta! #'x assoc :a 1)"), host()).defined, ["x"]);
    assert!(session.eval(Request::new("(with-redefs [x 5] x)"), host()).defined.is_empty());
    assert!(session.eval(Request::new("(binding [x 5] (set! x 6))"), host()).defined.is_empty());
    assert!(session.eval(Request::new("(defonce x 5)"), host()).defined.is_empty());
}

#[test]
fn vars_and_metadata_survive_a_snapshot() {
    let mut session = session();
    let program = "
        (def ^{:unit :eur :check (fn [n] (> n 0)) :of #'price} price \"What it costs.\" 5)
        (defn ^:public total \"The sum.\" [xs] (reduce #'+ 0 xs))
        (defmacro with-form [x] (list 'quote [&form x]))
        (declare later)
        (defn use-later [] (later))
        (def vars [#'price #'inc #'str/join #'when #'later])
        (defn call-var [f x] (#'f x))
        (def f (fn [x] (* 2 x)))
        (def ^:dynamic *x* 1)
        (def bound (binding [*x* 2] (bound-fn [] *x*)))
        (defn fact [n] (if (zero? n) 1 (* n (fact (dec n)))))
        (def local (with-local-vars [n 7] n))";
    run(&mut session, program);
    let mut other = moved(&mut session);
    let probes = [
        ("(dissoc (meta #'price) :check)", "{:unit :eur, :of #'price, :doc \"What it costs.\", :name price}"),
        ("((:check (meta #'price)) 3)", "true"),
        ("(meta #'total)", "{:public true, :arglists ([xs]), :doc \"The sum.\", :name total}"),
        ("(total [1 2])", "3"),
        ("(with-form 5)", "[(with-form 5) 5]"),
        ("(mapv bound? vars)", "[true true true true false]"),
        ("vars", "[#'price #'inc #'str/join #'when #'later]"),
        ("(call-var nil 4)", "8"),
        ("(def f (fn [x] [:new x])) (call-var nil 4)", "[:new 4]"),
        ("(bound)", "2"),
        ("@local", "7"),
        ("(defn later [] :now) (use-later)", ":now"),
        ("(fact 5)", "120"),
        (
            "(def old fact) (defn fact [n] [:new n]) (str (try (old 2) (catch Exception e :uses-the-new)))",
            "\":uses-the-new\"",
        ),
    ];
    for (program, expected) in probes {
        assert_eq!(run(&mut session, program), expected, "{program}");
        assert_eq!(run(&mut other, program), expected, "{program}, after the snapshot");
    }
}

#[test]
fn each_branch_has_its_own_bindings() {
    let host = || {
        Arc::new(Scripted::new().tool("t/echo", json!({"type": "object", "properties": {"x": {}}}), |arguments| {
            ToolReply::Json(arguments["x"].to_string())
        }))
    };
    let program = "
        (def ^:dynamic *x* :outside)
        (defn look [] *x*)
        (def seen
          (binding [*x* :around]
            (pmap (fn [n]
                    (let [before (look)]
                      (binding [*x* n] (t/echo n) [before (look) (do (set! *x* [n]) (t/echo n) (look))])))
                  [1 2 3])))
        [seen (look)]";
    let reply = session().eval(Request::new(program), host());
    assert_eq!(
        reply.value.as_deref(),
        Some("[([:around 1 [1]] [:around 2 [2]] [:around 3 [3]]) :outside]"),
        "{reply:?}"
    );
    // A branch that fails while others wait leaves all bindings unchanged.
    let program = "
        (def ^:dynamic *x* :outside)
        (try (binding [*x* :around]
               (pmap (fn [n] (binding [*x* n] (t/echo n) (if (= n 2) (nth [] 5) *x*))) (range 8)))
             (catch Exception e *x*))";
    let reply = session().eval(Request::new(program), host());
    assert_eq!(reply.value.as_deref(), Some(":outside"), "{reply:?}");
}

#[test]
fn bindings_and_redefinitions_hold_no_memory() {
    let mut session = session();
    run(&mut session, "(def ^:dynamic *x* nil) (def y nil)");
    let before = session.live_bytes();
    let program = "(dotimes [i 20000]
        (binding [*x* (vec (range 40))] (set! *x* [*x*]) (with-redefs [y *x*] (count y)))
        (with-local-vars [v i] @v))";
    let mut request = Request::new(program);
    for (limit, amount) in [("memory", "16MiB"), ("compute", "30s")] {
        request.limits.set(limit, amount).expect("a known limit");
    }
    let reply = session.eval(request, host());
    assert!(reply.failure.is_none(), "{reply:?}");
    run(&mut session, "1");
    let after = session.live_bytes();
    assert!(after < before + 64_000, "{before} bytes before, {after} after");
}

#[test]
fn fuel_does_not_depend_on_how_often_a_program_ran() {
    let program = "(def ^{:a 1} x 1) (defn f [n] (if (zero? n) @#'x (f (dec n)))) (binding [x 2] (#'f 10))";
    let spent = |session: &mut Session| session.eval(Request::new(program), host()).spent.fuel;
    let mut session = session();
    assert_eq!(spent(&mut session), spent(&mut common::session()));
    assert_eq!(spent(&mut session), spent(&mut moved(&mut session)));
}
