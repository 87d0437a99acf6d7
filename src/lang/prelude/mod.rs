//! The prelude: functions that are best written in the language itself, in `stdlib/*.lisp`.
//!
//! Its text is part of the binary. Its index is built when a name first occurs that is defined nowhere else; a function
//! is read and compiled on first use. All of this happens once per engine, outside of every account: the cost of a
//! program does not depend on the programs that ran before it. A function of the prelude sees builtins and the
//! functions that precede it, never the definitions of a session. So it has the same meaning everywhere, and no two
//! functions refer to each other in a cycle.

mod compile;
mod declaration;

pub use compile::compile;

use crate::registry::{File, Function, Prelude};
use crate::span::Source;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// The files in load order: a function may use those of earlier files.
const FILES: &[(&str, &str)] = &[
    ("stdlib/maps.lisp", include_str!("../stdlib/maps.lisp")),
    ("stdlib/sequences.lisp", include_str!("../stdlib/sequences.lisp")),
    ("stdlib/stats.lisp", include_str!("../stdlib/stats.lisp")),
    ("stdlib/rows.lisp", include_str!("../stdlib/rows.lisp")),
    ("stdlib/numbers.lisp", include_str!("../stdlib/numbers.lisp")),
    ("stdlib/zip.lisp", include_str!("../stdlib/zip.lisp")),
    ("stdlib/text.lisp", include_str!("../stdlib/text.lisp")),
];

/// Scans the files for definitions, which begin at the start of a line. Each definition is read on demand.
pub fn index() -> Prelude {
    let mut prelude = Prelude { files: Vec::new(), functions: Vec::new(), by_name: HashMap::default() };
    for (file, text) in FILES {
        let title = text.lines().next().unwrap_or_default().trim_start_matches([';', ' ']);
        prelude.files.push(File { title, source: Arc::new(Source::hidden(file)) });
        let starts: Vec<usize> = text.match_indices("\n(defn").map(|(at, _)| at + 1).collect();
        let ends = starts.iter().skip(1).copied().chain([text.len()]);
        for (start, end) in starts.iter().zip(ends) {
            add(&mut prelude, &text[*start..end]);
        }
    }
    prelude
}

fn add(prelude: &mut Prelude, text: &'static str) {
    let mut words = text.split_whitespace();
    let is_private = words.next() == Some("(defn-");
    let name = words.next().unwrap_or_default();
    let aliases = text.split_once(":aliases [").and_then(|(_, rest)| rest.split_once(']'));
    let aliases: Vec<&str> = aliases.map(|(names, _)| names.split_whitespace().collect()).unwrap_or_default();
    let place = prelude.functions.len();
    for known in aliases.iter().chain([&name]) {
        prelude.by_name.insert(known, place);
    }
    prelude.functions.push(Function {
        name,
        aliases,
        is_private,
        file: prelude.files.len() - 1,
        place,
        text,
        declaration: OnceLock::new(),
        read: declaration::read,
        compiled: OnceLock::new(),
    });
}
