//! Reading the fields of JSON objects in configurations and requests, with errors that state the expected and the actual
//! value and show no credential.

use serde_json::{Map, Value};

use crate::lang::internal::closest;

use super::secrets::{credentials_in, names_a_secret};
use super::text::cut;

/// Returns a field; `null` counts as absent.
pub(in crate::server) fn given<'v>(fields: &'v Map<String, Value>, key: &str) -> Option<&'v Value> {
    fields.get(key).filter(|value| !value.is_null())
}

/// Checks that all fields are known; `place` is the prefix of the key in the path of an unknown one.
pub(in crate::server) fn known_keys(
    fields: &Map<String, Value>,
    known: impl IntoIterator<Item = &'static str, IntoIter: Clone>,
    place: &str,
) -> Result<(), Wrong> {
    let known = known.into_iter();
    let Some(key) = fields.keys().find(|key| !known.clone().any(|known| known == key.as_str())) else { return Ok(()) };
    let meant = match closest(key, known.clone()) {
        Some(close) => format!("did you mean `{close}`?"),
        None => format!("known are `{}`", known.collect::<Vec<_>>().join("`, `")),
    };
    Err(Wrong { path: format!("{place}{key}"), message: format!("there is no such key; {meant}") })
}

/// A value of the wrong shape: its path and what is wrong.
pub(in crate::server) struct Wrong {
    pub(in crate::server) path: String,
    pub(in crate::server) message: String,
}

/// Builds the error for a value of the wrong kind, which shows no credential.
pub(in crate::server) fn wrong<T>(path: impl Into<String>, expected: &str, came: &Value) -> Result<T, Wrong> {
    let path = path.into();
    let key = path.rsplit('.').next().unwrap_or_default();
    let came = match came {
        Value::String(_) | Value::Number(_) if names_a_secret(key) => "a value that is not shown".to_owned(),
        // Shorter texts are not credentials.
        Value::String(text) if holds_secrets(key) && text.len() >= 8 => "a string that is not shown".to_owned(),
        other => kind(other),
    };
    Err(Wrong { path, message: format!("expected {expected}, got {came}") })
}

/// True for the keys of a server whose values are often credentials of any form.
fn holds_secrets(key: &str) -> bool {
    let name = key.split('[').next().unwrap_or(key);
    ["args", "env", "headers", "query", "url"].contains(&name)
}

/// Converts numbers and booleans to text, since users write `"env": {"PORT": 8080}`.
pub(in crate::server) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        _ => None,
    }
}

/// Describes a JSON value, for the second half of "expected …, got …".
pub(in crate::server) fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(value) => format!("the boolean `{value}`"),
        Value::Number(number) => format!("the number `{number}`"),
        // A credential in the wrong place must not be shown.
        Value::String(text) if credentials_in(text).is_empty() => format!("the string {:?}", cut(text, 60)),
        Value::String(text) => format!("a string of {} bytes, which looks like a credential", text.len()),
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(fields) => format!("an object of {}", fields.len()),
    }
}
