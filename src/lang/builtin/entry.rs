//! What is known of anything the language names, whether builtin, form or function of the prelude: the
//! one record that `doc`, `apropos`, `dir`, completion and the reference show.

use super::Builtin;
use super::syntax::SyntaxEntry;
use crate::lang::prelude::Function;

/// The documentation of one name.
pub struct Entry<'a> {
    /// Its name; those without a namespace belong to `core`.
    pub name: &'a str,
    /// Its argument lists, as in `[f coll]`.
    pub arguments: Vec<&'a str>,
    /// What it does, first in one line.
    pub doc: &'a str,
    /// Programs and what they print.
    pub examples: Vec<(&'a str, &'a str)>,
    /// The area that it belongs to.
    pub area: &'a str,
}

impl<'a> Entry<'a> {
    /// Of a builtin, unless only expanded code calls it.
    pub fn of(area: &'a str, builtin: &'a Builtin) -> Option<Entry<'a>> {
        (!builtin.is_internal()).then(|| Entry {
            name: builtin.name,
            arguments: builtin.arguments.to_vec(),
            doc: builtin.doc,
            examples: builtin.examples.to_vec(),
            area,
        })
    }

    /// Of a form of the language.
    pub fn of_form(form: &'a SyntaxEntry) -> Entry<'a> {
        Entry {
            name: form.name,
            arguments: form.arguments.to_vec(),
            doc: form.doc,
            examples: form.examples.to_vec(),
            area: "Forms",
        }
    }

    /// Of a function of the prelude.
    pub fn of_prelude(area: &'a str, function: &'a Function) -> Entry<'a> {
        let declaration = function.declaration();
        let examples = declaration.examples.iter().map(|(program, value)| (program.as_str(), value.as_str()));
        Entry {
            name: function.name,
            arguments: declaration.arguments.iter().map(String::as_str).collect(),
            doc: &declaration.doc,
            examples: examples.collect(),
            area,
        }
    }

    /// The namespace that it belongs to.
    pub fn namespace(&self) -> &'a str {
        crate::lang::value::text::split_name(self.name).0.unwrap_or("core")
    }

    /// What it does, in one line.
    pub fn summary(&self) -> &'a str {
        self.doc.lines().next().unwrap_or_default()
    }

    /// How it is called: `(map f coll)`, one for each argument list.
    pub fn calls(&self) -> impl Iterator<Item = String> {
        self.arguments.iter().map(|list| call_shape(self.name, list))
    }
}

/// How a function is called: `(f a b)` from the name `f` and the list `[a b]`.
pub(crate) fn call_shape(name: &str, list: &str) -> String {
    let inner = list.strip_prefix('[').and_then(|list| list.strip_suffix(']')).unwrap_or(list);
    format!("({name}{}{inner})", if inner.is_empty() { "" } else { " " })
}
