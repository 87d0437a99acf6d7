//! Splitting a sequence at a position: its beginning, or the rest.

use super::super::arguments::{count, function_over_items, take};
use super::super::transducers::{self, state, steps};
use super::{LEFT_OUT, as_seq, before, count_and_collection, count_up, or_empty, skip};
use crate::error::Outcome;
use crate::eval::rest_of;
use crate::machine::Machine;
use crate::native::{Builtin, Conduct, Reading};
use crate::value::Value;
use crate::value::list::List;
use crate::value::walk::Cursor;
use std::collections::VecDeque;
use std::sync::Arc;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "take",
        &["[n]", "[n coll]"],
        "The first `n` items.",
        &[("(take 2 [1 2 3])", "(1 2)"), ("(take [1 2 3] 2)", "(1 2)")],
        take_items,
    )
    .reading(Reading::Prefix)
    .with_conduct(Conduct::Take),
    Builtin::new(
        "drop",
        &["[n]", "[n coll]"],
        "The items after the first `n`.",
        &[("(drop 2 [1 2 3])", "(3)"), ("(drop 5 [1])", "()")],
        drop_items,
    )
    .reading(Reading::Stepwise)
    .with_conduct(Conduct::Same),
    Builtin::new(
        "take-while",
        &["[pred]", "[pred coll]"],
        "The leading items for which `pred` is true.",
        &[("(take-while odd? [1 3 4 5])", "(1 3)")],
        take_while,
    )
    .reading(Reading::Prefix)
    .with_conduct(Conduct::MapsRealised),
    Builtin::new(
        "drop-while",
        &["[pred]", "[pred coll]"],
        "The items from the first one for which `pred` is not true.",
        &[("(drop-while odd? [1 3 4 5])", "(4 5)")],
        drop_while,
    )
    .reading(Reading::Stepwise)
    .with_conduct(Conduct::MapsRealised),
    Builtin::new(
        "take-last",
        &["[n coll]"],
        "The last `n` items; nil if there are none.",
        &[("(take-last 2 [1 2 3])", "(2 3)"), ("(take-last 2 [])", "nil")],
        take_last,
    )
    .with_conduct(Conduct::Same),
    Builtin::new(
        "drop-last",
        &["[coll]", "[n coll]"],
        "All items but the last one, or the last `n`.",
        &[("(drop-last [1 2 3])", "(1 2)"), ("(drop-last 2 [1 2 3])", "(1)")],
        drop_last,
    )
    .with_conduct(Conduct::Same),
    Builtin::new(
        "nthrest",
        &["[coll n]"],
        "Applies `rest` `n` times: the items after the first `n`.",
        &[("(nthrest [1 2 3] 2)", "(3)"), ("(nthrest [1] 3)", "()")],
        nthrest,
    ),
    Builtin::new(
        "nthnext",
        &["[coll n]"],
        "Applies `next` `n` times: the items after the first `n`, or nil.",
        &[("(nthnext [1 2 3] 2)", "(3)"), ("(nthnext [1] 3)", "nil")],
        nthnext,
    ),
    Builtin::new(
        "split-at",
        &["[n coll]"],
        "A vector of the first `n` items and the rest.",
        &[("(split-at 2 [1 2 3])", "[(1 2) (3)]")],
        split_at,
    ),
    Builtin::new(
        "split-with",
        &["[pred coll]"],
        "A vector of the leading items for which `pred` is true, and the rest.",
        &[("(split-with odd? [1 3 4 5])", "[(1 3) (4 5)]")],
        split_with,
    ),
    Builtin::new("nthrest*", &["[coll n]"], "Expansion of `& rest` in a pattern.", &[], nthnext),
];

/// Aliases from other Lisps.
pub const ALIASES: &[(&str, &str)] = &[("list-tail", "nthrest"), ("list-head", "take"), ("nthcdr", "nthrest")];

/// The lazy sequence steps defined in this file.
pub const STEPS: &[&Builtin] = &[&LAZY_TAKE, &LAZY_DROP, &LAZY_TAKE_WHILE, &LAZY_DROP_WHILE, &LAZY_DROP_LAST];

/// Converts a count to a value, saturating at the largest 64-bit integer.
fn number(count: u64) -> Value {
    Value::Int(count.min(i64::MAX as u64) as i64)
}

fn take_items(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.len() == 1 {
        return Ok(transducers::stateful(&state::TAKE, number(count_up(&arguments[0])?), Value::Nil));
    }
    let (wanted, collection) = count_and_collection(arguments)?;
    first_of(machine, wanted, collection)
}

/// Returns the first items of a collection, lazily if the collection is lazy.
pub(super) fn first_of(machine: &mut Machine, wanted: u64, collection: Value) -> Outcome<Value> {
    if let Value::List(list) = &collection
        && let List::Range { start, step, count } = &**list
    {
        return Ok(Value::List(Arc::new(List::Range { start: *start, step: *step, count: wanted.min(*count) })));
    }
    if machine.is_lazy(&collection) {
        return Ok(machine.lazy(&LAZY_TAKE, vec![number(wanted), collection]));
    }
    let mut cursor = machine.seq(collection)?;
    machine.reserve_values(cursor.remaining().unwrap_or(0).min(wanted))?;
    let mut out = Vec::new();
    while (out.len() as u64) < wanted {
        let Some(item) = cursor.next(machine)? else { break };
        out.push(item);
        machine.grown(out.len())?;
    }
    Ok(Value::list(out))
}

static LAZY_TAKE: Builtin = Builtin::new("lazy-take*", &["[n coll]"], "A step of a lazy `take`.", &[], lazy_take);

fn lazy_take(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let wanted = count(&arguments[0])?;
    if wanted == 0 {
        return Ok(Value::Nil);
    }
    let mut cursor = machine.seq(take(arguments, 1))?;
    let Some(head) = cursor.next(machine)? else { return Ok(Value::Nil) };
    // The last item does not need the rest of its sequence, which stays unrealised.
    if wanted == 1 {
        return Ok(before(head, Value::Nil));
    }
    let rest = rest_of(machine, cursor)?;
    let tail = machine.lazy(&LAZY_TAKE, vec![number(wanted - 1), rest]);
    Ok(before(head, tail))
}

fn drop_items(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.len() == 1 {
        return Ok(transducers::stateful(&state::DROP, number(count_up(&arguments[0])?), Value::Nil));
    }
    let (unwanted, collection) = count_and_collection(arguments)?;
    without_first(machine, unwanted, collection)
}

fn without_first(machine: &mut Machine, unwanted: u64, collection: Value) -> Outcome<Value> {
    if machine.is_lazy(&collection) && !matches!(&collection, Value::List(list) if list.is_long()) {
        return Ok(machine.lazy(&LAZY_DROP, vec![number(unwanted), collection]));
    }
    let mut cursor = machine.seq(collection)?;
    skip(machine, &mut cursor, unwanted)?;
    rest_of(machine, cursor).map(or_empty)
}

static LAZY_DROP: Builtin = Builtin::new("lazy-drop*", &["[n coll]"], "A lazy `drop`.", &[], lazy_drop);

fn lazy_drop(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let unwanted = count(&arguments[0])?;
    let mut cursor = machine.seq(take(arguments, 1))?;
    if cursor.remaining().is_some() || unwanted <= LEFT_OUT {
        skip(machine, &mut cursor, unwanted)?;
        return rest_of(machine, cursor);
    }
    for _ in 0..LEFT_OUT {
        if cursor.next(machine)?.is_none() {
            return Ok(Value::Nil);
        }
    }
    let rest = rest_of(machine, cursor)?;
    Ok(machine.lazy(&LAZY_DROP, vec![number(unwanted - LEFT_OUT), rest]))
}

fn take_while(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.len() == 1 {
        return Ok(transducers::stateless(&steps::TAKE_WHILE, take(arguments, 0)));
    }
    let (predicate, collection) = function_over_items(machine, arguments);
    while_true(machine, predicate, collection)
}

fn while_true(machine: &mut Machine, predicate: Value, collection: Value) -> Outcome<Value> {
    if machine.is_lazy(&collection) {
        return Ok(machine.lazy(&LAZY_TAKE_WHILE, vec![predicate, collection]));
    }
    let mut cursor = machine.seq(collection)?;
    let mut out = Vec::new();
    while let Some(item) = cursor.next(machine)? {
        if !machine.call_on(&predicate, &item)?.is_truthy() {
            break;
        }
        out.push(item);
        machine.grown(out.len())?;
    }
    Ok(Value::list(out))
}

static LAZY_TAKE_WHILE: Builtin =
    Builtin::new("lazy-take-while*", &["[pred coll]"], "A step of a lazy `take-while`.", &[], lazy_take_while);

fn lazy_take_while(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let predicate = take(arguments, 0);
    let mut cursor = machine.seq(take(arguments, 1))?;
    let Some(head) = cursor.next(machine)? else { return Ok(Value::Nil) };
    if !machine.call1(&predicate, head.clone())?.is_truthy() {
        return Ok(Value::Nil);
    }
    let rest = rest_of(machine, cursor)?;
    let tail = machine.lazy(&LAZY_TAKE_WHILE, vec![predicate, rest]);
    Ok(before(head, tail))
}

fn drop_while(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.len() == 1 {
        return Ok(transducers::stateful(&state::DROP_WHILE, Value::Bool(true), take(arguments, 0)));
    }
    let (predicate, collection) = function_over_items(machine, arguments);
    from_first_false(machine, predicate, collection)
}

fn from_first_false(machine: &mut Machine, predicate: Value, collection: Value) -> Outcome<Value> {
    if machine.is_lazy(&collection) {
        return Ok(machine.lazy(&LAZY_DROP_WHILE, vec![predicate, collection]));
    }
    let mut cursor = machine.seq(collection)?;
    loop {
        if let Some(rest) = not_dropped(machine, &predicate, &mut cursor)? {
            return Ok(or_empty(rest));
        }
    }
}

static LAZY_DROP_WHILE: Builtin =
    Builtin::new("lazy-drop-while*", &["[pred coll]"], "A lazy `drop-while`.", &[], lazy_drop_while);

fn lazy_drop_while(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let predicate = take(arguments, 0);
    let mut cursor = machine.seq(take(arguments, 1))?;
    for _ in 0..LEFT_OUT {
        if let Some(rest) = not_dropped(machine, &predicate, &mut cursor)? {
            return Ok(rest);
        }
    }
    let rest = rest_of(machine, cursor)?;
    Ok(machine.lazy(&LAZY_DROP_WHILE, vec![predicate, rest]))
}

/// Reads an item. Returns the sequence from it on if the predicate is not true of it, and nil at the end.
fn not_dropped(machine: &mut Machine, predicate: &Value, cursor: &mut Cursor) -> Outcome<Option<Value>> {
    let Some(item) = cursor.next(machine)? else { return Ok(Some(Value::Nil)) };
    if machine.call_on(predicate, &item)?.is_truthy() {
        return Ok(None);
    }
    let rest = rest_of(machine, std::mem::replace(cursor, Cursor::End))?;
    Ok(Some(before(item, rest)))
}

fn take_last(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (wanted, collection) = count_and_collection(arguments)?;
    let mut cursor = machine.seq(collection)?;
    match cursor.remaining() {
        Some(count) if count != List::ENDLESS => {
            skip(machine, &mut cursor, count.saturating_sub(wanted))?;
            let rest = rest_of(machine, cursor)?;
            as_seq(machine, rest)
        }
        _ => {
            let mut last = VecDeque::new();
            while let Some(item) = cursor.next(machine)? {
                last.push_back(item);
                if last.len() as u64 > wanted {
                    last.pop_front();
                }
                machine.grown(last.len())?;
            }
            Ok(if last.is_empty() { Value::Nil } else { Value::list(last.into()) })
        }
    }
}

fn drop_last(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (unwanted, collection) = match arguments.len() {
        1 => (1, take(arguments, 0)),
        _ => count_and_collection(arguments)?,
    };
    if machine.is_lazy(&collection) {
        let ahead = without_first(machine, unwanted, collection.clone())?;
        return Ok(machine.lazy(&LAZY_DROP_LAST, vec![collection, ahead]));
    }
    let mut items = machine.items(collection)?;
    items.truncate(items.len().saturating_sub(usize::try_from(unwanted).unwrap_or(usize::MAX)));
    Ok(Value::list(items))
}

/// One step of a lazy `drop-last`: yields an item while `ahead`, the same sequence without its first items, has one.
static LAZY_DROP_LAST: Builtin =
    Builtin::new("lazy-drop-last*", &["[coll ahead]"], "A step of a lazy `drop-last`.", &[], lazy_drop_last);

fn lazy_drop_last(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let mut cursor = machine.seq(take(arguments, 0))?;
    let mut ahead = machine.seq(take(arguments, 1))?;
    if ahead.next(machine)?.is_none() {
        return Ok(Value::Nil);
    }
    let Some(head) = cursor.next(machine)? else { return Ok(Value::Nil) };
    let rest = vec![rest_of(machine, cursor)?, rest_of(machine, ahead)?];
    let tail = machine.lazy(&LAZY_DROP_LAST, rest);
    Ok(before(head, tail))
}

fn nthrest(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (unwanted, collection) = count_and_collection(arguments)?;
    if unwanted == 0 || collection.is_nil() {
        return Ok(collection);
    }
    let mut cursor = machine.seq(collection)?;
    skip(machine, &mut cursor, unwanted)?;
    rest_of(machine, cursor).map(or_empty)
}

fn nthnext(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments[0].is_nil() {
        return Ok(Value::Nil);
    }
    let (unwanted, collection) = count_and_collection(arguments)?;
    let mut cursor = machine.seq(collection)?;
    skip(machine, &mut cursor, unwanted)?;
    let rest = rest_of(machine, cursor)?;
    as_seq(machine, rest)
}

fn split_at(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (place, collection) = count_and_collection(arguments)?;
    let first = first_of(machine, place, collection.clone())?;
    let rest = without_first(machine, place, collection)?;
    Ok(Value::vector(vec![first, rest]))
}

fn split_with(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (predicate, collection) = function_over_items(machine, arguments);
    let first = while_true(machine, predicate.clone(), collection.clone())?;
    let rest = from_first_false(machine, predicate, collection)?;
    Ok(Value::vector(vec![first, rest]))
}
