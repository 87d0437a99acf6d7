//! Data read from text, as programs are read: `clojure.edn/read-string`. Nothing is evaluated.

use super::Builtin;
use super::arguments::map;
use super::text::excerpt;
use crate::lang::error::{Error, Outcome};
use crate::lang::eval::{Machine, value_of};
use crate::lang::form::Form;
use crate::lang::reader::{ReadError, read};
use crate::lang::value::Value;

/// The entries of this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "edn/read-string",
        &["[s]", "[options s]"],
        "The first form that the text spells, as data; nil if there is none, or the option `:eof`. Nothing is evaluated.",
        &[
            ("(edn/read-string \"{:port 8080, :hosts [\\\"a\\\" \\\"b\\\"]}\")", "{:port 8080, :hosts [\"a\" \"b\"]}"),
            ("(edn/read-string \"(+ 1 2)\")", "(+ 1 2)"),
            ("(edn/read-string {:eof :none} \"\")", ":none"),
        ],
        read_string,
    ),
    Builtin::new(
        "read-string",
        &["[s]", "[options s]"],
        "As `edn/read-string`, but text without a form is an error.",
        &[("(read-string \"[1 a :b]\")", "[1 a :b]")],
        read_code,
    ),
];

/// Common Lisp's name.
pub const ALIASES: &[(&str, &str)] = &[("read-from-string", "read-string")];

/// What a byte of text may take as tokens and forms.
const BYTES_A_BYTE: u64 = 128;

fn read_string(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let nothing = end_option(arguments)?.unwrap_or_default();
    let text = arguments.last_mut().map(std::mem::take).unwrap_or_default();
    if text.is_nil() { Ok(nothing) } else { Ok(first_form(machine, &text)?.unwrap_or(nothing)) }
}

fn read_code(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let nothing = end_option(arguments)?;
    let text = arguments.last_mut().map(std::mem::take).unwrap_or_default();
    match first_form(machine, &text)?.or(nothing) {
        Some(value) => Ok(value),
        None => Err(nothing_to_read().into()),
    }
}

/// The error of a text without a form.
#[cold]
pub(super) fn nothing_to_read() -> Error {
    Error::new("NothingToRead", "there is no form in the text").suggest("`(edn/read-string s)` gives nil then")
}

/// What to give at the end of the text, if the options say so.
fn end_option(arguments: &mut [Value]) -> Outcome<Option<Value>> {
    match arguments {
        [options, _] => Ok(map(std::mem::take(options))?.get(&Value::keyword("eof")).cloned()),
        _ => Ok(None),
    }
}

/// The first form that a text spells.
fn first_form(machine: &mut Machine, text: &Value) -> Outcome<Option<Value>> {
    let Value::Str(text) = text else {
        return Err(Error::expected("a string", text).suggest("`(pr-str x)` spells a value").into());
    };
    forms_of(machine, text.as_str())?.first().map(value_of).transpose()
}

/// The forms that a text spells.
pub(super) fn forms_of(machine: &mut Machine, text: &str) -> Outcome<Vec<Form>> {
    ask_to_read(machine, text)?;
    machine.charge(text.len() as u64)?;
    Ok(read(text).map_err(|error| unreadable(text, &error))?)
}

/// Asks for the memory that reading a text may take.
///
/// # Errors
/// `TextTooLong`; limits.
pub(super) fn ask_to_read(machine: &mut Machine, text: &str) -> Outcome<()> {
    let longest = machine.core.meter.limits.program;
    if text.len() as u64 > longest {
        return Err(Error::new("TextTooLong", format!("data of at most {longest} bytes can be read"))
            .suggest("use `json/parse` for data in JSON, or read it line by line with `str/split-lines`")
            .into());
    }
    machine.reserve(text.len() as u64 * BYTES_A_BYTE)
}

/// The error of the reader, with the place in the text.
#[cold]
pub(super) fn unreadable(text: &str, error: &ReadError) -> Error {
    let at = error.span.start as usize;
    let told = Error::new(error.code, format!("`{}` cannot be read at byte {at}: {}", excerpt(text), error.message));
    match &error.suggestion {
        Some(suggestion) => told.suggest(suggestion.clone()),
        None => told,
    }
}
