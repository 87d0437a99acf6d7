//! Bitwise operations on 64-bit integers.

use super::arguments::integer;
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "bit-and",
        &["[x y & more]"],
        "The bitwise and of all.",
        &[("(bit-and 12 10)", "8")],
        |machine, arguments| fold(machine, arguments, |x, y| x & y),
    ),
    Builtin::new(
        "bit-or",
        &["[x y & more]"],
        "The bitwise or of all.",
        &[("(bit-or 12 10)", "14")],
        |machine, arguments| fold(machine, arguments, |x, y| x | y),
    ),
    Builtin::new(
        "bit-xor",
        &["[x y & more]"],
        "The bitwise exclusive or of all.",
        &[("(bit-xor 12 10)", "6")],
        |machine, arguments| fold(machine, arguments, |x, y| x ^ y),
    ),
    Builtin::new(
        "bit-and-not",
        &["[x y & more]"],
        "`x` with the bits set in the others cleared.",
        &[("(bit-and-not 7 2)", "5")],
        |machine, arguments| fold(machine, arguments, |x, y| x & !y),
    ),
    Builtin::new("bit-not", &["[x]"], "The bitwise complement.", &[("(bit-not 5)", "-6")], |_, arguments| {
        Ok(Value::Int(!integer(&arguments[0])?))
    }),
    Builtin::new(
        "bit-shift-left",
        &["[x n]"],
        "Shifts `x` left by `n` bits.",
        &[("(bit-shift-left 1 4)", "16")],
        |_, arguments| shift(arguments, |x, n| x << n),
    ),
    Builtin::new(
        "bit-shift-right",
        &["[x n]"],
        "Shifts `x` right by `n` bits, keeping the sign.",
        &[("(bit-shift-right -8 1)", "-4")],
        |_, arguments| shift(arguments, |x, n| x >> n),
    ),
    Builtin::new(
        "unsigned-bit-shift-right",
        &["[x n]"],
        "Shifts `x` right by `n` bits, filling with zeros.",
        &[("(unsigned-bit-shift-right -1 60)", "15")],
        |_, arguments| shift(arguments, |x, n| ((x as u64) >> n) as i64),
    ),
    Builtin::new("bit-set", &["[x n]"], "Sets bit `n` of `x`.", &[("(bit-set 0 3)", "8")], |_, arguments| {
        shift(arguments, |x, n| x | (1 << n))
    }),
    Builtin::new("bit-clear", &["[x n]"], "Clears bit `n` of `x`.", &[("(bit-clear 15 0)", "14")], |_, arguments| {
        shift(arguments, |x, n| x & !(1 << n))
    }),
    Builtin::new(
        "bit-flip",
        &["[x n]"],
        "Flips (inverts) bit `n` of `x`.",
        &[("(bit-flip 0 1)", "2")],
        |_, arguments| shift(arguments, |x, n| x ^ (1 << n)),
    ),
    Builtin::new(
        "bit-test",
        &["[x n]"],
        "True if bit `n` is set.",
        &[("(bit-test 5 0)", "true"), ("(bit-test 5 1)", "false")],
        |_, arguments| Ok(Value::Bool(matches!(shift(arguments, |x, n| (x >> n) & 1)?, Value::Int(1)))),
    ),
];

/// Aliases from Common Lisp and Scheme, as pairs of alias and builtin name.
pub const ALIASES: &[(&str, &str)] = &[
    ("logand", "bit-and"),
    ("logior", "bit-or"),
    ("logxor", "bit-xor"),
    ("lognot", "bit-not"),
    ("bitwise-and", "bit-and"),
    ("bitwise-or", "bit-or"),
    ("bitwise-ior", "bit-or"),
    ("bitwise-xor", "bit-xor"),
    ("bitwise-not", "bit-not"),
];

fn fold(machine: &mut Machine, arguments: &[Value], operation: fn(i64, i64) -> i64) -> Outcome<Value> {
    let mut result = bits(&arguments[0])?;
    for number in &arguments[1..] {
        machine.charge(1)?;
        result = operation(result, bits(number)?);
    }
    Ok(Value::Int(result))
}

/// Shifts by the low six bits of the distance, as in Java.
fn shift(arguments: &[Value], operation: fn(i64, u32) -> i64) -> Outcome<Value> {
    Ok(Value::Int(operation(bits(&arguments[0])?, (bits(&arguments[1])? & 63) as u32)))
}

fn bits(value: &Value) -> Result<i64, Error> {
    match value {
        Value::Int(number) => Ok(*number),
        other => Err(Error::expected("an integer of 64 bits", other)),
    }
}
