//! The metadata, validator and watches of an atom are rolled back, swept and encoded like its content.

use crate::common;

use common::{host, moved, run, session};
use lispbox::lang::Request;

#[test]
fn a_form_that_fails_undoes_watches_validators_and_metadata() {
    let mut session = session();
    run(&mut session, "(def log (atom [])) (def a (atom 1 :meta {:n 1}))");
    run(&mut session, "(add-watch a :kept (fn [k _ old new] (swap! log conj [k old new])))");
    let program = "(do (remove-watch a :kept) (add-watch a :lost println) (set-validator! a pos?) (alter-meta! a assoc :n 2) (reset! a 5) (/ 1 0))";
    let failure = session.eval(Request::new(program), host()).failure.expect("it fails");
    assert_eq!(failure.error, "ArithmeticError");
    assert_eq!(run(&mut session, "[(meta a) (get-validator a) @a @log]"), "[{:n 1} nil 1 []]");
    assert_eq!(run(&mut session, "(reset! a -7)"), "-7");
    assert_eq!(run(&mut session, "@log"), "[[:kept 1 -7]]");
}

#[test]
fn an_atom_keeps_its_watches_in_a_snapshot() {
    let mut session = session();
    for program in [
        "(def log (atom []))",
        "(def a (atom 1 :meta {:unit :eur} :validator (fn [x] (< x 10))))",
        "(add-watch a :log (fn [k _ old new] (swap! log conj [k old new])))",
        "(def hinted (list (with-meta 'x {:tag 'String}) (with-meta (lazy-seq [1]) {:from :here})))",
        "(def broken (delay (throw (ex-info \"no\" {:id 1}))))",
        "(try @broken (catch Exception e nil))",
    ] {
        run(&mut session, program);
    }
    let mut other = moved(&mut session);
    for (program, value) in [
        ("(do (swap! a inc) [@a @log (meta a)])", "[2 [[:log 1 2]] {:unit :eur}]"),
        ("(try (reset! a 50) (catch Exception e [:refused @a]))", "[:refused 2]"),
        ("(map meta hinted)", "({:tag String} {:from :here})"),
        ("(try @broken (catch Exception e (ex-data e)))", "{:id 1}"),
    ] {
        assert_eq!(run(&mut other, program), value);
    }
}

#[test]
fn atoms_that_hold_themselves_through_watches_are_freed() {
    let program = "(dotimes [_ 20000]
        (let [a (atom (vec (range 200)))]
          (add-watch a :self (fn [_ _ _ _] @a))
          (alter-meta! a assoc :self a)
          (set-validator! a (fn [_] a))))";
    let mut request = Request::new(program);
    request.limits.memory = 32 * 1024 * 1024;
    let reply = session().eval(request, host());
    assert!(reply.failure.is_none(), "{:?}", reply.failure);
}

#[test]
fn symbols_that_hold_symbols_in_their_metadata_are_dropped_at_any_depth() {
    let program = "(do (loop [n 0 s 'x] (if (< n 300000) (recur (inc n) (with-meta 'x {:inner s})) s)) :done)";
    assert_eq!(common::value(program), ":done");
}

#[test]
fn a_sweep_clears_nothing_that_a_function_holds() {
    for hold in [
        "(atom 5)\n(defn f [] *1)",
        "(atom 5)\n(def f (fn [] ((fn [] *1))))",
        "[(atom 5)]\n(def f (let [g (fn [] (first *1))] (comp g)))",
        "(atom 5)\n(defmacro f [] `(identity ~(deref *1)))\n(def f (atom (f)))\n(def f (constantly f))",
        "(let [a (atom 5)] (defmulti f (fn [] :k)) (defmethod f :k [] a))",
        "(let [a (atom 5)] (def f (partial identity a)))",
        "(let [a (atom 5)] (def f (with-meta (fn [] (:a (meta f))) {:a a})))",
        "(let [a (delay (atom 5))] (def f (fn [] @a)))\n(f)",
        "(let [a (atom 5)] (def f (let [s (sorted-map-by (fn [x y] (compare x y)) 1 a)] (fn [] (get s 1)))))",
        "(throw (ex-info \"no\" {:a (atom 5)}))\n(defn f [] (:a (ex-data *e)))",
        "(let [a (atom 5)] (defprotocol P (p [x])) (extend-protocol P Long (p [_] a)) (defn f [] (p 1)))",
        "(let [a (atom 5)] (def f (memoize (fn [] a))))\n(f)",
    ] {
        let mut session = session();
        for program in hold.lines().chain(["1", "2", "3", "4", "5", "(def more (mapv atom (range 100)))"]) {
            run(&mut session, program);
        }
        assert_eq!(run(&mut session, "@(f)"), "5", "{hold}");
        assert_eq!(run(&mut moved(&mut session), "@(f)"), "5", "{hold}");
        assert_eq!(run(&mut session, "(def more (mapv atom (range 300))) @(f)"), "5", "{hold}");
    }
}
