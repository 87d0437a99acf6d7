//! Combining sequences: concatenated, interleaved, interposed, flattened.

use super::super::arguments::take;
use super::super::transducers::{self, state};
use super::mapping::flat_map;
use super::{all_lazy, before, cursors, in_front, next_of_each};
use crate::error::Outcome;
use crate::eval::rest_of;
use crate::machine::Machine;
use crate::native::{Builtin, Intrinsic};
use crate::value::Value;
use crate::value::list::List;
use crate::value::vector::Vector;
use crate::value::walk::Cursor;
use std::sync::Arc;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "concat",
        &["[& colls]"],
        "The items of all collections, one after another.",
        &[("(concat [1 2] '(3) nil [4])", "(1 2 3 4)"), ("(concat)", "()")],
        concat,
    )
    .with_intrinsic(Intrinsic::Concat),
    Builtin::new(
        "interleave",
        &["[& colls]"],
        "The first items of all collections, then the second ones, until the shortest ends.",
        &[("(interleave [:a :b] [1 2 3])", "(:a 1 :b 2)")],
        interleave,
    ),
    Builtin::new(
        "interpose",
        &["[separator]", "[separator coll]"],
        "The items with `separator` between them.",
        &[("(interpose :and [1 2 3])", "(1 :and 2 :and 3)")],
        interpose,
    ),
    Builtin::new(
        "flatten",
        &["[coll]"],
        "The items of all lists and vectors nested inside `coll`, in one sequence.",
        &[("(flatten [1 [2 [3 '(4)]]])", "(1 2 3 4)"), ("(flatten nil)", "()")],
        flatten,
    ),
];

/// Aliases from other Lisps.
pub const ALIASES: &[(&str, &str)] = &[("append", "concat"), ("nconc", "concat")];

/// The lazy sequence steps defined in this file.
pub const STEPS: &[&Builtin] = &[&LAZY_INTERLEAVE, &LAZY_FLATTEN];

fn concat(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if let [only] = arguments
        && let Value::List(_) | Value::Lazy(_) = only
    {
        return Ok(std::mem::take(only));
    }
    if let Some(at) = longest(arguments) {
        return extended(machine, arguments, at);
    }
    let collections = arguments.iter_mut().map(std::mem::take).collect();
    flat_map(machine, Value::Nil, Value::list(collections))
}

/// Minimum number of items of a collection to which others are added, instead of copying all items to one block.
const LONG: usize = 64;

/// Returns the index of a collection that is worth extending: one with many more items than all others together, or one
/// that has been extended before.
fn longest(collections: &[Value]) -> Option<usize> {
    let (mut at, mut most, mut all) = (0, 0, 0);
    for (place, collection) in collections.iter().enumerate() {
        let count = match collection {
            Value::Nil => 0,
            Value::Vector(vector) => vector.len(),
            Value::List(list) => match &**list {
                List::Items { .. } => list.as_slice().map_or(0, <[Value]>::len),
                List::View(view) => view.left()?,
                List::Cons(_) | List::Range { .. } => return None,
            },
            _ => return None,
        };
        all += count;
        if count > most {
            (at, most) = (place, count);
        }
    }
    let has_grown = || matches!(items_of(&collections[at]), Some((vector, ..)) if vector.is_tree());
    (most >= LONG && (8 * (all - most) <= most || has_grown())).then_some(at)
}

/// Returns the vector that holds the items of a collection, and the bounds of these.
fn items_of(collection: &Value) -> Option<(&Arc<Vector>, usize, usize)> {
    match collection {
        Value::Vector(vector) => Some((vector, 0, vector.len())),
        Value::List(list) => match &**list {
            List::View(view) => view.of_vector(),
            _ => None,
        },
        _ => None,
    }
}

/// Concatenates collections by adding the items of all others to those of the one at an index, as a tree that shares
/// structure: a chain of `concat` calls takes time proportional to what is added.
fn extended(machine: &mut Machine, collections: &mut [Value], at: usize) -> Outcome<Value> {
    let long = take(collections, at);
    let found = items_of(&long).map(|(vector, start, end)| (vector.clone(), start, end));
    let (vector, start) = match found {
        Some((vector, start, end)) if end == vector.len() => (vector, start),
        Some((vector, start, end)) => (Arc::new(Vector::part(vector, start, end)), 0),
        None => (Arc::new(Vector::from(machine.items(long.clone())?)), 0),
    };
    drop(long);
    if !vector.is_tree() {
        machine.reserve_values(vector.len() as u64)?;
        machine.charge(vector.len() as u64 / 16)?;
    }
    let mut all = Vector::growing(vector, start);
    for collection in collections[..at].iter_mut().rev() {
        for item in machine.items(std::mem::take(collection))?.into_iter().rev() {
            all.push_front(item);
        }
    }
    for collection in &mut collections[at + 1..] {
        let mut cursor = machine.seq(std::mem::take(collection))?;
        while let Some(item) = cursor.next(machine)? {
            all.push(item);
        }
    }
    rest_of(machine, Cursor::Vector(Arc::new(all), 0))
}

/// Concatenates the collections in `first`, followed by the collections in the sequence `last`.
pub fn concat_all(machine: &mut Machine, first: Vec<Value>, last: Value) -> Outcome<Value> {
    let collections = in_front(machine, first, last)?;
    flat_map(machine, Value::Nil, collections)
}

/// Concatenates `first` and `second`; the items of `second` are not copied.
pub(super) fn concat_two(machine: &mut Machine, first: Value, second: Value) -> Outcome<Value> {
    if machine.is_lazy(&first) {
        return flat_map(machine, Value::Nil, Value::list(vec![first, second]));
    }
    let items = machine.items(first)?;
    in_front(machine, items, second)
}

fn interleave(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.is_empty() {
        return Ok(Value::list(Vec::new()));
    }
    if all_lazy(machine, arguments) {
        return Ok(machine.lazy(&LAZY_INTERLEAVE, arguments.iter_mut().map(std::mem::take).collect()));
    }
    let mut cursors = cursors(machine, arguments)?;
    let mut out = Vec::new();
    while let Some(items) = next_of_each(machine, &mut cursors)? {
        for item in items {
            out.push(item);
            machine.grown(out.len())?;
        }
    }
    Ok(Value::list(out))
}

static LAZY_INTERLEAVE: Builtin =
    Builtin::new("lazy-interleave*", &["[& colls]"], "A step of a lazy `interleave`.", &[], lazy_interleave);

fn lazy_interleave(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let mut cursors = cursors(machine, arguments)?;
    let Some(items) = next_of_each(machine, &mut cursors)? else { return Ok(Value::Nil) };
    let mut rests = Vec::with_capacity(cursors.len());
    for cursor in cursors {
        rests.push(rest_of(machine, cursor)?);
    }
    let rest = machine.lazy(&LAZY_INTERLEAVE, rests);
    in_front(machine, items, rest)
}

fn interpose(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if let [_, collection] = arguments
        && !is_collection(collection)
    {
        arguments.swap(0, 1);
    }
    let transducer = transducers::stateful(&state::INTERPOSE, Value::Bool(false), take(arguments, 0));
    match arguments.len() {
        1 => Ok(transducer),
        _ => transducers::through(machine, &transducer, take(arguments, 1)),
    }
}

fn is_collection(value: &Value) -> bool {
    Cursor::over(value.clone()).is_some()
}

fn flatten(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let collection = take(arguments, 0);
    if !is_sequential(&collection) {
        return Ok(Value::list(Vec::new()));
    }
    if machine.is_lazy(&collection) {
        return Ok(machine.lazy(&LAZY_FLATTEN, vec![collection]));
    }
    let mut open = vec![machine.seq(collection)?];
    let mut out = Vec::new();
    while let Some(leaf) = next_leaf(machine, &mut open)? {
        out.push(leaf);
        machine.grown(out.len())?;
    }
    Ok(Value::list(out))
}

fn is_sequential(value: &Value) -> bool {
    matches!(value, Value::List(_) | Value::Vector(_) | Value::Lazy(_))
}

/// Returns the next item that is neither a list nor a vector. `open` is the stack of open sequences, innermost last.
fn next_leaf(machine: &mut Machine, open: &mut Vec<Cursor>) -> Outcome<Option<Value>> {
    while let Some(innermost) = open.last_mut() {
        match innermost.next(machine)? {
            Some(item) if is_sequential(&item) => {
                open.push(machine.seq(item)?);
                machine.grown_block(open)?;
            }
            Some(leaf) => return Ok(Some(leaf)),
            None => {
                open.pop();
            }
        }
    }
    Ok(None)
}

/// One step of a lazy `flatten`; its arguments are the open sequences, innermost last.
static LAZY_FLATTEN: Builtin =
    Builtin::new("lazy-flatten*", &["[& open]"], "A step of a lazy `flatten`.", &[], lazy_flatten);

fn lazy_flatten(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let mut open = cursors(machine, arguments)?;
    let Some(leaf) = next_leaf(machine, &mut open)? else { return Ok(Value::Nil) };
    let mut rests = Vec::with_capacity(open.len());
    for cursor in open {
        rests.push(rest_of(machine, cursor)?);
    }
    let rest = machine.lazy(&LAZY_FLATTEN, rests);
    Ok(before(leaf, rest))
}
