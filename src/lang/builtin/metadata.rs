//! Metadata: a map attached to a collection, symbol, function or atom, which equality ignores.

use super::arguments::take;
use crate::error::{Error, Outcome};
use crate::eval::{ANNOTATED, annotate, language_name, metadata_of, parameter_lists};
use crate::heap::CellKind;
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;
use crate::value::map::Map;
use crate::value::metadata::metadata;
use crate::value::print::shown_name;
use crate::value::text::{Name, split_name};
use std::sync::Arc;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "meta",
        &["[x]"],
        "The metadata of a collection, symbol, function, atom or var; nil if it has none.",
        &[
            ("(meta (with-meta [1] {:unit :eur}))", "{:unit :eur}"),
            ("(meta ^:sorted [1])", "{:sorted true}"),
            (
                "(def ^:private limit \"The most.\" 5) (meta #'limit)",
                "{:private true, :doc \"The most.\", :name limit}",
            ),
            ("(meta [1])", "nil"),
        ],
        |machine, arguments| Ok(metadata_now(machine, &arguments[0])?.map_or(Value::Nil, Value::Map)),
    ),
    Builtin::new(
        "with-meta",
        &["[x metadata]"],
        "The collection, symbol or function with the map as its metadata; nil removes it.",
        &[("(= [1] (with-meta [1] {:a 1}))", "true"), ("(meta (conj (with-meta [] {:a 1}) 2))", "{:a 1}")],
        with_meta,
    ),
    Builtin::new(
        "vary-meta",
        &["[x f & args]"],
        "The collection, symbol or function with `(f metadata args…)` as its metadata.",
        &[("(meta (vary-meta (with-meta [1] {:a 1}) assoc :b 2))", "{:a 1, :b 2}")],
        vary_meta,
    ),
    Builtin::new(
        "alter-meta!",
        &["[var f & args]"],
        "Applies `f` to the metadata of a var or atom; returns the new metadata.",
        &[("(def x 1) (alter-meta! #'x assoc :unit :eur) (:unit (meta #'x))", ":eur")],
        alter_meta,
    ),
    Builtin::new(
        "reset-meta!",
        &["[var metadata]"],
        "Replaces the metadata of a var or atom, and returns it.",
        &[("(def x 1) (reset-meta! #'x {:unit :eur}) (meta #'x)", "{:unit :eur}")],
        |machine, arguments| {
            let metadata = map_of_metadata(take(arguments, 1))?;
            replace(machine, &arguments[0], metadata)
        },
    ),
];

/// Builtins that implement the function values created in this module.
pub const STEPS: &[&Builtin] = &[&ANNOTATED];

/// Returns the metadata of a var: that of its definition, or of the documentation of a language function.
///
/// # Errors
/// Returns a halt if a limit is exceeded.
fn metadata_of_var(machine: &mut Machine, name: &Name) -> Outcome<Option<Arc<Map>>> {
    machine.charge(1)?;
    let name = name.as_str();
    if let Some(index) = machine.core.globals.find(name) {
        let global = machine.core.globals.get(index).clone();
        return machine.definition_metadata(name, &global).map(Some);
    }
    let registry = machine.core.registry.clone();
    let Some(entry) = registry.entry(shown_name(name)) else { return Ok(None) };
    let mut map = Map::default();
    map.insert(Value::keyword("arglists"), parameter_lists(machine, &entry.arguments)?);
    map.insert(Value::keyword("doc"), Value::string(entry.doc));
    if language_name(name).is_some() {
        map.insert(Value::keyword("macro"), Value::Bool(true));
    }
    let (namespace, base) = split_name(name);
    map.insert(Value::keyword("name"), Value::symbol(base));
    map.insert(Value::keyword("ns"), Value::symbol(registry.full_name(namespace.unwrap_or("core"))));
    Ok(Some(Arc::new(map)))
}

/// Returns the metadata of a value, or of the var or cell that it refers to.
fn metadata_now(machine: &mut Machine, value: &Value) -> Outcome<Option<Arc<Map>>> {
    match value {
        Value::Var(name) => metadata_of_var(machine, name),
        other => Ok(metadata_of(machine, other)),
    }
}

/// Replaces the metadata of a var or atom, and returns it.
fn replace(machine: &mut Machine, value: &Value, metadata: Option<Arc<Map>>) -> Outcome<Value> {
    match value {
        Value::Var(name) => machine.replace_metadata(name.as_str(), metadata.clone().unwrap_or_default())?,
        Value::Cell(cell) if cell.cell_kind() == CellKind::Atom => {
            super::cells::set_metadata(machine, cell, metadata.clone())?;
        }
        other => {
            return Err(Error::expected("an atom or a var such as `#'name`", other)
                .suggest("`(with-meta x {…})` and `(vary-meta x f)` give a collection with other metadata")
                .into());
        }
    }
    Ok(metadata.map_or(Value::Nil, Value::Map))
}

fn alter_meta(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let value = take(arguments, 0);
    let function = take(arguments, 1);
    arguments[1] = metadata_now(machine, &value)?.map_or(Value::Nil, Value::Map);
    let changed = machine.call(&function, &mut arguments[1..])?;
    let changed = map_of_metadata(changed)?;
    replace(machine, &value, changed)
}

fn with_meta(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let metadata = map_of_metadata(take(arguments, 1))?;
    let value = take(arguments, 0);
    annotate(machine, value, metadata)
}

/// Returns the value without its metadata.
///
/// # Errors
/// Halts if a resource limit is exceeded.
pub(super) fn without_metadata(machine: &mut Machine, value: Value) -> Outcome<Value> {
    if metadata(&value).is_some() { annotate(machine, value, None) } else { Ok(value) }
}

/// Returns an argument that is a map of metadata; `None` for nil.
///
/// # Errors
/// Returns `TypeError` if the value is neither a map nor nil.
pub(super) fn map_of_metadata(value: Value) -> Outcome<Option<Arc<Map>>> {
    match value {
        Value::Map(map) => Ok(Some(map)),
        Value::Nil => Ok(None),
        other => Err(Error::expected("a map of metadata", &other).into()),
    }
}

fn vary_meta(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let value = take(arguments, 0);
    let function = take(arguments, 1);
    arguments[1] = metadata_of(machine, &value).map_or(Value::Nil, Value::Map);
    let changed = machine.call(&function, &mut arguments[1..])?;
    with_meta(machine, &mut [value, changed])
}
