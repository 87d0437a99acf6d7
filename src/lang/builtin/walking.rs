//! Traversal and transformation of nested data: `walk/`.
//!
//! The traversal keeps an explicit stack of the enclosing collections, so nesting depth uses no machine stack.

use super::arguments::take;
use super::ends::emptied;
use super::sequences::add;
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;
use crate::value::map::Map;
use crate::value::metadata::metadata;
use crate::value::release::Scratch;
use crate::value::vector::Vector;
use crate::value::walk::Cursor;
use std::sync::Arc;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "walk/postwalk",
        &["[f form]"],
        "The nested data with each part replaced by the result of `f`, innermost first; map entries are parts too.",
        &[("(walk/postwalk (fn [x] (if (number? x) (inc x) x)) {:a [1 '(2)]})", "{:a [2 (3)]}")],
        postwalk,
    ),
    Builtin::new(
        "walk/prewalk",
        &["[f form]"],
        "The nested data with each part replaced by the result of `f`, outermost first.",
        &[("(walk/prewalk (fn [x] (if (map? x) (:v x) x)) {:v [{:v 1}]})", "[1]")],
        prewalk,
    ),
    Builtin::new(
        "walk/walk",
        &["[inner outer form]"],
        "Applies `inner` to each item of the collection, then `outer` to the result.",
        &[("(walk/walk inc vec '(1 2))", "[2 3]")],
        walk_once,
    ),
    Builtin::new(
        "walk/keywordize-keys",
        &["[form]"],
        "The nested data with string keys of maps converted to keywords.",
        &[("(walk/keywordize-keys {\"a\" [{\"b\" 1}]})", "{:a [{:b 1}]}")],
        keywordize_keys,
    ),
    Builtin::new(
        "walk/stringify-keys",
        &["[form]"],
        "The nested data with keyword keys of maps converted to strings.",
        &[("(walk/stringify-keys {:a [{:b 1}]})", "{\"a\" [{\"b\" 1}]}")],
        stringify_keys,
    ),
    Builtin::new(
        "walk/postwalk-replace",
        &["[replacements form]"],
        "The nested data with parts that are keys of a map replaced by their values, innermost first.",
        &[("(walk/postwalk-replace {1 :one} [1 [1 2]])", "[:one [:one 2]]")],
        postwalk_replace,
    ),
    Builtin::new(
        "walk/prewalk-replace",
        &["[replacements form]"],
        "The nested data with parts that are keys of a map replaced by their values, outermost first.",
        &[("(walk/prewalk-replace {[1] 1} [[1] [2]])", "[1 [2]]")],
        prewalk_replace,
    ),
];

/// Aliases of builtins of this file.
pub const ALIASES: &[(&str, &str)] = &[
    ("postwalk", "walk/postwalk"),
    ("prewalk", "walk/prewalk"),
    ("keywordize-keys", "walk/keywordize-keys"),
    ("stringify-keys", "walk/stringify-keys"),
];

/// The change applied to each part.
enum Change<'a> {
    Call(&'a Value),
    Replace(&'a Map),
    Keys(fn(&Value) -> Option<Value>),
}

/// The order of the change to a collection: before its items are traversed, or after.
#[derive(Clone, Copy, PartialEq)]
enum When {
    Before,
    After,
}

/// A collection whose items are being traversed.
struct Level {
    /// The type of the collection.
    kind: Kind,
    /// The collection to rebuild from: an empty one of the same type, the record itself for `defrecord`, or nil for
    /// lists, which keep neither type nor metadata.
    empty: Value,
    /// The items still to traverse.
    cursor: Cursor,
    /// The finished items.
    done: Vec<Value>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    List,
    Vector,
    Set,
    Map,
    Record,
}

/// Creates a level for the items of a collection; returns `None` for all other values.
fn enter(machine: &mut Machine, value: &Value) -> Outcome<Option<Level>> {
    let kind = match value {
        Value::List(_) | Value::Lazy(_) => Kind::List,
        Value::Vector(_) => Kind::Vector,
        Value::Set(_) => Kind::Set,
        Value::Map(map) if map.is_record() && map.fields().is_none() => Kind::Record,
        Value::Map(_) => Kind::Map,
        _ => return Ok(None),
    };
    let empty = match value {
        Value::List(_) | Value::Lazy(_) => Value::Nil,
        // A record of `defrecord` keeps its type: the changed entries replace its own.
        Value::Map(map) if map.fields().is_some() => value.clone(),
        _ => emptied(machine, value)?,
    };
    let cursor = machine.seq(value.clone())?;
    Ok(Some(Level { kind, empty, cursor, done: Vec::new() }))
}

/// Rebuilds a collection by adding these items to `empty`.
fn rebuild(machine: &mut Machine, kind: Kind, empty: Value, items: Vec<Value>) -> Outcome<Value> {
    let mut out = match kind {
        Kind::List => return Ok(Value::list(items)),
        Kind::Vector => {
            let mut vector = Vector::from(items);
            vector.set_metadata(metadata(&empty));
            return Ok(Value::Vector(Arc::new(vector)));
        }
        Kind::Record => Value::Map(Arc::default()),
        Kind::Set | Kind::Map => empty,
    };
    for item in items {
        out = add(machine, out, item)?;
    }
    // Converted to a record last: a record would merge two keys that are spellings of each other.
    Ok(match (kind, out) {
        (Kind::Record, Value::Map(map)) => Value::Map(Arc::new(Arc::unwrap_or_clone(map).into_record())),
        (_, out) => out,
    })
}

/// Applies the change to one part.
fn change(machine: &mut Machine, how: &Change<'_>, part: Value) -> Outcome<Value> {
    machine.charge(1)?;
    match how {
        Change::Call(function) => machine.call1(function, part),
        Change::Replace(replacements) => {
            // A compound part is looked up only if some key is compound, too.
            if !part.is_scalar() && replacements.iter().all(|(key, _)| key.is_scalar()) {
                return Ok(part);
            }
            let key = machine.key(part.clone())?;
            let found = machine.entry_in(replacements, &key)?;
            Ok(found.map_or(part, |(_, replacement)| replacement.clone()))
        }
        Change::Keys(rename) => match &part {
            Value::Map(map) => {
                let mut out = Map::default();
                for (key, value) in map.iter() {
                    machine.charge(1)?;
                    out.insert(rename(key).unwrap_or_else(|| key.clone()), value.clone());
                }
                Ok(Value::Map(Arc::new(if map.is_record() { out.into_record() } else { out })))
            }
            _ => Ok(part),
        },
    }
}

/// Traverses a value and applies the change to all of its parts.
fn walk(machine: &mut Machine, how: &Change<'_>, when: When, whole: Value) -> Outcome<Value> {
    let mut levels: Scratch<Level> = Scratch::from(Vec::new());
    let mut coming = Some(whole);
    loop {
        // Descend to the first part that has no items.
        let mut finished = match coming.take() {
            Some(part) => {
                let part = if when == When::Before { change(machine, how, part)? } else { part };
                if let Some(level) = enter(machine, &part)? {
                    levels.push(level);
                    machine.grown_block(&levels)?;
                    None
                } else if when == When::After {
                    Some(change(machine, how, part)?)
                } else {
                    Some(part)
                }
            }
            None => None,
        };
        // Ascend while collections are complete.
        loop {
            let Some(level) = levels.last_mut() else { return Ok(finished.unwrap_or_default()) };
            if let Some(value) = finished.take() {
                level.done.push(value);
                machine.grown(level.done.len())?;
            }
            coming = level.cursor.next(machine)?;
            if coming.is_some() {
                break;
            }
            let Some(Level { kind, empty, done, .. }) = levels.pop() else { break };
            let value = rebuild(machine, kind, empty, done)?;
            finished = Some(if when == When::After { change(machine, how, value)? } else { value });
        }
    }
}

/// Takes the function and the form, in either order.
fn function_and_form(arguments: &mut [Value]) -> (Value, Value) {
    if arguments[1].is_function() && !arguments[0].is_function() {
        arguments.swap(0, 1);
    }
    (take(arguments, 0), take(arguments, 1))
}

fn postwalk(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (function, form) = function_and_form(arguments);
    walk(machine, &Change::Call(&function), When::After, form)
}

fn prewalk(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (function, form) = function_and_form(arguments);
    walk(machine, &Change::Call(&function), When::Before, form)
}

fn walk_once(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (inner, outer, form) = (take(arguments, 0), take(arguments, 1), take(arguments, 2));
    let Some(mut level) = enter(machine, &form)? else { return machine.call1(&outer, form) };
    drop(form);
    while let Some(item) = level.cursor.next(machine)? {
        level.done.push(machine.call1(&inner, item)?);
        machine.grown(level.done.len())?;
    }
    let whole = rebuild(machine, level.kind, level.empty, level.done)?;
    machine.call1(&outer, whole)
}

fn keywordize_keys(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let rename = |key: &Value| key.as_str().map(Value::keyword);
    walk(machine, &Change::Keys(rename), When::After, take(arguments, 0))
}

fn stringify_keys(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let rename = |key: &Value| match key {
        Value::Keyword(name) => Some(Value::string(name.base())),
        _ => None,
    };
    walk(machine, &Change::Keys(rename), When::After, take(arguments, 0))
}

fn postwalk_replace(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    replace(machine, When::After, arguments)
}

fn prewalk_replace(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    replace(machine, When::Before, arguments)
}

fn replace(machine: &mut Machine, when: When, arguments: &mut [Value]) -> Outcome<Value> {
    let form = take(arguments, 1);
    match take(arguments, 0) {
        Value::Map(replacements) => walk(machine, &Change::Replace(&replacements), when, form),
        other => Err(Error::expected("a map of replacements", &other).into()),
    }
}
