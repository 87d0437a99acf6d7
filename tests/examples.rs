//! Every builtin has examples, and every example prints what it says.

mod common;

use lispbox::lang::builtin;

#[test]
fn every_example_prints_what_it_says() {
    let mut wrong = Vec::new();
    let mut count = 0;
    let builtins = builtin::all().map(|entry| (entry.name, entry.examples));
    let forms = builtin::syntax::TABLE.iter().map(|entry| (entry.name, entry.examples));
    for (name, examples) in builtins.chain(forms) {
        for (program, expected) in examples {
            count += 1;
            let got = common::value(program);
            if got != *expected {
                wrong.push(format!("{name}: {program}\n  expected {expected}\n  got      {got}"));
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

#[test]
fn every_macro_and_special_form_is_documented() {
    use lispbox::lang::expand::{SPECIAL_FORMS, macro_names};
    let written = SPECIAL_FORMS.iter().copied().filter(|name| !name.ends_with('*') && *name != "var");
    for name in macro_names().chain(written) {
        let entry = builtin::syntax::TABLE.iter().find(|entry| entry.name == name);
        assert!(entry.is_some_and(|entry| !entry.examples.is_empty()), "{name} has no documentation");
    }
}
