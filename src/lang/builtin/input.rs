//! Reading from a text as if it were typed: `with-in-str`, `read-line` and `read`. There is no other input.

use super::Builtin;
use super::edn::{ask_to_read, nothing_to_read, unreadable};
use crate::lang::error::{Error, Outcome};
use crate::lang::eval::{Machine, value_of};
use crate::lang::reader::read_first;
use crate::lang::value::Value;

/// The entries of this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new("with-in-str*", &["[s f]"], "What `with-in-str` expands to.", &[], with_in_str),
    Builtin::new(
        "read-line",
        &["[]"],
        "The next line of the text that `with-in-str` gives; nil behind the last one.",
        &[("(with-in-str \"a\\nb\" [(read-line) (read-line) (read-line)])", "[\"a\" \"b\" nil]")],
        read_line,
    ),
    Builtin::new(
        "read",
        &["[]", "[in]", "[in eof-error? eof-value]", "[in eof-error? eof-value recursive?]"],
        "The next form of the text that `with-in-str` gives, as data. At its end an error, or `eof-value` where \
         `eof-error?` is false. Nothing is evaluated.",
        &[
            ("(with-in-str \"1 (+ 1 2)\" [(read) (read)])", "[1 (+ 1 2)]"),
            ("(with-in-str \"\" (read *in* false :end))", ":end"),
        ],
        read_form,
    ),
];

/// What `*in*` stands for: its own name, since there is one input at a time.
pub fn constant(name: &str) -> Option<Value> {
    (name == "*in*").then(|| Value::symbol(name))
}

fn with_in_str(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let Value::Str(text) = &arguments[0] else { return Err(Error::expected("a string", &arguments[0]).into()) };
    let depth = machine.core.inputs.len();
    machine.core.inputs.push((text.clone(), 0));
    let result = machine.call(&arguments[1], &mut []);
    machine.core.inputs.truncate(depth);
    result
}

#[cold]
fn no_input() -> Error {
    Error::new("NotAvailable", "nobody types while a program runs").suggest(
        "put what it needs into the program, pass it in as `data`, or read a text with `(with-in-str s (read-line))`",
    )
}

fn read_line(machine: &mut Machine, _: &mut [Value]) -> Outcome<Value> {
    let Some((text, at)) = machine.core.inputs.last_mut() else { return Err(no_input().into()) };
    let rest = &text.as_str()[*at..];
    if rest.is_empty() {
        return Ok(Value::Nil);
    }
    let (line, passed) = match rest.find('\n') {
        Some(end) => (&rest[..end], end + 1),
        None => (rest, rest.len()),
    };
    let line = Value::string(line.strip_suffix('\r').unwrap_or(line));
    *at += passed;
    machine.charge(passed as u64 / 64)?;
    Ok(line)
}

fn read_form(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if let Some(source) = arguments.first()
        && !matches!(source, Value::Symbol(name) if name.as_str() == "*in*")
    {
        return Err(Error::expected("`*in*`", source).suggest("`(read-string s)` reads a form from a string").into());
    }
    let Some((text, at)) = machine.core.inputs.last().cloned() else { return Err(no_input().into()) };
    let rest = &text.as_str()[at..];
    ask_to_read(machine, rest)?;
    let read = read_first(rest);
    let passed = match &read {
        Ok(Some((_, passed))) => *passed,
        _ => rest.len(),
    };
    machine.charge(passed as u64)?;
    let Some((form, passed)) = read.map_err(|error| unreadable(rest, &error))? else {
        return match arguments {
            [_, ends_in_error, at_end, ..] if !ends_in_error.is_truthy() => Ok(std::mem::take(at_end)),
            _ => Err(nothing_to_read().into()),
        };
    };
    if let Some((_, at)) = machine.core.inputs.last_mut() {
        *at += passed;
    }
    value_of(&form)
}
