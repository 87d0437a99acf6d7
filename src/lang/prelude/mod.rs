//! The prelude: functions that are best written in the language itself, in `stdlib/*.lisp`.
//!
//! Its text is part of the binary. What it defines is looked up when a name first turns up that nothing
//! else knows; a function is read and compiled when it is first used. All of that happens once for an
//! engine, outside of every account: a program spends the same whether or not another one has come
//! before it. A function of the prelude sees builtins and the functions that stand before it, never
//! what a session defines, so that it means the same everywhere and no two functions hold each other.

mod compile;
mod declaration;

pub use declaration::Declaration;

use crate::lang::builtin::Registry;
use crate::lang::span::{Source, SourceName};
use crate::lang::value::function::Closure;
use foldhash::quality::RandomState;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// The files in the order in which they are read: a function may use those of earlier files.
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
    /// Places in `functions` by name and alias.
    by_name: HashMap<&'static str, usize, RandomState>,
}

/// One file.
struct Area {
    /// What it is about, as the first line of the file says.
    title: &'static str,
    source: Arc<Source>,
}

/// One function of the prelude.
pub struct Function {
    /// Its name; those without a namespace belong to `core`.
    pub name: &'static str,
    /// Its other names.
    pub aliases: Vec<&'static str>,
    /// True for what only other functions of the prelude use.
    pub is_private: bool,
    area: usize,
    place: usize,
    /// Its definition, and perhaps comments behind it.
    text: &'static str,
    declaration: OnceLock<Declaration>,
    compiled: OnceLock<Option<Arc<Closure>>>,
}

impl Prelude {
    /// Looks through the files for what they define. Definitions begin at the beginning of a line; they
    /// are read one by one when something asks for them.
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

    /// All functions that programs can name, in the order of the files.
    pub fn functions(&self) -> impl Iterator<Item = &Function> {
        self.functions.iter().filter(|function| !function.is_private)
    }

    /// All names that programs can use, aliases included.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let public = |place: usize| !self.functions[place].is_private;
        self.by_name.iter().filter(move |(_, place)| public(**place)).map(|(name, _)| *name)
    }

    /// The function of that name or alias, those included that only the prelude uses.
    pub fn find(&self, name: &str) -> Option<&Function> {
        self.by_name.get(name).map(|place| &self.functions[*place])
    }

    /// The function that this value is, if it is one of the prelude's own.
    pub fn declared(&self, closure: &Closure) -> Option<&Function> {
        let name = closure.group.lambdas[closure.index as usize].name.as_deref()?;
        let function = self.find(name)?;
        let compiled = function.compiled.get()?.as_ref()?;
        Arc::ptr_eq(&compiled.group, &closure.group).then_some(function)
    }

    /// The source that errors in a file of that name have.
    pub fn source(&self, file: &str) -> Option<&Arc<Source>> {
        self.areas
            .iter()
            .map(|area| &area.source)
            .find(|source| matches!(&source.name, SourceName::Given(name) if name == file))
    }

    /// What the file of a function is about.
    pub fn title(&self, function: &Function) -> &'static str {
        self.areas[function.area].title
    }

    /// The function ready to be called, compiled when it is first asked for; `None` would be a defect.
    pub fn closure(&self, registry: &Registry, function: &Function) -> Option<Arc<Closure>> {
        function.compiled.get_or_init(|| compile::compile(self, registry, function).ok()).clone()
    }
}

impl Function {
    /// Its name with its namespace: `core/pick`, `stats/mean`.
    pub fn qualified(&self) -> String {
        if self.name.contains('/') { self.name.to_string() } else { format!("core/{}", self.name) }
    }

    /// What its definition says.
    pub fn declaration(&self) -> &Declaration {
        self.declaration.get_or_init(|| crate::lang::meter::outside(|| Declaration::read(self.text)))
    }

    /// Its definition as it is written.
    pub fn text(&self) -> &'static str {
        let span = self.declaration().form.span;
        self.text.get(span.start as usize..span.end as usize).unwrap_or(self.text)
    }
}
