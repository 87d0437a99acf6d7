//! Calls of tools over HTTP that are answered past the protocol sessions of rmcp: as those are that go through it.

use serde_json::{Value, json};

use crate::http_client::{Response, Server, Session, evaluation};
use crate::mcp_client::until;

/// The kinds of content as most clients write them. A call that says them in other words goes through rmcp.
const USUAL: &str = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
const OTHER: &str = "Content-Type: application/json;charset=utf-8\r\nAccept: application/json, text/event-stream\r\n";

/// Parameters of calls, right and wrong.
fn calls() -> Vec<Value> {
    let call = |tool: &str, arguments: Value| json!({"name": tool, "arguments": arguments});
    vec![
        call("lisp_eval", json!({"program": "(+ 1 2)"})),
        call("lisp_eval", json!({"program": "(println \"a\") (/ 1 0)"})),
        call("lisp_eval", json!({"program": "(", "unknown": 1})),
        call("lisp_eval", json!({"program": 5})),
        call("lisp_eval", json!({})),
        call("lisp_env", json!({"query": "reduce"})),
        call("lisp_evil", json!({})),
        json!({"name": "lisp_eval"}),
        json!({"name": "lisp_eval", "arguments": {"program": "1"}, "_meta": {"lispbox/run-key": "k"}}),
    ]
}

/// Returns a message without the time that it took.
fn untimed(mut message: Value) -> Value {
    if let Some(structured) = message.pointer_mut("/result/structuredContent").and_then(Value::as_object_mut) {
        structured.remove("spent");
    }
    message
}

fn post(session: &Session, kinds: &str, message: &Value) -> Response {
    session.client.request("POST", "/mcp", &format!("{kinds}{}", session.head()), message.to_string().as_bytes())
}

#[test]
fn calls_of_a_session_are_answered_as_through_rmcp() {
    let server = Server::start(&[], &[]);
    let sessions = [(); 2].map(|()| server.initialize("", "2025-06-18").expect("a session"));
    for params in calls() {
        let message = json!({"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": params});
        let (direct, through) = (post(&sessions[0], USUAL, &message), post(&sessions[1], OTHER, &message));
        assert_eq!(untimed(direct.message()), untimed(through.message()), "{params}");
        let kinds = [&direct, &through].map(|response| response.header("content-type"));
        assert_eq!(kinds, [Some("application/json"), Some("text/event-stream")], "{params}");
    }
}

#[test]
fn calls_without_a_session_are_answered_as_through_rmcp() {
    let server = Server::start(&[], &[]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    });
    let headers = |tool: &Value| {
        let tool = tool.as_str().expect("a name");
        format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n")
    };
    for mut params in calls() {
        let own = params["_meta"].take();
        params["_meta"] = meta.clone();
        own.as_object().into_iter().flatten().for_each(|(key, value)| params["_meta"][key] = value.clone());
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).to_string();
        let answer = |kinds: &str| {
            let headers = format!("{kinds}{}", headers(&params["name"]));
            let response = server.request("POST", "/mcp", &headers, message.as_bytes());
            let kind = response.header("content-type").map(str::to_owned);
            (response.status, kind, untimed(response.message()))
        };
        assert_eq!(answer(USUAL), answer(OTHER), "{params}");
    }
}

#[test]
fn a_cancelled_call_of_a_session_has_no_reply() {
    let server = Server::start(&[], &[]);
    let session = server.initialize("", "2025-06-18").expect("a session");
    assert_eq!(session.eval("(+ 1 2)"), ("3".to_owned(), false));
    let mut connection = server.connect();
    connection.begin_post(&session.head(), &evaluation(5, "(loop [n 0] (recur (inc n)))"));
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}});
    // The notification may arrive before the call.
    while connection.is_silent_for(std::time::Duration::from_millis(50)) {
        assert_eq!(session.post(&cancelled).status, 202);
    }
    let response = connection.receive();
    assert_eq!((response.status, response.header("content-type")), (200, Some("text/event-stream")));
    assert_eq!(response.body, "");
    assert_eq!(session.eval("(+ 1 2)"), ("3".to_owned(), false), "the session goes on");
}

#[test]
fn a_call_whose_headers_say_something_else_is_refused() {
    let server = Server::start(&[], &[]);
    assert_eq!(server.eval("", "1", None), ("1".to_owned(), false));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"name": "lisp_eval", "arguments": {"program": "1"}, "_meta": meta});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let usual = ["MCP-Protocol-Version: 2026-07-28\r\n", "Mcp-Method: tools/call\r\n", "Mcp-Name: lisp_eval\r\n"];
    for (headers, status) in [
        (usual.concat(), 200),
        (format!("{}Mcp-Name: lisp_eval\r\n", usual.concat()), 400),
        (format!("{}Mcp-Name: lisp_env\r\n", usual[..2].concat()), 400),
        (format!("{}Mcp-Method: tools/list\r\n{}", usual[0], usual[2]), 400),
        (usual[1..].concat(), 400),
        (format!("MCP-Protocol-Version: 2025-06-18\r\n{}", usual[1..].concat()), 400),
        (usual[..2].concat(), 400),
        (format!("{}Host: evil.example.com\r\n", usual.concat()), 403),
        (format!("{}Origin: https://evil.example.com\r\n", usual.concat()), 403),
        (format!("{}Mcp-Session-Id: unknown\r\n", usual.concat()), 404),
    ] {
        for kinds in [USUAL, OTHER] {
            let response = server.request("POST", "/mcp", &format!("{kinds}{headers}"), message.as_bytes());
            assert_eq!(response.status, status, "{kinds}{headers}");
        }
    }
    let session = server.initialize("", "2025-06-18").expect("a session");
    let with = |headers: &str| {
        let headers = format!("{}{headers}", session.head());
        server.post(&headers, &evaluation(1, "1")).status
    };
    assert_eq!(with("MCP-Protocol-Version: 2025-06-18\r\n"), 200);
    assert_eq!(with("MCP-Protocol-Version: 2019-01-01\r\n"), 400);
    assert_eq!(with("Host: evil.example.com\r\n"), 403);
    assert_eq!(with("Origin: https://evil.example.com\r\n"), 403);
}

#[test]
fn a_call_ends_with_its_session() {
    let server = Server::start(&[], &[]);
    let session = server.initialize("", "2025-06-18").expect("a session");
    let mut running = server.connect();
    let endless = json!({"program": "(loop [] (recur))", "limits": {"compute": "50s", "fuel": 1e12}});
    let params = json!({"name": "lisp_eval", "arguments": endless});
    running.begin_post(&session.head(), &json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params}));
    let is_running = |count: &str| {
        let metrics = server.request("GET", "/metrics", "", b"").body;
        metrics.lines().any(|line| line.strip_prefix("lispbox_evaluations_running ") == Some(count))
    };
    until(|| is_running("1"));
    assert_eq!(server.request("DELETE", "/mcp", &session.head(), b"").status, 202);
    assert_eq!(running.receive().body, "");
    until(|| is_running("0"));
}

/// Proxies and clients give up on a response of which they hear nothing.
#[cfg(unix)]
#[test]
fn the_response_to_a_call_that_takes_long_begins_before_its_reply() {
    let folder = tempfile::tempdir().expect("a folder");
    let servers = folder.path().join("servers.json");
    std::fs::write(&servers, crate::failed_runs::configuration(folder.path()).to_string()).expect("written");
    let server = Server::start(&["--config", &servers.to_string_lossy()], &[]);
    let session = server.initialize("", "2025-06-18").expect("a session");
    assert_eq!(session.eval("1").0, "1", "the host is known from now on");
    let mut running = server.connect();
    running.begin_post(&session.head(), &evaluation(7, "(notes/hold {:line \"a\"})"));
    let head = running.receive_head();
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")), "{head:?}");
    std::fs::write(folder.path().join("go"), "").expect("written");
    let event = running.event();
    assert!(event["id"] == 7 && event.to_string().contains("added a"), "{event}");
}
