//! The registry of everything that can be called by name: the tables of the language, those of the host, and the
//! prelude.

use super::discovery::index::{Index, Thing};
use super::entry::Entry;
use super::{ALIASES, Builtin, NAMESPACES, STEPS, TABLES, all, namespace_meant, syntax, time};
use crate::lang::prelude::{Function, Prelude};
use crate::lang::value::text::split_name;
use foldhash::quality::RandomState;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

/// A table of functions that a host adds to the language, with the title of its area.
pub type Table = (&'static str, &'static [Builtin]);

/// All builtins by name, and the prelude, which is loaded on first use.
pub struct Registry {
    added: Vec<Table>,
    by_name: HashMap<&'static str, &'static Builtin, RandomState>,
    prelude: OnceLock<Prelude>,
    index: OnceLock<Index>,
    is_plain: bool,
}

impl Default for Registry {
    fn default() -> Self {
        let mut by_name = HashMap::default();
        for builtin in all() {
            by_name.insert(builtin.name, builtin);
        }
        for (alias, name) in ALIASES.iter().chain(time::ALIASES).copied().flatten() {
            if let Some(builtin) = by_name.get(name).copied() {
                by_name.insert(alias, builtin);
            }
        }
        Registry { added: Vec::new(), by_name, prelude: OnceLock::new(), index: OnceLock::new(), is_plain: false }
    }
}

impl Registry {
    /// Creates a registry with the same functions but without shortcuts: the evaluator performs every call.
    pub fn plain() -> Registry {
        Registry { is_plain: true, ..Registry::default() }
    }

    /// Adds functions of the host.
    ///
    /// # Errors
    /// Returns a message naming the function if its name already exists or has no namespace.
    pub fn add(&mut self, (title, table): Table) -> Result<(), String> {
        for builtin in table {
            let name = builtin.name;
            if split_name(name).0.is_none() {
                return Err(format!(
                    "a function of the host needs a name with a namespace, such as `host/{name}`; `{name}` has none"
                ));
            }
            if self.find_any(name).is_some() || self.find_any_prelude(name).is_some() {
                return Err(format!("the language has a function `{name}` already; give the host's another name"));
            }
            self.by_name.insert(name, builtin);
        }
        self.added.push((title, table));
        Ok(())
    }

    /// True if the evaluator may inline common functions, with the same result.
    pub fn takes_shortcuts(&self) -> bool {
        !self.is_plain
    }

    /// Finds a builtin by name, alias or qualified name.
    pub fn find(&self, name: &str) -> Option<&'static Builtin> {
        if let Some(builtin) = self.by_name.get(name) {
            return Some(builtin);
        }
        // Emacs Lisp's names of Common Lisp functions.
        if let Some(plain) = name.strip_prefix("cl-") {
            return self.by_name.get(plain).copied();
        }
        self.by_name.get(&*plain(name)?).copied()
    }

    /// Returns the functions written in the language itself, indexed on first use.
    pub fn prelude(&self) -> &Prelude {
        self.prelude.get_or_init(|| crate::lang::meter::outside(Prelude::index))
    }

    /// Returns the search index of all [`entries`](Registry::entries), built on first use.
    pub fn index(&self) -> &Index {
        self.index.get_or_init(|| {
            crate::lang::meter::outside(|| {
                Index::new(self.entries().map(|entry| Thing {
                    place: "",
                    name: entry.name,
                    arguments: Vec::new(),
                    description: entry.doc,
                }))
            })
        })
    }

    /// Finds a public function of the prelude by name, alias or qualified name.
    pub fn find_prelude(&self, name: &str) -> Option<&Function> {
        self.find_any_prelude(name).filter(|function| !function.is_private)
    }

    /// Finds a function of the prelude, including private ones.
    pub fn find_any_prelude(&self, name: &str) -> Option<&Function> {
        let prelude = self.prelude();
        prelude.find(name).or_else(|| prelude.find(&plain(name)?))
    }

    /// Resolves the name of a library to a namespace; returns `None` if no such namespace exists.
    pub fn namespace(&self, name: &str) -> Option<String> {
        let meant = namespace_meant(name);
        let is_in = |known: &str| known.strip_prefix(meant).is_some_and(|rest| rest.starts_with('/'));
        let has_names = || self.by_name.keys().any(|known| is_in(known)) || self.prelude().names().any(is_in);
        (meant == "core" || has_names()).then(|| meant.to_string())
    }

    /// Returns the full name of a namespace of the language: `clojure.string` for `str`.
    pub fn library<'n>(&self, name: &'n str) -> &'n str {
        let is_full = |(from, to): &&(&'static str, &'static str)| *to == name && from.starts_with("clojure.");
        NAMESPACES.iter().find(is_full).map_or(name, |(from, _)| from)
    }

    /// Strips the namespace from a name if it denotes `core`; returns `None` for all other names.
    pub fn in_core<'n>(&self, name: &'n str) -> Option<&'n str> {
        let (namespace, base) = split_name(name);
        namespace.filter(|namespace| namespace_meant(namespace) == "core").map(|_| base)
    }

    /// Returns all namespaces that contain functions, sorted.
    pub fn namespaces(&self) -> Vec<&str> {
        let mut found: Vec<&str> =
            self.names().filter_map(|name| name.split_once('/')).map(|(space, _)| space).collect();
        found.retain(|space| space.starts_with(char::is_lowercase) && namespace_meant(space) == *space);
        found.push("core");
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Returns the names in a namespace of the language, without the namespace, sorted.
    pub fn names_in(&self, namespace: &str) -> Vec<&str> {
        let is_plain = |name: &&str| *name == "/" || !name.contains(['/', '.']);
        let mut names: Vec<&str> = if namespace == "core" {
            let macros = crate::lang::expand::macro_names().map(|name| -> &str { name });
            self.names().filter(is_plain).chain(macros).collect()
        } else {
            let base = split_name;
            self.names().map(base).filter(|(space, _)| *space == Some(namespace)).map(|(_, name)| name).collect()
        };
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Finds a builtin by name, including the steps of lazy sequences, which programs cannot name.
    pub fn find_any(&self, name: &str) -> Option<&'static Builtin> {
        let base = name.strip_prefix("core/").unwrap_or(name);
        self.find(name)
            .or_else(|| STEPS.iter().copied().flatten().copied().flatten().find(|step| step.name == base).copied())
    }

    /// Returns the names of all functions, including aliases.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let builtins = self.by_name.iter().filter(|(_, builtin)| !builtin.is_internal()).map(|(name, _)| *name);
        builtins.chain(self.prelude().names())
    }

    /// Returns all documented entries (forms, builtins, functions of the prelude) in the order of the reference.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let builtins = TABLES
            .iter()
            .chain(&self.added)
            .flat_map(|(area, table)| table.iter().map(|builtin| Entry::of(area, builtin)));
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
        let form = match crate::lang::expand::racket_loop(base) {
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

/// Normalizes a qualified name to the form used in the tables: resolves namespace aliases and omits `core`.
fn plain(name: &str) -> Option<Cow<'_, str>> {
    let (namespace, base) = name.split_once('/')?;
    let namespace = namespace_meant(namespace);
    Some(if namespace == "core" { Cow::Borrowed(base) } else { Cow::Owned(format!("{namespace}/{base}")) })
}
