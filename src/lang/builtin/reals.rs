//! The less common functions of `math/` on doubles: hyperbolic functions, and the neighbours and components of a
//! double.

use super::arguments::integer;
use super::arithmetic::float;
use crate::error::Outcome;
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new("math/sinh", &["[x]"], "The hyperbolic sine.", &[("(math/sinh 0)", "0.0")], |_, arguments| {
        real(arguments, f64::sinh)
    }),
    Builtin::new("math/cosh", &["[x]"], "The hyperbolic cosine.", &[("(math/cosh 0)", "1.0")], |_, arguments| {
        real(arguments, f64::cosh)
    }),
    Builtin::new("math/tanh", &["[x]"], "The hyperbolic tangent.", &[("(math/tanh 0)", "0.0")], |_, arguments| {
        real(arguments, f64::tanh)
    }),
    Builtin::new(
        "math/log1p",
        &["[x]"],
        "The natural logarithm of `1 + x`, accurate for small `x`.",
        &[("(math/log1p 0)", "0.0")],
        |_, arguments| real(arguments, f64::ln_1p),
    ),
    Builtin::new(
        "math/expm1",
        &["[x]"],
        "e to the power of `x`, minus 1, accurate for small `x`.",
        &[("(math/expm1 0)", "0.0")],
        |_, arguments| real(arguments, f64::exp_m1),
    ),
    Builtin::new(
        "math/copy-sign",
        &["[x sign]"],
        "The first number with the sign of the second.",
        &[("(math/copy-sign 3 -1)", "-3.0")],
        |_, arguments| Ok(Value::Float(float(&arguments[0])?.copysign(float(&arguments[1])?))),
    ),
    Builtin::new(
        "math/next-up",
        &["[x]"],
        "The next larger double.",
        &[("(math/next-up 1)", "1.0000000000000002")],
        |_, arguments| real(arguments, f64::next_up),
    ),
    Builtin::new(
        "math/next-down",
        &["[x]"],
        "The next smaller double.",
        &[("(math/next-down 1)", "0.9999999999999999")],
        |_, arguments| real(arguments, f64::next_down),
    ),
    Builtin::new(
        "math/next-after",
        &["[start direction]"],
        "The next double from the first number towards the second.",
        &[("(math/next-after 1 2)", "1.0000000000000002")],
        next_after,
    ),
    Builtin::new(
        "math/ulp",
        &["[x]"],
        "The distance to the next larger double.",
        &[("(math/ulp 1)", "2.220446049250313E-16")],
        |_, arguments| real(arguments, ulp),
    ),
    Builtin::new(
        "math/scalb",
        &["[x exponent]"],
        "`x` times 2 to the power of the exponent.",
        &[("(math/scalb 1.5 4)", "24.0")],
        scale,
    ),
    Builtin::new(
        "math/get-exponent",
        &["[x]"],
        "The binary exponent of the double.",
        &[("(math/get-exponent 8)", "3")],
        |_, arguments| Ok(Value::Int(exponent(float(&arguments[0])?))),
    ),
    Builtin::new(
        "math/IEEE-remainder",
        &["[dividend divisor]"],
        "The remainder of a division whose quotient is rounded to the nearest integer.",
        &[("(math/IEEE-remainder 5 3)", "-1.0")],
        nearest_remainder,
    ),
];

/// Java's names.
pub const ALIASES: &[(&str, &str)] = &[
    ("math/copySign", "math/copy-sign"),
    ("math/nextUp", "math/next-up"),
    ("math/nextDown", "math/next-down"),
    ("math/nextAfter", "math/next-after"),
    ("math/getExponent", "math/get-exponent"),
    ("math/IEEEremainder", "math/IEEE-remainder"),
];

fn real(arguments: &[Value], function: fn(f64) -> f64) -> Outcome<Value> {
    Ok(Value::Float(function(float(&arguments[0])?)))
}

fn next_after(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (start, direction) = (float(&arguments[0])?, float(&arguments[1])?);
    Ok(Value::Float(match start.partial_cmp(&direction) {
        None => f64::NAN,
        Some(std::cmp::Ordering::Equal) => direction,
        Some(std::cmp::Ordering::Less) => start.next_up(),
        Some(std::cmp::Ordering::Greater) => start.next_down(),
    }))
}

fn ulp(number: f64) -> f64 {
    let number = number.abs();
    if number.is_infinite() {
        return number;
    }
    if number == f64::MAX { number - number.next_down() } else { number.next_up() - number }
}

fn scale(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let number = float(&arguments[0])?;
    // Beyond this range every double has become zero or infinite.
    let exponent = integer(&arguments[1])?.clamp(-2_200, 2_200) as i32;
    // Scales in three steps, since a single factor may overflow or underflow a double.
    let step = exponent / 3;
    let power = |exponent: i32| 2_f64.powi(exponent);
    Ok(Value::Float(number * power(step) * power(step) * power(exponent - 2 * step)))
}

/// Returns the unbiased exponent as Java reports it. For zero and subnormal numbers it is the minimum exponent minus
/// one.
fn exponent(number: f64) -> i64 {
    ((number.to_bits() >> 52) & 0x7ff) as i64 - 1023
}

fn nearest_remainder(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (dividend, divisor) = (float(&arguments[0])?, float(&arguments[1])?);
    if divisor.is_infinite() && dividend.is_finite() {
        return Ok(Value::Float(dividend));
    }
    let (rest, divisor) = (dividend % divisor, divisor.abs());
    let odd = (dividend % (2.0 * divisor)).abs() >= divisor;
    let distance = rest.abs();
    let rounds_up = distance > divisor - distance || (distance == divisor - distance && odd);
    Ok(Value::Float(if rounds_up { rest - divisor.copysign(rest) } else { rest }))
}
