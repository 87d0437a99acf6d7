//! Reading the fields of JSON objects in configurations, with errors that name the place.

use std::fmt;

use lispbox_lang::internal::closest;
use serde_json::{Map, Value};

/// Longest text of which a message shows the whole, in characters.
const SHOWN: usize = 60;

/// Returns a field; `null` counts as absent.
pub fn given<'v>(fields: &'v Map<String, Value>, key: &str) -> Option<&'v Value> {
    fields.get(key).filter(|value| !value.is_null())
}

/// Checks that all fields are known; `place` is the prefix of the key in the path of an unknown one.
///
/// # Errors
/// Returns the first unknown key, and the known one that was probably meant.
pub fn known_keys(
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
    Err(Wrong::new(format!("{place}{key}"), format!("there is no such key; {meant}")))
}

/// A value that cannot be used: its path, and what is wrong with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Wrong {
    /// The path of keys.
    pub path: String,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Problem {
    /// A sentence that shows no value but names and patterns of tools.
    Said(String),
    /// The value is of the wrong kind. Who shows it decides how: it may be a credential in the wrong place.
    Kind {
        /// The expected kind.
        expected: String,
        /// The value that came.
        came: Value,
    },
}

impl Wrong {
    /// Creates the error for a path.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Wrong {
        Wrong { path: path.into(), problem: Problem::Said(message.into()) }
    }
}

/// Formats what is wrong, without the path.
impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Said(message) => formatter.write_str(message),
            Problem::Kind { expected, came } => write!(formatter, "expected {expected}, got {}", kind(came)),
        }
    }
}

/// Builds the error for a value of the wrong kind.
///
/// # Errors
/// Returns it.
pub fn wrong<T>(path: impl Into<String>, expected: &str, came: &Value) -> Result<T, Wrong> {
    let problem = Problem::Kind { expected: expected.to_owned(), came: came.clone() };
    Err(Wrong { path: path.into(), problem })
}

/// Converts numbers and booleans to text, since users write `"env": {"PORT": 8080}`.
pub fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        _ => None,
    }
}

/// Describes a JSON value, for the second half of "expected …, got …".
pub fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(value) => format!("the boolean `{value}`"),
        Value::Number(number) => format!("the number `{number}`"),
        Value::String(text) => format!("the string {:?}", cut(text, SHOWN)),
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(fields) => format!("an object of {}", fields.len()),
    }
}

/// Truncates a text to `most` characters and marks the truncation.
pub fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
