//! Error messages for arguments that do not fit.

use std::time::Duration;

use serde_json::json;

use super::*;

fn tool(schema: Value) -> CheckedTool {
    let tool = Tool { server: "mail".into(), name: "search".into(), input_schema: schema, ..Tool::default() };
    CheckedTool::new(Arc::new(tool), Standing::default())
}

fn search() -> CheckedTool {
    tool(json!({
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "limit": {"type": "integer", "minimum": 1},
            "order": {"enum": ["newest", "oldest"]},
            "since": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "exact": {"type": "boolean"},
            "score": {"type": "number"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "filter": {"anyOf": [{"type": "object", "properties": {"from": {"type": "string"}, "to": {"type": "string"}}},
                                 {"type": "null"}]},
            "labels": {"type": "array", "items": {"type": "object", "required": ["name"],
                       "properties": {"name": {"type": "string"}, "size": {"type": "integer"}}}}
        },
        "required": ["query"]
    }))
}

fn check(tool: &CheckedTool, arguments: &str) -> Result<(Map<String, Value>, Option<String>), ToolError> {
    let checked = tool.check(&Schemas::default(), arguments, Instant::now() + Duration::from_secs(60))?;
    assert_eq!(checked.unchecked, None);
    Ok((checked.arguments, checked.note))
}

fn problem(tool: &CheckedTool, arguments: &str) -> (String, Option<String>) {
    let error = check(tool, arguments).expect_err(arguments);
    assert_eq!(error.kind, ToolErrorKind::Arguments);
    (error.message, error.suggestion)
}

#[test]
fn an_argument_that_is_not_accepted_can_be_given_and_is_not_shown() {
    let schema = |names: &[&str]| -> Value {
        let properties: Map<String, Value> = names.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
        json!({"type": "object", "properties": properties, "additionalProperties": false})
    };
    let standing = Standing { pinned_schema: Some(schema(&["q"])), ..Standing::default() };
    let listed =
        Tool { server: "docs".into(), name: "search".into(), input_schema: schema(&["q", "n"]), ..Tool::default() };
    let tool = CheckedTool::new(Arc::new(listed), standing);
    assert_eq!(tool.shown("ann").input_schema, schema(&["q"]));
    tool.learn("ann", &ToolReply::Json(r#"{"title": "x"}"#.to_owned()));
    assert_eq!(tool.shown("ann").input_schema, schema(&["q"]));
    assert!(check(&tool, r#"{"q": 1, "n": 2}"#).is_ok());
    assert!(check(&tool, r#"{"q": 1, "m": 2}"#).is_err());
}

#[test]
fn errors_name_the_argument() {
    let cases = [
        ("{}", "`mail/search` needs the argument `query` (string)", None),
        (
            r#"{"qurey": "x"}"#,
            "`mail/search` has no argument `qurey`; it takes `query`, `limit`, `order`, `since`, `exact`, `score`, `tags`, `filter`, `labels`",
            Some("Did you mean query?"),
        ),
        (
            r#"{"query": "x", "limit": "ten"}"#,
            "argument `limit` of `mail/search`: expected integer, got the string \"ten\"",
            None,
        ),
        (
            r#"{"query": "x", "limit": 0}"#,
            "argument `limit` of `mail/search`: expected at least `1`, got the number `0`",
            None,
        ),
        (
            r#"{"query": "x", "order": "newst"}"#,
            "argument `order` of `mail/search`: expected one of `\"newest\"`, `\"oldest\"`, got the string \"newst\"",
            Some("Did you mean \"newest\"?"),
        ),
        (
            r#"{"query": "x", "since": true}"#,
            "argument `since` of `mail/search`: expected string or null, got the boolean `true`",
            None,
        ),
        (
            r#"{"query": "x", "labels": [{"name": 1.5}]}"#,
            "argument `labels[0].name` of `mail/search`: expected string, got the number `1.5`",
            None,
        ),
        (
            r#"{"query": "x", "labels": [{}]}"#,
            "`mail/search` needs the argument `name` in `labels[0]`; it has the keys `name`, `size?`",
            None,
        ),
        (r#"{"query": null}"#, "argument `query` of `mail/search`: expected string, got null", None),
        ("[1]", "the arguments of `mail/search` must be a map, not an array of 1", None),
        ("{", "the arguments of `mail/search` cannot be expressed as JSON", None),
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
    let cases = [
        (
            r#"{"query": "x", "limit": null, "since": null}"#,
            json!({"query": "x", "since": null}),
            "limit was nil, left out",
        ),
        (
            r#"{"query": "x", "labels": [{"name": "a", "size": null}, {"name": "b", "size": 2}]}"#,
            json!({"query": "x", "labels": [{"name": "a"}, {"name": "b", "size": 2}]}),
            "labels[0].size was nil, left out",
        ),
        (
            r#"{"query": "x", "filter": {"from": null, "to": "b"}}"#,
            json!({"query": "x", "filter": {"to": "b"}}),
            "filter.from was nil, left out",
        ),
    ];
    for (arguments, sent, left_out) in cases {
        let (arguments, note) = check(&search(), arguments).expect("right");
        assert_eq!((Value::Object(arguments), note), (sent, Some(left_out.to_owned())));
    }
}

#[test]
fn what_plainly_means_something_that_fits_is_changed_into_it() {
    let cases = [
        (r#"{"query": 5}"#, json!({"query": "5"}), "query was 5, sent as \"5\""),
        (r#"{"query": "x", "limit": "5"}"#, json!({"query": "x", "limit": 5}), "limit was \"5\", sent as 5"),
        (r#"{"query": "x", "limit": 5.0}"#, json!({"query": "x", "limit": 5}), "limit was 5.0, sent as 5"),
        (r#"{"query": "x", "since": 5}"#, json!({"query": "x", "since": "5"}), "since was 5, sent as \"5\""),
        (
            r#"{"query": "x", "exact": "true"}"#,
            json!({"query": "x", "exact": true}),
            "exact was \"true\", sent as true",
        ),
        (
            r#"{"query": "x", "score": "-2.5"}"#,
            json!({"query": "x", "score": -2.5}),
            "score was \"-2.5\", sent as -2.5",
        ),
        (
            r#"{"query": "x", "tags": "a b"}"#,
            json!({"query": "x", "tags": ["a b"]}),
            "tags was \"a b\", sent as [\"a b\"]",
        ),
        (
            r#"{"query": "x", "tags": [1, "b"]}"#,
            json!({"query": "x", "tags": ["1", "b"]}),
            "tags[0] was 1, sent as \"1\"",
        ),
        (
            r#"{"query": "x", "labels": {"name": "a"}}"#,
            json!({"query": "x", "labels": [{"name": "a"}]}),
            "labels was {\"name\":\"a\"}, sent as [{\"name\":\"a\"}]",
        ),
        (
            r#"{"query": 1, "tags": [1, 2, 3]}"#,
            json!({"query": "1", "tags": ["1", "2", "3"]}),
            "query was 1, sent as \"1\", tags[0] was 1, sent as \"1\", tags[1] was 2, sent as \"2\", and 1 more",
        ),
    ];
    for (arguments, sent, note) in cases {
        let (arguments, said) = check(&search(), arguments).expect(arguments);
        assert_eq!((Value::Object(arguments), said.as_deref()), (sent, Some(note)));
    }
}

#[test]
fn what_may_mean_something_else_stays_an_error() {
    for arguments in [
        r#"{"query": "x", "limit": "05"}"#,
        r#"{"query": "x", "limit": "5 "}"#,
        r#"{"query": "x", "limit": "5.5"}"#,
        r#"{"query": "x", "limit": 5.5}"#,
        r#"{"query": "x", "score": "1e3"}"#,
        r#"{"query": "x", "exact": "yes"}"#,
        r#"{"query": "x", "exact": 1}"#,
        r#"{"query": 1.5}"#,
        r#"{"query": true}"#,
        r#"{"query": "x", "tags": "a, b"}"#,
        r#"{"query": "x", "limit": "0"}"#,
        r#"{"query": null}"#,
    ] {
        problem(&search(), arguments);
    }
    let many = format!(r#"{{"query": "x", "tags": [{}]}}"#, vec!["1"; 1_000].join(","));
    assert!(problem(&search(), &many).0.contains("expected string, got the number `1`"));
}

#[test]
fn arguments_that_the_schema_does_not_mention() {
    let sent = check(&search(), r#"{"query": "x", "something": 1}"#).expect("passed on");
    assert!(sent.0.contains_key("something"));
    let closed = tool(json!({"type": "object", "properties": {}, "additionalProperties": false}));
    assert_eq!(problem(&closed, r#"{"a": 1}"#).0, "`mail/search` has no argument `a`; it takes none");
    let open = tool(json!({"type": "object", "properties": {"name": {}}, "additionalProperties": true}));
    assert!(check(&open, r#"{"nam": 1}"#).is_ok());
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
        assert!(check(&tool(schema.clone()), r#"{"a": "b"}"#).is_ok(), "{schema}");
    }
}

#[test]
fn numbers_that_would_be_rounded_are_not_sent() {
    let (message, suggestion) = problem(&search(), r#"{"query": "x", "score": 12345678901234567890123}"#);
    assert_eq!(
        message,
        "the arguments of `mail/search`: at score: readers of JSON would round the number 12345678901234567890123"
    );
    assert_eq!(suggestion.as_deref(), Some("pass it as a string, or round it yourself, for example with `double`"));
    let (sent, _) = check(&search(), r#"{"query": "x", "score": 0.1}"#).expect("a double holds it");
    assert_eq!(sent["score"], json!(0.1));
}

#[test]
fn errors_name_the_keys_of_an_object_and_the_alternatives() {
    let place = json!({"type": "object", "required": ["dateTime"],
        "properties": {"timeZone": {"type": "string"}, "dateTime": {"type": "string"}}});
    let event = tool(json!({"type": "object", "$defs": {"place": place}, "properties": {
        "start": {"$ref": "#/$defs/place"}, "end": {"anyOf": [{"type": "object", "properties": {"at": {}}}, {"type": "null"}]}}}));
    let keys = "`dateTime`, `timeZone?`";
    assert_eq!(
        problem(&event, r#"{"start": "noon"}"#).0,
        format!("argument `start` of `mail/search`: expected object with the keys {keys}, got the string \"noon\"")
    );
    assert_eq!(
        problem(&event, r#"{"start": {"timeZone": "UTC"}}"#).0,
        format!("`mail/search` needs the argument `dateTime` in `start`; it has the keys {keys}")
    );
    assert_eq!(
        problem(&event, r#"{"end": 5}"#).0,
        "argument `end` of `mail/search`: expected object with the keys `at?` or null, got the number `5`"
    );
    let either = tool(json!({"type": "object", "oneOf": [
        {"properties": {"kind": {"const": "page"}}, "required": ["kind", "page"]}, {"required": ["id"]}]}));
    assert_eq!(
        problem(&either, r#"{"x": 1}"#).0,
        "the arguments of `mail/search`: expected either `kind = \"page\"`, `page`, or `id`, got `x`"
    );
}

#[test]
fn null_in_place_of_the_name_of_a_thing_is_an_error() {
    for name in ["customer_id", "customerId", "id", "thread-ids"] {
        let tool = tool(json!({"type": "object", "properties": {name: {"type": "string"}}}));
        let (message, _) = problem(&tool, &json!({name: null}).to_string());
        assert_eq!(message, format!("argument `{name}` of `mail/search`: expected string, got null"));
    }
    let tool = tool(json!({"type": "object", "properties": {"paid": {"type": "string"}, "grid": {"type": "string"}}}));
    let (arguments, note) = check(&tool, r#"{"paid": null, "grid": null}"#).expect("it fits");
    assert_eq!((arguments.len(), note.as_deref()), (0, Some("paid was nil, left out, grid was nil, left out")));
}

#[test]
fn null_is_sent_where_it_is_allowed_and_otherwise_its_omission_is_noted() {
    let tool = tool(json!({"type": "object", "properties": {
        "due": {"type": "string", "nullable": true}, "limit": {"type": "integer"}}}));
    assert_eq!(
        check(&tool, r#"{"due": null, "limit": null}"#).expect("it fits"),
        (json!({"due": null}).as_object().cloned().unwrap_or_default(), Some("limit was nil, left out".to_owned()))
    );
}
