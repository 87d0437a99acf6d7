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
