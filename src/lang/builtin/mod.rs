//! The builtin functions of the language. Each is one table entry: name, argument lists, doc, examples, code.
//!
//! Arity errors, `doc`, `apropos`, completion, REFERENCE.md and the tests that run the examples all derive from these
//! entries. To add a builtin, add one entry to a table and one function next to it.
//! [`LIBRARY`] lists all tables; an engine builds its registry from it.

pub mod arguments;
mod arithmetic;
mod bits;
mod builders;
mod cells;
mod chance;
mod characters;
mod checks;
mod comparison;
mod conversions;
pub(crate) mod decimals;
mod describe;
pub(crate) mod dialects;
mod digits;
mod directives;
pub(crate) mod discovery;
pub(crate) mod dispatch;
mod dynamic;
mod edn;
mod ends;
pub(crate) mod entry;
mod equality;
mod exceptions;
mod expansion;
mod format;
mod formats;
mod fractions;
mod functions;
pub(crate) mod input;
mod json;
mod kinds;
mod library;
mod literals;
mod map_patterns;
mod maps;
mod matchers;
pub(crate) mod math;
mod metadata;
mod methods;
mod names;
pub(crate) mod namespaces;
mod numbers;
mod options;
pub(crate) mod ordered;
mod pages;
mod parallel;
mod primitives;
mod printing;
mod reals;
pub(crate) mod regex;
mod relations;
mod scalars;
mod search;
mod selectors;
pub(crate) mod sequences;
mod session;
mod sets;
pub mod settling;
mod strings;
pub mod syntax;
mod text;
pub(crate) mod time;
mod transducers;
pub(crate) mod transients;
pub(crate) mod types;
mod updates;
pub(crate) mod vars;
mod walking;
mod wrapping;

pub use library::LIBRARY;

/// Iterates over all builtins in the tables.
pub fn all() -> impl Iterator<Item = &'static crate::native::Builtin> {
    LIBRARY.areas.iter().flat_map(|area| area.table)
}
