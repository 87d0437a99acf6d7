//! Reads the arguments of a tool, and says which one is wrong.

use super::form::Form;
use crate::convert::{self, ConvertError};
use crate::error::suggest::{closest, did_you_mean};
use crate::foreign_text;
use crate::host::{ToolError, ToolErrorKind};
use crate::meter;
use crate::value::Value;
use crate::value::map::Map;
use crate::value::names::canonical;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// Most names that a message lists.
const LISTED: usize = 12;

/// Reads the arguments of a tool of that name, whose type has that form, into at most `room` bytes.
///
/// # Errors
/// Returns an error that names the argument.
pub(super) fn read<A: DeserializeOwned>(arguments: &Value, form: Form, name: &str, room: u64) -> Result<A, ToolError> {
    let keys: Vec<&str> = match arguments {
        Value::Map(map) => map.iter().filter_map(|(key, _)| key.as_text()).collect(),
        _ => Vec::new(),
    };
    if let Some(fields) = form.fields()
        && let Some(unknown) = keys.iter().find(|key| !is_among(key, fields))
    {
        let left = fields.iter().copied().filter(|field| !is_among(field, &keys));
        let close = closest(unknown, left).map(did_you_mean);
        let known = if fields.is_empty() { "it takes none".to_owned() } else { format!("it takes {}", listed(fields)) };
        return Err(error(format!("`{name}` has no argument `{unknown}`; {known}"), close));
    }
    let read = convert::from_plain_strictly(arguments, room).map_err(|unfit| {
        if unfit.is_raised() {
            let room = meter::bytes(room);
            return error(format!("the arguments of `{name}` take more than the {room} of memory that are left"), None);
        }
        let error = explain(&unfit, &keys, name);
        ToolError { suggestion: error.suggestion.or_else(|| left_out::<A>(arguments, &unfit, room)), ..error }
    })?;
    if let (Form::TaggedInside, Value::Map(map)) = (form, arguments)
        && let Some(unknown) = convert::dropped::<A>(map, room)
    {
        return Err(error(format!("`{name}` has no argument `{unknown}` beside the others that it was given"), None));
    }
    Ok(read)
}

/// Suggests to leave an argument out that is nil and does not fit, if the others fit without it: nil is no value of the
/// type, and a default is only for an argument that is not there.
fn left_out<A: DeserializeOwned>(arguments: &Value, unfit: &ConvertError, room: u64) -> Option<String> {
    let (Value::Map(map), place) = (arguments, unfit.place()) else { return None };
    let is_it = |key: &Value| key.as_text().is_some_and(|key| is_among(key, &[&place]));
    map.iter().find(|(key, value)| value.is_nil() && is_it(key))?;
    let given = map.iter().filter(|(_, value)| !value.is_nil());
    let given: Map = given.map(|(key, value)| (key.clone(), value.clone())).collect();
    convert::from_plain_strictly::<A>(&Value::Map(Arc::new(given)), room).ok()?;
    Some(format!("`{place}` may be left out"))
}

/// Returns whether a key is one of these names, in any spelling.
fn is_among(key: &str, names: &[&str]) -> bool {
    names.contains(&key) || names.iter().any(|name| canonical(name) == canonical(key))
}

/// Lists names in backticks.
fn listed(names: &[&str]) -> String {
    let shown: Vec<String> = names.iter().take(LISTED).map(|name| format!("`{name}`")).collect();
    match names.len() {
        0..=LISTED => shown.join(", "),
        count => format!("{} and {} more", shown.join(", "), count - LISTED),
    }
}

/// Explains why the arguments do not fit the type.
fn explain(unfit: &ConvertError, keys: &[&str], name: &str) -> ToolError {
    let place = unfit.place();
    if let Some(missing) = unfit.missing() {
        let inside = if place.is_empty() { String::new() } else { format!(" in `{place}`") };
        let slip = closest(missing, keys.iter().copied()).filter(|_| place.is_empty());
        let slip = slip.map(|slip| format!("Did you mean {missing} instead of {slip}?"));
        return error(format!("`{name}` needs the argument `{missing}`{inside}"), slip);
    }
    let what = if place.is_empty() { "the arguments".to_owned() } else { format!("argument `{place}`") };
    error(format!("{what} of `{name}`: {}", unfit.message()), None)
}

fn error(message: String, suggestion: Option<String>) -> ToolError {
    // Names and values come from the program.
    let suggestion = suggestion.map(|suggestion| foreign_text::line(&suggestion));
    ToolError { kind: ToolErrorKind::Arguments, message: foreign_text::line(&message), suggestion }
}
