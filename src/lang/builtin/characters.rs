//! Characters.

use super::arguments::{integer, take, whole};
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new("char", &["[x]"], "Character of a code point.", &[("(char 97)", "\\a"), ("(char \\a)", "\\a")], char),
    Builtin::new(
        "Character/isDigit",
        &["[c]"],
        "True for a digit.",
        &[("(Character/isDigit \\1)", "true")],
        |_, arguments| test(arguments, char::is_numeric),
    ),
    Builtin::new(
        "Character/isLetter",
        &["[c]"],
        "True for a letter.",
        &[("(Character/isLetter \\a)", "true")],
        |_, arguments| test(arguments, char::is_alphabetic),
    ),
    Builtin::new(
        "Character/isLetterOrDigit",
        &["[c]"],
        "True for a letter or digit.",
        &[("(Character/isLetterOrDigit \\_)", "false")],
        |_, arguments| test(arguments, char::is_alphanumeric),
    ),
    Builtin::new(
        "Character/isUpperCase",
        &["[c]"],
        "True for an uppercase letter.",
        &[("(Character/isUpperCase \\A)", "true")],
        |_, arguments| test(arguments, char::is_uppercase),
    ),
    Builtin::new(
        "Character/isLowerCase",
        &["[c]"],
        "True for a lowercase letter.",
        &[("(Character/isLowerCase \\A)", "false")],
        |_, arguments| test(arguments, char::is_lowercase),
    ),
    Builtin::new(
        "Character/isWhitespace",
        &["[c]"],
        "True for a space, tab or line terminator.",
        &[("(Character/isWhitespace \\space)", "true")],
        |_, arguments| test(arguments, super::strings::is_blank),
    ),
    Builtin::new(
        "Character/toUpperCase",
        &["[c]"],
        "In upper case.",
        &[("(Character/toUpperCase \\a)", "\\A")],
        |_, arguments| change(arguments, |c| single(c, c.to_uppercase())),
    ),
    Builtin::new(
        "Character/toLowerCase",
        &["[c]"],
        "In lower case.",
        &[("(Character/toLowerCase \\A)", "\\a")],
        |_, arguments| change(arguments, |c| single(c, c.to_lowercase())),
    ),
    Builtin::new(
        "Character/getNumericValue",
        &["[c]"],
        "The numeric value of a digit or letter (radix 36), else -1.",
        &[("(Character/getNumericValue \\7)", "7"), ("(Character/getNumericValue \\a)", "10")],
        numeric_value,
    ),
    Builtin::new(
        "Character/digit",
        &["[c radix]"],
        "The numeric value of a digit in a radix, else -1.",
        &[("(Character/digit \\f 16)", "15"), ("(Character/digit \\9 8)", "-1")],
        digit,
    ),
    Builtin::new(
        "Character/forDigit",
        &["[digit radix]"],
        "The character of a digit in a radix; the null character if it has none.",
        &[("(Character/forDigit 11 16)", "\\b")],
        |_, arguments| {
            let radix = radix(&arguments[1])?;
            let digit = u32::try_from(integer(&arguments[0])?).ok();
            Ok(Value::Char(digit.and_then(|digit| char::from_digit(digit, radix)).unwrap_or('\0')))
        },
    ),
    Builtin::new(
        "Character/isSpaceChar",
        &["[c]"],
        "True for a space or separator of Unicode, and false for tabs and ends of lines.",
        &[("(Character/isSpaceChar \\space)", "true"), ("(Character/isSpaceChar \\tab)", "false")],
        |_, arguments| test(arguments, |c| c.is_whitespace() && !c.is_control()),
    ),
    Builtin::new(
        "char-name-string",
        &["[c]"],
        "The name of a character, such as \"newline\"; nil if it has none.",
        &[("(char-name-string \\newline)", "\"newline\""), ("(char-name-string \\a)", "nil")],
        |_, arguments| Ok(noted(character(&arguments[0])?, NAMES)),
    ),
    Builtin::new(
        "char-escape-string",
        &["[c]"],
        "The escape sequence of a character in a string; nil if it needs none.",
        &[("(char-escape-string \\newline)", "\"\\\\n\""), ("(char-escape-string \\a)", "nil")],
        |_, arguments| Ok(noted(character(&arguments[0])?, ESCAPES)),
    ),
];

/// Names of characters, as `char-name-string` returns them.
const NAMES: &[(char, &str)] = &[
    ('\n', "newline"),
    ('\t', "tab"),
    (' ', "space"),
    ('\u{8}', "backspace"),
    ('\u{c}', "formfeed"),
    ('\r', "return"),
];

/// Escape sequences of characters in strings, as `char-escape-string` returns them.
const ESCAPES: &[(char, &str)] =
    &[('\n', "\\n"), ('\t', "\\t"), ('\r', "\\r"), ('"', "\\\""), ('\\', "\\\\"), ('\u{c}', "\\f"), ('\u{8}', "\\b")];

fn noted(character: char, notes: &[(char, &str)]) -> Value {
    notes.iter().find(|(noted, _)| *noted == character).map_or(Value::Nil, |(_, note)| Value::string(note))
}

/// Aliases from other Lisps, as pairs of alias and builtin name.
pub const ALIASES: &[(&str, &str)] = &[
    ("integer->char", "char"),
    ("code-char", "char"),
    ("char->integer", "int"),
    ("char-code", "int"),
    ("char-numeric?", "Character/isDigit"),
    ("char-alphabetic?", "Character/isLetter"),
    ("char-whitespace?", "Character/isWhitespace"),
    ("char-upper-case?", "Character/isUpperCase"),
    ("char-lower-case?", "Character/isLowerCase"),
    ("char-upcase", "Character/toUpperCase"),
    ("char-downcase", "Character/toLowerCase"),
    ("Character/isAlphabetic", "Character/isLetter"),
    ("Character/isSpace", "Character/isWhitespace"),
    ("Character/toString", "str"),
    ("Character/valueOf", "char"),
];

/// Returns a character argument; a code point or a string of one character is accepted too.
pub(super) fn character(value: &Value) -> Result<char, Error> {
    match value {
        Value::Char(character) => Ok(*character),
        Value::Int(_) | Value::Float(_) => {
            let code = whole(value)?;
            u32::try_from(code).ok().and_then(char::from_u32).ok_or_else(|| {
                Error::new("ArgumentError", format!("{code} is not the code of a character"))
                    .suggest("codes range from 0 to 55295 and from 57344 to 1114111")
            })
        }
        Value::Str(text) => {
            let mut characters = text.as_str().chars();
            match (characters.next(), characters.next()) {
                (Some(only), None) => Ok(only),
                _ => Err(Error::expected("a character", value)
                    .suggest("`(first s)` is the first character of a string, `(seq s)` are all")),
            }
        }
        other => Err(Error::expected("a character", other)),
    }
}

pub(super) fn char(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Char(character(&take(arguments, 0))?))
}

fn test(arguments: &[Value], holds: fn(char) -> bool) -> Outcome<Value> {
    Ok(Value::Bool(holds(character(&arguments[0])?)))
}

fn change(arguments: &[Value], change: fn(char) -> char) -> Outcome<Value> {
    Ok(Value::Char(change(character(&arguments[0])?)))
}

/// Returns the single character that a case conversion yields, or the original if it yields several, as for `ß`.
fn single(before: char, mut after: impl Iterator<Item = char>) -> char {
    match (after.next(), after.next()) {
        (Some(only), None) => only,
        _ => before,
    }
}

fn numeric_value(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Int(character(&arguments[0])?.to_digit(36).map_or(-1, i64::from)))
}

fn digit(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let radix = radix(&arguments[1])?;
    Ok(Value::Int(character(&arguments[0])?.to_digit(radix).map_or(-1, i64::from)))
}

fn radix(value: &Value) -> Result<u32, Error> {
    let radix = integer(value)?;
    u32::try_from(radix)
        .ok()
        .filter(|radix| (2..=36).contains(radix))
        .ok_or_else(|| Error::unmet("ArgumentError", format!("a radix from 2 to 36, got {radix}")))
}
