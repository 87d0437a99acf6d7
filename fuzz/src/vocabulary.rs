//! What the language names: every function and form with the examples of its documentation, taken apart so that
//! other expressions can take the place of their arguments.

use crate::engine;
use lispbox::lang::ArityRange;
use lispbox::lang::internal::form::Form;
use lispbox::lang::internal::reader::read;
use std::sync::OnceLock;

/// A function by one of its names.
pub struct Function {
    /// The name, with its namespace where it has one.
    pub name: String,
    /// How many arguments it takes, where the registry says so.
    pub arity: Option<ArityRange>,
}

/// All functions, in the order of their names.
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

/// True for what shows how long something took.
fn names_a_clock(name: &str) -> bool {
    name.contains("nanoTime")
}

/// A call as the documentation shows it: the head, and the text of each argument.
pub type Example = Vec<&'static str>;

/// The calls in the examples of all functions and forms.
pub fn examples() -> &'static [Example] {
    static EXAMPLES: OnceLock<Vec<Example>> = OnceLock::new();
    EXAMPLES.get_or_init(|| {
        let entries: Vec<_> = engine().registry().entries().filter(|entry| entry.name != "time").collect();
        let programs = entries.into_iter().flat_map(|entry| entry.examples).map(|(program, _)| program);
        programs.flat_map(calls).collect()
    })
}

/// The calls of a program's top level.
fn calls(program: &'static str) -> Vec<Example> {
    let forms = read(program).unwrap_or_default();
    let text = |form: &Form| program.get(form.span.start as usize..form.span.end as usize);
    let call = |form: &Form| -> Option<Example> { form.as_list()?.iter().map(text).collect() };
    // What a prefix stands for (`'x`, `@x`) has parts that are written nowhere.
    let is_written = |form: &&Form| text(form).is_some_and(|text| text.starts_with('('));
    forms.iter().filter(is_written).filter_map(call).filter(|parts| !parts.is_empty()).collect()
}
