//! Arithmetic on mixed kinds of numbers and on big integers: the cold path of the operators.
//!
//! If either operand is a double, so is the result; otherwise, if either is a decimal, so is the result; a big integer
//! with an integer yields a big integer. Big-integer operations are charged by operand size before they run.

use super::decimals;
use crate::error::{Error, Outcome, describe};
use crate::machine::Machine;
use crate::value::compare::as_double;
use crate::value::{Value, decimal, quotient};
use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::Zero;
use std::sync::Arc;

/// A binary arithmetic operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `quot`: truncates towards zero
    Quotient,
    /// `rem`: takes the sign of the dividend
    Remainder,
    /// `mod`: takes the sign of the divisor
    Modulo,
}

/// Computes an operation in which an operand or the result is not a 64-bit integer.
///
/// # Errors
/// Returns `TypeError` if an operand is not a number and `ArithmeticError` for a division by zero; halts if a resource
/// limit is exceeded.
#[cold]
#[inline(never)]
pub fn mixed(machine: &mut Machine, operation: Operation, left: &Value, right: &Value) -> Outcome<Value> {
    if matches!(left, Value::Float(_)) || matches!(right, Value::Float(_)) {
        if let (Value::Decimal(number), _) | (_, Value::Decimal(number)) = (left, right) {
            machine.charge(decimal::double_effort(number))?;
        }
        return floats(operation, float(left)?, float(right)?);
    }
    if matches!(left, Value::Decimal(_)) || matches!(right, Value::Decimal(_)) {
        return decimals::operate(machine, operation, left, right);
    }
    let (left, right) = (big(left)?, big(right)?);
    pay(machine, operation, left.bits(), right.bits())?;
    if right.is_zero() && !matches!(operation, Operation::Add | Operation::Subtract | Operation::Multiply) {
        return Err(division_by_zero().into());
    }
    let result = match operation {
        Operation::Add => &*left + &*right,
        Operation::Subtract => &*left - &*right,
        Operation::Multiply => &*left * &*right,
        Operation::Divide => match left.div_rem(&right) {
            (quotient, rest) if rest.is_zero() => quotient,
            _ => return Ok(Value::Float(quotient::inexact(&left, &right))),
        },
        Operation::Quotient => &*left / &*right,
        Operation::Remainder => &*left % &*right,
        Operation::Modulo => left.mod_floor(&right),
    };
    Ok(Value::BigInt(Arc::new(result)))
}

#[cold]
fn no_whole_quotient(left: f64, right: f64) -> Error {
    let (left, right) = (describe(&Value::Float(left)), describe(&Value::Float(right)));
    Error::new("ArithmeticError", format!("{left} divided by {right} has no whole quotient"))
        .suggest("test with `NaN?` and `infinite?` first")
}

fn floats(operation: Operation, left: f64, right: f64) -> Outcome<Value> {
    let remainder = || {
        let quotient = left / right;
        // Clojure's formula, so that the last digits agree; for quotients beyond 64 bits, the exact remainder.
        if quotient.abs() < 9e18 { left - quotient.trunc() * right } else { left % right }
    };
    let wants_divisor = matches!(operation, Operation::Quotient | Operation::Remainder | Operation::Modulo);
    if wants_divisor && right == 0.0 {
        return Err(division_by_zero().into());
    }
    if wants_divisor && !(left / right).is_finite() {
        return Err(no_whole_quotient(left, right).into());
    }
    Ok(Value::Float(match operation {
        Operation::Add => left + right,
        Operation::Subtract => left - right,
        Operation::Multiply => left * right,
        Operation::Divide => left / right,
        // Adding 0.0 turns -0.0 into 0.0, as an integer quotient has no signed zero.
        Operation::Quotient => (left / right).trunc() + 0.0,
        Operation::Remainder => remainder(),
        Operation::Modulo => match remainder() {
            rest if rest == 0.0 || (left > 0.0) == (right > 0.0) => rest,
            rest => rest + right,
        },
    }))
}

/// Charges for an operation on integers of the given bit lengths and reserves memory for the result.
fn pay(machine: &mut Machine, operation: Operation, left: u64, right: u64) -> Outcome<()> {
    let (left, right) = (left / 64 + 1, right / 64 + 1);
    let (steps, words) = match operation {
        Operation::Add | Operation::Subtract => ((left + right) / 16, left.max(right) + 1),
        Operation::Multiply => (left.saturating_mul(right) / 8, left + right),
        _ => (left.saturating_mul(right) / 8, left.max(right)),
    };
    machine.charge(steps)?;
    if words > 512 { machine.reserve(words.saturating_mul(16)) } else { Ok(()) }
}

/// Charges for converting an integer of `bits` bits to or from digits: either direction takes time quadratic in the
/// length.
///
/// # Errors
/// Halts if a resource limit is exceeded.
pub fn pay_for_digits(machine: &mut Machine, bits: u64) -> Outcome<()> {
    let words = bits / 64;
    machine.charge(decimal::square_effort(bits) + words)?;
    if words > 512 { machine.reserve(words.saturating_mul(32)) } else { Ok(()) }
}

/// Raises an integer to a power, exactly.
///
/// # Errors
/// Halts if a resource limit is exceeded.
pub fn power(machine: &mut Machine, base: &BigInt, exponent: u64) -> Outcome<BigInt> {
    let bits = match base.bits() {
        0 | 1 => 1,
        bits => bits.saturating_mul(exponent),
    };
    pay(machine, Operation::Multiply, bits / 2, bits / 2)?;
    machine.reserve(bits / 4)?;
    Ok(match u32::try_from(exponent) {
        Ok(exponent) => base.pow(exponent),
        // With an exponent of 2^32 or more, only the powers of 0, 1 and -1 fit into memory.
        Err(_) if exponent.is_multiple_of(2) => base * base,
        Err(_) => base.clone(),
    })
}

/// Returns a number as a double.
///
/// # Errors
/// Returns `TypeError` if the value is not a number.
#[inline]
pub fn float(value: &Value) -> Result<f64, Error> {
    match value {
        Value::Float(number) => Ok(*number),
        Value::Int(number) => Ok(*number as f64),
        other => as_double(other).ok_or_else(|| not_a_number(other)),
    }
}

/// Returns an integer as a big integer.
///
/// # Errors
/// Returns `TypeError` if the value is not an integer.
pub fn big(value: &Value) -> Result<Arc<BigInt>, Error> {
    match value {
        Value::BigInt(number) => Ok(number.clone()),
        Value::Int(number) => Ok(Arc::new(BigInt::from(*number))),
        other => Err(not_a_number(other)),
    }
}

/// True for numbers of any kind.
#[inline]
pub fn is_number(value: &Value) -> bool {
    matches!(value, Value::Int(_) | Value::Float(_) | Value::BigInt(_) | Value::Decimal(_))
}

/// Builds the error for an argument that is not a number, with advice by its kind.
#[cold]
pub fn not_a_number(value: &Value) -> Error {
    let error = Error::expected("a number", value);
    match value {
        Value::Nil => error
            .suggest("nil comes from a missing key, an empty collection or text that is not a number: `(or x 0)` replaces it with a number"),
        Value::Str(_) => {
            error.suggest("`(parse-long s)` and `(parse-double s)` read a number from a string; `str` joins strings")
        }
        Value::List(items) if items.as_slice().is_some_and(|items| items.len() == 1) => error.suggest(
            "`first` takes the only item out of a list; the value of a map entry is `(val entry)` or `(second entry)`",
        ),
        Value::List(_) | Value::Vector(_) | Value::Set(_) | Value::Lazy(_) => {
            error.suggest("for the items of a collection write `(reduce + xs)`, `(apply max xs)` or `(map inc xs)`")
        }
        value if value.is_function() => error.suggest("call the function in brackets: `(f x)`"),
        _ => error,
    }
}

/// Builds the error for a division by zero.
#[cold]
pub fn division_by_zero() -> Error {
    Error::new("ArithmeticError", "divide by zero").suggest("test the divisor first, for example with `zero?`")
}

/// Builds the error for a result that does not fit into 64 bits; `what` describes the operation.
#[cold]
pub fn overflow(what: &str, instead: &str) -> Error {
    Error::new("IntegerOverflow", format!("integer overflow: `{what}` does not fit into 64 bits"))
        .suggest(format!("use `{instead}`, which promotes to big integers, or write one number as `1N`"))
}
