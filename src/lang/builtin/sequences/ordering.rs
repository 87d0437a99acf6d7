//! Ordering items: sorting, reversing, shuffling, minimum and maximum.

use super::super::arguments::{function_and_collection, function_over_items, take};
use super::super::options::KEY;
use super::super::ordered::order_by_number;
use super::merge;
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::{Builtin, Conduct, OptionSet};
use crate::value::Value;
use crate::value::compare::compare;
use crate::value::function::Bound;
use crate::value::list::List;
use crate::value::map::Map;
use crate::value::metadata::metadata;
use crate::value::view::{Part, View};
use std::cmp::Ordering;
use std::sync::Arc;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "sort",
        &["[coll]", "[comparator coll]", "[coll comparator :key f]"],
        "The sorted items, by `compare` or by a comparator such as `<`, `>` or one that returns a number; with `:key f`, \
         by `(f item)`.",
        &[("(sort [3 1 2])", "(1 2 3)"), ("(sort > [3 1 2])", "(3 2 1)"), ("(sort [3 1 2] <)", "(1 2 3)")],
        sort,
    )
    .with_conduct(Conduct::Same)
    .with_options(&SORT),
    Builtin::new(
        "sort-by",
        &["[f coll]", "[f comparator coll]"],
        "The items sorted by `(f item)`; equal ones keep their order (stable sort).",
        &[
            ("(sort-by count [\"ccc\" \"a\" \"bb\"])", "(\"a\" \"bb\" \"ccc\")"),
            ("(sort-by :a > [{:a 1} {:a 2}])", "({:a 2} {:a 1})"),
        ],
        sort_by,
    )
    .with_conduct(Conduct::Same),
    Builtin::new(
        "compare",
        &["[x y]"],
        "A negative number, 0 or a positive number as `x` is less than, equal to or greater than `y`.",
        &[("(compare 1 2)", "-1"), ("(compare [1 2] [1 2])", "0"), ("(compare nil 1)", "-1")],
        compare_two,
    ),
    Builtin::new(
        "comparator",
        &["[pred]"],
        "A comparator made from a predicate such as `<`.",
        &[("((comparator <) 1 2)", "-1"), ("(sort (comparator >) [1 2 3])", "(3 2 1)")],
        comparator,
    ),
    Builtin::new(
        "min-key",
        &["[f x & more]"],
        "The argument with the least `(f x)`; the last one if several tie.",
        &[("(min-key abs -3 2)", "2"), ("(apply min-key count [[1 2] [1]])", "[1]")],
        min_key,
    ),
    Builtin::new(
        "max-key",
        &["[f x & more]"],
        "The argument with the greatest `(f x)`; the last one if several tie.",
        &[("(max-key abs -3 2)", "-3"), ("(apply max-key :n [{:n 1} {:n 5}])", "{:n 5}")],
        max_key,
    ),
    Builtin::new(
        "reverse",
        &["[coll]"],
        "The items in reverse order.",
        &[("(reverse [1 2 3])", "(3 2 1)"), ("(reverse nil)", "()")],
        reverse,
    )
    .with_conduct(Conduct::Same),
    Builtin::new(
        "rseq",
        &["[vector]"],
        "The items of a vector or sorted collection in reverse order; nil if it is empty.",
        &[("(rseq [1 2])", "(2 1)"), ("(rseq [])", "nil")],
        rseq,
    ),
    Builtin::new(
        "shuffle",
        &["[coll]"],
        "A vector of the items in random order.",
        &[("(sort (shuffle [3 1 2]))", "(1 2 3)"), ("(count (shuffle (range 9)))", "9")],
        shuffle,
    )
    .with_conduct(Conduct::Same),
];

/// Aliases from other Lisps.
pub const ALIASES: &[(&str, &str)] = &[("stable-sort", "sort"), ("nreverse", "reverse")];

/// The internal function codes defined in this file.
pub const STEPS: &[&Builtin] = &[&COMPARED];

static SORT: OptionSet = OptionSet { function: "sort", accepted: &[KEY] };

fn sort(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match arguments.len() {
        1 => {
            let collection = take(arguments, 0);
            let own = metadata(&collection);
            let items = machine.items(collection)?;
            sorted(machine, items, None).map(|items| list_with(items, own))
        }
        2 => {
            let (comparator, collection) = function_and_collection(arguments);
            let own = metadata(&collection);
            let items = machine.items(collection)?;
            sorted(machine, items, Some(&comparator)).map(|items| list_with(items, own))
        }
        _ => {
            let given = SORT.read(&mut arguments[2..])?;
            let (comparator, collection) = function_and_collection(arguments);
            match given.get("key") {
                Some(key) => sorted_by(machine, key, Some(&comparator), collection),
                None => sort(machine, &mut [comparator, collection]),
            }
        }
    }
}

/// Creates a list with the metadata of the sorted collection.
fn list_with(items: Vec<Value>, metadata: Option<Arc<Map>>) -> Value {
    Value::List(Arc::new(List::with_metadata(items, metadata)))
}

/// Sorts the items by a comparator, or in their natural order without one.
fn sorted(machine: &mut Machine, mut items: Vec<Value>, comparator: Option<&Value>) -> Outcome<Vec<Value>> {
    if comparator.is_none() && items.iter().all(|item| matches!(item, Value::Int(_))) {
        // Charge as much as for the comparisons of the merge sort.
        let len = items.len() as u64;
        machine.charge(len * u64::from(len.max(1).ilog2()))?;
        items.sort_unstable_by_key(|item| if let Value::Int(number) = item { *number } else { 0 });
        return Ok(items);
    }
    merge::sort(machine, &mut items, &mut |machine, left, right| precedes(machine, comparator, left, right))?;
    Ok(items)
}

/// True if `left` belongs before `right`.
fn precedes(machine: &mut Machine, comparator: Option<&Value>, left: &Value, right: &Value) -> Outcome<bool> {
    let Some(comparator) = comparator else {
        return Ok(compare(machine, left, right)? == Ordering::Less);
    };
    match machine.call2(comparator, left.clone(), right.clone())? {
        Value::Bool(answer) => Ok(answer),
        number => Ok(order_by_number(&number)? == Ordering::Less),
    }
}

fn sort_by(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.len() == 2 {
        let (key, collection) = function_over_items(machine, arguments);
        return sorted_by(machine, &key, None, collection);
    }
    // Accept `(sort-by coll f >)` as `(sort-by f > coll)`.
    if !is_key_function(&arguments[0]) && arguments[2].is_function() {
        arguments.rotate_left(1);
    }
    let (key, comparator) = (take(arguments, 0), take(arguments, 1));
    sorted_by(machine, &key, Some(&comparator), take(arguments, 2))
}

fn is_key_function(value: &Value) -> bool {
    value.is_function() || matches!(value, Value::Keyword(_))
}

/// Sorts the items of a collection by `key`, which is called once per item.
fn sorted_by(machine: &mut Machine, key: &Value, comparator: Option<&Value>, collection: Value) -> Outcome<Value> {
    let own = metadata(&collection);
    let mut cursor = machine.seq(collection)?;
    if let Some(count) = cursor.remaining() {
        machine.reserve_values(count.saturating_mul(2))?;
    }
    let mut pairs = Vec::new();
    while let Some(item) = cursor.next(machine)? {
        let found = machine.call_on(key, &item)?;
        pairs.push((found, item));
        machine.grown_block(&pairs)?;
    }
    merge::sort(machine, &mut pairs, &mut |machine, left: &(Value, Value), right: &(Value, Value)| {
        precedes(machine, comparator, &left.0, &right.0)
    })?;
    Ok(list_with(pairs.into_iter().map(|(_, item)| item).collect(), own))
}

fn compare_two(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let order = compare(machine, &arguments[0], &arguments[1])?;
    let difference = match (&arguments[0], &arguments[1]) {
        (Value::Str(left), Value::Str(right)) => text_difference(machine, left.as_str(), right.as_str())?,
        (left, right) if let (Some(left), Some(right)) = (left.as_name(), right.as_name()) => {
            text_difference(machine, left.as_str(), right.as_str())?
        }
        (Value::Char(left), Value::Char(right)) => i64::from(u32::from(*left)) - i64::from(u32::from(*right)),
        _ => 0,
    };
    // Clojure returns the distance between two texts; if its sign contradicts the order, return the sign of the order.
    let sign = order as i64;
    Ok(Value::Int(if difference.signum() == sign { difference } else { sign }))
}

/// Returns the difference of the first characters that differ, or else of the lengths.
fn text_difference(machine: &mut Machine, left: &str, right: &str) -> Outcome<i64> {
    machine.charge((left.len().min(right.len()) / 64) as u64)?;
    let differs = left.chars().zip(right.chars()).find(|(left, right)| left != right);
    Ok(match differs {
        Some((left, right)) => i64::from(u32::from(left)) - i64::from(u32::from(right)),
        None => left.chars().count() as i64 - right.chars().count() as i64,
    })
}

fn comparator(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bound(Arc::new(Bound { builtin: &COMPARED, arguments: vec![take(arguments, 0)] })))
}

static COMPARED: Builtin = Builtin::new("compared*", &["[pred x y]"], "Result of `comparator`.", &[], compared);

fn compared(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (predicate, left, right) = (take(arguments, 0), take(arguments, 1), take(arguments, 2));
    if machine.call2(&predicate, left.clone(), right.clone())?.is_truthy() {
        return Ok(Value::Int(-1));
    }
    let greater = machine.call2(&predicate, right, left)?.is_truthy();
    Ok(Value::Int(i64::from(greater)))
}

fn min_key(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    extreme(machine, arguments, Ordering::Less)
}

fn max_key(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    extreme(machine, arguments, Ordering::Greater)
}

/// Returns the argument with the least or greatest key, as `wanted` specifies; of equal ones the last.
fn extreme(machine: &mut Machine, arguments: &mut [Value], wanted: Ordering) -> Outcome<Value> {
    let key = take(arguments, 0);
    let mut best = take(arguments, 1);
    if arguments.len() == 2 {
        return Ok(best);
    }
    let mut best_key = machine.call1(&key, best.clone())?;
    for (at, item) in arguments[2..].iter_mut().enumerate() {
        let item = std::mem::take(item);
        let item_key = machine.call_on(&key, &item)?;
        if item_key.is_nil() || best_key.is_nil() {
            return Err(Error::expected("a key to compare by", &Value::Nil)
                .suggest("leave items without the key out first, as in `(filter :key coll)`")
                .into());
        }
        let is_nan = |key: &Value| matches!(key, Value::Float(key) if key.is_nan());
        let order = match is_nan(&item_key) || is_nan(&best_key) {
            true => None,
            false => Some(compare(machine, &item_key, &best_key)?),
        };
        // Incomparable keys (NaN) are handled as by Clojure's two comparisons: the second argument replaces the first,
        // later ones do not replace the best so far.
        let is_better = match order {
            Some(order) => order == wanted || order == Ordering::Equal,
            None => at == 0,
        };
        if is_better {
            (best, best_key) = (item, item_key);
        }
    }
    Ok(best)
}

fn reverse(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let mut items = machine.items(take(arguments, 0))?;
    items.reverse();
    Ok(Value::list(items))
}

fn rseq(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let is_sorted = super::super::ordered::is_sorted(&arguments[0]);
    if !is_sorted && !matches!(arguments[0], Value::Vector(_)) {
        return Err(Error::expected("a vector", &arguments[0]).suggest("use `reverse` for other collections").into());
    }
    machine.charge(1)?;
    let collection = take(arguments, 0);
    if let Some(view) = View::of(collection.clone(), Part::Reversed) {
        return Ok(view.into_seq());
    }
    let mut items = machine.items(collection)?;
    items.reverse();
    Ok(Value::list(items))
}

fn shuffle(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let mut items = machine.items(take(arguments, 0))?;
    for last in (1..items.len()).rev() {
        let other = (machine.core.random() % (last as u64 + 1)) as usize;
        items.swap(last, other);
    }
    Ok(Value::vector(items))
}
