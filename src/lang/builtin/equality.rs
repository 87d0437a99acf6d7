//! Equality, identity and truth values.

use crate::error::Outcome;
use crate::machine::Machine;
use crate::native::Builtin;
use crate::operators::Operator;
use crate::value::Value;
use crate::value::equal::{comparing_effort, visible_hash};
use crate::value::map::Map;
use std::sync::Arc;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "=",
        &["[x]", "[x y & more]"],
        "True if all are equal: lists and vectors by their items; an integer never equals a double.",
        &[("(= 1 1 1)", "true"), ("(= [1 2] '(1 2))", "true"), ("(= 1 1.0)", "false")],
        equal,
    )
    .with_operator(2, Operator::Equal),
    Builtin::new(
        "not=",
        &["[x]", "[x y & more]"],
        "True unless all are equal.",
        &[("(not= 1 2)", "true"), ("(not= :a :a)", "false")],
        not_equal,
    ),
    Builtin::new(
        "identical?",
        &["[x y]"],
        "True if both are the same object; numbers, strings and names are identical if equal.",
        &[("(identical? :a :a)", "true"), ("(identical? [1] [1])", "false")],
        is_identical,
    ),
    Builtin::new(
        "not",
        &["[x]"],
        "True for nil and false, else false.",
        &[("(not nil)", "true"), ("(not 0)", "false")],
        not,
    ),
    Builtin::new(
        "boolean",
        &["[x]"],
        "False for nil and false, else true.",
        &[("(boolean 0)", "true"), ("(boolean nil)", "false")],
        boolean,
    ),
    Builtin::new("xor", &["[x y]"], "True if exactly one of the two is true.", &[("(xor true nil)", "true")], xor),
    Builtin::new(
        "hash",
        &["[x]", "[& keyvals]"],
        "The hash code, an integer equal for equal values. With keys and values (Racket): a map of them.",
        &[("(= (hash [1 2]) (hash '(1 2)))", "true"), ("(hash 'a 1)", "{a 1}"), ("(hash)", "{}")],
        hash,
    ),
];

/// Aliases, as pairs of alias and builtin name.
pub const ALIASES: &[(&str, &str)] = &[
    ("equal?", "="),
    ("equal", "="),
    ("equalp", "="),
    ("eqv?", "identical?"),
    ("eql", "identical?"),
    ("eq?", "identical?"),
    ("eq", "identical?"),
    ("/=", "not="),
    ("!=", "not="),
];

fn equal(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    for pair in arguments.windows(2) {
        machine.charge(1)?;
        if !machine.equal(&pair[0], &pair[1])? {
            if let (Value::Str(_), Value::Int(_) | Value::Float(_)) | (Value::Int(_) | Value::Float(_), Value::Str(_)) =
                (&pair[0], &pair[1])
            {
                machine.core.look_ups.unlike(&pair[0], &pair[1]);
            }
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

fn not_equal(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let equal = equal(machine, arguments)?;
    Ok(Value::Bool(!equal.is_truthy()))
}

fn is_identical(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    machine.charge(comparing_effort(&arguments[0], &arguments[1]))?;
    Ok(Value::Bool(identical(&arguments[0], &arguments[1])))
}

/// True if both are the same value by identity: constant time, however large they are.
pub(super) fn identical(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::List(a), Value::List(b)) => Arc::ptr_eq(a, b) || a.is_empty() && b.is_empty(),
        (Value::Vector(a), Value::Vector(b)) => Arc::ptr_eq(a, b) || a.is_empty() && b.is_empty(),
        (Value::Map(a), Value::Map(b)) => Arc::ptr_eq(a, b) || a.is_empty() && b.is_empty(),
        (Value::Set(a), Value::Set(b)) => Arc::ptr_eq(a, b) || a.is_empty() && b.is_empty(),
        (Value::Lazy(a), Value::Lazy(b)) => Arc::ptr_eq(a, b),
        (Value::Reduced(a), Value::Reduced(b)) => Arc::ptr_eq(a, b),
        (a, b) if a.is_scalar() && b.is_scalar() || a.is_function() || matches!(a, Value::Exception(_)) => a == b,
        _ => false,
    }
}

fn not(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(!arguments[0].is_truthy()))
}

fn boolean(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(arguments[0].is_truthy()))
}

fn xor(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(arguments[0].is_truthy() != arguments[1].is_truthy()))
}

pub(super) fn hash(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.len() != 1 {
        let mut map = Map::default();
        super::maps::put_all(machine, &mut map, arguments)?;
        return Ok(Value::Map(Arc::new(map)));
    }
    let value = machine.key(super::arguments::take(arguments, 0))?;
    match value {
        Value::Nil => return Ok(Value::Int(0)),
        Value::Bool(truth) => return Ok(Value::Int(if truth { 1231 } else { 1237 })),
        _ => {}
    }
    Ok(Value::Int(i64::from(visible_hash(&value) as i32)))
}
