//! Iterating over a sequence for side effects.

use super::super::arguments::{function_over_items, take};
use super::{count_and_collection, cursors, next_of_each};
use crate::error::Outcome;
use crate::machine::Machine;
use crate::native::{Builtin, Conduct};
use crate::value::Value;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "doall",
        &["[coll]", "[n coll]"],
        "Realizes all items of a sequence, or the first `n`, and returns it.",
        &[("(doall (map inc [1 2]))", "(2 3)")],
        doall,
    )
    .with_conduct(Conduct::Same),
    Builtin::new(
        "dorun",
        &["[coll]", "[n coll]"],
        "Realizes all items of a sequence, or the first `n`, without keeping them; returns nil.",
        &[("(dorun (map inc [1 2]))", "nil")],
        dorun,
    ),
    Builtin::new("run!", &["[f coll]"], "Calls `f` with each item; returns nil.", &[("(run! inc [1 2])", "nil")], run)
        .with_conduct(Conduct::Visits),
    Builtin::new(
        "for-each",
        &["[f coll]", "[f coll & colls]"],
        "Calls `f` with each item, or the corresponding items of several collections; returns nil.",
        &[("(for-each + [1 2] [3 4])", "nil")],
        for_each,
    )
    .with_conduct(Conduct::Visits),
    Builtin::new("doseq*", &["[f coll]"], "Expansion of `doseq`.", &[], doseq_star).with_conduct(Conduct::Visits),
];

/// Aliases from other Lisps.
pub const ALIASES: &[(&str, &str)] = &[("mapc", "for-each"), ("vector-for-each", "for-each")];

fn doall(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (most, collection) = most_and_collection(arguments)?;
    walk(machine, most, collection.clone())?;
    Ok(collection)
}

fn dorun(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (most, collection) = most_and_collection(arguments)?;
    walk(machine, most, collection)?;
    Ok(Value::Nil)
}

fn most_and_collection(arguments: &mut [Value]) -> Outcome<(u64, Value)> {
    if arguments.len() == 1 {
        return Ok((u64::MAX, take(arguments, 0)));
    }
    // One more than requested: Clojure also realises the following item.
    count_and_collection(arguments).map(|(most, collection)| (most.saturating_add(1), collection))
}

fn walk(machine: &mut Machine, most: u64, collection: Value) -> Outcome<()> {
    let mut cursor = machine.seq(collection)?;
    for _ in 0..most {
        if cursor.next(machine)?.is_none() {
            break;
        }
    }
    Ok(())
}

fn run(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (function, collection) = function_over_items(machine, arguments);
    call_with_each(machine, &function, collection)
}

fn for_each(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.len() == 2 {
        return run(machine, arguments);
    }
    let function = take(arguments, 0);
    let mut cursors = cursors(machine, &mut arguments[1..])?;
    while let Some(mut items) = next_of_each(machine, &mut cursors)? {
        machine.call(&function, &mut items)?;
    }
    Ok(Value::Nil)
}

fn doseq_star(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (function, collection) = (take(arguments, 0), take(arguments, 1));
    call_with_each(machine, &function, collection)
}

/// Calls a function with each item until it returns a reduced value.
fn call_with_each(machine: &mut Machine, function: &Value, collection: Value) -> Outcome<Value> {
    let mut cursor = machine.seq(collection)?;
    while let Some(item) = cursor.next(machine)? {
        if let Value::Reduced(_) = machine.call1(function, item)? {
            break;
        }
    }
    Ok(Value::Nil)
}
