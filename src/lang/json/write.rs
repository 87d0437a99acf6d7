//! Serializes values as JSON text.

use super::first_rounded;
use crate::error::{Error, Fault, Outcome, Raised};
use crate::machine::Machine;
use crate::value::Value;
use crate::value::decimal::{self, square_effort};
use crate::value::map::Map;
use crate::value::walk::{Cursor, Pace};
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write;
use std::sync::Arc;

/// A pending part of the output.
enum Open {
    Array { cursor: Cursor, first: bool, depth: usize },
    Object { map: Arc<Map>, position: usize, first: bool, depth: usize },
}

/// The form of a JSON text. By default it is one line, with keys as they are.
#[derive(Default)]
pub struct Layout {
    /// The spaces by which each level is indented, with one entry per line; `None` for a text of one line.
    pub indent: Option<usize>,
    /// A function that makes the text, or another key, of each key.
    pub key_function: Option<Value>,
}

/// Serializes a value as JSON: keywords and symbols as their names, sets and lists as arrays, big integers as numbers.
///
/// # Errors
/// Returns `JsonError` for values that JSON cannot represent and for maps of which two keys are written the same, or an
/// exceeded limit.
pub fn write(machine: &mut Machine, value: &Value, layout: &Layout) -> Outcome<String> {
    let mut out = String::new();
    let mut open = Vec::new();
    let Layout { indent, key_function } = layout;
    let (indent, key_function) = (*indent, key_function.as_ref());
    begin(machine, value, key_function, &mut out, &mut open)?;
    while let Some(top) = open.last_mut() {
        machine.step(1)?;
        if out.len() >= 1 << 16 && out.len() == out.capacity() {
            machine.reserve(out.len() as u64)?;
        }
        match top {
            Open::Array { cursor, first, depth } => match cursor.next(machine)? {
                Some(item) => {
                    separate(&mut out, std::mem::take(first), indent, *depth);
                    begin(machine, &item, key_function, &mut out, &mut open)?;
                }
                None => {
                    finish(&mut out, *first, indent, *depth, ']');
                    open.pop();
                }
            },
            Open::Object { map, position, first, depth } => {
                let at = *position;
                *position += 1;
                if at >= map.positions() {
                    finish(&mut out, *first, indent, *depth, '}');
                    open.pop();
                    continue;
                }
                let map = map.clone();
                let Some((key, value)) = map.entry(at) else { continue };
                separate(&mut out, std::mem::take(first), indent, *depth);
                write_key(machine, &mut out, key)?;
                out.push_str(if indent.is_some() { ": " } else { ":" });
                begin(machine, value, key_function, &mut out, &mut open)?;
            }
        }
    }
    Ok(out)
}

/// The maximum length of a 64-bit integer as text.
const LONGEST: usize = "-9223372036854775808".len();

/// Converts a value to a `serde_json::Value`, for the record of an evaluation, or returns the reason why JSON cannot
/// carry it exactly within `budget` bytes of text.
///
/// # Errors
/// Returns a halt if a limit is exceeded.
pub fn to_serde(machine: &mut Machine, value: &Value, budget: usize) -> Outcome<Result<serde_json::Value, String>> {
    // Values that certainly fit are converted without text.
    if budget >= LONGEST {
        match value {
            Value::Nil => return Ok(Ok(serde_json::Value::Null)),
            Value::Bool(value) => return Ok(Ok((*value).into())),
            Value::Int(value) => return Ok(Ok((*value).into())),
            _ => {}
        }
    }
    let text = match write(machine, value, &Layout::default()) {
        Ok(text) => text,
        Err(signal) => {
            return match signal.raised() {
                Raised::Halt(_) => Err(signal),
                Raised::Error(error) | Raised::Fault(Fault { error, .. }) => Ok(Err(error.message.clone())),
            };
        }
    };
    if text.len() > budget {
        return Ok(Err(format!("the JSON text takes {} bytes; the limit `output` allows {budget}", text.len())));
    }
    Ok(match first_rounded(&text) {
        Some(rounded) => Err(rounded.to_string()),
        None => serde_json::from_str(&text).map_err(|error| error.to_string()),
    })
}

fn begin(
    machine: &mut Machine,
    value: &Value,
    key_function: Option<&Value>,
    out: &mut String,
    open: &mut Vec<Open>,
) -> Outcome<()> {
    let depth = open.len() + 1;
    let written = match value {
        Value::Nil => out.write_str("null"),
        Value::Bool(value) => write!(out, "{value}"),
        Value::Int(value) => out.write_str(itoa::Buffer::new().format(*value)),
        Value::BigInt(value) => {
            machine.charge(square_effort(value.bits()))?;
            write!(out, "{value}")
        }
        Value::Decimal(value) => {
            machine.charge(square_effort(decimal::bits(value)))?;
            decimal::write(out, value);
            Ok(())
        }
        Value::Time(time) => write!(out, "\"{time}\""),
        Value::Float(value) if value.is_finite() => write!(out, "{value:?}"),
        Value::Float(_) => {
            return Err(unsayable(value).suggest("replace it, for example by nil, before writing").into());
        }
        Value::Char(value) => {
            write_string(out, value.encode_utf8(&mut [0; 4]));
            Ok(())
        }
        Value::Str(text) => {
            make_room(machine, out, text.as_str())?;
            write_string(out, text.as_str());
            Ok(())
        }
        named if let Some(name) = named.as_name() => {
            write_string(out, name.as_str());
            Ok(())
        }
        Value::Var(_) => {
            write_string(out, &value.to_string());
            Ok(())
        }
        Value::Regex(regex) => {
            write_string(out, regex.as_str());
            Ok(())
        }
        Value::Map(map) => {
            let map = match key_function {
                Some(function) => renamed(machine, function, map)?,
                None => map.clone(),
            };
            if !map.is_record() {
                distinct_keys(machine, &map)?;
            }
            out.push('{');
            open.push(Open::Object { map, position: 0, first: true, depth });
            Ok(())
        }
        Value::List(_) | Value::Vector(_) | Value::Set(_) | Value::Lazy(_) => {
            out.push('[');
            let cursor = Cursor::over(value.clone()).unwrap_or(Cursor::End);
            open.push(Open::Array { cursor, first: true, depth });
            Ok(())
        }
        other => return Err(unsayable(other).into()),
    };
    written.map_err(|_| Error::new("JsonError", "the JSON text could not be written").into())
}

fn unsayable(value: &Value) -> Error {
    Error::new("JsonError", format!("JSON cannot represent {}", crate::error::describe(value)))
}

fn separate(out: &mut String, first: bool, indent: Option<usize>, depth: usize) {
    if !first {
        out.push(',');
    }
    if let Some(spaces) = indent {
        new_line(out, spaces * depth);
    }
}

fn finish(out: &mut String, empty: bool, indent: Option<usize>, depth: usize, close: char) {
    if let Some(spaces) = indent.filter(|_| !empty) {
        new_line(out, spaces * (depth - 1));
    }
    out.push(close);
}

fn new_line(out: &mut String, spaces: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', spaces));
}

/// Returns the map with the keys that a function makes of its keys.
fn renamed(machine: &mut Machine, function: &Value, map: &Map) -> Outcome<Arc<Map>> {
    machine.reserve_values(2 * map.len() as u64)?;
    let mut out = Map::default();
    for (key, value) in map.iter() {
        let key = machine.call1(function, key.clone())?;
        let key = machine.key(key)?;
        if out.contains_key(&key) {
            return Err(written_alike(&key_text(&key)).into());
        }
        out.insert(key, value.clone());
    }
    Ok(Arc::new(out))
}

/// The error for a map of which two keys are written the same.
fn written_alike(text: &str) -> Error {
    Error::new("JsonError", format!("JSON cannot represent a map of which two keys are written \"{text}\""))
}

/// Refuses a map of which two keys are written the same, such as `:a` and `"a"`: readers keep only one of them.
fn distinct_keys(machine: &mut Machine, map: &Map) -> Outcome<()> {
    let is_keyword = |(key, _): (&Value, &Value)| matches!(key, Value::Keyword(_));
    let is_string = |(key, _): (&Value, &Value)| matches!(key, Value::Str(_));
    if map.iter().all(is_keyword) || map.iter().all(is_string) {
        return Ok(());
    }
    let mut seen = HashSet::with_capacity(map.len());
    for (key, _) in map.iter() {
        let text = key_text(key);
        machine.charge(1 + text.len() as u64 / 64)?;
        if let Some(text) = seen.replace(text) {
            return Err(written_alike(&text).into());
        }
    }
    Ok(())
}

/// Returns the text of a key in JSON.
fn key_text(key: &Value) -> Cow<'_, str> {
    match key {
        key if let Some(text) = key.as_text() => text.into(),
        Value::Nil => "null".into(),
        other => format!("{other:?}").into(),
    }
}

fn write_key(machine: &mut Machine, out: &mut String, key: &Value) -> Outcome<()> {
    const SHORT: usize = 64;
    let text = key_text(key);
    if text.len() >= SHORT {
        make_room(machine, out, &text)?;
    }
    write_string(out, &text);
    Ok(())
}

/// Charges for a string and reserves the memory for a long one, which may take six times its length.
fn make_room(machine: &mut Machine, out: &mut String, text: &str) -> Outcome<()> {
    machine.charge(text.len() as u64 / 64)?;
    if text.len() < 4_096 {
        return Ok(());
    }
    let written = 2 + text
        .bytes()
        .map(|byte| escape_of(byte).map_or(1, |escape| if escape.is_empty() { 6 } else { escape.len() }))
        .sum::<usize>();
    machine.charge((written - text.len()) as u64 / 64)?;
    if out.capacity() - out.len() < written {
        machine.reserve(written.max(2 * out.capacity()) as u64)?;
        out.reserve(written);
    }
    Ok(())
}

/// Returns the escape of a byte in a string; `None` if it needs none, an empty text if it is escaped by its number.
fn escape_of(byte: u8) -> Option<&'static str> {
    Some(match byte {
        b'"' => "\\\"",
        b'\\' => "\\\\",
        b'\n' => "\\n",
        b'\r' => "\\r",
        b'\t' => "\\t",
        0..=0x1f => "",
        _ => return None,
    })
}

/// Writes a string in JSON's quotes.
pub fn write_string(out: &mut String, text: &str) {
    out.push('"');
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        let Some(escape) = escape_of(byte) else { continue };
        out.push_str(&text[plain..at]);
        if escape.is_empty() {
            out.push_str(if byte < 0x10 { "\\u000" } else { "\\u001" });
            out.push(char::from_digit(u32::from(byte & 0xf), 16).unwrap_or('0'));
        } else {
            out.push_str(escape);
        }
        plain = at + 1;
    }
    out.push_str(&text[plain..]);
    out.push('"');
}
