//! Replies with odd or missing optional parts, errors that fit no request, and sessions that a server has forgotten.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::mcp_client::{Announced, Client, announced, hostile, python, script};
use serde_json::{Value, json};

fn odd(arguments: &[&str]) -> Value {
    let all: Vec<String> = std::iter::once(script("odd.py")).chain(arguments.iter().map(ToString::to_string)).collect();
    json!({"command": "python3", "args": all})
}

/// The peer over HTTP.
struct Http(Announced);

impl Http {
    fn start() -> Http {
        Http(announced(Command::new("python3").args([&script("odd.py"), "--http"])))
    }

    fn server(&self) -> Value {
        self.server_at("mcp")
    }

    fn server_at(&self, path: &str) -> Value {
        json!({"type": "http", "url": self.0.url("http", path)})
    }
}

/// A client of the peer over stdio as `s`, and over HTTP as `h`.
fn clients() -> Option<(Http, Client)> {
    python()?;
    let http = Http::start();
    let servers = json!({"mcpServers": {"s": odd(&[]), "h": http.server()}});
    let client = Client::start(&servers, &[]);
    Some((http, client))
}

/// The call in which the peer replies with a text.
fn say(server: &str, reply: &str) -> String {
    format!("({server}/say {{:reply {reply:?}}})")
}

#[test]
fn odd_parts_do_not_void_a_reply() {
    let Some((_http, mut client)) = clients() else { return };
    let hello = |odd: &str| format!(r#""result": {{"content": [{{"type": "text", "text": "hello"{odd}}}]}}"#);
    let beside = |odd: &str| format!(r#""result": {{"content": [{{"type": "text", "text": "hello"}}]{odd}}}"#);
    let replies = [
        hello(r#", "annotations": {"audience": ["system"]}"#),
        hello(r#", "annotations": []"#),
        hello(r#", "_meta": null"#),
        beside(r#", "_meta": []"#),
        beside(r#", "isError": "false""#),
        beside(r#", "structuredContent": null"#),
        beside(r#", "structuredContent": {}"#),
        beside("") + r#", "error": null"#,
        r#""result": {"content": "hello"}"#.to_owned(),
        r#""result": "hello""#.to_owned(),
    ];
    for server in ["s", "h"] {
        for reply in &replies {
            let answer = client.eval(&say(server, reply));
            assert_eq!(answer.text.lines().next(), Some("\"hello\""), "{server}: {reply}: {answer:?}");
        }
        let block = r#""result": {"content": [{"type": "json", "json": {"a": 1}}]}"#;
        assert!(client.eval(&format!("(:a (:json {}))", say(server, block))).text.starts_with('1'));
        let odd = client.eval(&say(server, &hello(r#", "annotations": {"audience": ["system"]}"#))).text;
        let note = format!("note: {server}/say: parts of the reply are not valid MCP and were left out: annotations");
        assert!(odd.contains(&note), "{odd}");
        let empty = client.eval(&say(server, &hello(r#", "annotations": []"#))).text;
        assert!(!empty.contains("note:"), "{empty}");
        let cut = r#""result": {"content": [{"type": "text", "text": "cut \ud83d"}]}"#;
        assert!(client.eval(&say(server, cut)).text.starts_with("\"cut \u{fffd}\""), "{server}");
        let inside =
            r#""result": {"content": [{"type": "text", "text": "{\"a\": \"cut \\ud83d\", \"n\": NaN, \"m\": 7}"}]}"#;
        assert!(client.eval(&format!("(:m {})", say(server, inside))).text.starts_with('7'), "{server}");
    }
}

#[test]
fn errors_are_answers_whatever_their_form() {
    let Some((_http, mut client)) = clients() else { return };
    let begun = Instant::now();
    for server in ["s", "h"] {
        for error in [r#""quota is used up""#, r#"{"code": "E_FAIL", "message": "quota is used up"}"#] {
            let failed = client.fails(&say(server, &format!(r#""error": {error}"#)));
            let expected = ("ToolError".to_owned(), format!("`{server}/say` failed: quota is used up"));
            assert_eq!(failed, expected, "{error}");
        }
        for id in ["null", r#""server-error""#] {
            let whole = format!(r#"{{"jsonrpc": "2.0", "id": {id}, "error": {{"code": -32000, "message": "no"}}}}"#);
            let failed = client.fails(&format!("({server}/say {{:whole {whole:?}}})"));
            assert_eq!(failed, ("ToolError".to_owned(), format!("`{server}/say` failed: no")), "{id}");
        }
        let whole = r#"{"jsonrpc": "2.0", "id": "ID", "result": {"content": "hello"}}"#;
        let answer = client.eval(&format!("({server}/say {{:whole {whole:?}}})"));
        assert!(answer.text.starts_with("\"hello\""), "{answer:?}");
    }
    for status in [400, 500, 422] {
        let whole = r#"{"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "no"}}"#;
        let failed = client.fails(&format!("(h/say {{:whole {whole:?} :status {status}}})"));
        assert_eq!(failed, ("ToolError".to_owned(), "`h/say` failed: no".to_owned()), "{status}");
    }
    let (_, message) = client.fails(r#"(h/say {:whole "quota is used up" :status 429 :kind "text/plain"})"#);
    assert!(message.ends_with("HTTP status 429: \"quota is used up\""), "{message}");
    let (code, message) = client.fails(r#"(h/say {:whole "{\"error\": \"retry after 30 s\"}" :status 429})"#);
    assert_eq!(code, "ServerUnavailable");
    assert!(message.ends_with("HTTP status 429: \"retry after 30 s\""), "{message}");
    for kind in ["text/plain", ""] {
        let whole = r#"{"jsonrpc": "2.0", "id": ID, "result": {"content": "hello"}}"#;
        let answer = client.eval(&format!("(h/say {{:whole {whole:?} :kind {kind:?}}})"));
        assert!(answer.text.starts_with("\"hello\""), "{kind}: {answer:?}");
    }
    let (_, message) = client.fails(r#"(h/say {:whole "only from localhost:8794" :status 403 :kind "text/plain"})"#);
    assert!(
        message.contains("it refused the request (HTTP status 403): \"only from localhost:8794\"; it is to be called"),
        "{message}"
    );
    assert!(begun.elapsed() < Duration::from_secs(25), "nothing ran into its timeout");
}

#[test]
fn a_session_that_is_forgotten_is_opened_again() {
    let Some((_http, mut client)) = clients() else { return };
    let reply = |message: &str| {
        format!(r#"{{"jsonrpc": "2.0", "error": {{"code": -32000, "message": "{message}"}}, "id": null}}"#)
    };
    let cases = [
        (400, reply("Bad Request: No valid session ID provided")),
        (400, "Bad Request".to_owned()),
        (400, reply("Bad Request: Server not initialized")),
        (404, reply("Session not found")),
        (404, String::new()),
    ];
    let mut calls = 0;
    for (status, body) in cases {
        assert!(!client.eval(&format!("(h/forget {{:status {status} :body {body:?}}})")).is_error);
        let answer = client.eval("(:calls (h/count))");
        calls += 2;
        assert_eq!(answer.text.lines().next(), Some(calls.to_string().as_str()), "{status}: {body}: made once");
    }
}

#[test]
fn an_error_with_the_identity_of_a_call_is_its_answer_and_the_call_is_not_repeated() {
    let Some((_http, mut client)) = clients() else { return };
    for status in [400, 404] {
        let error = r#"{"code": -32000, "message": "the session of the shop has expired"}"#;
        let whole = format!(r#"{{"jsonrpc": "2.0", "id": ID, "error": {error}}}"#);
        let failed = client.fails(&format!("(h/say {{:whole {whole:?} :status {status}}})"));
        let expected = "`h/say` failed: the session of the shop has expired";
        assert_eq!(failed, ("ToolError".to_owned(), expected.to_owned()), "{status}");
    }
    assert_eq!(client.eval("(:calls (h/count))").text.lines().next(), Some("3"), "each call was made once");
}

#[test]
fn servers_that_declare_themselves_oddly_are_used() {
    if python().is_none() {
        return;
    }
    let schema = r#"{"type": "object", "properties": []}"#;
    let tools =
        format!(r#"{{"tools": [{{"name": "count", "inputSchema": {schema}, "annotations": [], "_meta": []}}]}}"#);
    let site = json!({
        "protocolVersion": "2025-06-18", "capabilities": {},
        "serverInfo": {"name": "s", "version": "1", "websiteUrl": 5}, "instructions": null
    });
    let servers = json!({"mcpServers": {
        "php": odd(&["--handshake", r#"{"protocolVersion": "2025-06-18", "capabilities": [], "serverInfo": {"name": "s"}}"#,
            "--tools", &tools]),
        "bare": odd(&["--handshake", r#"{"protocolVersion": "2025-06-18", "capabilities": {"tools": []}}"#]),
        "site": odd(&["--handshake", &site.to_string()]),
        "loose": odd(&["--tools", r#"{"tools": {"count": {"description": 5, "inputSchema": null, "annotations": "none"}}}"#]),
    }});
    let mut client = Client::start(&servers, &[]);
    for server in ["php", "bare", "site", "loose"] {
        assert_eq!(client.eval(&format!("(:calls ({server}/count))")).text.lines().next(), Some("1"), "{server}");
    }
}

#[test]
fn a_result_without_content_is_nil() {
    let Some((_http, mut client)) = clients() else { return };
    for server in ["s", "h"] {
        for result in [r#""result": {}"#, r#""result": []"#, r#""result": null"#, r#""result": {"content": null}"#] {
            assert!(client.eval(&say(server, result)).text.starts_with("nil"), "{server}: {result}");
        }
        let older = client.eval(&format!("(:a {})", say(server, r#""result": {"toolResult": {"a": 7}}"#)));
        assert!(older.text.starts_with('7'), "{server}: {older:?}");
    }
}

#[test]
fn a_start_goes_on_although_nobody_waits() {
    if python().is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("starts");
    let starts = || std::fs::read_to_string(&log).unwrap_or_default().lines().count();
    let slow = hostile(&["--start", "12", "--log", &log.display().to_string()]);
    let servers = json!({"mcpServers": {"slow": slow, "quick": odd(&[])}});
    let mut client = Client::start(&servers, &["--limit", "total=60s"]);
    let begun = Instant::now();
    let listed = client.eval("(with-out-str (dir))").text;
    assert!(begun.elapsed() < Duration::from_secs(12), "it answers before the server does");
    assert!(listed.contains("quick") && listed.contains("its tools are not known: starting, for "), "{listed}");
    assert!(listed.contains("start_timeout_seconds"), "{listed}");
    assert!(!client.eval("(slow/pid)").is_error);
    assert_eq!(starts(), 1, "it was started once");
}

#[test]
fn every_tool_is_shown_under_a_name_that_a_program_can_write() {
    if python().is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("list.json");
    let names = ["get weather", "Send Email!", "List (all)", "a:b", "write", "get-time"];
    let tools: Vec<Value> = names.iter().map(|name| json!({"name": name, "inputSchema": {"type": "object"}})).collect();
    std::fs::write(&file, json!({ "tools": tools }).to_string()).expect("written");
    let file = file.to_string_lossy();
    let servers = json!({"s": odd(&["--list", &file]), "json": odd(&["--list", &file])});
    let mut client = Client::start(&json!({ "mcpServers": servers }), &[]);
    let listed = client.eval("(with-out-str (dir 's) (dir 'json))").text;
    for (called, name) in [
        ("s/get-weather", "get weather"),
        ("s/Send-Email!", "Send Email!"),
        ("s/List-all", "List (all)"),
        ("s/a-b", "a:b"),
        ("s/write", "write"),
        ("mcp__json__write", "write"),
        ("json/get-weather", "get weather"),
    ] {
        assert!(listed.contains(&format!("({called})")), "{called}: {listed}");
        let answer = client.eval(&format!("(:tool ({called}))"));
        assert_eq!(answer.text.lines().next(), Some(format!("{name:?}").as_str()), "{called}: {answer:?}");
    }
    let policy = json!({"deny": ["s/get-weather", "s/list_a*", "s/send-e*"]});
    let mut client = Client::start(&json!({"mcpServers": servers, "policy": policy}), &[]);
    for denied in ["(s/get-weather)", "(s/List-all)", "(s/Send-Email!)"] {
        assert_eq!(client.fails(denied).0, "ToolDenied", "{denied}");
    }
    assert!(!client.eval("(s/a-b)").is_error);
}

#[test]
fn a_redirect_is_reported_with_its_target() {
    if python().is_none() {
        return;
    }
    let http = Http::start();
    let mut client = Client::start(&json!({"mcpServers": {"h": http.server_at("moved")}}), &[]);
    let (_, message) = client.fails("(h/count)");
    assert!(message.contains("a redirect to \"https://example.com/login\", which is not followed"), "{message}");
    assert!(!message.contains("token"), "{message}");
}

#[test]
fn a_server_that_refuses_our_version_is_asked_in_an_older_one() {
    if python().is_none() {
        return;
    }
    let servers = json!({"a": odd(&["--only", "2025-06-18"]), "b": odd(&["--only", "2024-11-05"])});
    let mut client = Client::start(&json!({ "mcpServers": servers }), &[]);
    for server in ["a", "b"] {
        assert_eq!(client.eval(&format!("(:calls ({server}/count))")).text.lines().next(), Some("1"), "{server}");
    }
}

#[test]
fn a_server_with_prompts_alone_has_no_tools() {
    if python().is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("list.json");
    std::fs::write(&file, r#"{"error": {"code": -32601, "message": "Method not found"}}"#).expect("written");
    let handshake = json!({"protocolVersion": "2025-06-18", "capabilities": {"prompts": {}}, "serverInfo": {"name": "p", "version": "1"}});
    let prompts = odd(&["--handshake", &handshake.to_string(), "--list", &file.to_string_lossy()]);
    let mut client = Client::start(&json!({"mcpServers": {"p": prompts}}), &[]);
    let answer = client.eval("(dir 'p)");
    assert!(!answer.is_error, "{answer:?}");
    assert!(client.eval("(p/x)").text.starts_with("UnknownTool: server `p` has no tool `x`"));
}

#[test]
fn a_request_that_is_accepted_without_a_reply_fails_at_once() {
    let Some((_http, mut client)) = clients() else { return };
    let hello = r#""result": {"content": [{"type": "text", "text": "hello"}]}"#;
    assert!(client.eval(&say("h", hello)).text.starts_with("\"hello\""));
    let begun = Instant::now();
    let failed = client.fails(r#"(h/say {:reply "\"result\": {}" :status 202})"#);
    let message = "the reply of `h/say` cannot be read: it answered HTTP status 202 Accepted alone, and has no stream on \
                   which a reply could come";
    assert_eq!(failed, ("ToolError".to_owned(), message.to_owned()));
    assert!(begun.elapsed() < Duration::from_secs(20), "the time-out of a call is 30 s");
}
