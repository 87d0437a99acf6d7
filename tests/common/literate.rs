//! Programs in Markdown: in blocks marked `clojure`, each ends with a line `… ;=> ANSWER`. Where
//! Clojure's answer stands there and this language means to answer something else, the line below says
//! `;lispbox=> ANSWER (slug)`, with the slug of its entry in `docs/differences-from-clojure.md`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

/// A program, where it ends, what stands behind `;=>`, and what we mean to answer instead.
pub struct Case {
    pub place: String,
    pub program: String,
    pub expected: String,
    pub difference: Option<(String, String)>,
}

/// The Markdown files of a directory below the package's, in order of their names: name and text.
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

/// The cases of all documents of a directory.
pub fn cases(directory: &str) -> Vec<Case> {
    documents(directory).iter().flat_map(|(name, text)| cases_of(name, text, "clojure")).collect()
}

/// The cases of a document in the blocks that are marked so.
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
