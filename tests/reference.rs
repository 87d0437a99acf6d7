//! `stdlib/REFERENCE.md` says what the declarations say.

mod common;

use std::fmt::Write;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/stdlib/REFERENCE.md");

/// Code in Markdown, whatever quotes are in it.
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
        "stdlib/REFERENCE.md is stale: run `UPDATE_REFERENCE=1 cargo test --test reference` and commit it"
    );
}
