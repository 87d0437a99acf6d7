//! The evaluator inlines common functions, and moves values out of variables on their last read. These optimisations
//! must be unobservable: without them, every program of the corpora has the same value, the same output and the same
//! error. It uses the same fuel, or more if it copies data that is otherwise updated in place.

use crate::common;

use common::{host, literate};
use lispbox::lang::{Engine, Reply, Request};
use std::sync::Arc;

/// Returns the parts of a reply that must not differ.
fn outcome(reply: &Reply) -> (Option<&str>, &str, Option<&str>, &[String]) {
    let failure = reply.failure.as_ref().map(|failure| failure.rendered.as_str());
    (reply.value.as_deref(), &reply.prints, failure, &reply.defined)
}

fn run(engine: &Arc<Engine>, program: &str) -> Reply {
    engine.session().eval(Request::new(program), host())
}

#[test]
fn programs_come_to_the_same_on_the_plain_walk() {
    let quick = common::engine();
    let plain = Engine::builder().plain_walk().build().expect("the metering allocator is installed");
    let corpora = ["tests/spec", "tests/clojure"].map(literate::cases);
    let cases: Vec<literate::Case> = corpora.into_iter().flatten().collect();
    assert!(cases.len() > 8_000, "{} cases", cases.len());
    let differ = |case: &&literate::Case| {
        let (one, other) = (run(&quick, &case.program), run(&plain, &case.program));
        let is_limited = |reply: &Reply| reply.failure.as_ref().is_some_and(|failure| failure.limit.is_some());
        // Measured times differ between runs. An update in place is not charged as a copy, so the unoptimised evaluator
        // may reach a limit earlier.
        !case.program.contains("(time")
            && !is_limited(&one)
            && !is_limited(&other)
            && (outcome(&one) != outcome(&other) || one.spent.fuel > other.spent.fuel)
    };
    let different: Vec<&str> = cases.iter().filter(differ).map(|case| case.place.as_str()).collect();
    assert!(different.is_empty(), "{} of {}: {}", different.len(), cases.len(), different.join(", "));
}

#[test]
fn numbers_of_all_kinds_come_to_the_same() {
    let quick = common::engine();
    let plain = Engine::builder().plain_walk().build().expect("the metering allocator is installed");
    let numbers = [
        "0",
        "1",
        "-1",
        "7",
        "-7",
        "9223372036854775807",
        "-9223372036854775808",
        "9223372036854775808",
        "0.5",
        "-0.0",
        "##NaN",
        "##Inf",
        "1.5M",
        "nil",
        "\"a\"",
        "[1]",
    ];
    for operator in ["+", "-", "*", "quot", "rem", "mod", "<", "<=", ">", ">=", "=", "=="] {
        for left in numbers {
            for right in numbers {
                let program = format!("({operator} {left} {right})");
                alike(&run(&quick, &program), &run(&plain, &program), &program);
            }
        }
    }
    for operator in ["inc", "dec", "zero?", "pos?", "neg?", "even?", "odd?", ":key", "-", "+"] {
        for number in numbers.into_iter().chain(["{:key 1}", "{:key nil}", "{:a 1 :b 2 :key 3}", "#{:key}", "{}"]) {
            let program = format!("({operator} {number})");
            alike(&run(&quick, &program), &run(&plain, &program), &program);
        }
    }
}

fn alike(one: &Reply, other: &Reply, program: &str) {
    assert_eq!((outcome(one), one.spent.fuel), (outcome(other), other.spent.fuel), "{program}");
}

#[test]
fn what_is_counted_as_it_is_joined_comes_to_the_same() {
    let quick = common::engine();
    let plain = Engine::builder().plain_walk().build().expect("the metering allocator is installed");
    for program in [
        "(frequencies (mapcat #(str/split % #\" \") [\"a b\" \"b c a\" \"\"]))",
        "(->> (range 100) (mapcat #(range % 100)) frequencies (sort-by key) (take 3))",
        "(frequencies (for [a [1 2] b [a 3] :when (odd? b)] b))",
        "(frequencies (mapcat (fn [n] (print n) (map (fn [m] (print m) m) [n n])) [1 2]))",
        "(frequencies (mapcat (fn [n] (map inc (iterate inc n)))  []))",
        "(frequencies (take 5 (mapcat range (range))))",
        "(frequencies (mapcat (fn [n] (if (= n 3) (reduced [9]) [n n])) (range 9)))",
        "(frequencies (mapcat {1 [:a :b]} [1 2 1]))",
        "(frequencies (mapcat nil [[1] [2 1]]))",
        "(frequencies (mapcat [1 2] vector))",
        "(frequencies (mapcat vector [1 2] [2 1]))",
        "(frequencies (mapcat vec {:a 1}) :key keyword?)",
        "(frequencies odd? (mapcat range [3 4]))",
        "(frequencies (mapcat identity \"ab\"))",
        "(frequencies (mapcat #(/ 1 %) [0]))",
        "(frequencies (mapcat inc [1]))",
        "(frequencies (mapcat 7 [1]))",
        "(frequencies (mapcat vector 7))",
        "(frequencies (mapcat vector nil))",
        "(let [frequencies count] (frequencies (mapcat vector [1 2])))",
    ] {
        let (one, other) = (run(&quick, program), run(&plain, program));
        assert_eq!(outcome(&one), outcome(&other), "{program}");
        assert!(one.spent.fuel <= other.spent.fuel, "{program}: {} and {}", one.spent.fuel, other.spent.fuel);
    }
}
