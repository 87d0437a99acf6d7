//! Arithmetic. These are the hottest functions, so the fast path for two integers comes first everywhere.

use super::arguments::take;
use super::arithmetic::{Operation, division_by_zero, is_number, mixed, not_a_number, overflow};
use super::decimals::absolute;
use crate::error::{Outcome, Signal};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::operators::Operator;
use crate::value::Value;
use num_bigint::BigInt;
use num_traits::Signed;
use std::sync::Arc;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "+",
        &["[& numbers]"],
        "The sum. Integer overflow beyond 64 bits is an error; `+'` promotes to big integers.",
        &[("(+ 1 2 3)", "6"), ("(+ 1 2.5)", "3.5"), ("(+)", "0"), ("(+ 1N 1)", "2N")],
        add,
    )
    .with_operator(2, Operator::Add),
    Builtin::new(
        "-",
        &["[x & numbers]"],
        "Subtracts the other numbers from the first; negates a single one.",
        &[("(- 10 3 2)", "5"), ("(- 4)", "-4")],
        subtract,
    )
    .with_operator(2, Operator::Subtract),
    Builtin::new(
        "*",
        &["[& numbers]"],
        "The product. Integer overflow beyond 64 bits is an error; `*'` promotes to big integers.",
        &[("(* 2 3 4)", "24"), ("(*)", "1")],
        multiply,
    )
    .with_operator(2, Operator::Multiply),
    Builtin::new(
        "/",
        &["[x & numbers]"],
        "The first number divided by the others. Of integers: an integer if it divides evenly, else a double.",
        &[("(/ 6 2)", "3"), ("(/ 7 2)", "3.5"), ("(/ 2)", "0.5"), ("(/ 1.0 0)", "##Inf")],
        divide,
    ),
    Builtin::new(
        "+'",
        &["[& numbers]"],
        "The sum; promotes to big integers on overflow.",
        &[("(+' 9223372036854775807 1)", "9223372036854775808N"), ("(+' 1 2)", "3")],
        add_big,
    ),
    Builtin::new(
        "-'",
        &["[x & numbers]"],
        "Like `-`, but promotes to big integers on overflow.",
        &[("(-' -9223372036854775808 1)", "-9223372036854775809N")],
        subtract_big,
    ),
    Builtin::new(
        "*'",
        &["[& numbers]"],
        "The product; promotes to big integers on overflow.",
        &[("(reduce *' (range 1 25))", "620448401733239439360000N")],
        multiply_big,
    ),
    Builtin::new("inc", &["[x]"], "`x` + 1.", &[("(inc 1)", "2"), ("(inc 1.5)", "2.5")], inc)
        .with_operator(1, Operator::Increment),
    Builtin::new("dec", &["[x]"], "`x` - 1.", &[("(dec 1)", "0")], dec).with_operator(1, Operator::Decrement),
    Builtin::new(
        "inc'",
        &["[x]"],
        "`x` + 1; promotes to a big integer on overflow.",
        &[("(inc' 9223372036854775807)", "9223372036854775808N")],
        inc_big,
    ),
    Builtin::new("dec'", &["[x]"], "`x` - 1; promotes to a big integer on overflow.", &[("(dec' 1)", "0")], dec_big),
    Builtin::new(
        "quot",
        &["[x y]"],
        "The quotient of `x` and `y`, truncated towards zero.",
        &[("(quot 7 2)", "3"), ("(quot -7 2)", "-3")],
        quotient,
    )
    .with_operator(2, Operator::Quotient),
    Builtin::new(
        "rem",
        &["[x y]"],
        "The remainder of `quot`; it has the sign of `x`.",
        &[("(rem 7 2)", "1"), ("(rem -7 2)", "-1")],
        remainder,
    )
    .with_operator(2, Operator::Remainder),
    Builtin::new(
        "mod",
        &["[x y]"],
        "`x` modulo `y`; it has the sign of `y`.",
        &[("(mod 7 2)", "1"), ("(mod -7 2)", "1"), ("(mod 5.5 2)", "1.5")],
        modulo,
    )
    .with_operator(2, Operator::Modulo),
    Builtin::new("abs", &["[x]"], "The absolute value.", &[("(abs -3)", "3"), ("(abs -1.5)", "1.5")], abs),
];

/// Aliases from other Lisps, as pairs of alias and builtin name.
pub const ALIASES: &[(&str, &str)] = &[
    ("quotient", "quot"),
    ("remainder", "rem"),
    ("modulo", "mod"),
    ("math/abs", "abs"),
    ("add1", "inc"),
    ("sub1", "dec"),
    ("1+", "inc"),
    ("1-", "dec"),
];

/// A binary operation on numbers.
type Step = fn(&mut Machine, &Value, &Value) -> Outcome<Value>;

/// Folds the operation over any number of arguments, from the left.
fn fold(machine: &mut Machine, arguments: &mut [Value], identity: i64, step: Step) -> Outcome<Value> {
    let Some((first, rest)) = arguments.split_first_mut() else { return Ok(Value::Int(identity)) };
    if !is_number(first) {
        return Err(not_a_number(first).into());
    }
    let mut result = std::mem::take(first);
    for number in rest {
        machine.charge(1)?;
        result = step(machine, &result, number)?;
    }
    Ok(result)
}

#[inline]
fn plus(machine: &mut Machine, left: &Value, right: &Value) -> Outcome<Value> {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => match a.checked_add(*b) {
            Some(sum) => Ok(Value::Int(sum)),
            None => Err(too_large("+", *a, *b)),
        },
        (Value::Float(a), Value::Float(b)) => Ok(Value::Float(a + b)),
        _ => mixed(machine, Operation::Add, left, right),
    }
}

#[inline]
fn minus(machine: &mut Machine, left: &Value, right: &Value) -> Outcome<Value> {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => match a.checked_sub(*b) {
            Some(difference) => Ok(Value::Int(difference)),
            None => Err(too_large("-", *a, *b)),
        },
        (Value::Float(a), Value::Float(b)) => Ok(Value::Float(a - b)),
        _ => mixed(machine, Operation::Subtract, left, right),
    }
}

#[inline]
fn times(machine: &mut Machine, left: &Value, right: &Value) -> Outcome<Value> {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => match a.checked_mul(*b) {
            Some(product) => Ok(Value::Int(product)),
            None => Err(too_large("*", *a, *b)),
        },
        (Value::Float(a), Value::Float(b)) => Ok(Value::Float(a * b)),
        _ => mixed(machine, Operation::Multiply, left, right),
    }
}

#[inline]
fn over(machine: &mut Machine, left: &Value, right: &Value) -> Outcome<Value> {
    match (left, right) {
        (Value::Int(_), Value::Int(0)) => Err(division_by_zero().into()),
        (Value::Int(a), Value::Int(b)) => match (a.checked_rem(*b), a.checked_div(*b)) {
            (Some(0), Some(quotient)) => Ok(Value::Int(quotient)),
            (Some(_), _) => Ok(Value::Float(*a as f64 / *b as f64)),
            (None, _) => Err(too_large("/", *a, *b)),
        },
        (Value::Float(a), Value::Float(b)) => Ok(Value::Float(a / b)),
        _ => mixed(machine, Operation::Divide, left, right),
    }
}

/// Builds the error for an operation on two integers whose result overflows.
#[cold]
fn too_large(operator: &str, left: i64, right: i64) -> Signal {
    let instead = match operator {
        "/" => "(/ (bigint x) y)".to_string(),
        operator => format!("{operator}'"),
    };
    overflow(&format!("({operator} {left} {right})"), &instead).into()
}

fn add(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match arguments {
        [a, b] => plus(machine, a, b),
        more => fold(machine, more, 0, plus),
    }
}

fn subtract(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match arguments {
        [a, b] => minus(machine, a, b),
        // Not 0 - x: the negation of 0.0 is -0.0.
        [Value::Float(x)] => Ok(Value::Float(-*x)),
        [x] => minus(machine, &Value::Int(0), x),
        more => fold(machine, more, 0, minus),
    }
}

fn multiply(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match arguments {
        [a, b] => times(machine, a, b),
        more => fold(machine, more, 1, times),
    }
}

fn divide(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match arguments {
        [a, b] => over(machine, a, b),
        [x] => over(machine, &Value::Int(1), x),
        more => fold(machine, more, 1, over),
    }
}

/// Applies the checked operation to two integers, and falls back to exact arithmetic if it overflows.
fn growing(
    machine: &mut Machine,
    operation: Operation,
    checked: fn(i64, i64) -> Option<i64>,
    left: &Value,
    right: &Value,
) -> Outcome<Value> {
    if let (Value::Int(a), Value::Int(b)) = (left, right)
        && let Some(result) = checked(*a, *b)
    {
        return Ok(Value::Int(result));
    }
    mixed(machine, operation, left, right)
}

fn plus_big(machine: &mut Machine, left: &Value, right: &Value) -> Outcome<Value> {
    growing(machine, Operation::Add, i64::checked_add, left, right)
}

fn minus_big(machine: &mut Machine, left: &Value, right: &Value) -> Outcome<Value> {
    growing(machine, Operation::Subtract, i64::checked_sub, left, right)
}

fn times_big(machine: &mut Machine, left: &Value, right: &Value) -> Outcome<Value> {
    growing(machine, Operation::Multiply, i64::checked_mul, left, right)
}

fn add_big(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    fold(machine, arguments, 0, plus_big)
}

fn subtract_big(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match arguments {
        [x] => minus_big(machine, &Value::Int(0), x),
        more => fold(machine, more, 0, minus_big),
    }
}

fn multiply_big(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    fold(machine, arguments, 1, times_big)
}

fn inc(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match &arguments[0] {
        Value::Int(x) => match x.checked_add(1) {
            Some(next) => Ok(Value::Int(next)),
            None => Err(overflow(&format!("(inc {x})"), "inc'").into()),
        },
        other => plus(machine, other, &Value::Int(1)),
    }
}

fn dec(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match &arguments[0] {
        Value::Int(x) => match x.checked_sub(1) {
            Some(next) => Ok(Value::Int(next)),
            None => Err(overflow(&format!("(dec {x})"), "dec'").into()),
        },
        other => minus(machine, other, &Value::Int(1)),
    }
}

fn inc_big(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    plus_big(machine, &arguments[0], &Value::Int(1))
}

fn dec_big(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    minus_big(machine, &arguments[0], &Value::Int(1))
}

fn quotient(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match (&arguments[0], &arguments[1]) {
        (Value::Int(_), Value::Int(0)) => Err(division_by_zero().into()),
        (Value::Int(a), Value::Int(b)) => match a.checked_div(*b) {
            Some(quotient) => Ok(Value::Int(quotient)),
            None => Err(overflow(&format!("(quot {a} {b})"), "(quot (bigint x) y)").into()),
        },
        (a, b) => mixed(machine, Operation::Quotient, a, b),
    }
}

fn remainder(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match (&arguments[0], &arguments[1]) {
        (Value::Int(_), Value::Int(0)) => Err(division_by_zero().into()),
        (Value::Int(a), Value::Int(b)) => Ok(Value::Int(a.wrapping_rem(*b))),
        (a, b) => mixed(machine, Operation::Remainder, a, b),
    }
}

fn modulo(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match (&arguments[0], &arguments[1]) {
        (Value::Int(_), Value::Int(0)) => Err(division_by_zero().into()),
        (Value::Int(a), Value::Int(b)) => {
            let rest = a.wrapping_rem(*b);
            Ok(Value::Int(if rest != 0 && (rest < 0) != (*b < 0) { rest + b } else { rest }))
        }
        (a, b) => mixed(machine, Operation::Modulo, a, b),
    }
}

fn abs(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match take(arguments, 0) {
        Value::Int(x) => match x.checked_abs() {
            Some(positive) => Ok(Value::Int(positive)),
            None => Err(overflow(&format!("(abs {x})"), "(abs (bigint x))").into()),
        },
        Value::Float(x) => Ok(Value::Float(x.abs())),
        Value::BigInt(x) if x.is_negative() => Ok(Value::BigInt(Arc::new(BigInt::abs(&x)))),
        positive @ Value::BigInt(_) => Ok(positive),
        other => absolute(&other).ok_or_else(|| not_a_number(&other).into()),
    }
}
