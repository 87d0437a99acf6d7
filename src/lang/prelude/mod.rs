//! The prelude: functions that are best written in the language itself, in `stdlib/*.lisp`.
//!
//! Its text is part of the binary. Its index is built when a name first occurs that is defined nowhere else; a function
//! is read and compiled on first use. All of this happens once per engine, outside of every account: the cost of a
//! program does not depend on the programs that ran before it. A function of the prelude sees builtins and the
//! functions that precede it, never the definitions of a session. So it has the same meaning everywhere, and no two
//! functions refer to each other in a cycle.

mod compile;
mod declaration;

pub use declaration::Declaration;

use crate::lang::builtin::Registry;
use crate::lang::span::{Source, SourceName};
use crate::lang::value::function::Closure;
use foldhash::quality::RandomState;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// The files in load order: a function may use those of earlier files.
const FILES: &[(&str, &str)] = &[
    ("stdlib/maps.lisp", include_str!("../../../stdlib/maps.lisp")),
    ("stdlib/sequences.lisp", include_str!("../../../stdlib/sequences.lisp")),
    ("stdlib/stats.lisp", include_str!("../../../stdlib/stats.lisp")),
    ("stdlib/rows.lisp", include_str!("../../../stdlib/rows.lisp")),
    ("stdlib/numbers.lisp", include_str!("../../../stdlib/numbers.lisp")),
    ("stdlib/zip.lisp", include_str!("../../../stdlib/zip.lisp")),
    ("stdlib/text.lisp", include_str!("../../../stdlib/text.lisp")),
];

/// All functions of the prelude.
pub struct Prelude {
    areas: Vec<Area>,
    functions: Vec<Function>,
    /// Indices in `functions`, by name and alias.
    by_name: HashMap<&'static str, usize, RandomState>,
}

/// One file.
struct Area {
    /// The title: the first line of the file.
    title: &'static str,
    source: Arc<Source>,
}

/// One function of the prelude.
pub struct Function {
    /// Its name; names without a namespace belong to `core`.
    pub name: &'static str,
    /// Its aliases.
    pub aliases: Vec<&'static str>,
    /// True if only other functions of the prelude can use it.
    pub is_private: bool,
    area: usize,
    place: usize,
    /// The text of its definition, possibly followed by comments.
    text: &'static str,
    declaration: OnceLock<Declaration>,
    compiled: OnceLock<Option<Arc<Closure>>>,
}

impl Prelude {
    /// Scans the files for definitions, which begin at the start of a line. Each definition is read on demand.
    pub(super) fn index() -> Prelude {
        let mut prelude = Prelude { areas: Vec::new(), functions: Vec::new(), by_name: HashMap::default() };
        for (file, text) in FILES {
            let title = text.lines().next().unwrap_or_default().trim_start_matches([';', ' ']);
            prelude.areas.push(Area { title, source: Arc::new(Source::hidden(file)) });
            let starts: Vec<usize> = text.match_indices("\n(defn").map(|(at, _)| at + 1).collect();
            let ends = starts.iter().skip(1).copied().chain([text.len()]);
            for (start, end) in starts.iter().zip(ends) {
                prelude.add(&text[*start..end]);
            }
        }
        prelude
    }

    fn add(&mut self, text: &'static str) {
        let mut words = text.split_whitespace();
        let is_private = words.next() == Some("(defn-");
        let name = words.next().unwrap_or_default();
        let aliases = text.split_once(":aliases [").and_then(|(_, rest)| rest.split_once(']'));
        let aliases: Vec<&str> = aliases.map(|(names, _)| names.split_whitespace().collect()).unwrap_or_default();
        let place = self.functions.len();
        for known in aliases.iter().chain([&name]) {
            self.by_name.insert(known, place);
        }
        self.functions.push(Function {
            name,
            aliases,
            is_private,
            area: self.areas.len() - 1,
            place,
            text,
            declaration: OnceLock::new(),
            compiled: OnceLock::new(),
        });
    }

    /// Returns all functions that programs can name, in the order of the files.
    pub fn functions(&self) -> impl Iterator<Item = &Function> {
        self.functions.iter().filter(|function| !function.is_private)
    }

    /// Returns all names that programs can use, including aliases.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let public = |place: usize| !self.functions[place].is_private;
        self.by_name.iter().filter(move |(_, place)| public(**place)).map(|(name, _)| *name)
    }

    /// Returns the function with that name or alias, including private ones.
    pub fn find(&self, name: &str) -> Option<&Function> {
        self.by_name.get(name).map(|place| &self.functions[*place])
    }

    /// Returns the function that this closure was compiled from, if it is one of the prelude's.
    pub fn declared(&self, closure: &Closure) -> Option<&Function> {
        let name = closure.group.lambdas[closure.index as usize].name.as_deref()?;
        let function = self.find(name)?;
        let compiled = function.compiled.get()?.as_ref()?;
        Arc::ptr_eq(&compiled.group, &closure.group).then_some(function)
    }

    /// Returns the source of the file with that name, as errors refer to it.
    pub fn source(&self, file: &str) -> Option<&Arc<Source>> {
        self.areas
            .iter()
            .map(|area| &area.source)
            .find(|source| matches!(&source.name, SourceName::Given(name) if name == file))
    }

    /// Returns the title of the function's file.
    pub fn title(&self, function: &Function) -> &'static str {
        self.areas[function.area].title
    }

    /// Returns the compiled function, compiling it on first use; `None` indicates an internal defect.
    pub fn closure(&self, registry: &Registry, function: &Function) -> Option<Arc<Closure>> {
        function.compiled.get_or_init(|| compile::compile(self, registry, function).ok()).clone()
    }
}

impl Function {
    /// Returns its name with its namespace: `core/pick`, `stats/mean`.
    pub fn qualified(&self) -> String {
        if self.name.contains('/') { self.name.to_string() } else { format!("core/{}", self.name) }
    }

    /// Returns its declaration, reading it on first use.
    pub fn declaration(&self) -> &Declaration {
        self.declaration.get_or_init(|| crate::lang::meter::outside(|| Declaration::read(self.text)))
    }

    /// Returns the text of its definition.
    pub fn text(&self) -> &'static str {
        let span = self.declaration().form.span;
        self.text.get(span.start as usize..span.end as usize).unwrap_or(self.text)
    }
}
