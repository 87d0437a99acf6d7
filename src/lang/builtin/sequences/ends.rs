//! The items at both ends of a sequence, the sequence without them, and the item at an index.

use super::super::arguments::{take, whole};
use super::super::builders::{builder, content};
use super::super::matchers;
use super::{as_seq, count_and_collection, count_of, is_number, or_empty, skip};
use crate::error::{Error, Outcome};
use crate::eval::rest_of;
use crate::machine::Machine;
use crate::native::{Builtin, Conduct, Reading};
use crate::value::Value;
use crate::value::list::List;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "first",
        &["[coll]"],
        "The first item, or nil.",
        &[("(first [1 2])", "1"), ("(first [])", "nil")],
        first,
    )
    .reading(Reading::Few),
    Builtin::new("second", &["[coll]"], "The second item, or nil.", &[("(second [1 2])", "2")], second)
        .reading(Reading::Few),
    Builtin::new("third", &["[coll]"], "The third item, or nil.", &[("(third [1 2 3])", "3")], third)
        .reading(Reading::Few),
    Builtin::new(
        "last",
        &["[coll]"],
        "The last item, or nil.",
        &[("(last [1 2 3])", "3"), ("(last nil)", "nil")],
        last,
    ),
    Builtin::new(
        "rest",
        &["[coll]"],
        "The items after the first; the empty list if there are none.",
        &[("(rest [1 2 3])", "(2 3)"), ("(rest [])", "()")],
        rest,
    )
    .with_conduct(Conduct::Same),
    Builtin::new(
        "next",
        &["[coll]"],
        "The items after the first; nil if there are none.",
        &[("(next [1 2])", "(2)"), ("(next [1])", "nil")],
        next,
    )
    .with_conduct(Conduct::Same),
    Builtin::new(
        "butlast",
        &["[coll]"],
        "All items but the last; nil if there are none.",
        &[("(butlast [1 2 3])", "(1 2)"), ("(butlast [1])", "nil")],
        butlast,
    )
    .with_conduct(Conduct::Same),
    Builtin::new("ffirst", &["[coll]"], "The first item of the first item.", &[("(ffirst [[1 2] [3]])", "1")], ffirst)
        .reading(Reading::Few),
    Builtin::new(
        "nfirst",
        &["[coll]"],
        "`next` of the first item: its items after the first, or nil.",
        &[("(nfirst [[1 2] [3]])", "(2)")],
        nfirst,
    ),
    Builtin::new("fnext", &["[coll]"], "The second item, or nil.", &[("(fnext [1 2 3])", "2")], second)
        .reading(Reading::Few),
    Builtin::new(
        "nnext",
        &["[coll]"],
        "The items after the second; nil if there are none.",
        &[("(nnext [1 2 3])", "(3)"), ("(nnext [1 2])", "nil")],
        nnext,
    ),
    Builtin::new(
        "cdr",
        &["[pair]"],
        "The second part of a pair: the value of a map entry, b of `(a . b)`. For anything else, `rest`.",
        &[
            ("(cdr '(1 2 3))", "(2 3)"),
            ("(cdr [1 2])", "(2)"),
            ("(map cdr {:a 1 :b 2})", "(1 2)"),
            ("(cdr '(a . b))", "b"),
            ("(cdr (cons :a 1))", "1"),
        ],
        |machine, arguments| cdr(machine, take(arguments, 0)),
    ),
    Builtin::new("cddr", &["[coll]"], "The items after the second.", &[("(cddr '(1 2 3))", "(3)")], cddr),
    Builtin::new(
        "cdar",
        &["[coll]"],
        "The `cdr` of the first item: the items after its first, or the value of an entry.",
        &[("(cdar '((1 2 3) 4))", "(2 3)"), ("(cdar {:a 1})", "1")],
        cdar,
    ),
    Builtin::new(
        "cadar",
        &["[coll]"],
        "The second item of the first item: the value of the first pair of an association list.",
        &[("(cadar '((1 2) (3 4)))", "2")],
        cadar,
    ),
    Builtin::new(
        "seq",
        &["[coll]"],
        "The collection as a sequence; nil if it is empty.",
        &[("(seq {:a 1})", "([:a 1])"), ("(seq [])", "nil")],
        seq,
    )
    .with_conduct(Conduct::Same),
    Builtin::new(
        "count",
        &["[coll]", "[pred coll]"],
        "The number of items, characters of a string or entries of a map. With a predicate, how many items satisfy it.",
        &[("(count [1 2])", "2"), ("(count \"äö\")", "2"), ("(count nil)", "0")],
        count_items,
    ),
    Builtin::new(
        "bounded-count",
        &["[n coll]"],
        "The number of items; of items that must be walked to count them, at most `n` are walked.",
        &[("(bounded-count 3 (iterate inc 0))", "3"), ("(bounded-count 3 [1 2 3 4])", "4")],
        bounded_count,
    ),
    Builtin::new(
        "nth",
        &["[coll index]", "[coll index default]"],
        "The item at an index, from 0; out of range, the default value or an error.",
        &[("(nth [5 6] 1)", "6"), ("(nth [5 6] 9 :none)", ":none")],
        nth,
    )
    .reading(Reading::Few),
];

/// Aliases from other Lisps.
pub const ALIASES: &[(&str, &str)] = &[
    ("car", "first"),
    ("cadr", "second"),
    ("caddr", "third"),
    ("caar", "ffirst"),
    ("length", "count"),
    ("list-ref", "nth"),
    ("vector-ref", "nth"),
    ("elt", "nth"),
    ("vector-length", "count"),
];

/// Returns the item at an index, if there is one; `None` for a collection that has to be walked to find it.
#[inline]
fn found_at(collection: &Value, index: usize) -> Option<Option<Value>> {
    match collection {
        Value::Vector(vector) => Some(vector.get(index).cloned()),
        Value::List(list) => match &**list {
            List::View(view) => view.is_indexed().then(|| view.get(index)),
            list => Some(list.as_slice()?.get(index).cloned()),
        },
        _ => None,
    }
}

/// Returns the item at a zero-based index, or nil.
fn at(machine: &mut Machine, collection: Value, index: usize) -> Outcome<Value> {
    if let Some(found) = found_at(&collection, index) {
        return Ok(found.unwrap_or_default());
    }
    let mut cursor = machine.seq(collection)?;
    skip(machine, &mut cursor, index as u64)?;
    Ok(cursor.next(machine)?.unwrap_or_default())
}

fn first(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    at(machine, take(arguments, 0), 0)
}

fn second(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    at(machine, take(arguments, 0), 1)
}

fn third(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    at(machine, take(arguments, 0), 2)
}

fn ffirst(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let inner = at(machine, take(arguments, 0), 0)?;
    at(machine, inner, 0)
}

fn last(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let mut cursor = machine.seq(take(arguments, 0))?;
    let known = cursor.remaining().filter(|count| *count != List::ENDLESS);
    skip(machine, &mut cursor, known.unwrap_or(0).saturating_sub(1))?;
    let mut last = Value::Nil;
    while let Some(item) = cursor.next(machine)? {
        last = item;
    }
    Ok(last)
}

/// Returns the sequence after the first `count` items, or nil if it is known to be empty.
fn behind(machine: &mut Machine, collection: Value, count: u64) -> Outcome<Value> {
    if let Value::List(list) = &collection
        && let List::View(view) = &**list
        && view.is_indexed()
    {
        let mut rest = view.clone();
        rest.leave_out(usize::try_from(count).unwrap_or(usize::MAX));
        return Ok(rest.into_seq());
    }
    let mut cursor = machine.seq(collection)?;
    skip(machine, &mut cursor, count)?;
    match cursor.remaining() {
        Some(0) => Ok(Value::Nil),
        _ => rest_of(machine, cursor),
    }
}

/// Returns the sequence after the first item, without realising it.
fn behind_first(machine: &mut Machine, collection: Value) -> Outcome<Value> {
    Ok(match behind(machine, collection, 1)? {
        rest @ (Value::List(_) | Value::Lazy(_)) => rest,
        other => or_empty(as_seq(machine, other)?),
    })
}

fn rest(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    behind_first(machine, take(arguments, 0))
}

fn next(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let rest = behind(machine, take(arguments, 0), 1)?;
    as_seq(machine, rest)
}

fn nnext(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let rest = behind(machine, take(arguments, 0), 2)?;
    as_seq(machine, rest)
}

fn nfirst(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let inner = at(machine, take(arguments, 0), 0)?;
    let rest = behind(machine, inner, 1)?;
    as_seq(machine, rest)
}

fn cddr(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let rest = behind_first(machine, take(arguments, 0))?;
    behind_first(machine, rest)
}

/// Scheme's `cdr`. A vector of two items is a pair only if a map or `cons` created it: a JSON array of two items is
/// merely a short list.
fn cdr(machine: &mut Machine, value: Value) -> Outcome<Value> {
    if let Value::Vector(vector) = &value
        && let Some(second) = vector.second_of_pair()
    {
        return Ok(second.clone());
    }
    if let Value::List(list) = &value
        && let Some([_, Value::Symbol(dot), second]) = list.as_slice()
        && dot.as_str() == "."
    {
        return Ok(second.clone());
    }
    behind_first(machine, value)
}

fn cdar(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let first = at(machine, take(arguments, 0), 0)?;
    cdr(machine, first)
}

fn cadar(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let first = at(machine, take(arguments, 0), 0)?;
    at(machine, first, 1)
}

fn butlast(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let mut items = machine.items(take(arguments, 0))?;
    items.pop();
    Ok(if items.is_empty() { Value::Nil } else { Value::list(items) })
}

fn seq(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    as_seq(machine, take(arguments, 0))
}

fn count_items(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.len() == 2 {
        let finds = |value: &Value| value.is_function() || matches!(value, Value::Keyword(_));
        if finds(&arguments[0]) || finds(&arguments[1]) {
            return super::questions::count_if(machine, arguments);
        }
        return Err(Error::new("ArityError", "`count` takes one collection: `(count xs)`")
            .suggest("`(count-if odd? xs)` counts the items that fit; those equal to x: `(count-if #(= x %) xs)`")
            .into());
    }
    crate::eval::transients::open(machine, &mut arguments[0])?;
    if let Some(cell) = builder(&arguments[0]).cloned() {
        arguments[0] = Value::Str(content(machine, &cell)?);
    }
    count_of(machine, take(arguments, 0)).map(|count| Value::Int(count as i64))
}

fn bounded_count(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (most, collection) = count_and_collection(arguments)?;
    let mut cursor = machine.seq(collection)?;
    let mut counted = 0_u64;
    // A collection with a known count returns it, regardless of the requested bound.
    if let Some(count) = cursor.remaining().filter(|count| *count != List::ENDLESS) {
        return Ok(Value::Int(count as i64));
    }
    while counted < most {
        match cursor.remaining() {
            Some(left) => counted = most.min(counted.saturating_add(left)),
            None if cursor.next(machine)?.is_some() => {
                counted += 1;
                continue;
            }
            None => {}
        }
        break;
    }
    Ok(Value::Int(counted as i64))
}

pub(crate) fn nth(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    crate::eval::transients::open(machine, &mut arguments[0])?;
    if let Some(groups) = matchers::last_groups(machine, &arguments[0]) {
        arguments[0] = Value::vector(groups);
    }
    if is_number(&arguments[0]) && !is_number(&arguments[1]) {
        arguments.swap(0, 1);
    }
    let index = whole(&arguments[1])?;
    let default = arguments.get_mut(2).map(std::mem::take);
    let is_nil = arguments[0].is_nil();
    let collection = take(arguments, 0);
    if matches!(collection, Value::Map(_) | Value::Set(_)) {
        return Err(Error::expected("a sequence", &collection).suggest("look a key up with `get`").into());
    }
    let found = match usize::try_from(index) {
        Err(_) => None,
        Ok(at) => match found_at(&collection, at) {
            Some(found) => found,
            None => {
                let mut cursor = machine.seq(collection)?;
                skip(machine, &mut cursor, at as u64)?;
                cursor.next(machine)?
            }
        },
    };
    match found.or(default) {
        Some(value) => Ok(value),
        None if is_nil => Ok(Value::Nil),
        None => Err(out_of_bounds(index).into()),
    }
}

#[cold]
fn out_of_bounds(index: i64) -> Error {
    Error::new("IndexOutOfBounds", format!("index {index} is outside of the collection"))
        .suggest("give a default as third argument, or use `get`")
}
