//! Documentation entries: one record type for builtins, special forms and prelude functions. `doc`, `apropos`, `dir`,
//! completion and the reference all read it.

use super::Builtin;
use super::syntax::SyntaxEntry;
use crate::lang::prelude::Function;

/// The documentation of one name.
pub struct Entry<'a> {
    /// Name; a name without a namespace belongs to `core`.
    pub name: &'a str,
    /// Argument lists, such as `[f coll]`.
    pub arguments: Vec<&'a str>,
    /// Documentation; the first line is a summary.
    pub doc: &'a str,
    /// Example programs, each with the output it prints.
    pub examples: Vec<(&'a str, &'a str)>,
    /// The section of the reference that the entry belongs to.
    pub area: &'a str,
}

impl<'a> Entry<'a> {
    /// Creates the entry of a builtin; `None` if the builtin is internal to macro expansions.
    pub fn of(area: &'a str, builtin: &'a Builtin) -> Option<Entry<'a>> {
        (!builtin.is_internal()).then(|| Entry {
            name: builtin.name,
            arguments: builtin.arguments.to_vec(),
            doc: builtin.doc,
            examples: builtin.examples.to_vec(),
            area,
        })
    }

    /// Creates the entry of a special form or macro of the language.
    pub fn of_form(form: &'a SyntaxEntry) -> Entry<'a> {
        Entry {
            name: form.name,
            arguments: form.arguments.to_vec(),
            doc: form.doc,
            examples: form.examples.to_vec(),
            area: "Forms",
        }
    }

    /// Creates the entry of a prelude function.
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

    /// Returns the namespace of the name, `core` by default.
    pub fn namespace(&self) -> &'a str {
        crate::lang::value::text::split_name(self.name).0.unwrap_or("core")
    }

    /// Returns the first line of the documentation.
    pub fn summary(&self) -> &'a str {
        self.doc.lines().next().unwrap_or_default()
    }

    /// Iterates over the call shapes, such as `(map f coll)`, one per argument list.
    pub fn calls(&self) -> impl Iterator<Item = String> {
        self.arguments.iter().map(|list| call_shape(self.name, list))
    }
}

/// Returns the call shape of a function: `(f a b)` from the name `f` and the list `[a b]`.
pub(crate) fn call_shape(name: &str, list: &str) -> String {
    let inner = list.strip_prefix('[').and_then(|list| list.strip_suffix(']')).unwrap_or(list);
    format!("({name}{}{inner})", if inner.is_empty() { "" } else { " " })
}
