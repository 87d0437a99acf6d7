//! Hash table functions of other Lisps, operating on maps: lookup, and updates that return a new map.
//!
//! A symbol also finds a keyword or a string of the same name, because Scheme and Racket write `'id` for the JSON key
//! `"id"`.

use super::super::arguments::take;
use super::super::maps::{entry_of, put_all, remove};
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;
use crate::value::map::Map;
use crate::value::print::Printer;
use std::sync::Arc;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "hash-ref",
        &["[table key]", "[table key default]"],
        "The value of the key in the map. If absent: the default, which is called if it is a function; without a \
         default, an error.",
        &[
            ("(hash-ref {:a 1} :a)", "1"),
            ("(hash-ref {:a 1} 'a)", "1"),
            ("(hash-ref {} 'a 0)", "0"),
            ("(hash-ref {} 'a (lambda () (+ 1 1)))", "2"),
        ],
        hash_ref,
    ),
    Builtin::new(
        "gethash",
        &["[key table]", "[key table default]"],
        "The value of the key in the map; nil, or the default value, if absent. Also with the map first.",
        &[("(gethash :a {:a 1})", "1"), ("(gethash {:a 1} :a)", "1"), ("(gethash \"b\" {:a 1} 0)", "0")],
        gethash,
    ),
    Builtin::new(
        "hash-has-key?",
        &["[table key]"],
        "True if the map has the key.",
        &[("(hash-has-key? {:a nil} 'a)", "true"), ("(hash-has-key? {} 'a)", "false")],
        |machine, arguments| {
            map_first("hash-has-key?", arguments)?;
            Ok(Value::Bool(found(machine, &arguments[0], &arguments[1])?.is_some()))
        },
    ),
    Builtin::new(
        "hash->list",
        &["[table]", "[table in-order?]"],
        "The entries of a map as a list of pairs: `car` is the key, `cdr` the value.",
        &[("(map cdr (hash->list {:a 1 :b 2}))", "(1 2)"), ("(hash->list {})", "()")],
        |machine, arguments| {
            is_map("hash->list", &arguments[0])?;
            machine.items(take(arguments, 0)).map(Value::list)
        },
    ),
    Builtin::new(
        "hash-update",
        &["[table key f]", "[table key f default]"],
        "The map with `f` applied to the value of the key, or to the default if absent (an error without one).",
        &[("(hash-update {:n 1} 'n add1)", "{:n 2}"), ("(hash-update {} \"n\" add1 0)", "{\"n\" 1}")],
        hash_update,
    ),
    Builtin::new(
        "hash-remove",
        &["[table key]"],
        "The map without that key.",
        &[("(hash-remove {:a 1 :b 2} 'a)", "{:b 2}")],
        |machine, arguments| {
            is_map("hash-remove", &arguments[0])?;
            let entry = found(machine, &arguments[0], &arguments[1])?;
            let Some((key, _)) = entry else { return Ok(take(arguments, 0)) };
            let Value::Map(mut map) = take(arguments, 0) else { return Ok(Value::Nil) };
            remove(machine, &mut map, &key)?;
            Ok(Value::Map(map))
        },
    ),
    Builtin::new(
        "hash-for-each",
        &["[table f]"],
        "Calls `f` with each key and value; also with `f` first.",
        &[("(with-out-str (hash-for-each {:a 1} (lambda (k v) (display v))))", "\"1\"")],
        |machine, arguments| {
            each(machine, "hash-for-each", arguments, |_, _| Ok(()))?;
            Ok(Value::Nil)
        },
    ),
    Builtin::new(
        "hash-filter",
        &["[table f]"],
        "The entries for which `(f key value)` is true, as a map.",
        &[("(hash-filter {:a 1 :b 2} (lambda (k v) (> v 1)))", "{:b 2}")],
        |machine, arguments| {
            let order = arguments.iter().find_map(|argument| match argument {
                Value::Map(map) => map.order(),
                _ => None,
            });
            let mut kept = order.map_or_else(Map::default, |order| Map::sorted(order.comparator.clone()));
            each(machine, "hash-filter", arguments, |entry, keep| {
                if keep.is_truthy() {
                    kept.append(entry.0, entry.1);
                }
                Ok(())
            })?;
            machine.grown(kept.len())?;
            Ok(Value::Map(Arc::new(kept)))
        },
    ),
    Builtin::new("length-of*", &["[x]"], "Expansion of `(.-length x)`.", &[], |machine, arguments| {
        let length = Value::keyword("length");
        if let Some((_, value)) = (matches!(arguments[0], Value::Map(_)))
            .then(|| entry_of(machine, &arguments[0], &length))
            .transpose()?
            .flatten()
        {
            return Ok(value);
        }
        machine.call(&Value::Builtin(counting()), arguments)
    }),
    Builtin::new("items-of*", &["[coll]"], "The items for Racket's `for`.", &[], |_, arguments| {
        Ok(match take(arguments, 0) {
            Value::Int(count) => {
                let count = u64::try_from(count).unwrap_or(0);
                Value::List(Arc::new(crate::value::list::List::Range { start: 0, step: 1, count }))
            }
            other => other,
        })
    }),
];

/// Aliases, as pairs of alias and builtin name.
pub const ALIASES: &[(&str, &str)] = &[
    ("hash-table-ref", "hash-ref"),
    ("hash-table-ref/default", "hash-ref"),
    ("hash-table-get", "hash-ref"),
    ("dict-ref", "hash-ref"),
    ("dict-has-key?", "hash-has-key?"),
    ("hash-table-contains?", "hash-has-key?"),
    ("hash-table-exists?", "hash-has-key?"),
    ("hash-table->alist", "hash->list"),
    ("hash->alist", "hash->list"),
    ("hash-table-alist", "hash->list"),
    ("map->alist", "hash->list"),
    ("dict->list", "hash->list"),
    ("dict-update", "hash-update"),
    ("dict-remove", "hash-remove"),
    ("hash-keys", "keys"),
    ("hash-values", "vals"),
    ("hash-count", "count"),
    ("hash-union", "merge"),
    ("hash-empty?", "empty?"),
    ("hash-table-keys", "keys"),
    ("hash-table-values", "vals"),
    ("hash-table-count", "count"),
    ("hash-table-size", "count"),
    ("dict-keys", "keys"),
    ("dict-values", "vals"),
    ("dict-count", "count"),
    ("hash?", "map?"),
    ("maphash", "hash-for-each"),
    ("hash-table-walk", "hash-for-each"),
    ("alist->hash", "alist->map"),
    ("in-list", "identity"),
    ("in-vector", "identity"),
    ("in-string", "identity"),
    ("in-set", "identity"),
    ("in-hash", "identity"),
    ("in-dict", "identity"),
    ("in-hash-keys", "keys"),
    ("in-hash-values", "vals"),
    ("in-hash-pairs", "hash->list"),
    ("in-range", "range"),
    ("Object/keys", "keys"),
    ("Object/values", "vals"),
    ("Object/entries", "hash->list"),
    ("js/Object.entries", "hash->list"),
    ("js/Object.keys", "keys"),
    ("js/Object.values", "vals"),
];

/// Returns the builtin `count`.
fn counting() -> &'static Builtin {
    let table = super::super::sequences::ends::TABLE;
    table.iter().find(|builtin| builtin.name == "count").expect("`count` is in its table")
}

/// Checks that a value is a map or nil, which is the empty map.
fn is_map(name: &str, value: &Value) -> Outcome<()> {
    match value {
        Value::Map(_) | Value::Nil => Ok(()),
        other => Err(Error::expected(&format!("a map as the hash table of `{name}`"), other)
            .suggest("an association list is looked up with `(alist-get key alist)`, a vector with `(nth v i)`")
            .into()),
    }
}

/// Moves the map to the front if it is the second argument, and checks it.
fn map_first(name: &str, arguments: &mut [Value]) -> Outcome<()> {
    if !matches!(arguments[0], Value::Map(_)) && matches!(arguments[1], Value::Map(_)) {
        arguments.swap(0, 1);
    }
    is_map(name, &arguments[0])
}

/// Finds the entry of a key; a symbol also matches a keyword or a string of the same name.
fn found(machine: &mut Machine, table: &Value, key: &Value) -> Outcome<Option<(Value, Value)>> {
    let entry = entry_of(machine, table, key)?;
    let (None, Some(name)) = (&entry, key.as_symbol()) else { return Ok(entry) };
    match entry_of(machine, table, &Value::keyword(name.as_str()))? {
        None => entry_of(machine, table, &Value::string(name.as_str())),
        entry => Ok(entry),
    }
}

/// Returns the given default; calls it first if it is a function.
fn default_of(machine: &mut Machine, given: Value) -> Outcome<Value> {
    if given.is_function() { machine.call(&given, &mut []) } else { Ok(given) }
}

/// Formats a key for an error message.
fn text_of(machine: &mut Machine, key: &Value) -> Outcome<String> {
    let mut printer = Printer::new(60, true);
    printer.print(key, machine)?;
    Ok(printer.into_text())
}

fn no_key(machine: &mut Machine, name: &str, table: &Value, key: &Value) -> Outcome<Error> {
    let mut shown = Vec::new();
    let mut cursor = machine.seq(table.clone())?;
    while shown.len() < 12
        && let Some(entry) = cursor.next(machine)?
    {
        if let Value::Vector(entry) = &entry {
            shown.push(text_of(machine, entry.get(0).unwrap_or(&Value::Nil))?);
        }
    }
    let has = if shown.is_empty() { "it is empty".to_string() } else { format!("it has {}", shown.join(", ")) };
    let key = text_of(machine, key)?;
    Ok(Error::new("KeyNotFound", format!("`{name}` found no key {key} in the map: {has}"))
        .suggest(format!("`({name} m {key} default)` sets a default; `(get m k)` gives nil")))
}

fn hash_ref(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    map_first("hash-ref", arguments)?;
    if let Some((_, value)) = found(machine, &arguments[0], &arguments[1])? {
        return Ok(value);
    }
    match arguments.get_mut(2).map(std::mem::take) {
        Some(default) => default_of(machine, default),
        None => Err(no_key(machine, "hash-ref", &arguments[0], &arguments[1])?.into()),
    }
}

fn gethash(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    arguments[..2].swap(0, 1);
    map_first("gethash", arguments)?;
    let default = arguments.get_mut(2).map(std::mem::take).unwrap_or_default();
    Ok(found(machine, &arguments[0], &arguments[1])?.map_or(default, |(_, value)| value))
}

/// Returns the map with this entry, under the spelling of the key that it already has.
fn put(machine: &mut Machine, table: Value, key: Value, value: Value) -> Outcome<Value> {
    let key = match found(machine, &table, &key)? {
        Some((known, _)) => known,
        None => key,
    };
    let mut map = super::super::arguments::map(table)?;
    if Arc::get_mut(&mut map).is_none() {
        machine.charge(map.len().min(32) as u64)?;
    }
    put_all(machine, Arc::make_mut(&mut map), &mut [key, value])?;
    Ok(Value::Map(map))
}

/// Implements Racket's `(hash-set table key value)`.
pub(in crate::builtin) fn hash_set(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (table, key, value) = (take(arguments, 0), take(arguments, 1), take(arguments, 2));
    put(machine, table, key, value)
}

fn hash_update(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    is_map("hash-update", &arguments[0])?;
    let default = arguments.get_mut(3).map(std::mem::take);
    let (table, key, function) = (take(arguments, 0), take(arguments, 1), take(arguments, 2));
    let held = match (found(machine, &table, &key)?, default) {
        (Some((_, value)), _) => value,
        (None, Some(default)) => default_of(machine, default)?,
        (None, None) => return Err(no_key(machine, "hash-update", &table, &key)?.into()),
    };
    let value = machine.call1(&function, held)?;
    put(machine, table, key, value)
}

/// Calls the function with each key and value, and passes the entry and the result to `take_up`.
fn each(
    machine: &mut Machine,
    name: &str,
    arguments: &mut [Value],
    mut take_up: impl FnMut((Value, Value), Value) -> Outcome<()>,
) -> Outcome<()> {
    map_first(name, arguments)?;
    let mut cursor = machine.seq(take(arguments, 0))?;
    while let Some(entry) = cursor.next(machine)? {
        let Value::Vector(entry) = entry else { continue };
        let (key, value) = (entry.get(0).cloned().unwrap_or_default(), entry.get(1).cloned().unwrap_or_default());
        let made = machine.call2(&arguments[1], key.clone(), value.clone())?;
        take_up((key, value), made)?;
    }
    Ok(())
}

/// Implements Racket's `(hash-map table f)`: returns a list of the results of `f` for each key and value.
pub(in crate::builtin) fn hash_map(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let mut made = Vec::new();
    each(machine, "hash-map", arguments, |_, value| {
        made.push(value);
        Ok(())
    })?;
    machine.grown(made.len())?;
    Ok(Value::list(made))
}
