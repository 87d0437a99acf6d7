//! Namespaces as values: their names, as symbols. What a session defines is in the one namespace `user`.

use super::Builtin;
use super::absent::libraries;
use super::arguments::take;
use crate::lang::error::{Error, Outcome};
use crate::lang::eval::Machine;
use crate::lang::value::Value;

/// The entries of this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "ns-name",
        &["[ns]"],
        "The name of a namespace, which stands for the namespace here.",
        &[("(ns-name *ns*)", "user")],
        the,
    ),
    Builtin::new(
        "the-ns",
        &["[ns]"],
        "The namespace of that name; an error if there is none.",
        &[("(the-ns 'clojure.string)", "clojure.string")],
        the,
    ),
    Builtin::new(
        "find-ns",
        &["[name]"],
        "The namespace of that name; nil if there is none.",
        &[("(find-ns 'clojure.set)", "clojure.set"), ("(find-ns 'no.such)", "nil")],
        |machine, arguments| {
            let name = name(&arguments[0])?;
            Ok(if exists(machine, &name) { take(arguments, 0) } else { Value::Nil })
        },
    ),
    Builtin::new(
        "all-ns",
        &["[]"],
        "The namespaces that there are; `(dir name)` lists one.",
        &[("(contains? (set (all-ns)) 'str)", "true")],
        |machine, _| {
            let registry = machine.core.registry.clone();
            let names = registry.namespaces();
            machine.reserve_values(names.len() as u64)?;
            Ok(Value::list(names.into_iter().chain([SESSION]).map(Value::symbol).collect()))
        },
    ),
    Builtin::new(
        "create-ns",
        &["[name]"],
        "The name: a session is one namespace, and needs no other.",
        &[("(create-ns 'app)", "app")],
        |_, arguments| name(&arguments[0]).map(|_| take(arguments, 0)),
    ),
    Builtin::new("missing-library*", &["[name]"], "The error of a library that is not here.", &[], |_, arguments| {
        Err(libraries::missing(&name(&arguments[0])?).into())
    }),
];

/// The namespace of a session's definitions.
const SESSION: &str = "user";

/// What `*ns*` stands for; `None` for all other names.
pub fn constant(name: &str) -> Option<Value> {
    (name == "*ns*").then(|| Value::symbol(SESSION))
}

fn name(value: &Value) -> Outcome<String> {
    match value.as_symbol() {
        Some(name) => Ok(name.as_str().to_string()),
        None => Err(Error::expected("the name of a namespace, as a quoted symbol", value).into()),
    }
}

fn exists(machine: &Machine, name: &str) -> bool {
    name == SESSION || machine.core.registry.namespace(name).is_some()
}

fn the(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let name = name(&arguments[0])?;
    if exists(machine, &name) { Ok(take(arguments, 0)) } else { Err(libraries::missing(&name).into()) }
}
