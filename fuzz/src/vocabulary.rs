//! The vocabulary of the language: every function and special form with its documented examples, split so that other
//! expressions can replace their arguments.

use super::engine;
use lispbox::lang::ArityRange;
use lispbox::lang::internal::form::Form;
use lispbox::lang::internal::reader::read;
use std::sync::OnceLock;

/// A function under one of its names.
pub struct Function {
    /// The name, qualified by its namespace if it has one.
    pub name: String,
    /// The range of accepted argument counts, if the registry records it.
    pub arity: Option<ArityRange>,
}

/// Returns all functions, sorted by name.
pub fn functions() -> &'static [Function] {
    static FUNCTIONS: OnceLock<Vec<Function>> = OnceLock::new();
    FUNCTIONS.get_or_init(|| {
        let registry = engine().registry();
        let mut names: Vec<&str> = registry.names().filter(|name| !names_a_clock(name)).collect();
        names.sort_unstable();
        names.dedup();
        let arity = |name| registry.find(name).map(|builtin| builtin.arity);
        names.into_iter().map(|name| Function { name: name.to_string(), arity: arity(name) }).collect()
    })
}

/// Returns true for functions that reveal elapsed time.
fn names_a_clock(name: &str) -> bool {
    name.contains("nanoTime")
}

/// A documented call: the text of its head, and the text of each argument.
pub type Example = Vec<&'static str>;

/// Returns the calls in the examples of all functions and special forms.
pub fn examples() -> &'static [Example] {
    static EXAMPLES: OnceLock<Vec<Example>> = OnceLock::new();
    EXAMPLES.get_or_init(|| {
        let entries: Vec<_> = engine().registry().entries().filter(|entry| entry.name != "time").collect();
        let programs = entries.into_iter().flat_map(|entry| entry.examples).map(|(program, _)| program);
        programs.flat_map(calls).collect()
    })
}

/// Returns the calls at the top level of a program.
fn calls(program: &'static str) -> Vec<Example> {
    let forms = read(program).unwrap_or_default();
    let text = |form: &Form| program.get(form.span.start as usize..form.span.end as usize);
    let call = |form: &Form| -> Option<Example> { form.as_list()?.iter().map(text).collect() };
    // The expansion of a prefix (`'x`, `@x`) has parts that do not occur in the text.
    let is_written = |form: &&Form| text(form).is_some_and(|text| text.starts_with('('));
    forms.iter().filter(is_written).filter_map(call).filter(|parts| !parts.is_empty()).collect()
}
