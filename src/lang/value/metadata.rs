//! Metadata that a value carries itself; that of atoms and lazy sequences is in the heap.

use super::Value;
use super::map::{Map, without_kind};
use super::vector::QUEUE;
use crate::native::Role;
use std::sync::Arc;

/// Returns the metadata stored in the value itself, without the keys that mark a map as a record and a
/// vector as a queue.
pub fn metadata(value: &Value) -> Option<Arc<Map>> {
    match value {
        Value::Map(map) => map.metadata().and_then(without_kind),
        Value::Vector(vector) if vector.is_queue() => {
            let mut plain = (**vector.metadata()?).clone();
            plain.remove(&Value::keyword(QUEUE));
            (!plain.is_empty()).then(|| Arc::new(plain))
        }
        other => all_metadata(other),
    }
}

/// Returns the metadata stored in the value itself, including those keys.
pub fn all_metadata(value: &Value) -> Option<Arc<Map>> {
    match value {
        Value::List(list) => list.metadata().cloned(),
        Value::Vector(vector) => vector.metadata().cloned(),
        Value::Map(map) => map.metadata().cloned(),
        Value::Set(set) => set.metadata().cloned(),
        Value::Annotated(symbol) => Some(symbol.metadata.clone()),
        Value::Bound(bound) if bound.role() == Role::Annotated => match bound.arguments.get(1) {
            Some(Value::Map(map)) => Some(map.clone()),
            _ => None,
        },
        _ => None,
    }
}
