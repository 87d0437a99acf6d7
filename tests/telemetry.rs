//! Traces: the spans that an OpenTelemetry collector receives for programs and their tool calls.
#![cfg(feature = "telemetry")]

#[path = "mcp_client/mod.rs"]
mod mcp_client;
#[path = "peers/mod.rs"]
mod peers;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use mcp_client::{Client, hostile, installed, python};
use serde_json::{Value, json};

/// A collector that decodes traces with the official OpenTelemetry definitions; killed on drop.
struct Collector {
    process: Child,
    lines: Receiver<String>,
    port: String,
}

impl Collector {
    fn start() -> Option<Collector> {
        let python = installed("venv/bin/python")?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/otlp.py");
        let mut process =
            Command::new(python).arg(script).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it runs");
        let output = BufReader::new(process.stdout.take().expect("piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok()));
        let port = lines.recv_timeout(Duration::from_secs(30)).expect("it says where it listens");
        Some(Collector { process, lines, port })
    }

    /// Returns the next span.
    fn span(&self) -> Value {
        let line = self.lines.recv_timeout(Duration::from_secs(30)).expect("a span");
        serde_json::from_str(&line).expect("JSON")
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_program_and_its_calls_are_one_trace() {
    let (Some(_), Some(collector)) = (python(), Collector::start()) else { return };
    let endpoint = format!("http://127.0.0.1:{}", collector.port);
    let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()), ("OTEL_SERVICE_NAME", "lispbox-under-test")];
    let mut client = Client::start_with(&json!({"mcpServers": {"hostile": hostile(&[])}}), &variables);
    client.eval(r#"(do (pmap #(hostile/echo {:text (str "a-secret" %)}) [1 2]) (hostile/fail))"#);
    // Spans that are still queued are sent on shutdown.
    client.close();
    assert!(client.wait().success());
    let spans: Vec<Value> = (0..4).map(|_| collector.span()).collect();
    let program = spans.iter().find(|span| span["name"] == "evaluation").expect("the program");
    assert_eq!(program["path"], "/v1/traces");
    assert_eq!(program["resource"]["service.name"], "lispbox-under-test");
    assert_eq!((&program["parent"], &program["failed"]), (&json!(""), &json!(true)));
    let attributes = &program["attributes"];
    assert_eq!((&attributes["principal"], &attributes["outcome"]), (&json!("local"), &json!("ToolError")));
    let mut calls: Vec<(&str, bool)> = Vec::new();
    for call in spans.iter().filter(|span| span["name"] != "evaluation") {
        assert_eq!((&call["trace"], &call["parent"]), (&program["trace"], &program["span"]), "{call}");
        for id in ["evaluation", "session"] {
            assert!(!call["attributes"][id].is_null(), "{call}");
            assert_eq!(call["attributes"][id], attributes[id], "{call}");
        }
        calls.push((call["name"].as_str().expect("a name"), call["failed"] == true));
    }
    calls.sort_unstable();
    assert_eq!(calls, [("hostile/echo", false), ("hostile/echo", false), ("hostile/fail", true)]);
    assert!(!spans.iter().any(|span| span.to_string().contains("a-secret1")), "{spans:?}");
}

#[test]
fn a_collector_that_does_not_answer_holds_nothing_up() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let endpoint = format!("http://{}", silent.local_addr().expect("it listens"));
    let configuration = json!({"mcpServers": {}});
    let mut client = Client::start_with(&configuration, &[("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str())]);
    assert!(client.eval("(+ 1 2)").text.starts_with('3'));
    client.close();
    let begun = Instant::now();
    assert!(client.wait().success());
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
}
