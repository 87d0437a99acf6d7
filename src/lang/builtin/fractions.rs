//! Clojure's functions of ratios, applied to doubles, which represent ratios here.

use super::arithmetic::float;
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::{Value, quotient};
use num_bigint::BigInt;
use num_traits::FromPrimitive;
use std::sync::Arc;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "numerator",
        &["[x]"],
        "The numerator of the simplest fraction equal to the double.",
        &[("(numerator 6/8)", "3"), ("(numerator 0.5)", "1")],
        |_, arguments| Ok(Value::Int(parts(&arguments[0])?.0)),
    ),
    Builtin::new(
        "denominator",
        &["[x]"],
        "The denominator of the simplest fraction equal to the double.",
        &[("(denominator 6/8)", "4")],
        |_, arguments| Ok(Value::Int(parts(&arguments[0])?.1)),
    ),
    Builtin::new(
        "rationalize",
        &["[x]"],
        "A whole double or decimal as a big integer, any other as a double: ratios are not supported.",
        &[("(rationalize 3.0)", "3N"), ("(rationalize 1.5M)", "1.5")],
        rationalize,
    ),
];

fn parts(value: &Value) -> Outcome<(i64, i64)> {
    let fraction = match value {
        Value::Float(number) if number.fract() != 0.0 => quotient::simplest(*number),
        _ => None,
    };
    fraction.ok_or_else(|| Error::expected("a fraction such as `3/4` or 0.75", value).into())
}

fn rationalize(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let number = match &arguments[0] {
        Value::Int(_) | Value::BigInt(_) => return Ok(std::mem::take(&mut arguments[0])),
        other => float(other)?,
    };
    if !number.is_finite() {
        return Err(Error::expected("a finite number", &arguments[0]).into());
    }
    Ok(match BigInt::from_f64(number).filter(|_| number.fract() == 0.0) {
        Some(whole) => Value::BigInt(Arc::new(whole)),
        None => Value::Float(number),
    })
}
