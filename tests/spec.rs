//! Runs the literate specs in `tests/spec/*.md`: in blocks marked `clojure`, programs end with a line
//! `… ;=> value` or `… ;=> error: Code`, and each runs in a session of its own.

mod common;

use std::fmt::Write;
use std::path::Path;

/// A program, where it ends, and what it should come to.
struct Case {
    place: String,
    program: String,
    expected: String,
}

fn cases(path: &Path) -> Vec<Case> {
    let text = std::fs::read_to_string(path).expect("a spec is text");
    let mut cases = Vec::new();
    let mut program = String::new();
    let mut inside = false;
    for (at, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            assert!(program.trim().is_empty(), "{}:{}: a program without a value", path.display(), at + 1);
            inside = line == "```clojure";
            program.clear();
        } else if inside {
            match line.split_once(";=>") {
                Some((code, expected)) => {
                    program.push_str(code);
                    cases.push(Case {
                        place: format!("{}:{}", path.display(), at + 1),
                        program: std::mem::take(&mut program).trim().to_string(),
                        expected: expected.trim().to_string(),
                    });
                }
                None => {
                    let _ = writeln!(program, "{line}");
                }
            }
        }
    }
    cases
}

#[test]
fn every_spec_case_holds() {
    let mut files: Vec<_> = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/spec"))
        .expect("there are specs")
        .map(|entry| entry.expect("a file").path())
        .collect();
    files.sort();
    let mut wrong = String::new();
    let mut count = 0;
    for case in files.iter().flat_map(|path| cases(path)) {
        count += 1;
        let reply = common::eval(&case.program);
        let (got, detail) = match (&reply.failure, reply.value) {
            (Some(failure), _) => (format!("error: {}", failure.error), failure.message.clone()),
            (None, value) => (value.unwrap_or_default(), String::new()),
        };
        if got != case.expected {
            let _ = writeln!(
                wrong,
                "{}: {}\n  expected {}\n  got      {got} {detail}",
                case.place, case.program, case.expected
            );
        }
    }
    assert!(count > 0);
    assert!(wrong.is_empty(), "of {count} cases these are wrong:\n{wrong}");
}
