//! Metadata: a map attached to a collection, symbol, function or atom, which equality ignores.

use super::Machine;
use crate::error::{Error, Outcome};
use crate::heap::{CellKind, Notes, State};
use crate::native::{Builtin, Role};
use crate::value::function::Bound;
use crate::value::list::List;
use crate::value::map::{KIND, Map};
use crate::value::metadata::metadata;
use crate::value::vector::QUEUE;
use crate::value::{Annotated, Value};
use std::sync::Arc;

/// A function with metadata: the first two arguments are bound, the others are those of the call.
pub(crate) static ANNOTATED: Builtin =
    Builtin::new("annotated*", &["[f metadata & args]"], "A function with metadata.", &[], |machine, arguments| {
        let function = std::mem::take(&mut arguments[0]);
        machine.call(&function, &mut arguments[2..])
    })
    .with_role(Role::Annotated);

/// Returns the metadata of any value; that of atoms and lazy sequences is in the heap.
pub(crate) fn metadata_of(machine: &Machine, value: &Value) -> Option<Arc<Map>> {
    match value {
        Value::Cell(handle) | Value::Lazy(handle) => machine.core.heap.notes(handle)?.metadata.clone(),
        other => metadata(other),
    }
}

/// Returns the value with its metadata replaced.
///
/// # Errors
/// Returns `TypeError` if the value cannot carry metadata; halts if a resource limit is exceeded.
pub(crate) fn annotate(machine: &mut Machine, value: Value, metadata: Option<Arc<Map>>) -> Outcome<Value> {
    Ok(match value {
        Value::Vector(mut vector) => {
            machine.reserve_values(vector.len() as u64)?;
            machine.charge(vector.change_cost() / 16)?;
            let metadata = if vector.is_queue() { Some(of_queue(metadata)) } else { metadata };
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
        Value::Bound(bound) if bound.role() == Role::Annotated => {
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
/// Returns metadata that marks a vector as a queue.
pub(crate) fn of_queue(metadata: Option<Arc<Map>>) -> Arc<Map> {
    let mut all = metadata.map(|new| (*new).clone()).unwrap_or_default();
    all.insert(Value::keyword(QUEUE), Value::Bool(true));
    Arc::new(all)
}

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
