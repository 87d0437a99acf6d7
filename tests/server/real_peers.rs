//! Tests with third-party clients and servers.
//!
//! They are looked up below `$LISPBOX_PEERS`: `node_modules` with `@modelcontextprotocol/server-everything`,
//! `server-filesystem` and `inspector`, and the `node` that this needs; and a Python environment `venv` with `mcp` and
//! `fastmcp`.

use std::process::Command;

use crate::http_client::Server;
use crate::mcp_client::{Client, free_port, installed, listening, script};
use serde_json::{Value, json};

const EVERYTHING: &str = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";
const FILESYSTEM: &str = "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js";
const INSPECTOR: &str = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js";
const NODE: &str = "node_modules/node/bin/node";
const PYTHON: &str = "venv/bin/python";

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
fn server_everything_over_http_and_sse() {
    let Some(file) = installed(EVERYTHING) else { return };
    for (transport, server) in [
        ("streamableHttp", json!({"type": "http", "url": "mcp"})),
        ("sse", json!({"type": "sse", "url": "sse"})),
        // Without `type`, the transport is detected.
        ("streamableHttp", json!({"url": "mcp"})),
        ("sse", json!({"url": "sse"})),
    ] {
        let port = free_port();
        let mut command = Command::new("node");
        let _peer = listening(command.arg(&file).arg(transport).env("PORT", port.to_string()), port);
        let mut server = server;
        server["url"] = json!(format!("http://127.0.0.1:{port}/{}", server["url"].as_str().expect("a path")));
        let mut client = Client::start(&configuration(server), &[]);
        let answer = client.eval(r#"(peer/echo {:message "hello"})"#);
        assert!(!answer.is_error && answer.text.contains("hello"), "{transport}: {answer:?}");
        let answer = client.eval("(pmap #(peer/get-sum {:a % :b 1}) (range 40))");
        assert!(!answer.is_error && answer.text.contains("is 40"), "{transport}: {answer:?}");
    }
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
fn fastmcp_over_stdio_http_and_sse() {
    let Some(python) = installed(PYTHON) else { return };
    let ports = ["http", "sse"].map(|transport| (transport, free_port()));
    let _peers = ports.map(|(transport, port)| {
        let mut command = Command::new(&python);
        listening(command.args([&script("fast.py"), &port.to_string(), transport]), port)
    });
    let at = |port: u16, path: &str| format!("http://127.0.0.1:{port}/{path}");
    for server in [
        json!({"command": python, "args": [script("fast.py")], "start_timeout_seconds": 60}),
        json!({"url": at(ports[0].1, "mcp")}),
        json!({"type": "sse", "url": at(ports[1].1, "sse"), "headers": {"X-Any": "1"}}),
        json!({"url": at(ports[1].1, "sse")}),
    ] {
        let mut client = Client::start(&configuration(server.clone()), &[]);
        assert_eq!(client.eval("(peer/add {:a 41})").text.lines().next(), Some("42"), "{server}");
        assert!(client.eval("(peer/people)").text.contains("Grace"));
        assert_eq!(client.fails(r#"(peer/add {:a "x"})"#).0, "ToolArgumentError");
    }
}

/// Runs a client against lispbox twice, with a command to start and with a URL. Returns its outputs.
fn about_lispbox(client: &[&str], options: &[&str]) -> [String; 2] {
    let server = Server::start(&[], &[]);
    let url = server.url();
    let targets: [&[&str]; 2] = [&[env!("CARGO_BIN_EXE_lispbox"), "serve"], &[&url]];
    targets.map(|target| {
        let arguments = [&client[1..], target, options].concat();
        let output = Command::new(client[0]).args(&arguments).output().expect("it runs");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    })
}

#[test]
fn the_python_client_lists_and_calls_both_tools() {
    let Some(python) = installed(PYTHON) else { return };
    let expected = "tools lisp_eval lisp_env\neval 3\nenv True\nerror True\n\
        progress True computing; no tool calls so far\n";
    assert_eq!(about_lispbox(&[&python.to_string_lossy(), &script("client.py")], &[]), [expected, expected]);
}

#[test]
fn the_client_of_fastmcp_lists_and_calls_tools() {
    let Some(python) = installed(PYTHON) else { return };
    let expected = "tools lisp_eval lisp_env\neval 6\n";
    assert_eq!(about_lispbox(&[&python.to_string_lossy(), &script("fast_client.py")], &[]), [expected, expected]);
}

#[test]
fn the_inspector_lists_and_calls_tools() {
    let (Some(node), Some(inspector)) = (installed(NODE), installed(INSPECTOR)) else { return };
    let client = [&*node.to_string_lossy(), &*inspector.to_string_lossy(), "--cli"];
    let ask = |options: &[&str]| about_lispbox(&client, options).map(|text| text.parse::<Value>().expect("JSON"));
    for listed in ask(&["--method", "tools/list"]) {
        assert_eq!(
            (&listed["tools"][0]["name"], &listed["tools"][1]["name"]),
            (&json!("lisp_eval"), &json!("lisp_env"))
        );
    }
    let call = ["--method", "tools/call", "--tool-name", "lisp_eval", "--tool-arg", "program=(reduce + [1 2 3])"];
    let expected = json!({"content": [{"type": "text", "text": "6"}], "isError": false});
    assert_eq!(ask(&call), [expected.clone(), expected]);
}
