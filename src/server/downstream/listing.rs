//! Tolerant parsing of tool lists in which some tools violate the MCP schema.

use rmcp::model::{ListToolsResult, ServerResult, Tool};
use serde_json::{Value, json};

use crate::lang::internal::foreign_text;
use crate::server::text::cut;

/// Fields that a tool can be read without.
const ORNAMENTS: [&str; 3] = ["title", "icons", "execution"];
/// The annotations that are read.
const HINTS: [&str; 4] = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];
/// Maximum length of a wrong value in a message, in characters.
const VALUE: usize = 60;

/// Parses a reply to `tools/list` tool by tool. Returns the valid tools, and why the others are left out, a clause
/// each; `None` for a reply that is not a tool list.
pub(super) fn readable(reply: ServerResult) -> Option<(ListToolsResult, Vec<String>)> {
    let ServerResult::CustomResult(reply) = reply else { return None };
    let Value::Object(mut fields) = reply.0 else { return None };
    let Some(Value::Array(items)) = fields.insert("tools".to_owned(), json!([])) else { return None };
    let mut list: ListToolsResult = serde_json::from_value(Value::Object(fields)).ok()?;
    let mut left_out = Vec::new();
    for item in items {
        match read(&item) {
            Ok(tool) => list.tools.push(tool),
            Err(problem) => left_out.push(problem),
        }
    }
    Some((list, left_out))
}

fn read(item: &Value) -> Result<Tool, String> {
    let mut plain = item.clone();
    if let Value::Object(fields) = &mut plain {
        ORNAMENTS.iter().for_each(|name| drop(fields.remove(*name)));
        // It says who may call the tool.
        if !fields.get("_meta").is_some_and(Value::is_object) {
            fields.remove("_meta");
        }
    }
    let read = serde_json::from_value(item.clone()).or_else(|_| serde_json::from_value(plain));
    read.map_err(|problem: serde_json::Error| {
        let problem = fault(item).unwrap_or_else(|| problem.to_string());
        match item.get("name").and_then(Value::as_str) {
            Some(name) => format!("the tool {} is left out: {problem}", foreign_text::name(name)),
            None => format!("a tool without a name is left out: {problem}"),
        }
    })
}

/// Describes the first field of a tool that violates the MCP schema.
fn fault(tool: &Value) -> Option<String> {
    let is_hint = |value: &Value| value.is_boolean() || value.is_null();
    let is_text = |value: &Value| value.is_string() || value.is_null();
    let is_object = |value: &Value| value.is_object() || value.is_null();
    let wrong = |field: &str, expected: &str, value: Option<&Value>| {
        let came = value.map_or("nothing".to_owned(), |value| cut(&foreign_text::json(value), VALUE));
        Some(format!("expected {expected} as `{field}`, got {came}"))
    };
    let field = |name: &str| tool.get(name);
    if !tool.is_object() {
        return wrong("tools[]", "an object", Some(tool));
    }
    if !field("name").is_some_and(Value::is_string) {
        return wrong("name", "a string", field("name"));
    }
    if !field("description").is_none_or(is_text) {
        return wrong("description", "a string", field("description"));
    }
    if !field("inputSchema").is_some_and(Value::is_object) {
        return wrong("inputSchema", "an object", field("inputSchema"));
    }
    if !field("outputSchema").is_none_or(is_object) {
        return wrong("outputSchema", "an object", field("outputSchema"));
    }
    let annotations = field("annotations")?;
    if !is_object(annotations) {
        return wrong("annotations", "an object", Some(annotations));
    }
    let wrong_hint = HINTS.iter().find(|hint| !annotations.get(**hint).is_none_or(is_hint))?;
    wrong(&format!("annotations.{wrong_hint}"), "`true` or `false`", annotations.get(wrong_hint))
}

#[cfg(test)]
mod tests {
    use rmcp::model::CustomResult;

    use super::*;

    fn of(tools: Value) -> Option<(Vec<String>, Vec<String>)> {
        let reply = ServerResult::CustomResult(CustomResult::new(json!({"tools": tools, "nextCursor": "2"})));
        let (list, left_out) = readable(reply)?;
        assert_eq!(list.next_cursor.as_deref(), Some("2"));
        Some((list.tools.into_iter().map(|tool| tool.name.into_owned()).collect(), left_out))
    }

    #[test]
    fn tools_that_cannot_be_read_are_left_out_alone() {
        let schema = json!({"type": "object"});
        let good = json!({"name": "good", "inputSchema": schema});
        for (tool, problem) in [
            (
                json!({"name": "x", "inputSchema": schema, "annotations": {"destructiveHint": "true"}}),
                "the tool x is left out: expected `true` or `false` as `annotations.destructiveHint`, got \"true\"",
            ),
            (
                json!({"name": "x", "inputSchema": schema, "annotations": {"readOnlyHint": 1}}),
                "the tool x is left out: expected `true` or `false` as `annotations.readOnlyHint`, got 1",
            ),
            (
                json!({"name": "x", "inputSchema": schema, "annotations": true}),
                "the tool x is left out: expected an object as `annotations`, got true",
            ),
            (
                json!({"name": "x", "inputSchema": true}),
                "the tool x is left out: expected an object as `inputSchema`, got true",
            ),
            (json!({"name": "x"}), "the tool x is left out: expected an object as `inputSchema`, got nothing"),
            (
                json!({"name": "x", "inputSchema": schema, "outputSchema": []}),
                "the tool x is left out: expected an object as `outputSchema`, got []",
            ),
            (
                json!({"name": "x", "inputSchema": schema, "description": 5}),
                "the tool x is left out: expected a string as `description`, got 5",
            ),
            (
                json!({"inputSchema": schema}),
                "a tool without a name is left out: expected a string as `name`, got nothing",
            ),
            (
                json!({"name": 5, "inputSchema": schema}),
                "a tool without a name is left out: expected a string as `name`, got 5",
            ),
            (json!("x"), "a tool without a name is left out: expected an object as `tools[]`, got \"x\""),
        ] {
            let read = of(json!([tool, good])).expect("a list");
            assert_eq!(read, (vec!["good".to_owned()], vec![problem.to_owned()]), "{tool}");
        }
        let ornate = json!({"name": "x", "title": 5, "icons": "none", "_meta": [], "inputSchema": schema});
        assert_eq!(of(json!([ornate])), Some((vec!["x".to_owned()], Vec::new())));
        assert_eq!(of(json!({"x": good})), None);
    }
}
