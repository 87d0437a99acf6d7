//! Association lists and property lists: `((a 1) (b 2))`, `(:a 1 :b 2)`. The functions accept maps as well.

use super::super::arguments::take;
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;
use crate::value::map::Map;
use std::sync::Arc;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "assq",
        &["[key alist]"],
        "The first pair in an association list with the key, or nil; for a map, its entry.",
        &[("(assq 'b '((a 1) (b 2)))", "(b 2)"), ("(assq :x '((:a 1)))", "nil")],
        |machine, arguments| pair_of(machine, arguments, 0),
    ),
    Builtin::new(
        "rassoc",
        &["[value alist]"],
        "The first pair in an association list with the value, or nil.",
        &[("(rassoc 2 '((a 1) (b 2)))", "(b 2)")],
        |machine, arguments| pair_of(machine, arguments, 1),
    ),
    Builtin::new(
        "alist-get",
        &["[key alist]", "[key alist default]"],
        "The value of the key in an association list or map; also with the list first.",
        &[("(alist-get 'b '((a 1) (b 2)))", "2"), ("(alist-get '((a . 1)) 'a)", "1"), ("(alist-get :x {} 0)", "0")],
        alist_get,
    ),
    Builtin::new(
        "acons",
        &["[key value alist]"],
        "The association list with a pair prepended.",
        &[("(acons 'a 1 '((b 2)))", "([a 1] (b 2))")],
        |machine, arguments| {
            let pair = Value::pair(take(arguments, 0), take(arguments, 1));
            let rest = machine.items(take(arguments, 2))?;
            machine.reserve_values(rest.len() as u64)?;
            Ok(Value::list([vec![pair], rest].concat()))
        },
    )
    .passing_on(),
    Builtin::new(
        "alist->map",
        &["[]", "[alist]"],
        "The map of an association list; the first pair with a duplicate key wins.",
        &[("(alist->map '((a 1) (b . 2)))", "{a 1, b 2}")],
        alist_to_map,
    ),
    Builtin::new(
        "getf",
        &["[plist key]", "[plist key default]"],
        "The value of the key in a list of alternating keys and values.",
        &[("(getf '(:a 1 :b 2) :b)", "2"), ("(getf '(:a 1) :x 0)", "0")],
        getf,
    ),
];

/// Aliases, as pairs of alias and builtin name.
pub const ALIASES: &[(&str, &str)] = &[
    ("assv", "assq"),
    ("assoc-string", "assq"),
    ("assoc-ref", "alist-get"),
    ("assq-ref", "alist-get"),
    ("assoc-default", "alist-get"),
    ("cdr-assoc", "alist-get"),
    ("alist-cons", "acons"),
    ("alist->hash-table", "alist->map"),
    ("make-immutable-hash", "alist->map"),
    ("plist-get", "getf"),
];

/// Returns the key and the value of a pair: `(a 1)`, `[a 1]`, or `(a . 1)` as the reader represents it.
fn parts(machine: &mut Machine, pair: &Value) -> Outcome<Option<(Value, Value)>> {
    if !matches!(pair, Value::List(_) | Value::Vector(_)) {
        return Ok(None);
    }
    let mut cursor = machine.seq(pair.clone())?;
    let Some(key) = cursor.next(machine)? else { return Ok(None) };
    let second = cursor.next(machine)?.unwrap_or_default();
    let is_dot = matches!(&second, Value::Symbol(name) if name.as_str() == ".");
    let value = if is_dot { cursor.next(machine)?.unwrap_or_default() } else { second };
    Ok(Some((key, value)))
}

/// Implements `(assoc key alist)`: returns the first pair with the wanted value at index `place`.
pub(in crate::builtin) fn pair_of(machine: &mut Machine, arguments: &mut [Value], place: usize) -> Outcome<Value> {
    let (wanted, list) = (take(arguments, 0), take(arguments, 1));
    let mut cursor = machine.seq(list)?;
    while let Some(pair) = cursor.next(machine)? {
        let Some((key, value)) = parts(machine, &pair)? else {
            return Err(Error::expected("an association list `((key value) …)`", &pair)
                .suggest("a map is looked up with `(get m key)`")
                .into());
        };
        if machine.equal(if place == 0 { &key } else { &value }, &wanted)? {
            return Ok(pair);
        }
    }
    Ok(Value::Nil)
}

fn alist_get(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let holds = |value: &Value| matches!(value, Value::List(_) | Value::Vector(_) | Value::Map(_) | Value::Lazy(_));
    if holds(&arguments[0]) && !holds(&arguments[1]) {
        arguments.swap(0, 1);
    }
    let default = arguments.get_mut(2).map(std::mem::take).unwrap_or_default();
    if let Value::Map(_) = &arguments[1] {
        let (key, map) = (take(arguments, 0), take(arguments, 1));
        return machine.look_up(&map, &key, default);
    }
    let pair = pair_of(machine, arguments, 0)?;
    Ok(parts(machine, &pair)?.map_or(default, |(_, value)| value))
}

fn alist_to_map(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.is_empty() {
        return Ok(Value::Map(Arc::default()));
    }
    let mut cursor = machine.seq(take(arguments, 0))?;
    let mut map = Map::default();
    while let Some(pair) = cursor.next(machine)? {
        let Some((key, value)) = parts(machine, &pair)? else {
            return Err(Error::expected("pairs `((key value) …)`", &pair).into());
        };
        let key = machine.key(key)?;
        if !map.contains_key(&key) {
            map.insert(key, value);
            machine.grown(map.len())?;
        }
    }
    Ok(Value::Map(Arc::new(map)))
}

fn getf(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let default = arguments.get_mut(2).map(std::mem::take).unwrap_or_default();
    let (list, wanted) = (take(arguments, 0), take(arguments, 1));
    if let Value::Map(_) = list {
        return machine.look_up(&list, &wanted, default);
    }
    let mut cursor = machine.seq(list)?;
    while let Some(key) = cursor.next(machine)? {
        let value = cursor.next(machine)?.unwrap_or_default();
        if machine.equal(&key, &wanted)? {
            return Ok(value);
        }
    }
    Ok(default)
}
