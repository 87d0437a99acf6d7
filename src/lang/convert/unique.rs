//! Finds keys that have the same meaning in a map, or occur twice in raw JSON: one of the entries would be lost.

use super::ConvertError;
use crate::value::Value;
use crate::value::map::Map;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use std::collections::HashSet;
use std::fmt;

/// The names that the keys of a map have meant so far. A keyword and a string, or two spellings of a field, would
/// overwrite each other.
pub(super) enum Seen {
    /// The keys are of one kind, so that each means another name.
    Distinct,
    Names(HashSet<String>),
    /// One bit for each of at most 64 fields of a struct.
    Fields(u64),
}

impl Seen {
    pub(super) fn of_keys(map: &Map) -> Seen {
        let mut keys = map.iter().map(|(key, _)| key);
        let is_alike = match keys.next() {
            None => true,
            Some(Value::Keyword(_)) => keys.all(|key| matches!(key, Value::Keyword(_))),
            Some(Value::Str(_)) => keys.all(|key| matches!(key, Value::Str(_))),
            Some(_) => false,
        };
        if is_alike { Seen::Distinct } else { Seen::Names(HashSet::new()) }
    }

    pub(super) fn of_fields(fields: &[&str]) -> Seen {
        if fields.len() <= 64 { Seen::Fields(0) } else { Seen::Names(HashSet::new()) }
    }

    /// Adds a name, which is the field at a position if that is known.
    pub(super) fn add(&mut self, name: &str, field: Option<usize>) -> Result<(), ConvertError> {
        let is_new = match (self, field) {
            (Seen::Distinct, _) | (Seen::Fields(_), None) => true,
            (Seen::Names(names), _) => names.insert(name.to_owned()),
            (Seen::Fields(bits), Some(at)) => {
                let before = *bits;
                *bits |= 1 << at;
                *bits != before
            }
        };
        if is_new { Ok(()) } else { Err(ConvertError::twice(name)) }
    }
}

/// Returns a key that an object within the text has twice; `None` if there is none, or if the text is no JSON.
pub(super) fn repeated_key(text: &str) -> Option<String> {
    // A text without both has no object with two keys.
    memchr::memchr(b'{', text.as_bytes())?;
    memchr::memchr(b',', text.as_bytes())?;
    let mut found = None;
    let mut json = serde_json::Deserializer::from_str(text);
    let _ = Part(&mut found).deserialize(&mut json);
    found
}

/// A part of the text that is looked at.
struct Part<'f>(&'f mut Option<String>);

impl<'de> DeserializeSeed<'de> for Part<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Part<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            if keys.contains(&key) {
                *self.0 = Some(key);
                return Err(serde::de::Error::custom("a key occurs twice"));
            }
            keys.insert(key);
            map.next_value_seed(Part(&mut *self.0))?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(Part(&mut *self.0))?.is_some() {}
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
}
