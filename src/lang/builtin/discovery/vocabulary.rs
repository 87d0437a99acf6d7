//! What can be written in a session, as completion and menus need it: each name with its call.

use super::{signature, summary};
use crate::lang::builtin::Registry;
use crate::lang::builtin::entry::{Entry, call_shape};
use crate::lang::error::Outcome;
use crate::lang::eval::Machine;
use crate::lang::foreign_text;
use crate::lang::host::Tool;
use crate::lang::value::Value;

/// A name that a program can use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The name.
    pub name: String,
    /// How it is called, as in `(map f coll)`; empty for what is no function.
    pub call: String,
    /// What it is for, or what it holds, in one line.
    pub summary: String,
}

impl Word {
    /// A tool, under its qualified name.
    pub fn of_tool(tool: &Tool) -> Word {
        Word {
            name: foreign_text::qualified(&tool.server, &tool.name),
            call: signature::call(tool),
            summary: foreign_text::lines(&tool.description).into_iter().next().unwrap_or_default(),
        }
    }
}

/// The functions of the language under all their names, and its forms; sorted by name.
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

/// The areas of the language in the order of the reference, each with what belongs to it.
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

/// What the session defines, in the order in which the names came up.
///
/// # Errors
/// Limits.
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

/// `(map f) (map f coll & more)`
fn call(name: &str, arguments: &[&str]) -> String {
    arguments.iter().map(|list| call_shape(name, list)).collect::<Vec<_>>().join(" ")
}
