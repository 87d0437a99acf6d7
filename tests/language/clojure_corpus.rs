//! Compares this language with real Clojure: in `tests/clojure/*.md`, programs end with `;=> ANSWER` as recorded by
//! `tests/clojure/record.clj`. Where this language intentionally answers differently, the next line is `;lispbox=>
//! ANSWER (slug)`, with the slug of its entry in `docs/differences-from-clojure.md`. For errors, only their presence is
//! compared, not their text.

use crate::common;

use common::literate::{cases, documents};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Minimum number of programs.
const LEAST: usize = 6_500;

/// Returns true if the answer agrees with the expected one: the same text, an error for an error, or the same data with
/// maps and sets in another order.
fn agrees(expected: &str, got: &str) -> bool {
    let letters = |text: &str| {
        let mut letters: Vec<char> = text.chars().collect();
        letters.sort_unstable();
        letters
    };
    expected == got
        || (expected == "error" && got.starts_with("error: "))
        || (expected.contains('{')
            && letters(expected) == letters(got)
            && common::answer(&format!("(= (quote {expected}) (quote {got}))")).0 == "true")
}

#[test]
fn programs_answer_as_in_clojure() {
    let cases = cases("tests/clojure");
    let mut wrong = String::new();
    let mut count = 0;
    for case in &cases {
        let (got, message) = common::answer(&case.program);
        let expected = case.difference.as_ref().map_or(&case.expected, |(answer, _)| answer);
        let needless = case.difference.is_some() && agrees(&case.expected, &got);
        if needless || !agrees(expected, &got) {
            count += 1;
            let note = if needless { " (there is no difference: take out `;lispbox=>`)" } else { "" };
            let _ = writeln!(
                wrong,
                "{}: {}\n  expected {expected}{note}\n  got      {got} {message}",
                case.place, case.program
            );
        }
    }
    assert!(wrong.is_empty(), "{count} of {} programs are wrong:\n{wrong}", cases.len());
}

#[test]
fn there_are_enough_programs_and_each_has_its_answer() {
    let cases = cases("tests/clojure");
    assert!(cases.len() >= LEAST, "there are {} programs", cases.len());
    for case in cases {
        assert!(!case.expected.is_empty(), "{}: no answer: run tests/clojure/record.clj", case.place);
        assert!(!case.program.is_empty(), "{}: no program", case.place);
    }
}

#[test]
fn every_difference_is_described_and_shown() {
    let document = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/differences-from-clojure.md"))
        .expect("the list of differences");
    let mut described = BTreeSet::new();
    for line in document.lines().filter_map(|line| line.strip_prefix("- ")) {
        let slug = line.strip_prefix('`').and_then(|line| line.split_once("`: ")).map(|(slug, _)| slug.to_string());
        let slug = slug.unwrap_or_else(|| panic!("a difference begins with its name in backticks: {line}"));
        assert!(described.insert(slug.clone()), "`{slug}` is described twice");
    }
    let mut shown: BTreeSet<String> =
        cases("tests/clojure").into_iter().filter_map(|case| case.difference).map(|(_, slug)| slug).collect();
    // The heading of a section in a spec ends with the slugs of the differences that the section shows.
    for (_, text) in documents("tests/spec") {
        let headings = text.lines().filter(|line| line.starts_with('#'));
        let names = headings.filter_map(|line| line.strip_suffix(')')?.rsplit_once(" (")).map(|(_, names)| names);
        shown.extend(names.flat_map(|names| names.split(", ")).map(str::to_string));
    }
    let missing: Vec<_> = shown.difference(&described).collect();
    assert!(missing.is_empty(), "not in docs/differences-from-clojure.md: {missing:?}");
    let unshown: Vec<_> = described.difference(&shown).collect();
    assert!(unshown.is_empty(), "without a case in tests/clojure or a section in tests/spec: {unshown:?}");
}
