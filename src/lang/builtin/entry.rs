//! Documentation entries: one record type for builtins, special forms and prelude functions. `doc`, `apropos`, `dir`,
//! completion and the reference all read it.

use super::syntax::{self, SyntaxEntry};
use crate::index::{Index, Indexed};
use crate::native::Builtin;
use crate::registry::{Function, Registry};

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
        crate::value::text::split_name(self.name).0.unwrap_or("core")
    }

    /// Returns the first line of the documentation.
    pub fn summary(&self) -> &'a str {
        self.doc.lines().next().unwrap_or_default()
    }

    /// Iterates over the call shapes, such as `(map f coll)`, one per argument list.
    pub fn calls(&self) -> impl Iterator<Item = String> {
        self.arguments.iter().map(|list| crate::native::call_shape(self.name, list))
    }
}

impl Registry {
    /// Returns the search index of all [`entries`](Registry::entries), built on first use.
    pub fn index(&self) -> &Index {
        self.index.get_or_init(|| {
            crate::meter::outside(|| {
                Index::new(self.entries().map(|entry| Indexed {
                    place: "",
                    name: entry.name,
                    arguments: Vec::new(),
                    description: entry.doc,
                }))
            })
        })
    }

    /// Returns all documented entries (forms, builtins, functions of the prelude) in the order of the reference.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let builtins = self.areas().flat_map(|(area, table)| table.iter().map(move |builtin| Entry::of(area, builtin)));
        let forms = syntax::all().map(Entry::of_form);
        let prelude = self.prelude();
        let functions = prelude.functions().map(|function| Entry::of_prelude(prelude.title(function), function));
        forms.chain(builtins.flatten()).chain(functions)
    }

    /// Returns the documentation of a name, alias or qualified name.
    pub fn entry(&self, name: &str) -> Option<Entry<'_>> {
        if let Some(builtin) = self.find(name) {
            return Entry::of("", builtin);
        }
        let base = name.strip_prefix("core/").unwrap_or(name);
        let form = match crate::expand::racket_loop(base) {
            Some(loop_form) => loop_form,
            None => base,
        };
        if let Some(form) = syntax::all().find(|known| known.name == form) {
            return Some(Entry::of_form(form));
        }
        let function = self.find_prelude(name)?;
        Some(Entry::of_prelude(self.prelude().title(function), function))
    }
}
