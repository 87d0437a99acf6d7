//! Finds arguments that a type does not take, where serde does not report them: an enum with its tag inside is read from a
//! buffer, and what its variant leaves in it is dropped.
//!
//! The arguments are read once more for each key, with a value in its place that no type takes. If that is no error, the
//! key was not looked at.

use super::ConvertError;
use super::from_value::FromValue;
use super::payer::Payer;
use crate::value::Value;
use crate::value::map::Map;
use serde::de::value::StrDeserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor};
use serde::forward_to_deserialize_any;

/// A key that no type has.
const NO_KEY: &str = "$lispbox::no key";

/// The number of keys that are looked at: each costs a reading of all arguments.
const MOST: usize = 256;

/// The number of wrappers around the value that no type takes: wrapper types remove one each.
const WRAPPED: usize = 16;

/// Returns whether a visitor is that of an enum with its tag inside. Serde has no other sign of it.
pub(crate) fn is_tagged_inside<V>() -> bool {
    std::any::type_name::<V>().contains("TaggedContentVisitor")
}

/// Returns the first key of a map that such an enum does not take; `None` if it takes all. The map has been read as that
/// type within `room` bytes.
pub(crate) fn dropped<T: DeserializeOwned>(map: &Map, room: u64) -> Option<&str> {
    let is_read_with = |poisoned: &str| T::deserialize(Probe { map, poisoned, room }).is_ok();
    if !is_read_with(NO_KEY) {
        return None;
    }
    map.iter().filter_map(|(key, _)| key.as_text()).take(MOST).find(|key| is_read_with(key))
}

/// The arguments, with a value that no type takes at one key.
struct Probe<'p> {
    map: &'p Map,
    poisoned: &'p str,
    room: u64,
}

impl<'p> Probe<'p> {
    fn entries(self) -> Entries<'p> {
        Entries { probe: self, at: 0, value: None, is_added: false }
    }
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = ConvertError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConvertError> {
        visitor.visit_map(self.entries())
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConvertError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ConvertError> {
        visitor.visit_newtype_struct(self)
    }

    /// An enum without a tag in it is read from a map with one entry, and drops nothing.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, ConvertError> {
        Err(poison())
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

struct Entries<'p> {
    probe: Probe<'p>,
    at: usize,
    value: Option<(&'p str, &'p Value)>,
    /// True once the key that no type has was given.
    is_added: bool,
}

impl<'de, 'p> MapAccess<'de> for Entries<'p> {
    type Error = ConvertError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ConvertError> {
        let map: &'p Map = self.probe.map;
        while self.at < map.positions() {
            self.at += 1;
            if let Some((key, value)) = map.entry(self.at - 1) {
                let key = key.as_text().ok_or_else(poison)?;
                self.value = Some((key, value));
                let text: StrDeserializer<'_, ConvertError> = key.into_deserializer();
                return seed.deserialize(text).map(Some);
            }
        }
        self.value = None;
        if self.probe.poisoned != NO_KEY || std::mem::replace(&mut self.is_added, true) {
            return Ok(None);
        }
        let text: StrDeserializer<'_, ConvertError> = NO_KEY.into_deserializer();
        seed.deserialize(text).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, ConvertError> {
        match self.value {
            Some((key, value)) if key != self.probe.poisoned => {
                seed.deserialize(FromValue::new(Payer::within(self.probe.room), value))
            }
            _ => seed.deserialize(Poison(WRAPPED)),
        }
    }
}

fn poison() -> ConvertError {
    ConvertError::new("no value")
}

/// A value that no type takes, and that can be put into a buffer.
struct Poison(usize);

impl<'de> Deserializer<'de> for Poison {
    type Error = ConvertError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConvertError> {
        match self.0.checked_sub(1) {
            Some(depth) => visitor.visit_newtype_struct(Poison(depth)),
            None => visitor.visit_bytes(b"\xff"),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConvertError> {
        visitor.visit_unit()
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConvertError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ConvertError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, _: V) -> Result<V::Value, ConvertError> {
        Err(poison())
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, _: V) -> Result<V::Value, ConvertError> {
        Err(poison())
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string unit unit_struct seq tuple
        tuple_struct map struct enum identifier
    }
}
