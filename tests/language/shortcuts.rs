//! The evaluator does the work of common functions where they stand in a program, and gives values away where they are
//! read for the last time. Nothing but the time may tell: on the plain walk every program of the corpora has the same
//! value and the same failure, and spends as much fuel, or more where it copies what is changed in place otherwise.

use crate::common;

use common::{host, literate};
use lispbox::lang::{Engine, Reply, Request};
use std::sync::Arc;

/// What may not differ.
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
        // What a program measures of the time is its own; and what is changed in place is not paid for as a copy, so
        // the plain walk may come to a limit earlier.
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
