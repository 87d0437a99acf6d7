//! Functions that are written in the language itself: their text, documentation and compiled code.

use crate::form::Form;
use crate::span::{Source, SourceName};
use crate::value::function::Closure;
use foldhash::quality::RandomState;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// All functions of the prelude.
pub struct Prelude {
    pub(crate) files: Vec<File>,
    pub(crate) functions: Vec<Function>,
    /// Indices in `functions`, by name and alias.
    pub(crate) by_name: HashMap<&'static str, usize, RandomState>,
}

/// One file.
pub(crate) struct File {
    /// The title: the first line of the file.
    pub(crate) title: &'static str,
    pub(crate) source: Arc<Source>,
}

/// One function of the prelude.
pub struct Function {
    /// Its name; names without a namespace belong to `core`.
    pub name: &'static str,
    /// Its aliases.
    pub aliases: Vec<&'static str>,
    /// True if only other functions of the prelude can use it.
    pub is_private: bool,
    pub(crate) file: usize,
    pub(crate) place: usize,
    /// The text of its definition, possibly followed by comments.
    pub(crate) text: &'static str,
    pub(crate) declaration: OnceLock<Declaration>,
    /// Reads the declaration in the text.
    pub(crate) read: fn(&str) -> Declaration,
    pub(crate) compiled: OnceLock<Option<Arc<Closure>>>,
}

impl Prelude {
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
        self.files
            .iter()
            .map(|area| &area.source)
            .find(|source| matches!(&source.name, SourceName::Given(name) if name == file))
    }

    /// Returns the title of the function's file.
    pub fn title(&self, function: &Function) -> &'static str {
        self.files[function.file].title
    }
}

impl Function {
    /// Returns its name with its namespace: `core/pick`, `stats/mean`.
    pub fn qualified(&self) -> String {
        if self.name.contains('/') { self.name.to_string() } else { format!("core/{}", self.name) }
    }

    /// Returns its declaration, reading it on first use.
    pub fn declaration(&self) -> &Declaration {
        self.declaration.get_or_init(|| crate::meter::outside(|| (self.read)(self.text)))
    }

    /// Returns the text of its definition.
    pub fn text(&self) -> &'static str {
        let span = self.declaration().form.span;
        self.text.get(span.start as usize..span.end as usize).unwrap_or(self.text)
    }
}

/// The declaration of a function:
/// `(defn name "doc" {:examples [["program" "value"] …] :aliases [other …] :arglists [[a b] …]} …)`; `defn-` defines a
/// function that no program can name.
pub struct Declaration {
    /// Its argument lists, as in `[f coll]`; derived from the code if none are declared.
    pub arguments: Vec<String>,
    /// Its documentation; the first line is a summary.
    pub doc: String,
    /// Example programs with their output.
    pub examples: Vec<(String, String)>,
    pub(crate) form: Form,
}
