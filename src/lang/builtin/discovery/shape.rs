//! The shape that a JSON Schema describes, in a few words: `{:id string :labels [string] :size? integer}`.

use crate::lang::value::map::is_plain_keyword;
use serde_json::{Map, Value as Json};

/// How deep objects are shown.
const DEEPEST: usize = 3;
/// How many keys of an object are shown, and how many values of an enumeration.
const KEYS: usize = 16;
const CHOICES: usize = 8;
/// How many references lead to a schema; more are a circle.
const REFERENCES: usize = 8;
/// How long a value is that stands for itself, in characters.
const LITERAL: usize = 40;

/// What a schema describes, at most about so many characters long, its references looked up in `root`. The second is
/// true if nil is one of the values.
pub fn shape(schema: &Json, root: &Json, width: usize) -> (String, bool) {
    let (text, has_nil) = Shapes { root }.of(schema, 0);
    (cut(text, width), has_nil)
}

/// A value as it stands in a schema: a default, one of several choices.
pub fn literal(value: &Json) -> String {
    cut(value.to_string(), LITERAL)
}

/// The beginning of a text that is too long.
pub fn cut(text: String, width: usize) -> String {
    match text.char_indices().nth(width) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

struct Shapes<'a> {
    root: &'a Json,
}

impl Shapes<'_> {
    fn of(&self, schema: &Json, depth: usize) -> (String, bool) {
        let schema = self.meant(schema);
        if let Some(value) = schema.get("const") {
            return (literal(value), value.is_null());
        }
        if let Some(choices) = schema.get("enum").and_then(Json::as_array) {
            let values: Vec<&Json> = choices.iter().filter(|value| !value.is_null()).collect();
            let mut shown: Vec<String> = values.iter().take(CHOICES).map(|value| literal(value)).collect();
            if values.len() > CHOICES {
                shown.push("…".to_string());
            }
            return (shown.join("|"), values.len() < choices.len());
        }
        if let Some(several) = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(*key)).and_then(Json::as_array) {
            return self.one_of(several.iter(), depth);
        }
        match schema.get("type") {
            Some(Json::Array(names)) => {
                let each: Vec<Json> = names.iter().map(|name| with_type(schema, name)).collect();
                self.one_of(each.iter(), depth)
            }
            Some(Json::String(name)) => self.typed(schema, name, depth),
            _ if schema.get("properties").is_some() => self.typed(schema, "object", depth),
            _ => match schema.get("allOf").and_then(Json::as_array).and_then(|all| all.first()) {
                Some(first) => self.of(first, depth),
                None => ("any".to_string(), false),
            },
        }
    }

    /// The schema itself, or what it refers to in the same document.
    fn meant<'s>(&'s self, mut schema: &'s Json) -> &'s Json {
        for _ in 0..REFERENCES {
            let reference = schema.get("$ref").and_then(Json::as_str).and_then(|reference| reference.strip_prefix('#'));
            match reference.and_then(|pointer| self.root.pointer(pointer)) {
                Some(other) => schema = other,
                None => return schema,
            }
        }
        &Json::Null
    }

    /// Several shapes, each once; nil is said apart.
    fn one_of<'s>(&self, schemas: impl Iterator<Item = &'s Json>, depth: usize) -> (String, bool) {
        let mut shown: Vec<String> = Vec::new();
        let mut has_nil = false;
        for (text, nil) in schemas.take(CHOICES).map(|schema| self.of(schema, depth)) {
            has_nil |= nil || text == "nil";
            if text != "nil" && !shown.contains(&text) {
                shown.push(text);
            }
        }
        (if shown.is_empty() { "any".to_string() } else { shown.join("|") }, has_nil)
    }

    fn typed(&self, schema: &Json, name: &str, depth: usize) -> (String, bool) {
        match name {
            "null" => ("nil".to_string(), true),
            "array" => {
                let tuple = schema.get("prefixItems").and_then(Json::as_array);
                let items = match tuple {
                    Some(items) => items.iter().take(KEYS).map(|item| self.inside(item, depth)).collect(),
                    None => vec![schema.get("items").map_or("any".to_string(), |item| self.inside(item, depth))],
                };
                (format!("[{}]", items.join(" ")), false)
            }
            "object" => (self.object(schema, depth), false),
            name => (name.to_string(), false),
        }
    }

    fn object(&self, schema: &Json, depth: usize) -> String {
        let none = Map::new();
        let properties = schema.get("properties").and_then(Json::as_object).unwrap_or(&none);
        if properties.is_empty() {
            return match schema.get("additionalProperties").filter(|values| values.is_object()) {
                Some(values) if depth < DEEPEST => format!("{{_ {}}}", self.inside(values, depth + 1)),
                _ => "object".to_string(),
            };
        }
        if depth >= DEEPEST {
            return "{…}".to_string();
        }
        let required = schema.get("required").and_then(Json::as_array);
        let is_required = |name: &str| required.is_some_and(|required| required.iter().any(|one| one == name));
        let mut shown: Vec<String> = properties
            .iter()
            .take(KEYS)
            .map(|(name, schema)| {
                let mark = if is_required(name) { "" } else { "?" };
                format!("{}{mark} {}", key(name), self.inside(schema, depth + 1))
            })
            .collect();
        if properties.len() > KEYS {
            shown.push("…".to_string());
        }
        format!("{{{}}}", shown.join(" "))
    }

    /// The shape of a part, with nil as one of its values.
    fn inside(&self, schema: &Json, depth: usize) -> String {
        match self.of(schema, depth) {
            (text, true) if text != "nil" => format!("{text}|nil"),
            (text, _) => text,
        }
    }
}

fn key(name: &str) -> String {
    if is_plain_keyword(name) { format!(":{name}") } else { Json::from(name).to_string() }
}

/// The same schema for one of its types.
fn with_type(schema: &Json, name: &Json) -> Json {
    let mut schema = schema.clone();
    schema["type"] = name.clone();
    schema
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
    }

    #[test]
    fn what_is_large_is_shortened() {
        let many: Vec<Json> = (0..50).map(Json::from).collect();
        assert_eq!(shown(&json!({"enum": many})), "0|1|2|3|4|5|6|7|…");
        let properties: Map<String, Json> = (0..50).map(|n| (format!("k{n}"), json!({"type": "string"}))).collect();
        assert!(shape(&json!({"properties": properties}), &Json::Null, 60).0.ends_with('…'));
    }
}
