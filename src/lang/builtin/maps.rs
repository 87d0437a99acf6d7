//! Maps: construction, lookup, insertion and removal.
//!
//! Operations on a record from JSON yield a record. A map with a reference count of one is changed in place.

use super::arguments::take;
use super::sequences::change_vector;
use crate::error::{Error, Outcome};
use crate::eval::place_in_text;
use crate::heap::CellKind;
use crate::machine::Machine;
use crate::native::{Builtin, Conduct};
use crate::value::Value;
use crate::value::map::Map;
use crate::value::view::{self, Part};
use std::sync::Arc;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "hash-map",
        &["[& keyvals]"],
        "A map of the given keys and values. With a map and a function (Racket): a list of the results of `(f key \
         value)`.",
        &[
            ("(hash-map :a 1 :b 2)", "{:a 1, :b 2}"),
            ("(hash-map)", "{}"),
            ("(hash-map {:a 1} (lambda (k v) (* 2 v)))", "(2)"),
        ],
        hash_map,
    )
    .passing_on(),
    Builtin::new(
        "get",
        &["[coll key]", "[coll key default]"],
        "The value of a key in a map, set, vector or string; nil, or the default value, if the key is absent.\n\
         The key may also come first: `(get :a m)`.",
        &[("(get {:a 1} :a)", "1"), ("(get {:a 1} :b 0)", "0"), ("(get [5 6] 1)", "6"), ("(get :a {:a 1})", "1")],
        get,
    ),
    Builtin::new(
        "get-in",
        &["[coll keys]", "[coll keys default]"],
        "The value at a path of keys in nested collections; nil, or the default value, if absent.",
        &[("(get-in {:a [{:b 1}]} [:a 0 :b])", "1"), ("(get-in {} [:a :b] :none)", ":none")],
        get_in,
    ),
    Builtin::new(
        "assoc",
        &["[coll key val & keyvals]", "[key alist]"],
        "The map with each `key` set to its `val`; for a vector, the item at an index replaced or appended. With a key \
         and a list of pairs, the pair with that key.",
        &[("(assoc {:a 1} :b 2 :a 3)", "{:a 3, :b 2}"), ("(assoc [1 2] 0 9)", "[9 2]"), ("(assoc nil :a 1)", "{:a 1}")],
        assoc,
    )
    .passing_on(),
    Builtin::new(
        "dissoc",
        &["[map & keys]"],
        "The map without these keys.",
        &[("(dissoc {:a 1 :b 2} :a)", "{:b 2}")],
        dissoc,
    ),
    Builtin::new(
        "contains?",
        &["[coll key]"],
        "True if the key exists in the map, the member in the set, or the index in the vector or string.",
        &[("(contains? {:a nil} :a)", "true"), ("(contains? #{1} 2)", "false"), ("(contains? [7 8] 1)", "true")],
        contains,
    ),
    Builtin::new(
        "find",
        &["[coll key]"],
        "The entry of a key as `[key val]`, or nil. With a predicate or an item and a list, the first matching item.",
        &[("(find {:a 1} :a)", "[:a 1]"), ("(find even? '(1 2))", "2"), ("(find {:a 1} :b)", "nil")],
        find,
    ),
    Builtin::new("key", &["[entry]"], "The key of an entry.", &[("(key (first {:a 1}))", ":a")], key),
    Builtin::new("val", &["[entry]"], "The value of an entry.", &[("(val (first {:a 1}))", "1")], val),
    Builtin::new(
        "keys",
        &["[map]"],
        "The keys of a map or of a sequence of entries; nil if it is empty.",
        &[("(keys {:a 1 :b 2})", "(:a :b)"), ("(keys {})", "nil")],
        keys,
    )
    .with_conduct(Conduct::Same),
    Builtin::new(
        "vals",
        &["[map]"],
        "The values of a map or of a sequence of entries; nil if it is empty.",
        &[("(vals {:a 1 :b 2})", "(1 2)")],
        vals,
    )
    .with_conduct(Conduct::Same),
    Builtin::new(
        "zipmap",
        &["[keys vals]"],
        "A map from keys to the corresponding values, up to the shorter collection.",
        &[("(zipmap [:a :b] [1 2])", "{:a 1, :b 2}")],
        zipmap,
    ),
    Builtin::new(
        "select-keys",
        &["[map keys]"],
        "The map with only these keys.",
        &[("(select-keys {:a 1 :b 2 :c 3} [:a :c :d])", "{:a 1, :c 3}")],
        select_keys,
    ),
];

/// Aliases, as pairs of alias and builtin name.
pub const ALIASES: &[(&str, &str)] = &[("array-map", "hash-map")];

/// Inserts alternating keys and values into a map.
pub(super) fn put_all(machine: &mut Machine, map: &mut Map, pairs: &mut [Value]) -> Outcome<()> {
    for pair in pairs.chunks_mut(2) {
        let [key, value] = pair else {
            return Err(Error::new("ArityError", format!("no value for the key {}", crate::error::describe(&pair[0])))
                .suggest("keys and values must alternate")
                .into());
        };
        let key = machine.key(std::mem::take(key))?;
        machine.put(map, key, std::mem::take(value))?;
        machine.charge(1)?;
    }
    Ok(())
}

fn hash_map(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if matches!(arguments, [Value::Map(_), function] if function.is_function()) {
        return super::dialects::tables::hash_map(machine, arguments);
    }
    let mut map = Map::default();
    put_all(machine, &mut map, arguments)?;
    Ok(Value::Map(Arc::new(map)))
}

/// Swaps a key and a collection that are in the wrong order. Clojure finds nothing in a scalar, so valid Clojure
/// programs are unaffected.
pub(super) fn collection_first(arguments: &mut [Value]) {
    let nothing_to_find = arguments[0].is_scalar() && !arguments[0].is_nil();
    let collection = match &arguments[1] {
        Value::Map(_) | Value::Set(_) => true,
        Value::Vector(_) => matches!(arguments[0], Value::Int(_)),
        _ => false,
    };
    if nothing_to_find && collection {
        arguments.swap(0, 1);
    }
}

pub(super) fn get(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    collection_first(arguments);
    match arguments {
        [collection, key, default] => machine.look_up(collection, key, std::mem::take(default)),
        _ => machine.field(&arguments[0], &arguments[1]),
    }
}

fn get_in(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if matches!(arguments[1], Value::Map(_)) && matches!(arguments[0], Value::Vector(_) | Value::List(_)) {
        arguments.swap(0, 1);
    }
    let has_default = arguments.len() > 2;
    let default = arguments.get_mut(2).map(std::mem::take).unwrap_or_default();
    let mut current = take(arguments, 0);
    let mut path = machine.seq(take(arguments, 1))?;
    while let Some(key) = path.next(machine)? {
        let found =
            if has_default { machine.look_up(&current, &key, Value::Nil)? } else { machine.field(&current, &key)? };
        // Only if the lookup yields nil does a stored nil have to be told apart from a missing key.
        if found.is_nil() && !default.is_nil() && !has(machine, &current, &key)? {
            return Ok(default);
        }
        current = found;
    }
    Ok(current)
}

/// True if the collection contains the key; false for values without keys.
fn has(machine: &mut Machine, collection: &Value, key: &Value) -> Outcome<bool> {
    machine.charge(1)?;
    let index = |length: usize| matches!(key, Value::Int(at) if usize::try_from(*at).is_ok_and(|at| at < length));
    Ok(match collection {
        Value::Map(map) => {
            let key = machine.key(key.clone())?;
            let has = machine.entry_in(map, &key)?.is_some();
            if has {
                machine.core.look_ups.hit_key(&key);
            }
            has
        }
        Value::Set(set) => {
            let key = machine.key(key.clone())?;
            machine.member_in(set, &key)?.is_some()
        }
        Value::Vector(vector) => index(vector.len()),
        Value::Str(text) => {
            machine.charge(text.finding_effort())?;
            place_in_text(key).is_some_and(|at| at < text.count())
        }
        _ => false,
    })
}

fn contains(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    crate::eval::transients::open(machine, &mut arguments[0])?;
    collection_first(arguments);
    match (&arguments[0], &arguments[1]) {
        (Value::Nil | Value::Map(_) | Value::Set(_) | Value::Vector(_), _)
        | (Value::Str(_), Value::Int(_) | Value::Float(_)) => {
            has(machine, &arguments[0], &arguments[1]).map(Value::Bool)
        }
        (Value::Str(_), part) => Err(Error::expected("an index into the string", part)
            .suggest("`(str/includes? s part)` looks for a part of a string")
            .into()),
        (list @ (Value::List(_) | Value::Lazy(_)), _) => Err(Error::expected("a map or a set", list)
            .suggest("`(some #{x} coll)` looks for an item of a sequence")
            .into()),
        (other, _) => Err(not_a_map(other).into()),
    }
}

/// Builds the error for a value that should be a map.
#[cold]
pub(super) fn not_a_map(value: &Value) -> Error {
    let error = Error::expected("a map", value);
    match value {
        Value::Cell(cell) if cell.cell_kind() == CellKind::Transient => error.suggest(
            "a transient is changed with `conj!`, `assoc!` and the like; `(persistent! t)` makes a collection of it",
        ),
        Value::Cell(_) => error.suggest("read an atom with `@a`, change it with `(swap! a assoc k v)`"),
        Value::List(_) | Value::Lazy(_) => {
            error.suggest("this is a sequence: take one map out of it with `first`, or do the same to each with `map`")
        }
        Value::Str(_) => error.suggest("`json/parse` parses JSON text"),
        value if value.is_function() => error.suggest("call the function in brackets, or swap the arguments"),
        _ => error,
    }
}

pub(super) fn assoc(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.len() == 2 {
        let is_map = matches!(arguments[0], Value::Map(_) | Value::Vector(_));
        if !is_map && matches!(arguments[1], Value::List(_) | Value::Vector(_)) {
            return super::dialects::alists::pair_of(machine, arguments, 0);
        }
        return Err(Error::new("ArityError", "`assoc` takes a collection, a key and a value: `(assoc m :key value)`")
            .suggest("`(get m :key)` looks a key up")
            .into());
    }
    let collection = take(arguments, 0);
    put(machine, collection, &mut arguments[1..])
}

/// Returns the map or vector with these alternating keys and values added.
pub(super) fn put(machine: &mut Machine, collection: Value, pairs: &mut [Value]) -> Outcome<Value> {
    match collection {
        Value::Map(mut map) => {
            put_all(machine, Arc::make_mut(&mut map), pairs)?;
            Ok(Value::Map(map))
        }
        Value::Nil => hash_map(machine, pairs),
        Value::Vector(mut vector) => {
            let changing = change_vector(machine, &mut vector)?;
            for pair in pairs.chunks_mut(2) {
                machine.charge(1)?;
                let [index, item] = pair else {
                    return Err(Error::new("ArityError", "`assoc` takes keys and values in turn").into());
                };
                let at = match index {
                    Value::Int(at) => usize::try_from(*at).ok(),
                    other => return Err(Error::expected("an index of the vector", other).into()),
                };
                match at {
                    Some(at) if at < changing.len() => changing.set(at, std::mem::take(item)),
                    Some(at) if at == changing.len() => changing.push(std::mem::take(item)),
                    _ => return Err(outside(index, changing.len()).into()),
                }
            }
            Ok(Value::Vector(vector))
        }
        other => Err(not_a_map(&other).into()),
    }
}

#[cold]
fn outside(index: &Value, length: usize) -> Error {
    Error::new("IndexOutOfBounds", format!("index {index} is outside of a vector of {length} items"))
        .suggest("`conj` adds an item at the end")
}

pub(super) fn dissoc(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match take(arguments, 0) {
        alone if arguments.len() == 1 => Ok(alone),
        Value::Nil => Ok(Value::Nil),
        Value::Map(mut map) => {
            for key in &mut arguments[1..] {
                machine.charge(1)?;
                let key = machine.key(std::mem::take(key))?;
                remove(machine, &mut map, &key)?;
            }
            Ok(Value::Map(map))
        }
        other => Err(not_a_map(&other).into()),
    }
}

/// Removes a key from a map. A large map occasionally compacts itself; part of that cost is charged here.
pub(super) fn remove(machine: &mut Machine, map: &mut Arc<Map>, key: &Value) -> Outcome<()> {
    // A missing key must not cause a copy.
    let Some(known) = machine.entry_in(map, key)?.map(|(known, _)| known.clone()) else { return Ok(()) };
    machine.charge(2)?;
    let place = machine.place_of(map.order(), &known)?;
    let map = Arc::make_mut(map);
    if map.positions() > 2 * map.len() {
        machine.charge(map.len() as u64)?;
    }
    match place {
        Some(place) => map.remove_at(place),
        None => map.remove(&known),
    }
    Ok(())
}

/// Returns the entry of a key, with the key as stored in the collection.
pub fn entry_of(machine: &mut Machine, collection: &Value, key: &Value) -> Outcome<Option<(Value, Value)>> {
    machine.charge(1)?;
    match collection {
        Value::Nil => Ok(None),
        Value::Map(map) => {
            let key = machine.key(key.clone())?;
            let found = machine.entry_in(map, &key)?.map(|(key, value)| (key.clone(), value.clone()));
            if found.is_some() {
                machine.core.look_ups.hit_key(&key);
            }
            Ok(found)
        }
        Value::Vector(vector) => Ok(match key {
            Value::Int(at) => {
                usize::try_from(*at).ok().and_then(|at| vector.get(at)).map(|item| (key.clone(), item.clone()))
            }
            _ => None,
        }),
        other => Err(not_a_map(other).into()),
    }
}

fn find(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    crate::eval::transients::open(machine, &mut arguments[0])?;
    // Scheme's `find` takes a predicate and Common Lisp's an item; neither argument is a map.
    let is_map = |value: &Value| matches!(value, Value::Map(_) | Value::Set(_) | Value::Nil);
    let is_list = |value: &Value| matches!(value, Value::List(_) | Value::Vector(_) | Value::Lazy(_));
    if !is_map(&arguments[0]) && !is_map(&arguments[1]) && is_list(&arguments[1]) && !is_list(&arguments[0]) {
        return super::dialects::lists::found(machine, arguments);
    }
    collection_first(arguments);
    let found = entry_of(machine, &arguments[0], &arguments[1])?;
    Ok(found.map_or(Value::Nil, |(key, value)| Value::pair(key, value)))
}

/// Returns the key (0) or the value (1) of an entry.
fn half(entry: &Value, at: usize) -> Outcome<Value> {
    match entry {
        Value::Vector(pair) if pair.len() == 2 => Ok(pair.get(at).cloned().unwrap_or_default()),
        other => Err(Error::expected("an entry of a map, `[key val]`", other).into()),
    }
}

fn key(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    half(&arguments[0], 0)
}

fn val(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    half(&arguments[0], 1)
}

fn keys(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    halves(machine, take(arguments, 0), 0)
}

fn vals(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    halves(machine, take(arguments, 0), 1)
}

/// Returns all keys (0) or all values (1) of a map or of a sequence of entries.
fn halves(machine: &mut Machine, collection: Value, at: usize) -> Outcome<Value> {
    let mut out = Vec::new();
    match collection {
        Value::Map(map) => {
            machine.charge(1)?;
            return Ok(view::of_map(map, if at == 0 { Part::Keys } else { Part::Values }));
        }
        Value::Nil => {}
        Value::Str(text) if text.as_str().is_empty() => {}
        entries @ (Value::List(_) | Value::Lazy(_) | Value::Vector(_) | Value::Set(_)) => {
            let mut cursor = machine.seq(entries)?;
            while let Some(entry) = cursor.next(machine)? {
                out.push(half(&entry, at)?);
                machine.grown(out.len())?;
            }
        }
        other => return Err(not_a_map(&other).into()),
    }
    Ok(if out.is_empty() { Value::Nil } else { Value::list(out) })
}

fn zipmap(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (mut keys, mut values) = (machine.seq(take(arguments, 0))?, machine.seq(take(arguments, 1))?);
    let mut map = Map::default();
    while let Some(key) = keys.next(machine)? {
        let Some(value) = values.next(machine)? else { break };
        let key = machine.key(key)?;
        map.insert(key, value);
    }
    Ok(Value::Map(Arc::new(map)))
}

fn select_keys(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if matches!(arguments[1], Value::Map(_)) && !matches!(arguments[0], Value::Map(_)) {
        arguments.swap(0, 1);
    }
    let (map, keys) = (take(arguments, 0), take(arguments, 1));
    select(machine, &map, &keys).map(|map| Value::Map(Arc::new(map)))
}

/// Returns a map of the entries with the given keys; a record yields a record.
pub(super) fn select(machine: &mut Machine, map: &Value, keys: &Value) -> Outcome<Map> {
    let mut out = Map::default();
    let mut keys = machine.seq(keys.clone())?;
    while let Some(key) = keys.next(machine)? {
        match (entry_of(machine, map, &key)?, map, &key) {
            (Some((key, value)), ..) => {
                machine.core.look_ups.hit_key(&key);
                out.insert(key, value);
            }
            (None, Value::Map(map), Value::Keyword(name)) => machine.core.look_ups.missed(name, map, false),
            _ => {}
        }
    }
    out.set_metadata(crate::value::metadata::metadata(map));
    let of_record = matches!(map, Value::Map(map) if map.is_record());
    Ok(if of_record { out.into_record() } else { out })
}
