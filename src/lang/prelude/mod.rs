//! The prelude: functions that are best written in the language itself, in `stdlib/*.lisp`.
//!
//! Its text is part of the binary and is read when a name first turns up that nothing else knows; a
//! function is compiled when it is first used. Both happen once for an engine, outside of every
//! account: a program spends the same whether or not another one has come before it. A function of the
//! prelude sees builtins and the functions that stand before it, never what a session defines, so that
//! it means the same everywhere and no two functions hold each other.

mod compile;
mod declaration;

use crate::lang::builtin::Registry;
use crate::lang::form::Form;
use crate::lang::span::Source;
use crate::lang::value::function::Closure;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// The files in the order in which they are read: a function may use those of earlier files.
const FILES: &[(&str, &str)] = &[
    ("stdlib/maps.lisp", include_str!("../../../stdlib/maps.lisp")),
    ("stdlib/sequences.lisp", include_str!("../../../stdlib/sequences.lisp")),
    ("stdlib/stats.lisp", include_str!("../../../stdlib/stats.lisp")),
    ("stdlib/rows.lisp", include_str!("../../../stdlib/rows.lisp")),
    ("stdlib/numbers.lisp", include_str!("../../../stdlib/numbers.lisp")),
    ("stdlib/text.lisp", include_str!("../../../stdlib/text.lisp")),
];

/// All functions of the prelude.
pub struct Prelude {
    areas: Vec<Area>,
    functions: Vec<Function>,
    /// Places in `functions` by name and alias.
    by_name: HashMap<String, usize>,
}

/// One file.
struct Area {
    /// What it is about, as the first line of the file says.
    title: String,
    text: &'static str,
    source: Arc<Source>,
}

/// One function of the prelude, as it was declared.
pub struct Function {
    /// Its name; those without a namespace belong to `core`.
    pub name: String,
    /// Its argument lists, as in `[f coll]`.
    pub arguments: Vec<String>,
    /// What it does, first in one line.
    pub doc: String,
    /// Programs and what they print.
    pub examples: Vec<(String, String)>,
    /// Its other names.
    pub aliases: Vec<String>,
    /// True for what only other functions of the prelude use.
    pub is_private: bool,
    area: usize,
    place: usize,
    form: Form,
    compiled: OnceLock<Option<Arc<Closure>>>,
}

impl Prelude {
    /// Reads the files.
    pub(super) fn read() -> Prelude {
        let mut prelude = Prelude { areas: Vec::new(), functions: Vec::new(), by_name: HashMap::new() };
        for (file, text) in FILES {
            let first = text.lines().next().unwrap_or_default();
            let title = first.trim_start_matches([';', ' ']).to_string();
            prelude.areas.push(Area { title, text, source: Arc::new(Source::hidden(file)) });
            let forms = crate::lang::reader::read(text).expect("a test reads the prelude");
            for form in forms {
                prelude.add(form);
            }
        }
        prelude
    }

    fn add(&mut self, form: Form) {
        let function = declaration::read(form, self.areas.len() - 1, self.functions.len());
        let place = function.place;
        for name in function.aliases.iter().chain([&function.name]) {
            self.by_name.insert(name.clone(), place);
        }
        self.functions.push(function);
    }

    /// All functions that programs can name, in the order of the files.
    pub fn functions(&self) -> impl Iterator<Item = &Function> {
        self.functions.iter().filter(|function| !function.is_private)
    }

    /// All names that programs can use, aliases included.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let public = |place: usize| !self.functions[place].is_private;
        self.by_name.iter().filter(move |(_, place)| public(**place)).map(|(name, _)| name.as_str())
    }

    /// The function of that name or alias.
    pub fn find(&self, name: &str) -> Option<&Function> {
        self.find_any(name).filter(|function| !function.is_private)
    }

    /// The function of that name or alias, those included that only the prelude uses.
    pub fn find_any(&self, name: &str) -> Option<&Function> {
        self.by_name.get(name).map(|place| &self.functions[*place])
    }

    /// The function that this value is, if it is one of the prelude's own.
    pub fn declared(&self, closure: &Closure) -> Option<&Function> {
        let name = closure.group.lambdas[closure.index as usize].name.as_deref()?;
        let function = self.find_any(name)?;
        let compiled = function.compiled.get()?.as_ref()?;
        Arc::ptr_eq(&compiled.group, &closure.group).then_some(function)
    }

    /// The source that errors in a file of that name have.
    pub fn source(&self, file: &str) -> Option<&Arc<Source>> {
        self.areas.iter().map(|area| &area.source).find(|source| source.name == file)
    }

    /// What the file of a function is about.
    pub fn title(&self, function: &Function) -> &str {
        &self.areas[function.area].title
    }

    /// The text of a function.
    pub fn text(&self, function: &Function) -> &'static str {
        let span = function.form.span;
        self.areas[function.area].text.get(span.start as usize..span.end as usize).unwrap_or_default()
    }

    /// The function ready to be called, compiled when it is first asked for; `None` would be a defect.
    pub fn closure(&self, registry: &Registry, function: &Function) -> Option<Arc<Closure>> {
        function.compiled.get_or_init(|| compile::compile(self, registry, function).ok()).clone()
    }
}

impl Function {
    /// Its name with its namespace: `core/pick`, `stats/mean`.
    pub fn qualified(&self) -> String {
        if self.name.contains('/') { self.name.clone() } else { format!("core/{}", self.name) }
    }
}
