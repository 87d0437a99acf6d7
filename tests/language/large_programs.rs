//! Long, flat programs: their cost is linear in their length.

use crate::common;

use common::{host, session};
use lispbox::lang::Request;
use std::fmt::Write;

/// Evaluates a program under the default limits; returns its value or its error.
fn value(program: &str) -> String {
    let reply = session().eval(Request::new(program), host());
    reply.failure.map(|failure| failure.rendered).or(reply.value).unwrap_or_default()
}

#[test]
fn many_definitions_in_one_form() {
    let mut program = "(when true".to_string();
    for at in 0..9_000 {
        let _ = write!(program, " (def n {at})");
    }
    assert_eq!(value(&format!("{program} n)")), "8999");
    let mut program = "(when true".to_string();
    for at in 0..12_000 {
        let _ = write!(program, " (def n{at} {at})");
    }
    let mut request = Request::new(format!("{program} n11999)"));
    for (limit, amount) in [("bindings", "12000"), ("program", "1MiB")] {
        request.limits.set(limit, amount).expect("a known limit");
    }
    let reply = session().eval(request, host());
    assert_eq!(reply.value.as_deref(), Some("11999"), "{:?}", reply.failure);
}

#[test]
fn many_locals_and_many_free_names() {
    let mut program = "(let [".to_string();
    for at in 0..3_000 {
        let _ = write!(program, "n{at} {at} ");
    }
    program.push_str("] [");
    program.push_str(&"inc #'inc ".repeat(8_000));
    assert_eq!(value(&format!("(count {program}]))")), "16000");
}

#[test]
fn many_clauses_with_an_end() {
    let mut program = "(loop for x in [1 2 3]".to_string();
    for at in 10..70 {
        let _ = write!(program, " when (= x {at}) return {at}");
    }
    assert_eq!(value(&format!("{program} collect x)")), "(1 2 3)");
    let ends = " when (= x 9) return 0".repeat(300);
    assert!(value(&format!("(loop for x in [1]{ends})")).contains("at most 256 clauses"));
    let nested = "when x ".repeat(30_000);
    assert!(value(&format!("(loop for x in [1] {nested} collect x)")).contains("at most 256 clauses"));
}
