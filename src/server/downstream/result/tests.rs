//! Unwrapping of tool results.

use std::sync::Arc;

use crate::server::downstream::blobs::Blobs;

use super::*;

fn tool(output_schema: Option<Value>) -> Tool {
    Tool { server: "files".into(), name: "read".into(), input_schema: json!({}), output_schema, ..Tool::default() }
}

/// The reply to a result that is given as JSON, formatted as `json:…` or `text:…`.
fn reply(result: Value, output_schema: Option<Value>) -> String {
    reply_and_note(result, output_schema).0
}

/// The reply as [`reply`] formats it, and the note on it.
fn reply_and_note(result: Value, output_schema: Option<Value>) -> (String, Option<String>) {
    let result: CallToolResult = serde_json::from_value(result).expect("a result");
    let blobs = Arc::<Blobs>::default().of("ann");
    let (reply, note) = match unwrap(result, &tool(output_schema), &blobs, &Secrets::default()) {
        Ok((reply, note)) => (Ok(reply), note),
        Err(error) => (Err(error), None),
    };
    let text = match reply {
        Ok(ToolReply::Json(text)) => match text.split_once("lispbox://blob/") {
            Some((before, after)) => {
                let (random, after) = after.split_at(32);
                let blob = blobs.find(&format!("lispbox://blob/{random}")).expect("kept");
                format!("json:{before}{}{after}", blob.data)
            }
            None => format!("json:{text}"),
        },
        Ok(ToolReply::Text(text)) => format!("text:{text}"),
        Ok(other) => format!("{other:?}"),
        Err(error) => format!("{}:{}", error.kind.code(), error.message),
    };
    (text, note)
}

#[test]
fn results_lose_their_wrapping() {
    let text = |text: &str| json!({"type": "text", "text": text});
    let cases = [
        (json!({"content": [text("x")], "structuredContent": {"a": [1]}}), "json:{\"a\":[1]}"),
        (json!({"content": [text("{\"a\": 1}")]}), "json:{\"a\": 1}"),
        (json!({"content": [text(" [1, 2]\n")]}), "json: [1, 2]\n"),
        (json!({"content": [text("{not json}")]}), "text:{not json}"),
        (json!({"content": [text("42")]}), "text:42"),
        (json!({"content": [text("true")]}), "text:true"),
        (json!({"content": [text("\"hello\"")]}), "json:\"hello\""),
        (json!({"content": [text("\"a\\nb\"\n")]}), "json:\"a\\nb\"\n"),
        (json!({"content": [text("\"a\" and \"b\"")]}), "text:\"a\" and \"b\""),
        (json!({"content": [text("a"), text("\"b\"")]}), "json:[\"a\",\"b\"]"),
        (json!({"content": [text("")]}), "text:"),
        (json!({"content": []}), "json:null"),
        (json!({"content": [text("a"), text("[1]")]}), "json:[\"a\",[1]]"),
        (
            json!({"content": [{"type": "image", "mimeType": "image/png", "data": "QUJDRA=="}]}),
            "json:{\"type\":\"image\",\"mimeType\":\"image/png\",\"bytes\":4,\"blob\":\"QUJDRA==\"}",
        ),
        (
            json!({"content": [{"type": "resource", "resource": {"uri": "x:y", "blob": "QUJD"}}]}),
            "json:{\"type\":\"resource\",\"uri\":\"x:y\",\"bytes\":3,\"blob\":\"QUJD\"}",
        ),
        (
            json!({"content": [text("see"), {"type": "resource_link", "uri": "file:///a", "name": "a"}]}),
            "json:[\"see\",{\"type\":\"resource_link\",\"uri\":\"file:///a\",\"name\":\"a\"}]",
        ),
        (
            json!({"content": [{"type": "resource", "resource": {"uri": "x:y", "mimeType": "text/plain", "text": "t"}}]}),
            "json:{\"type\":\"resource\",\"uri\":\"x:y\",\"mimeType\":\"text/plain\",\"text\":\"t\"}",
        ),
        (json!({"content": [text("no such file")], "isError": true}), "ToolError:`files/read` failed: no such file"),
        (json!({"content": [], "isError": true}), "ToolError:`files/read` failed: it gave no reason"),
    ];
    for (result, expected) in cases {
        assert_eq!(reply(result.clone(), None), expected, "{result}");
    }
}

#[test]
fn a_wrapped_scalar_is_itself() {
    let result = json!({"content": [], "structuredContent": {"result": 3}});
    assert_eq!(reply(result.clone(), None), "json:{\"result\":3}");
    let python = json!({"type": "object", "properties": {"result": {}}, "title": "readOutput"});
    assert_eq!(reply(result.clone(), Some(python)), "json:3");
    assert_eq!(reply(result.clone(), Some(json!({"x-fastmcp-wrap-result": true}))), "json:3");
    let own = json!({"type": "object", "properties": {"result": {}}, "title": "Sum"});
    assert_eq!(reply(result, Some(own)), "json:{\"result\":3}");
}

#[test]
fn a_wrapped_text_is_read_as_a_text_is() {
    let schema = |title: &str| json!({"type": "object", "properties": {"result": {"type": "string"}}, "title": title});
    let wrapped = |text: &str| json!({"content": [], "structuredContent": {"result": text}});
    for schema in [schema("readOutput"), schema("Rows"), json!({"x-fastmcp-wrap-result": true})] {
        assert_eq!(reply(wrapped("[{\"id\": 1}]"), Some(schema.clone())), "json:[{\"id\": 1}]");
        assert_eq!(reply(wrapped("hello"), Some(schema.clone())), "text:hello");
        assert_eq!(reply(wrapped("42"), Some(schema)), "text:42");
    }
    assert_eq!(promised(&tool(Some(schema("readOutput")))), None);
    let number = json!({"properties": {"result": {"type": "number"}}, "title": "readOutput"});
    assert_eq!(promised(&tool(Some(number))), Some(json!({"type": "number"})));
}

#[test]
fn json_as_javascript_and_python_write_it_is_data() {
    let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
    assert_eq!(reply(text(r#"{"a": "cut \ud83d", "n": 7}"#), None), r#"json:{"a": "cut \ufffd", "n": 7}"#);
    assert_eq!(reply(text("[-Infinity, NaN, 2]"), None), "json:[null, null, 2]");
    assert_eq!(reply(text("[{'id': 1, 'due': None}]"), None), "json:[{\"id\":1,\"due\":null}]");
    assert_eq!(reply(text("NaN"), None), "text:NaN");
    assert_eq!(reply(text("[NaN of them]"), None), "text:[NaN of them]");
    assert_eq!(reply(text("\u{feff}{\"a\": 1}"), None), "json:{\"a\": 1}");
    assert_eq!(reply(text("\u{feff}hello"), None), "text:\u{feff}hello");
}

#[test]
fn a_note_says_how_a_text_was_read_that_is_not_quite_json() {
    let note = |content: &[&str]| {
        let blocks: Vec<Value> = content.iter().map(|text| json!({"type": "text", "text": text})).collect();
        reply_and_note(json!({ "content": blocks }), None).1.unwrap_or_default()
    };
    let python = "its text was read as data, in the notation of Python";
    let forgiven = "its JSON has NaN, Infinity or half a character, which were read as nil and U+FFFD";
    assert_eq!(note(&["{\"a\": 1}"]), "");
    assert_eq!(note(&["hello"]), "");
    assert_eq!(note(&["[{'id': 1, 'due': None}]"]), python);
    assert_eq!(note(&["[{'id': 1}]", "[{'id': 2}]", "[NaN]"]), format!("{python}; {forgiven}"));
    let meta = json!({"lispbox/dropped": ["isError", "call mail/send"]});
    let dropped = reply_and_note(json!({"content": [], "_meta": meta}), None).1;
    assert_eq!(dropped.as_deref(), Some("parts of the reply are not valid MCP and were left out: isError"));
}

#[test]
fn json_of_any_depth_is_recognised_without_recursion() {
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    assert!(is_json(&deep));
    assert_eq!(embedded(deep.clone(), &mut Notes::default()), Value::String(deep));
}
