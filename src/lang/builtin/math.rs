//! Mathematics: `math/` (Clojure's `clojure.math` and Java's `Math`), powers, common divisors, bits.

use super::arguments::integer;
use super::arithmetic::{Operation, big, division_by_zero, float, is_number, mixed, not_a_number, power};
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;
use num_integer::Integer;
use std::sync::Arc;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "math/pow",
        &["[x y]"],
        "`x` to the power of `y`, as a double.",
        &[("(math/pow 2 10)", "1024.0"), ("(Math/pow 10 1e10)", "##Inf")],
        |_, arguments| reals(arguments, raised),
    ),
    Builtin::new(
        "expt",
        &["[x y]"],
        "`x` to the power of `y`; exact for integers with `y` ≥ 0.",
        &[("(expt 2 10)", "1024"), ("(expt 2 64)", "18446744073709551616N"), ("(expt 2 -1)", "0.5")],
        expt,
    ),
    Builtin::new("math/sqrt", &["[x]"], "The square root.", &[("(math/sqrt 9)", "3.0")], |_, arguments| {
        real(arguments, f64::sqrt)
    }),
    Builtin::new("math/cbrt", &["[x]"], "The cube root.", &[("(math/cbrt 27)", "3.0")], |_, arguments| {
        real(arguments, f64::cbrt)
    }),
    Builtin::new(
        "math/floor",
        &["[x]"],
        "Rounded down, as a double.",
        &[("(math/floor 2.7)", "2.0")],
        |_, arguments| real(arguments, f64::floor),
    ),
    Builtin::new("math/ceil", &["[x]"], "Rounded up, as a double.", &[("(math/ceil 2.1)", "3.0")], |_, arguments| {
        real(arguments, f64::ceil)
    }),
    Builtin::new(
        "math/rint",
        &["[x]"],
        "Rounded to the nearest integer, as a double; ties round to even.",
        &[("(math/rint 2.5)", "2.0")],
        |_, arguments| real(arguments, f64::round_ties_even),
    ),
    Builtin::new(
        "math/round",
        &["[x]", "[x places]"],
        "Rounded to the nearest integer, or to that number of decimal places; ties round up.\n\
         With places the kind of the number stays: a double is rounded as it is printed, 2.675 to 2.68, a decimal gets \
         exactly that many places, and negative places round to tens, hundreds and so on. Ties of negative numbers \
         round up too, -2.5 to -2; `round-to` and `decimal/round` round them away from zero.",
        &[
            ("(math/round 2.5)", "3"),
            ("(Math/round -2.5)", "-2"),
            ("(round 3.14159 2)", "3.14"),
            ("(round 1250 -2)", "1300"),
        ],
        round,
    ),
    Builtin::new("math/exp", &["[x]"], "e to the power of `x`.", &[("(math/exp 0)", "1.0")], |_, arguments| {
        real(arguments, f64::exp)
    }),
    Builtin::new(
        "math/log",
        &["[x]", "[x base]"],
        "The natural logarithm, or the one to `base`.",
        &[("(math/log 1)", "0.0"), ("(math/log 8 2)", "3.0")],
        log,
    ),
    Builtin::new(
        "math/log10",
        &["[x]"],
        "The logarithm to base 10.",
        &[("(math/log10 1000)", "3.0")],
        |_, arguments| real(arguments, f64::log10),
    ),
    Builtin::new("math/sin", &["[x]"], "The sine.", &[("(math/sin 0)", "0.0")], |_, arguments| {
        real(arguments, f64::sin)
    }),
    Builtin::new("math/cos", &["[x]"], "The cosine.", &[("(math/cos 0)", "1.0")], |_, arguments| {
        real(arguments, f64::cos)
    }),
    Builtin::new("math/tan", &["[x]"], "The tangent.", &[("(math/tan 0)", "0.0")], |_, arguments| {
        real(arguments, f64::tan)
    }),
    Builtin::new("math/asin", &["[x]"], "The arc sine.", &[("(math/asin 0)", "0.0")], |_, arguments| {
        real(arguments, f64::asin)
    }),
    Builtin::new("math/acos", &["[x]"], "The arc cosine.", &[("(math/acos 1)", "0.0")], |_, arguments| {
        real(arguments, f64::acos)
    }),
    Builtin::new("math/atan", &["[x]"], "The arc tangent.", &[("(math/atan 0)", "0.0")], |_, arguments| {
        real(arguments, f64::atan)
    }),
    Builtin::new(
        "math/atan2",
        &["[y x]"],
        "The angle of the point `(x, y)`.",
        &[("(math/atan2 0 1)", "0.0")],
        |_, arguments| reals(arguments, f64::atan2),
    ),
    Builtin::new("math/hypot", &["[x y]"], "√(x² + y²).", &[("(math/hypot 3 4)", "5.0")], |_, arguments| {
        reals(arguments, f64::hypot)
    }),
    Builtin::new(
        "math/to-radians",
        &["[degrees]"],
        "Degrees as radians.",
        &[("(math/to-radians 180)", "3.141592653589793")],
        |_, arguments| real(arguments, f64::to_radians),
    ),
    Builtin::new(
        "math/to-degrees",
        &["[radians]"],
        "Radians as degrees.",
        &[("(math/to-degrees math/PI)", "180.0")],
        |_, arguments| real(arguments, f64::to_degrees),
    ),
    Builtin::new("math/signum", &["[x]"], "-1.0, 0.0 or 1.0.", &[("(math/signum -2.5)", "-1.0")], |_, arguments| {
        real(arguments, |x| if x == 0.0 { x } else { x.signum() })
    }),
    Builtin::new(
        "math/floor-div",
        &["[x y]"],
        "The quotient, rounded down.",
        &[("(math/floor-div -7 2)", "-4")],
        floor_division,
    ),
    Builtin::new("gcd", &["[& integers]"], "The greatest common divisor.", &[("(gcd 12 18)", "6")], gcd),
    Builtin::new("lcm", &["[& integers]"], "The least common multiple.", &[("(lcm 4 6)", "12")], lcm),
];

/// Aliases from Java and other Lisps, as pairs of alias and builtin name; `Math/` is an alias of `math/`.
pub const ALIASES: &[(&str, &str)] = &[
    ("math/floor-mod", "mod"),
    ("math/floorMod", "mod"),
    ("math/floorDiv", "math/floor-div"),
    ("math/toRadians", "math/to-radians"),
    ("math/toDegrees", "math/to-degrees"),
    ("pow", "math/pow"),
    ("sqrt", "math/sqrt"),
    ("floor", "math/floor"),
    ("ceil", "math/ceil"),
    ("ceiling", "math/ceil"),
    ("round", "math/round"),
    ("exp", "math/exp"),
    ("log", "math/log"),
    ("sin", "math/sin"),
    ("cos", "math/cos"),
    ("tan", "math/tan"),
];

/// Returns the value of a constant of Java's number classes or of `math/`; `None` for any other name.
pub fn constant(name: &str) -> Option<Value> {
    Some(match name {
        "math/PI" | "Math/PI" | "clojure.math/PI" => Value::Float(std::f64::consts::PI),
        "math/E" | "Math/E" | "clojure.math/E" => Value::Float(std::f64::consts::E),
        "Double/MAX_EXPONENT" => Value::Int(1_023),
        "Double/MIN_EXPONENT" => Value::Int(-1_022),
        "Double/MIN_NORMAL" => Value::Float(f64::MIN_POSITIVE),
        "Float/MAX_VALUE" => Value::Float(f64::from(f32::MAX)),
        "Float/MIN_VALUE" => Value::Float(1.4e-45),
        "Float/POSITIVE_INFINITY" => Value::Float(f64::INFINITY),
        "Float/NEGATIVE_INFINITY" => Value::Float(f64::NEG_INFINITY),
        "Float/NaN" => Value::Float(f64::NAN),
        "Short/MAX_VALUE" => Value::Int(i64::from(i16::MAX)),
        "Short/MIN_VALUE" => Value::Int(i64::from(i16::MIN)),
        "Byte/MAX_VALUE" => Value::Int(i64::from(i8::MAX)),
        "Byte/MIN_VALUE" => Value::Int(i64::from(i8::MIN)),
        "Long/SIZE" | "Double/SIZE" => Value::Int(64),
        "Integer/SIZE" | "Float/SIZE" => Value::Int(32),
        "Long/BYTES" | "Double/BYTES" => Value::Int(8),
        "Integer/BYTES" | "Float/BYTES" => Value::Int(4),
        "Long/MAX_VALUE" => Value::Int(i64::MAX),
        "Long/MIN_VALUE" => Value::Int(i64::MIN),
        "Integer/MAX_VALUE" => Value::Int(i64::from(i32::MAX)),
        "Integer/MIN_VALUE" => Value::Int(i64::from(i32::MIN)),
        "Double/MAX_VALUE" => Value::Float(f64::MAX),
        "Double/MIN_VALUE" => Value::Float(5e-324),
        "Double/POSITIVE_INFINITY" => Value::Float(f64::INFINITY),
        "Double/NEGATIVE_INFINITY" => Value::Float(f64::NEG_INFINITY),
        "Double/NaN" => Value::Float(f64::NAN),
        "BigInteger/ZERO" => Value::Int(0),
        "BigInteger/ONE" => Value::Int(1),
        "BigInteger/TWO" => Value::Int(2),
        "BigInteger/TEN" => Value::Int(10),
        "Boolean/TRUE" => Value::Bool(true),
        "Boolean/FALSE" => Value::Bool(false),
        _ => return None,
    })
}

fn real(arguments: &[Value], function: fn(f64) -> f64) -> Outcome<Value> {
    Ok(Value::Float(function(float(&arguments[0])?)))
}

fn reals(arguments: &[Value], function: fn(f64, f64) -> f64) -> Outcome<Value> {
    Ok(Value::Float(function(float(&arguments[0])?, float(&arguments[1])?)))
}

/// Computes a power as Java does: NaN for a NaN exponent, and for ±1 to an infinite power.
fn raised(base: f64, exponent: f64) -> f64 {
    if exponent.is_nan() || (base.abs() == 1.0 && exponent.is_infinite()) { f64::NAN } else { base.powf(exponent) }
}

fn log(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let number = float(&arguments[0])?;
    Ok(Value::Float(match arguments.get(1).map(float).transpose()? {
        None => number.ln(),
        // The quotient of the logarithms of 1000 and 10 would miss 3 in the last digit.
        Some(2.0) => number.log2(),
        Some(10.0) => number.log10(),
        Some(base) => number.ln() / base.ln(),
    }))
}

fn round(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if let [number, places] = arguments {
        return super::decimals::rounded_to(machine, number, integer(places)?);
    }
    match &arguments[0] {
        Value::Float(number) => {
            let below = number.floor();
            let rounded = if number - below >= 0.5 { below + 1.0 } else { below };
            // As in Java: saturates at the bounds of 64-bit integers, and NaN becomes 0.
            Ok(Value::Int(rounded as i64))
        }
        Value::Decimal(number) => {
            let half = bigdecimal::BigDecimal::new(5.into(), 1);
            let raised = &**number + half;
            let whole = super::decimals::truncated(machine, &raised)?;
            let above = bigdecimal::BigDecimal::from(whole.clone()) > raised;
            Ok(Value::integer(if above { whole - 1 } else { whole }))
        }
        whole if is_number(whole) => Ok(whole.clone()),
        other => Err(not_a_number(other).into()),
    }
}

fn expt(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match (&arguments[0], &arguments[1]) {
        (Value::Float(_), _) | (_, Value::Float(_)) => reals(arguments, raised),
        (base, Value::Int(exponent)) => {
            let base = big(base)?;
            let result = power(machine, &base, exponent.unsigned_abs())?;
            if *exponent >= 0 {
                return Ok(Value::integer(result));
            }
            let result = Value::integer(result);
            if matches!(result, Value::Int(0)) {
                return Err(division_by_zero().into());
            }
            match result {
                Value::Int(one @ (1 | -1)) => Ok(Value::Int(one)),
                result => Ok(Value::Float(1.0 / float(&result)?)),
            }
        }
        (_, exponent) => Err(Error::expected("an integer of 64 bits as the exponent", exponent).into()),
    }
}

fn floor_division(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match (&arguments[0], &arguments[1]) {
        (Value::Int(_), Value::Int(0)) => Err(division_by_zero().into()),
        (Value::Int(a), Value::Int(-1)) => Ok(Value::Int(a.wrapping_neg())),
        (Value::Int(a), Value::Int(b)) => Ok(Value::Int(Integer::div_floor(a, b))),
        (a, b) => {
            let rest = mixed(machine, Operation::Modulo, a, b)?;
            let whole = mixed(machine, Operation::Subtract, a, &rest)?;
            match mixed(machine, Operation::Quotient, &whole, b)? {
                Value::BigInt(number) => Ok(Value::integer((*number).clone())),
                other => Ok(other),
            }
        }
    }
}

fn gcd(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    common(machine, arguments, 0, Integer::gcd)
}

fn lcm(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    common(machine, arguments, 1, Integer::lcm)
}

type OfTwo = fn(&num_bigint::BigInt, &num_bigint::BigInt) -> num_bigint::BigInt;

fn common(machine: &mut Machine, arguments: &[Value], none: i64, of_two: OfTwo) -> Outcome<Value> {
    let mut result = big(&Value::Int(none))?;
    for number in arguments {
        let number = match number {
            Value::BigInt(number) => number.clone(),
            other => big(&Value::Int(integer(other)?))?,
        };
        machine.charge(1)?;
        let words = (result.bits() + number.bits()) / 64;
        machine.charge(words.saturating_mul(words))?;
        machine.reserve(words.saturating_mul(32))?;
        result = Arc::new(of_two(&result, &number));
    }
    Ok(Value::integer((*result).clone()))
}
