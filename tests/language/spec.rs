//! Runs the literate specs in `tests/spec/*.md`: in blocks marked `clojure`, each program ends with a line `… ;=>
//! value` or `… ;=> error: Code`, and runs in a fresh session.

use crate::common;

use common::literate::cases;
use std::fmt::Write;

#[test]
fn every_spec_case_holds() {
    let cases = cases("tests/spec");
    let mut wrong = String::new();
    for case in &cases {
        assert!(case.difference.is_none(), "{}: differences stand in tests/clojure", case.place);
        let (got, message) = common::answer(&case.program);
        if got != case.expected {
            let _ = writeln!(
                wrong,
                "{}: {}\n  expected {}\n  got      {got} {message}",
                case.place, case.program, case.expected
            );
        }
    }
    assert!(!cases.is_empty());
    assert!(wrong.is_empty(), "of {} cases these are wrong:\n{wrong}", cases.len());
}
