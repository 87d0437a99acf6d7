//! Counting and grouping items by a key.

use super::super::arguments::{function_over_items, take};
use super::super::options::{FLAG, FUNCTION, KEY};
use crate::error::Outcome;
use crate::machine::Machine;
use crate::native::{Builtin, Conduct, OptionSet, OptionSpec, Reading};
use crate::value::Value;
use crate::value::map::Map;
use crate::value::vector::Vector;
use foldhash::quality::RandomState;
use indexmap::IndexMap;
use indexmap::map::Entry;
use std::sync::Arc;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "group-by",
        &["[f coll]", "[coll :key f & options]"],
        "A map from `(f item)` to the vector of the items with that value.\n\
         Options: `:key f`, `:value g` collects `(g item)` instead of the items, `:count true` counts them instead.",
        &[
            ("(group-by odd? [1 2 3])", "{true [1 3], false [2]}"),
            ("(group-by [{:a 1, :b 2} {:a 1, :b 3}] :key :a :value :b)", "{1 [2 3]}"),
            ("(group-by [1 2 3] :key odd? :count t)", "{true 2, false 1}"),
        ],
        group_by,
    )
    .with_conduct(Conduct::Visits)
    .with_options(&GROUP_BY),
    Builtin::new(
        "frequencies",
        &["[coll]", "[coll :key f]", "[f coll]"],
        "A map from each item, or `(f item)`, to its number of occurrences.",
        &[("(frequencies [:a :b :a])", "{:a 2, :b 1}"), ("(frequencies [1 2 3] :key odd?)", "{true 2, false 1}")],
        frequencies,
    )
    .with_options(&FREQUENCIES)
    .reading(Reading::Counts),
    Builtin::new(
        "frequencies-joined*",
        &["[f coll]"],
        "`(frequencies (mapcat f coll))` without the sequence in between.",
        &[],
        frequencies_joined,
    )
    .with_conduct(Conduct::Visits),
];

static GROUP_BY: OptionSet = OptionSet {
    function: "group-by",
    accepted: &[KEY, OptionSpec::new("value", &FUNCTION), OptionSpec::new("count", &FLAG)],
};

static FREQUENCIES: OptionSet = OptionSet { function: "frequencies", accepted: &[KEY] };

/// A map under construction that is not yet visible to the program. Adding an item costs one look-up instead of an
/// update of a persistent map.
struct Groups<T>(IndexMap<Value, T, RandomState>);

impl<T: Default> Groups<T> {
    fn new() -> Groups<T> {
        Groups(IndexMap::default())
    }

    /// Returns the entry of a key, and creates it if it is missing.
    fn of(&mut self, machine: &mut Machine, key: Value) -> Outcome<&mut T> {
        let key = machine.key(key)?;
        let len = self.0.len();
        match self.0.entry(key) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(new) => {
                machine.grown(4 * (len + 1))?;
                Ok(new.insert(T::default()))
            }
        }
    }

    /// Converts the groups to a persistent map.
    fn into_map(self, machine: &mut Machine, value: impl Fn(T) -> Value) -> Outcome<Value> {
        machine.reserve_values(self.0.len() as u64 * 4)?;
        let mut map = Map::default();
        for (key, gathered) in self.0 {
            machine.charge(1)?;
            map.insert(key, value(gathered));
        }
        Ok(Value::Map(Arc::new(map)))
    }
}

fn group_by(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    // `(group-by f coll …)` or `(group-by coll :key f …)`: the options follow in pairs.
    let leading = if arguments.len().is_multiple_of(2) { 2 } else { 1 };
    let given = GROUP_BY.read(&mut arguments[leading..])?;
    let (key, collection) = match leading {
        2 => function_over_items(machine, arguments),
        _ => (given.or_nil("key"), take(arguments, 0)),
    };
    if given.is_on("count") {
        return count_by(machine, &key, collection);
    }
    let value = given.or_nil("value");
    let mut cursor = machine.through(collection)?;
    let mut groups: Groups<Vec<Value>> = Groups::new();
    while let Some(item) = cursor.next(machine)? {
        let found = if key.is_nil() { item.clone() } else { machine.call_on(&key, &item)? };
        let gathered = if value.is_nil() { item } else { machine.call1(&value, item)? };
        let group = groups.of(machine, found)?;
        group.push(gathered);
        let len = group.len();
        machine.grown(len)?;
    }
    groups.into_map(machine, Value::vector)
}

fn frequencies(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match arguments.len() {
        1 => count_by(machine, &Value::Nil, take(arguments, 0)),
        2 => {
            let (key, collection) = function_over_items(machine, arguments);
            count_by(machine, &key, collection)
        }
        _ => {
            let given = FREQUENCIES.read(&mut arguments[1..])?;
            count_by(machine, &given.or_nil("key"), take(arguments, 0))
        }
    }
}

/// The resolver inserts this function. The sequence of all words of a text, for example, takes more memory than the text.
fn frequencies_joined(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (function, collection) = function_over_items(machine, arguments);
    let groups = count_joined(machine, &function, collection).map_err(|signal| signal.by("mapcat"))?;
    groups.into_map(machine, Value::Int)
}

/// Number of items up to which a vector is counted at once.
const FEW: usize = 1_000;

/// Counts the items of the sequences that a function returns.
fn count_joined(machine: &mut Machine, function: &Value, collection: Value) -> Outcome<Groups<i64>> {
    let mut cursor = machine.through(collection)?;
    let mut groups = Groups::new();
    let mut items = Vec::new();
    while let Some(item) = cursor.next(machine)? {
        let part = if function.is_nil() { item } else { machine.call1(function, item)? };
        match part {
            Value::Reduced(_) => break,
            Value::Vector(vector) if vector.as_slice().is_some_and(|items| items.len() <= FEW) => {
                machine.charge(vector.len() as u64)?;
                Vector::append_to(vector, &mut items);
                for item in items.drain(..) {
                    *groups.of(machine, item)? += 1;
                }
            }
            part => {
                let mut part = machine.through(part)?;
                while let Some(item) = part.next(machine)? {
                    *groups.of(machine, item)? += 1;
                }
            }
        }
    }
    Ok(groups)
}

/// Counts the items for each key.
fn count_by(machine: &mut Machine, key: &Value, collection: Value) -> Outcome<Value> {
    let mut cursor = machine.through(collection)?;
    let mut groups: Groups<i64> = Groups::new();
    while let Some(item) = cursor.next(machine)? {
        let found = if key.is_nil() { item } else { machine.call_on(key, &item)? };
        *groups.of(machine, found)? += 1;
    }
    groups.into_map(machine, Value::Int)
}
