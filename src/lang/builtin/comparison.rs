//! Numeric comparison and predicates.

use super::arguments::{integer, take};
use super::arithmetic::{float, is_number, not_a_number};
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::operators::Operator;
use crate::value::Value;
use crate::value::compare::compare_numbers;
use crate::value::equal::comparing_effort;
use num_integer::Integer;
use std::cmp::Ordering;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "<",
        &["[x & numbers]"],
        "True if each number is less than the next.",
        &[("(< 1 2)", "true"), ("(< 1 2 2)", "false"), ("(< 1 2.5)", "true")],
        less,
    )
    .with_operator(2, Operator::Less),
    Builtin::new(
        "<=",
        &["[x & numbers]"],
        "True if no number is greater than the next.",
        &[("(<= 1 2 2)", "true"), ("(<= 2 1)", "false")],
        less_or_equal,
    )
    .with_operator(2, Operator::LessOrEqual),
    Builtin::new(
        ">",
        &["[x & numbers]"],
        "True if each number is greater than the next.",
        &[("(> 3 2 1)", "true"), ("(> 1 2)", "false")],
        greater,
    )
    .with_operator(2, Operator::Greater),
    Builtin::new(
        ">=",
        &["[x & numbers]"],
        "True if no number is less than the next.",
        &[("(>= 2 2 1)", "true")],
        greater_or_equal,
    )
    .with_operator(2, Operator::GreaterOrEqual),
    Builtin::new(
        "==",
        &["[x & numbers]"],
        "True if the numbers are equal in value, regardless of type.",
        &[("(== 1 1.0)", "true"), ("(== 1 2)", "false")],
        same_number,
    )
    .with_operator(2, Operator::SameNumber),
    Builtin::new(
        "max",
        &["[x & numbers]"],
        "The largest of the numbers.",
        &[("(max 1 3 2)", "3"), ("(apply max [1 5])", "5")],
        max,
    ),
    Builtin::new("min", &["[x & numbers]"], "The smallest of the numbers.", &[("(min 2 1 3)", "1")], min),
    Builtin::new("zero?", &["[x]"], "True for 0 and 0.0.", &[("(zero? 0)", "true"), ("(zero? 0.1)", "false")], is_zero)
        .with_operator(1, Operator::IsZero),
    Builtin::new("pos?", &["[x]"], "True for a positive number.", &[("(pos? 1)", "true")], is_positive)
        .with_operator(1, Operator::IsPositive),
    Builtin::new("neg?", &["[x]"], "True for a negative number.", &[("(neg? -1)", "true")], is_negative)
        .with_operator(1, Operator::IsNegative),
    Builtin::new(
        "even?",
        &["[x]"],
        "True for an even integer.",
        &[("(even? 4)", "true"), ("(even? 3)", "false")],
        is_even,
    )
    .with_operator(1, Operator::IsEven),
    Builtin::new("odd?", &["[x]"], "True for an odd integer.", &[("(odd? 3)", "true")], is_odd)
        .with_operator(1, Operator::IsOdd),
    Builtin::new("NaN?", &["[x]"], "True for the double NaN (not a number).", &[("(NaN? ##NaN)", "true")], is_nan),
    Builtin::new(
        "infinite?",
        &["[x]"],
        "True for a double that is infinite.",
        &[("(infinite? ##-Inf)", "true"), ("(infinite? 1)", "false")],
        is_infinite,
    ),
];

/// Aliases from other Lisps, as pairs of alias and builtin name.
pub const ALIASES: &[(&str, &str)] = &[
    ("nan?", "NaN?"),
    ("Double/isNaN", "NaN?"),
    ("Float/isNaN", "NaN?"),
    ("Float/isInfinite", "infinite?"),
    ("Double/isInfinite", "infinite?"),
    ("positive?", "pos?"),
    ("negative?", "neg?"),
    ("zerop", "zero?"),
    ("plusp", "pos?"),
    ("minusp", "neg?"),
    ("evenp", "even?"),
    ("oddp", "odd?"),
    ("math/max", "max"),
    ("math/min", "min"),
];

#[inline]
fn less(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match arguments {
        [Value::Int(a), Value::Int(b)] => Ok(Value::Bool(a < b)),
        other => chain(machine, other, Ordering::is_lt),
    }
}

#[inline]
fn less_or_equal(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match arguments {
        [Value::Int(a), Value::Int(b)] => Ok(Value::Bool(a <= b)),
        other => chain(machine, other, Ordering::is_le),
    }
}

#[inline]
fn greater(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match arguments {
        [Value::Int(a), Value::Int(b)] => Ok(Value::Bool(a > b)),
        other => chain(machine, other, Ordering::is_gt),
    }
}

#[inline]
fn greater_or_equal(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match arguments {
        [Value::Int(a), Value::Int(b)] => Ok(Value::Bool(a >= b)),
        other => chain(machine, other, Ordering::is_ge),
    }
}

#[inline]
fn same_number(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match arguments {
        [Value::Int(a), Value::Int(b)] => Ok(Value::Bool(a == b)),
        other => chain(machine, other, Ordering::is_eq),
    }
}

/// True if `holds` accepts the ordering of every two adjacent numbers.
fn chain(machine: &mut Machine, numbers: &[Value], holds: fn(Ordering) -> bool) -> Outcome<Value> {
    for pair in numbers.windows(2) {
        machine.charge(1 + comparing_effort(&pair[0], &pair[1]))?;
        if !order(&pair[0], &pair[1])?.is_some_and(holds) {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

/// Orders two numbers; `None` if either is NaN.
fn order(left: &Value, right: &Value) -> Result<Option<Ordering>, Error> {
    match (left, right) {
        (Value::Float(a), Value::Float(b)) => Ok(a.partial_cmp(b)),
        (Value::Float(nan), other) | (other, Value::Float(nan)) if nan.is_nan() && is_number(other) => Ok(None),
        _ => compare_numbers(left, right).map(Some).ok_or_else(|| no_order(left, right)),
    }
}

#[cold]
fn no_order(left: &Value, right: &Value) -> Error {
    let wrong = if is_number(left) { right } else { left };
    match (left, right) {
        (Value::Str(_), Value::Str(_)) => Error::expected("a number", wrong)
            .suggest("strings are ordered by `compare`: `(neg? (compare a b))`, and `sort` orders them as they are"),
        _ => not_a_number(wrong),
    }
}

fn max(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    extreme(machine, arguments, Ordering::is_ge)
}

fn min(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    extreme(machine, arguments, Ordering::is_le)
}

/// Returns the best number. Of equal numbers the last one wins.
fn extreme(machine: &mut Machine, arguments: &mut [Value], better: fn(Ordering) -> bool) -> Outcome<Value> {
    let mut best = take(arguments, 0);
    if arguments.len() > 1 && !is_number(&best) {
        return Err(not_a_number(&best).into());
    }
    for number in &mut arguments[1..] {
        machine.charge(1 + comparing_effort(number, &best))?;
        match order(number, &best)? {
            Some(order) if !better(order) => {}
            // A comparison with NaN yields NaN.
            None if matches!(best, Value::Float(best) if best.is_nan()) => {}
            _ => best = std::mem::take(number),
        }
    }
    Ok(best)
}

/// Orders a number against zero; `None` for NaN.
fn sign(value: &Value) -> Result<Option<Ordering>, Error> {
    match value {
        Value::Int(number) => Ok(Some(number.cmp(&0))),
        other => order(other, &Value::Int(0)),
    }
}

fn is_zero(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(sign(&arguments[0])? == Some(Ordering::Equal)))
}

fn is_positive(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(sign(&arguments[0])? == Some(Ordering::Greater)))
}

fn is_negative(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(sign(&arguments[0])? == Some(Ordering::Less)))
}

fn even(value: &Value) -> Result<bool, Error> {
    match value {
        Value::Int(number) => Ok(number & 1 == 0),
        Value::BigInt(number) => Ok(number.is_even()),
        other => integer(other).map(|number| number & 1 == 0),
    }
}

fn is_even(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(even(&arguments[0])?))
}

fn is_odd(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(!even(&arguments[0])?))
}

fn is_nan(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(float(&arguments[0])?.is_nan()))
}

fn is_infinite(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    // A big integer beyond the range of doubles converts to infinity but is finite.
    Ok(Value::Bool(float(&arguments[0])?.is_infinite() && matches!(arguments[0], Value::Float(_))))
}
