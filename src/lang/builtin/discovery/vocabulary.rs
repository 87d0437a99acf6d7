//! What can be written in a session, as completion and menus need it: each name with its call.

use super::{TABLES, signature, summary};
use crate::lang::builtin::{Registry, syntax};
use crate::lang::error::Outcome;
use crate::lang::eval::Machine;
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
        let summary = tool.description.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        Word {
            name: format!("{}/{}", tool.server, tool.name),
            call: signature::call(tool),
            summary: summary.trim().to_string(),
        }
    }
}

/// The functions of the language under all their names, and its forms; sorted by name.
pub fn words(registry: &Registry) -> Vec<Word> {
    let functions = registry.names().filter_map(|name| {
        let builtin = registry.find(name)?;
        Some(word(name, builtin.arguments, builtin.doc))
    });
    let forms = syntax::TABLE.iter().map(|entry| word(entry.name, entry.arguments, entry.doc));
    let mut words: Vec<Word> = forms.chain(functions).collect();
    // A form hides a function of its name.
    words.sort_by(|one, other| one.name.cmp(&other.name));
    words.dedup_by(|later, earlier| later.name == earlier.name);
    words
}

/// The areas of the language in the order of the reference, each with what belongs to it.
pub fn areas() -> Vec<(&'static str, Vec<Word>)> {
    let forms = syntax::TABLE.iter().map(|entry| word(entry.name, entry.arguments, entry.doc)).collect();
    let mut areas: Vec<(&str, Vec<Word>)> = vec![("Forms", forms)];
    for (title, table) in TABLES {
        let builtins = table.iter().filter(|builtin| !builtin.is_internal());
        let words: Vec<Word> = builtins.map(|builtin| word(builtin.name, builtin.arguments, builtin.doc)).collect();
        match areas.iter_mut().find(|(known, _)| known == title) {
            Some((_, known)) => known.extend(words),
            None => areas.push((title, words)),
        }
    }
    areas.retain(|(_, words)| !words.is_empty());
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

fn word(name: &str, arguments: &[&str], doc: &str) -> Word {
    let summary = doc.lines().next().unwrap_or_default().to_string();
    Word { name: name.to_string(), call: call(name, arguments), summary }
}

/// `(map f) (map f coll & more)`
fn call(name: &str, arguments: &[&str]) -> String {
    let calls = arguments.iter().map(|list| {
        let inner = list.strip_prefix('[').and_then(|list| list.strip_suffix(']')).unwrap_or(list);
        format!("({name} {inner}").trim_end().to_string() + ")"
    });
    calls.collect::<Vec<_>>().join(" ")
}
