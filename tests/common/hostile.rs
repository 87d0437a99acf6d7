//! Reads the corpus of hostile programs from `tests/hostile/*.md`.
//!
//! Programs are in blocks marked `clojure`. Programs too long to write out are in blocks marked `built`, one per line,
//! as pieces joined by `+`: each piece is a JSON string, optionally followed by `* COUNT`; `{n}` in a piece is replaced
//! by the index of its repetition, from 0.

use std::collections::BTreeMap;

use super::literate;

/// A program and its expected outcome.
pub struct Program {
    pub place: String,
    pub text: String,
    pub expected: String,
}

/// Reads all programs, by kind.
pub fn corpus() -> BTreeMap<String, Vec<Program>> {
    let documents = literate::documents("tests/hostile").into_iter().map(|(name, text)| {
        let written = literate::cases_of(&name, &text, "clojure").into_iter();
        let built = literate::cases_of(&name, &text, "built").into_iter().map(|mut case| {
            case.program = built(&case.program);
            case
        });
        let program = |case: literate::Case| Program { place: case.place, text: case.program, expected: case.expected };
        let kind = name.trim_start_matches("tests/hostile/").trim_end_matches(".md").to_string();
        (kind, written.chain(built).map(program).collect())
    });
    documents.collect()
}

/// Expands a line of a `built` block into its program.
pub fn built(line: &str) -> String {
    let mut program = String::new();
    let mut rest = line;
    loop {
        let mut pieces = serde_json::Deserializer::from_str(rest).into_iter::<String>();
        let piece = pieces.next().and_then(Result::ok).unwrap_or_else(|| panic!("a JSON string, not `{rest}`"));
        let mut behind = rest[pieces.byte_offset()..].trim_start();
        let mut times = 1;
        if let Some(count) = behind.strip_prefix('*').map(str::trim_start) {
            let end = count.find(|c: char| !c.is_ascii_digit()).unwrap_or(count.len());
            times = count[..end].parse().expect("how many times");
            behind = count[end..].trim_start();
        }
        for number in 0..times {
            program.push_str(&piece.replace("{n}", &number.to_string()));
        }
        let Some(next) = behind.strip_prefix('+') else {
            assert_eq!(behind, "", "`+` or nothing behind a piece: {line}");
            return program;
        };
        rest = next;
    }
}
