//! Predicates and searches over the items of a sequence: some, all, none, and which one.

use super::super::arguments::{function_over_items, take};
use super::super::dialects::lists::is_wanted;
use super::super::options::{KEY, TEST};
use super::{as_seq, before};
use crate::error::Outcome;
use crate::eval::rest_of;
use crate::machine::Machine;
use crate::native::{Builtin, Conduct, OptionSet, Reading};
use crate::value::Value;
use crate::value::set::Set;
use crate::value::walk::Cursor;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "some",
        &["[pred coll]"],
        "The first true value that `pred` returns for an item, or nil.",
        &[("(some even? [1 2 3])", "true"), ("(some #{2 3} [1 2 3])", "2"), ("(some even? [1])", "nil")],
        some,
    )
    .reading(Reading::Search)
    .with_conduct(Conduct::Visits),
    Builtin::new(
        "every?",
        &["[pred coll]"],
        "True if `pred` is true for all items.",
        &[("(every? even? [2 4])", "true"), ("(every? even? [])", "true")],
        every,
    )
    .reading(Reading::Search)
    .with_conduct(Conduct::Visits),
    Builtin::new(
        "not-every?",
        &["[pred coll]"],
        "True if `pred` is not true for some item.",
        &[("(not-every? even? [2 3])", "true")],
        not_every,
    )
    .reading(Reading::Search)
    .with_conduct(Conduct::Visits),
    Builtin::new(
        "not-any?",
        &["[pred coll]"],
        "True if `pred` is true for no item.",
        &[("(not-any? even? [1 3])", "true")],
        not_any,
    )
    .reading(Reading::Search)
    .with_conduct(Conduct::Visits),
    Builtin::new(
        "find-if",
        &["[pred coll]"],
        "The first item for which `pred` is true, or nil.",
        &[("(find-if even? [1 2 4])", "2")],
        find_if,
    )
    .reading(Reading::Search)
    .with_conduct(Conduct::Visits),
    Builtin::new(
        "count-if",
        &["[pred coll]"],
        "How many items satisfy `pred`.",
        &[("(count-if even? [1 2 4])", "2")],
        count_if,
    )
    .with_conduct(Conduct::Visits),
    Builtin::new(
        "member",
        &["[x coll]", "[x coll & options]"],
        "The sequence from the first item equal to `x` on, or nil. Options: `:key f`, `:test f`.",
        &[("(member 2 [1 2 3])", "(2 3)"), ("(member 5 [1])", "nil"), ("(member 2 '(1 4 3) :test <)", "(4 3)")],
        member,
    )
    .with_options(&MEMBER),
    Builtin::new(
        "empty?",
        &["[coll]"],
        "True if there are no items; also for nil.",
        &[("(empty? [])", "true"), ("(empty? nil)", "true"), ("(empty? \"a\")", "false")],
        is_empty,
    )
    .reading(Reading::Few),
    Builtin::new(
        "not-empty",
        &["[coll]"],
        "The collection, or nil if it is empty.",
        &[("(not-empty [1])", "[1]"), ("(not-empty [])", "nil")],
        not_empty,
    )
    .with_conduct(Conduct::Same),
    Builtin::new(
        "distinct?",
        &["[x & more]"],
        "True if no two of the arguments are equal.",
        &[("(distinct? 1 2 3)", "true"), ("(apply distinct? [1 2 1])", "false")],
        are_distinct,
    ),
    Builtin::new(
        "null?",
        &["[x]"],
        "True for nil and for the empty list or collection.",
        &[("(null? '())", "true"), ("(null? nil)", "true"), ("(null? 0)", "false")],
        is_null,
    ),
];

/// Aliases from other Lisps.
pub const ALIASES: &[(&str, &str)] = &[
    ("any", "some"),
    ("every", "every?"),
    ("memq", "member"),
    ("memv", "member"),
    ("find-first", "find-if"),
    ("count-where", "count-if"),
];

/// Finds the first item for which the truth of the predicate equals `wanted`; returns it with the predicate's result.
fn first_such(machine: &mut Machine, arguments: &mut [Value], wanted: bool) -> Outcome<Option<(Value, Value)>> {
    let (predicate, collection) = function_over_items(machine, arguments);
    let mut cursor = machine.seq(collection)?;
    while let Some(item) = cursor.next(machine)? {
        let answer = machine.call_on(&predicate, &item)?;
        if answer.is_truthy() == wanted {
            return Ok(Some((item, answer)));
        }
    }
    Ok(None)
}

fn some(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(first_such(machine, arguments, true)?.map_or(Value::Nil, |(_, answer)| answer))
}

/// Implements `(find-if pred coll)`.
pub(in crate::builtin) fn find_if(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(first_such(machine, arguments, true)?.map_or(Value::Nil, |(item, _)| item))
}

fn every(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(first_such(machine, arguments, false)?.is_none()))
}

fn not_every(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(first_such(machine, arguments, false)?.is_some()))
}

fn not_any(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(first_such(machine, arguments, true)?.is_none()))
}

pub(super) fn count_if(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (predicate, collection) = function_over_items(machine, arguments);
    let mut cursor = machine.seq(collection)?;
    let mut count = 0;
    while let Some(item) = cursor.next(machine)? {
        count += i64::from(machine.call1(&predicate, item)?.is_truthy());
    }
    Ok(Value::Int(count))
}

static MEMBER: OptionSet = OptionSet { function: "member", accepted: &[KEY, TEST] };

fn member(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let given = MEMBER.read(&mut arguments[2..])?;
    let wanted = take(arguments, 0);
    let mut cursor = machine.seq(take(arguments, 1))?;
    while let Some(item) = cursor.next(machine)? {
        if is_wanted(machine, &given, &wanted, &item)? {
            let rest = rest_of(machine, cursor)?;
            return Ok(before(item, rest));
        }
    }
    Ok(Value::Nil)
}

/// True if a collection has no items.
fn has_none(machine: &mut Machine, collection: &Value) -> Outcome<bool> {
    match collection {
        Value::Lazy(_) => Ok(as_seq(machine, collection.clone())?.is_nil()),
        Value::Str(text) => Ok(text.as_str().is_empty()),
        other => Ok(machine.seq(other.clone())?.remaining() == Some(0)),
    }
}

fn is_empty(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    has_none(machine, &arguments[0]).map(Value::Bool)
}

fn not_empty(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let empty = has_none(machine, &arguments[0])?;
    Ok(if empty { Value::Nil } else { take(arguments, 0) })
}

fn are_distinct(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let mut seen = Set::default();
    for argument in arguments {
        machine.charge(1)?;
        let member = machine.key(std::mem::take(argument))?;
        if !seen.insert(member) {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

fn is_null(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if Cursor::over(arguments[0].clone()).is_none() {
        return Ok(Value::Bool(false));
    }
    has_none(machine, &arguments[0]).map(Value::Bool)
}
