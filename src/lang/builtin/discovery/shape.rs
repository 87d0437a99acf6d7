//! A compact notation for the shape that a JSON Schema describes: `{:id string :labels [string] :size? integer}`.

use crate::foreign_text;
use serde_json::{Map, Value as Json};
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
/// Maximum length of a chain of references; a longer one is taken for a cycle.
const REFERENCES: usize = 8;
/// Maximum length of a reference that is followed, in bytes.
const REFERENCE: usize = 1_000;
/// Maximum length of a literal value, in characters.
const LITERAL: usize = 40;

/// Describes a schema in at most about `width` characters, resolving references in `root`. The flag is true if nil is
/// among the values.
pub fn shape(schema: &Json, root: &Json, width: usize) -> (String, bool) {
    let (text, has_nil) = Shapes { root, left: Cell::new(PARTS) }.of(schema, Depth::default());
    (cut(text, width), has_nil)
}

/// Follows references within the same document. Returns `None` if a reference is dangling or too long, or if the chain
/// exceeds `REFERENCES`.
pub fn meant<'s>(mut schema: &'s Json, root: &'s Json) -> Option<&'s Json> {
    for _ in 0..REFERENCES {
        let reference = schema.get("$ref").and_then(Json::as_str).and_then(|reference| reference.strip_prefix('#'));
        match reference {
            Some(pointer) if pointer.len() > REFERENCE => return None,
            Some(pointer) => schema = root.pointer(pointer)?,
            None => return Some(schema),
        }
    }
    None
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

/// The alternatives of a value, without duplicates; nil is tracked separately.
#[derive(Default)]
struct Choices {
    shown: Vec<String>,
    has_nil: bool,
}

impl Choices {
    fn add(&mut self, text: String) {
        if !self.shown.contains(&text) {
            self.shown.push(text);
        }
    }

    fn add_literal(&mut self, value: &Json) {
        match value {
            Json::Null => self.has_nil = true,
            value => self.add(literal(value)),
        }
    }
}

impl Shapes<'_> {
    fn of(&self, schema: &Json, depth: Depth) -> (String, bool) {
        let mut choices = Choices::default();
        self.add(schema, depth, &mut choices);
        let text = match choices.shown.as_slice() {
            [] if choices.has_nil => "nil".to_string(),
            [] => "any".to_string(),
            shown => shown.join("|"),
        };
        (text, choices.has_nil)
    }

    /// Adds what a schema describes. Nested alternatives are flattened.
    fn add(&self, schema: &Json, depth: Depth, choices: &mut Choices) {
        if depth.parts == NESTING || self.left.get() == 0 {
            return choices.add("…".to_string());
        }
        self.left.set(self.left.get() - 1);
        let depth = Depth { parts: depth.parts + 1, ..depth };
        let schema = meant(schema, self.root).unwrap_or(&Json::Null);
        if let Some(value) = schema.get("const") {
            return choices.add_literal(value);
        }
        if let Some(values) = schema.get("enum").and_then(Json::as_array) {
            let (nils, values): (Vec<&Json>, Vec<&Json>) =
                values.iter().take(LOOKED_AT).partition(|value| value.is_null());
            nils.iter().chain(values.iter().take(CHOICES)).for_each(|value| choices.add_literal(value));
            if values.len() > CHOICES {
                choices.add("…".to_string());
            }
            return;
        }
        if let Some(several) = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(*key)).and_then(Json::as_array) {
            return several.iter().take(CHOICES).for_each(|schema| self.add(schema, depth, choices));
        }
        match schema.get("type") {
            Some(Json::Array(names)) => {
                names.iter().take(CHOICES).for_each(|name| self.add_type(schema, name.as_str(), depth, choices))
            }
            Some(name) => self.add_type(schema, name.as_str(), depth, choices),
            None if schema.get("properties").is_some() => self.add_type(schema, Some("object"), depth, choices),
            None => match schema.get("allOf").and_then(Json::as_array).and_then(|all| all.first()) {
                Some(first) => self.add(first, depth, choices),
                None => choices.add("any".to_string()),
            },
        }
    }

    fn add_type(&self, schema: &Json, name: Option<&str>, depth: Depth, choices: &mut Choices) {
        match name {
            Some("null") => choices.has_nil = true,
            name => choices.add(self.typed(schema, name.unwrap_or("any"), depth)),
        }
    }

    fn typed(&self, schema: &Json, name: &str, depth: Depth) -> String {
        match name {
            "array" => {
                let tuple = schema.get("prefixItems").and_then(Json::as_array);
                let items = match tuple {
                    Some(items) => items.iter().take(KEYS).map(|item| self.inside(item, depth)).collect(),
                    None => vec![schema.get("items").map_or("any".to_string(), |item| self.inside(item, depth))],
                };
                format!("[{}]", items.join(" "))
            }
            "object" => self.object(schema, depth),
            name => foreign_text::name(name).into_owned(),
        }
    }

    fn object(&self, schema: &Json, depth: Depth) -> String {
        let none = Map::new();
        let properties = schema.get("properties").and_then(Json::as_object).unwrap_or(&none);
        let values = schema.get("additionalProperties").filter(|values| values.is_object());
        if properties.is_empty() {
            return match values {
                Some(values) if depth.objects < DEEPEST => format!("{{_ {}}}", self.inside(values, depth.in_object())),
                _ => "object".to_string(),
            };
        }
        if depth.objects >= DEEPEST {
            return "{…}".to_string();
        }
        let required = schema.get("required").and_then(Json::as_array);
        let is_required =
            |name: &str| required.is_some_and(|required| required.iter().take(LOOKED_AT).any(|one| one == name));
        let mut shown: Vec<String> = properties
            .iter()
            .take(KEYS)
            .map(|(name, schema)| {
                let mark = if is_required(name) { "" } else { "?" };
                format!("{}{mark} {}", foreign_text::argument(name), self.inside(schema, depth.in_object()))
            })
            .collect();
        if properties.len() > KEYS {
            shown.push("…".to_string());
        }
        if let Some(values) = values.filter(|values| values.as_object().is_some_and(|keywords| !keywords.is_empty())) {
            shown.push(format!("_ {}", self.inside(values, depth.in_object())));
        }
        format!("{{{}}}", shown.join(" "))
    }

    /// Describes a nested schema, with nil as an explicit alternative.
    fn inside(&self, schema: &Json, depth: Depth) -> String {
        match self.of(schema, depth) {
            (text, true) if text != "nil" => format!("{text}|nil"),
            (text, _) => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(schema: &Json) -> String {
        shape(schema, schema, 200).0
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
            shape(schema, schema, 400);
        }
        let text = shape(&json!({"const": "é".repeat(100)}), &Json::Null, 400).0;
        assert_eq!(text, format!("\"{}…", "é".repeat(LITERAL - 1)));
        assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{:?}", begun.elapsed());
    }

    #[test]
    fn what_is_large_is_shortened() {
        let many: Vec<Json> = (0..50).map(Json::from).collect();
        assert_eq!(shown(&json!({"enum": many})), "0|1|2|3|4|5|6|7|…");
        let properties: Map<String, Json> = (0..50).map(|n| (format!("k{n}"), json!({"type": "string"}))).collect();
        assert!(shape(&json!({"properties": properties}), &Json::Null, 60).0.ends_with('…'));
    }
}
