//! Exact decimals: `1.50M`, like Java's `BigDecimal`, for money.
//!
//! Sums and products are exact. A quotient is exact if it terminates within 34 digits; otherwise it is rounded to 34
//! digits, half to even (IEEE 754 decimal128), where Java would throw.

use super::arguments::{integer, take};
use super::arithmetic::{Operation, division_by_zero, not_a_number, pay_for_digits};
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::{Builtin, Conduct};
use crate::value::Value;
use crate::value::decimal::{self, MAX_SCALE};
use bigdecimal::{BigDecimal, RoundingMode};
use num_bigint::BigInt;
use num_traits::{Signed, Zero};
use std::sync::Arc;

/// Precision of a quotient that does not terminate, in digits.
const QUOTIENT_DIGITS: u64 = 34;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "bigdec",
        &["[x]"],
        "The number, or the digits in a string, as an exact decimal.",
        &[("(bigdec \"19.90\")", "19.90M"), ("(bigdec 3)", "3M"), ("(bigdec 0.1)", "0.1M")],
        bigdec,
    ),
    Builtin::new(
        "decimal?",
        &["[x]"],
        "True for an exact decimal.",
        &[("(decimal? 1.5M)", "true"), ("(decimal? 1.5)", "false")],
        |_, arguments| Ok(Value::Bool(matches!(&arguments[0], Value::Decimal(_)))),
    ),
    Builtin::new(
        "decimal/round",
        &["[x places]", "[x places mode]"],
        "The number as an exact decimal with that number of decimal places. The mode is `:half-up` (default: halves \
         away from zero), `:half-even` (bankers), `:half-down`, `:up`, `:down`, `:ceiling` or `:floor`.",
        &[
            ("(decimal/round 2.345M 2)", "2.35M"),
            ("(decimal/round 2.345M 2 :half-even)", "2.34M"),
            ("(decimal/round 10 2)", "10.00M"),
        ],
        round,
    ),
    Builtin::new(
        "decimal/scale",
        &["[x]"],
        "The number of decimal places.",
        &[("(decimal/scale 1.50M)", "2"), ("(.scale 10M)", "0")],
        |_, arguments| Ok(Value::Int(exact(&arguments[0])?.fractional_digit_count())),
    ),
    Builtin::new(
        "decimal/strip-zeros",
        &["[x]"],
        "The decimal without trailing zeros.",
        &[("(decimal/strip-zeros 1.500M)", "1.5M")],
        strip_zeros,
    ),
    Builtin::new(
        "decimal/plain",
        &["[x]"],
        "The decimal as text without an exponent.",
        &[("(decimal/plain 1E3M)", "\"1000\"")],
        plain,
    ),
    Builtin::new(
        "with-precision*",
        &["[digits mode value]"],
        "The value; a decimal rounded to `digits` digits.",
        &[],
        with_precision,
    )
    .with_conduct(Conduct::CallsLast),
];

/// Aliases, as pairs of alias and builtin name.
pub const ALIASES: &[(&str, &str)] = &[
    ("BigDecimal.", "bigdec"),
    ("java.math.BigDecimal.", "bigdec"),
    ("BigDecimal/valueOf", "bigdec"),
    ("decimal", "bigdec"),
    (".setScale", "decimal/round"),
    (".scale", "decimal/scale"),
    (".stripTrailingZeros", "decimal/strip-zeros"),
    (".toPlainString", "decimal/plain"),
    ("RoundingMode/valueOf", "keyword"),
];

/// Converts a number to an exact decimal; a double by the digits that it prints as.
///
/// # Errors
/// Returns `TypeError` if the value is not a finite number.
pub fn exact(value: &Value) -> Result<BigDecimal, Error> {
    match value {
        Value::Decimal(number) => Ok((**number).clone()),
        Value::Int(number) => Ok(BigDecimal::from(*number)),
        Value::BigInt(number) => Ok(decimal::of_integer((**number).clone())),
        Value::Float(number) if number.is_finite() => {
            let mut text = String::new();
            crate::value::print::write_float(&mut text, *number);
            decimal::read(&text).ok_or_else(|| Error::expected("a finite number", value))
        }
        Value::Float(_) => Err(Error::expected("a finite number", value)),
        other => Err(not_a_number(other)),
    }
}

fn made(number: BigDecimal) -> Value {
    Value::Decimal(Arc::new(number))
}

/// Computes an operation on two numbers, of which at least one is a decimal and none is a double.
///
/// # Errors
/// Returns `ArithmeticError` for a division by zero or a result with a scale beyond a million; halts if a resource
/// limit is exceeded.
pub fn operate(machine: &mut Machine, operation: Operation, left: &Value, right: &Value) -> Outcome<Value> {
    let (left, right) = (exact(left)?, exact(right)?);
    let divides = !matches!(operation, Operation::Add | Operation::Subtract | Operation::Multiply);
    if divides && right.is_zero() {
        return Err(division_by_zero().into());
    }
    // Every operation but a product aligns the scales by appending zeros.
    let apart = match operation {
        Operation::Multiply => 0,
        _ => left.fractional_digit_count().abs_diff(right.fractional_digit_count()),
    };
    pay(machine, &left, &right, apart)?;
    let result = match operation {
        Operation::Add => left + right,
        Operation::Subtract => left - right,
        Operation::Multiply => left * right,
        Operation::Divide => quotient(&left, &right),
        Operation::Quotient => whole_quotient(&left, &right),
        Operation::Remainder => &left - whole_quotient(&left, &right) * &right,
        Operation::Modulo => {
            let rest = &left - whole_quotient(&left, &right) * &right;
            if rest.is_zero() || rest.is_negative() == right.is_negative() { rest } else { rest + right }
        }
    };
    bounded(result)
}

/// Wraps a result, checking its scale.
fn bounded(result: BigDecimal) -> Outcome<Value> {
    if result.fractional_digit_count().abs() > MAX_SCALE {
        return Err(Error::new("ArithmeticError", "a decimal has at most a million places").into());
    }
    Ok(made(result))
}

/// Charges for an operation on two decimals by their digits and by the `apart` zeros that align their scales.
fn pay(machine: &mut Machine, left: &BigDecimal, right: &BigDecimal, apart: u64) -> Outcome<()> {
    let words = |number: &BigDecimal| (number.as_bigint_and_scale().0.bits() + apart * 4) / 64 + 1;
    let (left, right) = (words(left), words(right));
    machine.charge(left.saturating_mul(right) / 8)?;
    machine.reserve((left + right).saturating_mul(16))
}

fn quotient(left: &BigDecimal, right: &BigDecimal) -> BigDecimal {
    let (above, above_scale) = left.as_bigint_and_scale();
    let (below, below_scale) = right.as_bigint_and_scale();
    let preferred = above_scale - below_scale;
    let shift = (QUOTIENT_DIGITS + 2 + decimal::digits(right)).saturating_sub(decimal::digits(left));
    let widened = &*above * BigInt::from(10).pow(shift as u32);
    let (whole, rest) = (&widened / &*below, &widened % &*below);
    // The remainder only affects rounding by being nonzero: one extra last digit of 1 (a sticky digit) represents it.
    let scale = preferred + shift as i64;
    let value = if rest.is_zero() {
        BigDecimal::new(whole, scale)
    } else {
        let sign = if widened.is_negative() == below.is_negative() { 1 } else { -1 };
        BigDecimal::new(whole * 10 + sign, scale + 1)
    };
    let rounded = value.with_precision_round(nonzero(QUOTIENT_DIGITS), RoundingMode::HalfEven);
    strip_to(rounded, preferred)
}

fn nonzero(digits: u64) -> std::num::NonZeroU64 {
    std::num::NonZeroU64::new(digits).unwrap_or(std::num::NonZeroU64::MIN)
}

/// Strips trailing zeros, but keeps at least `places` decimal places.
fn strip_to(value: BigDecimal, places: i64) -> BigDecimal {
    let (mut digits, mut scale) = value.into_bigint_and_scale();
    if digits.is_zero() {
        return BigDecimal::new(digits, places.max(0));
    }
    while scale > places {
        let rest: BigInt = &digits % 10;
        if !rest.is_zero() {
            break;
        }
        digits /= 10;
        scale -= 1;
    }
    BigDecimal::new(digits, scale)
}

/// Divides and truncates the quotient to an integer.
fn whole_quotient(left: &BigDecimal, right: &BigDecimal) -> BigDecimal {
    let (above, above_scale) = left.as_bigint_and_scale();
    let (below, below_scale) = right.as_bigint_and_scale();
    let ten = |power: i64| BigInt::from(10).pow(u32::try_from(power.max(0)).unwrap_or(0));
    let whole = (&*above * ten(below_scale - above_scale)) / (&*below * ten(above_scale - below_scale));
    BigDecimal::from(whole).with_scale((above_scale - below_scale).max(0))
}

/// Truncates a decimal to an integer.
///
/// # Errors
/// Halts if a resource limit is exceeded: `1E1000000M` has a million digits.
pub fn truncated(machine: &mut Machine, number: &BigDecimal) -> Outcome<BigInt> {
    let zeros = number.fractional_digit_count().unsigned_abs();
    pay_for_digits(machine, (zeros + decimal::digits(number)) * 4)?;
    Ok(number.with_scale_round(0, RoundingMode::Down).into_bigint_and_scale().0)
}

fn bigdec(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match take(arguments, 0) {
        decimal @ Value::Decimal(_) => Ok(decimal),
        Value::Str(text) => {
            let text = text.as_str();
            pay_for_digits(machine, text.len() as u64 * 4)?;
            let digits = text.trim().trim_end_matches('M');
            decimal::read(digits).map(made).ok_or_else(|| {
                Error::new("NumberFormatError", format!("`{}` is not a decimal", excerpt(text)))
                    .suggest("write digits with a decimal point, such as `\"1234.50\"`; remove currency signs and separators first: `(str/replace s #\"[^0-9.-]\" \"\")`")
                    .into()
            })
        }
        other => Ok(made(exact(&other)?)),
    }
}

fn excerpt(text: &str) -> String {
    text.chars().take(40).collect()
}

fn round(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let number = exact(&arguments[0])?;
    let places = integer(&arguments[1])?;
    if places.abs() > MAX_SCALE {
        return Err(Error::new("ArithmeticError", "a decimal has at most a million places").into());
    }
    let mode = match arguments.get(2) {
        Some(mode) => rounding(mode)?,
        None => RoundingMode::HalfUp,
    };
    pay_for_digits(machine, (number.fractional_digit_count().abs_diff(places) + decimal::digits(&number)) * 4)?;
    Ok(made(number.with_scale_round(places, mode)))
}

/// Rounds a number of any kind to decimal places, which may be negative; ties round up.
///
/// # Errors
/// Returns `TypeError` if the value is not a number, `ArithmeticError` for over a million places of a decimal, or a halt
/// if a limit is exceeded.
pub fn rounded_to(machine: &mut Machine, number: &Value, places: i64) -> Outcome<Value> {
    let ties = |number: &BigDecimal| if number.is_negative() { RoundingMode::HalfDown } else { RoundingMode::HalfUp };
    match number {
        Value::Float(double) => {
            // Doubles have at most 308 digits before and 1,074 after the point.
            if !double.is_finite() || places > 1_074 {
                return Ok(number.clone());
            }
            machine.charge(16)?;
            let exact = decimal::read(&format!("{double:e}")).unwrap_or_default();
            let rounded = exact.with_scale_round(places.max(-400), ties(&exact));
            Ok(Value::Float(decimal::to_double(&rounded)))
        }
        Value::Int(_) | Value::BigInt(_) if places >= 0 => Ok(number.clone()),
        Value::Int(_) | Value::BigInt(_) => {
            let exact = exact(number)?;
            let digits = decimal::digits(&exact);
            if places.unsigned_abs() > digits {
                return Ok(Value::Int(0));
            }
            pay_for_digits(machine, digits * 4)?;
            let rounded = exact.with_scale_round(places, ties(&exact)).with_scale(0);
            Ok(Value::integer(rounded.into_bigint_and_scale().0))
        }
        Value::Decimal(exact) => {
            if places.abs() > MAX_SCALE {
                return Err(Error::new("ArithmeticError", "a decimal has at most a million places").into());
            }
            let digits = exact.fractional_digit_count().abs_diff(places) + decimal::digits(exact);
            pay_for_digits(machine, (digits + places.unsigned_abs()) * 4)?;
            Ok(made(exact.with_scale_round(places, ties(exact)).with_scale(places.max(0))))
        }
        other => Err(not_a_number(other).into()),
    }
}

/// Returns the rounding mode that a keyword, or Java's name for it, denotes.
fn rounding(value: &Value) -> Result<RoundingMode, Error> {
    let name = value.as_text().unwrap_or_default();
    let name = name.rsplit('/').next().unwrap_or_default().to_lowercase().replace('_', "-");
    Ok(match name.as_str() {
        "half-up" => RoundingMode::HalfUp,
        "half-even" => RoundingMode::HalfEven,
        "half-down" => RoundingMode::HalfDown,
        "up" => RoundingMode::Up,
        "down" => RoundingMode::Down,
        "ceiling" => RoundingMode::Ceiling,
        "floor" => RoundingMode::Floor,
        _ => {
            return Err(Error::expected(
                "one of :half-up, :half-even, :half-down, :up, :down, :ceiling, :floor",
                value,
            ));
        }
    })
}

/// Returns the value of a constant of Java's `RoundingMode`; `None` for any other name.
pub fn constant(name: &str) -> Option<Value> {
    let whole = match name {
        "BigDecimal/ZERO" => Some(0),
        "BigDecimal/ONE" => Some(1),
        "BigDecimal/TEN" => Some(10),
        _ => None,
    };
    if let Some(whole) = whole {
        return Some(made(BigDecimal::from(whole)));
    }
    let base = name.strip_prefix("java.math.").unwrap_or(name).strip_prefix("RoundingMode/")?;
    let keyword = Value::keyword(&base.to_lowercase().replace('_', "-"));
    rounding(&keyword).ok().map(|_| keyword)
}

fn strip_zeros(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let number = exact(&arguments[0])?;
    pay_for_digits(machine, decimal::bits(&number))?;
    bounded(decimal::without_zeros_at_end(&number))
}

fn plain(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let number = exact(&arguments[0])?;
    pay_for_digits(machine, decimal::bits(&number))?;
    let zeros = number.fractional_digit_count().unsigned_abs() + decimal::digits(&number);
    machine.reserve(zeros * 2)?;
    Ok(Value::string(&number.to_plain_string()))
}

fn with_precision(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let digits = integer(&arguments[0])?;
    let Value::Decimal(number) = &arguments[2] else { return Ok(take(arguments, 2)) };
    let mode = if arguments[1].is_nil() { RoundingMode::HalfUp } else { rounding(&arguments[1])? };
    let Some(digits) = u64::try_from(digits).ok().and_then(std::num::NonZeroU64::new) else {
        return Ok(take(arguments, 2));
    };
    pay_for_digits(machine, decimal::bits(number))?;
    if decimal::digits(number) <= digits.get() {
        return Ok(take(arguments, 2));
    }
    Ok(made(number.with_precision_round(digits, mode)))
}

/// Returns the absolute value of a decimal; `None` if the value is not a decimal.
pub fn absolute(value: &Value) -> Option<Value> {
    match value {
        Value::Decimal(number) => Some(made(number.abs())),
        _ => None,
    }
}
