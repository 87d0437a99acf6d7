//! What is said of arguments that do not fit.

use serde_json::json;

use super::*;

fn tool(schema: Value) -> CheckedTool {
    let tool = Tool { server: "mail".into(), name: "search".into(), input_schema: schema, ..Tool::default() };
    checked(vec![Arc::new(tool)]).remove(0).into_checked()
}

impl CheckedTool {
    fn into_checked(self: Arc<Self>) -> CheckedTool {
        CheckedTool { tool: Arc::clone(&self.tool), validator: OnceLock::new() }
    }
}

fn search() -> CheckedTool {
    tool(json!({
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "limit": {"type": "integer", "minimum": 1},
            "order": {"enum": ["newest", "oldest"]},
            "since": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "labels": {"type": "array", "items": {"type": "object", "required": ["name"],
                       "properties": {"name": {"type": "string"}}}}
        },
        "required": ["query"]
    }))
}

fn problem(tool: &CheckedTool, arguments: &str) -> (String, Option<String>) {
    let error = tool.check(arguments).expect_err(arguments);
    assert_eq!(error.kind, ToolErrorKind::Arguments);
    (error.message, error.suggestion)
}

#[test]
fn errors_name_the_argument() {
    let cases = [
        ("{}", "`mail/search` needs the argument `query` (string)", None),
        (
            r#"{"qurey": "x"}"#,
            "`mail/search` has no argument `qurey`; it takes `query`, `limit`, `order`, `since`, `labels`",
            Some("Did you mean query?"),
        ),
        (
            r#"{"query": "x", "limit": "ten"}"#,
            "argument `limit` of `mail/search`: expected integer, got the text \"ten\"",
            None,
        ),
        (
            r#"{"query": "x", "limit": 0}"#,
            "argument `limit` of `mail/search`: expected at least `1`, got the number `0`",
            None,
        ),
        (
            r#"{"query": "x", "order": "newst"}"#,
            "argument `order` of `mail/search`: expected one of `\"newest\"`, `\"oldest\"`, got the text \"newst\"",
            Some("Did you mean \"newest\"?"),
        ),
        (
            r#"{"query": "x", "since": 5}"#,
            "argument `since` of `mail/search`: expected string or null, got the number `5`",
            None,
        ),
        (
            r#"{"query": "x", "labels": [{"name": 1}]}"#,
            "argument `labels[0].name` of `mail/search`: expected string, got the number `1`",
            None,
        ),
        (r#"{"query": "x", "labels": [{}]}"#, "`mail/search` needs the argument `name` in `labels[0]`", None),
        (r#"{"query": null}"#, "argument `query` of `mail/search`: expected string, got null", None),
        ("[1]", "the arguments of `mail/search` are a map, not an array of 1", None),
        ("{", "the arguments of `mail/search` cannot be said in JSON", None),
    ];
    for (arguments, message, suggestion) in cases {
        let expected = (message.to_owned(), suggestion.map(str::to_owned));
        assert_eq!(problem(&search(), arguments), expected, "{arguments}");
    }
    let deep = format!("{{\"query\":{}{}}}", "[".repeat(200), "]".repeat(200));
    assert_eq!(
        problem(&search(), &deep).0,
        "the arguments of `mail/search` are nested 201 levels deep; at most 100 can be sent"
    );
}

#[test]
fn null_means_not_given() {
    let sent = search().check(r#"{"query": "x", "limit": null, "since": null}"#).expect("right");
    assert_eq!(Value::Object(sent), json!({"query": "x", "since": null}));
}

#[test]
fn arguments_that_the_schema_does_not_mention() {
    let sent = search().check(r#"{"query": "x", "something": 1}"#).expect("passed on");
    assert!(sent.contains_key("something"));
    let closed = tool(json!({"type": "object", "properties": {}, "additionalProperties": false}));
    assert_eq!(problem(&closed, r#"{"a": 1}"#).0, "`mail/search` has no argument `a`; it takes none");
    let open = tool(json!({"type": "object", "properties": {"name": {}}, "additionalProperties": true}));
    assert!(open.check(r#"{"nam": 1}"#).is_ok());
}

#[test]
fn schemas_that_make_no_sense_do_not_stand_in_the_way() {
    for schema in [
        json!({}),
        json!(null),
        json!({"type": 5}),
        json!({"$ref": "#"}),
        json!({"$ref": "https://example.org/other.json"}),
        json!({"properties": {"a": {"pattern": "(?=x)"}}}),
        json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/missing"}}}),
    ] {
        assert!(tool(schema.clone()).check(r#"{"a": "b"}"#).is_ok(), "{schema}");
    }
}
