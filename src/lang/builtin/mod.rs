//! The builtin functions of the language. Each is one table entry: name, argument lists, doc, examples, code.
//!
//! Arity errors, `doc`, `apropos`, completion, REFERENCE.md and the tests that run the examples all derive from these
//! entries. To add a builtin, add one entry to a table and one function next to it.

pub mod absent;
pub mod arguments;
mod arithmetic;
mod bits;
pub mod branching;
mod cells;
mod chance;
mod characters;
mod checks;
mod comparison;
mod conversions;
pub mod decimals;
mod describe;
pub mod dialects;
mod digits;
mod directives;
pub mod discovery;
pub mod dispatch;
mod dynamic;
mod edn;
pub mod entry;
mod exceptions;
mod expansion;
mod format;
mod formats;
mod fractions;
mod functions;
mod identity;
pub mod input;
mod json;
mod kinds;
mod literals;
mod maps;
mod matchers;
pub mod math;
mod metadata;
mod methods;
mod names;
pub mod namespaces;
mod numbers;
pub mod operators;
pub mod ordered;
mod patterns;
mod primitives;
mod printing;
mod reals;
pub mod regex;
pub mod registry;
mod relations;
mod scalars;
mod search;
mod selectors;
pub mod sequences;
mod session;
mod sets;
mod stacks;
mod strings;
pub mod syntax;
mod text;
pub mod time;
mod transducers;
pub mod transients;
pub mod types;
mod updates;
pub mod vars;
mod walking;
mod words;

pub(crate) use dynamic::known_dynamic;
pub use metadata::{all_metadata, annotate, metadata, metadata_of};
pub use registry::Registry;

use crate::lang::error::Outcome;
use crate::lang::eval::Machine;
use crate::lang::value::Value;

/// The implementation of a builtin. It may move its arguments out of the slice.
pub type Run = fn(&mut Machine, &mut [Value]) -> Outcome<Value>;

/// A builtin function of the language.
pub struct Builtin {
    /// Name; a name without a namespace belongs to `core`.
    pub name: &'static str,
    /// Argument lists, such as `[f coll]` and `[x & more]`.
    pub arguments: &'static [&'static str],
    /// Documentation; the first line is a summary.
    pub doc: &'static str,
    /// Example programs, each with the output it prints.
    pub examples: &'static [(&'static str, &'static str)],
    /// Accepted argument counts, computed from `arguments`.
    pub arity: ArityRange,
    /// The implementation.
    pub run: Run,
}

/// The set of argument counts that a function accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArityRange {
    /// Bit `n` is set if exactly `n` arguments are accepted.
    exact: u32,
    /// Lower bound of the variadic arity, if any: every count from here on is accepted.
    at_least: Option<u32>,
}

impl ArityRange {
    /// True if `count` arguments are accepted.
    #[inline]
    pub const fn accepts(self, count: usize) -> bool {
        if count < 32 && self.exact & (1 << count) != 0 {
            return true;
        }
        match self.at_least {
            Some(least) => count >= least as usize,
            None => false,
        }
    }

    /// Parses argument lists: names in brackets, with `&` before the rest parameter.
    pub(crate) const fn read(lists: &[&str]) -> ArityRange {
        let mut exact = 0;
        let mut at_least = None;
        let mut list = 0;
        while list < lists.len() {
            let text = lists[list].as_bytes();
            let mut count = 0_u32;
            let mut variadic = false;
            let mut in_word = false;
            let mut nesting = 0;
            let mut at = 0;
            while at < text.len() {
                let byte = text[at];
                if byte == b'[' || byte == b'{' {
                    nesting += 1;
                    if nesting == 2 && !variadic {
                        count += 1;
                    }
                    in_word = false;
                } else if byte == b']' || byte == b'}' {
                    nesting -= 1;
                    in_word = false;
                } else if byte == b' ' {
                    in_word = false;
                } else if !in_word {
                    in_word = true;
                    if byte == b'&' {
                        variadic = true;
                    } else if nesting == 1 && !variadic {
                        count += 1;
                    }
                }
                at += 1;
            }
            if variadic {
                at_least = match at_least {
                    Some(least) if least < count => Some(least),
                    _ => Some(count),
                };
            } else {
                exact |= 1 << count;
            }
            list += 1;
        }
        ArityRange { exact, at_least }
    }

    /// Describes the accepted counts in words: `1 or 2`, `at least 1`.
    pub fn describe(self) -> String {
        let mut parts: Vec<String> = (0..32).filter(|n| self.exact & (1 << n) != 0).map(|n| n.to_string()).collect();
        if let Some(least) = self.at_least {
            parts.push(format!("at least {least}"));
        }
        match parts.len() {
            0 => "none".to_string(),
            1 => parts.remove(0),
            _ => {
                let last = parts.pop().unwrap_or_default();
                format!("{} or {last}", parts.join(", "))
            }
        }
    }
}

impl Builtin {
    /// Creates a table entry and computes its arity.
    pub const fn new(
        name: &'static str,
        arguments: &'static [&'static str],
        doc: &'static str,
        examples: &'static [(&'static str, &'static str)],
        run: Run,
    ) -> Builtin {
        Builtin { name, arguments, doc, examples, arity: ArityRange::read(arguments), run }
    }

    /// Returns the namespace-qualified name: `core/count`, `json/parse`.
    pub fn qualified(&self) -> String {
        if self.name.len() > 1 && self.name.contains('/') {
            self.name.to_string()
        } else {
            format!("core/{}", self.name)
        }
    }

    /// True for an undocumented builtin that only macro expansions call.
    pub fn is_internal(&self) -> bool {
        self.name.ends_with('*') && self.examples.is_empty()
    }
}

/// The tables with their section titles, in the order of the reference.
pub const TABLES: &[(&str, &[Builtin])] = &[
    ("Making sequences", sequences::making::TABLE),
    ("Page after page", sequences::iteration::TABLE),
    ("Ends of sequences", sequences::ends::TABLE),
    ("Mapping", sequences::mapping::TABLE),
    ("Filtering", sequences::filtering::TABLE),
    ("Cutting", sequences::cutting::TABLE),
    ("Parting", sequences::parting::TABLE),
    ("Joining", sequences::joining::TABLE),
    ("Reducing", sequences::reducing::TABLE),
    ("Grouping", sequences::grouping::TABLE),
    ("Ordering", sequences::ordering::TABLE),
    ("Questions", sequences::questions::TABLE),
    ("Effects", sequences::effects::TABLE),
    ("Functions", functions::TABLE),
    ("Transducers", transducers::TABLE),
    ("Maps", maps::TABLE),
    ("Changing maps", updates::TABLE),
    ("Sets", sets::TABLE),
    ("Sorted maps and sets", ordered::TABLE),
    ("Relations", relations::TABLE),
    ("Ends and parts of collections", stacks::TABLE),
    ("Transients", transients::TABLE),
    ("Walking through nested data", walking::TABLE),
    ("Atoms and delays", cells::TABLE),
    ("Exceptions", exceptions::TABLE),
    ("Equality and truth", identity::TABLE),
    ("Kinds of scalars", scalars::TABLE),
    ("Kinds of collections and functions", kinds::TABLE),
    ("Multimethods", dispatch::methods::TABLE),
    ("Hierarchies", dispatch::hierarchy::TABLE),
    ("Protocols and records", dispatch::protocols::TABLE),
    ("Types", types::TABLE),
    ("Metadata", metadata::TABLE),
    ("Tagged literals", literals::TABLE),
    ("Keywords and symbols", names::TABLE),
    ("Patterns", patterns::TABLE),
    ("Arithmetic", numbers::TABLE),
    ("Comparing numbers", comparison::TABLE),
    ("Conversions", conversions::TABLE),
    ("Java's kinds of numbers", primitives::TABLE),
    ("Fractions", fractions::TABLE),
    ("Exact decimals", decimals::TABLE),
    ("Mathematics", math::TABLE),
    ("Rarer mathematics", reals::TABLE),
    ("Bits", bits::TABLE),
    ("Integers of 64 bits", words::TABLE),
    ("Chance and time", chance::TABLE),
    ("Dates from text and dates as text", time::PARSING),
    ("Kinds of times", time::KINDS),
    ("Earlier and later", time::MOVING),
    ("Lengths of time", time::LENGTHS),
    ("Questions about times", time::QUESTIONS),
    ("Parts of times", time::FIELDS),
    ("Java's classes of times", time::CLASSES),
    ("Java's formatters of times", time::FORMATTERS),
    ("Java's methods of times", time::METHODS),
    ("Java's adjusters of dates", time::ADJUSTERS),
    ("Strings", strings::TABLE),
    ("Searching and replacing", search::TABLE),
    ("Characters", characters::TABLE),
    ("Regular expressions", regex::TABLE),
    ("Matchers", matchers::TABLE),
    ("Patterns", format::TABLE),
    ("Patterns", directives::TABLE),
    ("Java's methods", methods::TABLE),
    ("Printing", printing::TABLE),
    ("EDN", edn::TABLE),
    ("Reading from a text", input::TABLE),
    ("JSON", json::TABLE),
    ("CSV", formats::csv::TABLE),
    ("HTML", formats::html::TABLE),
    ("Base64", formats::base64::TABLE),
    ("URLs", formats::url::TABLE),
    ("Digests", formats::sha256::TABLE),
    ("The shape of data", describe::TABLE),
    ("Other Lisps: lists", dialects::lists::TABLE),
    ("Other Lisps: association lists", dialects::alists::TABLE),
    ("Other Lisps: hash tables", dialects::tables::TABLE),
    ("Other Lisps: values, numbers, strings", dialects::other::TABLE),
    ("The session itself", session::TABLE),
    ("Parallel calls", branching::TABLE),
    ("Discovery", discovery::TABLE),
    ("Tests", checks::TABLE),
    ("Namespaces", namespaces::TABLE),
    ("Macros", expansion::TABLE),
    ("What the prelude stands on", selectors::TABLE),
    ("Vars", vars::TABLE),
    ("Dynamic scope", dynamic::TABLE),
];

/// Aliases of builtins: the spellings of other Lisps and Clojure's fully qualified names.
const ALIASES: &[&[(&str, &str)]] = &[
    sequences::making::ALIASES,
    sequences::ends::ALIASES,
    sequences::mapping::ALIASES,
    sequences::filtering::ALIASES,
    sequences::cutting::ALIASES,
    sequences::joining::ALIASES,
    sequences::reducing::ALIASES,
    sequences::ordering::ALIASES,
    sequences::questions::ALIASES,
    sequences::effects::ALIASES,
    functions::ALIASES,
    transducers::ALIASES,
    cells::ALIASES,
    exceptions::ALIASES,
    expansion::ALIASES,
    identity::ALIASES,
    kinds::ALIASES,
    maps::ALIASES,
    names::ALIASES,
    scalars::ALIASES,
    types::ALIASES,
    updates::ALIASES,
    vars::ALIASES,
    walking::ALIASES,
    numbers::ALIASES,
    comparison::ALIASES,
    conversions::ALIASES,
    primitives::ALIASES,
    decimals::ALIASES,
    math::ALIASES,
    reals::ALIASES,
    bits::ALIASES,
    words::ALIASES,
    chance::ALIASES,
    strings::ALIASES,
    search::ALIASES,
    characters::ALIASES,
    methods::ALIASES,
    regex::ALIASES,
    directives::ALIASES,
    printing::ALIASES,
    edn::ALIASES,
    json::ALIASES,
    formats::csv::ALIASES,
    formats::html::ALIASES,
    formats::base64::ALIASES,
    formats::url::ALIASES,
    formats::sha256::ALIASES,
    describe::ALIASES,
    dialects::ALIASES,
    dialects::lists::ALIASES,
    dialects::alists::ALIASES,
    dialects::tables::ALIASES,
    dialects::other::ALIASES,
];

/// Builtins that are in no table: the steps of lazy sequences and the code of functions that builtins return.
const STEPS: &[&[&[&Builtin]]] = &[
    sequences::STEPS,
    &[
        dispatch::methods::STEPS,
        dispatch::objects::STEPS,
        metadata::STEPS,
        vars::STEPS,
        functions::STEPS,
        checks::STEPS,
        transducers::STEPS,
        transducers::state::STEPS,
        transducers::steps::STEPS,
    ],
    &[branching::STEPS, selectors::STEPS],
];

/// Aliases of namespaces, as pairs of alias and namespace.
const NAMESPACES: &[(&str, &str)] = &[
    ("clojure.core", "core"),
    ("clojure.string", "str"),
    ("string", "str"),
    ("clojure.set", "set"),
    ("clojure.walk", "walk"),
    ("clojure.math", "math"),
    ("clojure.edn", "edn"),
    ("clojure.data", "data"),
    ("clojure.zip", "zip"),
    ("clojure.template", "core"),
    ("clojure.core.protocols", "core"),
    ("clojure.test", "core"),
    ("clojure.repl", "core"),
    ("Math", "math"),
    ("java.lang.Math", "math"),
    ("clojure.data.json", "json"),
    ("cheshire.core", "json"),
    ("cheshire", "json"),
    ("JSON", "json"),
    ("clojure.data.csv", "csv"),
    ("charred.api", "json"),
    ("jsonista.core", "json"),
];

/// Resolves a namespace alias; returns any other name unchanged.
pub(crate) fn namespace_meant(name: &str) -> &str {
    NAMESPACES.iter().chain(time::NAMESPACES).find(|(from, _)| *from == name).map_or(name, |(_, to)| to)
}

/// Iterates over all builtins in the tables.
pub fn all() -> impl Iterator<Item = &'static Builtin> {
    TABLES.iter().flat_map(|(_, table)| table.iter())
}

/// Returns the value of a constant: `*ns*`, `*in*`, a constant of a Java class or of `math/`; `None` for any other
/// name.
pub fn constant(name: &str) -> Option<Value> {
    let here = namespaces::constant(name).or_else(|| decimals::constant(name)).or_else(|| input::constant(name));
    here.or_else(|| math::constant(name)).or_else(|| time::constants::constant(name))
}
