//! Real clients and servers that nobody here wrote.
//!
//! They are looked for below `$LISPBOX_PEERS`: `node_modules` with `@modelcontextprotocol/server-everything`
//! and `server-filesystem`, and a Python environment `venv` with `mcp` and `fastmcp`.
#![cfg(feature = "cli")]

#[path = "mcp_client/mod.rs"]
mod mcp_client;

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use mcp_client::{Client, installed, until};
use serde_json::{Value, json};

const EVERYTHING: &str = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";
const FILESYSTEM: &str = "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js";
const PYTHON: &str = "venv/bin/python";

fn script(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers").join(name).to_string_lossy().into_owned()
}

/// A peer that listens on a port of this machine; ended when it is dropped.
struct Listening(Child);

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn listening(command: &mut Command, port: u16) -> Listening {
    let peer = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
    let peer = Listening(peer);
    until(|| TcpStream::connect(("127.0.0.1", port)).is_ok());
    peer
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port()
}

fn configuration(server: Value) -> Value {
    json!({"mcpServers": {"peer": server}})
}

#[test]
fn server_everything_over_stdio() {
    let Some(file) = installed(EVERYTHING) else { return };
    let mut client = Client::start(&configuration(json!({"command": "node", "args": [file, "stdio"]})), &[]);
    let answer = client.eval(r#"(peer/echo {:message "hello"})"#);
    assert!(!answer.is_error && answer.text.contains("hello"), "{answer:?}");
    let answer = client.eval("(peer/get-sum {:a 2 :b 40})");
    assert!(answer.text.contains("42"), "{answer:?}");
    let (code, message) = client.fails("(peer/get-sum {:a 2})");
    assert_eq!(
        (code.as_str(), message.as_str()),
        ("ToolArgumentError", "`peer/get-sum` needs the argument `b` (number)")
    );
}

#[test]
fn server_everything_over_http() {
    let Some(file) = installed(EVERYTHING) else { return };
    let port = free_port();
    let _peer = listening(Command::new("node").arg(file).arg("streamableHttp").env("PORT", port.to_string()), port);
    let url = format!("http://127.0.0.1:{port}/mcp");
    let mut client = Client::start(&configuration(json!({"type": "http", "url": url})), &[]);
    let answer = client.eval(r#"(peer/echo {:message "hello"})"#);
    assert!(!answer.is_error && answer.text.contains("hello"), "{answer:?}");
}

#[test]
fn server_filesystem() {
    let Some(file) = installed(FILESYSTEM) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let note = folder.path().join("note.txt");
    std::fs::write(&note, "forty-two").expect("written");
    let server = json!({"command": "node", "args": [file, folder.path()]});
    let mut client = Client::start(&configuration(server), &[]);
    let answer = client.eval(&format!("(peer/read_text_file {{:path {:?}}})", note.to_string_lossy()));
    assert!(!answer.is_error && answer.text.contains("forty-two"), "{answer:?}");
    let (code, message) = client.fails(r#"(peer/read_text_file {:path "/etc/passwd"})"#);
    assert_eq!(code, "ToolError");
    assert!(message.starts_with("`peer/read_text_file` failed: Access denied"), "{message}");
}

#[test]
fn fastmcp_over_stdio_and_http() {
    let Some(python) = installed(PYTHON) else { return };
    let port = free_port();
    let _peer = listening(Command::new(&python).arg(script("fast.py")).arg(port.to_string()), port);
    for server in [
        json!({"command": python, "args": [script("fast.py")], "start_timeout_seconds": 60}),
        json!({"url": format!("http://127.0.0.1:{port}/mcp")}),
    ] {
        let mut client = Client::start(&configuration(server), &[]);
        assert_eq!(client.eval("(peer/add {:a 41})").text.lines().next(), Some("42"));
        assert!(client.eval("(peer/people)").text.contains("Grace"));
        assert_eq!(client.fails(r#"(peer/add {:a "x"})"#).0, "ToolArgumentError");
    }
}

#[test]
fn the_python_client_lists_and_calls_both_tools() {
    let Some(python) = installed(PYTHON) else { return };
    let output = Command::new(python)
        .arg(script("client.py"))
        .arg(env!("CARGO_BIN_EXE_lispbox"))
        .stderr(Stdio::inherit())
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.first(), Some(&"tools lisp_eval lisp_env"), "{text}");
    assert!(lines.get(1).is_some_and(|line| line.starts_with("eval ")), "{text}");
    assert_eq!(lines.get(2..), Some(&["env True", "error True"][..]), "{text}");
}
