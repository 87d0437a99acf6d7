//! Reads programs from Markdown: in blocks marked `clojure`, each program ends with a line `… ;=> ANSWER`. If that is
//! Clojure's answer and this language intentionally answers differently, the next line is `;lispbox=> ANSWER (slug)`,
//! with the slug of its entry in `docs/differences-from-clojure.md`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

/// A program, the place where it ends, the answer after `;=>`, and the intentionally different answer with its slug.
pub struct Case {
    pub place: String,
    pub program: String,
    pub expected: String,
    pub difference: Option<(String, String)>,
}

/// Returns the names and texts of the Markdown files in a directory of the package, sorted by name.
pub fn documents(directory: &str) -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
    let mut files: Vec<PathBuf> = std::fs::read_dir(path)
        .expect("the directory is there")
        .map(|entry| entry.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    files.sort();
    let read = |path: PathBuf| {
        let name = path.file_name().expect("a file").to_string_lossy();
        (format!("{directory}/{name}"), std::fs::read_to_string(&path).expect("a text"))
    };
    files.into_iter().map(read).collect()
}

/// Returns the cases of all documents in a directory.
pub fn cases(directory: &str) -> Vec<Case> {
    documents(directory).iter().flat_map(|(name, text)| cases_of(name, text, "clojure")).collect()
}

/// Returns the cases of a document in blocks with that mark.
pub fn cases_of(name: &str, text: &str, mark: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut program = String::new();
    let mut inside = false;
    for (at, line) in text.lines().enumerate() {
        let place = format!("{name}:{}", at + 1);
        if line.starts_with("```") {
            assert!(program.trim().is_empty(), "{place}: a program without `;=>`");
            inside = line.strip_prefix("```") == Some(mark);
            program.clear();
        } else if !inside {
        } else if let Some(expected) = line.trim_start().strip_prefix(";lispbox=>") {
            let difference = expected.trim().strip_suffix(')').and_then(|text| text.rsplit_once(" ("));
            let (answer, slug) = difference.unwrap_or_else(|| panic!("{place}: write `;lispbox=> ANSWER (slug)`"));
            let case = cases.last_mut().filter(|case| case.difference.is_none() && program.trim().is_empty());
            case.unwrap_or_else(|| panic!("{place}: no recorded answer above")).difference =
                Some((answer.to_string(), slug.to_string()));
        } else if let Some((code, expected)) = line.split_once(";=>") {
            program.push_str(code);
            cases.push(Case {
                place,
                program: std::mem::take(&mut program).trim().to_string(),
                expected: expected.trim().to_string(),
                difference: None,
            });
        } else {
            let _ = writeln!(program, "{line}");
        }
    }
    cases
}
