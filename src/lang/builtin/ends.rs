//! The ends of collections, subvectors, and empty collections.

use super::arguments::{take, whole};
use super::sequences::change_vector;
use crate::error::{Error, Outcome};
use crate::eval::{annotate, of_queue};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;
use crate::value::map::{Map, without_kind};
use crate::value::metadata::metadata;
use crate::value::set::Set;
use crate::value::vector::Vector;
use std::sync::Arc;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "peek",
        &["[coll]"],
        "The last item of a vector or the first of a list or a queue; nil if it is empty.",
        &[
            ("(peek [1 2 3])", "3"),
            ("(peek '(1 2 3))", "1"),
            ("(peek (conj clojure.lang.PersistentQueue/EMPTY 1 2))", "1"),
        ],
        peek,
    ),
    Builtin::new(
        "pop",
        &["[coll]"],
        "A vector without its last item, a list without its first; error if empty. A queue, which begins as \
         `clojure.lang.PersistentQueue/EMPTY`, without its first item, if it has any.",
        &[("(pop [1 2 3])", "[1 2]"), ("(pop '(1 2 3))", "(2 3)")],
        pop,
    ),
    Builtin::new(
        "subvec",
        &["[vector start]", "[vector start end]"],
        "The items of a vector from `start` (inclusive) to `end` (exclusive; default: its end).",
        &[("(subvec [1 2 3 4] 1 3)", "[2 3]"), ("(subvec [1 2 3] 2)", "[3]")],
        subvec,
    ),
    Builtin::new(
        "empty",
        &["[coll]"],
        "An empty collection of the same type; nil if not a collection.",
        &[("(empty [1 2])", "[]"), ("(empty {:a 1})", "{}")],
        empty,
    ),
];

/// Returns the queue without items; `None` unless that is its name.
pub fn constant(name: &str) -> Option<Value> {
    matches!(name, "clojure.lang.PersistentQueue/EMPTY" | "PersistentQueue/EMPTY").then(empty_queue)
}

fn empty_queue() -> Value {
    let mut queue = Vector::from(Vec::new());
    queue.set_metadata(Some(of_queue(None)));
    Value::Vector(Arc::new(queue))
}

fn peek(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match take(arguments, 0) {
        Value::Vector(items) if items.is_queue() => Ok(items.get(0).cloned().unwrap_or_default()),
        Value::Vector(items) => {
            Ok(items.len().checked_sub(1).and_then(|last| items.get(last)).cloned().unwrap_or_default())
        }
        list @ (Value::List(_) | Value::Nil) => Ok(machine.seq(list)?.next(machine)?.unwrap_or_default()),
        other => Err(no_end(&other).into()),
    }
}

pub(super) fn pop(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match take(arguments, 0) {
        Value::Nil => Ok(Value::Nil),
        Value::Vector(mut items) if items.is_queue() => {
            change_vector(machine, &mut items)?.pop_first();
            Ok(Value::Vector(items))
        }
        Value::Vector(mut items) => {
            if items.is_empty() {
                return Err(nothing_to_pop("vector").into());
            }
            if items.is_part() {
                let left = items.len() - 1;
                return Ok(Value::Vector(Arc::new(Vector::part(items, 0, left))));
            }
            change_vector(machine, &mut items)?.pop();
            Ok(Value::Vector(items))
        }
        list @ Value::List(_) => {
            let mut cursor = machine.seq(list)?;
            match cursor.next(machine)? {
                Some(_) => Ok(match cursor.into_rest() {
                    Value::Nil => Value::list(Vec::new()),
                    rest => rest,
                }),
                None => Err(nothing_to_pop("list").into()),
            }
        }
        other => Err(no_end(&other).into()),
    }
}

#[cold]
fn nothing_to_pop(kind: &str) -> Error {
    Error::new("IllegalState", format!("cannot pop an empty {kind}")).suggest("ask `(empty? coll)` first")
}

#[cold]
fn no_end(value: &Value) -> Error {
    Error::expected("a vector or a list", value).suggest("`first`, `last` and `butlast` take any sequence")
}

fn subvec(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let items = match take(arguments, 0) {
        Value::Vector(items) => items,
        other => {
            return Err(Error::expected("a vector", &other)
                .suggest("`(vec coll)` makes a vector of a sequence")
                .into());
        }
    };
    // As in Java, NaN used as an index is zero.
    let place = |value: &Value| match value {
        Value::Float(number) if number.is_nan() => Ok(0),
        value => whole(value),
    };
    let start = place(&arguments[1])?;
    let end = match arguments.get(2) {
        Some(end) => place(end)?,
        None => items.len() as i64,
    };
    let bounds = (usize::try_from(start), usize::try_from(end));
    let (Ok(from), Ok(to)) = bounds else { return Err(outside(start, end, items.len()).into()) };
    if from > to || to > items.len() {
        return Err(outside(start, end, items.len()).into());
    }
    machine.charge(1)?;
    Ok(Value::Vector(Arc::new(Vector::part(items, from, to))))
}

#[cold]
fn outside(start: i64, end: i64, length: usize) -> Error {
    Error::new("IndexOutOfBounds", format!("{start} to {end} is outside of a vector of {length} items"))
        .suggest("`take` and `drop` accept any count")
}

fn empty(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    emptied(machine, &take(arguments, 0))
}

/// Returns the empty collection of the same type, with the same metadata.
pub(super) fn emptied(machine: &mut Machine, collection: &Value) -> Outcome<Value> {
    Ok(match collection {
        Value::Vector(items) if items.is_queue() => return annotate(machine, empty_queue(), metadata(collection)),
        vector @ Value::Vector(_) => return annotate(machine, Value::vector(Vec::new()), metadata(vector)),
        list @ (Value::List(_) | Value::Lazy(_)) => {
            return annotate(machine, Value::list(Vec::new()), metadata(list));
        }
        Value::Set(set) => {
            let mut empty = set.order().map_or_else(Set::default, |order| Set::sorted(order.comparator.clone()));
            empty.set_metadata(set.metadata().cloned());
            Value::Set(Arc::new(empty))
        }
        // A collection rebuilt from a record's entries is a record.
        Value::Map(map) if map.is_record() => Value::Map(Arc::new(Map::default().into_record())),
        Value::Map(map) => {
            let mut empty = map.order().map_or_else(Map::default, |order| Map::sorted(order.comparator.clone()));
            empty.set_metadata(map.metadata().and_then(without_kind));
            Value::Map(Arc::new(empty))
        }
        _ => Value::Nil,
    })
}
