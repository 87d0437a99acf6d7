//! Conversions between kinds of numbers, and between numbers and text.

use super::arguments::{integer, string, take};
use super::arithmetic::{big, float, is_number, not_a_number, overflow, pay_for_digits};
use super::decimals;
use crate::error::{Error, Outcome, describe};
use crate::machine::Machine;
use crate::native::{Builtin, Conduct};
use crate::reader::is_uuid;
use crate::value::Value;
use crate::value::decimal;
use std::sync::Arc;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "long",
        &["[x]"],
        "The number as an integer, without its fractional part; the code point of a character.",
        &[("(long 2.5)", "2"), ("(long -2.5)", "-2")],
        long,
    )
    .with_conduct(Conduct::Integer),
    Builtin::new("double", &["[x]"], "The number as a double.", &[("(double 1)", "1.0")], double),
    Builtin::new("num", &["[x]"], "The number itself; nil for nil.", &[("(num 1)", "1")], num),
    Builtin::new(
        "bigint",
        &["[x]"],
        "The number, or the digits in a string, as an arbitrary-precision integer.",
        &[("(bigint 2)", "2N"), ("(* (bigint 9223372036854775807) 2)", "18446744073709551614N")],
        bigint,
    ),
    Builtin::new(
        "parse-long",
        &["[s]"],
        "Parses a string as an integer; nil if it is not one.",
        &[("(parse-long \"42\")", "42"), ("(parse-long \"4.2\")", "nil")],
        parse_long,
    ),
    Builtin::new(
        "parse-double",
        &["[s]"],
        "Parses a string as a double; nil if it is not one.",
        &[("(parse-double \"1.5e3\")", "1500.0"), ("(parse-double \"x\")", "nil")],
        parse_double,
    ),
    Builtin::new(
        "parse-boolean",
        &["[s]"],
        "true or false for `\"true\"` and `\"false\"`; nil for any other string.",
        &[("(parse-boolean \"true\")", "true"), ("(parse-boolean \"yes\")", "nil")],
        parse_boolean,
    ),
    Builtin::new(
        "Long/parseLong",
        &["[s]", "[s radix]"],
        "Parses a string as an integer; an error if it is not one.",
        &[("(Integer/parseInt \"42\")", "42"), ("(Long/parseLong \"ff\" 16)", "255")],
        java_long,
    ),
    Builtin::new(
        "Long/valueOf",
        &["[x]", "[s radix]"],
        "The integer itself, or parsed from a string.",
        &[("(Long/valueOf 5)", "5"), ("(Integer/valueOf \"17\")", "17")],
        long_value,
    ),
    Builtin::new(
        "Double/valueOf",
        &["[x]"],
        "The number as a double, or a double parsed from a string.",
        &[("(Double/valueOf \"1.5\")", "1.5"), ("(Double/valueOf 2)", "2.0")],
        double_value,
    ),
    Builtin::new(
        "parse-uuid",
        &["[s]"],
        "The UUID in lower case, or nil if the string is not a UUID. UUIDs are strings.",
        &[
            ("(parse-uuid \"B6883C0A-0342-4007-9966-BC2DFA6B109E\")", "\"b6883c0a-0342-4007-9966-bc2dfa6b109e\""),
            ("(parse-uuid \"no\")", "nil"),
        ],
        parse_uuid,
    ),
    Builtin::new(
        "uuid?",
        &["[x]"],
        "True for a string that is a UUID.",
        &[("(uuid? (random-uuid))", "true"), ("(uuid? \"no\")", "false")],
        |_, arguments| Ok(Value::Bool(arguments[0].as_str().is_some_and(is_uuid))),
    ),
    Builtin::new(
        "Double/parseDouble",
        &["[s]"],
        "Parses a string as a double; an error if it is not one.",
        &[("(Double/parseDouble \"2.5\")", "2.5")],
        java_double,
    ),
    Builtin::new(
        "Boolean/parseBoolean",
        &["[s]"],
        "True for `\"true\"` (ignoring case), else false.",
        &[("(Boolean/parseBoolean \"TRUE\")", "true"), ("(Boolean/parseBoolean nil)", "false")],
        java_boolean,
    ),
    Builtin::new(
        "number->string",
        &["[x]", "[x radix]"],
        "The number as text; an integer optionally in another radix.",
        &[("(number->string 255)", "\"255\""), ("(number->string 255 16)", "\"ff\"")],
        number_to_string,
    ),
    Builtin::new(
        "string->number",
        &["[s]", "[s radix]"],
        "Parses a string as a number; false if it is not one.",
        &[
            ("(string->number \"2.5\")", "2.5"),
            ("(string->number \"ff\" 16)", "255"),
            ("(string->number \"x\")", "false"),
        ],
        string_to_number,
    ),
];

/// Aliases from Java and other Lisps, as pairs of alias and builtin name.
pub const ALIASES: &[(&str, &str)] = &[
    ("biginteger", "bigint"),
    ("exact->inexact", "double"),
    ("Integer/parseInt", "Long/parseLong"),
    ("Integer/valueOf", "Long/valueOf"),
    ("BigInteger/valueOf", "long"),
    ("Integer.", "Long/valueOf"),
    ("Long.", "Long/valueOf"),
    ("Double.", "Double/valueOf"),
    ("Float.", "Double/valueOf"),
    ("Float/valueOf", "Double/valueOf"),
    ("UUID/fromString", "parse-uuid"),
    ("java.util.UUID/fromString", "parse-uuid"),
    ("parse-integer", "Long/parseLong"),
    ("parse-int", "parse-long"),
    ("parse-float", "parse-double"),
    ("Float/parseFloat", "Double/parseDouble"),
    ("Boolean/valueOf", "Boolean/parseBoolean"),
    ("Integer/toString", "number->string"),
    ("Long/toString", "number->string"),
    ("Double/toString", "number->string"),
];

pub(super) fn long(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(match &arguments[0] {
        Value::Int(number) => Value::Int(*number),
        Value::Char(character) => Value::Int(i64::from(u32::from(*character))),
        Value::Float(number) if number.is_nan() => Value::Int(0),
        Value::Float(number) if number.abs() < 9_223_372_036_854_775_808.0 => Value::Int(*number as i64),
        Value::BigInt(number) => match i64::try_from(&**number) {
            Ok(small) => Value::Int(small),
            Err(_) => return Err(overflow("(long x)", "bigint").into()),
        },
        Value::Decimal(number) => match i64::try_from(decimals::truncated(machine, number)?) {
            Ok(small) => Value::Int(small),
            Err(_) => return Err(overflow("(long x)", "bigint").into()),
        },
        Value::Float(number) => return Err(overflow(&format!("(long {number:e})"), "bigint").into()),
        other => return Err(not_convertible(other).into()),
    })
}

/// Builds the error for a value that `int`, `double` and related functions cannot convert.
#[cold]
fn not_convertible(value: &Value) -> Error {
    let error = not_a_number(value);
    match value {
        Value::Str(_) => error.suggest("`(parse-long s)` and `(parse-double s)` read a number from a string"),
        _ => error,
    }
}

pub(super) fn double(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match &arguments[0] {
        number if is_number(number) => Ok(Value::Float(float(number)?)),
        other => Err(not_convertible(other).into()),
    }
}

fn num(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match take(arguments, 0) {
        nil @ Value::Nil => Ok(nil),
        number if is_number(&number) => Ok(number),
        other => Err(not_convertible(&other).into()),
    }
}

fn bigint(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let number = match &arguments[0] {
        Value::Float(number) => {
            // Convert the decimal notation rather than the exact binary value: 1e23 is a one followed by zeros.
            let written = decimal::read(&format!("{number:e}"))
                .ok_or_else(|| Error::expected("a finite number", &arguments[0]))?;
            decimals::truncated(machine, &written)?
        }
        Value::Str(text) => match whole(machine, text.as_str(), 10)? {
            Some(number) => return Ok(Value::BigInt(big(&number)?)),
            None => return Err(wrong_format("an integer", &arguments[0], "").into()),
        },
        Value::Decimal(number) => decimals::truncated(machine, number)?,
        other => return Ok(Value::BigInt(big(other)?)),
    };
    Ok(Value::BigInt(Arc::new(number)))
}

/// Parses an integer of any size; `None` if the text is not one.
fn whole(machine: &mut Machine, text: &str, radix: u32) -> Outcome<Option<Value>> {
    if let Ok(small) = i64::from_str_radix(text, radix) {
        return Ok(Some(Value::Int(small)));
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Ok(None);
    }
    pay_for_digits(machine, digits.len() as u64 * 4)?;
    Ok(decimal::read_integer(text, radix).map(Value::integer))
}

/// Returns the text of a string that should denote a number.
fn spelling<'v>(machine: &mut Machine, value: &'v Value) -> Outcome<&'v str> {
    let text = match string(value) {
        Ok(text) => text,
        Err(error) if is_number(value) => {
            return Err(error.suggest("it is a number already: leave the parsing out").into());
        }
        Err(error) => return Err(error.into()),
    };
    machine.charge(text.len() as u64 / 64)?;
    Ok(text)
}

fn parse_long(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let text = spelling(machine, &arguments[0])?;
    Ok(text.parse().map_or(Value::Nil, Value::Int))
}

/// Parses a double by Java's rules: surrounding white space and a `d` or `f` suffix are allowed.
fn floating(text: &str) -> Option<f64> {
    let text = text.trim();
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    match unsigned {
        "NaN" | "Infinity" => text.parse().ok(),
        _ if unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.') => {
            text.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(text).parse().ok()
        }
        _ => None,
    }
}

fn parse_double(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let text = spelling(machine, &arguments[0])?;
    Ok(floating(text).map_or(Value::Nil, Value::Float))
}

fn parse_boolean(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(match string(&arguments[0])? {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ => Value::Nil,
    })
}

/// Builds the error for a string that does not denote the expected number.
#[cold]
fn wrong_format(what: &str, value: &Value, instead: &str) -> Error {
    let error = Error::unmet("NumberFormat", format!("the digits of {what}, got {}", describe(value)));
    if instead.is_empty() {
        return error;
    }
    error.suggest(format!("`{instead}` gives nil if the string is not a number"))
}

/// Returns the radix argument, 10 by default.
fn radix(value: Option<&Value>) -> Result<u32, Error> {
    let Some(value) = value else { return Ok(10) };
    let radix = integer(value)?;
    u32::try_from(radix)
        .ok()
        .filter(|radix| (2..=36).contains(radix))
        .ok_or_else(|| Error::unmet("ArgumentError", format!("a radix from 2 to 36, got {radix}")))
}

fn java_long(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let text = spelling(machine, &arguments[0])?;
    let radix = radix(arguments.get(1))?;
    match i64::from_str_radix(text, radix) {
        Ok(number) => Ok(Value::Int(number)),
        Err(_) => Err(wrong_format("an integer", &arguments[0], "parse-long").into()),
    }
}

fn long_value(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match arguments {
        [number @ Value::Int(_)] => Ok(std::mem::take(number)),
        arguments => java_long(machine, arguments),
    }
}

fn double_value(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if is_number(&arguments[0]) { double(machine, arguments) } else { java_double(machine, arguments) }
}

fn parse_uuid(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let text = string(&arguments[0])?;
    Ok(if is_uuid(text) { Value::string(&text.to_lowercase()) } else { Value::Nil })
}

fn java_double(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let text = spelling(machine, &arguments[0])?;
    match floating(text) {
        Some(number) => Ok(Value::Float(number)),
        None => Err(wrong_format("a number", &arguments[0], "parse-double").into()),
    }
}

fn java_boolean(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Bool(match &arguments[0] {
        Value::Nil => false,
        Value::Bool(value) => *value,
        other => string(other)?.eq_ignore_ascii_case("true"),
    }))
}

pub(super) fn number_to_string(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let number = &arguments[0];
    if !is_number(number) {
        return Err(not_a_number(number).into());
    }
    match radix(arguments.get(1))? {
        10 => super::text::text_of(machine, number),
        radix => {
            let number = big(number)?;
            pay_for_digits(machine, number.bits())?;
            Ok(Value::string(&number.to_str_radix(radix)))
        }
    }
}

fn string_to_number(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let radix = radix(arguments.get(1))?;
    let text = string(&arguments[0])?.trim();
    machine.charge(text.len() as u64 / 64)?;
    if let Some(number) = whole(machine, text, radix)? {
        return Ok(number);
    }
    Ok(match floating(text) {
        Some(number) if radix == 10 => Value::Float(number),
        _ => Value::Bool(false),
    })
}
