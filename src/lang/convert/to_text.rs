//! Serializes Rust types and values to text that [`json::parse_marked`](crate::json::parse_marked) reads back: JSON, with
//! marks for the data that JSON lacks.

use super::payer::deeper;
use super::unique::Seen;
use super::{ConvertError, foreign, pass};
use crate::host::ToolReply;
use crate::json::{survives, write_string};
use crate::value::map::record_key;
use crate::value::walk::Cursor;
use crate::value::{Value, decimal};
use serde::ser::{
    Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use std::collections::HashSet;

/// The reason why a result is not serialized.
pub(crate) enum Unwritten {
    /// The text would be larger than allowed.
    TooLarge,
    Unfit(ConvertError),
}

/// Serializes a value to at most `most` bytes of text.
///
/// # Errors
/// Returns an error that says where, if the value is not data or takes more.
pub(crate) fn to_text<T: Serialize + ?Sized>(value: &T, most: u64) -> Result<ToolReply, Unwritten> {
    let mut writer = Writer::new(usize::try_from(most).unwrap_or(usize::MAX), true);
    match value.serialize(&mut writer) {
        Ok(()) if writer.is_marked => Ok(ToolReply::Marked(writer.out)),
        Ok(()) => Ok(ToolReply::Json(writer.out)),
        Err(_) if writer.is_full => Err(Unwritten::TooLarge),
        Err(error) => Err(Unwritten::Unfit(error)),
    }
}

/// Serializes a value as JSON, with the digits of decimals and the texts of dates and keywords.
///
/// # Errors
/// Returns an error if the value is not data.
pub(super) fn to_json(value: &Value) -> Result<String, ConvertError> {
    let mut writer = Writer::new(usize::MAX, false);
    writer.value(value)?;
    Ok(writer.out)
}

/// Returns the text that a Rust value serializes to, which must be a string.
///
/// # Errors
/// Returns an error if it is anything else.
pub(super) fn text_of<T: Serialize + ?Sized>(value: &T) -> Result<String, ConvertError> {
    let mut writer = Writer::new(usize::MAX, false);
    value.serialize(&mut writer)?;
    serde_json::from_str(&writer.out).map_err(|error| ConvertError::new(error.to_string()))
}

/// Returns the double that is written like a single: 0.1 for 0.1. The double that equals it is 0.10000000149011612, which is
/// not what anybody has meant.
pub(super) fn widened(single: f32) -> f64 {
    const WHOLE: f32 = 16_777_216.0;
    let same = f64::from(single);
    if !single.is_finite() || (single.fract() == 0.0 && single.abs() <= WHOLE) {
        return same;
    }
    let written = format!("{single:?}").parse().unwrap_or(same);
    if written as f32 == single { written } else { same }
}

struct Writer {
    out: String,
    /// True if marks are allowed.
    marks: bool,
    is_marked: bool,
    /// Most bytes of the text, and whether it takes more.
    most: usize,
    is_full: bool,
    depth: usize,
}

type Done = Result<(), ConvertError>;

impl Writer {
    fn new(most: usize, marks: bool) -> Writer {
        Writer { out: String::new(), marks, is_marked: false, most, is_full: false, depth: 0 }
    }

    /// Checks that there is room for that many bytes more.
    fn room(&mut self, more: usize) -> Done {
        self.is_full |= self.out.len().saturating_add(more) > self.most;
        if self.is_full { Err(ConvertError::new("the text is too large")) } else { Ok(()) }
    }

    fn raw(&mut self, text: &str) -> Done {
        self.room(text.len())?;
        self.out.push_str(text);
        Ok(())
    }

    fn string(&mut self, text: &str) -> Done {
        self.room(text.len() + 2)?;
        write_string(&mut self.out, text);
        Ok(())
    }

    /// Writes a text with the mark of its kind, or as a plain string where marks are not allowed.
    fn marked(&mut self, kind: char, text: &str) -> Done {
        self.mark(kind);
        self.string(text)
    }

    fn mark(&mut self, kind: char) {
        if self.marks {
            self.is_marked = true;
            self.out.push('#');
            self.out.push(kind);
        }
    }

    fn double(&mut self, value: f64) -> Done {
        if value.is_finite() {
            return self.raw(&format!("{value:?}"));
        }
        if !self.marks {
            return Err(ConvertError::new(format!("JSON has no number {value}")));
        }
        self.marked('f', &value.to_string())
    }

    /// Writes a JSON number.
    fn number(&mut self, digits: &str) -> Done {
        let is_kept = !self.marks || !digits.contains(['.', 'e', 'E']) || survives(digits);
        if is_kept { self.raw(digits) } else { self.marked('d', digits) }
    }

    fn value(&mut self, value: &Value) -> Done {
        match value {
            Value::Nil => self.raw("null"),
            Value::Bool(value) => self.raw(if *value { "true" } else { "false" }),
            Value::Int(value) => self.raw(itoa::Buffer::new().format(*value)),
            Value::BigInt(value) => self.raw(&value.to_string()),
            Value::Float(value) => self.double(*value),
            Value::Str(text) => self.string(text.as_str()),
            Value::Char(letter) => self.marked('c', letter.encode_utf8(&mut [0; 4])),
            Value::Keyword(name) => self.marked('k', name.as_str()),
            Value::Symbol(name) => self.marked('y', name.as_str()),
            Value::Decimal(number) => {
                let mut digits = String::new();
                decimal::write(&mut digits, number);
                if self.marks { self.marked('d', &digits) } else { self.raw(&digits) }
            }
            Value::Time(time) if self.marks => self.marked('t', &format!("{} {}", time.tag(), time.readable())),
            Value::Time(time) => self.string(&time.to_string()),
            Value::Vector(_) => self.nested(|writer| writer.items(value)),
            Value::List(_) => {
                self.mark('l');
                self.nested(|writer| writer.items(value))
            }
            Value::Set(_) => {
                self.mark('s');
                self.nested(|writer| writer.items(value))
            }
            Value::Map(map) => self.nested(|writer| writer.map(map)),
            other => Err(pass::no_data(other)),
        }
    }

    fn nested(&mut self, work: impl FnOnce(&mut Writer) -> Done) -> Done {
        self.depth = deeper(self.depth)?;
        let done = work(self);
        self.depth -= 1;
        done
    }

    fn items(&mut self, value: &Value) -> Done {
        let mut cursor = Cursor::over(value.clone()).unwrap_or(Cursor::End);
        self.out.push('[');
        let mut index = 0;
        while let Some(item) = cursor.next(&mut pass::Opaque)? {
            self.separate(index == 0);
            self.value(&item).map_err(|error| error.at_index(index))?;
            index += 1;
        }
        self.raw("]")
    }

    fn map(&mut self, map: &crate::value::map::Map) -> Done {
        let named = |key: &Value| key.as_text().is_some_and(|text| !self.marks || record_key(text) == *key);
        let is_record = map.iter().all(|(key, _)| named(key));
        if !is_record && !self.marks {
            return Err(ConvertError::new("JSON has no map with keys that are not text"));
        }
        if !is_record {
            self.mark('M');
        }
        // A keyword and a string may be the same text; with marks they are told apart.
        let mut seen = if self.marks { None } else { Some(Seen::of_keys(map)) };
        self.out.push(if is_record { '{' } else { '[' });
        for (at, (key, value)) in map.iter().enumerate() {
            self.separate(at == 0);
            match key.as_text().filter(|_| is_record) {
                Some(text) => {
                    seen.as_mut().map_or(Ok(()), |seen| seen.add(text, None))?;
                    self.string(text)?;
                }
                None => self.value(key)?,
            }
            self.out.push(if is_record { ':' } else { ',' });
            self.value(value).map_err(|error| error.at_key(&key.to_string()))?;
        }
        self.raw(if is_record { "}" } else { "]" })
    }

    fn separate(&mut self, is_first: bool) {
        if !is_first {
            self.out.push(',');
        }
    }
}

impl<'w> Serializer for &'w mut Writer {
    type Ok = ();
    type Error = ConvertError;
    type SerializeSeq = Parts<'w>;
    type SerializeTuple = Parts<'w>;
    type SerializeTupleStruct = Parts<'w>;
    type SerializeTupleVariant = Parts<'w>;
    type SerializeMap = Entries<'w>;
    type SerializeStruct = Parts<'w>;
    type SerializeStructVariant = Parts<'w>;

    fn serialize_bool(self, value: bool) -> Done {
        self.raw(if value { "true" } else { "false" })
    }

    fn serialize_i8(self, value: i8) -> Done {
        self.serialize_i64(value.into())
    }

    fn serialize_i16(self, value: i16) -> Done {
        self.serialize_i64(value.into())
    }

    fn serialize_i32(self, value: i32) -> Done {
        self.serialize_i64(value.into())
    }

    fn serialize_i64(self, value: i64) -> Done {
        self.raw(itoa::Buffer::new().format(value))
    }

    fn serialize_i128(self, value: i128) -> Done {
        self.raw(itoa::Buffer::new().format(value))
    }

    fn serialize_u8(self, value: u8) -> Done {
        self.serialize_i64(value.into())
    }

    fn serialize_u16(self, value: u16) -> Done {
        self.serialize_i64(value.into())
    }

    fn serialize_u32(self, value: u32) -> Done {
        self.serialize_i64(value.into())
    }

    fn serialize_u64(self, value: u64) -> Done {
        self.raw(itoa::Buffer::new().format(value))
    }

    fn serialize_u128(self, value: u128) -> Done {
        self.raw(itoa::Buffer::new().format(value))
    }

    fn serialize_f32(self, value: f32) -> Done {
        self.double(widened(value))
    }

    fn serialize_f64(self, value: f64) -> Done {
        self.double(value)
    }

    fn serialize_char(self, value: char) -> Done {
        self.value(&Value::Char(value))
    }

    fn serialize_str(self, value: &str) -> Done {
        self.string(value)
    }

    fn serialize_bytes(self, value: &[u8]) -> Done {
        self.room(value.len())?;
        value.serialize(self)
    }

    fn serialize_none(self) -> Done {
        self.raw("null")
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Done {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Done {
        self.raw("null")
    }

    fn serialize_unit_struct(self, _: &'static str) -> Done {
        self.raw("null")
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Done {
        self.string(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, name: &'static str, value: &T) -> Done {
        if name == pass::NAME
            && let Some(passed) = pass::taken()
        {
            return self.value(&passed);
        }
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Done {
        let mut parts = Parts::begin(self, "", "}", Some(variant))?;
        parts.part(value).map_err(|error| error.at_key(variant))?;
        parts.finish()
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Parts<'w>, ConvertError> {
        Parts::begin(self, "[", "]", None)
    }

    fn serialize_tuple(self, _: usize) -> Result<Parts<'w>, ConvertError> {
        Parts::begin(self, "[", "]", None)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Parts<'w>, ConvertError> {
        Parts::begin(self, "[", "]", None)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Parts<'w>, ConvertError> {
        Parts::begin(self, "[", "]}", Some(variant))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Entries<'w>, ConvertError> {
        let start = self.out.len();
        Ok(Entries { parts: Parts::begin(self, "{", "}", None)?, start, is_record: true, keys: Vec::new() })
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Parts<'w>, ConvertError> {
        match name {
            foreign::NUMBER | foreign::RAW => Ok(Parts { is_foreign: true, ..Parts::begin(self, "", "", None)? }),
            _ => Parts::begin(self, "{", "}", None),
        }
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Parts<'w>, ConvertError> {
        Parts::begin(self, "{", "}}", Some(variant))
    }
}

/// An array or object that is being written.
struct Parts<'w> {
    writer: &'w mut Writer,
    end: &'static str,
    count: usize,
    /// True for a number or a text of `serde_json`.
    is_foreign: bool,
}

impl<'w> Parts<'w> {
    fn begin(
        writer: &'w mut Writer,
        begin: &str,
        end: &'static str,
        variant: Option<&str>,
    ) -> Result<Parts<'w>, ConvertError> {
        writer.depth = deeper(writer.depth)?;
        if let Some(variant) = variant {
            writer.raw("{")?;
            writer.string(variant)?;
            writer.raw(":")?;
        }
        writer.raw(begin)?;
        Ok(Parts { writer, end, count: 0, is_foreign: false })
    }

    fn part<T: Serialize + ?Sized>(&mut self, part: &T) -> Done {
        part.serialize(&mut *self.writer)
    }

    fn item<T: Serialize + ?Sized>(&mut self, item: &T) -> Done {
        let index = self.count;
        self.writer.separate(index == 0);
        self.count += 1;
        self.part(item).map_err(|error| error.at_index(index))
    }

    fn field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Done {
        if self.is_foreign {
            return self.foreign(name, value);
        }
        self.writer.separate(self.count == 0);
        self.count += 1;
        self.writer.string(name)?;
        self.writer.raw(":")?;
        self.part(value).map_err(|error| error.at_key(name))
    }

    /// Writes the only field of a number or a raw text of `serde_json`.
    fn foreign<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Done {
        let text = text_of(value)?;
        if name == foreign::NUMBER {
            return self.writer.number(&text);
        }
        foreign::check_raw(&text)?;
        self.writer.raw(&text)
    }

    fn finish(self) -> Done {
        self.writer.depth -= 1;
        self.writer.raw(self.end)
    }
}

macro_rules! parts {
    ($($part:ident $method:ident;)*) => {
        $(impl $part for Parts<'_> {
            type Ok = ();
            type Error = ConvertError;

            fn $method<T: Serialize + ?Sized>(&mut self, item: &T) -> Done {
                self.item(item)
            }

            fn end(self) -> Done {
                self.finish()
            }
        })*
    };
}

parts! {
    SerializeSeq serialize_element;
    SerializeTuple serialize_element;
    SerializeTupleStruct serialize_field;
    SerializeTupleVariant serialize_field;
}

macro_rules! fields {
    ($($fields:ident)*) => {
        $(impl $fields for Parts<'_> {
            type Ok = ();
            type Error = ConvertError;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Done {
                self.field(name, value)
            }

            fn end(self) -> Done {
                self.finish()
            }
        })*
    };
}

fields! { SerializeStruct SerializeStructVariant }

/// A map that is being written: an object if its keys are text, otherwise a marked array of keys and values.
struct Entries<'w> {
    parts: Parts<'w>,
    /// The place of its bracket.
    start: usize,
    is_record: bool,
    /// The keys so far, as they are written.
    keys: Vec<String>,
}

impl SerializeMap for Entries<'_> {
    type Ok = ();
    type Error = ConvertError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Done {
        let writer = &mut *self.parts.writer;
        writer.separate(self.parts.count == 0);
        let at = writer.out.len();
        key.serialize(&mut *writer)?;
        let key = writer.out[at..].to_owned();
        let is_text = key.starts_with('"');
        if self.parts.count == 0 && !is_text {
            (self.is_record, self.parts.end) = (false, "]");
            writer.out.truncate(self.start);
            writer.mark('m');
            writer.out.push('[');
            writer.out.push_str(&key);
        }
        if self.is_record && !is_text {
            return Err(ConvertError::new("a map has either texts as keys, or no texts"));
        }
        self.keys.push(key);
        self.parts.count += 1;
        writer.raw(if self.is_record { ":" } else { "," })
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        let key = self.keys.last().map_or("", String::as_str);
        value.serialize(&mut *self.parts.writer).map_err(|error| error.at_key(key.trim_matches('"')))
    }

    fn end(self) -> Done {
        // A struct with flattened fields may have two of the same name.
        let mut seen = HashSet::with_capacity(self.keys.len());
        if let Some(key) = self.keys.iter().find(|key| !seen.insert(key.as_str())) {
            return Err(ConvertError::twice(key.trim_matches('"')));
        }
        self.parts.finish()
    }
}
