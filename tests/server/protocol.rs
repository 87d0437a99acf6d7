//! Invalid messages and messages of other protocol revisions, over HTTP and over lines: error codes, batches, cursors
//! and fields.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::http_client::{Response, Server, evaluation};
use crate::{REVISIONS, meta};
use serde_json::{Value, json};

const HEADERS: &str = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";

/// HTTP status, request id and code of an error.
fn error(response: &Response) -> (u16, Value, i64) {
    let message = response.message();
    let code = message["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {message}"));
    (response.status, message["id"].clone(), code)
}

#[test]
fn what_is_no_json_is_a_parse_error() {
    let server = Server::start(&[], &[]);
    let session = server.initialize("", "2025-06-18").expect("a session");
    for body in [
        &b"nonsense"[..],
        b"",
        b" ",
        b"{",
        br#"{"jsonrpc":"2.0","id":1,"method":"ping"}}"#,
        br#"{"jsonrpc":"2.0","id":1,"method":"ping",}"#,
        br#"{'jsonrpc':'2.0'}"#,
        br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\xff\xfeng\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\nng\"}",
        b"NaN",
    ] {
        for headers in [HEADERS.to_owned(), format!("{HEADERS}{}", session.head())] {
            let response = server.request("POST", "/mcp", &headers, body);
            assert_eq!(error(&response), (400, Value::Null, -32700), "{}", String::from_utf8_lossy(body));
        }
    }
}

#[test]
fn json_that_is_no_message_is_an_invalid_request() {
    let server = Server::start(&[], &[]);
    let session = server.initialize("", "2025-06-18").expect("a session");
    for (body, id) in [
        ("{}", Value::Null),
        ("3", Value::Null),
        ("null", Value::Null),
        ("\"text\"", Value::Null),
        ("[]", Value::Null),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, json!(1)),
        (r#"{"id":"a","method":"ping"}"#, json!("a")),
        (r#"{"jsonrpc":"2.0","id":1,"method":5}"#, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, Value::Null),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, Value::Null),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":3}"#, json!(1)),
    ] {
        for headers in [HEADERS.to_owned(), format!("{HEADERS}{}", session.head())] {
            let response = server.request("POST", "/mcp", &headers, body.as_bytes());
            assert_eq!(error(&response), (400, id.clone(), -32600), "{body}");
        }
    }
    let plain = server.request("POST", "/mcp", "Content-Type: text/plain\r\nAccept: */*\r\n", b"{}");
    assert!([406, 415].contains(&plain.status), "{plain:?}");
}

#[test]
fn a_cursor_that_was_not_given_is_an_error() {
    let server = Server::start(&[], &[]);
    let wrong = [json!("x"), json!(""), json!("0"), json!(5), json!(["x"]), json!({})];
    for method in ["tools/list", "resources/list", "resources/templates/list"] {
        for revision in REVISIONS {
            let session = server.initialize("", revision).expect("a session");
            let ask =
                |params: Value| session.post(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}));
            for cursor in &wrong {
                assert_eq!(ask(json!({"cursor": cursor})).message()["error"]["code"], -32602, "{method} {cursor}");
            }
            let listed = ask(json!({})).message();
            assert!(listed["result"].is_object(), "{method}: {listed}");
            assert_eq!(listed["result"].get("resultType"), None, "{method} {revision}");
        }
        let ask = |mut params: Value| {
            params["_meta"] = meta();
            let headers = format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n");
            server.post(&headers, &json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})).message()
        };
        for cursor in &wrong {
            assert_eq!(ask(json!({"cursor": cursor}))["error"]["code"], -32602, "{method} {cursor}");
        }
        assert_eq!(ask(json!({}))["result"]["resultType"], "complete", "{method}");
    }
}

#[test]
fn tools_are_listed_with_the_fields_that_a_revision_has() {
    let server = Server::start(&[], &[]);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta()}});
    let stateless = server.post("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n", &list);
    let mut answers = vec![("2026-07-28", stateless.message())];
    for revision in REVISIONS {
        let session = server.initialize("", revision).expect("a session");
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        answers.push((revision, session.post(&list).message()));
    }
    for (revision, answer) in answers {
        let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{revision}: {answer}"));
        assert_eq!([&tools[0]["name"], &tools[1]["name"]], ["lisp_eval", "lisp_env"], "{revision}");
        for (tool, is_first) in [(&tools[0], true), (&tools[1], false)] {
            assert_eq!(tool.get("title").is_some(), revision >= "2025-06-18", "{revision}: {tool}");
            let always = (revision >= "2025-06-18" && is_first).then(|| json!({"anthropic/alwaysLoad": true}));
            assert_eq!(tool.get("_meta"), always.as_ref(), "{revision}");
            let icon = &tool["icons"][0];
            assert_eq!(icon.is_object(), revision >= "2025-11-25", "{revision}: {tool}");
            if icon.is_object() {
                assert_eq!((&icon["mimeType"], &icon["sizes"]), (&json!("image/svg+xml"), &json!(["any"])));
                let source = icon["src"].as_str().expect("an address");
                assert!(!source.contains(' '), "a URI has no blanks: {source}");
                assert!(source.starts_with("data:image/svg+xml,%3Csvg%20") && source.len() < 400, "{source}");
            }
        }
    }
}

#[test]
fn results_have_a_type_from_2026_07_28_on() {
    let server = Server::start(&[], &[]);
    let wrong = json!({"name": 5, "arguments": {}});
    for revision in REVISIONS {
        let session = server.initialize("", revision).expect("a session");
        let call = |params: &Value| {
            session.post(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}))
        };
        for params in
            [&wrong, &json!({"name": "lisp_eval", "arguments": {"program": "(+ 1 2)"}}), &json!({"name": "lisp_env"})]
        {
            let result = call(params).message()["result"].clone();
            assert!(result["content"].is_array() && result.get("resultType").is_none(), "{revision}: {result}");
        }
    }
    let result = server.call("", "lisp_eval", json!({"program": "(+ 1 2)"})).message()["result"].clone();
    assert_eq!(result["resultType"], "complete");
}

#[test]
fn a_session_of_2025_03_26_takes_batches() {
    let server = Server::start(&[], &[]);
    let session = server.initialize("", "2025-03-26").expect("a session");
    let notified = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "never"}});
    let list = json!({"jsonrpc": "2.0", "id": "list", "method": "tools/list"});
    let response = session.post(&json!([evaluation(1, "(def n 3)"), list, notified, evaluation(2, "(+ 1 1)"), 7]));
    assert_eq!(response.status, 200);
    let replies: Vec<Value> = serde_json::from_str(&response.body).expect("an array");
    let of = |id: Value| replies.iter().find(|reply| reply["id"] == id).unwrap_or_else(|| panic!("{id}: {replies:?}"));
    assert_eq!(replies.len(), 4, "{replies:?}");
    assert_eq!(of(json!(2))["result"]["content"][0]["text"], "2");
    assert!(of(json!("list"))["result"]["tools"].is_array());
    assert_eq!(of(Value::Null)["error"]["code"], -32600);
    assert_eq!(session.eval("n").0, "3", "it was defined in the session");
    assert_eq!(session.post(&json!([notified, notified])).status, 202);
    let hello = json!({"jsonrpc": "2.0", "id": 5, "method": "initialize", "params": {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let alone = session.post(&json!([hello]));
    assert_eq!(serde_json::from_str::<Value>(&alone.body).expect("an array")[0]["error"]["code"], -32600);
    for wrong in [json!([]), json!([evaluation(1, "1"), evaluation(1, "2")]), Value::from(vec![notified; 101])] {
        assert_eq!(error(&session.post(&wrong)), (400, Value::Null, -32600), "{wrong}");
    }
}

#[test]
fn other_revisions_have_no_batches() {
    let server = Server::start(&[], &[]);
    let batch = json!([evaluation(1, "(def n 3)"), evaluation(2, "(+ 1 1)")]);
    for revision in REVISIONS.iter().filter(|revision| **revision != "2025-03-26") {
        let session = server.initialize("", revision).expect("a session");
        assert_eq!(error(&session.post(&batch)), (400, Value::Null, -32600), "{revision}");
        assert!(session.eval("n").1, "none of it ran");
    }
    assert_eq!(error(&server.post("", &batch)), (400, Value::Null, -32600), "without a session");
    let headers = "MCP-Protocol-Version: 2026-07-28\r\n";
    assert_eq!(error(&server.post(headers, &batch)), (400, Value::Null, -32600));
    let session = server.initialize("", "2025-03-26").expect("a session");
    let both = format!("{}{headers}", session.head());
    assert_eq!(error(&server.post(&both, &batch)), (400, Value::Null, -32600), "a request of another revision");
}

/// A server on standard input and output.
struct Lines {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Lines {
    fn start(revision: &str) -> Lines {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lispbox"));
        command
            .arg("serve")
            .env("LISPBOX_STORE", "memory")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut process = command.spawn().expect("it runs");
        let input = process.stdin.take().expect("piped");
        let output = BufReader::new(process.stdout.take().expect("piped"));
        let mut lines = Lines { process, input, output };
        let params =
            json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let hello = json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params});
        assert_eq!(lines.ask(&hello)["result"]["protocolVersion"], revision);
        lines.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        lines
    }

    fn write(&mut self, message: &Value) {
        writeln!(self.input, "{message}").expect("it reads");
    }

    fn ask(&mut self, message: &Value) -> Value {
        self.write(message);
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it answers");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line:?}"))
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn batches_over_lines_are_answered_as_batches() {
    let mut lines = Lines::start("2025-03-26");
    let ping = |id: Value| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "never"}});
    let batch =
        json!([evaluation(1, "(def n 3)"), ping(json!("p")), cancelled, evaluation(2, "(+ 1 1)"), {"id": 9}, 7]);
    let replies = lines.ask(&batch);
    let of = |id: Value| {
        let all = replies.as_array().expect("an array");
        all.iter().find(|reply| reply["id"] == id).unwrap_or_else(|| panic!("{id}: {replies}"))
    };
    assert_eq!(replies.as_array().map(Vec::len), Some(5), "{replies}");
    assert_eq!(of(json!(2))["result"]["content"][0]["text"], "2");
    assert!(of(json!("p"))["result"].is_object());
    assert_eq!(lines.ask(&evaluation(3, "n"))["result"]["content"][0]["text"], "3", "one message goes alone");
    lines.write(&json!([cancelled]));
    for cursor in [json!("x"), json!(5)] {
        let list = json!({"jsonrpc": "2.0", "id": 4, "method": "tools/list", "params": {"cursor": cursor}});
        assert_eq!(lines.ask(&list)["error"]["code"], -32602, "{cursor}");
        assert_eq!(lines.ask(&json!([list]))[0]["error"]["code"], -32602, "{cursor}");
    }
    for wrong in [json!([]), json!([ping(json!(1)), ping(json!(1))])] {
        assert_eq!(lines.ask(&wrong)["error"]["code"], -32600, "{wrong}");
    }
    // A cancelled request has no reply, and the replies of its batch do not wait for it to end.
    let endless = json!({"program": "(loop [] (recur))", "limits": {"compute": "50s", "fuel": 1e9}});
    let endless = json!({"jsonrpc": "2.0", "id": "long", "method": "tools/call", "params": {"name": "lisp_eval", "arguments": endless}});
    lines.write(&json!([endless, ping(json!(5))]));
    let withdrawn = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "long"}});
    let replies = lines.ask(&withdrawn);
    assert_eq!((replies.as_array().map(Vec::len), &replies[0]["id"]), (Some(1), &json!(5)), "{replies}");
}

#[test]
fn batches_over_lines_are_of_one_revision() {
    for revision in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let mut lines = Lines::start(revision);
        let answer = lines.ask(&json!([evaluation(1, "1"), evaluation(2, "2")]));
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32600)), "{revision}: {answer}");
        assert_eq!(lines.ask(&evaluation(3, "(+ 1 1)"))["result"]["content"][0]["text"], "2");
    }
}

#[test]
fn a_method_that_is_unknown_is_named() {
    let server = Server::start(&[], &[]);
    let session = server.initialize("", "2025-06-18").expect("a session");
    let long = "x".repeat(1_000);
    for method in [
        "prompts/list",
        "prompts/get",
        "completion/complete",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "no/such",
        &long,
    ] {
        let reference = json!({"type": "ref/prompt", "name": "x"});
        let argument = json!({"name": "x", "value": "x"});
        let params = json!({"name": "x", "level": "info", "uri": "x://x", "ref": reference, "argument": argument});
        let answer = session.post(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})).message();
        let message = answer["error"]["message"].as_str().unwrap_or_default().to_owned();
        let named = &method[..method.len().min(200)];
        assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
        assert!(message.starts_with(&format!("method not found: {named}")) && message.len() < 300, "{message}");
    }
}

#[test]
fn requests_that_no_handler_sees_have_their_status() {
    let server = Server::start(&[], &[]);
    let session = server.initialize("", "2025-06-18").expect("a session");
    let head = session.head();
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let json = "Content-Type: application/json\r\n";
    let both = "Accept: application/json, text/event-stream\r\n";
    for (method, headers, status, body) in [
        ("POST", format!("{json}{both}"), 400, "Bad Request: Session ID is required"),
        ("GET", both.to_owned(), 400, "Bad Request: Session ID is required"),
        ("DELETE", String::new(), 400, "Bad Request: Session ID is required"),
        (
            "POST",
            format!("{head}{json}{both}MCP-Protocol-Version: 1999-01-01\r\n"),
            400,
            "Bad Request: Unsupported MCP-Protocol-Version: 1999-01-01",
        ),
        ("PUT", format!("{head}{json}{both}"), 405, "Method Not Allowed"),
        (
            "POST",
            format!("{head}{json}Accept: text/html\r\n"),
            406,
            "Not Acceptable: Client must accept both application/json and text/event-stream",
        ),
        ("GET", format!("{head}Accept: text/html\r\n"), 406, "Not Acceptable: Client must accept text/event-stream"),
        (
            "POST",
            format!("{head}Content-Type: text/plain\r\n{both}"),
            415,
            "Unsupported Media Type: Content-Type must be application/json",
        ),
        ("POST", format!("{head}Mcp-Session-Id: other\r\n{json}{both}"), 404, "Not Found: Session not found"),
    ] {
        let answer = server.request(method, "/mcp", &headers, message.as_bytes());
        assert_eq!((answer.status, answer.body.as_str()), (status, body), "{method} {headers}");
    }
}
