//! Compares this language with real Clojure: in `tests/clojure/*.md`, programs end with `;=> ANSWER` as
//! `tests/clojure/record.clj` recorded it. Where this language is meant to answer something else, the line
//! below says `;lispbox=> ANSWER (slug)`, with the slug of its entry in `docs/differences-from-clojure.md`.
//! Texts of errors are not compared, only that there is one.

mod common;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

/// How many programs there are at least.
const LEAST: usize = 1_750;

/// A program, where it ends, what Clojure answers, and what we mean to answer instead.
struct Case {
    place: String,
    program: String,
    recorded: String,
    difference: Option<(String, String)>,
}

/// The Markdown files of a directory below the package's, each with its lines.
fn documents(directory: &str) -> Vec<(String, String)> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(directory);
    let mut files: Vec<PathBuf> = std::fs::read_dir(path)
        .expect("the directory is there")
        .map(|entry| entry.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let name = path.file_name().expect("a file").to_string_lossy();
            (format!("{directory}/{name}"), std::fs::read_to_string(&path).expect("a text"))
        })
        .collect()
}

fn cases(name: &str, text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut program = String::new();
    let mut inside = false;
    for (at, line) in text.lines().enumerate() {
        let place = format!("{name}:{}", at + 1);
        if line.starts_with("```") {
            assert!(program.trim().is_empty(), "{place}: a program without `;=>`");
            inside = line == "```clojure";
            program.clear();
        } else if !inside {
        } else if let Some(expected) = line.trim_start().strip_prefix(";lispbox=>") {
            let difference = expected.trim().strip_suffix(')').and_then(|text| text.rsplit_once(" ("));
            let (answer, slug) = difference.unwrap_or_else(|| panic!("{place}: write `;lispbox=> ANSWER (slug)`"));
            let case = cases.last_mut().filter(|case| case.difference.is_none() && program.trim().is_empty());
            case.unwrap_or_else(|| panic!("{place}: no recorded answer above")).difference =
                Some((answer.to_string(), slug.to_string()));
        } else if let Some((code, recorded)) = line.split_once(";=>") {
            program.push_str(code);
            cases.push(Case {
                place,
                program: std::mem::take(&mut program).trim().to_string(),
                recorded: recorded.trim().to_string(),
                difference: None,
            });
        } else {
            let _ = writeln!(program, "{line}");
        }
    }
    cases
}

fn corpus() -> Vec<Case> {
    documents("tests/clojure").iter().flat_map(|(name, text)| cases(name, text)).collect()
}

/// The value a program prints, or `error: Code`, and the message of the error.
fn run(program: &str) -> (String, String) {
    let reply = common::eval(program);
    match reply.failure {
        Some(failure) => (format!("error: {}", failure.error), failure.message),
        None => (reply.value.unwrap_or_default(), String::new()),
    }
}

/// True if what came is what was expected: the same text, an error for an error, or the same data with
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
            && run(&format!("(= (quote {expected}) (quote {got}))")).0 == "true")
}

#[test]
fn programs_answer_as_in_clojure() {
    let cases = corpus();
    let mut wrong = String::new();
    let mut count = 0;
    for case in &cases {
        let (got, message) = run(&case.program);
        let expected = case.difference.as_ref().map_or(&case.recorded, |(answer, _)| answer);
        let needless = case.difference.is_some() && agrees(&case.recorded, &got);
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
    let cases = corpus();
    assert!(cases.len() >= LEAST, "there are {} programs", cases.len());
    for case in cases {
        assert!(!case.recorded.is_empty(), "{}: no answer: run tests/clojure/record.clj", case.place);
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
        corpus().into_iter().filter_map(|case| case.difference).map(|(_, slug)| slug).collect();
    // A section of a spec names what it shows at the end of its heading.
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
