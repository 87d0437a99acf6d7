//! Schemas that allow null in the way of OpenAPI: `nullable: true` beside a type.
//!
//! JSON Schema does not know the keyword, so that a validator refuses null there.

use serde_json::{Map, Value, json};

/// The keyword, and what generators that do not know it write in its place.
const NULLABLE: [&str; 2] = ["nullable", "x-nullable"];
/// Keywords whose values have names as keys, and those whose values are data.
const NAMING: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];
const DATA: [&str; 5] = ["enum", "const", "default", "examples", "example"];
/// Maximum depth at which the keyword is looked for.
const DEEPEST: usize = 100;

/// Returns a schema in which the keyword is replaced by what it means; `None` if it does not occur.
pub(super) fn with_null(schema: &Value) -> Option<Value> {
    occurs(schema, 0).then(|| replaced(schema, false, 0))
}

fn occurs(value: &Value, depth: usize) -> bool {
    match value {
        _ if depth > DEEPEST => false,
        Value::Array(items) => items.iter().any(|item| occurs(item, depth + 1)),
        Value::Object(fields) => {
            NULLABLE.iter().any(|key| fields.get(*key) == Some(&Value::Bool(true)))
                || fields.values().any(|field| occurs(field, depth + 1))
        }
        _ => false,
    }
}

/// Returns a schema with null where it is allowed; `is_names` is true for an object whose keys are names.
fn replaced(value: &Value, is_names: bool, depth: usize) -> Value {
    match value {
        _ if depth > DEEPEST => value.clone(),
        Value::Array(items) => items.iter().map(|item| replaced(item, false, depth + 1)).collect(),
        Value::Object(fields) => {
            let inner = |(key, field): (&String, &Value)| {
                let is_data = !is_names && DATA.contains(&key.as_str());
                let names = !is_names && NAMING.contains(&key.as_str());
                (key.clone(), if is_data { field.clone() } else { replaced(field, names, depth + 1) })
            };
            let schema: Map<String, Value> = fields.iter().map(inner).collect();
            let is_nullable = !is_names && NULLABLE.iter().any(|key| fields.get(*key) == Some(&Value::Bool(true)));
            if is_nullable { allowing_null(schema) } else { Value::Object(schema) }
        }
        other => other.clone(),
    }
}

/// Adds null to the type of a schema and to its options, or makes null an alternative.
fn allowing_null(mut schema: Map<String, Value>) -> Value {
    let is_plain = ["$ref", "anyOf", "oneOf", "allOf", "not", "const"].iter().all(|key| !schema.contains_key(*key));
    match schema.get_mut("type") {
        Some(kind) if is_plain => {
            let mut kinds = match kind.take() {
                Value::Array(kinds) => kinds,
                one => vec![one],
            };
            if !kinds.iter().any(|kind| kind == "null") {
                kinds.push(json!("null"));
            }
            *kind = Value::Array(kinds);
            if let Some(Value::Array(options)) = schema.get_mut("enum")
                && !options.contains(&Value::Null)
            {
                options.push(Value::Null);
            }
            Value::Object(schema)
        }
        _ => json!({"anyOf": [schema, {"type": "null"}]}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keyword_of_openapi_allows_null() {
        for (schema, expected) in [
            (json!({"type": "string", "nullable": true}), json!({"type": ["string", "null"], "nullable": true})),
            (
                json!({"properties": {"a": {"type": "string", "enum": ["x"], "x-nullable": true}}}),
                json!({"properties": {"a": {"type": ["string", "null"], "enum": ["x", null], "x-nullable": true}}}),
            ),
            (
                json!({"items": {"$ref": "#/$defs/a", "nullable": true}}),
                json!({"items": {"anyOf": [{"$ref": "#/$defs/a", "nullable": true}, {"type": "null"}]}}),
            ),
            (
                json!({"properties": {"nullable": {"type": "string", "nullable": true}}}),
                json!({"properties": {"nullable": {"type": ["string", "null"], "nullable": true}}}),
            ),
        ] {
            assert_eq!(with_null(&schema), Some(expected));
        }
        assert_eq!(with_null(&json!({"type": "string", "nullable": false})), None);
        let of_name = json!({"properties": {"nullable": {"type": "string"}}});
        assert_eq!(with_null(&of_name), None);
    }
}
