//! Updating values inside maps: with a function, along a path, all at once, or by merging.

use super::arguments::{function_and_collection, map as map_argument, take};
use super::maps::{not_a_map, put, remove};
use super::sequences::add;
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;
use crate::value::map::Map;
use crate::value::metadata::metadata;
use std::sync::Arc;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "update",
        &["[coll key f & args]"],
        "The map with the value of `key` (nil if missing) replaced by the result of `f` on it and `args`.",
        &[("(update {:a 1} :a inc)", "{:a 2}"), ("(update {:a 1} :a + 10 20)", "{:a 31}")],
        update,
    )
    .passing_on(),
    Builtin::new(
        "update-in",
        &["[coll keys f & args]"],
        "`update` of the value at a path of keys; missing maps along the path are created.",
        &[
            ("(update-in {:a {:b 1}} [:a :b] inc)", "{:a {:b 2}}"),
            ("(update-in {} [:a :b] (fnil inc 0))", "{:a {:b 1}}"),
        ],
        update_in,
    )
    .passing_on(),
    Builtin::new(
        "assoc-in",
        &["[coll keys val]"],
        "The nested map with the value at a path of keys set to `val`; missing maps along the path are created.",
        &[("(assoc-in {:a {:b 1}} [:a :c] 2)", "{:a {:b 1, :c 2}}"), ("(assoc-in nil [:a :b] 1)", "{:a {:b 1}}")],
        assoc_in,
    )
    .passing_on(),
    Builtin::new(
        "dissoc-in",
        &["[map keys]"],
        "The nested map without the entry at a path of keys; maps left empty by it are removed too.",
        &[("(dissoc-in {:a {:b 1 :c 2}} [:a :b])", "{:a {:c 2}}"), ("(dissoc-in {:a {:b 1}} [:a :b])", "{}")],
        dissoc_in,
    ),
    Builtin::new(
        "update-vals",
        &["[map f]"],
        "The map with `f` applied to each value.",
        &[("(update-vals {:a 1 :b 2} inc)", "{:a 2, :b 3}")],
        update_vals,
    ),
    Builtin::new(
        "update-keys",
        &["[map f]"],
        "The map with `f` applied to each key.",
        &[("(update-keys {:a 1} name)", "{\"a\" 1}")],
        update_keys,
    ),
    Builtin::new(
        "merge",
        &["[& maps]"],
        "Merges maps into one; a later map's value wins.",
        &[("(merge {:a 1 :b 2} {:b 3} nil)", "{:a 1, :b 3}"), ("(merge)", "nil")],
        merge,
    ),
    Builtin::new(
        "merge-with",
        &["[f & maps]"],
        "Merges maps into one; `f` combines the values of a shared key.",
        &[("(merge-with + {:a 1 :b 2} {:b 3})", "{:a 1, :b 5}")],
        merge_with,
    ),
    Builtin::new(
        "set/rename-keys",
        &["[map renames]"],
        "The map with keys renamed from the keys of `renames` to its values.",
        &[("(set/rename-keys {:a 1 :b 2} {:a :c})", "{:b 2, :c 1}")],
        rename_keys,
    ),
    Builtin::new(
        "set/map-invert",
        &["[map]"],
        "The map with keys and values swapped.",
        &[("(set/map-invert {:a 1 :b 2})", "{1 :a, 2 :b}")],
        map_invert,
    ),
];

/// Aliases of builtins of `set/`.
pub const ALIASES: &[(&str, &str)] = &[("rename-keys", "set/rename-keys"), ("map-invert", "set/map-invert")];

fn update(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (collection, key) = (take(arguments, 0), take(arguments, 1));
    let (function, more) = function_and_more(arguments);
    alter(machine, collection, vec![key], |machine, old| call_on(machine, &function, old, more))
}

/// Takes the third argument, a function, and the arguments after it.
fn function_and_more(arguments: &mut [Value]) -> (Value, &mut [Value]) {
    let function = take(arguments, 2);
    (function, &mut arguments[3..])
}

/// Calls `(function value & more)`.
fn call_on(machine: &mut Machine, function: &Value, value: Value, more: &mut [Value]) -> Outcome<Value> {
    if more.is_empty() {
        return machine.call1(function, value);
    }
    let mut all = vec![value];
    all.extend(more.iter_mut().map(std::mem::take));
    machine.call(function, &mut all)
}

fn update_in(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let collection = take(arguments, 0);
    let path = path(machine, take(arguments, 1))?;
    let (function, more) = function_and_more(arguments);
    alter(machine, collection, path, |machine, old| call_on(machine, &function, old, more))
}

fn assoc_in(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let collection = take(arguments, 0);
    let path = path(machine, take(arguments, 1))?;
    let value = take(arguments, 2);
    alter(machine, collection, path, |_, _| Ok(value))
}

/// Returns the keys of a path; an empty path is the key nil, as in Clojure.
fn path(machine: &mut Machine, keys: Value) -> Outcome<Vec<Value>> {
    if keys.as_name().is_some() || matches!(keys, Value::Str(_) | Value::Int(_)) {
        let key = crate::error::describe(&keys);
        return Err(Error::unmet("TypeError", format!("the keys of a path in a vector, got {key}"))
            .suggest("write them as `[:a :b]`, one key alone as `[:a]`")
            .into());
    }
    let mut keys = machine.items(keys)?;
    if keys.is_empty() {
        keys.push(Value::Nil);
    }
    Ok(keys)
}

/// Replaces the value at a path with the result of `change`. Descends and ascends without recursion.
fn alter(
    machine: &mut Machine,
    collection: Value,
    path: Vec<Value>,
    change: impl FnOnce(&mut Machine, Value) -> Outcome<Value>,
) -> Outcome<Value> {
    let mut levels = Vec::with_capacity(path.len());
    let mut current = collection;
    for key in path {
        let key = machine.key(key)?;
        let inner = take_out(machine, &mut current, &key)?;
        levels.push((current, key));
        current = inner;
    }
    let mut changed = change(machine, current)?;
    while let Some((outer, key)) = levels.pop() {
        changed = put(machine, outer, &mut [key, changed])?;
    }
    Ok(changed)
}

/// Returns the value of a key. If the collection is uniquely referenced, the value is moved out, so that it can be
/// changed in place. The caller stores the changed value again, or drops the whole collection on an error.
fn take_out(machine: &mut Machine, collection: &mut Value, key: &Value) -> Outcome<Value> {
    if !matches!(collection, Value::Map(_) | Value::Vector(_) | Value::Nil) {
        return Err(not_a_map(collection).into());
    }
    let inner = machine.look_up(collection, key, Value::Nil)?;
    if inner.is_scalar() {
        return Ok(inner);
    }
    match (collection, key) {
        (Value::Map(map), key) => {
            if let Some(map) = Arc::get_mut(map) {
                machine.put(map, key.clone(), Value::Nil)?;
            }
        }
        (Value::Vector(vector), Value::Int(at)) => {
            if !vector.is_part()
                && let (Some(vector), Ok(at)) = (Arc::get_mut(vector), usize::try_from(*at))
            {
                vector.set(at, Value::Nil);
            }
        }
        _ => {}
    }
    Ok(inner)
}

fn dissoc_in(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let mut current = take(arguments, 0);
    let mut keys = machine.items(take(arguments, 1))?;
    let Some(last) = keys.pop() else { return Ok(current) };
    let mut levels = Vec::with_capacity(keys.len());
    for key in keys {
        let inner = machine.look_up(&current, &key, Value::Nil)?;
        levels.push((current, key));
        current = inner;
    }
    let mut changed = without(machine, current, last)?;
    while let Some((outer, key)) = levels.pop() {
        let emptied = match &changed {
            Value::Map(map) => map.is_empty(),
            other => other.is_nil(),
        };
        changed = if emptied { without(machine, outer, key)? } else { put(machine, outer, &mut [key, changed])? };
    }
    Ok(changed)
}

/// Removes a key from a map; nil stays nil.
fn without(machine: &mut Machine, collection: Value, key: Value) -> Outcome<Value> {
    match collection {
        Value::Nil => Ok(Value::Nil),
        Value::Map(mut map) => {
            let key = machine.key(key)?;
            remove(machine, &mut map, &key)?;
            Ok(Value::Map(map))
        }
        other => Err(not_a_map(&other).into()),
    }
}

/// Takes the function and the map of `(update-vals m f)`, in either order; of two maps the second is the function.
fn function_and_map(arguments: &mut [Value]) -> (Value, Value) {
    if matches!(arguments[0], Value::Map(_)) {
        arguments.swap(0, 1);
        return (take(arguments, 0), take(arguments, 1));
    }
    function_and_collection(arguments)
}

fn update_vals(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (function, collection) = function_and_map(arguments);
    if let Value::Vector(vector) = collection {
        machine.reserve_values(vector.len() as u64)?;
        let mut out = Vec::with_capacity(vector.len());
        for item in vector.iter() {
            out.push(machine.call_on(&function, item)?);
        }
        return Ok(Value::vector(out));
    }
    let map = map_of(collection)?;
    machine.reserve_values(map.len() as u64)?;
    // As in Clojure, the result for a sorted map is unsorted.
    let mut out = match map.order() {
        Some(_) => unsorted(map.metadata()),
        None => (*map).clone(),
    };
    for at in 0..map.positions() {
        machine.charge(1)?;
        if let Some((key, value)) = map.entry(at) {
            let value = machine.call1(&function, value.clone())?;
            out.insert(key.clone(), value);
        }
    }
    Ok(Value::Map(Arc::new(out)))
}

/// Creates an empty unsorted map with metadata.
fn unsorted(metadata: Option<&Arc<Map>>) -> Map {
    let mut map = Map::default();
    map.set_metadata(metadata.cloned());
    map
}

fn update_keys(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (function, collection) = function_and_map(arguments);
    let map = map_of(collection)?;
    let mut out = Map::default();
    for at in 0..map.positions() {
        machine.charge(1)?;
        if let Some((key, value)) = map.entry(at) {
            let key = machine.call1(&function, key.clone())?;
            let key = machine.key(key)?;
            out.insert(key, value.clone());
        }
    }
    // A record whose keys change becomes a plain map.
    out.set_metadata(metadata(&Value::Map(map)));
    Ok(Value::Map(Arc::new(out)))
}

/// Returns a value as a map; nil is the empty map.
fn map_of(value: Value) -> Outcome<Arc<Map>> {
    match value {
        value @ (Value::Map(_) | Value::Nil) => Ok(map_argument(value)?),
        other => Err(not_a_map(&other).into()),
    }
}

fn merge(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let leads = arguments[..].first().is_some_and(Value::is_truthy);
    let mut maps = arguments.iter_mut().map(std::mem::take).skip_while(|map| !map.is_truthy());
    let Some(mut merged) = maps.next() else { return Ok(Value::Nil) };
    if !leads {
        // After a leading nil or false, the first map is merged into an empty map like the others.
        merged = match merged {
            Value::Map(map) => Value::Map(plain(machine, map)?),
            entry => add(machine, Value::Map(Arc::default()), entry)?,
        };
    }
    for more in maps {
        if !matches!(merged, Value::Map(_)) {
            merged = add(machine, merged, more)?;
            continue;
        }
        merged = match more {
            more @ (Value::Map(_) | Value::Vector(_) | Value::Nil) => add(machine, merged, more)?,
            // A sequence of entries, as `seq` gives it; another one is an error in Clojure too.
            more @ (Value::List(_) | Value::Lazy(_)) if is_entries(machine, &more)? => add(machine, merged, more)?,
            other => return Err(not_a_map(&other).into()),
        };
    }
    Ok(merged)
}

/// True for a sequence that is empty or begins with an entry.
fn is_entries(machine: &mut Machine, sequence: &Value) -> Outcome<bool> {
    let first = machine.seq(sequence.clone())?.next(machine)?;
    Ok(first.is_none_or(|first| matches!(&first, Value::Vector(pair) if pair.len() == 2)))
}

/// Removes the metadata and the sort order of a map, as merging it into an empty map does.
fn plain(machine: &mut Machine, mut map: Arc<Map>) -> Outcome<Arc<Map>> {
    if map.order().is_some() {
        let entries = Value::Map(map);
        return match add(machine, Value::Map(Arc::default()), entries)? {
            Value::Map(map) => Ok(map),
            other => Err(not_a_map(&other).into()),
        };
    }
    if map.metadata().is_some() {
        Arc::make_mut(&mut map).set_metadata(None);
    }
    Ok(map)
}

fn merge_with(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if let [.., last] = arguments
        && last.is_function()
        && !arguments[0].is_function()
    {
        arguments.rotate_right(1);
    }
    let function = take(arguments, 0);
    let leads = arguments.get(1).is_some_and(Value::is_truthy);
    let mut maps = arguments[1..].iter_mut().map(std::mem::take).skip_while(|map| !map.is_truthy());
    let Some(first) = maps.next() else { return Ok(Value::Nil) };
    let mut merged = map_of(first)?;
    if !leads {
        merged = plain(machine, merged)?;
    }
    for more in maps {
        let more = map_of(more)?;
        for at in 0..more.positions() {
            machine.charge(1)?;
            let Some((key, value)) = more.entry(at) else { continue };
            let value = match machine.entry_in(&merged, key)?.map(|(_, old)| old.clone()) {
                Some(old) => {
                    // Removes the map's reference to the old value during the call, so that the value can grow in
                    // place.
                    if let (false, Some(map)) = (old.is_scalar(), Arc::get_mut(&mut merged)) {
                        machine.put(map, key.clone(), Value::Nil)?;
                    }
                    machine.call2(&function, old, value.clone())?
                }
                None => value.clone(),
            };
            machine.put(Arc::make_mut(&mut merged), key.clone(), value)?;
        }
    }
    Ok(Value::Map(merged))
}

fn rename_keys(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let map = take(arguments, 0);
    if map.is_nil() {
        return Ok(Value::Nil);
    }
    let (map, renames) = (map_of(map)?, map_of(take(arguments, 1))?);
    rename(machine, map, &renames).map(Value::Map)
}

/// Renames keys of a map. All old keys are removed before the new ones are added, so that keys can be swapped.
pub(super) fn rename(machine: &mut Machine, map: Arc<Map>, renames: &Map) -> Outcome<Arc<Map>> {
    let mut out = map.clone();
    for (old, _) in renames.iter() {
        machine.charge(1)?;
        remove(machine, &mut out, old)?;
    }
    for (old, new) in renames.iter() {
        machine.charge(1)?;
        if let Some((_, value)) = machine.entry_in(&map, old)? {
            machine.put(Arc::make_mut(&mut out), new.clone(), value.clone())?;
        }
    }
    Ok(out)
}

fn map_invert(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let map = map_of(take(arguments, 0))?;
    invert(machine, &map).map(|map| Value::Map(Arc::new(map)))
}

/// Swaps the keys and values of a map.
pub(super) fn invert(machine: &mut Machine, map: &Map) -> Outcome<Map> {
    let mut out = Map::default();
    for (key, value) in map.iter() {
        machine.charge(1)?;
        let value = machine.key(value.clone())?;
        out.insert(value, key.clone());
    }
    Ok(out)
}
