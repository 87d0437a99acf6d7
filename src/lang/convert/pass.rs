//! Passes a [`Value`] through serde unchanged, where both sides are this crate's.

use super::ConvertError;
use super::payer::deeper;
use crate::heap::Handle;
use crate::value::Value;
use crate::value::map::Map;
use crate::value::walk::{Cursor, Pace};
use serde::de::{Deserialize, Deserializer, Visitor};
use serde::ser::{Error as _, Serialize, SerializeMap, SerializeSeq, Serializer};
use std::cell::Cell;
use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::Arc;

/// The name by which the two sides recognise each other.
pub(super) const NAME: &str = "$lispbox::Value";

thread_local! {
    /// The value that is being passed. It is always taken again; without a destructor the access is a plain load.
    static PASSED: Cell<Option<ManuallyDrop<Value>>> = const { Cell::new(None) };
}

/// Offers a value to the other side.
pub(super) fn offer(value: Value) {
    drop(PASSED.replace(Some(ManuallyDrop::new(value))).map(ManuallyDrop::into_inner));
}

/// Takes the value that the other side has offered.
pub(super) fn taken() -> Option<Value> {
    PASSED.take().map(ManuallyDrop::into_inner)
}

/// Passes the value on unchanged to this crate; any other serializer gets it as data.
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        offer(self.clone());
        let result = serializer.serialize_newtype_struct(NAME, &Data(self));
        drop(taken());
        result
    }
}

/// A value for a foreign serializer.
struct Data<'v>(&'v Value);

impl Serialize for Data<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        drop(taken());
        let _level = Level::enter().map_err(S::Error::custom)?;
        match self.0 {
            Value::Nil => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Int(value) => serializer.serialize_i64(*value),
            Value::Float(value) => serializer.serialize_f64(*value),
            Value::Char(value) => serializer.serialize_char(*value),
            Value::Str(text) => serializer.serialize_str(text.as_str()),
            Value::Map(map) => map_entries(map, serializer),
            Value::List(_) | Value::Vector(_) | Value::Set(_) => {
                let mut cursor = Cursor::over(self.0.clone()).unwrap_or(Cursor::End);
                let mut items = serializer.serialize_seq(None)?;
                while let Some(item) = cursor.next(&mut Opaque).map_err(S::Error::custom)? {
                    items.serialize_element(&Data(&item))?;
                }
                items.end()
            }
            Value::BigInt(_) | Value::Decimal(_) | Value::Time(_) => serializer.collect_str(self.0),
            named if let Some(name) = named.as_name() => serializer.serialize_str(name.as_str()),
            other => Err(S::Error::custom(no_data(other))),
        }
    }
}

thread_local! {
    /// The nesting of the data that is being serialized.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// A level of data that is being serialized.
struct Level(usize);

impl Level {
    fn enter() -> Result<Level, ConvertError> {
        let depth = DEPTH.get();
        DEPTH.set(deeper(depth)?);
        Ok(Level(depth))
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        DEPTH.set(self.0);
    }
}

/// The error for a value that only its evaluation can use.
pub(super) fn no_data(value: &Value) -> ConvertError {
    ConvertError::new(format!("expected data, got {}", crate::error::describe(value)))
}

/// A walk outside of the evaluation, which cannot compute the lazy parts of a value.
pub(super) struct Opaque;

impl Pace for Opaque {
    type Stop = ConvertError;

    fn step(&mut self, _: u64) -> Result<(), ConvertError> {
        Ok(())
    }

    fn force(&mut self, _: &Arc<Handle>) -> Result<Option<Value>, ConvertError> {
        Err(ConvertError::new("expected data, got a lazy sequence; `vec` or `doall` computes it"))
    }

    fn content(&mut self, _: &Arc<Handle>) -> Option<Value> {
        None
    }
}

fn map_entries<S: Serializer>(map: &Map, serializer: S) -> Result<S::Ok, S::Error> {
    let mut entries = serializer.serialize_map(Some(map.len()))?;
    for (key, value) in map.iter() {
        entries.serialize_entry(&Data(key), &Data(value))?;
    }
    entries.end()
}

/// Takes a value from this crate unchanged. No other deserializer has values.
impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        struct Passed;

        impl Visitor<'_> for Passed {
            type Value = Value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value of a lispbox evaluation")
            }

            fn visit_unit<E: serde::de::Error>(self) -> Result<Value, E> {
                taken().ok_or_else(|| E::custom("only a lispbox evaluation has such values"))
            }
        }

        deserializer.deserialize_newtype_struct(NAME, Passed)
    }
}
