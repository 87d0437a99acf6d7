//! Tests of replies with odd optional parts.

use rmcp::RoleClient;
use rmcp::model::ServerJsonRpcMessage;

use super::*;

fn read_text(text: &str) -> Result<ServerJsonRpcMessage, String> {
    read::<RoleClient>(text.as_bytes(), Waits::Nobody).map_err(|problem| problem.to_string())
}

/// The reply to request 1 with this `result`, as it is read: the name of its type and its JSON.
fn result(result: &str) -> (&'static str, Value) {
    let message = read_text(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#)).expect(result);
    let JsonRpcMessage::Response(response) = message else { panic!("no response: {message:?}") };
    let kind = match &response.result {
        ServerResult::CallToolResult(_) => "call",
        ServerResult::InitializeResult(_) => "initialize",
        ServerResult::ListToolsResult(_) => "tools",
        ServerResult::EmptyResult(_) => "empty",
        _ => "other",
    };
    (kind, serde_json::to_value(response.result).expect("JSON"))
}

/// The texts of a call's result.
fn texts(text: &str) -> Vec<String> {
    let (kind, value) = result(text);
    assert_eq!(kind, "call", "{text}");
    let blocks = value["content"].as_array().cloned().unwrap_or_default();
    blocks.iter().map(|block| block["text"].as_str().unwrap_or("?").to_owned()).collect()
}

#[test]
fn ornaments_do_not_void_a_result() {
    for odd in [
        r#""annotations":{"audience":["system"]}"#,
        r#""annotations":[]"#,
        r#""annotations":null"#,
        r#""annotations":5"#,
        r#""annotations":{"lastModified":"yesterday","priority":5}"#,
        r#""_meta":[]"#,
        r#""_meta":"x""#,
    ] {
        let reply = format!(r#"{{"content":[{{"type":"text","text":"hello",{odd}}}]}}"#);
        assert_eq!(texts(&reply), ["hello"], "{odd}");
    }
    for odd in [
        r#""_meta":[]"#,
        r#""isError":null"#,
        r#""isError":"false""#,
        r#""structuredContent":null"#,
        r#""structuredContent":{}"#,
    ] {
        let reply = format!(r#"{{"content":[{{"type":"text","text":"hello"}}],{odd}}}"#);
        assert_eq!(texts(&reply), ["hello"], "{odd}");
        assert_eq!(result(&reply).1.get("structuredContent"), None, "{odd}");
    }
}

#[test]
fn content_is_read_in_any_form() {
    for (content, expected) in [
        (r#""hello""#, vec!["hello"]),
        ("null", vec![]),
        (r#"{"type":"text","text":"hello"}"#, vec!["hello"]),
        (r#"["a",5,null,{"text":"b"}]"#, vec!["a", "5", "b"]),
        (r#"[{"type":"text","text":5},{"type":"text","text":null},{"type":"text"}]"#, vec!["5", "", ""]),
        (r#"[{"type":"json","json":{"a":1}}]"#, vec![r#"{"type":"json","json":{"a":1}}"#]),
    ] {
        assert_eq!(texts(&format!(r#"{{"content":{content}}}"#)), expected, "{content}");
    }
    assert_eq!(texts(r#""hello""#), ["hello"]);
    assert_eq!(texts("null"), [""; 0]);
    assert_eq!(texts(r#"[{"type":"text","text":"hello"}]"#), ["hello"]);
    let (_, image) = result(r#"{"content":[{"type":"image","data":"iVBORw0="},{"type":"image","data":"aGk="}]}"#);
    assert_eq!(image["content"][0]["mimeType"], "image/png");
    assert_eq!(image["content"][1]["mimeType"], "application/octet-stream");
    let (_, resource) =
        result(r#"{"content":[{"type":"resource","resource":{"text":"body"}},{"type":"resource_link","uri":"a:b"}]}"#);
    assert_eq!(resource["content"][0]["resource"]["text"], "body");
    assert_eq!(resource["content"][1]["name"], "a:b");
    assert_eq!(result(r#"{"structuredContent":{"answer":42}}"#).1["structuredContent"], json!({"answer": 42}));
    assert_eq!(result(r#"{"content":[],"isError":"true"}"#).1["isError"], true);
}

#[test]
fn a_handshake_needs_little() {
    for odd in [
        r#""capabilities":[],"serverInfo":{"name":"s","version":"1"}"#,
        r#""capabilities":{"tools":[]},"serverInfo":{"name":"s"}"#,
        r#""capabilities":{"tools":{"listChanged":"yes"}},"serverInfo":{"name":"s","version":2}"#,
        r#""capabilities":{"tools":true,"logging":null},"serverInfo":{"name":"s","version":"1","websiteUrl":5,"icons":{}}"#,
        r#""serverInfo":null"#,
        r#""capabilities":{},"instructions":[]"#,
    ] {
        let (kind, value) = result(&format!(r#"{{"protocolVersion":"2025-06-18",{odd}}}"#));
        assert_eq!((kind, &value["protocolVersion"]), ("initialize", &json!("2025-06-18")), "{odd}");
    }
}

#[test]
fn empty_arrays_of_php_are_empty_objects() {
    let (kind, value) = result(
        r#"{"tools":[{"name":"a","inputSchema":{"type":"object","properties":[]},"annotations":[],"outputSchema":[]},
                     {"name":"b","inputSchema":[]}],"nextCursor":5}"#,
    );
    assert_eq!(kind, "tools");
    assert_eq!(value["tools"][0]["inputSchema"], json!({"type": "object", "properties": {}}));
    assert_eq!(value["tools"][1]["inputSchema"], json!({"type": "object"}));
    assert_eq!(result(r#"{"tools":null}"#).0, "tools");
}

#[test]
fn a_tool_is_declared_by_what_can_be_read_of_it() {
    let (kind, value) = result(
        r#"{"tools":[
            {"name":"a","description":5,"inputSchema":null,"outputSchema":"none","annotations":"none","_meta":7},
            {"name":"b","inputSchema":{},"annotations":{"readOnlyHint":true,"destructiveHint":false,"title":"B"}},
            {"name":"c","input_schema":{"properties":{"x":{}}}},
            {"name":"d","inputSchema":"{\"type\":\"object\",\"required\":[\"y\"]}"}]}"#,
    );
    let tools = &value["tools"];
    assert_eq!(kind, "tools");
    assert_eq!(tools[0], json!({"name": "a", "inputSchema": {"type": "object"}}));
    assert_eq!(tools[1]["annotations"], json!({"readOnlyHint": true, "destructiveHint": false, "title": "B"}));
    assert_eq!(tools[2]["inputSchema"], json!({"properties": {"x": {}}}));
    assert_eq!(tools[3]["inputSchema"], json!({"type": "object", "required": ["y"]}));
    let (kind, value) = result(r#"{"tools":{"a":{"inputSchema":{}},"b":{"name":"c","inputSchema":{}}}}"#);
    assert_eq!((kind, &value["tools"][0]["name"], &value["tools"][1]["name"]), ("tools", &json!("a"), &json!("c")));
}

#[test]
fn errors_are_read_in_any_form() {
    for (error, expected) in [
        (r#""error":"quota""#, (-32603, "quota")),
        (r#""error":{"code":"E_FAIL","message":"quota"}"#, (-32603, "quota")),
        (r#""error":{"code":-32000.0,"message":"quota"}"#, (-32000, "quota")),
        (r#""error":{"code":-32000}"#, (-32000, "-32000")),
        (r#""error":{"message":null,"data":{"a":1}}"#, (-32603, r#"{"a":1}"#)),
        (r#""result":null,"error":{"code":1,"message":"quota"}"#, (1, "quota")),
        (r#""result":{"content":[]},"error":{"code":1,"message":"quota"}"#, (1, "quota")),
        (r#""error":{"code":1,"message":"cut \ud83d"}"#, (1, "cut \u{fffd}")),
    ] {
        let message = read_text(&format!(r#"{{"id":1,{error}}}"#)).expect(error);
        let JsonRpcMessage::Error(read) = message else { panic!("no error: {message:?}") };
        assert_eq!((read.error.code.0, &*read.error.message), expected, "{error}");
        assert_eq!(read.id, Some(RequestId::Number(1)));
    }
    assert_eq!(texts_of_message(r#"{"jsonrpc":"2.0","id":1,"result":{"content":"x"},"error":null}"#), ["x"]);
}

fn texts_of_message(text: &str) -> Vec<String> {
    let JsonRpcMessage::Response(response) = read_text(text).expect("a message") else { panic!("no response") };
    let ServerResult::CallToolResult(result) = response.result else { panic!("no result of a call") };
    result.content.iter().filter_map(|block| block.as_text().map(|text| text.text.clone())).collect()
}

#[test]
fn a_reply_without_a_fitting_identity_belongs_to_the_only_request() {
    let waits = RequestId::Number(7);
    for text in [
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no session"}}"#,
        r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"no session"}}"#,
        r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32000,"message":"no session"}}"#,
        r#"{"jsonrpc":"2.0","id":{},"error":{"code":-32000,"message":"no session"}}"#,
    ] {
        let read = read::<RoleClient>(text.as_bytes(), Waits::Only(&waits)).expect("a message");
        assert!(matches!(read, JsonRpcMessage::Error(error) if error.id == Some(waits.clone())), "{text}");
    }
    for (id, expected) in [(r#""7""#, "7"), ("7.0", "7"), ("8", "8")] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#);
        let read = read::<RoleClient>(text.as_bytes(), Waits::Only(&waits)).expect("a message");
        assert!(matches!(read, JsonRpcMessage::Response(response) if response.id.to_string() == expected), "{id}");
    }
    let late = r#"{"jsonrpc":"2.0","id":6,"error":{"code":-32000,"message":"late"}}"#;
    let id = |waits| match read::<RoleClient>(late.as_bytes(), waits) {
        Ok(JsonRpcMessage::Error(error)) => error.id,
        other => panic!("no error: {other:?}"),
    };
    assert_eq!(id(Waits::Only(&waits)), Some(RequestId::Number(6)));
    assert_eq!(id(Waits::This(&waits)), Some(waits.clone()));
}

#[test]
fn parameters_that_are_null_are_none() {
    let request = read_text(r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":null}"#);
    assert!(matches!(request, Ok(JsonRpcMessage::Request(_))), "{request:?}");
    let changed = read_text(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":null}"#);
    assert!(matches!(changed, Ok(JsonRpcMessage::Notification(_))), "{changed:?}");
}

#[test]
fn halves_of_surrogate_pairs_are_replaced() {
    for (text, expected) in [
        (r#""cut \ud83d""#, Some(r#""cut \ufffd""#)),
        (r#""\udd11 cut""#, Some(r#""\ufffd cut""#)),
        (r#""\ud83d\ud83d\ude00""#, Some(r#""\ufffd\ud83d\ude00""#)),
        (r#""\ud83d\u0041""#, Some(r#""\ufffd\u0041""#)),
        (r#""\ud83d\ude00""#, None),
        (r#""\\ud83d""#, None),
        (r#""a NaN""#, None),
        ("[NaN,-Infinity, Infinity]", Some("[null,null, null]")),
        (r#""\ud83d"#, Some(r#""\ufffd"#)),
        (r#""\ud8"#, None),
    ] {
        assert_eq!(forgiven(text.as_bytes()).map(|text| String::from_utf8(text).expect("UTF-8")).as_deref(), expected);
    }
    assert_eq!(forgiven(b"\"\xff\"").as_deref(), Some("\"\u{fffd}\"".as_bytes()));
    assert_eq!(texts(r#"{"content":[{"type":"text","text":"cut \ud83d"}]}"#), ["cut \u{fffd}"]);
    assert_eq!(result(r#"{"content":[],"structuredContent":{"a":NaN,"b":2}}"#).1["structuredContent"]["b"], 2);
}

/// Any optional part of a reply may be missing or of another type.
#[test]
fn every_part_but_the_needed_ones_may_be_odd() {
    const PARTS: &[&str] = &[
        "/_meta",
        "/structuredContent",
        "/isError",
        "/resultType",
        "/content/0/annotations",
        "/content/0/_meta",
        "/content/1/mimeType",
        "/content/1/annotations",
        "/content/2/resource/mimeType",
        "/content/2/resource/_meta",
        "/content/3/description",
        "/content/3/size",
        "/content/3/title",
    ];
    let whole = json!({
        "content": [
            {"type": "text", "text": "hello", "annotations": {"audience": ["user"]}, "_meta": {}},
            {"type": "image", "data": "aGk=", "mimeType": "image/png", "annotations": {"priority": 0.5}},
            {"type": "resource", "resource": {"uri": "a:b", "mimeType": "text/plain", "text": "t", "_meta": {}}},
            {"type": "resource_link", "uri": "a:b", "name": "n", "title": "t", "description": "d", "size": 5},
        ],
        "structuredContent": {"a": 1}, "isError": false, "_meta": {"a": 1}, "resultType": "complete",
    });
    for part in PARTS {
        for odd in [json!(null), json!([]), json!({}), json!(5), json!("x"), json!(true)] {
            let mut reply = whole.clone();
            *reply.pointer_mut(part).expect(part) = odd.clone();
            let (kind, value) = result(&reply.to_string());
            assert_eq!(kind, "call", "{part}: {odd}");
            assert_eq!(value["content"][0]["text"], "hello", "{part}: {odd}");
        }
    }
}

#[test]
fn a_reply_that_rmcp_reads_alike_is_not_written_anew() {
    let id = RequestId::Number(1);
    let plain = r#"{"content": [{"type": "text", "text": "hello"}]}"#;
    for (own, result, is_changed) in [
        ("1", plain, false),
        (r#""1""#, plain, true),
        ("1", r#"{"content": [{"type": "text", "text": "hello", "annotations": 5}]}"#, true),
        ("1", r#"{"content": [{"type": "text", "text": "hello"}], "structuredContent": {}}"#, true),
    ] {
        let text = format!(r#"{{"jsonrpc": "2.0", "id": {own}, "result": {result}}}"#);
        let read = read_and_compare::<RoleClient>(text.as_bytes(), Waits::This(&id));
        assert_eq!(read.expect("a message").1, is_changed, "{text}");
    }
}
