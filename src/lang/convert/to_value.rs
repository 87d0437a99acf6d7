//! Serializes Rust types to values.

use super::payer::deeper;
use super::to_text::{text_of, widened};
use super::{ConvertError, foreign, pass};
use crate::json;
use crate::machine::Machine;
use crate::meter;
use crate::value::Value;
use crate::value::map::{Map, record_key};
use crate::value::shape::Shape;
use num_bigint::BigInt;
use serde::ser::{
    Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use std::sync::Arc;

/// Maximum number of shapes remembered during a conversion.
const SHAPES: usize = 32;

/// The state of a conversion.
pub(super) struct Building<'m> {
    machine: &'m mut Machine,
    /// The shapes of the structs so far.
    shapes: Vec<Known>,
    depth: usize,
    /// The number of parts so far. They are charged in groups.
    parts: u64,
}

/// The number of parts that are charged at once.
const GROUP: u64 = 64;

/// The shape of a struct that has been converted.
struct Known {
    /// The name of its type.
    name: &'static str,
    /// The names of the fields that were serialized.
    fields: Box<[&'static str]>,
    shape: Arc<Shape>,
}

/// Converts one value.
pub(super) enum ToValue<'b, 'm> {
    /// The outermost value. It needs a state only if it has parts.
    Outermost(&'m mut Machine),
    Within(&'b mut Building<'m>),
}

/// The access of a value with parts to the state: the outermost value owns it, the others borrow it. It is boxed, so that
/// the access is small.
enum Place<'b, 'm> {
    Outermost(Box<Building<'m>>),
    Within(&'b mut Building<'m>),
}

impl<'b, 'm> ToValue<'b, 'm> {
    pub(super) fn new(machine: &'m mut Machine) -> Self {
        ToValue::Outermost(machine)
    }

    fn machine(&mut self) -> &mut Machine {
        match self {
            ToValue::Outermost(machine) => machine,
            ToValue::Within(building) => building.machine,
        }
    }

    fn place(self) -> Place<'b, 'm> {
        match self {
            ToValue::Outermost(machine) => {
                Place::Outermost(Box::new(Building { machine, shapes: Vec::new(), depth: 0, parts: 0 }))
            }
            ToValue::Within(building) => Place::Within(building),
        }
    }
}

impl<'m> Place<'_, 'm> {
    fn building(&mut self) -> &mut Building<'m> {
        match self {
            Place::Outermost(building) => building,
            Place::Within(building) => building,
        }
    }

    /// Charges the parts of the last group at the end of the outermost value.
    fn end(self) -> Result<(), ConvertError> {
        match self {
            Place::Outermost(building) => Ok(building.machine.charge(building.parts % GROUP)?),
            Place::Within(_) => Ok(()),
        }
    }
}

impl<'m> Building<'m> {
    /// Converts a part of the value.
    fn part<T: Serialize + ?Sized>(&mut self, part: &T) -> Result<Value, ConvertError> {
        self.parts += 1;
        if self.parts.is_multiple_of(GROUP) {
            self.machine.charge(GROUP)?;
        }
        self.depth = deeper(self.depth)?;
        let value = part.serialize(ToValue::Within(self));
        self.depth -= 1;
        value
    }

    /// Returns the position of the latest shape of a type.
    fn known(&self, name: &'static str) -> Option<usize> {
        self.shapes.iter().rposition(|known| is_same(known.name, name))
    }

    /// Returns the shape with these fields; creates and remembers it if it is new.
    fn shape(&mut self, name: &'static str, fields: Vec<&'static str>) -> Arc<Shape> {
        let has_fields = |known: &&Known| is_same(known.name, name) && *known.fields == *fields;
        if let Some(known) = self.shapes.iter().find(has_fields) {
            return known.shape.clone();
        }
        let shape = Shape::of_records(fields.iter().map(|field| record_key(field)).collect());
        if self.shapes.len() < SHAPES {
            self.shapes.push(Known { name, fields: fields.into(), shape: shape.clone() });
        }
        shape
    }
}

/// Compares two names of the program's code, which are usually the same text in memory.
fn is_same(one: &'static str, other: &'static str) -> bool {
    std::ptr::eq(one, other) || one == other
}

/// Creates a record with a single entry.
fn single(name: &str, value: Value) -> Value {
    Value::Map(Arc::new(Map::with_shape(Shape::of_records(vec![record_key(name)]), vec![value])))
}

impl<'b, 'm> Serializer for ToValue<'b, 'm> {
    type Ok = Value;
    type Error = ConvertError;
    type SerializeSeq = Items<'b, 'm>;
    type SerializeTuple = Items<'b, 'm>;
    type SerializeTupleStruct = Items<'b, 'm>;
    type SerializeTupleVariant = Items<'b, 'm>;
    type SerializeMap = Entries<'b, 'm>;
    type SerializeStruct = Fields<'b, 'm>;
    type SerializeStructVariant = Fields<'b, 'm>;

    fn serialize_bool(self, value: bool) -> Result<Value, ConvertError> {
        Ok(Value::Bool(value))
    }

    fn serialize_i8(self, value: i8) -> Result<Value, ConvertError> {
        self.serialize_i64(value.into())
    }

    fn serialize_i16(self, value: i16) -> Result<Value, ConvertError> {
        self.serialize_i64(value.into())
    }

    fn serialize_i32(self, value: i32) -> Result<Value, ConvertError> {
        self.serialize_i64(value.into())
    }

    #[inline]
    fn serialize_i64(self, value: i64) -> Result<Value, ConvertError> {
        Ok(Value::Int(value))
    }

    fn serialize_i128(self, value: i128) -> Result<Value, ConvertError> {
        Ok(Value::integer(BigInt::from(value)))
    }

    fn serialize_u8(self, value: u8) -> Result<Value, ConvertError> {
        self.serialize_i64(value.into())
    }

    fn serialize_u16(self, value: u16) -> Result<Value, ConvertError> {
        self.serialize_i64(value.into())
    }

    fn serialize_u32(self, value: u32) -> Result<Value, ConvertError> {
        self.serialize_i64(value.into())
    }

    fn serialize_u64(self, value: u64) -> Result<Value, ConvertError> {
        match i64::try_from(value) {
            Ok(value) => Ok(Value::Int(value)),
            Err(_) => Ok(Value::integer(BigInt::from(value))),
        }
    }

    fn serialize_u128(self, value: u128) -> Result<Value, ConvertError> {
        Ok(Value::integer(BigInt::from(value)))
    }

    fn serialize_f32(self, value: f32) -> Result<Value, ConvertError> {
        self.serialize_f64(widened(value))
    }

    fn serialize_f64(self, value: f64) -> Result<Value, ConvertError> {
        Ok(Value::Float(value))
    }

    fn serialize_char(self, value: char) -> Result<Value, ConvertError> {
        Ok(Value::Char(value))
    }

    fn serialize_str(mut self, value: &str) -> Result<Value, ConvertError> {
        if value.len() >= 4_096 {
            self.machine().reserve(value.len() as u64)?;
        }
        Ok(Value::string(value))
    }

    fn serialize_bytes(mut self, value: &[u8]) -> Result<Value, ConvertError> {
        let machine = self.machine();
        machine.charge(value.len() as u64)?;
        machine.reserve_values(value.len() as u64)?;
        Ok(Value::vector(value.iter().map(|byte| Value::Int(i64::from(*byte))).collect()))
    }

    fn serialize_none(self) -> Result<Value, ConvertError> {
        Ok(Value::Nil)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value, ConvertError> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Value, ConvertError> {
        Ok(Value::Nil)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Value, ConvertError> {
        Ok(Value::Nil)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<Value, ConvertError> {
        Ok(Value::string(variant))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<Value, ConvertError> {
        if name == pass::NAME
            && let Some(passed) = pass::taken()
        {
            return Ok(passed);
        }
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Value, ConvertError> {
        let mut place = self.place();
        let value = place.building().part(value).map_err(|error| error.at_key(variant))?;
        place.end()?;
        Ok(single(variant, value))
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Items<'b, 'm>, ConvertError> {
        Items::new(self.place(), length.unwrap_or(0), None)
    }

    fn serialize_tuple(self, length: usize) -> Result<Items<'b, 'm>, ConvertError> {
        Items::new(self.place(), length, None)
    }

    fn serialize_tuple_struct(self, _: &'static str, length: usize) -> Result<Items<'b, 'm>, ConvertError> {
        Items::new(self.place(), length, None)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Items<'b, 'm>, ConvertError> {
        Items::new(self.place(), length, Some(variant))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Entries<'b, 'm>, ConvertError> {
        Ok(Entries { place: self.place(), map: Map::default(), key: None, has_other_keys: false })
    }

    fn serialize_struct(self, name: &'static str, length: usize) -> Result<Fields<'b, 'm>, ConvertError> {
        Ok(Fields::new(self.place(), name, length, None))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Fields<'b, 'm>, ConvertError> {
        Ok(Fields::new(self.place(), variant, length, Some(variant)))
    }
}

pub(super) struct Items<'b, 'm> {
    place: Place<'b, 'm>,
    items: Vec<Value>,
    variant: Option<&'static str>,
}

impl<'b, 'm> Items<'b, 'm> {
    fn new(mut place: Place<'b, 'm>, length: usize, variant: Option<&'static str>) -> Result<Self, ConvertError> {
        place.building().machine.reserve_values(length as u64)?;
        Ok(Items { place, items: Vec::with_capacity(length.min(1 << 16)), variant })
    }

    fn push<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), ConvertError> {
        let building = self.place.building();
        let index = self.items.len();
        self.items.push(building.part(item).map_err(|error| error.at_index(index))?);
        Ok(building.machine.grown(self.items.len())?)
    }

    fn finish(self) -> Result<Value, ConvertError> {
        self.place.end()?;
        let items = Value::vector(self.items);
        Ok(match self.variant {
            Some(variant) => single(variant, items),
            None => items,
        })
    }
}

macro_rules! items {
    ($($sequence:ident $method:ident;)*) => {
        $(impl $sequence for Items<'_, '_> {
            type Ok = Value;
            type Error = ConvertError;

            fn $method<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), ConvertError> {
                self.push(item)
            }

            fn end(self) -> Result<Value, ConvertError> {
                self.finish()
            }
        })*
    };
}

items! {
    SerializeSeq serialize_element;
    SerializeTuple serialize_element;
    SerializeTupleStruct serialize_field;
    SerializeTupleVariant serialize_field;
}

pub(super) struct Entries<'b, 'm> {
    place: Place<'b, 'm>,
    map: Map,
    key: Option<Value>,
    /// True if a key is not text, so that the map is no record.
    has_other_keys: bool,
}

impl SerializeMap for Entries<'_, '_> {
    type Ok = Value;
    type Error = ConvertError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), ConvertError> {
        let key = self.place.building().part(key)?;
        self.key = Some(match &key {
            Value::Str(text) => record_key(text.as_str()),
            _ => {
                self.has_other_keys = true;
                key
            }
        });
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), ConvertError> {
        let Some(key) = self.key.take() else { return Err(ConvertError::new("a value without a key")) };
        let value = self.place.building().part(value).map_err(|error| error.at_key(&key.to_string()))?;
        if self.map.contains_key(&key) {
            return Err(ConvertError::new(format!("the key {key} occurs twice")));
        }
        self.map.insert(key, value);
        Ok(())
    }

    fn end(self) -> Result<Value, ConvertError> {
        self.place.end()?;
        let map = if self.has_other_keys { self.map } else { self.map.into_record() };
        Ok(Value::Map(Arc::new(map)))
    }
}

pub(super) struct Fields<'b, 'm> {
    place: Place<'b, 'm>,
    name: &'static str,
    /// The position of a known shape whose first fields are those so far.
    known: Option<usize>,
    /// The names of the fields so far, unless a shape is known.
    names: Vec<&'static str>,
    values: Vec<Value>,
    variant: Option<&'static str>,
    /// The number or the text of `serde_json` that the struct stands for.
    foreign: Option<Value>,
}

impl<'b, 'm> Fields<'b, 'm> {
    fn new(mut place: Place<'b, 'm>, name: &'static str, length: usize, variant: Option<&'static str>) -> Self {
        let known = place.building().known(name);
        Fields { place, name, known, names: Vec::new(), values: Vec::with_capacity(length), variant, foreign: None }
    }

    fn push<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), ConvertError> {
        let building = self.place.building();
        if name == foreign::NUMBER || name == foreign::RAW {
            let text = text_of(value)?;
            let read = if name == foreign::RAW {
                building.machine.reserve(text.len() as u64)?;
                meter::outside(|| foreign::check_raw(&text))?;
                Some(json::parse(building.machine, &text)?)
            } else {
                foreign::number(&text)
            };
            self.foreign = Some(read.ok_or_else(|| ConvertError::new("expected a JSON number"))?);
            return Ok(());
        }
        self.values.push(building.part(value).map_err(|error| error.at_key(name))?);
        if let Some(known) = self.known {
            let (fields, at) = (&building.shapes[known].fields, self.values.len() - 1);
            if fields.get(at).is_some_and(|field| is_same(field, name)) {
                return Ok(());
            }
            self.names.extend_from_slice(&fields[..at.min(fields.len())]);
            self.known = None;
        }
        self.names.push(name);
        Ok(())
    }

    fn finish(mut self) -> Result<Value, ConvertError> {
        if let Some(foreign) = self.foreign {
            self.place.end()?;
            return Ok(foreign);
        }
        let building = self.place.building();
        let shape = match self.known {
            Some(known) if building.shapes[known].fields.len() == self.values.len() => {
                building.shapes[known].shape.clone()
            }
            Some(known) => {
                let fields = building.shapes[known].fields[..self.values.len()].to_vec();
                building.shape(self.name, fields)
            }
            None => building.shape(self.name, self.names),
        };
        self.place.end()?;
        let record = Value::Map(Arc::new(Map::with_shape(shape, self.values)));
        Ok(match self.variant {
            Some(variant) => single(variant, record),
            None => record,
        })
    }
}

macro_rules! fields {
    ($($fields:ident)*) => {
        $(impl $fields for Fields<'_, '_> {
            type Ok = Value;
            type Error = ConvertError;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), ConvertError> {
                self.push(name, value)
            }

            fn end(self) -> Result<Value, ConvertError> {
                self.finish()
            }
        })*
    };
}

fields! { SerializeStruct SerializeStructVariant }
