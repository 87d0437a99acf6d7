//! String builders and writers: texts that are changed in place, under the names of Java.
//!
//! A builder is a cell that holds its text. The text is uniquely owned while it is extended, so that a loop that appends
//! is linear. What is printed to a builder (`(binding [*out* w] …)`) reaches it when it is next read or changed.

use super::arguments::{integer, take};
use super::formats::csv::OUT;
use super::text::{Builder, ask_for_copy, byte_of, pay, text_of};
use crate::error::{Error, Outcome};
use crate::eval::internal_error;
use crate::heap::{CellKind, Handle, State};
use crate::machine::{Capture, Machine};
use crate::native::{Builtin, Conduct};
use crate::value::Value;
use crate::value::text::Text;
use std::sync::Arc;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "StringBuilder.",
        &["[]", "[x]"],
        "A text that `.append`, `.insert`, `.reverse`, `.setLength` and the like change in place; `str` and `.toString` \
         return it. `x` is the text at first, or a capacity, which has no effect. `str` and `str/join` make a text at once.",
        &[
            ("(str (doto (StringBuilder.) (.append \"a\") (.append 1)))", "\"a1\""),
            ("(let [w (java.io.StringWriter.)] (binding [*out* w] (print \"hi\")) (str w))", "\"hi\""),
        ],
        make,
    ),
    Builtin::new(
        ".append",
        &["[builder x]", "[builder s start end]"],
        "Adds the text of `x`, or of a part of `s`, at the end of a string builder, and returns the builder.",
        &[("(str (.append (StringBuilder. \"a\") \\b))", "\"ab\"")],
        append,
    ),
    Builtin::new(
        ".write",
        &["[writer x]", "[writer s from length]"],
        "Adds a text, the character of a code point, or a part of a text to a writer.",
        &[("(let [w (java.io.StringWriter.)] (.write w \"ab\") (.write w 99) (str w))", "\"abc\"")],
        write,
    ),
    Builtin::new(
        ".insert",
        &["[builder index x]"],
        "Inserts the text of `x` into a string builder, and returns the builder.",
        &[("(str (.insert (StringBuilder. \"ac\") 1 \"b\"))", "\"abc\"")],
        |machine, arguments| {
            let more = shown(machine, &arguments[2])?;
            edit(machine, arguments, |text, index| {
                let at = index(text, 1)?;
                text.insert_str(at, more.as_str());
                Ok(())
            })
        },
    ),
    Builtin::new(
        ".delete",
        &["[builder start end]"],
        "Removes the characters from `start` up to `end` from a string builder, and returns the builder.",
        &[("(str (.delete (StringBuilder. \"abcd\") 1 3))", "\"ad\"")],
        |machine, arguments| {
            let end = integer(&arguments[2])?;
            edit(machine, arguments, |text, index| {
                let start = index(text, 1)?;
                // The end of the text bounds the part.
                let end = u64::try_from(end).ok().map(|end| byte_of(text, end).unwrap_or(text.len()));
                match end.filter(|end| start <= *end) {
                    Some(end) => text.replace_range(start..end, ""),
                    None => return Err(out_of_bounds("of the end", text)),
                }
                Ok(())
            })
        },
    ),
    Builtin::new(
        ".deleteCharAt",
        &["[builder index]"],
        "Removes a character from a string builder, and returns the builder.",
        &[("(str (.deleteCharAt (StringBuilder. \"abc\") 1))", "\"ac\"")],
        |machine, arguments| {
            edit(machine, arguments, |text, index| {
                let at = character_at(text, index)?;
                text.remove(at);
                Ok(())
            })
        },
    ),
    Builtin::new(
        ".setCharAt",
        &["[builder index c]"],
        "Replaces a character of a string builder.",
        &[("(let [b (StringBuilder. \"abc\")] (.setCharAt b 1 \\x) (str b))", "\"axc\"")],
        |machine, arguments| {
            let character = super::characters::character(&arguments[2])?;
            edit(machine, arguments, |text, index| {
                let at = character_at(text, index)?;
                let old = text[at..].chars().next().map_or(0, char::len_utf8);
                text.replace_range(at..at + old, character.encode_utf8(&mut [0; 4]));
                Ok(())
            })?;
            Ok(Value::Nil)
        },
    ),
    Builtin::new(
        ".setLength",
        &["[builder length]"],
        "Cuts the text of a string builder, or fills it with null characters, to that length.",
        &[("(let [b (StringBuilder. \"abc\")] (.setLength b 1) (str b))", "\"a\"")],
        set_length,
    ),
    Builtin::new(
        ".reverse",
        &["[builder]"],
        "Reverses the text of a string builder, and returns the builder. `str/reverse` reverses a string, `reverse` a \
         collection.",
        &[("(str (.reverse (StringBuilder. \"abc\")))", "\"cba\"")],
        |machine, arguments| {
            edit(machine, arguments, |text, _| {
                *text = text.chars().rev().collect();
                Ok(())
            })
        },
    ),
    Builtin::new(
        ".flush",
        &["[writer]"],
        "Does nothing: a writer has its text at once.",
        &[("(.flush *out*)", "nil")],
        done,
    ),
    Builtin::new(
        ".close",
        &["[writer]"],
        "Does nothing: the text of a writer remains.",
        &[("(.close (java.io.StringWriter.))", "nil")],
        done,
    ),
    Builtin::new("with-writer*", &["[writer f]"], "Expansion of a `binding` of `*out*`.", &[], with_writer)
        .with_conduct(Conduct::CallsLast),
];

/// Aliases, as pairs of alias and builtin name.
pub const ALIASES: &[(&str, &str)] = &[("StringBuffer.", "StringBuilder."), ("StringWriter.", "StringBuilder.")];

/// Returns the cell of a string builder; `None` for any other value.
pub fn builder(value: &Value) -> Option<&Arc<Handle>> {
    match value {
        Value::Cell(cell) if cell.cell_kind() == CellKind::Text => Some(cell),
        _ => None,
    }
}

fn builder_in(arguments: &[Value]) -> Result<Arc<Handle>, Error> {
    builder(&arguments[0]).cloned().ok_or_else(|| {
        let advice = crate::absent::advice("push").unwrap_or_default();
        Error::expected("a string builder", &arguments[0]).suggest(advice)
    })
}

/// Returns the text of a string builder.
///
/// # Errors
/// Returns `ForeignCell` if the builder belongs to another session; halts if a resource limit is exceeded.
pub fn content(machine: &mut Machine, cell: &Arc<Handle>) -> Outcome<Text> {
    take_prints(machine, cell)?;
    match machine.core.heap.state(cell)? {
        State::Done(Value::Str(text)) => Ok(text.clone()),
        _ => Err(internal_error().into()),
    }
}

/// Adds text at the end of a string builder.
///
/// # Errors
/// As [`content`].
pub fn add(machine: &mut Machine, cell: &Arc<Handle>, more: &str) -> Outcome<()> {
    take_prints(machine, cell)?;
    let mut builder = Builder::extending(taken(machine, cell)?);
    builder.push(machine, more)?;
    machine.core.heap.change(cell, State::Done(builder.finish()))?;
    Ok(())
}

/// Takes the text out of a builder, for a change. A limit that is exceeded before it is back ends the program, and all
/// changes of the form are undone.
fn taken(machine: &mut Machine, cell: &Arc<Handle>) -> Outcome<String> {
    let State::Done(Value::Str(text)) = machine.core.heap.change(cell, State::Done(Value::Nil))? else {
        return Err(internal_error().into());
    };
    match text.into_own() {
        Ok(own) => Ok(own),
        Err(shared) => {
            pay(machine, shared.as_str())?;
            ask_for_copy(machine, shared.as_str(), 1)?;
            Ok(shared.as_str().to_string())
        }
    }
}

/// Moves what has been printed to a builder into it.
fn take_prints(machine: &mut Machine, cell: &Arc<Handle>) -> Outcome<()> {
    let is_pending = |capture: &Capture| {
        !capture.text.is_empty() && capture.into.as_ref().is_some_and(|into| Arc::ptr_eq(into, cell))
    };
    while let Some(capture) = machine.core.captured.iter_mut().find(|capture| is_pending(capture)) {
        let printed = std::mem::take(&mut capture.text);
        let mut builder = Builder::extending(taken(machine, cell)?);
        builder.push(machine, &printed)?;
        machine.core.heap.change(cell, State::Done(builder.finish()))?;
    }
    Ok(())
}

/// Returns the text of a value as Java appends it.
fn shown(machine: &mut Machine, value: &Value) -> Outcome<Text> {
    match value {
        Value::Nil => Err(Error::expected("a value to append", value)
            .suggest("nil has no text of its own: `(str x)` is empty for nil")
            .into()),
        value => match text_of(machine, value)? {
            Value::Str(text) => Ok(text),
            _ => Err(internal_error().into()),
        },
    }
}

fn make(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let text = match arguments {
        [] | [Value::Int(_)] => Text::from(""),
        [first, ..] => shown(machine, first)?,
    };
    Ok(Value::Cell(machine.core.heap.allocate(CellKind::Text, State::Done(Value::Str(text)))))
}

fn append(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let cell = builder_in(arguments)?;
    let text = shown(machine, &arguments[1])?;
    let range = match arguments.len() {
        4 => Some((integer(&arguments[2])?, integer(&arguments[3])?)),
        _ => None,
    };
    add(machine, &cell, cut(&text, range)?)?;
    Ok(take(arguments, 0))
}

fn write(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let cell = builder_in(arguments)?;
    let text = match &arguments[1] {
        Value::Int(_) => Text::from(super::characters::character(&arguments[1])?.encode_utf8(&mut [0; 4]) as &str),
        Value::Str(text) => text.clone(),
        other => return Err(Error::expected("a string or a code point", other).into()),
    };
    let range = match arguments.len() {
        4 => {
            let from = integer(&arguments[2])?;
            Some((from, from.saturating_add(integer(&arguments[3])?)))
        }
        _ => None,
    };
    add(machine, &cell, cut(&text, range)?)?;
    Ok(Value::Nil)
}

/// Returns the part of a text between two indices.
fn cut(text: &Text, range: Option<(i64, i64)>) -> Result<&str, Error> {
    let Some((start, end)) = range else { return Ok(text.as_str()) };
    let place = |index: i64| usize::try_from(index).ok().and_then(|index| text.place_of(index));
    match (place(start), place(end)) {
        (Some(from), Some(to)) if from <= to => Ok(&text.as_str()[from..to]),
        _ => Err(out_of_bounds(&format!("{start} to {end}"), text.as_str())),
    }
}

#[cold]
fn out_of_bounds(what: &str, text: &str) -> Error {
    Error::new(
        "IndexOutOfBounds",
        format!("index {what} is out of range: the text has {} characters", text.chars().count()),
    )
}

/// Returns the byte offset at the index that an argument holds.
type Index<'a> = &'a dyn Fn(&str, usize) -> Result<usize, Error>;

/// Changes the text of the builder that is the first argument; returns the builder.
fn edit(
    machine: &mut Machine,
    arguments: &mut [Value],
    change: impl FnOnce(&mut String, Index<'_>) -> Result<(), Error>,
) -> Outcome<Value> {
    let cell = builder_in(arguments)?;
    take_prints(machine, &cell)?;
    let mut text = taken(machine, &cell)?;
    let index = |text: &str, at: usize| {
        let index = integer(&arguments[at])?;
        let place = u64::try_from(index).ok().and_then(|index| byte_of(text, index));
        place.ok_or_else(|| out_of_bounds(&index.to_string(), text))
    };
    let changed = change(&mut text, &index);
    let paid = pay(machine, &text).and_then(|()| ask_for_copy(machine, &text, 1));
    machine.core.heap.change(&cell, State::Done(Value::Str(Text::with_room(text))))?;
    paid?;
    changed?;
    Ok(take(arguments, 0))
}

/// Returns the byte offset of the character at the index in the second argument.
fn character_at(text: &str, index: Index<'_>) -> Result<usize, Error> {
    let at = index(text, 1)?;
    if at < text.len() { Ok(at) } else { Err(out_of_bounds("at the end", text)) }
}

fn set_length(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let length = integer(&arguments[1])?;
    let Ok(length) = usize::try_from(length) else {
        return Err(Error::unmet("IndexOutOfBounds", format!("a length of 0 or more, got {length}")).into());
    };
    machine.charge(length as u64 / 64)?;
    machine.reserve(if length >= 4_096 { 2 * length as u64 } else { 0 })?;
    edit(machine, arguments, |text, _| {
        match byte_of(text, length as u64) {
            Some(end) => text.truncate(end),
            None => {
                let more = length - text.chars().count();
                text.extend(std::iter::repeat_n('\0', more));
            }
        }
        Ok(())
    })?;
    Ok(Value::Nil)
}

/// Checks that the argument is a builder, or the output of the program.
fn done(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if !is_out(&arguments[0]) {
        builder_in(arguments)?;
    }
    Ok(Value::Nil)
}

/// True for the value of `*out*`: the output of the program.
fn is_out(value: &Value) -> bool {
    value.as_symbol().is_some_and(|name| name.as_str() == OUT)
}

/// Calls a function while what it prints goes to a writer.
fn with_writer(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if is_out(&arguments[0]) {
        return machine.call(&arguments[1], &mut []);
    }
    let Some(cell) = builder(&arguments[0]).cloned() else {
        return Err(Error::expected("a writer as the value of `*out*`", &arguments[0])
            .suggest("`(java.io.StringWriter.)` makes one; `(with-out-str …)` returns what is printed")
            .into());
    };
    let depth = machine.core.captured.len();
    machine.core.captured.push(Capture { into: Some(cell.clone()), ..Capture::default() });
    let result = machine.call(&arguments[1], &mut []);
    let taken = take_prints(machine, &cell);
    machine.core.captured.truncate(depth);
    let value = result?;
    taken?;
    Ok(value)
}
