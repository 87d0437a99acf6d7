//! Data formats: CSV, HTML, base64, URLs, and digests.

pub mod base64;
pub mod csv;
pub mod html;
mod page;
pub mod sha256;
mod shown;
pub mod url;

use super::arguments::string;
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::value::Value;
use std::borrow::Cow;

/// Returns the bytes of a value: a string's UTF-8, or the numbers of a vector or list.
fn bytes<'v>(machine: &mut Machine, value: &'v Value) -> Outcome<Cow<'v, [u8]>> {
    if !matches!(value, Value::Vector(_) | Value::List(_)) {
        let text = string(value)?;
        super::text::pay(machine, text)?;
        return Ok(Cow::Borrowed(text.as_bytes()));
    }
    let mut bytes = Vec::new();
    let mut cursor = machine.seq(value.clone())?;
    while let Some(item) = cursor.next(machine)? {
        match item {
            // Java's bytes are signed.
            Value::Int(number @ -128..=255) => bytes.push(number as u8),
            other => return Err(Error::expected("a byte from 0 to 255", &other).into()),
        }
        machine.grown(bytes.len())?;
    }
    Ok(Cow::Owned(bytes))
}

/// Returns bytes as a string, or as a vector of numbers if `as_bytes`.
fn text_or_bytes(machine: &mut Machine, bytes: &[u8], as_bytes: bool) -> Outcome<Value> {
    if as_bytes {
        machine.charge(bytes.len() as u64)?;
        machine.reserve_values(bytes.len() as u64)?;
        return Ok(Value::vector(bytes.iter().map(|byte| Value::Int(i64::from(*byte))).collect()));
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Value::string(text)),
        Err(problem) => Err(Error::new(
            "InvalidText",
            format!("the bytes are not UTF-8 text: byte {} of {} is invalid", problem.valid_up_to() + 1, bytes.len()),
        )
        .suggest("with `:bytes true` they come as a vector of numbers")
        .into()),
    }
}
