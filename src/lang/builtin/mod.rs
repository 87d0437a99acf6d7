//! The builtin functions of the language. Each is one table entry: name, argument lists, doc, examples, code.
//!
//! Arity errors, `doc`, `apropos`, completion, REFERENCE.md and the tests that run the examples all derive from these
//! entries. To add a builtin, add one entry to a table and one function next to it.
//! [`LIBRARY`] lists all tables; an engine builds its registry from it.

pub mod arguments;
mod arithmetic;
mod bits;
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
mod ends;
pub mod entry;
mod equality;
mod exceptions;
mod expansion;
mod format;
mod formats;
mod fractions;
mod functions;
pub mod input;
mod json;
mod kinds;
mod library;
mod literals;
mod map_patterns;
mod maps;
mod matchers;
pub mod math;
mod metadata;
mod methods;
mod names;
pub mod namespaces;
mod numbers;
pub mod ordered;
mod parallel;
mod primitives;
mod printing;
mod reals;
pub mod regex;
mod relations;
mod scalars;
mod search;
mod selectors;
pub mod sequences;
mod session;
mod sets;
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
mod wrapping;

pub use crate::native::{ArityRange, Builtin};
pub use library::LIBRARY;

/// Iterates over all builtins in the tables.
pub fn all() -> impl Iterator<Item = &'static Builtin> {
    LIBRARY.areas.iter().flat_map(|area| area.table)
}
