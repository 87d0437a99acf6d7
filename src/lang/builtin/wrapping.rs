//! 64-bit integers with Java's semantics: arithmetic that wraps round or fails on overflow, comparison, and conversion
//! of their bits to text.

use super::arguments::integer;
use super::arithmetic::{Operation, mixed, overflow};
use super::conversions::long;
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "unchecked-add",
        &["[x y]"],
        "The sum of two integers, wrapping on 64-bit overflow.",
        &[("(unchecked-add 9223372036854775807 1)", "-9223372036854775808")],
        |machine, arguments| unchecked(machine, arguments, i64::wrapping_add, Operation::Add),
    ),
    Builtin::new(
        "unchecked-subtract",
        &["[x y]"],
        "The difference of two integers, wrapping on 64-bit overflow.",
        &[("(unchecked-subtract -9223372036854775808 1)", "9223372036854775807")],
        |machine, arguments| unchecked(machine, arguments, i64::wrapping_sub, Operation::Subtract),
    ),
    Builtin::new(
        "unchecked-multiply",
        &["[x y]"],
        "The product of two integers, wrapping on 64-bit overflow.",
        &[("(unchecked-multiply 4611686018427387904 2)", "-9223372036854775808")],
        |machine, arguments| unchecked(machine, arguments, i64::wrapping_mul, Operation::Multiply),
    ),
    Builtin::new(
        "unchecked-inc",
        &["[x]"],
        "`x` plus 1; the largest integer wraps to the smallest.",
        &[("(unchecked-inc 9223372036854775807)", "-9223372036854775808")],
        |machine, arguments| with_one(machine, arguments, i64::wrapping_add, Operation::Add),
    ),
    Builtin::new(
        "unchecked-dec",
        &["[x]"],
        "`x` minus 1; the smallest integer wraps to the largest.",
        &[("(unchecked-dec -9223372036854775808)", "9223372036854775807")],
        |machine, arguments| with_one(machine, arguments, i64::wrapping_sub, Operation::Subtract),
    ),
    Builtin::new(
        "unchecked-negate",
        &["[x]"],
        "The negated integer; the smallest stays as it is.",
        &[("(unchecked-negate 5)", "-5")],
        negate,
    ),
    Builtin::new(
        "math/add-exact",
        &["[x y]"],
        "The sum of two integers; an error on 64-bit overflow.",
        &[("(math/add-exact 1 2)", "3")],
        |machine, arguments| exact(machine, arguments, "+", i64::checked_add),
    ),
    Builtin::new(
        "math/subtract-exact",
        &["[x y]"],
        "The difference of two integers; an error on 64-bit overflow.",
        &[("(math/subtract-exact 5 8)", "-3")],
        |machine, arguments| exact(machine, arguments, "-", i64::checked_sub),
    ),
    Builtin::new(
        "math/multiply-exact",
        &["[x y]"],
        "The product of two integers; an error on 64-bit overflow.",
        &[("(math/multiply-exact 6 7)", "42")],
        |machine, arguments| exact(machine, arguments, "*", i64::checked_mul),
    ),
    Builtin::new(
        "math/increment-exact",
        &["[x]"],
        "`x` plus 1; an error on 64-bit overflow.",
        &[("(math/increment-exact 1)", "2")],
        |machine, arguments| exact(machine, arguments, "+", i64::checked_add),
    ),
    Builtin::new(
        "math/decrement-exact",
        &["[x]"],
        "`x` minus 1; an error on 64-bit overflow.",
        &[("(math/decrement-exact 1)", "0")],
        |machine, arguments| exact(machine, arguments, "-", i64::checked_sub),
    ),
    Builtin::new(
        "math/negate-exact",
        &["[x]"],
        "The negated integer; an error on 64-bit overflow.",
        &[("(math/negate-exact 5)", "-5")],
        |machine, arguments| exact(machine, arguments, "-", |x, _| x.checked_neg()),
    ),
    Builtin::new(
        "Long/compare",
        &["[x y]"],
        "-1, 0 or 1 as the first integer is smaller, equal or larger.",
        &[("(Long/compare 1 2)", "-1")],
        |_, arguments| Ok(Value::Int(integer(&arguments[0])?.cmp(&integer(&arguments[1])?) as i64)),
    ),
    Builtin::new(
        "Long/signum",
        &["[x]"],
        "-1, 0 or 1 as the integer is negative, zero or positive.",
        &[("(Long/signum -9)", "-1")],
        |_, arguments| Ok(Value::Int(integer(&arguments[0])?.signum())),
    ),
    Builtin::new(
        "Long/bitCount",
        &["[x]"],
        "The number of set bits in the integer.",
        &[("(Long/bitCount 255)", "8")],
        |_, arguments| Ok(Value::Int(i64::from(integer(&arguments[0])?.count_ones()))),
    ),
    Builtin::new(
        "Long/numberOfTrailingZeros",
        &["[x]"],
        "The number of zero bits below the lowest set bit; 64 for 0.",
        &[("(Long/numberOfTrailingZeros 8)", "3")],
        |_, arguments| Ok(Value::Int(i64::from(integer(&arguments[0])?.trailing_zeros()))),
    ),
    Builtin::new(
        "Long/numberOfLeadingZeros",
        &["[x]"],
        "The number of zero bits above the highest set bit, of 64.",
        &[("(Long/numberOfLeadingZeros 1)", "63")],
        |_, arguments| Ok(Value::Int(i64::from(integer(&arguments[0])?.leading_zeros()))),
    ),
    Builtin::new(
        "Integer/numberOfTrailingZeros",
        &["[x]"],
        "The number of zero bits below the lowest set bit; 32 for 0.",
        &[("(Integer/numberOfTrailingZeros 8)", "3")],
        |_, arguments| Ok(Value::Int(i64::from((int(&arguments[0])?).trailing_zeros()))),
    ),
    Builtin::new(
        "Integer/numberOfLeadingZeros",
        &["[x]"],
        "The number of zero bits above the highest set bit, of 32.",
        &[("(Integer/numberOfLeadingZeros 1)", "31")],
        |_, arguments| Ok(Value::Int(i64::from(int(&arguments[0])?.leading_zeros()))),
    ),
    Builtin::new(
        "Long/highestOneBit",
        &["[x]"],
        "The integer with its highest set bit alone.",
        &[("(Long/highestOneBit 10)", "8"), ("(Long/highestOneBit 0)", "0")],
        |_, arguments| {
            let number = integer(&arguments[0])?;
            Ok(Value::Int(if number == 0 { 0 } else { (1_u64 << (63 - number.leading_zeros())) as i64 }))
        },
    ),
    Builtin::new(
        "Long/lowestOneBit",
        &["[x]"],
        "The integer with its lowest set bit alone.",
        &[("(Long/lowestOneBit 12)", "4")],
        |_, arguments| {
            let number = integer(&arguments[0])?;
            Ok(Value::Int(number & number.wrapping_neg()))
        },
    ),
    Builtin::new(
        "Integer/toBinaryString",
        &["[x]"],
        "The integer in binary; if negative, 32-bit two's complement.",
        &[("(Integer/toBinaryString 5)", "\"101\"")],
        |_, arguments| bits(short(&arguments[0])?, 2),
    ),
    Builtin::new(
        "Long/toBinaryString",
        &["[x]"],
        "The integer in binary; if negative, 64-bit two's complement.",
        &[("(Long/toBinaryString 5)", "\"101\"")],
        |_, arguments| bits(integer(&arguments[0])? as u64, 2),
    ),
    Builtin::new(
        "Integer/toHexString",
        &["[x]"],
        "The integer in hexadecimal; if negative, 32-bit two's complement.",
        &[("(Integer/toHexString 255)", "\"ff\"")],
        |_, arguments| bits(short(&arguments[0])?, 16),
    ),
    Builtin::new(
        "Long/toHexString",
        &["[x]"],
        "The integer in hexadecimal; if negative, 64-bit two's complement.",
        &[("(Long/toHexString 255)", "\"ff\"")],
        |_, arguments| bits(integer(&arguments[0])? as u64, 16),
    ),
    Builtin::new(
        "Integer/toOctalString",
        &["[x]"],
        "The integer in octal; if negative, 32-bit two's complement.",
        &[("(Integer/toOctalString 8)", "\"10\"")],
        |_, arguments| bits(short(&arguments[0])?, 8),
    ),
    Builtin::new(
        "Long/toOctalString",
        &["[x]"],
        "The integer in octal; if negative, 64-bit two's complement.",
        &[("(Long/toOctalString 8)", "\"10\"")],
        |_, arguments| bits(integer(&arguments[0])? as u64, 8),
    ),
];

/// Aliases of builtins of this file and of general arithmetic.
pub const ALIASES: &[(&str, &str)] = &[
    ("math/addExact", "math/add-exact"),
    ("math/subtractExact", "math/subtract-exact"),
    ("math/multiplyExact", "math/multiply-exact"),
    ("math/incrementExact", "math/increment-exact"),
    ("math/decrementExact", "math/decrement-exact"),
    ("math/negateExact", "math/negate-exact"),
    ("Integer/compare", "Long/compare"),
    ("Integer/signum", "Long/signum"),
    ("Integer/bitCount", "Long/bitCount"),
    ("Long/max", "max"),
    ("Long/min", "min"),
    ("Long/sum", "+"),
    ("Long/abs", "abs"),
    ("Integer/max", "max"),
    ("Integer/min", "min"),
    ("Integer/sum", "+"),
    ("Double/max", "max"),
    ("Double/min", "min"),
    ("Double/sum", "+"),
];

/// Applies a wrapping operation to two integers, and the usual operation to other numbers.
fn unchecked(
    machine: &mut Machine,
    arguments: &[Value],
    operation: fn(i64, i64) -> i64,
    usual: Operation,
) -> Outcome<Value> {
    match arguments {
        [Value::Int(x), Value::Int(y)] => Ok(Value::Int(operation(*x, *y))),
        [x, y] => mixed(machine, usual, x, y),
        _ => Ok(Value::Nil),
    }
}

fn with_one(
    machine: &mut Machine,
    arguments: &mut [Value],
    operation: fn(i64, i64) -> i64,
    usual: Operation,
) -> Outcome<Value> {
    unchecked(machine, &[std::mem::take(&mut arguments[0]), Value::Int(1)], operation, usual)
}

fn negate(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match &arguments[0] {
        Value::Int(number) => Ok(Value::Int(number.wrapping_neg())),
        // Not 0 - x, since the negative of 0.0 is -0.0.
        Value::Float(number) => Ok(Value::Float(-number)),
        other => mixed(machine, Operation::Subtract, &Value::Int(0), other),
    }
}

/// Applies a checked operation to numbers that are first converted to integers, as by `long`.
fn exact(
    machine: &mut Machine,
    arguments: &mut [Value],
    operator: &str,
    operation: fn(i64, i64) -> Option<i64>,
) -> Outcome<Value> {
    let x = integer(&long(machine, &mut arguments[..1])?)?;
    let y = match arguments.get_mut(1..2) {
        Some([_]) => integer(&long(machine, &mut arguments[1..2])?)?,
        _ => 1,
    };
    match operation(x, y) {
        Some(result) => Ok(Value::Int(result)),
        None => Err(overflow(&format!("({operator} {x} {y})"), &format!("{operator}'")).into()),
    }
}

/// Returns an integer of 32 bits.
fn int(value: &Value) -> Result<i32, Error> {
    let number = integer(value)?;
    i32::try_from(number).map_err(|_| Error::expected("an integer of 32 bits", value))
}

/// Returns the bits of an integer: the low 32 bits if it fits Java's `int`, otherwise all 64.
fn short(value: &Value) -> Outcome<u64> {
    let number = integer(value)?;
    Ok(i32::try_from(number).map_or(number as u64, |number| u64::from(number as u32)))
}

fn bits(number: u64, radix: u32) -> Outcome<Value> {
    Ok(Value::string(&match radix {
        2 => format!("{number:b}"),
        8 => format!("{number:o}"),
        _ => format!("{number:x}"),
    }))
}
