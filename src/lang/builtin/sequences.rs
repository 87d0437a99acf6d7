//! Sequences: making, walking, mapping, filtering, reducing.
//!
//! Over realised collections everything here is eager; over lazy and endless ones `map`, `filter` and
//! their kin are lazy in turn. A lazy result is a call of the same builtin that has been put off.

use super::Builtin;
use super::arguments::{count, function_and_collection, integer, take};
use crate::lang::error::{Error, Outcome};
use crate::lang::eval::Machine;
use crate::lang::value::list::List;
use crate::lang::value::map::Map;
use crate::lang::value::set::Set;
use crate::lang::value::vector::Vector;
use crate::lang::value::walk::Cursor;
use crate::lang::value::{Reduced, Value};
use std::sync::Arc;

/// The entries of this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "first",
        &["[coll]"],
        "The first item, or nil.",
        &[("(first [1 2])", "1"), ("(first [])", "nil")],
        first,
    ),
    Builtin::new("second", &["[coll]"], "The second item, or nil.", &[("(second [1 2])", "2")], second),
    Builtin::new(
        "rest",
        &["[coll]"],
        "The items behind the first; the empty list if there are none.",
        &[("(rest [1 2 3])", "(2 3)"), ("(rest [])", "()")],
        rest,
    ),
    Builtin::new(
        "next",
        &["[coll]"],
        "The items behind the first; nil if there are none.",
        &[("(next [1 2])", "(2)"), ("(next [1])", "nil")],
        next,
    ),
    Builtin::new(
        "seq",
        &["[coll]"],
        "The collection as a sequence; nil if it is empty.",
        &[("(seq {:a 1})", "([:a 1])"), ("(seq [])", "nil")],
        seq,
    ),
    Builtin::new(
        "cons",
        &["[x coll]"],
        "A sequence of `x` and then the items of `coll`.",
        &[("(cons 1 [2 3])", "(1 2 3)")],
        cons,
    ),
    Builtin::new("list", &["[& items]"], "A list of the arguments.", &[("(list 1 2)", "(1 2)")], list),
    Builtin::new("vec", &["[coll]"], "A vector of the items of `coll`.", &[("(vec (range 3))", "[0 1 2]")], vec),
    Builtin::new("vector", &["[& items]"], "A vector of the arguments.", &[("(vector 1 2)", "[1 2]")], vector),
    Builtin::new(
        "count",
        &["[coll]"],
        "How many items there are; characters of a string, entries of a map.",
        &[("(count [1 2])", "2"), ("(count \"äö\")", "2"), ("(count nil)", "0")],
        count_items,
    ),
    Builtin::new(
        "nth",
        &["[coll index]", "[coll index default]"],
        "The item at an index, from 0; an error outside, unless a default is given.",
        &[("(nth [5 6] 1)", "6"), ("(nth [5 6] 9 :none)", ":none")],
        nth,
    ),
    Builtin::new(
        "map",
        &["[f coll]", "[f coll & colls]"],
        "What `f` makes of each item; of several collections, of their items side by side, as long as all last.",
        &[("(map inc [1 2])", "(2 3)"), ("(map + [1 2] [10 20])", "(11 22)"), ("(map [1 2] inc)", "(2 3)")],
        map,
    ),
    Builtin::new(
        "filter",
        &["[pred coll]"],
        "The items for which `pred` is true.",
        &[("(filter odd? [1 2 3])", "(1 3)"), ("(filter [{:a 1} {}] :a)", "({:a 1})")],
        filter,
    ),
    Builtin::new(
        "reduce",
        &["[f coll]", "[f init coll]"],
        "`f` of the result so far and each item in turn; `(reduced x)` ends it.",
        &[("(reduce + [1 2 3])", "6"), ("(reduce conj [] '(1 2))", "[1 2]")],
        reduce,
    ),
    Builtin::new(
        "into",
        &["[to from]"],
        "Adds each item of `from` to the collection `to`.",
        &[("(into [1] '(2 3))", "[1 2 3]"), ("(into {} [[:a 1]])", "{:a 1}")],
        into,
    ),
    Builtin::new(
        "conj",
        &["[coll & items]"],
        "Adds items where it is natural: at the end of a vector, before a list, into a map or set.",
        &[("(conj [1] 2)", "[1 2]"), ("(conj '(1) 2)", "(2 1)"), ("(conj {:a 1} [:b 2])", "{:a 1, :b 2}")],
        conj,
    ),
    Builtin::new(
        "range",
        &["[]", "[end]", "[start end]", "[start end step]"],
        "Numbers from `start` (0) up to but not including `end`, by `step` (1); without an end, for ever.",
        &[("(range 3)", "(0 1 2)"), ("(range 1 10 3)", "(1 4 7)"), ("(take 2 (range))", "(0 1)")],
        range,
    ),
    Builtin::new(
        "take",
        &["[n coll]"],
        "The first `n` items.",
        &[("(take 2 [1 2 3])", "(1 2)"), ("(take [1 2 3] 2)", "(1 2)")],
        take_items,
    ),
    Builtin::new(
        "reduced",
        &["[x]"],
        "Ends the reduction that it is returned to, with the value `x`.",
        &[("(reduce (fn [a x] (if (> x 2) (reduced a) (+ a x))) 0 (range))", "3")],
        reduced,
    ),
    Builtin::new("for*", &["[f coll]"], "What `for` expands to.", &[], for_star),
    Builtin::new("doseq*", &["[f coll]"], "What `doseq` expands to.", &[], doseq_star),
    Builtin::new("nthrest*", &["[coll n]"], "What `& rest` in a pattern expands to.", &[], nthrest_star),
    Builtin::new("lazy-seq*", &["[f]"], "What `lazy-seq` expands to.", &[], lazy_seq_star),
];

fn first(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let mut cursor = machine.seq(take(arguments, 0))?;
    Ok(cursor.next(machine)?.unwrap_or_default())
}

fn second(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let mut cursor = machine.seq(take(arguments, 0))?;
    cursor.next(machine)?;
    Ok(cursor.next(machine)?.unwrap_or_default())
}

/// The sequence behind the first item.
fn behind_first(machine: &mut Machine, collection: Value) -> Outcome<Value> {
    let mut cursor = machine.seq(collection)?;
    if let Cursor::Vector(vector, _) = &cursor {
        machine.reserve_values(vector.len() as u64)?;
        machine.charge(vector.len() as u64 / 16)?;
    }
    Ok(match cursor.next(machine)? {
        Some(_) => cursor.into_rest(),
        None => Value::Nil,
    })
}

fn rest(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match behind_first(machine, take(arguments, 0))? {
        Value::Nil => Ok(Value::list(Vec::new())),
        rest @ (Value::List(_) | Value::Lazy(_)) => Ok(rest),
        other => as_seq(machine, other).map(|seq| if seq.is_nil() { Value::list(Vec::new()) } else { seq }),
    }
}

fn next(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let rest = behind_first(machine, take(arguments, 0))?;
    as_seq(machine, rest)
}

/// A value as a sequence that is not empty, or nil.
pub(super) fn as_seq(machine: &mut Machine, value: Value) -> Outcome<Value> {
    match value {
        Value::Nil => Ok(Value::Nil),
        Value::List(list) => Ok(if list.is_empty() { Value::Nil } else { Value::List(list) }),
        Value::Lazy(lazy) => {
            let mut current = machine.realise(&lazy)?;
            // Each layer was realised by the one before; only the last one's content counts.
            while let Value::Lazy(inner) = &current {
                machine.charge(1)?;
                let inner = inner.clone();
                current = machine.realise(&inner)?;
            }
            as_seq(machine, current)
        }
        other => {
            let items = machine.items(other)?;
            Ok(if items.is_empty() { Value::Nil } else { Value::list(items) })
        }
    }
}

fn seq(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    as_seq(machine, take(arguments, 0))
}

fn cons(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (head, tail) = (take(arguments, 0), take(arguments, 1));
    let tail = match tail {
        Value::List(_) | Value::Lazy(_) | Value::Nil => tail,
        other => as_seq(machine, other)?,
    };
    Ok(Value::List(Arc::new(List::cons(head, tail))))
}

fn list(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::list(arguments.iter_mut().map(std::mem::take).collect()))
}

fn vec(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match take(arguments, 0) {
        vector @ Value::Vector(_) => Ok(vector),
        other => Ok(Value::vector(machine.items(other)?)),
    }
}

fn vector(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::vector(arguments.iter_mut().map(std::mem::take).collect()))
}

/// How many items a collection has.
pub(super) fn count_of(machine: &mut Machine, value: Value) -> Outcome<u64> {
    if let Value::Str(text) = &value {
        machine.charge(text.as_str().len() as u64 / 64)?;
        return Ok(text.as_str().chars().count() as u64);
    }
    let mut cursor = machine.seq(value)?;
    let mut counted = 0;
    loop {
        match cursor.remaining() {
            Some(List::ENDLESS) => {
                return Err(Error::new("EndlessSequence", "an endless range has no count")
                    .suggest("take a part of it with `take`")
                    .into());
            }
            Some(left) => return Ok(counted + left),
            None if cursor.next(machine)?.is_some() => counted += 1,
            None => return Ok(counted),
        }
    }
}

fn count_items(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    count_of(machine, take(arguments, 0)).map(|count| Value::Int(count as i64))
}

fn nth(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if let (Value::Int(_), false) = (&arguments[0], matches!(arguments[1], Value::Int(_))) {
        arguments.swap(0, 1);
    }
    let index = integer(&arguments[1])?;
    let default = arguments.get_mut(2).map(std::mem::take);
    let found = match (&arguments[0], usize::try_from(index)) {
        (_, Err(_)) => None,
        (Value::Vector(vector), Ok(at)) => vector.get(at).cloned(),
        (Value::List(list), Ok(at)) if list.as_slice().is_some() => {
            list.as_slice().and_then(|items| items.get(at)).cloned()
        }
        (_, Ok(at)) => {
            let mut cursor = machine.seq(take(arguments, 0))?;
            if let Cursor::Range { next, step, left } = &mut cursor {
                let inside = (at as u64) < *left;
                return match (inside, default) {
                    (true, _) => Ok(Value::Int(next.wrapping_add(step.wrapping_mul(index)))),
                    (false, Some(default)) => Ok(default),
                    (false, None) => Err(out_of_bounds(index).into()),
                };
            }
            let mut found = cursor.next(machine)?;
            for _ in 0..at {
                if found.is_none() {
                    break;
                }
                found = cursor.next(machine)?;
            }
            found
        }
    };
    match found.or(default) {
        Some(value) => Ok(value),
        None if arguments[0].is_nil() => Ok(Value::Nil),
        None => Err(out_of_bounds(index).into()),
    }
}

#[cold]
fn out_of_bounds(index: i64) -> Error {
    Error::new("IndexOutOfBounds", format!("index {index} is outside of the collection"))
        .suggest("give a default as third argument, or use `get`")
}

fn map(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.len() == 2 {
        let (function, collection) = function_and_collection(arguments);
        if machine.is_lazy(&collection) {
            return Ok(machine.lazy(&LAZY_MAP, vec![function, collection]));
        }
        return map_one(machine, &function, collection);
    }
    let function = take(arguments, 0);
    let collections: Vec<Value> = arguments[1..].iter_mut().map(std::mem::take).collect();
    let mut all_lazy = true;
    for collection in &collections {
        all_lazy &= machine.is_lazy(collection);
    }
    if all_lazy {
        return Ok(machine.lazy(&LAZY_MAP, [vec![function], collections].concat()));
    }
    let mut cursors =
        collections.into_iter().map(|collection| machine.seq(collection)).collect::<Outcome<Vec<Cursor>>>()?;
    let mut out = Vec::new();
    while let Some(mut items) = next_of_each(machine, &mut cursors)? {
        out.push(machine.call(&function, &mut items)?);
        machine.grown(out.len())?;
    }
    Ok(Value::list(out))
}

fn map_one(machine: &mut Machine, function: &Value, collection: Value) -> Outcome<Value> {
    let mut cursor = machine.seq(collection)?;
    let count = cursor.remaining();
    if let Some(count) = count {
        machine.reserve_values(count)?;
    }
    let mut out = Vec::with_capacity(count.map_or(0, |count| count.min(1 << 24) as usize));
    while let Some(item) = cursor.next(machine)? {
        out.push(machine.call1(function, item)?);
        machine.grown(out.len())?;
    }
    Ok(Value::list(out))
}

/// The next item of each cursor, while all last.
fn next_of_each(machine: &mut Machine, cursors: &mut [Cursor]) -> Outcome<Option<Vec<Value>>> {
    let mut items = Vec::with_capacity(cursors.len());
    for cursor in cursors {
        match cursor.next(machine)? {
            Some(item) => items.push(item),
            None => return Ok(None),
        }
    }
    Ok(Some(items))
}

/// One step of a `map` over lazy sequences: the first result, and the rest put off.
static LAZY_MAP: Builtin = Builtin::new("lazy-map*", &["[f coll & colls]"], "A step of a lazy `map`.", &[], lazy_map);

fn lazy_map(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let function = take(arguments, 0);
    let mut cursors =
        arguments[1..].iter_mut().map(|value| machine.seq(std::mem::take(value))).collect::<Outcome<Vec<Cursor>>>()?;
    let Some(mut items) = next_of_each(machine, &mut cursors)? else { return Ok(Value::Nil) };
    let head = machine.call(&function, &mut items)?;
    let rest = [vec![function], cursors.into_iter().map(Cursor::into_rest).collect()].concat();
    let tail = machine.lazy(&LAZY_MAP, rest);
    Ok(Value::List(Arc::new(List::cons(head, tail))))
}

fn filter(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (predicate, collection) = function_and_collection(arguments);
    if machine.is_lazy(&collection) {
        return Ok(machine.lazy(&LAZY_FILTER, vec![predicate, collection]));
    }
    let mut cursor = machine.seq(collection)?;
    let mut out = Vec::new();
    while let Some(item) = cursor.next(machine)? {
        if machine.call1(&predicate, item.clone())?.is_truthy() {
            out.push(item);
            machine.grown(out.len())?;
        }
    }
    Ok(Value::list(out))
}

static LAZY_FILTER: Builtin =
    Builtin::new("lazy-filter*", &["[pred coll]"], "A step of a lazy `filter`.", &[], lazy_filter);

fn lazy_filter(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (predicate, mut cursor) = (take(arguments, 0), machine.seq(take(arguments, 1))?);
    while let Some(item) = cursor.next(machine)? {
        if machine.call1(&predicate, item.clone())?.is_truthy() {
            let tail = machine.lazy(&LAZY_FILTER, vec![predicate, cursor.into_rest()]);
            return Ok(Value::List(Arc::new(List::cons(item, tail))));
        }
    }
    Ok(Value::Nil)
}

fn reduce(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.len() == 2 {
        let (function, collection) = function_and_collection(arguments);
        let mut cursor = machine.seq(collection)?;
        return match cursor.next(machine)? {
            None => machine.call(&function, &mut []),
            Some(first) => reduce_from(machine, &function, first, cursor),
        };
    }
    // `(reduce f init coll)`, or with the function last: `(reduce coll init f)`.
    if !arguments[0].is_function() && arguments[2].is_function() {
        arguments.swap(0, 2);
    }
    let (function, init) = (take(arguments, 0), take(arguments, 1));
    let cursor = machine.seq(take(arguments, 2))?;
    reduce_from(machine, &function, init, cursor)
}

/// Reduces what is left of a cursor.
pub(super) fn reduce_from(machine: &mut Machine, function: &Value, init: Value, mut cursor: Cursor) -> Outcome<Value> {
    let mut result = init;
    while let Some(item) = cursor.next(machine)? {
        result = machine.call2(function, result, item)?;
        if let Value::Reduced(inner) = &result {
            return Ok(inner.0.clone());
        }
    }
    Ok(result)
}

fn reduced(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Reduced(Arc::new(Reduced(take(arguments, 0)))))
}

fn into(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let mut to = take(arguments, 0);
    let mut cursor = machine.seq(take(arguments, 1))?;
    if let Some(count) = cursor.remaining() {
        machine.reserve_values(count)?;
    }
    while let Some(item) = cursor.next(machine)? {
        to = add(machine, to, item)?;
    }
    Ok(to)
}

fn conj(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let mut collection = take(arguments, 0);
    for item in &mut arguments[1..] {
        collection = add(machine, collection, std::mem::take(item))?;
    }
    Ok(collection)
}

/// One item more, where it is natural.
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
                        map.insert(key.clone(), value.clone());
                    }
                }
                Value::Nil => {}
                item => {
                    let (key, value) = entry(machine, &item)?;
                    Arc::make_mut(&mut map).insert(key, value);
                }
            }
            Ok(Value::Map(map))
        }
        Value::Set(mut set) => {
            let member = machine.key(item)?;
            Arc::make_mut(&mut set).insert(member);
            Ok(Value::Set(set))
        }
        Value::Nil => Ok(Value::list(vec![item])),
        list @ (Value::List(_) | Value::Lazy(_)) => Ok(Value::List(Arc::new(List::cons(item, list)))),
        other => Err(Error::expected("a collection", &other).into()),
    }
}

/// A vector that may be changed in place: itself if nobody else holds it, else a copy, paid for.
pub(super) fn change_vector<'v>(machine: &mut Machine, vector: &'v mut Arc<Vector>) -> Outcome<&'v mut Vector> {
    if Arc::get_mut(vector).is_none() {
        let cost = vector.change_cost();
        machine.reserve_values(cost)?;
        machine.charge(cost / 16)?;
        *vector = Arc::new(vector.changeable());
    } else {
        machine.grown(vector.len())?;
    }
    Ok(Arc::make_mut(vector))
}

/// A pair as key and value.
pub(super) fn entry(machine: &mut Machine, pair: &Value) -> Outcome<(Value, Value)> {
    let items = match pair {
        Value::Vector(items) if items.len() == 2 => items,
        other => return Err(Error::expected("a pair of key and value, as `[k v]`", other).into()),
    };
    let (key, value) = (items.get(0).cloned().unwrap_or_default(), items.get(1).cloned().unwrap_or_default());
    Ok((machine.key(key)?, value))
}

fn range(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (start, end, step) = match arguments {
        [] => return Ok(Value::List(Arc::new(List::Range { start: 0, step: 1, count: List::ENDLESS }))),
        [end] => (Value::Int(0), end.clone(), Value::Int(1)),
        [start, end] => (start.clone(), end.clone(), Value::Int(1)),
        [start, end, step, ..] => (start.clone(), end.clone(), step.clone()),
    };
    if let (Value::Int(start), Value::Int(end), Value::Int(step)) = (&start, &end, &step) {
        return Ok(Value::List(Arc::new(integer_range(*start, *end, *step))));
    }
    let number = |value: &Value| match value {
        Value::Int(number) => Ok(*number as f64),
        Value::Float(number) => Ok(*number),
        other => Err(Error::expected("a number", other)),
    };
    let (from, to, by) = (number(&start)?, number(&end)?, number(&step)?);
    let whole = matches!((&start, &step), (Value::Int(_), Value::Int(_)));
    let mut out = Vec::new();
    let mut at = from;
    while (by > 0.0 && at < to) || (by < 0.0 && at > to) {
        machine.charge(1)?;
        out.push(if whole { Value::Int(at as i64) } else { Value::Float(at) });
        machine.grown(out.len())?;
        at = if whole { at + by } else { from + by * out.len() as f64 };
    }
    Ok(Value::list(out))
}

fn integer_range(start: i64, end: i64, step: i64) -> List {
    let distance = i128::from(end) - i128::from(start);
    let count = match step {
        0 if distance == 0 => 0,
        0 => u64::MAX,
        step => {
            let step = i128::from(step);
            let count = (distance + step - step.signum()) / step;
            u64::try_from(count.max(0)).unwrap_or(u64::MAX - 1)
        }
    };
    List::Range { start, step, count }
}

fn take_items(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if !matches!(arguments[0], Value::Int(_) | Value::Float(_)) {
        arguments.swap(0, 1);
    }
    let wanted = count(&arguments[0])?;
    let collection = take(arguments, 1);
    if machine.is_lazy(&collection) && !matches!(collection, Value::List(_)) {
        return Ok(machine.lazy(&LAZY_TAKE, vec![Value::Int(wanted.min(i64::MAX as u64) as i64), collection]));
    }
    let mut cursor = machine.seq(collection)?;
    machine.reserve_values(cursor.remaining().unwrap_or(0).min(wanted))?;
    let mut out = Vec::new();
    while (out.len() as u64) < wanted {
        let Some(item) = cursor.next(machine)? else { break };
        out.push(item);
        machine.grown(out.len())?;
    }
    Ok(Value::list(out))
}

static LAZY_TAKE: Builtin = Builtin::new("lazy-take*", &["[n coll]"], "A step of a lazy `take`.", &[], lazy_take);

fn lazy_take(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let wanted = count(&arguments[0])?;
    if wanted == 0 {
        return Ok(Value::Nil);
    }
    let mut cursor = machine.seq(take(arguments, 1))?;
    let Some(head) = cursor.next(machine)? else { return Ok(Value::Nil) };
    // The last item needs nothing behind it: the rest of its sequence is not looked at.
    let tail = match wanted {
        1 => Value::Nil,
        _ => machine.lazy(&LAZY_TAKE, vec![Value::Int(wanted as i64 - 1), cursor.into_rest()]),
    };
    Ok(Value::List(Arc::new(List::cons(head, tail))))
}

fn for_star(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (function, collection) = (take(arguments, 0), take(arguments, 1));
    if machine.is_lazy(&collection) {
        return Ok(machine.lazy(&LAZY_FOR, vec![function, collection]));
    }
    let mut cursor = machine.seq(collection)?;
    let mut out = Vec::new();
    while let Some(item) = cursor.next(machine)? {
        match machine.call1(&function, item)? {
            Value::Nil => {}
            Value::Reduced(_) => break,
            part => {
                let mut part = machine.seq(part)?;
                while let Some(item) = part.next(machine)? {
                    out.push(item);
                    machine.grown(out.len())?;
                }
            }
        }
    }
    Ok(Value::list(out))
}

static LAZY_FOR: Builtin = Builtin::new("lazy-for*", &["[f coll]"], "A step of a lazy `for`.", &[], lazy_for);

fn lazy_for(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (function, mut cursor) = (take(arguments, 0), machine.seq(take(arguments, 1))?);
    while let Some(item) = cursor.next(machine)? {
        match machine.call1(&function, item)? {
            Value::Nil => {}
            Value::Reduced(_) => return Ok(Value::Nil),
            part => {
                let items = machine.items(part)?;
                if items.is_empty() {
                    continue;
                }
                let rest = machine.lazy(&LAZY_FOR, vec![function, cursor.into_rest()]);
                return Ok(items
                    .into_iter()
                    .rev()
                    .fold(rest, |tail, head| Value::List(Arc::new(List::cons(head, tail)))));
            }
        }
    }
    Ok(Value::Nil)
}

fn doseq_star(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (function, collection) = (take(arguments, 0), take(arguments, 1));
    let mut cursor = machine.seq(collection)?;
    while let Some(item) = cursor.next(machine)? {
        if let Value::Reduced(_) = machine.call1(&function, item)? {
            break;
        }
    }
    Ok(Value::Nil)
}

fn nthrest_star(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let skipped = count(&arguments[1])?;
    let mut cursor = machine.seq(take(arguments, 0))?;
    for _ in 0..skipped {
        if cursor.next(machine)?.is_none() {
            return Ok(Value::Nil);
        }
    }
    as_seq(machine, cursor.into_rest())
}

fn lazy_seq_star(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let function = take(arguments, 0);
    Ok(machine.lazy_call(function))
}

/// A set of the items of a sequence.
pub(super) fn set_of(machine: &mut Machine, value: Value) -> Outcome<Set> {
    let mut cursor = machine.seq(value)?;
    let mut set = Set::default();
    while let Some(item) = cursor.next(machine)? {
        let item = machine.key(item)?;
        set.insert(item);
    }
    Ok(set)
}

/// A map of the entries of a sequence.
pub(super) fn map_of(machine: &mut Machine, value: Value) -> Outcome<Map> {
    let mut cursor = machine.seq(value)?;
    let mut map = Map::default();
    while let Some(pair) = cursor.next(machine)? {
        let (key, value) = entry(machine, &pair)?;
        map.insert(key, value);
    }
    Ok(map)
}

/// The steps of lazy sequences: builtins that only the heap refers to.
pub const STEPS: &[&Builtin] = &[&LAZY_MAP, &LAZY_FILTER, &LAZY_TAKE, &LAZY_FOR];
