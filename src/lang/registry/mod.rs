//! The registry of everything that can be called by name: the library, the functions of the host, and the prelude.
//!
//! A registry is a plain table. [`Library`] describes its contents, and an engine fills it when it is built; the
//! evaluator knows no builtin by name.

mod prelude;

pub(crate) use prelude::File;
pub use prelude::{Declaration, Function, Prelude};

use crate::error::Outcome;
use crate::index::Index;
use crate::machine::Machine;
use crate::native::{Builtin, Native};
use crate::value::Value;
use crate::value::function::Closure;
use crate::value::pattern::Pattern;
use crate::value::text::split_name;
use foldhash::quality::RandomState;
use indexmap::IndexMap;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

/// Pairs of an alias and its target.
pub type Aliases = &'static [(&'static str, &'static str)];

/// A table of functions, with the title of its area.
pub type Table = (&'static str, &'static [Builtin]);

/// The title of the area of functions that the embedder added.
const HOST: &str = "Functions of the host";

/// One area of the library: a section of the reference.
#[derive(Clone, Copy)]
pub struct Area {
    /// Its title; empty for an area that declares aliases only.
    pub title: &'static str,
    /// Its builtins, in the order of the reference.
    pub table: &'static [Builtin],
    /// Other names of builtins of the library.
    pub aliases: Aliases,
    /// Builtins that programs cannot name: the steps of lazy sequences and the code of functions that builtins return.
    pub steps: &'static [&'static [&'static Builtin]],
    /// True if none of its builtins has an effect, or an answer that depends on anything but its arguments and what the
    /// functions among them do.
    pub is_pure: bool,
}

impl Area {
    /// Creates an area without aliases and steps.
    pub const fn new(title: &'static str, table: &'static [Builtin]) -> Area {
        Area { title, table, aliases: &[], steps: &[], is_pure: false }
    }

    /// Creates an area of builtins without effects, without aliases and steps.
    pub const fn pure(title: &'static str, table: &'static [Builtin]) -> Area {
        Area { is_pure: true, ..Area::new(title, table) }
    }

    /// Creates an area that declares aliases of builtins of other areas.
    pub const fn aliases(aliases: Aliases) -> Area {
        Area::new("", &[]).with_aliases(aliases)
    }

    /// Sets the aliases.
    pub const fn with_aliases(self, aliases: Aliases) -> Area {
        Area { aliases, ..self }
    }

    /// Sets the steps.
    pub const fn with_steps(self, steps: &'static [&'static [&'static Builtin]]) -> Area {
        Area { steps, ..self }
    }
}

/// The contents of a language: its builtins, and the functions by which the evaluator finds all other names.
pub struct Library {
    /// The builtins, in the order of the reference.
    pub areas: &'static [Area],
    /// Aliases of namespaces, such as `clojure.string` for `str`.
    pub namespaces: &'static [Aliases],
    /// Returns the value of a constant, such as `*ns*` or `math/PI`.
    pub constant: fn(&str) -> Option<Value>,
    /// Returns the value of the name of a type, such as `java.lang.String`.
    pub type_name: fn(&str) -> Option<Value>,
    /// Returns the function that a method name, such as `.area`, denotes if no builtin has that name.
    pub method: fn(&str) -> Option<Value>,
    /// Returns a dynamic name that is known without a definition, such as `*print-length*`, without its namespace, and
    /// its initial value.
    pub dynamic: fn(&str) -> Option<(&'static str, Value)>,
    /// Compiles a regex literal and charges for it.
    pub regex: fn(&mut Machine, &str) -> Outcome<Arc<Pattern>>,
    /// Indexes the functions that are written in the language itself.
    pub prelude: fn() -> Prelude,
    /// Compiles one of them; `None` indicates an internal defect.
    pub compile: fn(&Registry, &Function) -> Option<Arc<Closure>>,
}

/// All builtins by name, and the prelude, which is loaded on first use.
pub struct Registry {
    library: &'static Library,
    /// The functions that the embedder added, in the order of their registration.
    natives: IndexMap<&'static str, Arc<Native>, RandomState>,
    by_name: HashMap<&'static str, &'static Builtin, RandomState>,
    steps: HashMap<&'static str, &'static Builtin, RandomState>,
    /// The addresses of the builtins without effects.
    pure: HashSet<usize, RandomState>,
    prelude: OnceLock<Prelude>,
    /// The search index of the documentation, built on first use.
    pub(crate) index: OnceLock<Index>,
    /// The functions of namespaces by their names without the namespace, collected on first use.
    bare: OnceLock<HashMap<&'static str, Vec<&'static str>, RandomState>>,
    is_plain: bool,
}

impl Registry {
    /// Creates the registry of a library.
    ///
    /// # Errors
    /// Returns a message naming each alias of the library that has no target or is the name of something else.
    pub fn new(library: &'static Library) -> Result<Registry, String> {
        let mut by_name: HashMap<_, _, RandomState> = HashMap::default();
        for builtin in library.areas.iter().flat_map(|area| area.table) {
            by_name.insert(builtin.name, builtin);
        }
        let mut wrong = Vec::new();
        for (alias, name) in library.areas.iter().flat_map(|area| area.aliases) {
            match by_name.get(name).copied() {
                None => wrong.push(format!("the alias `{alias}` refers to `{name}`, which the library does not have")),
                Some(builtin) => {
                    if by_name.insert(alias, builtin).is_some() {
                        wrong.push(format!("the alias `{alias}` of `{name}` is already a name"));
                    }
                }
            }
        }
        if !wrong.is_empty() {
            return Err(wrong.join("; "));
        }
        let steps = library.areas.iter().flat_map(|area| area.steps).copied().flatten();
        let steps = steps.map(|step| (step.name, *step)).collect();
        let pure = library.areas.iter().filter(|area| area.is_pure);
        let pure = pure.flat_map(|area| area.table.iter().chain(area.steps.iter().copied().flatten().copied()));
        let pure = pure.map(|builtin| std::ptr::from_ref(builtin).addr()).collect();
        let (prelude, index, bare) = Default::default();
        let natives = IndexMap::default();
        Ok(Registry { library, natives, by_name, steps, pure, prelude, index, bare, is_plain: false })
    }

    /// Returns the registry without shortcuts: the evaluator performs every call, with the same results.
    pub fn plain(self) -> Registry {
        Registry { is_plain: true, ..self }
    }

    /// Adds a function of the embedder.
    ///
    /// # Errors
    /// Returns a message naming the function if its name already exists or has no namespace.
    pub fn add(&mut self, native: Native) -> Result<(), String> {
        let name = native.about.name;
        if split_name(name).0.is_none() {
            return Err(format!(
                "a function of the host needs a name with a namespace, such as `host/{name}`; `{name}` has none"
            ));
        }
        if self.find_any(name).is_some() || self.find_any_prelude(name).is_some() {
            return Err(format!("the language has a function `{name}` already; give the host's another name"));
        }
        self.by_name.insert(name, native.about);
        self.natives.insert(name, Arc::new(native));
        Ok(())
    }

    /// Returns the function of the embedder with this description; `None` for a builtin of the library.
    pub fn native(&self, about: &'static Builtin) -> Option<Arc<Native>> {
        self.natives.get(about.name).cloned()
    }

    /// True for a builtin without effects, whose answer depends on nothing but its arguments and what the functions among
    /// them do.
    pub fn is_pure(&self, builtin: &'static Builtin) -> bool {
        self.pure.contains(&std::ptr::from_ref(builtin).addr())
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
        self.by_name.get(&*self.plain_name(name)?).copied()
    }

    /// Returns the titles and tables of all areas: those of the library, then those of the host.
    pub fn areas(&self) -> impl Iterator<Item = Table> {
        let areas = self.library.areas.iter().map(|area| (area.title, area.table));
        areas.chain(self.natives.values().map(|native| (HOST, std::slice::from_ref(native.about))))
    }

    /// Returns the functions written in the language itself, indexed on first use.
    pub fn prelude(&self) -> &Prelude {
        self.prelude.get_or_init(|| crate::meter::outside(self.library.prelude))
    }

    /// Returns the compiled function of the prelude, compiling it on first use; `None` indicates an internal defect.
    pub fn compiled(&self, function: &Function) -> Option<Arc<Closure>> {
        function.compiled.get_or_init(|| (self.library.compile)(self, function)).clone()
    }

    /// Finds a public function of the prelude by name, alias or qualified name.
    pub fn find_prelude(&self, name: &str) -> Option<&Function> {
        self.find_any_prelude(name).filter(|function| !function.is_private)
    }

    /// Finds a function of the prelude, including private ones.
    pub fn find_any_prelude(&self, name: &str) -> Option<&Function> {
        let prelude = self.prelude();
        prelude.find(name).or_else(|| prelude.find(&self.plain_name(name)?))
    }

    /// Resolves the name of a library to a namespace; returns `None` if no such namespace exists.
    pub fn namespace(&self, name: &str) -> Option<String> {
        let meant = self.namespace_meant(name);
        let is_in = |known: &str| known.strip_prefix(meant).is_some_and(|rest| rest.starts_with('/'));
        let has_names = || self.by_name.keys().any(|known| is_in(known)) || self.prelude().names().any(is_in);
        (meant == "core" || has_names()).then(|| meant.to_string())
    }

    /// Returns the full name of a namespace of the language: `clojure.string` for `str`.
    pub fn full_name<'n>(&self, name: &'n str) -> &'n str {
        let is_full = |(from, to): &&(&'static str, &'static str)| *to == name && from.starts_with("clojure.");
        self.namespace_aliases().find(is_full).map_or(name, |(from, _)| from)
    }

    /// Resolves a namespace alias; returns any other name unchanged.
    pub fn namespace_meant<'n>(&self, name: &'n str) -> &'n str {
        self.namespace_aliases().find(|(from, _)| *from == name).map_or(name, |(_, to)| to)
    }

    fn namespace_aliases(&self) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
        self.library.namespaces.iter().copied().flatten()
    }

    /// Returns the value of a constant of the library.
    pub fn constant(&self, name: &str) -> Option<Value> {
        (self.library.constant)(name)
    }

    /// Returns the value of the name of a type.
    pub fn type_name(&self, name: &str) -> Option<Value> {
        (self.library.type_name)(name)
    }

    /// Returns a dynamic name that is known without a definition, without its namespace, and its initial value.
    pub fn dynamic(&self, name: &str) -> Option<(&'static str, Value)> {
        (self.library.dynamic)(name)
    }

    /// Returns the function that a method name, such as `.area`, denotes if no builtin has that name.
    pub fn method(&self, name: &str) -> Option<Value> {
        (self.library.method)(name)
    }

    /// Returns the function of the library that compiles a regex literal.
    pub fn regex(&self) -> fn(&mut Machine, &str) -> Outcome<Arc<Pattern>> {
        self.library.regex
    }

    /// Strips the namespace from a name if it denotes `core`; returns `None` for all other names.
    pub fn in_core<'n>(&self, name: &'n str) -> Option<&'n str> {
        let (namespace, base) = split_name(name);
        namespace.filter(|namespace| self.namespace_meant(namespace) == "core").map(|_| base)
    }

    /// Returns all namespaces that contain functions, sorted.
    pub fn namespaces(&self) -> Vec<&str> {
        let mut found: Vec<&str> =
            self.names().filter_map(|name| name.split_once('/')).map(|(space, _)| space).collect();
        found.retain(|space| space.starts_with(char::is_lowercase) && self.namespace_meant(space) == *space);
        found.push("core");
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Finds a builtin by name, including the steps of lazy sequences, which programs cannot name.
    pub fn find_any(&self, name: &str) -> Option<&'static Builtin> {
        let base = name.strip_prefix("core/").unwrap_or(name);
        self.find(name).or_else(|| self.steps.get(base).copied())
    }

    /// Returns the names of all functions, including aliases.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let builtins = self.by_name.iter().filter(|(_, builtin)| !builtin.is_internal()).map(|(name, _)| *name);
        builtins.chain(self.prelude().names())
    }

    /// Returns the qualified names of the functions that have this name in a namespace, one for each function, sorted:
    /// `str/join` for `join`. It is an alias if the function's own name is another one.
    pub fn in_namespaces(&self, base: &str) -> &[&'static str] {
        self.bare().get(base).map_or(&[], Vec::as_slice)
    }

    /// Returns whether a function has this as its own name, not as an alias.
    pub fn is_own_name(&self, name: &str) -> bool {
        let builtin = self.by_name.get(name).map(|builtin| builtin.name);
        let own = builtin.or_else(|| self.prelude().find(name).map(|function| function.name));
        own == Some(name)
    }

    /// Iterates over the names, without the namespace, for which [`Registry::in_namespaces`] returns functions.
    pub fn bare_names(&self) -> impl Iterator<Item = &'static str> {
        self.bare().keys().copied()
    }

    fn bare(&self) -> &HashMap<&'static str, Vec<&'static str>, RandomState> {
        self.bare.get_or_init(|| crate::meter::outside(|| self.collect_bare()))
    }

    fn collect_bare(&self) -> HashMap<&'static str, Vec<&'static str>, RandomState> {
        let builtins = self.by_name.iter().filter(|(_, builtin)| !builtin.is_internal());
        let builtins = builtins.map(|(name, builtin)| (*name, builtin.name));
        let prelude = self.prelude();
        let functions = prelude.by_name.iter().map(|(name, place)| (*name, &prelude.functions[*place]));
        let functions = functions.filter(|(_, function)| !function.is_private);
        // By the name without a namespace: the function's own name, whether the other one is an alias, and that.
        let mut found: HashMap<&'static str, Vec<(&'static str, bool, &'static str)>, RandomState> = HashMap::default();
        for (name, own) in builtins.chain(functions.map(|(name, function)| (name, function.name))) {
            if let (Some(namespace), base) = split_name(name)
                && namespace.starts_with(|first: char| first.is_ascii_lowercase())
            {
                found.entry(base).or_default().push((own, own != name, name));
            }
        }
        let distinct = |mut names: Vec<(&'static str, bool, &'static str)>| {
            names.sort_unstable();
            names.dedup_by_key(|(own, ..)| *own);
            let mut names: Vec<&'static str> = names.into_iter().map(|(.., name)| name).collect();
            names.sort_unstable();
            names
        };
        found.into_iter().map(|(base, names)| (base, distinct(names))).collect()
    }

    /// Normalizes a qualified name to the form used in the tables: resolves namespace aliases and omits `core`.
    fn plain_name<'n>(&self, name: &'n str) -> Option<Cow<'n, str>> {
        let (namespace, base) = name.split_once('/')?;
        let namespace = self.namespace_meant(namespace);
        Some(if namespace == "core" { Cow::Borrowed(base) } else { Cow::Owned(format!("{namespace}/{base}")) })
    }
}
