//! The names available in a session, each with its call, for completion and menus.

use super::{signature, summary};
use crate::builtin::entry::Entry;
use crate::error::Outcome;
use crate::foreign_text;
use crate::host::Tool;
use crate::machine::Machine;
use crate::native::call_shape;
use crate::registry::Registry;
use crate::value::Value;

/// A name that a program can use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The name.
    pub name: String,
    /// The call shape, as in `(map f coll)`; empty if the value is not a function.
    pub call: String,
    /// A one-line description, or a summary of the value.
    pub summary: String,
}

impl Word {
    /// Creates the word of a tool, under the name by which programs call it.
    pub fn of_tool(tool: &Tool) -> Word {
        Word {
            name: signature::call_name(tool),
            call: signature::call(tool),
            summary: foreign_text::lines(&tool.description).into_iter().next().unwrap_or_default(),
        }
    }
}

/// Returns the functions of the language under all their names, and its forms, sorted by name.
pub fn words(registry: &Registry) -> Vec<Word> {
    let named = registry.names().filter_map(|name| {
        let entry = registry.entry(name)?;
        Some(word(name, &entry))
    });
    let mut words: Vec<Word> = registry.entries().map(|entry| word(entry.name, &entry)).chain(named).collect();
    words.sort_by(|one, other| one.name.cmp(&other.name));
    words.dedup_by(|later, earlier| later.name == earlier.name);
    words
}

/// Returns the sections of the reference in order, each with its entries.
pub fn areas(registry: &Registry) -> Vec<(String, Vec<Word>)> {
    let mut areas: Vec<(String, Vec<Word>)> = Vec::new();
    for entry in registry.entries() {
        let word = word(entry.name, &entry);
        match areas.iter_mut().find(|(known, _)| known == entry.area) {
            Some((_, known)) => known.push(word),
            None => areas.push((entry.area.to_string(), vec![word])),
        }
    }
    areas
}

/// Returns the definitions of the session in order of their introduction.
///
/// # Errors
/// Halts if a resource limit is exceeded.
pub fn definitions(machine: &mut Machine) -> Outcome<Vec<Word>> {
    let bound: Vec<(String, Value)> =
        machine.core.globals.iter().map(|global| (global.name.to_string(), global.value.clone())).collect();
    let mut words = Vec::with_capacity(bound.len());
    for (name, value) in bound {
        machine.charge(1)?;
        let call = match &value {
            Value::Closure(closure) => {
                let arities = &closure.group.lambdas[closure.index as usize].arities;
                let lists: Vec<&str> = arities.iter().map(|arity| arity.parameters.as_str()).collect();
                call(&name, &lists)
            }
            _ => String::new(),
        };
        words.push(Word { name, call, summary: summary(machine, &value)? });
    }
    Ok(words)
}

fn word(name: &str, entry: &Entry<'_>) -> Word {
    Word { name: name.to_string(), call: call(name, &entry.arguments), summary: entry.summary().to_string() }
}

/// Formats the calls of a function, one per argument list: `(map f) (map f coll & more)`.
fn call(name: &str, arguments: &[&str]) -> String {
    arguments.iter().map(|list| call_shape(name, list)).collect::<Vec<_>>().join(" ")
}
