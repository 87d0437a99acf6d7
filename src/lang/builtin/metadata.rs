//! Metadata: a map attached to a collection, symbol, function or atom, which equality ignores.

use super::Builtin;
use super::arguments::take;
use crate::lang::error::{Error, Outcome};
use crate::lang::eval::Machine;
use crate::lang::heap::{CellKind, Notes, State};
use crate::lang::value::function::Bound;
use crate::lang::value::list::List;
use crate::lang::value::map::{KIND, Map, without_kind};
use crate::lang::value::{Annotated, Value};
use std::sync::Arc;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "meta",
        &["[x]"],
        "The metadata of a collection, a symbol, a function, an atom or a var; nil where there is none.",
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
        "The collection, symbol or function with that map as its metadata; nil takes it away.",
        &[("(= [1] (with-meta [1] {:a 1}))", "true"), ("(meta (conj (with-meta [] {:a 1}) 2))", "{:a 1}")],
        with_meta,
    ),
    Builtin::new(
        "vary-meta",
        &["[x f & args]"],
        "The collection, symbol or function with its metadata changed by `f`.",
        &[("(meta (vary-meta (with-meta [1] {:a 1}) assoc :b 2))", "{:a 1, :b 2}")],
        vary_meta,
    ),
    Builtin::new(
        "alter-meta!",
        &["[var f & args]"],
        "Changes the metadata of a definition by `f`, and returns it.",
        &[("(def x 1) (alter-meta! #'x assoc :unit :eur) (:unit (meta #'x))", ":eur")],
        alter_meta,
    ),
    Builtin::new(
        "reset-meta!",
        &["[var metadata]"],
        "Replaces the metadata of a definition, and returns it.",
        &[("(def x 1) (reset-meta! #'x {:unit :eur}) (meta #'x)", "{:unit :eur}")],
        |machine, arguments| {
            let metadata = map_of_metadata(take(arguments, 1))?;
            replace(machine, &arguments[0], metadata)
        },
    ),
];

/// Builtins that implement the function values created in this module.
pub const STEPS: &[&Builtin] = &[&ANNOTATED];

/// A function with metadata: the first two arguments are bound, the others are those of the call.
static ANNOTATED: Builtin =
    Builtin::new("annotated*", &["[f metadata & args]"], "A function with metadata.", &[], |machine, arguments| {
        let function = take(arguments, 0);
        machine.call(&function, &mut arguments[2..])
    });

/// Returns the metadata of any value; that of atoms and lazy sequences is in the heap.
pub fn metadata_of(machine: &Machine, value: &Value) -> Option<Arc<Map>> {
    match value {
        Value::Cell(handle) | Value::Lazy(handle) => machine.core.heap.notes(handle)?.metadata.clone(),
        other => metadata(other),
    }
}

/// Returns the metadata stored in the value itself, without the key that marks a map as a record.
pub fn metadata(value: &Value) -> Option<Arc<Map>> {
    match value {
        Value::Map(map) => map.metadata().and_then(without_kind),
        other => all_metadata(other),
    }
}

/// Returns the metadata stored in the value itself, including the key that marks a map as a record.
pub fn all_metadata(value: &Value) -> Option<Arc<Map>> {
    match value {
        Value::List(list) => list.metadata().cloned(),
        Value::Vector(vector) => vector.metadata().cloned(),
        Value::Map(map) => map.metadata().cloned(),
        Value::Set(set) => set.metadata().cloned(),
        Value::Annotated(symbol) => Some(symbol.metadata.clone()),
        Value::Bound(bound) if std::ptr::eq(bound.builtin, &ANNOTATED) => match bound.arguments.get(1) {
            Some(Value::Map(map)) => Some(map.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the value with its metadata replaced.
///
/// # Errors
/// Returns `TypeError` if the value cannot carry metadata; halts if a resource limit is exceeded.
pub fn annotate(machine: &mut Machine, value: Value, metadata: Option<Arc<Map>>) -> Outcome<Value> {
    Ok(match value {
        Value::Vector(mut vector) => {
            machine.reserve_values(vector.len() as u64)?;
            machine.charge(vector.change_cost() / 16)?;
            Arc::make_mut(&mut vector).set_metadata(metadata);
            Value::Vector(vector)
        }
        Value::Map(mut map) => {
            let metadata = with_kind(&map, metadata);
            Arc::make_mut(&mut map).set_metadata(metadata);
            Value::Map(map)
        }
        Value::Set(mut set) => {
            Arc::make_mut(&mut set).set_metadata(metadata);
            Value::Set(set)
        }
        sequence @ (Value::List(_) | Value::Lazy(_)) => {
            if machine.is_lazy(&sequence) {
                // A new lazy sequence over the same items: realising either realises the other.
                let handle = machine.core.heap.allocate(CellKind::Lazy, State::Done(sequence));
                machine.core.heap.annotate(&handle, Notes { metadata, ..Notes::default() })?;
                return Ok(Value::Lazy(handle));
            }
            if let Value::List(list) = &sequence
                && let List::Cons(cons) = &**list
            {
                return Ok(Value::List(Arc::new(List::annotated_cons(cons.head.clone(), cons.tail.clone(), metadata))));
            }
            let items = machine.items(sequence)?;
            Value::List(Arc::new(List::with_metadata(items, metadata)))
        }
        Value::Bound(bound) if std::ptr::eq(bound.builtin, &ANNOTATED) => {
            let function = bound.arguments.first().cloned().unwrap_or_default();
            return annotate(machine, function, metadata);
        }
        function if function.is_function() && !matches!(function, Value::Var(_)) => match metadata {
            Some(metadata) => {
                let arguments = vec![function, Value::Map(metadata)];
                Value::Bound(Arc::new(Bound { builtin: &ANNOTATED, arguments }))
            }
            None => function,
        },
        symbol @ (Value::Symbol(_) | Value::Annotated(_)) => match (symbol.as_symbol(), metadata) {
            (Some(name), Some(metadata)) => Value::Annotated(Arc::new(Annotated { name: name.clone(), metadata })),
            (Some(name), None) => Value::Symbol(name.clone()),
            (None, _) => symbol,
        },
        other => return Err(no_metadata(&other).into()),
    })
}

/// Returns the new metadata of a map, retaining the key that marks it as a record.
fn with_kind(map: &Map, metadata: Option<Arc<Map>>) -> Option<Arc<Map>> {
    let key = Value::keyword(KIND);
    match map.kind() {
        Some(kind) if !metadata.as_ref().is_some_and(|new| new.contains_key(&key)) => {
            let mut all = metadata.map(|new| (*new).clone()).unwrap_or_default();
            all.insert(key, Value::Map(kind.clone()));
            Some(Arc::new(all))
        }
        _ => metadata,
    }
}

#[cold]
fn no_metadata(value: &Value) -> Error {
    let error = Error::expected("a collection, a symbol or a function to carry metadata", value);
    match value {
        Value::Cell(_) => {
            error.suggest("an atom gets its metadata when it is made, `(atom x :meta {…})`, or from `alter-meta!`")
        }
        _ => error.suggest("a map `{:value x :note …}` keeps a note beside any value"),
    }
}

/// Returns the metadata of a value, or of the var or cell that it refers to.
fn metadata_now(machine: &mut Machine, value: &Value) -> Outcome<Option<Arc<Map>>> {
    match value {
        Value::Var(name) => machine.var_metadata(name),
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
