//! Every builtin has examples, and every example prints what it says.

mod common;

use lispbox::lang::builtin;

#[test]
fn every_example_prints_what_it_says() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for entry in builtin::all() {
        for (program, expected) in entry.examples {
            count += 1;
            let got = common::value(program);
            if got != *expected {
                wrong.push(format!("{}: {program}\n  expected {expected}\n  got      {got}", entry.name));
            }
        }
    }
    assert!(count > 0);
    assert!(wrong.is_empty(), "{} of {count} examples are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_builtin_has_a_doc_and_an_example() {
    for entry in builtin::all().filter(|entry| !entry.is_internal()) {
        assert!(!entry.doc.is_empty(), "{} has no doc", entry.name);
        assert!(!entry.examples.is_empty(), "{} has no example", entry.name);
        assert!(!entry.arguments.is_empty(), "{} has no argument list", entry.name);
    }
}

#[test]
fn names_are_unique() {
    let mut names: Vec<&str> = builtin::all().map(|entry| entry.name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}
