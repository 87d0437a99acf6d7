//! Input from a text: `with-in-str`, `read-line` and `read`. There is no other input.

use super::arguments::map;
use super::edn::{OF_CODE, Options, next_form};
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::{Builtin, Conduct, OptionSet};
use crate::value::Value;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new("with-in-str*", &["[s f]"], "Expansion of `with-in-str`.", &[], with_in_str)
        .with_conduct(Conduct::CallsLast),
    Builtin::new(
        "read-line",
        &["[]"],
        "The next line of the text given to `with-in-str`; nil at its end.",
        &[("(with-in-str \"a\\nb\" [(read-line) (read-line) (read-line)])", "[\"a\" \"b\" nil]")],
        read_line,
    ),
    Builtin::new(
        "read",
        &["[]", "[in]", "[options in]", "[in eof-error? eof-value]", "[in eof-error? eof-value recursive?]"],
        "Reads the next form of the text given to `with-in-str`, as data. At its end: an error, or `eof-value` if \
         `eof-error?` is false. Options as for `read-string`. Nothing is evaluated.",
        &[
            ("(with-in-str \"1 (+ 1 2)\" [(read) (read)])", "[1 (+ 1 2)]"),
            ("(with-in-str \"\" (read *in* false :end))", ":end"),
        ],
        read_form,
    )
    .with_options(&READ),
];

static READ: OptionSet = OptionSet { function: "read", accepted: OF_CODE };

/// Returns the value of `*in*`: the symbol itself, since there is one input at a time.
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
    Error::new("NotAvailable", "a program has no standard input").suggest(
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
    let (given, source) = match arguments {
        [options, source] => {
            let given = map(std::mem::take(options))?;
            (READ.of_map(&given)?, Some(&*source))
        }
        [source, ..] => (READ.none(), Some(&*source)),
        [] => (READ.none(), None),
    };
    if let Some(source) = source
        && !matches!(source, Value::Symbol(name) if name.as_str() == "*in*")
    {
        return Err(Error::expected("`*in*`", source).suggest("`(read-string s)` reads a form from a string").into());
    }
    let mut options = Options::of_code(machine, &given)?;
    if let [_, ends_in_error, at_end, ..] = arguments
        && !ends_in_error.is_truthy()
    {
        options.at_end = Some(std::mem::take(at_end));
    }
    let Some((text, at)) = machine.core.inputs.last().cloned() else { return Err(no_input().into()) };
    let (value, passed) = next_form(machine, &text.as_str()[at..], options)?;
    if let Some((_, at)) = machine.core.inputs.last_mut() {
        *at += passed;
    }
    Ok(value)
}
