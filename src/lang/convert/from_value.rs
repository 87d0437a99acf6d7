//! Deserializes Rust types from values.

use super::entries::{Entries, known};
use super::payer::{Payer, deeper};
use super::to_text::widened;
use super::{ConvertError, foreign, pass};
use crate::value::Value;
use crate::value::decimal;
use crate::value::walk::Cursor;
use bigdecimal::BigDecimal;
use num_bigint::BigInt;
use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, SeqAccess, VariantAccess, Visitor};

/// The largest magnitude up to which a double represents every integer.
const EXACT: i64 = 1 << 53;

/// A value to convert.
pub(super) struct FromValue<'m, 'v> {
    pub(super) payer: Payer<'m>,
    pub(super) value: &'v Value,
    pub(super) depth: usize,
}

impl<'m, 'v> FromValue<'m, 'v> {
    pub(super) fn new(payer: Payer<'m>, value: &'v Value) -> Self {
        FromValue { payer, value, depth: 0 }
    }

    fn items(self) -> Result<Items<'m>, ConvertError> {
        let depth = deeper(self.depth)?;
        let cursor = match self.value {
            Value::List(_) | Value::Vector(_) | Value::Set(_) | Value::Lazy(_) => Cursor::over(self.value.clone()),
            _ => None,
        };
        match cursor {
            Some(cursor) => Ok(Items { payer: self.payer, cursor, index: 0, depth }),
            None => Err(ConvertError::expected("a sequence", self.value)),
        }
    }

    fn entries<'f>(self, fields: &'f [&'static str]) -> Result<Entries<'m, 'v, 'f>, ConvertError> {
        let depth = deeper(self.depth)?;
        match self.value {
            Value::Map(map) => Ok(Entries::new(self.payer, map, fields, depth)),
            other => Err(ConvertError::expected("a map", other)),
        }
    }

    /// Returns an integer that a number equals exactly.
    fn integer(&self) -> Result<Integer, ConvertError> {
        match self.value {
            Value::Int(number) => Ok(Integer::Small(*number)),
            Value::BigInt(number) => wide(number),
            Value::Float(number) if number.fract() == 0.0 && number.abs() <= EXACT as f64 => {
                Ok(Integer::Small(*number as i64))
            }
            // 39 digits have more than 128 bits.
            Value::Decimal(number)
                if number.fractional_digit_count() >= -39
                    && decimal::ends_in_zeros(number, number.fractional_digit_count()) =>
            {
                wide(&number.with_scale(0).into_bigint_and_scale().0)
            }
            other => Err(ConvertError::expected("an integer", other)),
        }
    }

    /// Returns the double that a number equals, or for a decimal the one that is written the same.
    fn double(&self) -> Result<f64, ConvertError> {
        let inexact = || Err(ConvertError::expected("a number that a double represents exactly", self.value));
        match self.value {
            Value::Float(number) => Ok(*number),
            Value::Int(number) if number.unsigned_abs() <= EXACT.unsigned_abs() => Ok(*number as f64),
            Value::Int(_) | Value::BigInt(_) => inexact(),
            Value::Decimal(number) => {
                let double = decimal::to_double(number);
                let back = if double.is_finite() { decimal::read(&format!("{double:?}")) } else { None };
                if back.is_some_and(|back: BigDecimal| back == **number) { Ok(double) } else { inexact() }
            }
            other => Err(ConvertError::expected("a number", other)),
        }
    }

    fn whole<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConvertError> {
        match self.integer()? {
            Integer::Small(number) => visitor.visit_i64(number),
            Integer::Signed(number) => match u64::try_from(number) {
                Ok(number) => visitor.visit_u64(number),
                Err(_) => visitor.visit_i128(number),
            },
            Integer::Unsigned(number) => visitor.visit_u128(number),
        }
    }

    /// Charges for a copy of a text.
    #[inline]
    fn pay_for(&mut self, length: usize) -> Result<(), ConvertError> {
        if length >= 64 {
            self.payer.charge(length as u64 / 64)?;
            self.payer.reserve(length as u64)?;
        }
        Ok(())
    }

    #[inline]
    fn text<'de, V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, ConvertError> {
        match self.value {
            Value::Str(text) => {
                self.pay_for(text.as_str().len())?;
                visitor.visit_str(text.as_str())
            }
            Value::Char(letter) => visitor.visit_char(*letter),
            Value::Time(time) => visitor.visit_string(time.to_string()),
            named if let Some(name) = named.as_name() => visitor.visit_str(name.as_str()),
            other => Err(ConvertError::expected("a string", other)),
        }
    }
}

/// Returns whether a type is that of JSON, whose visitor cannot refuse what it does not represent.
fn is_json<T>() -> bool {
    std::any::type_name::<T>() == std::any::type_name::<serde_json::Value>()
}

enum Integer {
    Small(i64),
    Signed(i128),
    Unsigned(u128),
}

fn wide(number: &BigInt) -> Result<Integer, ConvertError> {
    if let Ok(number) = i64::try_from(number) {
        return Ok(Integer::Small(number));
    }
    if let Ok(number) = i128::try_from(number) {
        return Ok(Integer::Signed(number));
    }
    match u128::try_from(number) {
        Ok(number) => Ok(Integer::Unsigned(number)),
        Err(_) => Err(ConvertError::new(format!(
            "expected an integer of at most 128 bits, got one of {} bits; a field of type `Value` takes it",
            number.bits()
        ))),
    }
}

macro_rules! whole {
    ($($method:ident)*) => {
        $(#[inline]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConvertError> {
            match self.value {
                Value::Int(number) => visitor.visit_i64(*number),
                _ => self.whole(visitor),
            }
        })*
    };
}

impl<'de> Deserializer<'de> for FromValue<'_, '_> {
    type Error = ConvertError;

    whole! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
    }

    fn deserialize_any<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, ConvertError> {
        match self.value {
            Value::Nil => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Int(_) | Value::BigInt(_) => self.whole(visitor),
            // It would make `null` of it.
            Value::Float(value) if !value.is_finite() && is_json::<V::Value>() => {
                Err(ConvertError::expected("a number that JSON has", self.value))
            }
            Value::Float(value) => visitor.visit_f64(*value),
            // The types of exact decimals read their digits.
            Value::Decimal(value) => {
                const DIGITS: i64 = 1_000;
                if value.fractional_digit_count().abs() > DIGITS {
                    return Err(ConvertError::expected("a decimal with an exponent of at most 1,000", self.value));
                }
                self.payer.charge(crate::value::decimal::square_effort(decimal::bits(value)))?;
                visitor.visit_string(value.to_plain_string())
            }
            Value::Map(_) => self.deserialize_map(visitor),
            Value::List(_) | Value::Vector(_) | Value::Set(_) | Value::Lazy(_) => self.deserialize_seq(visitor),
            Value::Str(_) | Value::Char(_) | Value::Time(_) | Value::Keyword(_) | Value::Symbol(_) => {
                self.text(visitor)
            }
            other => Err(ConvertError::expected("data", other)),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConvertError> {
        match self.value {
            Value::Bool(value) => visitor.visit_bool(*value),
            other => Err(ConvertError::expected("a boolean", other)),
        }
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConvertError> {
        let double = self.double()?;
        let single = double as f32;
        let is_same = f64::from(single) == double || widened(single) == double;
        if is_same || double.is_nan() {
            visitor.visit_f32(single)
        } else {
            Err(ConvertError::expected("a number that an `f32` represents exactly", self.value))
        }
    }

    #[inline]
    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConvertError> {
        match self.value {
            Value::Float(number) => visitor.visit_f64(*number),
            _ => visitor.visit_f64(self.double()?),
        }
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConvertError> {
        self.text(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConvertError> {
        self.text(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConvertError> {
        self.text(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConvertError> {
        self.deserialize_byte_buf(visitor)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConvertError> {
        let mut items = self.items()?;
        let mut bytes = Vec::new();
        while let Some(byte) = items.next_element::<u8>()? {
            bytes.push(byte);
        }
        visitor.visit_byte_buf(bytes)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConvertError> {
        if self.value.is_nil() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConvertError> {
        match self.value {
            // A definition returns a variable, or the name of a type.
            Value::Nil | Value::Var(_) | Value::Symbol(_) => visitor.visit_unit(),
            other => Err(ConvertError::expected("nil", other)),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, ConvertError> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ConvertError> {
        if name == pass::NAME {
            pass::offer(self.value.clone());
            return visitor.visit_unit();
        }
        if name == foreign::RAW {
            return visitor.visit_map(foreign::raw(self.value)?);
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConvertError> {
        visitor.visit_seq(self.items()?)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, ConvertError> {
        let mut items = self.items()?;
        let result = visitor.visit_seq(&mut items)?;
        match items.next_element::<serde::de::IgnoredAny>()? {
            None => Ok(result),
            Some(_) => Err(ConvertError::new(format!("expected {length} items, got more"))),
        }
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, ConvertError> {
        self.deserialize_tuple(length, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConvertError> {
        visitor.visit_map(self.entries(&[])?)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ConvertError> {
        visitor.visit_map(self.entries(fields)?)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ConvertError> {
        let depth = deeper(self.depth)?;
        let (name, content) = match self.value {
            Value::Map(map) if map.len() == 1 => {
                let entry = map.iter().next().and_then(|(key, value)| Some((key.as_text()?, value.clone())));
                entry.ok_or_else(|| ConvertError::expected("the name of a variant as key", self.value))?
            }
            value => match value.as_text() {
                Some(name) => (name, Value::Nil),
                None => {
                    return Err(ConvertError::expected("the name of a variant, or a map with one entry", value));
                }
            },
        };
        let name = known(name, variants).map_or(name, |at| variants[at]).to_owned();
        visitor.visit_enum(Variant { payer: self.payer, name, content, depth })
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConvertError> {
        self.text(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConvertError> {
        visitor.visit_unit()
    }
}

struct Items<'m> {
    payer: Payer<'m>,
    cursor: Cursor,
    index: usize,
    depth: usize,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = ConvertError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ConvertError> {
        let Some(item) = self.cursor.next(&mut self.payer)? else { return Ok(None) };
        let index = self.index;
        self.index += 1;
        let item = FromValue { payer: self.payer.again(), value: &item, depth: self.depth };
        seed.deserialize(item).map(Some).map_err(|error| error.at_index(index))
    }

    fn size_hint(&self) -> Option<usize> {
        self.cursor.remaining().and_then(|count| usize::try_from(count).ok()).filter(|count| *count < 1 << 20)
    }
}

struct Variant<'m> {
    payer: Payer<'m>,
    name: String,
    content: Value,
    depth: usize,
}

impl<'de, 'm> EnumAccess<'de> for Variant<'m> {
    type Error = ConvertError;
    type Variant = Content<'m>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Content<'m>), ConvertError> {
        let name: StrDeserializer<'_, ConvertError> = self.name.as_str().into_deserializer();
        let variant = seed.deserialize(name)?;
        Ok((variant, Content { payer: self.payer, content: self.content, depth: self.depth, name: self.name }))
    }
}

struct Content<'m> {
    payer: Payer<'m>,
    content: Value,
    depth: usize,
    name: String,
}

impl Content<'_> {
    fn value(&mut self) -> FromValue<'_, '_> {
        FromValue { payer: self.payer.again(), value: &self.content, depth: self.depth }
    }
}

impl<'de> VariantAccess<'de> for Content<'_> {
    type Error = ConvertError;

    fn unit_variant(mut self) -> Result<(), ConvertError> {
        serde::Deserialize::deserialize(self.value())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(mut self, seed: T) -> Result<T::Value, ConvertError> {
        seed.deserialize(self.value()).map_err(|error| error.at_key(&self.name))
    }

    fn tuple_variant<V: Visitor<'de>>(mut self, length: usize, visitor: V) -> Result<V::Value, ConvertError> {
        self.value().deserialize_tuple(length, visitor).map_err(|error| error.at_key(&self.name))
    }

    fn struct_variant<V: Visitor<'de>>(
        mut self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ConvertError> {
        self.value().deserialize_struct("", fields, visitor).map_err(|error| error.at_key(&self.name))
    }
}
