//! Java's narrower numeric types: their ranges and their wrap-around. The values themselves remain 64-bit integers and
//! doubles.

use super::arithmetic::{division_by_zero, float};
use super::conversions::{double, long};
use crate::error::{Error, Outcome, describe};
use crate::machine::Machine;
use crate::native::{Builtin, Conduct};
use crate::value::Value;
use std::cmp::Ordering;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "int",
        &["[x]"],
        "The number truncated to an integer, or the code point of a character. An error beyond 32 bits; `long` accepts \
         those.",
        &[("(int 3.7)", "3"), ("(int -3.7)", "-3"), ("(int \\a)", "97")],
        |machine, arguments| within(machine, arguments, i64::from(i32::MIN), i64::from(i32::MAX)),
    )
    .with_conduct(Conduct::Integer),
    Builtin::new(
        "short",
        &["[x]"],
        "Like `long`; an error beyond 16 bits.",
        &[("(short 3.7)", "3")],
        |machine, arguments| within(machine, arguments, i64::from(i16::MIN), i64::from(i16::MAX)),
    ),
    Builtin::new(
        "byte",
        &["[x]"],
        "Like `long`; an error beyond 8 bits, including the sign.",
        &[("(byte 65)", "65"), ("(byte -128)", "-128")],
        |machine, arguments| within(machine, arguments, i64::from(i8::MIN), i64::from(i8::MAX)),
    ),
    Builtin::new(
        "float",
        &["[x]"],
        "The number as a double; an error beyond the range of floats.",
        &[("(float 1)", "1.0"), ("(float 0.1)", "0.1")],
        to_float,
    ),
    Builtin::new(
        "unchecked-long",
        &["[x]"],
        "The number as an integer; a double beyond 64 bits gives the largest or smallest integer.",
        &[("(unchecked-long 1e30)", "9223372036854775807")],
        |_, arguments| Ok(Value::Int(cut(&arguments[0])?)),
    ),
    Builtin::new(
        "unchecked-int",
        &["[x]"],
        "The number as an integer, keeping only the low 32 bits; a double saturates.",
        &[("(unchecked-int 3000000000)", "-1294967296")],
        |_, arguments| Ok(Value::Int(i64::from(cut_to_32(&arguments[0])?))),
    ),
    Builtin::new(
        "unchecked-short",
        &["[x]"],
        "The number as an integer, keeping only the low 16 bits.",
        &[("(unchecked-short 40000)", "-25536")],
        |_, arguments| Ok(Value::Int(i64::from(cut_to_32(&arguments[0])? as i16))),
    ),
    Builtin::new(
        "unchecked-byte",
        &["[x]"],
        "The number as an integer, keeping only the low 8 bits.",
        &[("(unchecked-byte 200)", "-56")],
        |_, arguments| Ok(Value::Int(i64::from(cut_to_32(&arguments[0])? as i8))),
    ),
    Builtin::new(
        "unchecked-add-int",
        &["[x y]"],
        "The sum of two integers, keeping only the low 32 bits.",
        &[("(unchecked-add-int 2147483647 1)", "-2147483648")],
        |_, arguments| short(arguments, i32::wrapping_add),
    ),
    Builtin::new(
        "unchecked-subtract-int",
        &["[x y]"],
        "The difference of two integers, keeping only the low 32 bits.",
        &[("(unchecked-subtract-int 5 8)", "-3")],
        |_, arguments| short(arguments, i32::wrapping_sub),
    ),
    Builtin::new(
        "unchecked-multiply-int",
        &["[x y]"],
        "The product of two integers, keeping only the low 32 bits.",
        &[("(unchecked-multiply-int 65536 65536)", "0")],
        |_, arguments| short(arguments, i32::wrapping_mul),
    ),
    Builtin::new(
        "unchecked-inc-int",
        &["[x]"],
        "`x` + 1, keeping only the low 32 bits.",
        &[("(unchecked-inc-int 2147483647)", "-2147483648")],
        |_, arguments| short(arguments, i32::wrapping_add),
    ),
    Builtin::new(
        "unchecked-dec-int",
        &["[x]"],
        "`x` - 1, keeping only the low 32 bits.",
        &[("(unchecked-dec-int 1)", "0")],
        |_, arguments| short(arguments, i32::wrapping_sub),
    ),
    Builtin::new(
        "unchecked-negate-int",
        &["[x]"],
        "The negated integer, keeping only the low 32 bits.",
        &[("(unchecked-negate-int 5)", "-5")],
        |_, arguments| short(arguments, |x, _| x.wrapping_neg()),
    ),
    Builtin::new(
        "unchecked-divide-int",
        &["[x y]"],
        "The quotient of two 32-bit integers, truncated towards zero.",
        &[("(unchecked-divide-int -7 2)", "-3")],
        |_, arguments| divided(arguments, i32::wrapping_div),
    ),
    Builtin::new(
        "unchecked-remainder-int",
        &["[x y]"],
        "The remainder of `unchecked-divide-int`.",
        &[("(unchecked-remainder-int -7 2)", "-1")],
        |_, arguments| divided(arguments, i32::wrapping_rem),
    ),
    Builtin::new(
        "vector-of",
        &["[kind & items]"],
        "A vector of items of one type: `:int`, `:long`, `:short`, `:byte`, `:float`, `:double`, `:char` or \
         `:boolean`. Numbers are converted; an item that cannot be is an error.",
        &[("(vector-of :int 1 2.9 \\a)", "[1 2 97]"), ("(vector-of :double 1)", "[1.0]")],
        vector_of,
    ),
    Builtin::new(
        "Double/compare",
        &["[x y]"],
        "-1, 0 or 1 if the first double is less, equal or greater; -0.0 comes before 0.0, NaN after all others.",
        &[("(Double/compare 1.5 2.5)", "-1"), ("(Double/compare -0.0 0.0)", "-1")],
        compare_doubles,
    ),
];

/// Aliases of builtins of this file and of `double`.
pub const ALIASES: &[(&str, &str)] =
    &[("unchecked-float", "double"), ("unchecked-double", "double"), ("Float/compare", "Double/compare")];

/// Converts a number to an integer. The number must lie in the range both before and after truncation.
fn within(machine: &mut Machine, arguments: &mut [Value], least: i64, most: i64) -> Outcome<Value> {
    let inside = match &arguments[0] {
        Value::Float(number) => !(*number < least as f64 || *number > most as f64),
        _ => matches!(long(machine, arguments)?, Value::Int(number) if (least..=most).contains(&number)),
    };
    if !inside {
        return Err(outside(&arguments[0], least, most).into());
    }
    long(machine, arguments)
}

#[cold]
fn outside(value: &Value, least: i64, most: i64) -> Error {
    Error::unmet("IllegalArgument", format!("a number from {least} to {most}, got {}", describe(value)))
        .suggest("`(long x)` takes integers of 64 bits")
}

fn to_float(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match double(machine, arguments)? {
        Value::Float(number) if number.abs() > f64::from(f32::MAX) => {
            Err(Error::new("IllegalArgument", format!("{} is beyond the range of floats", describe(&arguments[0])))
                .suggest("`(double x)` takes every number")
                .into())
        }
        // A magnitude too small for a float becomes zero.
        Value::Float(number) if number as f32 == 0.0 => Ok(Value::Float(0.0_f64.copysign(number))),
        number => Ok(number),
    }
}

/// Truncates a number to 64 bits: takes the low 64 bits of a big integer, and saturates a double.
fn cut(value: &Value) -> Outcome<i64> {
    Ok(match value {
        Value::Int(number) => *number,
        Value::Char(character) => i64::from(u32::from(*character)),
        Value::BigInt(number) => {
            let last = number.iter_u64_digits().next().unwrap_or(0) as i64;
            if number.sign() == num_bigint::Sign::Minus { last.wrapping_neg() } else { last }
        }
        number => float(number)? as i64,
    })
}

/// Truncates a value to 32 bits, as Java's `intValue` does. See [`cut`].
///
/// # Errors
/// Returns `TypeError` if the value is neither a number nor a character.
pub(super) fn cut_to_32(value: &Value) -> Outcome<i32> {
    Ok(match value {
        Value::Float(number) => *number as i32,
        number => cut(number)? as i32,
    })
}

/// Applies a 32-bit operation to an integer and a second one, which defaults to 1.
fn short(arguments: &[Value], operation: fn(i32, i32) -> i32) -> Outcome<Value> {
    let (x, y) = (cut_to_32(&arguments[0])?, arguments.get(1).map_or(Ok(1), cut_to_32)?);
    Ok(Value::Int(i64::from(operation(x, y))))
}

fn divided(arguments: &[Value], operation: fn(i32, i32) -> i32) -> Outcome<Value> {
    match cut_to_32(&arguments[1])? {
        0 => Err(division_by_zero().into()),
        _ => short(arguments, operation),
    }
}

fn vector_of(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let Some((kind, items)) = arguments.split_first_mut() else { return Ok(Value::Nil) };
    let name = match kind {
        Value::Keyword(name) => name.as_str(),
        _ => "",
    };
    let convert: crate::native::Run = match name {
        "int" => |machine, items| within(machine, items, i64::from(i32::MIN), i64::from(i32::MAX)),
        "long" => long,
        "short" => |machine, items| within(machine, items, i64::from(i16::MIN), i64::from(i16::MAX)),
        "byte" => |machine, items| within(machine, items, i64::from(i8::MIN), i64::from(i8::MAX)),
        "float" => to_float,
        "double" => double,
        "char" => super::characters::char,
        "boolean" => |_, items| Ok(Value::Bool(items[0].is_truthy())),
        _ => {
            let kinds = ":int, :long, :short, :byte, :float, :double, :char or :boolean";
            return Err(Error::expected(kinds, kind).into());
        }
    };
    machine.reserve_values(items.len() as u64)?;
    let mut vector = Vec::with_capacity(items.len());
    for item in items {
        machine.charge(1)?;
        vector.push(convert(machine, std::slice::from_mut(item))?);
    }
    Ok(Value::vector(vector))
}

fn compare_doubles(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (x, y) = (float(&arguments[0])?, float(&arguments[1])?);
    let order = match (x.is_nan(), y.is_nan()) {
        (false, false) => x.total_cmp(&y),
        (x, y) => x.cmp(&y),
    };
    Ok(Value::Int(match order {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }))
}
