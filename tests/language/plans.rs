//! Plans: the tools that a program can call, with bounds that no run exceeds.

use crate::common;

use common::{Scripted, engine};
use lispbox::lang::{
    Call, Decision, ErrorCode, Host, Keep, Logged, NoArguments, Outcome, Plan, Recorder, Request, RunLog, Session,
    ToolReply, Tools, Value, World,
};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Tools whose results depend on their arguments; `t/c` fails for some.
fn tools() -> Arc<Scripted> {
    let schema = || json!({"type": "object", "properties": {"n": {}}});
    let list = |_: &serde_json::Value| ToolReply::Json("[1, 2, 3, 4]".to_owned());
    let fail = |arguments: &serde_json::Value| match arguments["n"].as_i64() {
        Some(number) if number % 2 == 1 => ToolReply::Error(lispbox::lang::ToolError::failed("odd")),
        _ => ToolReply::Json("2".to_owned()),
    };
    let scripted =
        Scripted::new().tool("t/a", schema(), list).tool("t/b", schema(), |_| ToolReply::Json("1".to_owned()));
    Arc::new(scripted.tool("t/c", schema(), fail))
}

fn plan_in(session: &mut Session, program: &str, inputs: &[&str]) -> Plan {
    let inputs: Vec<String> = inputs.iter().map(|input| (*input).to_owned()).collect();
    let planned = session.plan(&Request::new(program), &inputs, tools());
    planned.unwrap_or_else(|failure| panic!("{program}: {}", failure.rendered))
}

/// The plan of a program in a new session, as text: `a 3, b any; resolve 1:2`.
fn plan(program: &str) -> String {
    shown(&plan_in(&mut engine().session(), program, &["data"]))
}

fn shown(plan: &Plan) -> String {
    let call = |call: &lispbox::lang::PlannedCall| match call.most {
        Some(most) => format!("{} {most}", call.tool),
        None => format!("{} any", call.tool),
    };
    let calls: Vec<String> = plan.calls.iter().map(call).collect();
    let unknown = plan.unknown.iter().map(|one| format!("; {} {}:{}", one.reason, one.line, one.column));
    calls.join(", ") + &unknown.collect::<String>()
}

#[test]
fn calls_are_counted_where_their_number_is_evident() {
    for (program, expected) in [
        ("(+ 1 2)", ""),
        ("(t/a)", "a 1"),
        ("(t/a) (t/a) (t/b)", "a 2, b 1"),
        ("(do (t/a) [(t/b) {:x (t/b)}])", "a 1, b 2"),
        // The most of the branches.
        ("(if (t/a) (do (t/b) (t/b)) (t/b))", "a 1, b 2"),
        ("(if data (t/a) (t/b))", "a 1, b 1"),
        ("(cond (= data 1) (t/a) (= data 2) (do (t/a) (t/a)) :else (t/b))", "a 2, b 1"),
        ("(case data 1 (t/a) 2 (t/a) (t/b))", "a 1, b 1"),
        ("(when-let [x (t/a)] (t/b :n x))", "a 1, b 1"),
        ("(and (t/a) (t/b) (or (t/a) (t/b)))", "a 2, b 2"),
        ("(try (t/a) (catch Exception e (t/b)) (finally (t/c)))", "a 1, b 1, c 1"),
        ("(-> (t/a) first t/b)", "a 1, b 1"),
        // Loops over a known number of items.
        ("(doseq [x [1 2 3]] (t/a :n x))", "a 3"),
        ("(doseq [x (range 4) y [1 2]] (t/a :n x))", "a 8"),
        ("(doseq [x (range 4) :when (odd? x)] (t/a :n x))", "a 4"),
        ("(dotimes [i 5] (t/a))", "a 5"),
        ("(for [x [1 2] y [1 2 3] :while (< y 3)] (t/a))", "a 6"),
        ("(mapv t/a [1 2 3])", "a 3"),
        ("(map (fn [x] (t/a :n x)) (range 2 8 2))", "a 3"),
        ("(map [1 2 3] t/a)", "a 3"),
        ("(pmap t/a (map inc [1 2 3]))", "a 3"),
        ("(run! t/a #{1 2})", "a 2"),
        ("(filter t/a '(1 2 3))", "a 3"),
        ("(reduce (fn [sum x] (+ sum (t/b :n x))) 0 [1 2 3])", "b 3"),
        ("(mapcat (fn [x] (t/a) [x x]) [1 2])", "a 2"),
        ("(doseq [x (take 2 (t/a))] (t/b :n x))", "a 1, b 2"),
        ("(doseq [x (take 2 (sort-by - (filter odd? (t/a))))] (t/b :n x))", "a 1, b 2"),
        ("(map t/b (take 3 (t/a)))", "a 1, b 3"),
        ("(parallel {:x (t/a) :y (t/b)})", "a 1, b 1"),
        ("(pcalls (t/a) (t/b))", "a 1, b 1"),
        ("(apply t/a [1])", "a 1"),
        ("(with-out-str (t/a))", "a 1"),
        ("(doseq [k (keys {:x 1 :y 2})] (t/a))", "a 2"),
        // Functions.
        ("(defn f [] (t/a)) (f) (f)", "a 2"),
        ("(defn f [] (t/a))", ""),
        ("(defn f ([] (f 1)) ([x] (t/a :n x))) (f 1)", "a 1"),
        ("(defn f [g] (g 1) (g 2)) (f t/a)", "a 2"),
        ("(let [f (fn [x] (t/a :n x))] (f 1) (dotimes [_ 2] (f 2)))", "a 3"),
        ("(letfn [(f [] (t/a)) (g [] (f) (f))] (g))", "a 2"),
        ("(defn f [& xs] (doseq [x xs] (t/a :n x))) (f 1 2 3)", "a 3"),
        ("(def xs [1 2 3]) (mapv t/a xs)", "a 3"),
        ("(def xs (take 3 data)) (doseq [x xs] (t/a))", "a 3"),
        ("(def f t/a) (f) (def f t/b) (f)", "a 1, b 1"),
        ("(declare g) (defn f [] (g)) (defn g [] (t/a)) (f)", "a 1"),
        ("(defmacro twice [x] `(do ~x ~x)) (twice (t/a))", "a 2"),
        ("(update-vals {:x 1} t/a)", "a any"),
        ("(keep-if-known t/a)", "!"),
    ] {
        if expected == "!" {
            let failure = engine().session().plan(&Request::new(program), &[], tools()).expect_err(program);
            assert_eq!(failure.code(), ErrorCode::UnboundVariable);
            continue;
        }
        assert_eq!(plan(program), expected, "{program}");
    }
}

#[test]
fn calls_without_an_evident_bound_are_listed() {
    for (program, expected) in [
        ("(while true (t/a))", "a any"),
        ("(loop [i 0] (when (< i 3) (t/a) (recur (inc i))))", "a any"),
        ("(loop [i 0] (t/a))", "a 1"),
        ("(mapv t/a data)", "a any"),
        ("(mapv t/b (t/a))", "a 1, b any"),
        // A lazy sequence is computed again where it failed.
        ("(map t/a (take 3 (iterate inc 1)))", "a any"),
        ("(defn f [n] (when (pos? n) (t/a) (f (dec n)))) (f 3)", "a any"),
        ("(def f (comp t/a t/b)) (f 1)", "a any, b any"),
        ("((partial t/a 1))", "a any"),
        ("{:f t/a}", "a any"),
        ("(def d (delay (t/a))) @d", "a any"),
        ("(def x (atom nil)) (reset! x (fn [] (t/a))) (@x)", "a any"),
        ("(let [v #'t/a] (v))", "a any"),
        ("(defmulti f identity) (defmethod f 1 [_] (t/a)) (f 1)", "a any"),
        ("(swap! (atom 1) t/b)", "b any"),
        ("(sort-by t/b [1 2 3])", "b any"),
        // The number of items may change.
        ("(def ^:dynamic *xs* [1]) (binding [*xs* (range 9)] (doseq [x *xs*] (t/a)))", "a any"),
        (
            "(def xs [1]) (defn f [] (mapv t/a xs)) (dotimes [_ 2] (f) (alter-var-root #'xs (fn [_] (range 9))))",
            "a any",
        ),
        ("(def f (fn [] 1)) (defn g [] (f)) (def later (delay (g))) (def f t/a) @later", "a any"),
        ("(defn set-up [] (def f t/a)) (defn f [] 1) (set-up) (f)", "a any"),
        ("(reduce t/b [])", "b 1"),
        ("(reduce + [1 2] :key t/b :initial-value [])", "b any"),
        ("(some (fn [x] (range 100)) [1])", ""),
        ("(doseq [x (some (fn [x] (range 100)) [1])] (t/a))", "a any"),
        ("(for [x [1 2] y (map inc (iterate inc x))] (t/a))", "a any"),
        // The function may come second, if the first argument is not certainly one.
        ("(doseq [x (map data #{1})] (t/a))", "a any"),
        ("(doseq [x (map :id [1 2])] (t/a))", "a 2"),
        ("(doseq [x (sort-by data #{1})] (t/a))", "a any"),
        ("(doseq [x (sort-by :id #{1})] (t/a))", "a 1"),
    ] {
        assert_eq!(plan(program), expected, "{program}");
    }
}

#[test]
fn names_that_are_looked_up_at_run_time_are_unknown() {
    for (program, expected) in [
        ("((resolve 't/a))", "; `resolve` looks names up at run time 1:2"),
        ("(defn f [] (intern 'user 'x 1))", ""),
        ("(defn f []\n  (intern 'user 'x 1))\n(f)", "; `intern` looks names up at run time 2:3"),
        ("(map resolve ['t/a])", "; `resolve` looks names up at run time 1:1"),
        (
            "(def n (t/a)) (defmacro m [] (if n '(t/b) nil)) (m)",
            "a 1; the expansion of the macro `m` is known only when the program runs 1:49",
        ),
        ("(defmacro m [] (t/a) nil) (m)", "; the expansion of the macro `m` is known only when the program runs 1:27"),
        ("(defmacro m [] (rand-int 2)) (m)", "; a macro uses random numbers 1:30"),
        (
            "(intern 'user 'f (fn [] 1)) (f)",
            "; its names have a meaning only when the program runs 1:29; `intern` looks names up at run time 1:1",
        ),
    ] {
        let mut found: Vec<String> = plan(program).split("; ").map(str::to_owned).collect();
        let mut expected: Vec<String> = expected.split("; ").map(str::to_owned).collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{program}");
    }
}

#[test]
fn a_plan_knows_the_session_and_leaves_it_as_it_is() {
    let host = tools();
    let mut session = engine().session();
    let program = "(defn f [x] (t/a :n x)) (def xs [1 2]) (def box (atom t/b)) (defmacro twice [x] `(do ~x ~x))
                   (def lazy (map t/c (iterate inc 1)))";
    assert!(session.eval(Request::new(program), host.clone()).failure.is_none());
    let before = (session.changes(), session.encode().expect("it is data"));
    for (program, expected) in [
        ("(run! f xs)", "a 2"),
        ("(twice (f 1))", "a 2"),
        ("(@box)", "b any"),
        ("(first lazy)", "c any"),
        ("(defn f [x] 1) (run! f xs)", ""),
        ("(def y 1) (f y)", "a 1"),
    ] {
        assert_eq!(shown(&plan_in(&mut session, program, &[])), expected, "{program}");
    }
    assert_eq!((session.changes(), session.encode().expect("it is data")), before);
    assert!(host.calls.lock().expect("not poisoned").is_empty());
}

#[test]
fn values_of_the_embedder_are_followed() {
    let tool = |name: &str| {
        let mut tools = Tools::new();
        tools.tool(name, |_: NoArguments, _: &Call| Ok(1));
        World::new(tools)
    };
    let world = tool("t/a");
    let mut session = engine().session();
    let made =
        session.run("{:f (fn [] (t/a))}").eval::<Value>(&world).expect("it is a value").done().expect("it is done");
    let plan = |session: &mut Session, given: &Value, program: &str| {
        shown(&session.run(program).data(given).plan(&world).expect("it is resolved"))
    };
    assert_eq!(plan(&mut session, &made, "((:f data))"), "a any");
    assert_eq!(plan(&mut session, &Value::vector(vec![]), "(doseq [x (map inc (take 2 data))] (t/a))"), "a 2");
}

#[test]
fn a_program_that_cannot_be_resolved_has_no_plan() {
    for (program, code, place) in [
        ("(t/a", ErrorCode::UnbalancedBrackets, (1, 1)),
        ("(t/a)\n(t/nothing)", ErrorCode::UnknownTool, (2, 2)),
        ("(if)", ErrorCode::SyntaxError, (1, 1)),
    ] {
        let failure = engine().session().plan(&Request::new(program), &[], tools()).expect_err(program);
        assert_eq!(
            (failure.code(), (failure.line, failure.column)),
            (code, (Some(place.0), Some(place.1))),
            "{program}"
        );
    }
}

/// The functions on whose eagerness plans rely return no lazy sequence for a vector.
#[test]
fn bounded_functions_are_eager_over_vectors() {
    for call in [
        "(map inc v)",
        "(filter odd? v)",
        "(remove odd? v)",
        "(keep identity v)",
        "(take-while odd? v)",
        "(drop-while odd? v)",
        "(mapcat list v)",
        "(for [x v y v] [x y])",
        "(for [x v :when (odd? x)] x)",
        "(reverse v)",
        "(seq v)",
        "(rest v)",
        "(next v)",
        "(butlast v)",
        "(drop 1 v)",
        "(take-last 2 v)",
        "(drop-last v)",
        "(sort v)",
        "(sort-by - v)",
        "(distinct v)",
        "(shuffle v)",
        "(partition-all 2 v)",
        "(take 2 v)",
        "(keys {1 2})",
        "(vals {1 2})",
    ] {
        let reply = engine().session().eval(Request::new(format!("(def v [1 2 3]) (class {call})")), tools());
        let class = reply.value.unwrap_or_else(|| panic!("{call}: {:?}", reply.failure));
        assert!(!class.contains("Lazy"), "{call}: {class}");
    }
}

/// Programs of the forms whose calls are counted, and of some whose calls are not.
fn form() -> impl Strategy<Value = String> {
    let tool = || prop::sample::select(vec!["t/a", "t/b", "t/c"]);
    let leaf = prop_oneof![
        3 => tool().prop_map(|tool| format!("({tool} :n x)")),
        1 => (0..4_i64).prop_map(|number| number.to_string()),
        1 => prop::sample::select(vec!["x", "nil", "[1 2 3]", "(range 3)", "(vec (t/a))", "(h)", "(h)"]).prop_map(str::to_owned),
    ];
    leaf.prop_recursive(5, 40, 4, move |inner| {
        let i = || inner.clone();
        let function = (inner.clone(), tool()).prop_flat_map(|(body, tool)| {
            prop::sample::select(vec![
                format!("(fn [x] {body})"),
                tool.to_owned(),
                "f".to_owned(),
                format!("(fn [y & more] {body})"),
            ])
        });
        let collection = prop_oneof![
            prop::sample::select(vec![
                "[1 2 3]",
                "(range 3)",
                "xs",
                "(take 2 (t/a))",
                "(map inc [1 2])",
                "(iterate inc 1)",
                "#{1 2}",
                "ys",
            ])
            .prop_map(str::to_owned),
            inner.clone().prop_map(|inner| format!("(filter some? [{inner} 1])")),
            (function.clone(), inner.clone()).prop_map(|(f, inner)| format!("(map {f} [{inner}])")),
            (function.clone(), inner.clone())
                .prop_map(|(f, inner)| format!("(mapcat (fn [y] (list y ({f} y))) [1 {inner}])")),
        ];
        let over = (function.clone(), collection.clone());
        prop_oneof![
            (i(), i(), i()).prop_map(|(a, b, c)| format!("(if {a} {b} {c})")),
            (i(), i()).prop_map(|(a, b)| format!("(do nil {a} {b})")),
            (i(), i()).prop_map(|(a, b)| format!("(or {a} (and {b} {a}))")),
            (i(), i()).prop_map(|(a, b)| format!("(let [x {a}] {b})")),
            (i(), i()).prop_map(|(a, b)| format!("(try {a} (catch Exception e {b}))")),
            (i(), collection.clone()).prop_map(|(a, c)| format!("(doseq [x (take 4 {c})] nil {a})")),
            (i(), collection.clone()).prop_map(|(a, c)| format!("(for [x (take 3 {c}) y [1 2]] {a})")),
            i().prop_map(|a| format!("(dotimes [x 3] nil {a})")),
            i().prop_map(|a| format!("(loop [x 2] (when (pos? x) nil {a} (recur (dec x))))")),
            i().prop_map(|a| format!("(let [d (delay {a})] @d @d)")),
            over.clone().prop_map(|(f, c)| format!(
                "(let [s (map {f} (take 3 {c}))] (try (doall s) (catch Exception e (first s))))"
            )),
            over.clone().prop_map(|(f, c)| format!("(mapv {f} (take 3 {c}))")),
            over.clone().prop_map(|(f, c)| format!("(pmap {f} (take 3 {c}))")),
            over.clone().prop_map(|(f, c)| format!("(run! {f} (take 3 {c}))")),
            over.clone().prop_map(|(f, c)| format!("(some {f} (take 3 {c}))")),
            over.clone().prop_map(|(f, c)| format!("(doseq [x (some {f} (take 3 {c}))] (t/b :n x))")),
            over.clone().prop_map(|(f, c)| format!("(reduce (fn [_ x] ({f} x)) nil (take 3 {c}))")),
            (function.clone(), i()).prop_map(|(f, a)| format!("({f} {a})")),
            (function.clone(), i()).prop_map(|(f, a)| format!("(apply {f} [{a}])")),
            (function.clone(), i()).prop_map(|(f, a)| format!("((comp {f} identity) {a})")),
            (function.clone(), i()).prop_map(|(f, a)| format!("(let [g {f}] (g {a}) (g 1))")),
            (function.clone(), i()).prop_map(|(f, a)| format!("(with-redefs [f {f}] {a})")),
            collection.clone().prop_map(|c| format!("(do (alter-var-root #'ys (fn [_] (take 4 {c}))) nil)")),
            (collection, i()).prop_map(|(c, a)| format!("(do (def xs (take 5 {c})) nil {a})")),
            function.prop_map(|f| format!("(do (def f {f}) nil)")),
        ]
    })
}

fn program() -> impl Strategy<Value = String> {
    (form(), prop::collection::vec(form(), 1..4)).prop_map(|(body, forms)| {
        let forms: Vec<String> = forms.into_iter().map(|form| form.to_string()).collect();
        format!("(def x 1) (def xs [1 2]) (def ys [1]) (defn h [] 1) (defn f [x] {body}) (defn h [] (doseq [y ys] (f y)))\n{}", forms.join("\n"))
    })
}

/// A world whose tool `t/ask` needs a person, and that counts the calls of `t/a`.
fn counting() -> (World<'static>, Arc<std::sync::atomic::AtomicUsize>) {
    let calls = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let mut tools = Tools::new();
    tools.tool("t/a", move |_: NoArguments, _: &Call| {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(1)
    });
    tools.tool("t/b", |_: NoArguments, _: &Call| Ok(2));
    tools.tool("t/ask", |_: NoArguments, _: &Call| Ok(3)).needs_approval();
    (World::new(tools).on_question(|_| Decision::Pending), calls)
}

#[test]
fn a_run_that_leaves_its_plan_stops_before_the_call() {
    let planned = "(dotimes [_ 2] (t/a))";
    for (program, made, expected) in [
        ("(dotimes [_ 2] (t/a))", 2, None),
        ("(t/a)", 1, None),
        ("(dotimes [_ 3] (t/a))", 2, Some("the plan has at most 2 calls of `t/a`, and this is one more")),
        ("(t/a) (t/a) (t/a)", 2, Some("the plan has at most 2 calls of `t/a`, and this is one more")),
        ("(t/a) (t/b)", 1, Some("the plan has `t/a`, and not `t/b`")),
        // The program cannot catch it, and goes no further.
        ("(try (t/b) (catch Throwable e nil)) (t/a)", 0, Some("the plan has `t/a`, and not `t/b`")),
        ("(try (t/b) (finally (t/a)))", 0, Some("the plan has `t/a`, and not `t/b`")),
        ("((resolve (symbol \"t\" \"b\")))", 0, Some("the plan has `t/a`, and not `t/b`")),
        ("(pmap (fn [_] (t/a)) (range 9))", 2, Some("the plan has at most 2 calls of `t/a`, and this is one more")),
    ] {
        let (world, calls) = counting();
        let mut session = engine().session();
        let plan = session.run(planned).plan(&world).expect("it can be planned");
        let outcome = session.run(program).within(&plan).eval::<Value>(&world).expect("it runs");
        let failed = match outcome {
            Outcome::Failed(failure) => {
                assert_eq!(failure.error, "PlanExceeded", "{program}: {}", failure.rendered);
                Some(failure.message)
            }
            _ => None,
        };
        let expected = expected.map(|how| format!("the run leaves its plan, so nothing was sent: {how}"));
        assert_eq!(failed, expected, "{program}");
        assert_eq!(calls.load(std::sync::atomic::Ordering::Relaxed), made, "{program}");
    }
}

#[test]
fn a_run_that_is_resumed_has_the_calls_left_that_it_has_not_made() {
    let program = "(t/a)\n(t/ask)\n(t/a)";
    for (planned, stops) in [(program, false), ("(t/a) (t/ask)", true)] {
        let (world, calls) = counting();
        let mut session = engine().session();
        let plan = session.run(planned).plan(&world).expect("it can be planned");
        let outcome = session.run(program).within(&plan).eval::<Value>(&world).expect("it runs");
        let Outcome::Suspended(mut run) = outcome else { panic!("it waits") };
        let ids: Vec<_> = run.questions().map(|question| question.id.clone()).collect();
        ids.iter().for_each(|id| run.approve(id).expect("it is asked about"));
        let outcome = session.resume(*run).within(&plan).eval::<Value>(&world).expect("it runs");
        let is_stopped = matches!(&outcome, Outcome::Failed(failure) if failure.error == "PlanExceeded");
        assert_eq!(is_stopped, stops, "{planned}");
        assert_eq!(calls.load(std::sync::atomic::Ordering::Relaxed), if stops { 1 } else { 2 });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn no_run_exceeds_its_plan(program in program()) {
        let host = tools();
        let request = || {
            let mut request = Request::new(program.as_str());
            request.limits.fuel = 3_000_000;
            request.limits.calls = 2_000;
            request
        };
        let Ok(plan) = engine().session().plan(&request(), &[], host.clone()) else {
            // Some calls of functions read as a loop of Scheme, and have no meaning.
            prop_assert!(engine().session().eval(request(), host.clone()).failure.is_some(), "{program}");
            return Ok(());
        };
        prop_assert!(plan.unknown.is_empty(), "{program}");
        prop_assert!(host.calls.lock().expect("not poisoned").is_empty());
        let free = engine().session().eval(request(), host.clone() as Arc<dyn Host>);
        let mut made: BTreeMap<String, u64> = BTreeMap::new();
        for call in host.calls.lock().expect("not poisoned").iter() {
            *made.entry(call.tool.to_string()).or_default() += 1;
        }
        for (tool, count) in made {
            let planned = plan.calls.iter().find(|call| call.tool == tool);
            let most = planned.map(|call| call.most.unwrap_or(u64::MAX));
            prop_assert!(Some(count) <= most, "{program}\n{tool}: {count} calls, planned {most:?}");
        }
        // A run that is held to its plan takes the same course.
        let log = Arc::new(RunLog::new(Logged::default(), Keep::Nothing, 0));
        let held = Recorder::new(tools() as Arc<dyn Host>, log).within(Some(Arc::new(plan.bounds())));
        let held = engine().session().eval(request(), Arc::new(held));
        let code = |reply: &lispbox::lang::Reply| reply.failure.as_ref().map(|failure| failure.error.clone());
        prop_assert_eq!((held.value.clone(), code(&held)), (free.value.clone(), code(&free)), "{}", program);
    }
}
