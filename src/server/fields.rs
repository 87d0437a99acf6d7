//! Reading the fields of JSON objects in configurations and requests, with errors that state the expected and the actual
//! value and show no credential.

use serde_json::{Map, Value};

use lispbox_policy::internal::Problem;

use super::secrets::{credentials_in, names_a_secret};

pub(in crate::server) use lispbox_policy::internal::{given, scalar};

/// Checks that all fields are known; `place` is the prefix of the key in the path of an unknown one.
pub(in crate::server) fn known_keys(
    fields: &Map<String, Value>,
    known: impl IntoIterator<Item = &'static str, IntoIter: Clone>,
    place: &str,
) -> Result<(), Wrong> {
    lispbox_policy::internal::known_keys(fields, known, place).map_err(Wrong::from)
}

/// A value of the wrong shape: its path and what is wrong.
pub(in crate::server) struct Wrong {
    pub(in crate::server) path: String,
    pub(in crate::server) message: String,
}

impl From<lispbox_policy::internal::Wrong> for Wrong {
    fn from(wrong: lispbox_policy::internal::Wrong) -> Wrong {
        let path = wrong.path;
        let message = match wrong.problem {
            Problem::Said(message) => message,
            Problem::Kind { expected, came } => mismatch(&path, &expected, &came),
        };
        Wrong { path, message }
    }
}

/// Builds the error for a value of the wrong kind, which shows no credential.
pub(in crate::server) fn wrong<T>(path: impl Into<String>, expected: &str, came: &Value) -> Result<T, Wrong> {
    let path = path.into();
    let message = mismatch(&path, expected, came);
    Err(Wrong { path, message })
}

/// Describes a value of the wrong kind at a path.
fn mismatch(path: &str, expected: &str, came: &Value) -> String {
    let key = path.rsplit('.').next().unwrap_or_default();
    let came = match came {
        Value::String(_) | Value::Number(_) if names_a_secret(key) => "a value that is not shown".to_owned(),
        // Shorter texts are not credentials.
        Value::String(text) if holds_secrets(key) && text.len() >= 8 => "a string that is not shown".to_owned(),
        other => kind(other),
    };
    format!("expected {expected}, got {came}")
}

/// True for the keys of a server whose values are often credentials of any form.
fn holds_secrets(key: &str) -> bool {
    let name = key.split('[').next().unwrap_or(key);
    ["args", "env", "headers", "query", "url"].contains(&name)
}

/// Describes a JSON value, for the second half of "expected …, got …".
pub(in crate::server) fn kind(value: &Value) -> String {
    match value {
        // A credential in the wrong place must not be shown.
        Value::String(text) if !credentials_in(text).is_empty() => {
            format!("a string of {} bytes, which looks like a credential", text.len())
        }
        other => lispbox_policy::internal::kind(other),
    }
}
