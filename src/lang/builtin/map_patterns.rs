//! Builtins that map patterns in bindings expand to.

use super::arguments::take;
use super::maps::put_all;
use crate::error::{Error, Outcome, describe};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;
use crate::value::map::Map;
use std::sync::Arc;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new("as-map*", &["[x]"], "The map for a map pattern.", &[], as_map),
    Builtin::new("options*", &["[rest]"], "The map for a map pattern after `&`.", &[], options),
    Builtin::new(
        "seq-to-map-for-destructuring",
        &["[s]"],
        "The map destructured by a map pattern: from keys and values, merged with a trailing map.",
        &[("(seq-to-map-for-destructuring '(:a 1 {:b 2}))", "{:a 1, :b 2}")],
        |machine, arguments| match options(machine, arguments)? {
            Value::Nil => Ok(Value::Map(Default::default())),
            map => Ok(map),
        },
    ),
    Builtin::new("walked*", &["[x]"], "The sequence for a pattern with `&`.", &[], walked),
];

/// Returns the items of a set or a map as a list; returns any other value unchanged.
fn walked(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match take(arguments, 0) {
        collection @ (Value::Set(_) | Value::Map(_)) => Ok(Value::list(machine.items(collection)?)),
        other => Ok(other),
    }
}

/// Builds a map from a sequence of alternating keys and values, optionally followed by a map; returns any other value
/// unchanged.
fn as_map(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let items = match take(arguments, 0) {
        list @ (Value::List(_) | Value::Lazy(_)) => machine.items(list)?,
        other => return Ok(other),
    };
    match items.len() {
        1 => Ok(items.into_iter().next().unwrap_or_default()),
        _ => from_items(machine, items),
    }
}

fn from_items(machine: &mut Machine, mut items: Vec<Value>) -> Outcome<Value> {
    let last = if items.len() % 2 == 1 { items.pop() } else { None };
    let mut map = Map::default();
    put_all(machine, &mut map, &mut items)?;
    match last {
        Some(Value::Map(more)) => {
            for (key, value) in more.iter() {
                machine.charge(1)?;
                map.insert(key.clone(), value.clone());
            }
        }
        Some(other) => {
            return Err(Error::new("ArityError", format!("no value for the key {}", describe(&other)))
                .suggest("`{:keys …}` destructures a map or alternating keys and values; take maps out of a sequence with `first` or `map`")
                .into());
        }
        None => {}
    }
    Ok(Value::Map(Arc::new(map)))
}

/// Builds a map from the rest arguments: `:a 1 :b 2`, one map, or both.
fn options(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let rest = take(arguments, 0);
    if rest.is_nil() {
        return Ok(Value::Nil);
    }
    let items = machine.items(rest)?;
    match items.as_slice() {
        [only] => Ok(only.clone()),
        _ => from_items(machine, items),
    }
}
