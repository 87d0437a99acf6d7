//! Applying a function to each item: `map` and related functions.

use super::super::arguments::{function_over_items, take};
use super::super::transducers::{self, state, steps};
use super::{LEFT_OUT, all_lazy, before, cursors, in_front, next_of_each};
use crate::error::Outcome;
use crate::eval::rest_of;
use crate::machine::Machine;
use crate::native::{Builtin, Conduct, Reading};
use crate::value::vector::Vector;
use crate::value::{Value, prefetch};

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "map",
        &["[f]", "[f coll]", "[f coll & colls]"],
        "Applies `f` to each item, or to the corresponding items of several collections until the shortest ends.",
        &[("(map inc [1 2])", "(2 3)"), ("(map + [1 2] [10 20])", "(11 22)"), ("(map [1 2] inc)", "(2 3)")],
        map,
    )
    .reading(Reading::Stepwise)
    .with_conduct(Conduct::MapsRealised),
    Builtin::new(
        "mapv",
        &["[f coll]", "[f coll & colls]"],
        "`map`, but as a vector.",
        &[("(mapv inc [1 2])", "[2 3]"), ("(mapv vector [1 2] [:a :b])", "[[1 :a] [2 :b]]")],
        mapv,
    )
    .with_conduct(Conduct::Maps),
    Builtin::new(
        "map-indexed",
        &["[f]", "[f coll]"],
        "The results of `(f index item)`, with indices from 0.",
        &[("(map-indexed vector [:a :b])", "([0 :a] [1 :b])")],
        map_indexed,
    )
    .reading(Reading::Stepwise),
    Builtin::new(
        "keep",
        &["[f]", "[f coll]"],
        "The results of `f` for each item, without nils.",
        &[("(keep :a [{:a 1} {} {:a false}])", "(1 false)")],
        keep,
    )
    .reading(Reading::Stepwise)
    .with_conduct(Conduct::MapsRealised),
    Builtin::new(
        "keep-indexed",
        &["[f]", "[f coll]"],
        "The results of `(f index item)`, with indices from 0, without nils.",
        &[("(keep-indexed (fn [i x] (if (odd? i) x)) [:a :b :c])", "(:b)")],
        keep_indexed,
    )
    .reading(Reading::Stepwise),
    Builtin::new(
        "filter-map",
        &["[f coll]"],
        "The results of `f` for each item, without nil and false.",
        &[("(filter-map :a [{:a 1} {} {:a false}])", "(1)")],
        filter_map,
    )
    .with_conduct(Conduct::Maps),
    Builtin::new(
        "mapcat",
        &["[f]", "[f coll]", "[f coll & colls]"],
        "Concatenates the sequences that `f` returns for each item.",
        &[("(mapcat (fn [x] [x x]) [1 2])", "(1 1 2 2)"), ("(mapcat reverse [[2 1] [4 3]])", "(1 2 3 4)")],
        mapcat,
    )
    .reading(Reading::Stepwise)
    .with_conduct(Conduct::Joins),
    Builtin::new(
        "replace",
        &["[smap]", "[smap coll]"],
        "The items, with each key of `smap` replaced by its value; a vector stays a vector.",
        &[("(replace {1 :one} [1 2])", "[:one 2]"), ("(replace {:a 1} '(:a :b))", "(1 :b)")],
        replace,
    ),
    Builtin::new("for*", &["[f coll]"], "Expansion of `for`.", &[], for_star)
        .reading(Reading::Stepwise)
        .with_conduct(Conduct::Joins),
];

/// Aliases from other Lisps.
pub const ALIASES: &[(&str, &str)] =
    &[("mapcar", "map"), ("vector-map", "mapv"), ("append-map", "mapcat"), ("mapcan", "mapcat")];

/// The lazy sequence steps defined in this file.
pub const STEPS: &[&Builtin] = &[&LAZY_MAP, &LAZY_FLAT_MAP];

pub(in crate::builtin) fn map(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match arguments.len() {
        1 => return Ok(transducers::stateless(&steps::MAP, take(arguments, 0))),
        2 => {
            let (function, collection) = function_over_items(machine, arguments);
            if machine.is_lazy(&collection) {
                return Ok(machine.lazy(&LAZY_MAP, vec![function, collection]));
            }
            return map_one(machine, &function, collection).map(Value::list);
        }
        _ => {}
    }
    if all_lazy(machine, &arguments[1..]) {
        return Ok(machine.lazy(&LAZY_MAP, arguments.iter_mut().map(std::mem::take).collect()));
    }
    map_several(machine, arguments).map(Value::list)
}

fn mapv(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.len() == 2 {
        let (function, collection) = function_over_items(machine, arguments);
        return map_one(machine, &function, collection).map(Value::vector);
    }
    map_several(machine, arguments).map(Value::vector)
}

fn map_one(machine: &mut Machine, function: &Value, collection: Value) -> Outcome<Vec<Value>> {
    if let (Value::Keyword(_), Some(items)) = (function, collection.as_block()) {
        return looked_up(machine, function, items);
    }
    let mut cursor = machine.through(collection)?;
    let count = cursor.remaining();
    if let Some(count) = count {
        machine.reserve_values(count)?;
    }
    let mut out = Vec::with_capacity(count.map_or(0, |count| count.min(1 << 24) as usize));
    while let Some(item) = cursor.next(machine)? {
        out.push(machine.call1(function, item)?);
        machine.grown(out.len())?;
    }
    Ok(out)
}

/// Looks up a keyword in each item. The items are borrowed: cloning and dropping them would cost more than the look-up.
fn looked_up(machine: &mut Machine, key: &Value, items: &[Value]) -> Outcome<Vec<Value>> {
    machine.reserve_values(items.len() as u64)?;
    let mut out = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        machine.charge(1)?;
        prefetch::ahead(items, at);
        out.push(machine.call_on(key, item)?);
    }
    machine.charge(1)?;
    Ok(out)
}

/// Applies a function, the first argument, to the items of the other arguments in parallel.
fn map_several(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Vec<Value>> {
    let function = take(arguments, 0);
    let mut cursors = cursors(machine, &mut arguments[1..])?;
    let mut out = Vec::new();
    while let Some(mut items) = next_of_each(machine, &mut cursors)? {
        out.push(machine.call(&function, &mut items)?);
        machine.grown(out.len())?;
    }
    Ok(out)
}

/// One step of a `map` over lazy sequences: yields the first result and defers the rest.
static LAZY_MAP: Builtin = Builtin::new("lazy-map*", &["[f coll & colls]"], "A step of a lazy `map`.", &[], lazy_map);

fn lazy_map(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let function = take(arguments, 0);
    let mut cursors = cursors(machine, &mut arguments[1..])?;
    let Some(mut items) = next_of_each(machine, &mut cursors)? else { return Ok(Value::Nil) };
    let head = machine.call(&function, &mut items)?;
    let mut rest = Vec::with_capacity(cursors.len() + 1);
    rest.push(function);
    for cursor in cursors {
        rest.push(rest_of(machine, cursor)?);
    }
    let tail = machine.lazy(&LAZY_MAP, rest);
    Ok(before(head, tail))
}

fn map_indexed(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.len() == 1 {
        return Ok(transducers::stateful(&state::MAP_INDEXED, Value::Int(0), take(arguments, 0)));
    }
    let (function, collection) = function_over_items(machine, arguments);
    transducers::through(machine, &transducers::stateful(&state::MAP_INDEXED, Value::Int(0), function), collection)
}

fn keep_indexed(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.len() == 1 {
        return Ok(transducers::stateful(&state::KEEP_INDEXED, Value::Int(0), take(arguments, 0)));
    }
    let (function, collection) = function_over_items(machine, arguments);
    transducers::through(machine, &transducers::stateful(&state::KEEP_INDEXED, Value::Int(0), function), collection)
}

fn keep(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.len() == 1 {
        return Ok(transducers::stateless(&steps::KEEP, take(arguments, 0)));
    }
    let (function, collection) = function_over_items(machine, arguments);
    if machine.is_lazy(&collection) {
        return transducers::through(machine, &transducers::stateless(&steps::KEEP, function), collection);
    }
    let mut cursor = machine.through(collection)?;
    let mut out = Vec::new();
    while let Some(item) = cursor.next(machine)? {
        let kept = machine.call1(&function, item)?;
        kept.touch();
        if !kept.is_nil() {
            out.push(kept);
            machine.grown(out.len())?;
        }
    }
    Ok(Value::list(out))
}

fn filter_map(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (function, collection) = function_over_items(machine, arguments);
    let mut cursor = machine.through(collection)?;
    let mut out = Vec::new();
    while let Some(item) = cursor.next(machine)? {
        let kept = machine.call1(&function, item)?;
        if kept.is_truthy() {
            out.push(kept);
            machine.grown(out.len())?;
        }
    }
    Ok(Value::list(out))
}

fn mapcat(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match arguments.len() {
        1 => Ok(transducers::stateless(&steps::MAPCAT, take(arguments, 0))),
        2 => {
            let (function, collection) = function_over_items(machine, arguments);
            flat_map(machine, function, collection)
        }
        _ => {
            let parts = map(machine, arguments)?;
            flat_map(machine, Value::Nil, parts)
        }
    }
}

fn replace(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if let [collection, Value::Map(_)] = arguments
        && !matches!(collection, Value::Map(_) | Value::Vector(_))
    {
        arguments.swap(0, 1);
    }
    let transducer = transducers::stateless(&steps::REPLACE, take(arguments, 0));
    match arguments.get_mut(1).map(std::mem::take) {
        None => Ok(transducer),
        Some(vector @ Value::Vector(_)) => {
            let none = crate::builtin::ends::emptied(machine, &vector)?;
            let push = Value::Builtin(&transducers::PUSH);
            transducers::reduce(machine, &transducer, &push, none, vector)
        }
        Some(collection) => transducers::through(machine, &transducer, collection),
    }
}

fn for_star(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (function, collection) = (take(arguments, 0), take(arguments, 1));
    flat_map(machine, function, collection)
}

/// Concatenates the sequences that `function` returns for each item; if `function` is nil, the items themselves are
/// these sequences. Eager up to the first lazy sequence. A reduced value ends the result.
pub(super) fn flat_map(machine: &mut Machine, function: Value, collection: Value) -> Outcome<Value> {
    if machine.is_lazy(&collection) {
        return Ok(machine.lazy(&LAZY_FLAT_MAP, vec![function, Value::Nil, collection]));
    }
    let mut cursor = machine.through(collection)?;
    let mut out = Vec::new();
    let mut done = 0;
    while let Some(item) = cursor.next(machine)? {
        done += 1;
        let part = if function.is_nil() { item } else { machine.call1(&function, item)? };
        if let Value::Reduced(_) = part {
            break;
        }
        if machine.is_lazy(&part) {
            // The last part needs no continuation.
            let lazy = match cursor.remaining() {
                Some(0) => part,
                _ => {
                    let rest = rest_of(machine, cursor)?;
                    machine.lazy(&LAZY_FLAT_MAP, vec![function, part, rest])
                }
            };
            return in_front(machine, out, lazy);
        }
        let mut part = match part {
            Value::Vector(items) if items.as_slice().is_some() => {
                let count = items.len();
                machine.charge(count as u64 + 1)?;
                if out.capacity() - out.len() < count {
                    let room = room(machine, out.len() + count, done, cursor.remaining())?;
                    out.reserve(room - out.len());
                }
                Vector::append_to(items, &mut out);
                continue;
            }
            part => machine.seq(part)?,
        };
        if let Some(count) = part.remaining() {
            machine.reserve_values(count)?;
        }
        while let Some(item) = part.next(machine)? {
            out.push(item);
            machine.grown(out.len())?;
        }
    }
    Ok(Value::list(out))
}

/// Returns the new capacity of a buffer that has grown to `len` items after `parts` parts: twice the length, or the
/// total extrapolated from at least 64 parts. Reallocating a long buffer costs more than processing its items, since
/// all memory of the larger one comes from the operating system.
fn room(machine: &mut Machine, len: usize, parts: u64, left: Option<u64>) -> Outcome<usize> {
    const SAMPLE: u64 = 64;
    machine.reserve_values(2 * len as u64)?;
    let all = left.map_or(0, |left| (len as u64).saturating_mul(left.saturating_add(parts)) / parts);
    let with_some_to_spare = usize::try_from(all + all / 16).unwrap_or(usize::MAX);
    let is_known = parts >= SAMPLE && machine.has_room_for(with_some_to_spare);
    Ok(if is_known { with_some_to_spare.max(2 * len) } else { 2 * len })
}

static LAZY_FLAT_MAP: Builtin =
    Builtin::new("lazy-flat-map*", &["[f part coll]"], "A step of a lazy `mapcat` or `concat`.", &[], lazy_flat_map);

fn lazy_flat_map(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let function = take(arguments, 0);
    let mut part = machine.seq(take(arguments, 1))?;
    let mut outer = machine.seq(take(arguments, 2))?;
    for _ in 0..LEFT_OUT {
        if let Some(item) = part.next(machine)? {
            let (part, outer) = (rest_of(machine, part)?, rest_of(machine, outer)?);
            let tail = machine.lazy(&LAZY_FLAT_MAP, vec![function, part, outer]);
            return Ok(before(item, tail));
        }
        let Some(item) = outer.next(machine)? else { return Ok(Value::Nil) };
        let next = if function.is_nil() { item } else { machine.call1(&function, item)? };
        if let Value::Reduced(_) = next {
            return Ok(Value::Nil);
        }
        if outer.remaining() == Some(0) {
            return super::as_seq(machine, next);
        }
        part = machine.seq(next)?;
    }
    let (part, outer) = (rest_of(machine, part)?, rest_of(machine, outer)?);
    Ok(machine.lazy(&LAZY_FLAT_MAP, vec![function, part, outer]))
}
