//! A compact notation for the shape that a JSON Schema describes: `{:id string :labels [string] :size? integer}`.
//!
//! [`Sketch::of`] reads the schema once. The [`Sketch`] is then written to any width: in full, or with the keys alone.

mod bounds;
mod sketch;

pub use sketch::{Detail, Sketch};

use crate::foreign_text;
use crate::host::meant;
use serde_json::{Map, Value as Json};
use sketch::{Field, Part};
use std::cell::Cell;

/// Maximum depth of expanded objects, and of any nesting.
const DEEPEST: usize = 3;
const NESTING: usize = 12;
/// Maximum number of schema nodes visited: a schema that refers to itself in several places expands without end.
const PARTS: usize = 1000;
/// Maximum number of keys shown per object, and of values per enumeration.
const KEYS: usize = 16;
const CHOICES: usize = 8;
/// Maximum number of enumeration values, and of names of required keys, that are considered.
const LOOKED_AT: usize = 256;
/// Maximum length of a literal value, in characters.
const LITERAL: usize = 40;

impl Sketch {
    /// Reads the shape that a schema describes, resolving references in `root`.
    pub fn of(schema: &Json, root: &Json) -> Sketch {
        Shapes { root, left: Cell::new(PARTS) }.of(schema, Depth::default())
    }
}

/// Formats the beginning of a literal in a schema: a default or an enumeration value. The rest is not serialized at
/// all.
pub fn literal(value: &Json) -> String {
    let mut text = Beginning(Vec::new());
    // An error only indicates that the buffer is full.
    let _ = serde_json::to_writer(&mut text, value);
    let end = text.0.utf8_chunks().next().map_or(0, |chunk| chunk.valid().len());
    text.0.truncate(end);
    cut(foreign_text::json_text(String::from_utf8(text.0).unwrap_or_default()), LITERAL)
}

/// A writer that keeps the first bytes and fails once it is full.
struct Beginning(Vec<u8>);

impl std::io::Write for Beginning {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        // Room for one character more than is shown, so that the cut is detected; a character has at most four bytes.
        let room = (4 * (LITERAL + 1)).saturating_sub(self.0.len()).min(bytes.len());
        self.0.extend_from_slice(&bytes[..room]);
        if room == 0 && !bytes.is_empty() { Err(std::io::ErrorKind::WriteZero.into()) } else { Ok(room) }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Truncates a text to `width` characters and appends an ellipsis.
pub fn cut(text: String, width: usize) -> String {
    match text.char_indices().nth(width) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

struct Shapes<'a> {
    root: &'a Json,
    /// The number of schema nodes that may still be visited.
    left: Cell<usize>,
}

/// The depth of a node, in objects and overall.
#[derive(Clone, Copy, Default)]
struct Depth {
    objects: usize,
    parts: usize,
}

impl Depth {
    fn in_object(self) -> Depth {
        Depth { objects: self.objects + 1, ..self }
    }
}

impl Shapes<'_> {
    fn of(&self, schema: &Json, depth: Depth) -> Sketch {
        let mut sketch = Sketch::default();
        self.add(schema, depth, &mut sketch);
        sketch
    }

    /// Adds what a schema describes. Nested alternatives are flattened.
    fn add(&self, schema: &Json, depth: Depth, sketch: &mut Sketch) {
        if depth.parts == NESTING || self.left.get() == 0 {
            return sketch.add(Part::Beyond);
        }
        self.left.set(self.left.get() - 1);
        let depth = Depth { parts: depth.parts + 1, ..depth };
        let schema = meant(schema, self.root).unwrap_or(&Json::Null);
        if let Some(value) = schema.get("const") {
            return sketch.add_literal(value);
        }
        if let Some(values) = schema.get("enum").and_then(Json::as_array) {
            let (nils, values): (Vec<&Json>, Vec<&Json>) =
                values.iter().take(LOOKED_AT).partition(|value| value.is_null());
            nils.iter().chain(values.iter().take(CHOICES)).for_each(|value| sketch.add_literal(value));
            if values.len() > CHOICES {
                sketch.add(Part::Beyond);
            }
            return;
        }
        if let Some(several) = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(*key)).and_then(Json::as_array) {
            return several.iter().take(CHOICES).for_each(|schema| self.add(schema, depth, sketch));
        }
        match schema.get("type") {
            Some(Json::Array(names)) => {
                names.iter().take(CHOICES).for_each(|name| self.add_type(schema, name.as_str(), depth, sketch))
            }
            Some(name) => self.add_type(schema, name.as_str(), depth, sketch),
            None if schema.get("properties").is_some() => self.add_type(schema, Some("object"), depth, sketch),
            None => match schema.get("allOf").and_then(Json::as_array).and_then(|all| all.first()) {
                Some(first) => self.add(first, depth, sketch),
                None => sketch.add(Part::any()),
            },
        }
    }

    fn add_type(&self, schema: &Json, name: Option<&str>, depth: Depth, sketch: &mut Sketch) {
        match name {
            Some("null") => sketch.has_nil = true,
            Some("array") => sketch.add(self.list(schema, depth)),
            Some("object") => sketch.add(self.object(schema, depth)),
            Some(name) => {
                let text = foreign_text::name(name).into_owned();
                sketch.add(Part::Type { text, note: bounds::of(schema, name) });
            }
            None => sketch.add(Part::any()),
        }
    }

    fn list(&self, schema: &Json, depth: Depth) -> Part {
        let tuple = schema.get("prefixItems").and_then(Json::as_array);
        let items = match tuple {
            Some(items) => items.iter().take(KEYS).map(|item| self.of(item, depth)).collect(),
            None => vec![schema.get("items").map_or_else(Sketch::any, |item| self.of(item, depth))],
        };
        Part::List { items, note: bounds::of(schema, "array") }
    }

    fn object(&self, schema: &Json, depth: Depth) -> Part {
        let none = Map::new();
        let properties = schema.get("properties").and_then(Json::as_object).unwrap_or(&none);
        let values = schema.get("additionalProperties").filter(|values| values.is_object());
        let is_beyond = depth.objects >= DEEPEST;
        if properties.is_empty() {
            return match values {
                Some(values) if !is_beyond => Part::Map {
                    fields: Vec::new(),
                    is_cut: false,
                    values: Some(Box::new(self.of(values, depth.in_object()))),
                },
                _ => Part::Type { text: "object".to_string(), note: String::new() },
            };
        }
        if is_beyond {
            return Part::Map { fields: Vec::new(), is_cut: true, values: None };
        }
        let required = schema.get("required").and_then(Json::as_array);
        let is_required =
            |name: &str| required.is_some_and(|required| required.iter().take(LOOKED_AT).any(|one| one == name));
        let field = |(name, schema): (&String, &Json)| Field {
            name: foreign_text::argument(name),
            is_optional: !is_required(name),
            sketch: self.of(schema, depth.in_object()),
        };
        let fields = properties.iter().take(KEYS).map(field).collect();
        let values = values.filter(|values| values.as_object().is_some_and(|keywords| !keywords.is_empty()));
        let values = values.map(|values| Box::new(self.of(values, depth.in_object())));
        Part::Map { fields, is_cut: properties.len() > KEYS, values }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(schema: &Json) -> String {
        Sketch::of(schema, schema).written(Detail::Types, 200)
    }

    #[test]
    fn a_schema_is_shown_as_what_it_describes() {
        let cases = [
            (json!({}), "any"),
            (json!({"type": "string"}), "string"),
            (json!({"const": "mail"}), "\"mail\""),
            (json!({"enum": ["a", 1, null]}), "\"a\"|1"),
            (json!({"type": ["integer", "null"]}), "integer"),
            (json!({"type": ["integer", "string"]}), "integer|string"),
            (
                json!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}, {"type": "null"}]}),
                "string|[string]",
            ),
            (json!({"type": "array"}), "[any]"),
            (json!({"type": "array", "prefixItems": [{"type": "number"}, {"type": "string"}]}), "[number string]"),
            (json!({"type": "object"}), "object"),
            (json!({"type": "object", "additionalProperties": {"type": "integer"}}), "{_ integer}"),
            (
                json!({"type": "object", "required": ["id"], "properties": {
                    "id": {"type": "string"}, "size": {"type": ["integer", "null"]}, "a b": {"type": "boolean"}}}),
                "{:id string :size? integer|nil \"a b\"? boolean}",
            ),
            (json!({"allOf": [{"type": "object", "properties": {"id": {}}}]}), "{:id? any}"),
            (json!({"type": "object", "properties": {"id": {}}, "additionalProperties": {}}), "{:id? any}"),
            (
                json!({"type": "object", "properties": {"id": {}}, "additionalProperties": {"type": "string"}}),
                "{:id? any _ string}",
            ),
        ];
        for (schema, expected) in cases {
            assert_eq!(shown(&schema), expected, "{schema}");
        }
    }

    #[test]
    fn references_are_followed_and_circles_end() {
        let schema = json!({
            "$defs": {"Person": {"type": "object", "properties": {"name": {"type": "string"}, "boss": {"$ref": "#/$defs/Person"}}}},
            "type": "array", "items": {"$ref": "#/$defs/Person"},
        });
        let person = "{:name? string :boss? {:name? string :boss? {:name? string :boss? {…}}}}";
        assert_eq!(shown(&schema), format!("[{person}]"));
        let circle = json!({"$ref": "#"});
        assert_eq!(shown(&circle), "any");
        let lists = json!({"type": "array", "items": {"$ref": "#"}});
        assert_eq!(shown(&lists), format!("{}…{}", "[".repeat(NESTING), "]".repeat(NESTING)));
        let either = json!({"anyOf": [{"type": "string"}, {"$ref": "#"}]});
        assert_eq!(shown(&either), "string|…");
        // Each node expands to eight others: 8^12 without the bound.
        let value =
            json!({"anyOf": (0..8).map(|_| json!({"type": "array", "items": {"$ref": "#"}})).collect::<Vec<_>>()});
        assert!(shown(&value).starts_with("[[["));
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a test may look at the clock")]
    fn hostile_schemas_take_no_time_in_proportion_to_their_expansion() {
        let begun = std::time::Instant::now();
        let (long, many) = ("x".repeat(1 << 20), vec!["object"; 200_000]);
        let wide = |inner: Json| -> Json { (0..16).map(|n| (format!("k{n}"), inner.clone())).collect() };
        let chain = |one: fn(Json) -> Json| {
            let mut definitions = Map::new();
            definitions.insert("a0".into(), json!({}));
            for n in 1..40 {
                definitions.insert(format!("a{n}"), one(json!({"$ref": format!("#/$defs/a{}", n - 1)})));
            }
            json!({"$defs": definitions, "$ref": "#/$defs/a39"})
        };
        let schemas = [
            chain(|one| json!({"properties": {"x": one, "y": one}})),
            chain(|one| json!({"anyOf": [one, one]})),
            chain(|one| json!({"type": "array", "prefixItems": [one, one, one]})),
            json!({"$defs": {"c": {"const": long}}, "anyOf": vec![json!({"properties": wide(json!({"$ref": "#/$defs/c"}))}); 8]}),
            json!({"$defs": {"c": {"type": many, "properties": wide(json!({"$ref": "#/$defs/c"}))}}, "$ref": "#/$defs/c"}),
            json!({"$defs": {"c": {"enum": many, "x": 1}}, "properties": wide(json!({"properties": wide(json!({"$ref": "#/$defs/c"}))}))}),
            json!({"$defs": {"c": {"required": many, "properties": wide(json!({"$ref": "#/$defs/c"}))}}, "$ref": "#/$defs/c"}),
            json!({"$defs": {&long: {}}, "properties": wide(json!({"properties": wide(json!({"$ref": format!("#/$defs/{long}")}))}))}),
            json!({"properties": {&long: {"type": long}}}),
        ];
        for schema in &schemas {
            let sketch = Sketch::of(schema, schema);
            sketch.written(Detail::Types, 400);
            sketch.written(Detail::Keys, 100);
        }
        let text = shown(&json!({"const": "é".repeat(100)}));
        assert_eq!(text, format!("\"{}…", "é".repeat(LITERAL - 1)));
        assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{:?}", begun.elapsed());
    }

    #[test]
    fn what_is_large_is_shortened() {
        let many: Vec<Json> = (0..50).map(Json::from).collect();
        assert_eq!(shown(&json!({"enum": many})), "0|1|2|3|4|5|6|7|…");
        let properties: Map<String, Json> = (0..50).map(|n| (format!("k{n}"), json!({"type": "string"}))).collect();
        let sketch = Sketch::of(&json!({"properties": properties}), &Json::Null);
        assert_eq!(sketch.written(Detail::Types, 60), "{:k0? string :k1? string :k2? string :k3? string …}");
        assert_eq!(sketch.written(Detail::Keys, 60), "{:k0? :k1? :k2? :k3? :k4? :k5? :k6? :k7? …}");
        assert_eq!(sketch.written(Detail::Keys, 10), "{:k0? …}");
        assert_eq!(sketch.written(Detail::Keys, 4), "{…}");
        assert_eq!(sketch.written(Detail::Keys, 2), "{……");
    }

    #[test]
    fn keys_alone_say_what_a_result_has_and_where_types_are_mixed() {
        let page = json!({"type": "object", "required": ["tickets", "page", "totalPages"], "properties": {
            "tickets": {"type": "array", "items": {"type": "object", "required": ["key", "status", "amount"], "properties": {
                "key": {"type": "string"}, "status": {"enum": ["open", "closed"]},
                "amount": {"type": ["number", "string"]}, "assignee": {"type": "string"},
                "due date": {"type": ["string", "null"]}, "labels": {"type": "array", "items": {"type": "string"}},
                "counts": {"type": "object", "additionalProperties": {"type": "integer"}}}}},
            "page": {"type": "integer"}, "totalPages": {"type": "integer"}}});
        let sketch = Sketch::of(&page, &page);
        assert_eq!(
            sketch.written(Detail::Keys, 200),
            "{:tickets [{:key :status \"open\"|\"closed\" :amount number|string :assignee? \"due date\"? :labels? [string] :counts? {_ integer}}] :page :totalPages}"
        );
        assert_eq!(
            sketch.written(Detail::Keys, 100),
            "{:tickets [{:key :status \"open\"|\"closed\" :amount number|string :assignee? …}] :page :totalPages}"
        );
        assert_eq!(sketch.written(Detail::Keys, 36), "{:tickets [{…}] :page :totalPages}");
        assert_eq!(Sketch::of(&json!({"type": "integer"}), &Json::Null).written(Detail::Keys, 80), "integer");
    }

    #[test]
    fn bounds_and_formats_are_noted() {
        let cases = [
            (json!({"type": "string", "format": "email"}), "string(email)"),
            (json!({"type": "string", "format": "date-time", "maxLength": 40}), "string(date-time, ≤40 chars)"),
            (json!({"type": "string", "pattern": "^[A-Z]+-[0-9]+$"}), "string(/^[A-Z]+-[0-9]+$/)"),
            (json!({"type": "string", "maxLength": 100_000}), "string"),
            (json!({"type": "integer", "minimum": 1, "maximum": 100}), "integer(1..100)"),
            (json!({"type": "number", "maximum": 0.5}), "number(≤0.5)"),
            (json!({"type": "integer", "minimum": 0}), "integer"),
            (json!({"type": "integer", "minimum": 5}), "integer(≥5)"),
            (json!({"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 10}), "integer(<10)"),
            (
                json!({"type": "integer", "minimum": -9_007_199_254_740_991_i64, "maximum": 9_007_199_254_740_991_i64}),
                "integer",
            ),
            (json!({"type": "integer", "format": "uint32"}), "integer"),
            (
                json!({"type": "array", "items": {"type": "string", "format": "email"}, "maxItems": 50}),
                "[string(email)](≤50)",
            ),
            (json!({"anyOf": [{"type": "string", "format": "uri"}, {"type": "null"}]}), "string(uri)"),
            (json!({"type": "string", "format": "a b\n(c)"}), "string(\"a b\\n(c)\")"),
        ];
        for (schema, expected) in cases {
            assert_eq!(shown(&schema), expected, "{schema}");
        }
    }
}
