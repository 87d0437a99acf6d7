//! The private names by which `serde_json` passes its numbers and raw text through serde, whichever of its features the
//! program that embeds this crate has switched on.

use super::ConvertError;
use super::to_text::to_json;
use super::unique::repeated_key;
use crate::json::survives;
use crate::value::Value;
use crate::value::decimal::{read, read_integer};
use serde::de::value::{MapDeserializer, StrDeserializer};
use std::sync::Arc;

/// The name of a `serde_json::Number`, with the feature `arbitrary_precision`; the only field has the digits.
pub(super) const NUMBER: &str = "$serde_json::private::Number";

/// The name of a `serde_json::value::RawValue`; the only field has the text.
pub(super) const RAW: &str = "$serde_json::private::RawValue";

/// Returns the value of a JSON number: an integer of any size, or a double if that has all its digits, or else a decimal;
/// `None` if the text is not a number.
pub(super) fn number(text: &str) -> Option<Value> {
    if !text.contains(['.', 'e', 'E']) {
        return Some(match text.parse() {
            Ok(small) => Value::Int(small),
            Err(_) => Value::integer(read_integer(text, 10)?),
        });
    }
    match text.parse::<f64>() {
        Ok(double) if survives(text) => Some(Value::Float(double)),
        _ => Some(Value::Decimal(Arc::new(read(text)?))),
    }
}

/// Checks a raw text, of which a reader would keep the last of two entries with the same key.
///
/// # Errors
/// Returns an error that names such a key.
pub(super) fn check_raw(text: &str) -> Result<(), ConvertError> {
    match repeated_key(text) {
        Some(key) => Err(ConvertError::new(format!("the key `{key}` occurs twice in an object of the raw JSON"))),
        None => Ok(()),
    }
}

/// The entries of the map that a raw value is read from.
type Raw = MapDeserializer<'static, std::iter::Once<(StrDeserializer<'static, ConvertError>, String)>, ConvertError>;

/// Gives a value to a `RawValue`, as JSON text.
pub(super) fn raw(value: &Value) -> Result<Raw, ConvertError> {
    Ok(MapDeserializer::new(std::iter::once((StrDeserializer::new(RAW), to_json(value)?))))
}
