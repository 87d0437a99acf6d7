//! Repairs arguments that do not fit a schema but have an unambiguous meaning that does.
//!
//! Only unambiguous changes are made: a text that is a number or boolean as JSON writes it becomes that value; a whole
//! number becomes a text; a single item becomes a list of one; a null for an optional field is left out. Each change is
//! noted. A null is not left out where it names a thing, such as `customer_id`: without it, a call may concern all of them.

use jsonschema::error::ValidationErrorKind;
use serde_json::{Number, Value};

use crate::lang::internal::meant;
use crate::server::text::cut;

use super::validation::Validation;

/// Maximum length of a value in a note, in characters.
const SHOWN: usize = 40;
/// Maximum number of notes kept for one call.
const NOTES: usize = 3;
/// Whole numbers below this magnitude are exact as floats.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The changes made to the arguments of one call.
#[derive(Default)]
pub(super) struct Notes {
    first: Vec<String>,
    more: usize,
}

impl Notes {
    fn add(&mut self, path: &str, was: &Value, sent: &Value) {
        if self.first.len() == NOTES {
            self.more += 1;
            return;
        }
        let shown = |value: &Value| cut(&value.to_string(), SHOWN);
        self.first.push(format!("{path} was {}, sent as {}", shown(was), shown(sent)));
    }

    /// Adds that a null was left out.
    fn leave_out(&mut self, path: &str) {
        if self.first.len() == NOTES {
            self.more += 1;
        } else {
            self.first.push(format!("{path} was nil, left out"));
        }
    }

    /// Returns the notes as one line; `None` if there are none.
    pub(super) fn line(self) -> Option<String> {
        let more = if self.more > 0 { format!(", and {} more", self.more) } else { String::new() };
        (!self.first.is_empty()).then(|| self.first.join(", ") + &more)
    }
}

/// Replaces a value that does not fit its place by one that it means and that fits; returns false if there is none.
pub(super) fn repair(
    validation: &mut Validation<'_>,
    instance: &mut Value,
    place: &str,
    path: &str,
    notes: &mut Notes,
) -> bool {
    if instance.pointer(place).is_some_and(Value::is_null) {
        if names_a_thing(path) {
            return false;
        }
        let is_dropped = drop_null(validation, instance, place);
        if is_dropped {
            notes.leave_out(path);
        }
        return is_dropped;
    }
    let Some(was) = instance.pointer(place).filter(|_| !place.is_empty()).cloned() else { return false };
    for meant in meanings(&was) {
        put(instance, place, meant.clone());
        if fits(validation, instance, place) {
            if was.is_object() && meant.is_object() {
                null_fields(&was, path).iter().for_each(|path| notes.leave_out(path));
            } else {
                notes.add(path, &was, &meant);
            }
            return true;
        }
    }
    put(instance, place, was);
    false
}

/// True for the path of a field whose name ends in `id` or `ids`, as a word of its own.
fn names_a_thing(path: &str) -> bool {
    let name = path.rsplit('.').next().unwrap_or_default();
    let ends = ["_id", "_ids", "-id", "-ids", "Id", "Ids", "ID", "IDs", "uuid", "Uuid"];
    matches!(name, "id" | "ids") || ends.iter().any(|end| name.ends_with(end))
}

fn put(instance: &mut Value, place: &str, value: Value) {
    if let Some(slot) = instance.pointer_mut(place) {
        *slot = value;
    }
}

/// True if the value at a place has no errors; false also if the budget does not suffice to find out.
fn fits(validation: &mut Validation<'_>, instance: &Value, place: &str) -> bool {
    let is_there = |at: String| at.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    validation.any_error(instance, |problem| is_there(problem.instance_path().to_string())) == Ok(false)
}

/// The values of other types that a value may mean, the likeliest first.
fn meanings(value: &Value) -> Vec<Value> {
    let one = |value: &Value| Value::Array(vec![value.clone()]);
    match value {
        Value::String(text) => {
            // JSON does not write numbers as `1e3` or `01`: these may be meant as text.
            let read = serde_json::from_str::<Value>(text).ok();
            let is_scalar = |read: &Value| read.is_number() || read.is_boolean();
            let exact = read.filter(|read| is_scalar(read) && *text == format!("{read}"));
            // A text with separators may be a whole list written as one text.
            let is_list = text.contains([',', ';', '\n', '[']);
            exact.into_iter().chain((!is_list).then(|| one(value))).collect()
        }
        Value::Number(number) if is_whole(number) => vec![Value::String(number.to_string()), one(value)],
        Value::Number(_) | Value::Bool(_) => vec![one(value)],
        Value::Object(_) => vec![without_nulls(value), one(value)],
        Value::Array(_) | Value::Null => Vec::new(),
    }
}

fn is_whole(number: &Number) -> bool {
    number.is_i64() || number.is_u64()
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, field)| !field.is_null());
            Value::Object(kept.map(|(name, field)| (name.clone(), without_nulls(field))).collect())
        }
        other => other.clone(),
    }
}

/// Returns the paths of the null fields of an object.
fn null_fields(value: &Value, path: &str) -> Vec<String> {
    let fields = value.as_object().into_iter().flatten();
    let inner = fields.flat_map(|(name, field)| {
        let path = format!("{path}.{name}");
        if field.is_null() { vec![path] } else { null_fields(field, &path) }
    });
    inner.collect()
}

/// Removes a null field, unless the field is required.
fn drop_null(validation: &mut Validation<'_>, instance: &mut Value, place: &str) -> bool {
    let Some((parent, _)) = place.rsplit_once('/') else { return false };
    let name = place[parent.len() + 1..].replace("~1", "/").replace("~0", "~");
    let Some(Value::Object(fields)) = instance.pointer_mut(parent) else { return false };
    let before = fields.clone();
    fields.shift_remove(&name);
    let is_missed = validation.any_error(instance, |problem| {
        problem.instance_path().to_string() == parent
            && matches!(problem.kind(), ValidationErrorKind::Required { property } if property.as_str() == Some(name.as_str()))
    });
    let may_go = is_missed == Ok(false);
    if !may_go {
        put(instance, parent, Value::Object(before));
    }
    may_go
}

/// Rewrites whole floats as integers where the schema expects integers: many servers reject `5.0`.
pub(super) fn whole_numbers(schema: &Value, value: &mut Value, notes: &mut Notes) {
    let mut walk = WholeNumbers { root: schema, path: Vec::new(), left: LOOKS, notes };
    walk.of(schema, value);
}

/// Maximum number of values and alternatives that are examined for whole numbers.
const LOOKS: usize = 200_000;

struct WholeNumbers<'a> {
    root: &'a Value,
    path: Vec<String>,
    left: usize,
    notes: &'a mut Notes,
}

impl WholeNumbers<'_> {
    fn of(&mut self, schema: &Value, value: &mut Value) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        let Some(schema) = meant(schema, self.root) else { return };
        match value {
            Value::Number(number) if number.is_f64() && self.asks_for_integer(schema) => {
                let float = number.as_f64().unwrap_or_default();
                if float.fract() == 0.0 && float.abs() < EXACT {
                    let sent = Value::from(float as i64);
                    self.notes.add(&super::arguments::path(&self.path), value, &sent);
                    *value = sent;
                }
            }
            Value::Array(items) => {
                let Some(schema) = schema.get("items") else { return };
                for (at, item) in items.iter_mut().enumerate() {
                    self.path.push(at.to_string());
                    self.of(schema, item);
                    self.path.pop();
                }
            }
            Value::Object(fields) => {
                let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
                for (name, field) in fields.iter_mut() {
                    if let Some(schema) = properties.get(name) {
                        self.path.push(name.clone());
                        self.of(schema, field);
                        self.path.pop();
                    }
                }
            }
            _ => {}
        }
    }

    /// True if integers are the only numbers that a schema allows.
    fn asks_for_integer(&mut self, schema: &Value) -> bool {
        let several = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array);
        let is_type = |schema: &Value, name: &str| match schema.get("type") {
            Some(Value::String(only)) => only == name,
            Some(Value::Array(names)) => names.iter().any(|one| one == name),
            _ => false,
        };
        let schemas: Vec<&Value> = match several {
            Some(several) => {
                self.left = self.left.saturating_sub(several.len());
                several.iter().filter_map(|schema| meant(schema, self.root)).collect()
            }
            None => vec![schema],
        };
        schemas.iter().any(|schema| is_type(schema, "integer"))
            && !schemas.iter().any(|schema| is_type(schema, "number"))
    }
}
