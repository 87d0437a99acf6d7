//! Ordering of values, following Clojure's `compare`: nil first, numbers by size, strings by text, names by namespace
//! and then by base name, times of one kind chronologically, vectors by length and then item by item.

use super::equal::comparing_effort;
use super::text::Name;
use super::{Value, decimal};
use crate::error::{Error, Outcome, describe};
use crate::machine::Machine;
use crate::meter::owe;
use num_bigint::BigInt;
use num_traits::ToPrimitive;
use std::cmp::Ordering;
use std::sync::Arc;

/// Compares two values.
///
/// # Errors
/// Returns `TypeError` if the two values have no defined order.
#[inline]
pub fn compare(machine: &mut Machine, left: &Value, right: &Value) -> Outcome<Ordering> {
    let order = match (left, right) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
        _ => return compare_any(machine, left, right),
    };
    machine.charge(1)?;
    Ok(order)
}

#[inline(never)]
fn compare_any(machine: &mut Machine, left: &Value, right: &Value) -> Outcome<Ordering> {
    machine.charge(1 + comparing_effort(left, right))?;
    if let Some(order) = compare_scalars(left, right) {
        return Ok(order);
    }
    let mut tasks = vec![(left.clone(), right.clone(), 0_usize)];
    while let Some((left, right, at)) = tasks.pop() {
        machine.charge(1)?;
        let (Value::Vector(a), Value::Vector(b)) = (&left, &right) else {
            return Err(incomparable(&left, &right).into());
        };
        if Arc::ptr_eq(a, b) {
            continue;
        }
        match a.len().cmp(&b.len()) {
            Ordering::Equal => {}
            unequal => return Ok(unequal),
        }
        let (Some(x), Some(y)) = (a.get(at).cloned(), b.get(at).cloned()) else { continue };
        tasks.push((left, right, at + 1));
        machine.charge(comparing_effort(&x, &y))?;
        match compare_scalars(&x, &y) {
            Some(Ordering::Equal) => {}
            Some(unequal) => return Ok(unequal),
            None => tasks.push((x, y, 0)),
        }
    }
    Ok(Ordering::Equal)
}

/// Orders two values that nest no deeper than keys may; `None` if they have no order. Charges nothing directly; the
/// cost of long comparisons is recorded as owed.
pub fn natural(left: &Value, right: &Value) -> Option<Ordering> {
    let (Value::Vector(a), Value::Vector(b)) = (left, right) else {
        super::equal::owe_for_scan(left, 1);
        return compare_scalars(left, right);
    };
    let by_length = a.len().cmp(&b.len());
    if by_length != Ordering::Equal {
        return Some(by_length);
    }
    let mut passed = 0;
    let unequal = a.iter().zip(b.iter()).map(|(x, y)| natural(x, y)).find(|order| {
        passed += 1;
        *order != Some(Ordering::Equal)
    });
    if passed >= 256 {
        owe(passed);
    }
    unequal.unwrap_or(Some(Ordering::Equal))
}

fn incomparable(left: &Value, right: &Value) -> Error {
    if left.kind() == right.kind() {
        return Error::new("TypeError", format!("{} cannot be ordered", left.kind())).suggest(
            "compare numbers, strings, keywords, dates or vectors of these: `(vec xs)` makes a vector of a list",
        );
    }
    Error::new("TypeError", format!("cannot compare {} with {}", describe(left), describe(right)))
        .suggest("compare values of one kind, for example with a key function in `sort-by`")
}

fn compare_scalars(left: &Value, right: &Value) -> Option<Ordering> {
    Some(match (left, right) {
        (Value::Nil, Value::Nil) => Ordering::Equal,
        (Value::Nil, _) => Ordering::Less,
        (_, Value::Nil) => Ordering::Greater,
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Char(a), Value::Char(b)) => a.cmp(b),
        (Value::Time(a), Value::Time(b)) => return a.compare(b),
        (Value::Str(a), Value::Str(b)) => a.as_str().cmp(b.as_str()),
        (Value::Keyword(a), Value::Keyword(b)) => compare_names(a, b),
        (a, b) if let (Some(a), Some(b)) = (a.as_symbol(), b.as_symbol()) => compare_names(a, b),
        (a, b) => return compare_numbers(a, b),
    })
}

/// Compares two numbers, following Clojure: as doubles if either is a double, otherwise exactly. A NaN compares as
/// equal to everything. `None` unless both are numbers.
pub fn compare_numbers(left: &Value, right: &Value) -> Option<Ordering> {
    Some(match (left, right) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Float(a), b) => a.partial_cmp(&as_double(b)?).unwrap_or(Ordering::Equal),
        (a, Value::Float(b)) => as_double(a)?.partial_cmp(b).unwrap_or(Ordering::Equal),
        (Value::BigInt(a), Value::BigInt(b)) => a.cmp(b),
        (Value::BigInt(a), Value::Int(b)) => (**a).cmp(&BigInt::from(*b)),
        (Value::Int(a), Value::BigInt(b)) => BigInt::from(*a).cmp(b),
        (Value::Decimal(a), b) => decimal::compare(a, b)?,
        (a, Value::Decimal(b)) => decimal::compare(b, a)?.reverse(),
        _ => return None,
    })
}

/// Converts a number to the nearest double; `None` for all other values.
pub fn as_double(number: &Value) -> Option<f64> {
    Some(match number {
        Value::Float(number) => *number,
        Value::Int(number) => *number as f64,
        Value::BigInt(number) => number.to_f64()?,
        Value::Decimal(number) => decimal::to_double(number),
        _ => return None,
    })
}

/// Orders names by namespace, then by base name. Names without a namespace come first.
fn compare_names(a: &Name, b: &Name) -> Ordering {
    (a.namespace(), a.base()).cmp(&(b.namespace(), b.base()))
}
