//! Helpers for functions of the prelude: selectors, and a collection as the first or the last argument.
//!
//! A selector specifies a part of an item: a function, a key (`:size`, `"size"`), a position (`2`) or a path of keys
//! (`[:from :name]`).

use super::arguments::{string, take};
use super::arithmetic::{is_number, not_a_number};
use super::functions::bound;
use super::options::only_option;
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;

/// The builtins defined in this file; they are internal and hidden from programs.
pub const TABLE: &[Builtin] = &[
    Builtin::new("selector*", &["[selector]"], "A selector as a function of an item.", &[], selector),
    Builtin::new("in-order*", &["[& arguments]"], "The arguments, the collection last.", &[], in_order),
    Builtin::new("arranged*", &["[& arguments]"], "The selectors as functions, the collection last.", &[], arranged),
    Builtin::new("numbers*", &["[coll]", "[f coll]"], "The numbers in a collection, as a vector.", &[], numbers),
    Builtin::new("option*", &["[function name rest]"], "The value of the only option.", &[], option),
    Builtin::new("expected*", &["[what value advice]"], "Raises a `TypeError`.", &[], expected),
];

/// The code of the functions that selectors are converted to.
pub const STEPS: &[&Builtin] = &[&VALUE_AT, &VALUE_UNDER];

static VALUE_AT: Builtin = Builtin::new("value-at*", &["[key item]"], "The value of a key.", &[], value_at);
static VALUE_UNDER: Builtin = Builtin::new("value-under*", &["[path item]"], "The value at a path.", &[], value_under);

fn option(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let rest = machine.items(take(arguments, 2))?;
    let name = arguments[1].as_name().map_or("", |name| name.as_str());
    Ok(only_option(string(&arguments[0])?, name, &rest)?)
}

/// Ranks how likely a value is a selector. Of the first and the last argument, the one with the lower rank is the
/// collection; on a tie it is the last one.
fn rank(value: &Value) -> u8 {
    match value {
        value if value.is_function() => 7,
        Value::Keyword(_) => 6,
        Value::Str(_) | Value::Int(_) => 5,
        path if is_path(path) => 4,
        Value::Set(_) => 3,
        Value::Map(_) => 2,
        Value::Vector(_) => 1,
        _ => 0,
    }
}

/// True for a vector of 1 to 8 keys, the first of which is not a position.
fn is_path(value: &Value) -> bool {
    const LONGEST: usize = 8;
    let Value::Vector(items) = value else { return false };
    let is_key = |item: &Value| matches!(item, Value::Keyword(_) | Value::Str(_) | Value::Int(_));
    (1..=LONGEST).contains(&items.len())
        && items.iter().all(is_key)
        && !matches!(items.get(0), None | Some(Value::Int(_)))
}

/// Converts a selector to a function.
fn function_of(value: Value) -> Value {
    match value {
        Value::Str(_) | Value::Int(_) => bound(&VALUE_AT, vec![value]),
        path if is_path(&path) => bound(&VALUE_UNDER, vec![path]),
        other => other,
    }
}

fn selector(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(function_of(take(arguments, 0)))
}

fn put_in_order(arguments: &mut [Value]) {
    if let [first, .., last] = arguments
        && rank(last) > rank(first)
    {
        arguments.rotate_left(1);
    }
}

fn in_order(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    machine.charge(arguments.len() as u64)?;
    put_in_order(arguments);
    Ok(Value::vector(arguments.iter_mut().map(std::mem::take).collect()))
}

fn arranged(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    machine.charge(arguments.len() as u64)?;
    put_in_order(arguments);
    let last = arguments.len().saturating_sub(1);
    let arranged = arguments.iter_mut().map(std::mem::take).enumerate();
    Ok(Value::vector(arranged.map(|(at, value)| if at < last { function_of(value) } else { value }).collect()))
}

fn value_at(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    machine.field(&arguments[1], &arguments[0])
}

fn value_under(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let mut value = take(arguments, 1);
    if let Value::Vector(path) = &arguments[0] {
        for key in path.iter() {
            machine.charge(1)?;
            value = machine.field(&value, key)?;
        }
    }
    Ok(value)
}

fn numbers(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    put_in_order(arguments);
    let (function, collection) = match arguments {
        [collection] => (None, std::mem::take(collection)),
        _ => (Some(function_of(take(arguments, 0))), take(arguments, 1)),
    };
    let mut cursor = machine.seq(collection)?;
    let mut out = Vec::new();
    while let Some(item) = cursor.next(machine)? {
        let number = match &function {
            Some(function) => machine.call1(function, item)?,
            None => item,
        };
        if !is_number(&number) {
            return Err(not_a_number(&number).into());
        }
        out.push(number);
        machine.grown(out.len())?;
    }
    Ok(Value::vector(out))
}

fn expected(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let error = Error::expected(&text(&arguments[0]), &arguments[1]);
    Err(error.suggest(text(&arguments[2])).into())
}
