//! Learns the shape of the results of a tool, as a JSON Schema.
//!
//! No value of the data is kept, and no key that may be data. A key is shown as a field name if it is composed of
//! [`field_names`](super::field_names) that are common to tools or that the tool uses to describe itself, or if nearly all of
//! several objects at one place of one result have it, such as the items of a list. The values of all other keys are
//! shown as those of a dictionary, without the keys: `{"name": "Sales", "alice": 1, "bob": true}` is
//! `{:name string _ integer|boolean}`.
//!
//! An object is a dictionary as a whole if it has many keys, if one of them cannot be a name (an address, a number, a
//! date), if it has more unknown keys than names, or if its values are all of one kind and a key is not composed of
//! such words: `{"alice": 1, "bob": 2}`, also where a list repeats it.

use std::fmt;

use indexmap::IndexMap;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value, json};

use crate::lang::ToolReply;

use super::field_names::Words;

/// Maximum depth to which a result is examined, and maximum number of items that are examined of each array.
const DEEPEST: usize = 6;
const ITEMS: usize = 40;
/// Maximum number of values of one result that are examined.
const VALUES: usize = 4_000;
/// Objects with more keys than this are dictionaries.
const KEYS: usize = 40;
/// An unknown key is a name if at least `SEVERAL` objects at its place have it and at least `OF_TEN` of ten do.
const SEVERAL: u32 = 3;
const OF_TEN: u32 = 9;
/// Maximum length of a name, in bytes; longer keys are data.
const NAME: usize = 40;
/// Larger results are not examined: that would add more than a small fraction to the time that they take anyway.
const LARGEST: usize = 4 << 20;
/// Maximum number of parts of a shape; a result that would exceed it is ignored.
const PARTS: usize = 2_000;
/// All of the first `RESULTS` results of a tool are examined, then only those whose ordinal is a power of two.
const RESULTS: u64 = 16;

/// The merged shape of the results of one tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LearnedShape {
    shape: Shape,
    results: u64,
}

impl LearnedShape {
    /// Restores the shape from a schema that [`LearnedShape::schema`] returned.
    pub(super) fn of(schema: &Value) -> LearnedShape {
        let shape = Shape::of(schema, 0);
        if shape.parts() > PARTS { LearnedShape::default() } else { LearnedShape { shape, results: 1 } }
    }

    /// Merges one more result of a tool that uses `words` to describe itself; returns true if the shape has changed.
    pub(super) fn learn(&mut self, reply: &ToolReply, words: &Words) -> bool {
        let mut shape = Shape::default();
        match reply {
            ToolReply::Json(text) if text.len() <= LARGEST && self.is_due() => {
                let mut left = VALUES;
                let seed = Look { shape: &mut shape, depth: 0, left: &mut left };
                if seed.deserialize(&mut serde_json::Deserializer::from_str(text)).is_err() {
                    return false;
                }
            }
            ToolReply::Text(_) if self.is_due() => shape.add("string"),
            _ => return false,
        }
        if shape.is_soft_error() {
            return false;
        }
        shape.settle(Some(&self.shape), words);
        let mut merged = self.shape.clone();
        merged.merge(shape);
        if merged == self.shape || merged.parts() > PARTS {
            return false;
        }
        self.shape = merged;
        true
    }

    /// Merges the shape of other results of the same tool, unless the sum would have too many parts.
    pub(super) fn join(&mut self, other: LearnedShape) {
        let mut merged = self.shape.clone();
        merged.merge(other.shape);
        if merged.parts() <= PARTS {
            self.shape = merged;
        }
    }

    fn is_due(&mut self) -> bool {
        self.results += 1;
        self.results <= RESULTS || self.results.is_power_of_two()
    }

    /// Returns the shape as a JSON Schema; `None` before the first result.
    pub(super) fn schema(&self) -> Option<Value> {
        (self.shape != Shape::default()).then(|| self.shape.schema())
    }
}

/// The shape of the values at one place.
#[derive(Clone, Debug, Default, PartialEq)]
struct Shape {
    /// The types, by their JSON Schema names, in order of first occurrence.
    types: Vec<&'static str>,
    items: Option<Box<Shape>>,
    /// The fields of objects.
    fields: IndexMap<String, Field>,
    /// The values of a dictionary, or of the keys that are not shown as fields.
    values: Option<Box<Shape>>,
    /// The number of objects here in the result being examined; zero in a learned shape.
    objects: u32,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Field {
    shape: Shape,
    /// True if all objects had it.
    always: bool,
    /// The number of objects in the result being examined that have it; zero in a learned shape.
    objects: u32,
}

const TYPES: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];

impl Shape {
    fn add(&mut self, name: &'static str) {
        // `number` includes integers.
        if name == "number" {
            self.types.retain(|known| *known != "integer");
        }
        let is_known = self.types.contains(&name) || (name == "integer" && self.types.contains(&"number"));
        if !is_known {
            self.types.push(name);
        }
    }

    /// True for the shape of a failure that a tool reports as a result: `{"error": …}`, alone or beside what describes it.
    fn is_soft_error(&self) -> bool {
        const BESIDE: [&str; 8] = ["message", "code", "status", "success", "ok", "details", "type", "hint"];
        let is_error = |name: &str| name.eq_ignore_ascii_case("error") || name.eq_ignore_ascii_case("errors");
        let is_said = |field: &Field| !matches!(field.shape.types.as_slice(), ["null"] | ["boolean"]);
        self.types == ["object"]
            && self.fields.iter().any(|(name, field)| is_error(name) && is_said(field))
            && self.fields.keys().all(|name| is_error(name) || BESIDE.contains(&name.to_lowercase().as_str()))
    }

    /// Turns a record into a dictionary.
    fn dictionary(&mut self) -> &mut Shape {
        let fields = std::mem::take(&mut self.fields);
        let values = self.values.get_or_insert_default();
        fields.into_iter().for_each(|(_, field)| values.merge(field.shape));
        values
    }

    fn is_dictionary(&self) -> bool {
        self.values.is_some() && self.fields.is_empty()
    }

    /// Removes the keys that may be data. `before` is the shape of the same place in earlier results: its field names
    /// count as names.
    fn settle(&mut self, before: Option<&Shape>, words: &Words) {
        let objects = std::mem::take(&mut self.objects);
        let is_known = |name: &str| before.is_some_and(|before| before.fields.contains_key(name)) || words.name(name);
        let is_in_most = |field: &Field| field.objects >= SEVERAL && field.objects * 10 >= objects * OF_TEN;
        let unknown: Vec<&String> = self.fields.keys().filter(|name| !is_known(name)).collect();
        let hidden: Vec<String> =
            unknown.iter().filter(|name| !is_in_most(&self.fields[**name])).map(|name| (*name).clone()).collect();
        if !unknown.is_empty() && (self.is_of_one_kind() || 2 * hidden.len() > self.fields.len()) {
            self.dictionary();
        }
        for name in hidden {
            if let Some(field) = self.fields.shift_remove(&name) {
                self.values.get_or_insert_default().merge(field.shape);
            }
        }
        for (name, field) in &mut self.fields {
            field.objects = 0;
            field.shape.settle(before.and_then(|before| before.fields.get(name)).map(|field| &field.shape), words);
        }
        let inner = |part: &mut Option<Box<Shape>>, before: Option<&Shape>| {
            part.iter_mut().for_each(|part| part.settle(before, words));
        };
        inner(&mut self.items, before.and_then(|before| before.items.as_deref()));
        inner(&mut self.values, before.and_then(|before| before.values.as_deref()));
    }

    /// True if all fields have a kind in common; fields that are only null are ignored.
    fn is_of_one_kind(&self) -> bool {
        let kind = |name: &'static str| if name == "integer" { "number" } else { name };
        let mut common: Option<Vec<&str>> = None;
        for field in self.fields.values() {
            let kinds: Vec<&str> =
                field.shape.types.iter().filter(|name| **name != "null").map(|name| kind(name)).collect();
            match &mut common {
                _ if kinds.is_empty() => {}
                Some(common) => common.retain(|kind| kinds.contains(kind)),
                None => common = Some(kinds),
            }
        }
        common.is_none_or(|common| !common.is_empty())
    }

    /// Counts its parts, itself included.
    fn parts(&self) -> usize {
        let inner = [&self.items, &self.values].into_iter().flatten().map(|part| part.parts());
        1 + self.fields.values().map(|field| field.shape.parts()).chain(inner).sum::<usize>()
    }

    fn merge(&mut self, other: Shape) {
        let is_first = !self.types.contains(&"object");
        let is_dictionary = self.is_dictionary() || other.is_dictionary();
        other.types.iter().for_each(|name| self.add(name));
        if let Some(items) = other.items {
            self.items.get_or_insert_default().merge(*items);
        }
        self.objects += other.objects;
        if is_dictionary {
            let values = self.dictionary();
            other.fields.into_iter().for_each(|(_, field)| values.merge(field.shape));
            other.values.into_iter().for_each(|more| values.merge(*more));
            return;
        }
        if !other.types.contains(&"object") {
            return;
        }
        if let Some(values) = other.values {
            self.values.get_or_insert_default().merge(*values);
        }
        for (name, field) in &mut self.fields {
            field.always &= other.fields.get(name).is_some_and(|field| field.always);
        }
        for (name, field) in other.fields {
            let new = || Field { always: field.always && is_first, ..Field::default() };
            let known = self.fields.entry(name).or_insert_with(new);
            known.objects += field.objects;
            known.shape.merge(field.shape);
        }
        if self.fields.len() > KEYS {
            self.dictionary();
        }
    }

    fn schema(&self) -> Value {
        let mut schema = Map::new();
        match self.types.as_slice() {
            [] => return json!({}),
            [only] => schema.insert("type".into(), json!(only)),
            several => schema.insert("type".into(), json!(several)),
        };
        if let Some(items) = &self.items {
            schema.insert("items".into(), items.schema());
        }
        if let Some(values) = &self.values {
            schema.insert("additionalProperties".into(), values.schema());
        }
        if !self.fields.is_empty() {
            let required: Vec<&String> =
                self.fields.iter().filter(|(_, field)| field.always).map(|(name, _)| name).collect();
            schema.insert("required".into(), json!(required));
            let properties: Map<String, Value> =
                self.fields.iter().map(|(name, field)| (name.clone(), field.shape.schema())).collect();
            schema.insert("properties".into(), Value::Object(properties));
        }
        Value::Object(schema)
    }

    fn of(schema: &Value, depth: usize) -> Shape {
        let mut shape = Shape::default();
        if depth > DEEPEST {
            return shape;
        }
        let named = |name: &Value| TYPES.into_iter().find(|known| name == *known);
        match schema.get("type") {
            Some(Value::Array(names)) => names.iter().filter_map(named).for_each(|name| shape.add(name)),
            Some(name) => named(name).into_iter().for_each(|name| shape.add(name)),
            None => {}
        }
        let inner = |schema: &Value| Box::new(Shape::of(schema, depth + 1));
        shape.items = schema.get("items").map(inner);
        shape.values = schema.get("additionalProperties").map(inner);
        let required = schema.get("required").and_then(Value::as_array);
        let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        for (name, field) in properties.filter(|(name, _)| is_name(name)).take(KEYS) {
            let always = required.is_some_and(|required| required.iter().any(|one| one == name));
            let shape_of_it = Shape::of(field, depth + 1);
            shape.fields.insert(name.clone(), Field { shape: shape_of_it, always, objects: 0 });
        }
        shape
    }
}

/// True for a key that can be a field name: one or more words, followed by at most two digits.
fn is_name(key: &str) -> bool {
    let letters = key.trim_end_matches(|c: char| c.is_ascii_digit());
    let plain = |c: char| c.is_alphabetic() || matches!(c, '_' | '-' | '$');
    key.len() <= NAME
        && key.len() - letters.len() < 3
        && letters.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '$')
        && letters.chars().all(plain)
}

/// Walks JSON text and records the shapes of its values.
struct Look<'a> {
    shape: &'a mut Shape,
    depth: usize,
    left: &'a mut usize,
}

impl<'de> DeserializeSeed<'de> for Look<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        if *self.left == 0 {
            return from.deserialize_ignored_any(IgnoredAny).map(|_| ());
        }
        *self.left -= 1;
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Look<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.shape.add("null");
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        self.shape.add("boolean");
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        self.shape.add("integer");
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        self.shape.add("integer");
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        self.shape.add("number");
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        self.shape.add("string");
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.shape.add("array");
        let mut looked_at = 0;
        if self.depth < DEEPEST {
            let shape = self.shape.items.get_or_insert_default();
            while looked_at < ITEMS {
                if items.next_element_seed(Look { shape, depth: self.depth + 1, left: self.left })?.is_none() {
                    return Ok(());
                }
                looked_at += 1;
            }
        }
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let mut object = Shape { types: vec!["object"], objects: 1, ..Shape::default() };
        if self.depth >= DEEPEST {
            self.shape.merge(object);
            while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(());
        }
        while let Some(name) = fields.next_key::<String>()? {
            let mut field = Shape::default();
            fields.next_value_seed(Look { shape: &mut field, depth: self.depth + 1, left: self.left })?;
            if object.values.is_some() || !is_name(&name) || object.fields.len() == KEYS {
                object.dictionary().merge(field);
            } else {
                object.fields.insert(name, Field { shape: field, always: true, objects: 1 });
            }
        }
        // A key that was not examined because the budget is exhausted is not known to be missing.
        if *self.left > 0 || self.shape.fields.is_empty() {
            self.shape.merge(object);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lang::Tool;

    fn seen(results: &[&str]) -> Value {
        let mut seen = LearnedShape::default();
        for result in results {
            seen.learn(&ToolReply::Json((*result).to_owned()), &Words::default());
        }
        seen.schema().unwrap_or_default()
    }

    #[test]
    fn records_are_merged_and_what_some_lack_is_optional() {
        let expected = json!({
            "type": "array",
            "items": {
                "type": "object",
                "required": ["id"],
                "properties": {
                    "id": {"type": "integer"},
                    "size": {"type": "number"},
                    "from": {"type": ["object", "null"], "required": ["email"], "properties": {"email": {"type": "string"}}},
                    "read": {"type": "boolean"}
                }
            }
        });
        let result = r#"[{"id": 1, "size": 1, "from": {"email": "ann@x.org"}}, {"id": 2, "size": 2.5, "from": null}, {"id": 3, "read": true}]"#;
        assert_eq!(seen(&[result]), expected);
        assert_eq!(seen(&[result, "[]", result]), expected);
        assert_eq!(LearnedShape::of(&expected).schema(), Some(expected));
    }

    #[test]
    fn failures_that_are_reported_as_results_are_not_learned() {
        let failed = r#"{"error": "no such ticket", "code": 404}"#;
        assert_eq!(seen(&[failed]), Value::Null);
        assert_eq!(seen(&[r#"{"id": 1}"#, failed]), seen(&[r#"{"id": 1}"#]));
        assert_ne!(seen(&[r#"{"error": null, "rows": [1]}"#]), Value::Null);
        assert_ne!(seen(&[r#"{"error": "late", "rows": [1]}"#]), Value::Null);
    }

    #[test]
    fn no_data_is_kept() {
        for result in [r#"{"ann@x.org": 5, "bob@x.org": 6}"#, r#"{"msg-1001": 5}"#, r#"{"a b": 7, "name": 1}"#] {
            assert_eq!(
                seen(&[result]),
                json!({"type": "object", "additionalProperties": {"type": "integer"}}),
                "{result}"
            );
        }
        let many: Map<String, Value> = (0..100).map(|n| (format!("{}x", "k".repeat(n % 30 + 1)), json!(n))).collect();
        let many: Map<String, Value> = many.into_iter().chain((0..60).map(|n| (format!("k{n}"), json!(1)))).collect();
        assert_eq!(seen(&[&Value::Object(many).to_string()])["properties"], Value::Null);
        let text = r#"{"subject": "The secret plan", "labels": ["private"]}"#;
        let shown = seen(&[text]).to_string();
        assert!(!shown.contains("secret") && !shown.contains("private"), "{shown}");
    }

    #[test]
    fn keys_that_may_be_data_are_left_out() {
        for result in [
            r#"{"salaries": {"alice": 1, "bob": 2}}"#,
            r#"{"alice": 1}"#,
            r#"{"alice": 1, "bob": null, "carol": 2.5}"#,
            r#"{"alice": {"age": 1}, "bob": {"size": 2}}"#,
            r#"{"total": 3, "ok": true, "users": {"alice": ["a"], "bob": []}}"#,
            r#"[{"alice": "x"}, {"bob": "y"}]"#,
            r#"{"alice.smith": 1, "ok": true}"#,
            r#"{"2024-01-05": 1, "total": true}"#,
            r#"{"jan_05_24": 1, "alice": 2}"#,
            r#"{"ab1cd2ef": 1, "ok": true}"#,
            r#"{"salaries": {"alice": 100, "bob": "unknown"}}"#,
            r#"{"alice": 100, "bob": "x", "carol": null}"#,
            r#"{"people": {"alice": {"salary": 1}, "bob": {"salary": 2, "bonus": 3}, "carol": [1]}}"#,
            r#"{"patient_alice": "ok", "total": 1}"#,
            r#"{"map": {"alice": true, "total": 5, "name": "x"}}"#,
            r#"{"name": {"alice_doe": {"id": 1}}, "id": {"bob": 1, "b": "c"}}"#,
            r#"{"error": "x", "carol": {"balance": 1, "owner": "y"}}"#,
            r#"[{"id": 1, "alice": "x"}, {"id": 2, "bob": "y"}, {"id": 3, "carol": "z"}]"#,
            r#"[{"id": 1, "alice": "x"}, {"id": 2, "alice": "y"}]"#,
            r#"[{"alice": 1, "bob": 2}, {"alice": 3, "bob": 4}, {"alice": 5, "bob": 6}]"#,
            r#"[{"id": 1, "read": true, "alice": "x"}, {"id": 2, "read": true, "alice": "y"}, {"id": 3, "read": true, "alice": "z"}, {"id": 4, "read": true}]"#,
        ] {
            let shown = seen(&[result, result]).to_string();
            for key in ["alice", "bob", "carol", "2024", "jan", "ab1cd2ef"] {
                assert!(!shown.contains(key), "{result}: {shown}");
            }
        }
        let tool = Tool { name: "list_salaries".into(), ..Tool::default() };
        let mut seen = LearnedShape::default();
        let result = ToolReply::Json(r#"{"salaries": {"alice": 1, "bob": 2}}"#.into());
        assert!(seen.learn(&result, &Words::of(&tool)));
        let salaries = json!({"type": "object", "additionalProperties": {"type": "integer"}});
        let expected = json!({"type": "object", "required": ["salaries"], "properties": {"salaries": salaries}});
        assert_eq!(seen.schema(), Some(expected));
    }

    #[test]
    fn known_names_are_kept_beside_unknown_keys_and_what_all_objects_have_is_a_name() {
        let record = |result: &str| seen(&[result, result])["properties"].as_object().cloned().unwrap_or_default();
        let names = |result: &str| record(result).keys().cloned().collect::<Vec<_>>().join(" ");
        assert_eq!(names(r#"{"id": 1, "name": "x", "stargazers": 5, "owner": {"login": "ann"}}"#), "id name owner");
        let expected = json!({
            "type": "object",
            "required": ["name", "total"],
            "properties": {"name": {"type": "string"}, "total": {"type": "integer"}},
            "additionalProperties": {"type": "boolean"}
        });
        let result = r#"{"name": "x", "total": 5, "secretproject": true}"#;
        assert_eq!(seen(&[result]), expected);
        assert_eq!(seen(&[result, result, result]), expected, "a result that comes again says nothing new");
        assert_eq!(LearnedShape::of(&expected).schema(), Some(expected));
        let items = (0..10).map(|n| json!({"stargazers": n, "licence": "MIT", "fork": false})).collect::<Vec<_>>();
        let repos = seen(&[&json!({"items": items, "total_count": 10}).to_string()]);
        assert_eq!(repos["properties"]["items"]["items"]["required"], json!(["stargazers", "licence", "fork"]));
        let mut items = items;
        items[3].as_object_mut().expect("an object").shift_remove("fork");
        let repos = seen(&[&json!(items).to_string()]);
        assert_eq!(repos["items"]["required"], json!(["stargazers", "licence"]), "nearly all have the third");
        assert_eq!(repos["items"]["properties"]["fork"], json!({"type": "boolean"}));
        // A later result with fewer items has names that are known by then.
        let mut seen = LearnedShape::default();
        for result in [json!(items), json!([{"stargazers": 1, "licence": "MIT", "fork": true}])] {
            seen.learn(&ToolReply::Json(result.to_string()), &Words::default());
        }
        assert_eq!(seen.schema(), Some(repos));
    }

    #[test]
    fn hostile_results_are_learned_in_bounded_time_and_memory() {
        let begun = crate::worker::processor_time();
        let words = Words::default();
        let mut seen = LearnedShape::default();
        let many: Map<String, Value> = (0..100_000).map(|at| (format!("k{at}"), json!(at))).collect();
        let lists: Vec<Value> = (0..100_000).map(|at| json!({ letters(at): at })).collect();
        let nested = |prefix: usize| {
            let fields = |inner: Value| -> Value {
                let kinds =
                    (0..39).map(|at| (letters(prefix * 100 + at), if at % 2 == 0 { inner.clone() } else { json!(1) }));
                Value::Object(kinds.collect())
            };
            fields(fields(fields(json!("text"))))
        };
        for result in [Value::Object(many), Value::from(lists)] {
            seen.learn(&ToolReply::Json(result.to_string()), &words);
        }
        for round in 0..100 {
            seen.learn(&ToolReply::Json(json!([nested(round)]).to_string()), &words);
        }
        assert!(seen.shape.parts() <= PARTS, "{} parts", seen.shape.parts());
        let time = crate::worker::processor_time().zip(begun).map(|(now, begun)| now - begun);
        assert!(time.is_none_or(|time| time < std::time::Duration::from_secs(10)), "{time:?}");
    }

    /// Spells a number in letters.
    fn letters(number: usize) -> String {
        number.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect()
    }

    #[test]
    fn texts_and_failures() {
        let words = Words::default();
        let mut seen = LearnedShape::default();
        assert!(seen.schema().is_none());
        assert!(seen.learn(&ToolReply::Text("hello".into()), &words));
        assert!(!seen.learn(&ToolReply::Text("again".into()), &words));
        assert!(!seen.learn(&ToolReply::Denied("no".into()), &words));
        assert_eq!(seen.schema(), Some(json!({"type": "string"})));
    }

    #[test]
    fn large_and_deep_results_are_looked_at_in_part() {
        let deep = format!("{}1{}", r#"{"a":["#.repeat(60), "]}".repeat(60));
        assert!(seen(&[&deep]).to_string().len() < 1_000);
        let wide = format!("[{}]", vec![r#"{"id":1,"tags":["a","b"]}"#; 50_000].join(","));
        assert_eq!(seen(&[&wide])["items"]["required"], json!(["id", "tags"]));
    }
}
