//! Servers over the HTTP transport of 2024-11-05, right and wrong.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::mcp_client::{Announced, Client, announced, python, script};
use serde_json::json;

/// The peer `events.py`.
struct Events(Announced);

impl Events {
    fn start() -> Option<Events> {
        Some(Events(announced(Command::new(python()?).arg(script("events.py")))))
    }

    fn client(&self) -> Client {
        let server = |path: &str| json!({"type": "sse", "url": self.0.url("http", path)});
        let mut servers = json!({});
        for path in ["elsewhere", "closed", "page", "silent"] {
            servers[path] = server(path);
        }
        servers["silent"]["start_timeout_seconds"] = json!(0.3);
        servers["locked"] = server("sse");
        servers["good"] = server("sse");
        servers["good"]["headers"] = json!({"X-Key": "open"});
        Client::start(&json!({"mcpServers": servers}), &[])
    }
}

#[test]
fn replies_of_a_stream_of_events_are_bounded() {
    let Some(events) = Events::start() else { return };
    let mut client = events.client();
    assert!(client.eval(r#"(good/echo {:text "hello"})"#).text.starts_with("\"hello\""));
    let begun = Instant::now();
    let (code, message) = client.fails("(good/large {:megabytes 17})");
    assert_eq!(code, "ToolResultTooLarge");
    assert!(message.starts_with("the reply of `good/large` is too large: 178"), "{message}");
    assert!(begun.elapsed() < Duration::from_secs(20), "it did not run into its time-out");
    assert!(client.eval("(count (good/large {:megabytes 3}))").text.starts_with("3145728"));
    assert!(client.eval(r#"(count (pmap #(good/echo {:text (str %)}) (range 100)))"#).text.starts_with("100"));
}

#[test]
fn a_stream_of_events_that_breaks_is_opened_again() {
    let Some(events) = Events::start() else { return };
    let mut client = events.client();
    let (code, message) = client.fails("(good/die)");
    assert_eq!((code.as_str(), message.as_str()), ("ServerUnavailable", "server `good` went away during `good/die`"));
}

#[test]
fn a_status_of_one_call_leaves_the_server_to_others() {
    let Some(events) = Events::start() else { return };
    let mut client = events.client();
    for (status, code) in [
        (500, "ToolError"),
        (503, "ServerUnavailable"),
        (429, "ServerUnavailable"),
        (307, "ToolError"),
        (405, "ToolError"),
        (422, "ToolError"),
    ] {
        for _ in 0..4 {
            let redirect = if status == 307 { ", a redirect that does not say where to" } else { "" };
            let message = format!("server `good` answered `good/refuse` with HTTP status {status}{redirect}");
            let program = format!("(good/refuse {{:status {status}}})");
            let answer = client.call("lisp_eval", json!({"program": program, "repeat": true}));
            assert_eq!(answer.failure(), (code.to_owned(), message));
        }
        assert!(client.eval(r#"(good/echo {:text "hello"})"#).text.starts_with("\"hello\""), "{status}");
    }
}

#[test]
fn what_is_no_stream_of_events_says_why() {
    let Some(events) = Events::start() else { return };
    let mut client = events.client();
    let port = events.0.port;
    let locked = "it asks for authorization (HTTP status 401); put the token of the server into `headers`: \
                  {\"Authorization\": \"Bearer ${TOKEN}\"}";
    let cases = [
        (
            "elsewhere",
            format!(
                "the event `endpoint` names an address at `http://localhost:1`; expected one at `http://127.0.0.1:{port}`"
            ),
        ),
        ("closed", "it closed the stream of events before it named an address to post to".to_owned()),
        ("page", "expected a stream of events (`text/event-stream`), got `text/html`".to_owned()),
        ("silent", "it did not answer within 0.3 s (`start_timeout_seconds` allows more)".to_owned()),
        ("locked", locked.to_owned()),
    ];
    for (server, reason) in cases {
        let message = format!("server `{server}` did not start: {reason}");
        assert_eq!(client.fails(&format!(r#"({server}/echo {{:text "x"}})"#)).1, message, "{server}");
    }
}
