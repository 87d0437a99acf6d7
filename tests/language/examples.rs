//! Every builtin has examples, and every example prints the documented result.

use crate::common;

use lispbox::lang::internal;

#[test]
fn every_example_prints_what_it_says() {
    let mut wrong = Vec::new();
    let mut count = 0;
    let engine = common::engine();
    for entry in engine.registry().entries() {
        for (program, expected) in &entry.examples {
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
fn everything_has_a_doc_and_an_example() {
    let engine = common::engine();
    for entry in engine.registry().entries() {
        assert!(!entry.doc.is_empty(), "{} has no doc", entry.name);
        assert!(!entry.examples.is_empty(), "{} has no example", entry.name);
        assert!(!entry.arguments.is_empty(), "{} has no argument list", entry.name);
    }
}

#[test]
fn names_are_unique() {
    let engine = common::engine();
    let registry = engine.registry();
    let internal = internal::all().filter(|entry| entry.is_internal()).map(|entry| entry.name);
    let aliases = registry.prelude().functions().flat_map(|function| function.aliases.clone());
    let mut names: Vec<&str> = registry.entries().map(|entry| entry.name).chain(internal).chain(aliases).collect();
    names.sort_unstable();
    let twice: Vec<&str> = names.windows(2).filter(|two| two[0] == two[1]).map(|two| two[0]).collect();
    assert!(twice.is_empty(), "named twice: {twice:?}");
    let hidden: Vec<&str> = registry.prelude().names().filter(|name| registry.find(name).is_some()).collect();
    assert!(hidden.is_empty(), "builtins hide what the prelude names: {hidden:?}");
}

#[test]
fn every_function_of_the_prelude_compiles() {
    let engine = common::engine();
    let registry = engine.registry();
    for function in registry.prelude().functions() {
        assert!(registry.compiled(function).is_some(), "{} does not compile", function.name);
    }
}

#[test]
fn every_macro_and_special_form_is_documented() {
    use lispbox::lang::internal::{SPECIAL_FORMS, macro_names};
    let written = SPECIAL_FORMS.iter().copied().filter(|name| !name.ends_with('*') && *name != "var");
    for name in macro_names().chain(written) {
        let entry = internal::syntax::all().find(|entry| entry.name == name);
        assert!(entry.is_some_and(|entry| !entry.examples.is_empty()), "{name} has no documentation");
    }
}
