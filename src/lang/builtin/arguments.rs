//! Taking arguments: what builtins expect, and the errors when something else came.

use crate::lang::error::{Error, Outcome};
use crate::lang::eval::Machine;
use crate::lang::value::map::Map;
use crate::lang::value::{Value, decimal};
use std::sync::Arc;

/// Takes an argument out of its slot.
#[inline]
pub fn take(arguments: &mut [Value], at: usize) -> Value {
    std::mem::take(&mut arguments[at])
}

/// An integer.
///
/// # Errors
/// `TypeError`.
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
        // A whole double is what a division left behind.
        Value::Float(number) if number.fract() == 0.0 && number.abs() < 9e15 => Ok(*number as i64),
        Value::BigInt(number) if number.bits() < 64 => Ok(i64::try_from(&**number).unwrap_or_default()),
        other => Err(Error::expected("an integer", other)),
    }
}

/// A place in a sequence: what is behind the point does not count, as where half of seven was asked for.
///
/// # Errors
/// `TypeError`.
pub fn whole(value: &Value) -> Result<i64, Error> {
    match value {
        Value::Float(number) if number.is_finite() => integer(&Value::Float(number.trunc())),
        Value::Decimal(number) => integer(&Value::Float(decimal::to_double(number).trunc())),
        value => integer(value),
    }
}

/// A count or an index: negative numbers count as zero.
///
/// # Errors
/// `TypeError`.
pub fn count(value: &Value) -> Result<u64, Error> {
    match value {
        Value::Float(number) if *number > 9e15 => Ok(u64::MAX),
        Value::Decimal(number) => count(&Value::Float(decimal::to_double(number).ceil())),
        value => integer(value).map(|number| number.max(0) as u64),
    }
}

/// A string.
///
/// # Errors
/// `TypeError`.
pub fn string(value: &Value) -> Result<&str, Error> {
    value.as_str().ok_or_else(|| Error::expected("a string", value))
}

/// A map; nil is the empty one.
///
/// # Errors
/// `TypeError`.
#[inline]
pub fn map(value: Value) -> Result<Arc<Map>, Error> {
    match value {
        Value::Map(map) => Ok(map),
        Value::Nil => Ok(Arc::default()),
        other => Err(Error::expected("a map", &other)),
    }
}

/// How much a value is a function: of a function and a collection, given in either order, the one that
/// ranks higher is the function.
fn rank(value: &Value) -> u8 {
    match value {
        value if value.is_function() => 4,
        Value::Keyword(_) | Value::Symbol(_) | Value::Annotated(_) => 3,
        Value::Set(_) => 2,
        Value::Map(_) | Value::Vector(_) => 1,
        _ => 0,
    }
}

/// The function and the collection of `(map f coll)` or `(map coll f)`. On a tie Clojure's order holds, and where a
/// map stands before a set: to look members up in a map is common, and a set says nothing of its entries.
pub fn function_and_collection(arguments: &mut [Value]) -> (Value, Value) {
    let (first, second) = (take(arguments, 0), take(arguments, 1));
    if matches!((&first, &second), (Value::Map(_), Value::Set(_))) {
        return (first, second);
    }
    // What is no collection is one in no order; nil and a string are one only where the other is a name or a
    // function: `(filter p [1 2])` with a nil for `p` is a mistake, and not two arguments exchanged.
    let least = match &first {
        Value::List(_) | Value::Lazy(_) | Value::Vector(_) | Value::Map(_) | Value::Set(_) => 1,
        Value::Str(_) => 2,
        _ => 3,
    };
    if rank(&second) > rank(&first).max(least - 1) { (second, first) } else { (first, second) }
}

/// Keyword arguments such as `:key f :count t` behind the others, as a map.
///
/// # Errors
/// `ArityError` where a keyword has no value; `UnknownOption` for those not in `known`.
pub fn options(name: &str, arguments: &mut [Value], known: &[&str]) -> Outcome<Map> {
    let mut out = Map::default();
    if !arguments.len().is_multiple_of(2) {
        return Err(
            Error::new("ArityError", format!("`{name}` takes its options as keywords and values in turn")).into()
        );
    }
    for pair in arguments.chunks_exact_mut(2) {
        match &pair[0] {
            Value::Keyword(option) if known.contains(&option.as_str()) => {}
            Value::Keyword(option) => {
                let error = Error::new("UnknownOption", format!("`{name}` has no option `:{}`", option.as_str()));
                let nearest = crate::lang::error::suggest::closest(option.as_str(), known.iter().copied());
                return Err(match nearest {
                    Some(nearest) => error.suggest(format!("Did you mean :{nearest}?")),
                    None => error.suggest(format!("it takes :{}", known.join(", :"))),
                }
                .into());
            }
            other => return Err(Error::expected("a keyword as the name of an option", other).into()),
        }
        out.insert(take(pair, 0), std::mem::take(&mut pair[1]));
    }
    Ok(out)
}

/// The value of an option.
pub fn option(options: &Map, name: &str) -> Option<Value> {
    options.get(&Value::keyword(name)).cloned()
}

/// Text of a value as `str` prints it, within what memory allows.
///
/// # Errors
/// What realising lazy parts raises; limits.
pub fn text(machine: &mut Machine, value: &Value) -> Outcome<String> {
    let mut printer = crate::lang::value::print::Printer::new(room(machine), false);
    if !value.is_scalar() {
        printer = printer.with(super::dynamic::print_settings(machine));
    }
    if !printer.print(value, machine)? {
        machine.reserve(u64::MAX / 4)?;
    }
    Ok(printer.into_text())
}

/// Bytes of text that may still be made before the memory limit is reached.
pub fn room(machine: &mut Machine) -> usize {
    let core = &mut *machine.core;
    // If time runs out meanwhile, the program ends at the next look.
    let _ = core.meter.drop_aside(&*core.host);
    let limit = core.meter.limits.memory;
    usize::try_from(limit.saturating_sub(crate::lang::meter::live()) / 2).unwrap_or(usize::MAX)
}
