//! Argument extraction for builtins: type conversions, argument order, and their errors.

use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::value::map::Map;
use crate::value::{Value, decimal};
use std::sync::Arc;

/// Moves an argument out of its slot.
#[inline]
pub fn take(arguments: &mut [Value], at: usize) -> Value {
    std::mem::take(&mut arguments[at])
}

/// Returns an integer argument.
///
/// # Errors
/// Returns `TypeError` if the value is not an integer, nor a whole double below 9e15, nor a big integer that fits an
/// `i64`.
#[inline]
pub fn integer(value: &Value) -> Result<i64, Error> {
    match value {
        Value::Int(number) => Ok(*number),
        other => other_integer(other),
    }
}

#[cold]
fn other_integer(value: &Value) -> Result<i64, Error> {
    match value {
        // A whole double is usually the result of a division.
        Value::Float(number) if number.fract() == 0.0 && number.abs() < 9e15 => Ok(*number as i64),
        Value::BigInt(number) if number.bits() < 64 => Ok(i64::try_from(&**number).unwrap_or_default()),
        other => Err(Error::expected("an integer", other)),
    }
}

/// Returns an integer argument such as an index, dropping any fraction: half of seven counts as three.
///
/// # Errors
/// Returns `TypeError` if the value is not a finite number, or if it is out of range.
pub fn whole(value: &Value) -> Result<i64, Error> {
    match value {
        Value::Float(number) if number.is_finite() => integer(&Value::Float(number.trunc())),
        Value::Decimal(number) => integer(&Value::Float(decimal::to_double(number).trunc())),
        value => integer(value),
    }
}

/// Returns a count or an index; a negative number counts as zero.
///
/// # Errors
/// Returns `TypeError` if the value is not a number that [`integer`] accepts, a decimal, or a double above 9e15.
pub fn count(value: &Value) -> Result<u64, Error> {
    match value {
        Value::Float(number) if *number > 9e15 => Ok(u64::MAX),
        // As counting down from it: two and a half is reached by three steps.
        Value::Float(number) if number.is_finite() => integer(&Value::Float(number.ceil())).map(|n| n.max(0) as u64),
        Value::Decimal(number) => count(&Value::Float(decimal::to_double(number).ceil())),
        value => integer(value).map(|number| number.max(0) as u64),
    }
}

/// Returns a string argument.
///
/// # Errors
/// Returns `TypeError` if the value is not a string.
pub fn string(value: &Value) -> Result<&str, Error> {
    value.as_str().ok_or_else(|| Error::expected("a string", value))
}

/// Returns a map argument; nil is the empty map.
///
/// # Errors
/// Returns `TypeError` if the value is neither a map nor nil.
#[inline]
pub fn map(value: Value) -> Result<Arc<Map>, Error> {
    match value {
        Value::Map(map) => Ok(map),
        Value::Nil => Ok(Arc::default()),
        other => Err(Error::expected("a map", &other)),
    }
}

/// Ranks how function-like a value is. Of a function and a collection given in either order, the argument with the
/// higher rank is the function.
fn rank(value: &Value) -> u8 {
    match value {
        value if value.is_function() => 4,
        Value::Keyword(_) | Value::Symbol(_) | Value::Annotated(_) => 3,
        Value::Set(_) => 2,
        Value::Map(_) | Value::Vector(_) => 1,
        _ => 0,
    }
}

/// Splits the arguments of `(map f coll)` or `(map coll f)` into function and collection. On a tie, Clojure's order
/// applies. It also applies to a map followed by a set: looking up the members of a set in a map is common, whereas
/// looking up the entries of a map in a set is useless.
pub fn function_and_collection(arguments: &mut [Value]) -> (Value, Value) {
    let (first, second) = (take(arguments, 0), take(arguments, 1));
    if matches!((&first, &second), (Value::Map(_), Value::Set(_))) {
        return (first, second);
    }
    // Minimum rank of the second argument for a swap. A collection may come first before any higher rank, a string only
    // before a set, a name or a function, and anything else, such as nil, only before a name or a function: `(filter p
    // [1 2])` with a nil `p` is a mistake, not a pair of swapped arguments.
    let least = match &first {
        Value::List(_) | Value::Lazy(_) | Value::Vector(_) | Value::Map(_) | Value::Set(_) => 1,
        Value::Str(_) => 2,
        _ => 3,
    };
    if rank(&second) > rank(&first).max(least - 1) { (second, first) } else { (first, second) }
}

/// As [`function_and_collection`], where the function is called with each item. Records a keyword that is mapped over a
/// map: the items are entries, in which it finds nothing.
pub fn function_over_items(machine: &mut Machine, arguments: &mut [Value]) -> (Value, Value) {
    let (function, collection) = function_and_collection(arguments);
    if let (Value::Keyword(name), Value::Map(map)) = (&function, &collection)
        && !map.is_empty()
    {
        machine.core.look_ups.mapped(name);
    }
    (function, collection)
}

/// Returns the text of a value as `str` prints it, within the memory limit.
///
/// # Errors
/// Propagates errors raised while lazy parts are realised; halts if a resource limit is exceeded.
pub fn text(machine: &mut Machine, value: &Value) -> Outcome<String> {
    let mut printer = crate::value::print::Printer::new(room(machine), false);
    if !value.is_scalar() {
        printer = printer.with(super::dynamic::print_settings(machine));
    }
    if !printer.print(value, machine)? {
        machine.reserve(u64::MAX / 4)?;
    }
    Ok(printer.into_text())
}

/// Returns the number of bytes of text that may be produced before the memory limit is reached: half of the free
/// memory.
pub fn room(machine: &mut Machine) -> usize {
    let core = &mut *machine.core;
    // If the time limit is reached here, the next check ends the program.
    let _ = core.meter.drop_aside(&core.host);
    let limit = core.meter.limits.memory;
    usize::try_from(limit.saturating_sub(crate::meter::live()) / 2).unwrap_or(usize::MAX)
}
