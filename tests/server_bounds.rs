//! How many sessions there may be over HTTP, and how long they last.
#![cfg(feature = "cli")]

#[path = "http_client/mod.rs"]
mod http_client;

use std::time::{Duration, Instant};

use http_client::{Server, handle};
use serde_json::json;

/// Waits until something is so.
fn until(mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(40), "it did not come to pass");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

/// The handle of a session made for one definition.
fn made(server: &Server, headers: &str, program: &str) -> String {
    handle(&server.eval(headers, program, None).0)
}

#[test]
fn a_store_takes_so_many_sessions_of_each() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let server = Server::start(&["--store", &url], &[("LISPBOX_STORED_SESSIONS", "1")]);
    made(&server, "", "(def n 0)");
    let (text, failed) = server.eval("", "(def n 1)", None);
    assert!(
        failed && text.contains("as many sessions of `local` as one principal may have: 1 (`serve --stored-sessions`)"),
        "{text}"
    );
}

/// Uses a session until it has ended, and gives what is said then.
fn worn_out(server: &Server, session: &str) -> String {
    let mut last = String::new();
    until(|| {
        let (text, failed) = server.eval("", "n", Some(session));
        last = text;
        failed
    });
    last
}

#[test]
fn a_session_ends_after_its_lifetime_though_it_is_used() {
    let server = Server::start(&["--session-lifetime", "500ms"], &[]);
    let session = made(&server, "", "(def n 1)");
    let text = worn_out(&server, &session);
    assert!(text.contains("SessionExpired") && text.contains("it was made more than 500ms ago"), "{text}");
    let (text, _) = server.eval("", "n", Some(&session));
    assert!(text.contains("SessionExpired"), "it is remembered: {text}");
}

#[test]
fn a_session_ends_after_its_lifetime_in_a_store_also_if_another_process_made_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let session = made(&Server::start(&["--store", &url], &[]), "", "(def n 1)");
    let server = Server::start(&["--store", &url, "--session-lifetime", "1s"], &[]);
    let text = worn_out(&server, &session);
    assert!(text.contains("SessionExpired") && text.contains("made too long ago"), "{text}");
    drop(server);
    let text = Server::start(&["--store", &url], &[]).eval("", "n", Some(&session)).0;
    assert!(text.contains("SessionExpired"), "the store remembers it: {text}");
}

#[test]
fn a_connection_whose_session_has_ended_is_told_and_gets_another() {
    let server = Server::start(&["--session-lifetime", "500ms"], &[]);
    let client = json!({"name": "test", "version": "1"});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let response = server.post("", &json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}));
    let connection = response.header("mcp-session-id").expect("older protocols have sessions").to_owned();
    let headers = format!("Mcp-Session-Id: {connection}\r\nMCP-Protocol-Version: 2025-06-18\r\n");
    server.post(&headers, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let eval = |program: &str| {
        let params = json!({"name": "lisp_eval", "arguments": {"program": program}});
        server.post(&headers, &json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})).result()
    };
    assert!(!eval("(def n 1)").1);
    let mut last = (String::new(), false);
    until(|| {
        last = eval("n");
        last.1
    });
    assert!(last.0.contains("SessionExpired"), "{last:?}");
    assert!(!eval("(+ 1 2)").1, "the next one begins anew");
}
