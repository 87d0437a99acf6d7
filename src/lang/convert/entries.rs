//! Deserializes the entries of maps: their keys, which name fields or are the keys of a Rust map, and their values.

use super::from_value::FromValue;
use super::payer::Payer;
use super::unique::Seen;
use super::{ConvertError, pass};
use crate::value::Value;
use crate::value::map::Map;
use crate::value::names::canonical;
use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor};
use std::borrow::Cow;
use std::sync::Arc;

/// The beginning of the keys by which serde_json passes numbers and raw text to itself. A program must not, since the Rust
/// side would get something else than what was looked at.
const MARKER: &str = "$serde_json::private::";

/// Returns whether a seed reads such keys.
fn is_marked<K>() -> bool {
    std::any::type_name::<K>().starts_with("serde_json::value::")
}

/// The entries of a map, for a Rust map or struct.
pub(super) struct Entries<'m, 'v, 'f> {
    payer: Payer<'m>,
    map: &'v Arc<Map>,
    at: usize,
    /// The key and the value of the current entry.
    value: Option<(Cow<'v, str>, &'v Value)>,
    /// The fields of a struct.
    fields: &'f [&'static str],
    seen: Seen,
    depth: usize,
}

impl<'m, 'v, 'f> Entries<'m, 'v, 'f> {
    /// Reads a map for the fields of a struct, or for a Rust map if there are none.
    pub(super) fn new(payer: Payer<'m>, map: &'v Arc<Map>, fields: &'f [&'static str], depth: usize) -> Self {
        let seen = if fields.is_empty() { Seen::of_keys(map) } else { Seen::of_fields(fields) };
        Entries { payer, map, at: 0, value: None, fields, seen, depth }
    }
}

impl<'de, 'v> MapAccess<'de> for Entries<'_, 'v, '_> {
    type Error = ConvertError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ConvertError> {
        let map: &'v Map = self.map;
        let (key, value) = loop {
            if self.at >= map.positions() {
                return Ok(None);
            }
            self.at += 1;
            if let Some(entry) = map.entry(self.at - 1) {
                break entry;
            }
        };
        self.payer.charge(1)?;
        let Some(text) = key.as_text() else {
            let shown = key.to_string();
            self.seen.add(&shown, None)?;
            let read =
                seed.deserialize(Key { payer: self.payer.again(), key }).map_err(|error| error.at_key(&shown))?;
            self.value = Some((shown.into(), value));
            return Ok(Some(read));
        };
        let field = known(text, self.fields);
        if field.is_none() && !self.fields.is_empty() && self.payer.is_strict() {
            let fields: Vec<String> = self.fields.iter().take(12).map(|field| format!("`{field}`")).collect();
            return Err(ConvertError::new(format!("there is no field `{text}` among {}", fields.join(", "))));
        }
        if text.starts_with(MARKER) && is_marked::<K>() {
            let message =
                format!("expected a key that does not begin with `{MARKER}`, which serde_json reserves, got `{text}`");
            return Err(ConvertError::new(message));
        }
        let name = field.map_or(text, |at| self.fields[at]);
        if field.is_some() || self.fields.is_empty() {
            self.seen.add(name, field)?;
        }
        let text_key: StrDeserializer<'_, ConvertError> = name.into_deserializer();
        let read = seed.deserialize(TextKey(text_key, name, key)).map_err(|error| error.at_key(name))?;
        self.value = Some((name.into(), value));
        Ok(Some(read))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, ConvertError> {
        let Some((key, value)) = self.value.take() else { return Err(ConvertError::new("a value without a key")) };
        let value = FromValue { payer: self.payer.again(), value, depth: self.depth };
        seed.deserialize(value).map_err(|error| error.at_key(&key))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.map.len().min(1 << 20))
    }
}

/// Returns the position among `names` of the one that a spelling means: the exact one, or the only one that differs in
/// `-`, `_` and case alone.
pub(super) fn known(spelling: &str, names: &[&str]) -> Option<usize> {
    if let Some(at) = names.iter().position(|name| *name == spelling) {
        return Some(at);
    }
    let wanted = canonical(spelling);
    let mut alike = names.iter().enumerate().filter(|(_, name)| canonical(name) == wanted);
    match (alike.next(), alike.next()) {
        (Some((at, _)), None) => Some(at),
        _ => None,
    }
}

/// A key that is no text.
struct Key<'m, 'v> {
    payer: Payer<'m>,
    key: &'v Value,
}

impl<'de> Deserializer<'de> for Key<'_, '_> {
    type Error = ConvertError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConvertError> {
        FromValue::new(self.payer, self.key).deserialize_any(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ConvertError> {
        FromValue::new(self.payer, self.key).deserialize_newtype_struct(name, visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConvertError> {
        FromValue::new(self.payer, self.key).deserialize_option(visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, ConvertError> {
        FromValue::new(self.payer, self.key).deserialize_tuple(length, visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, ConvertError> {
        FromValue::new(self.payer, self.key).deserialize_tuple_struct(name, length, visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq map struct
        enum identifier ignored_any
    }
}

/// A key that is text. Integers and booleans as keys of a Rust map are read from it, as from JSON.
struct TextKey<'k>(StrDeserializer<'k, ConvertError>, &'k str, &'k Value);

macro_rules! number_key {
    ($($method:ident $kind:ty, $visit:ident;)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConvertError> {
            match self.1.parse::<$kind>() {
                Ok(number) => visitor.$visit(number),
                Err(_) => Err(ConvertError::new(format!("expected an integer of the type `{}` as key, got `{}`", stringify!($kind), self.1))),
            }
        })*
    };
}

impl<'de> Deserializer<'de> for TextKey<'_> {
    type Error = ConvertError;

    number_key! {
        deserialize_i8 i8, visit_i8; deserialize_i16 i16, visit_i16; deserialize_i32 i32, visit_i32;
        deserialize_i64 i64, visit_i64; deserialize_u8 u8, visit_u8; deserialize_u16 u16, visit_u16;
        deserialize_u32 u32, visit_u32; deserialize_u64 u64, visit_u64;
        deserialize_i128 i128, visit_i128; deserialize_u128 u128, visit_u128;
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConvertError> {
        match self.1.parse() {
            Ok(is_true) => visitor.visit_bool(is_true),
            Err(_) => Err(ConvertError::new(format!("expected `true` or `false` as key, got `{}`", self.1))),
        }
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConvertError> {
        self.0.deserialize_any(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ConvertError> {
        if name == pass::NAME {
            pass::offer(self.2.clone());
            return visitor.visit_unit();
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ConvertError> {
        self.0.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConvertError> {
        visitor.visit_some(self)
    }

    serde::forward_to_deserialize_any! {
        f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier
        ignored_any
    }
}
