//! Searches by recursion: `for` and `mapcat` within the function that they call are computed as they are read, if that
//! is known to have no effect.

use crate::common;

use common::{eval, moved, run, session, value};
use lispbox::lang::Reply;

/// Definitions of a function `go` whose result has 2^n items.
const SEARCHES: &[&str] = &[
    "(defn go [n] (if (zero? n) [[]] (for [c [0 1] r (go (dec n))] (cons c r))))",
    "(defn go [n] (if (zero? n) [[]] (for [r (go (dec n)) c [0 1]] (conj r c))))",
    "(defn go [n] (if (zero? n) [[]] (for [c [0 1] :let [d c] :when (< d 2) r (go (dec n))] (cons d r))))",
    "(defn go [n] (if (zero? n) [[]] (mapcat (fn [c] (map #(cons c %) (go (dec n)))) [0 1])))",
    "(defn go [n] (if (zero? n) [[]] (mapcat (fn [r] [(conj r 0) (conj r 1)]) (go (dec n)))))",
    "(defn add [c r] (cons c r)) (defn go [n] (if (zero? n) [[]] (for [c [0 1] r (go (dec n))] (add c r))))",
    "(def go (fn own [n] (if (zero? n) [[]] (for [c [0 1] r (own (dec n))] (cons c r)))))",
    "(def go (partial (fn own [ok? n] (if (zero? n) [[]] (for [c [0 1] :when (ok? c) r (own ok? (dec n))] (cons c r)))) \
     int?))",
    "(defn go [n] (letfn [(own [k] (if (zero? k) [[]] (for [c [0 1] r (own (dec k))] (cons c r))))] (own n)))",
];

fn fuel(reply: &Reply) -> u64 {
    assert_eq!(reply.failure, None);
    reply.spent.fuel
}

#[test]
fn one_solution_takes_no_more_than_the_levels_squared() {
    for definition in SEARCHES {
        let cost = |n: u32| fuel(&eval(&format!("{definition} (count (first (go {n})))")));
        let (small, large) = (cost(10), cost(40));
        assert!(large < 16 * small, "{definition}: {small} steps for 10 levels, {large} for 40");
    }
}

#[test]
fn all_solutions_are_those_of_an_eager_search() {
    for definition in SEARCHES {
        let sorted = value(&format!("{definition} (sort (map vec (go 5)))"));
        let counted = "(sort (for [a [0 1] b [0 1] c [0 1] d [0 1] e [0 1]] [a b c d e]))";
        assert_eq!(sorted, value(counted), "{definition}");
    }
}

#[test]
fn a_moved_session_searches_at_the_same_cost() {
    for definition in SEARCHES {
        let mut session = session();
        run(&mut session, definition);
        let mut other = moved(&mut session);
        let cost = |of: &mut lispbox::lang::Session| {
            let reply = of.eval(lispbox::lang::Request::new("(count (first (go 30)))"), common::host());
            (reply.value.clone(), fuel(&reply))
        };
        assert_eq!(cost(&mut session), cost(&mut other), "{definition}");
    }
}

#[test]
fn effects_happen_in_the_order_of_the_program() {
    let counting = [
        "(defn go [n] (swap! seen conj n) (if (zero? n) [[]] (for [c [0 1] r (go (dec n))] (cons c r))))",
        "(defn note [n] (swap! seen conj n)) \
         (defn go [n] (note n) (if (zero? n) [[]] (mapcat (fn [c] (map #(cons c %) (go (dec n)))) [0 1])))",
        "(def note (fn [n] (print n) (swap! seen conj n))) \
         (defn go [n] (if (zero? n) (do (note n) [[]]) (for [c [0 1] :when (note n) r (go (dec n))] (cons c r))))",
    ];
    for definition in counting {
        let all = value(&format!("(def seen (atom [])) {definition} (doall (go 3)) @seen"));
        let first = value(&format!("(def seen (atom [])) {definition} (def found (go 3)) (first found) @seen"));
        assert_eq!(first, all, "{definition}");
    }
}

#[test]
fn a_function_that_is_given_is_asked_about_as_well() {
    let program = |test: &str| {
        format!(
            "(def seen (atom 0)) \
             (defn go [ok? n] (if (zero? n) [[]] (for [c [0 1] :when (ok? c) r (go ok? (dec n))] (cons c r)))) \
             (def found (go {test} 4)) (first found) @seen"
        )
    };
    assert_eq!(value(&program("(fn [c] (swap! seen inc) true)")), "30");
    assert_eq!(value(&program("int?")), "0");
}

#[test]
fn an_error_in_a_solution_that_is_not_read_is_not_raised() {
    let search = "(defn go [n] (if (zero? n) [[]] (for [c [2 0] r (go (dec n))] (cons (/ 4 c) r)))) ";
    assert_eq!(value(&format!("{search} (first (go 3))")), "(2 2 2)");
    assert_eq!(value(&format!("{search} (try (count (go 3)) (catch ArithmeticException e :zero))")), ":zero");
}

#[test]
fn functions_that_hold_each_other_are_asked_about_in_bounded_steps() {
    let chain = "(def f (reduce (fn [g _] (fn [x] (g x))) identity (range 20000))) \
                 (defn go [n] (if (zero? n) [[]] (for [c [0 1] r (go (dec n))] (cons (f c) r))))";
    assert_eq!(value(&format!("{chain} (go 1)")), "((0) (1))");
}
