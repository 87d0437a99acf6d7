//! Relations: collections of maps with common keys, like the rows of a table.
//!
//! Any collection of maps can be used as a relation; the result is a set of maps.

use super::arguments::take;
use super::maps::{not_a_map, select};
use super::sequences::{add, count_of};
use super::updates::{invert, rename};
use crate::error::Outcome;
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;
use crate::value::map::Map;
use crate::value::metadata::metadata;
use crate::value::set::Set;
use std::sync::Arc;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "set/project",
        &["[rows keys]"],
        "The set of rows with only these keys.",
        &[("(set/project [{:a 1 :b 2} {:a 1 :b 3}] [:a])", "#{{:a 1}}")],
        project,
    ),
    Builtin::new(
        "set/rename",
        &["[rows renames]"],
        "The set of rows with keys renamed from the keys of `renames` to its values.",
        &[("(set/rename [{:a 1}] {:a :b})", "#{{:b 1}}")],
        rename_rows,
    ),
    Builtin::new(
        "set/index",
        &["[rows keys]"],
        "A map from each combination of values of these keys to the set of rows with it.",
        &[("(set/index [{:a 1 :b 2} {:a 1 :b 3}] [:a])", "{{:a 1} #{{:a 1, :b 2} {:a 1, :b 3}}}")],
        index,
    ),
    Builtin::new(
        "set/join",
        &["[rows1 rows2]", "[rows1 rows2 keys]"],
        "The set of merged pairs of rows that match: on all shared keys, or as `keys` maps keys of the first to keys \
         of the second.",
        &[
            (
                "(set/join [{:id 1 :name \"Ann\"} {:id 2 :name \"Bo\"}] [{:id 1 :due 5}])",
                "#{{:id 1, :due 5, :name \"Ann\"}}",
            ),
            ("(set/join [{:id 1}] [{:owner 1 :x 2}] {:id :owner})", "#{{:id 1, :owner 1, :x 2}}"),
        ],
        join,
    ),
];

fn project(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (rows, keys) = (take(arguments, 0), take(arguments, 1));
    let own = metadata(&rows);
    let mut rows = machine.seq(rows)?;
    let mut out = Set::default();
    while let Some(row) = rows.next(machine)? {
        let row = select(machine, &row, &keys)?;
        out.insert(machine.key(Value::Map(Arc::new(row)))?);
    }
    out.set_metadata(own);
    Ok(Value::Set(Arc::new(out)))
}

fn rename_rows(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let rows = take(arguments, 0);
    let own = metadata(&rows);
    let mut rows = machine.seq(rows)?;
    let renames = row_of(take(arguments, 1))?;
    let mut out = Set::default();
    while let Some(row) = rows.next(machine)? {
        let row = rename(machine, row_of(row)?, &renames)?;
        out.insert(machine.key(Value::Map(row))?);
    }
    out.set_metadata(own);
    Ok(Value::Set(Arc::new(out)))
}

/// Returns a row as a map.
fn row_of(value: Value) -> Outcome<Arc<Map>> {
    match value {
        Value::Map(map) => Ok(map),
        other => Err(not_a_map(&other).into()),
    }
}

fn index(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (rows, keys) = (take(arguments, 0), take(arguments, 1));
    index_by(machine, rows, &keys).map(|map| Value::Map(Arc::new(map)))
}

fn index_by(machine: &mut Machine, rows: Value, keys: &Value) -> Outcome<Map> {
    let mut rows = machine.seq(rows)?;
    let mut out = Map::default();
    while let Some(row) = rows.next(machine)? {
        let group = select(machine, &row, keys)?;
        let group = machine.key(Value::Map(Arc::new(group)))?;
        let members = out.get(&group).cloned().unwrap_or_else(|| Value::Set(Arc::default()));
        // Release the index's reference to the set, so that the set can be extended in place.
        out.insert(group.clone(), Value::Nil);
        let members = add(machine, members, row)?;
        out.insert(group, members);
    }
    Ok(out)
}

fn join(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (left, right) = (settled(machine, take(arguments, 0))?, settled(machine, take(arguments, 1))?);
    let renames = match arguments.get_mut(2) {
        Some(renames) => row_of(std::mem::take(renames))?,
        None => match (first_row(machine, &left)?, first_row(machine, &right)?) {
            (Some(left), Some(right)) => Arc::new(shared_keys(machine, &left, &right)?),
            _ => return Ok(Value::Set(Arc::default())),
        },
    };
    // Index the smaller relation and iterate over the other one. `renames` maps the keys of the iterated relation to
    // those of the indexed one.
    let right_is_larger = count_of(machine, left.clone())? <= count_of(machine, right.clone())?;
    let (indexed, walked, renames) = match right_is_larger {
        true => (left, right, Arc::new(invert(machine, &renames)?)),
        false => (right, left, renames),
    };
    let columns = |pick: fn((&Value, &Value)) -> Value| Value::list(renames.iter().map(pick).collect());
    let (from, to) = (columns(|(key, _)| key.clone()), columns(|(_, value)| value.clone()));
    let groups = index_by(machine, indexed, &to)?;
    let mut walked = machine.seq(walked)?;
    let mut out = Value::Set(Arc::default());
    while let Some(row) = walked.next(machine)? {
        let group = select(machine, &row, &from)?;
        let group = rename(machine, Arc::new(group), &renames)?;
        let group = machine.key(Value::Map(group))?;
        let Some(Value::Set(members)) = groups.get(&group) else { continue };
        for member in members.iter() {
            let merged = add(machine, member.clone(), row.clone())?;
            out = add(machine, out, merged)?;
        }
    }
    Ok(out)
}

/// Realises a lazy or list relation, so that it can be iterated more than once.
fn settled(machine: &mut Machine, rows: Value) -> Outcome<Value> {
    match rows {
        Value::Lazy(_) | Value::List(_) => Ok(Value::list(machine.items(rows)?)),
        other => Ok(other),
    }
}

fn first_row(machine: &mut Machine, rows: &Value) -> Outcome<Option<Arc<Map>>> {
    match machine.seq(rows.clone())?.next(machine)? {
        Some(row) => row_of(row).map(Some),
        None => Ok(None),
    }
}

/// Maps each key that two rows share to itself.
fn shared_keys(machine: &mut Machine, left: &Map, right: &Map) -> Outcome<Map> {
    let mut out = Map::default();
    for (key, _) in left.iter() {
        machine.charge(1)?;
        if right.contains_key(key) {
            out.insert(key.clone(), key.clone());
        }
    }
    Ok(out)
}
