//! Checks that `stdlib/REFERENCE.md` matches the declarations, and that `docs/promises.md` matches the pages and tests.

use crate::common;

use std::fmt::Write;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/stdlib/REFERENCE.md");

/// Formats inline code in Markdown, with delimiters that suit the backquotes in it.
fn code(text: &str) -> String {
    if text.contains('`') { format!("`` {text} ``") } else { format!("`{text}`") }
}

fn reference() -> String {
    let engine = common::engine();
    let entries: Vec<_> = engine.registry().entries().collect();
    let mut out = format!(
        "# Reference\n\nAll {} forms and functions by area, made from their declarations: how each is called, what it \
         does, an example. In a program `(doc name)` shows all of it, `(apropos \"word\")` searches.\n",
        entries.len()
    );
    let mut area = "";
    for entry in &entries {
        if entry.area != area {
            area = entry.area;
            let _ = write!(out, "\n## {area}\n\n");
        }
        let calls: Vec<String> = entry.calls().map(|call| code(&call)).collect();
        let _ = writeln!(out, "- {}: {}", calls.join(", "), entry.summary());
        if let Some((program, value)) = entry.examples.first() {
            let _ = writeln!(out, "  - {} → {}", code(program), code(value));
        }
    }
    out
}

#[test]
fn the_reference_is_what_the_declarations_say() {
    let made = reference();
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        std::fs::write(PATH, &made).expect("the reference can be written");
    }
    let kept = std::fs::read_to_string(PATH).unwrap_or_default();
    assert!(
        kept == made,
        "stdlib/REFERENCE.md is stale: run `UPDATE_REFERENCE=1 cargo test --test language reference` and commit it"
    );
}

/// Returns the rows of the tables in docs/promises.md: the page, the sentence quoted from it, and the tests named.
fn promises() -> Vec<(String, String, Vec<String>)> {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/promises.md"))
        .expect("docs/promises.md can be read");
    let mut page = String::new();
    let mut rows = Vec::new();
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            page = heading.trim().to_owned();
            continue;
        }
        let Some(row) = line.strip_prefix("| ").filter(|row| !row.starts_with("promise |")) else { continue };
        let (quote, tests) = row
            .trim_end_matches('|')
            .rsplit_once(" | ")
            .unwrap_or_else(|| panic!("{page}: expected `| promise | tests |`, got {line}"));
        let tests = tests.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        rows.push((page.clone(), quote.trim().to_owned(), tests));
    }
    rows
}

/// Normalizes Markdown: removes differences in line breaks, and the escaping of `|` in tables.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace("\\|", "|")
}

#[test]
fn each_promise_is_on_its_page_and_is_held_by_tests_that_exist() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let rows = promises();
    assert!(!rows.is_empty(), "docs/promises.md has no promise");
    let mut problems = Vec::new();
    for (page, quote, tests) in rows {
        let text = std::fs::read_to_string(root.join("docs").join(&page)).unwrap_or_default();
        if !plain(&text).contains(&plain(&quote)) {
            problems.push(format!("docs/{page} does not say: {quote}"));
        }
        if tests.is_empty() {
            problems.push(format!("{page}: no test holds: {quote}"));
        }
        for test in tests {
            let (file, name) = test.split_once("::").unwrap_or((&test, ""));
            let code = std::fs::read_to_string(root.join(file)).unwrap_or_default();
            // In Rust, or in Python for the packages.
            let is_there = ["fn", "def"].iter().any(|word| code.contains(&format!("{word} {name}(")));
            if name.is_empty() || !is_there {
                problems.push(format!("there is no test {test}, which is to hold: {quote}"));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
