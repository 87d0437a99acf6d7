//! Sequences: creating, iterating, mapping, filtering, reducing, ordering.
//!
//! Over realised collections everything here is eager; over lazy and infinite ones `map`, `filter` and related
//! functions return lazy sequences. A lazy result is a deferred call of a builtin: one *step*, which yields the next
//! item and defers the rest again. This module holds the helpers shared by its files.

pub mod cutting;
pub mod effects;
pub mod ends;
pub mod filtering;
pub mod grouping;
pub mod iteration;
pub mod joining;
pub mod making;
pub mod mapping;
mod merge;
pub mod ordering;
pub mod parting;
pub mod partly;
pub mod questions;
pub mod reducing;

use super::arguments::{count, take};
use crate::error::{Error, Outcome};
use crate::eval::rest_of;
use crate::machine::Machine;
use crate::operators::Operator;
use crate::value::Value;
use crate::value::list::List;
use crate::value::set::Set;
use crate::value::text::Text;
use crate::value::vector::Vector;
use crate::value::walk::Cursor;
use std::sync::Arc;

/// Prepends `head` to the sequence `tail`.
pub(super) fn before(head: Value, tail: Value) -> Value {
    Value::List(Arc::new(List::cons(head, tail)))
}

/// Prepends these items to the sequence `rest`.
pub(super) fn in_front(machine: &mut Machine, items: Vec<Value>, rest: Value) -> Outcome<Value> {
    machine.reserve_values(items.len() as u64 * 3)?;
    Ok(items.into_iter().rev().fold(rest, |tail, head| before(head, tail)))
}

/// Maximum number of characters that are passed one by one: finding one in a text takes longer.
const FEW: u64 = 32;

/// Advances a cursor by `count` items, in constant time if it supports random access.
pub(super) fn skip(machine: &mut Machine, cursor: &mut Cursor, count: u64) -> Outcome<()> {
    let by = count.min(cursor.remaining().unwrap_or(count));
    match cursor {
        Cursor::Items(_, at) | Cursor::Vector(_, at) => *at += by as usize,
        Cursor::Characters(text, at) if by > FEW => {
            machine.charge(text.finding_effort())?;
            let index = text.index_at(*at).saturating_add(usize::try_from(by).unwrap_or(usize::MAX));
            *at = text.place_of(index).unwrap_or(text.as_str().len());
        }
        Cursor::View(view) => {
            if !view.is_indexed() {
                machine.charge(by)?;
            }
            view.leave_out(by as usize);
        }
        Cursor::Range { next, step, left } => {
            *next = next.wrapping_add(step.wrapping_mul(by as i64));
            if *left != List::ENDLESS {
                *left -= by;
            }
        }
        _ => {
            for _ in 0..by {
                if cursor.next(machine)?.is_none() {
                    break;
                }
            }
        }
    }
    Ok(())
}

/// Maximum number of items that one step of a lazy sequence leaves out. A longer search goes on in another step, so that
/// what has been left out is released: a step keeps its sequence, to be tried again after an error.
pub(in crate::builtin) const LEFT_OUT: u64 = 256;

/// Returns the next item of each cursor, or `None` once any of them is exhausted.
pub(super) fn next_of_each(machine: &mut Machine, cursors: &mut [Cursor]) -> Outcome<Option<Vec<Value>>> {
    let mut items = Vec::with_capacity(cursors.len());
    for cursor in cursors {
        match cursor.next(machine)? {
            Some(item) => items.push(item),
            None => return Ok(None),
        }
    }
    Ok(Some(items))
}

/// Creates a cursor over each of the collections.
pub(super) fn cursors(machine: &mut Machine, collections: &mut [Value]) -> Outcome<Vec<Cursor>> {
    collections.iter_mut().map(|collection| machine.seq(std::mem::take(collection))).collect()
}

/// True if all of the collections are lazy; iterated in parallel, they have no known end.
pub(super) fn all_lazy(machine: &mut Machine, collections: &[Value]) -> bool {
    collections.iter().all(|collection| machine.is_lazy(collection))
}

/// Takes the number and the collection of `(take n coll)`, in either order.
pub(super) fn count_and_collection(arguments: &mut [Value]) -> Outcome<(u64, Value)> {
    if !is_number(&arguments[0]) && is_number(&arguments[1]) {
        arguments.swap(0, 1);
    }
    Ok((count_up(&arguments[0])?, take(arguments, 1)))
}

/// Returns the number of items to take or drop. Clojure counts down to zero, so a fractional count, such as half of
/// seven, is rounded up.
pub(super) fn count_up(number: &Value) -> Result<u64, Error> {
    match number {
        Value::Float(number) => count(&Value::Float(number.ceil())),
        number => count(number),
    }
}

/// True for a value that can be a count.
pub(super) fn is_number(value: &Value) -> bool {
    matches!(value, Value::Int(_) | Value::Float(_))
}

/// Converts a value to a non-empty sequence, or nil.
pub(super) fn as_seq(machine: &mut Machine, value: Value) -> Outcome<Value> {
    let mut value = value;
    loop {
        match value {
            Value::Nil => return Ok(Value::Nil),
            Value::List(list) => return Ok(if list.is_empty() { Value::Nil } else { Value::List(list) }),
            // A lazy sequence may realise to another lazy one; only the content of the last one counts.
            Value::Lazy(lazy) => {
                machine.charge(1)?;
                value = machine.realise(&lazy)?;
            }
            other => {
                machine.charge(1)?;
                return match machine.seq(other)? {
                    cursor if cursor.remaining() == Some(0) => Ok(Value::Nil),
                    cursor => rest_of(machine, cursor),
                };
            }
        }
    }
}

/// Replaces nil by the empty list, for `rest` and related functions.
pub(super) fn or_empty(sequence: Value) -> Value {
    if sequence.is_nil() { Value::list(Vec::new()) } else { sequence }
}

/// Returns the text of a string, or of a sequence of its characters, and the byte offset of the first of these.
fn characters(value: &Value) -> Option<(&Text, usize)> {
    match value {
        Value::Str(text) => Some((text, 0)),
        Value::List(list) => match &**list {
            List::View(view) => match (view.source(), view.bounds()) {
                (Value::Str(text), Some((from, _))) => Some((text, from)),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// Returns the number of items of a collection.
pub(super) fn count_of(machine: &mut Machine, value: Value) -> Outcome<u64> {
    if let Some((text, from)) = characters(&value) {
        machine.charge(text.finding_effort())?;
        return Ok((text.count() - text.index_at(from)) as u64);
    }
    let mut cursor = machine.seq(value)?;
    let mut counted = 0_u64;
    loop {
        match cursor.remaining() {
            Some(List::ENDLESS) => {
                return Err(Error::new("EndlessSequence", "an endless range has no count")
                    .suggest("take a part of it with `take`")
                    .into());
            }
            Some(left) => return Ok(i64::MAX.unsigned_abs().min(counted.saturating_add(left))),
            None if cursor.next(machine)?.is_some() => counted += 1,
            None => return Ok(counted),
        }
    }
}

/// Reduces the remaining items of a cursor.
pub(super) fn reduce_from(machine: &mut Machine, function: &Value, init: Value, mut cursor: Cursor) -> Outcome<Value> {
    let mut result = init;
    let operator = match function {
        Value::Builtin(builtin) => Operator::of(builtin, 2).filter(|operator| *operator != Operator::Equal),
        _ => None,
    };
    while let Some(item) = cursor.next(machine)? {
        if let Some(operator) = operator
            && let Some(answer) = machine.operate_on(operator, &result, &item)?
        {
            result = answer;
            continue;
        }
        result = machine.call2(function, result, item)?;
        if let Value::Reduced(inner) = &result {
            return Ok(inner.0.clone());
        }
    }
    Ok(result)
}

/// Adds an item to a collection, at the position natural for its type.
pub(super) fn add(machine: &mut Machine, collection: Value, item: Value) -> Outcome<Value> {
    machine.charge(1)?;
    match collection {
        Value::Vector(mut vector) => {
            change_vector(machine, &mut vector)?.push(item);
            Ok(Value::Vector(vector))
        }
        Value::Map(mut map) => {
            match item {
                Value::Map(more) => {
                    let map = Arc::make_mut(&mut map);
                    for (key, value) in more.iter() {
                        machine.charge(1)?;
                        machine.put(map, key.clone(), value.clone())?;
                    }
                }
                Value::Nil => {}
                // The entries of another map, as `seq` gives them.
                entries @ (Value::List(_) | Value::Lazy(_)) => {
                    let mut entries = machine.seq(entries)?;
                    while let Some(item) = entries.next(machine)? {
                        let (key, value) = entry(machine, &item)?;
                        machine.put(Arc::make_mut(&mut map), key, value)?;
                    }
                }
                item => {
                    let (key, value) = entry(machine, &item)?;
                    machine.put(Arc::make_mut(&mut map), key, value)?;
                }
            }
            Ok(Value::Map(map))
        }
        Value::Set(mut set) => {
            let member = machine.key(item)?;
            machine.add_member(Arc::make_mut(&mut set), member)?;
            Ok(Value::Set(set))
        }
        Value::Nil => Ok(Value::list(vec![item])),
        Value::List(list) if let Some(own) = list.metadata().cloned() => {
            Ok(Value::List(Arc::new(List::annotated_cons(item, Value::List(list), Some(own)))))
        }
        list @ (Value::List(_) | Value::Lazy(_)) => Ok(before(item, list)),
        other => Err(Error::expected("a collection", &other).into()),
    }
}

/// Makes a vector mutable in place: returns it if it is uniquely referenced, otherwise charges for a copy.
pub(super) fn change_vector<'v>(machine: &mut Machine, vector: &'v mut Arc<Vector>) -> Outcome<&'v mut Vector> {
    if vector.is_part() || Arc::get_mut(vector).is_none() {
        let cost = vector.change_cost();
        machine.reserve_values(cost)?;
        machine.charge(cost / 16)?;
        *vector = Arc::new(vector.changeable());
    } else {
        machine.grown(vector.len())?;
    }
    Ok(Arc::make_mut(vector))
}

/// Splits a pair into key and value.
pub(super) fn entry(machine: &mut Machine, pair: &Value) -> Outcome<(Value, Value)> {
    let items = match pair {
        Value::Vector(items) if items.len() == 2 => items,
        other => return Err(Error::expected("a pair of key and value, as `[k v]`", other).into()),
    };
    let (key, value) = (items.get(0).cloned().unwrap_or_default(), items.get(1).cloned().unwrap_or_default());
    Ok((machine.key(key)?, value))
}

/// Collects the items of a sequence into a set.
pub(super) fn set_of(machine: &mut Machine, value: Value) -> Outcome<Set> {
    let mut cursor = machine.seq(value)?;
    let mut set = Set::default();
    while let Some(item) = cursor.next(machine)? {
        let item = machine.key(item)?;
        set.insert(item);
    }
    Ok(set)
}
