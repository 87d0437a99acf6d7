//! The forms of the types that tools take, found out by asking the types to read themselves.

use crate::convert::is_tagged_inside;
use serde::de::value::Error as NoValue;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;

/// The form of the type that a tool takes.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// A struct with these fields. It takes no others.
    Struct(&'static [&'static str]),
    /// An enum with its tag inside.
    TaggedInside,
    Other,
    /// A type that is read from something else than a map, which is what all arguments are.
    Unfit(&'static str),
}

impl Form {
    /// Returns the fields of a struct.
    pub(super) fn fields(self) -> Option<&'static [&'static str]> {
        if let Form::Struct(fields) = self { Some(fields) } else { None }
    }
}

/// Returns the form of a type.
pub(super) fn form_of<A: DeserializeOwned>() -> Form {
    let mut form = Form::Other;
    let _ = A::deserialize(Asked(&mut form));
    form
}

macro_rules! unfit {
    ($($kind:literal: $($method:ident)+;)+) => {
        $($(fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value, NoValue> {
            *self.0 = Form::Unfit($kind);
            Err(NoValue::custom("no value"))
        })+)+
    };
}

/// A deserializer that has no value; it notes what it is asked for.
struct Asked<'f>(&'f mut Form);

impl<'de> Deserializer<'de> for Asked<'_> {
    type Error = NoValue;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, NoValue> {
        if is_tagged_inside::<V>() {
            *self.0 = Form::TaggedInside;
        }
        Err(NoValue::custom("no value"))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, NoValue> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, NoValue> {
        *self.0 = Form::Struct(fields);
        Err(NoValue::custom("no value"))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NoValue> {
        visitor.visit_some(self)
    }

    unfit! {
        "a boolean": deserialize_bool; "a character": deserialize_char; "a text": deserialize_str deserialize_string;
        "a number": deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128 deserialize_u8
        deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64;
        "bytes": deserialize_bytes deserialize_byte_buf; "nothing": deserialize_unit; "a list": deserialize_seq;
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, NoValue> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, NoValue> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, NoValue> {
        self.deserialize_seq(visitor)
    }

    forward_to_deserialize_any! { map enum identifier ignored_any }
}
