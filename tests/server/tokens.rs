//! The token count of the two tools in every conversation: at most 220, regardless of the downstream servers.

use crate::mcp_client::{Client, hostile, python};
use serde_json::{Value, json};

/// Counts the tokens of what a client gives to the model: names, descriptions and schemas.
fn counted(client: &mut Client) -> (usize, String) {
    let answer = client.request("tools/list", json!({}));
    let given = |tool: &Value| json!({"name": tool["name"], "description": tool["description"], "inputSchema": tool["inputSchema"]});
    let is_for_models = |tool: &&Value| tool["_meta"]["ui"]["visibility"] != json!(["app"]);
    let listed = answer["result"]["tools"].as_array().expect("a list");
    let tools: Vec<Value> = listed.iter().filter(is_for_models).map(given).collect();
    let text = Value::from(tools).to_string();
    let encoding = tiktoken_rs::o200k_base().expect("the encoding is built in");
    let count = encoding.encode_ordinary(&text).len();
    println!("{count} tokens");
    (count, text)
}

fn tools(configuration: &Value) -> (usize, String) {
    let mut client = Client::start(configuration, &[]);
    // Starts the downstream servers, so that their tools are known when the list is requested.
    client.eval("(apropos \"echo\")");
    counted(&mut client)
}

#[test]
fn with_no_server() {
    let (count, text) = tools(&json!({"mcpServers": {}}));
    assert!(count <= 220, "{count} tokens: {text}");
}

#[test]
fn with_the_tool_that_approves() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let configuration = json!({"mcpServers": {}});
    let (without, _) = counted(&mut Client::start(&configuration, &["--store", &store]));
    let (with, text) = counted(&mut Client::start(&configuration, &["--store", &store, "--approve-tool"]));
    assert!(text.contains("lisp_approve") && with - without <= 70, "{} tokens more: {text}", with - without);
}

#[test]
fn with_the_card() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let configuration = json!({"mcpServers": {}});
    let able = json!({"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}});
    let (without, _) = counted(&mut Client::start(&configuration, &["--store", &store]));
    let (with, text) = counted(&mut Client::start_able(&configuration, &["--store", &store], able));
    assert!(text.contains("lisp_approve") && with - without <= 70, "{} tokens more: {text}", with - without);
    assert!(!text.contains("lisp_decide"), "clients keep it from models: {text}");
}

#[test]
fn with_more_than_fifty_tools_on_ten_servers() {
    let Some(_) = python() else { return };
    let names = [
        "gmail",
        "google-calendar",
        "slack",
        "github",
        "filesystem",
        "postgres",
        "web-search",
        "linear",
        "notion",
        "stripe",
    ];
    let servers: serde_json::Map<String, Value> = names.iter().map(|name| (name.to_string(), hostile(&[]))).collect();
    let (count, text) = tools(&json!({ "mcpServers": servers }));
    assert!(count <= 220, "{count} tokens: {text}");
    for name in names {
        assert!(text.contains(name), "{name}: {text}");
    }
}

#[test]
fn with_names_that_cost_much() {
    for name in ["x9-Q7_zK3", "電子メール検索", "🦀🚀", "AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"] {
        let servers: serde_json::Map<String, Value> =
            (0..50).map(|index| (format!("{name}{index}"), json!({"command": "none"}))).collect();
        let mut client = Client::start(&json!({ "mcpServers": servers }), &[]);
        let (count, text) = counted(&mut client);
        assert!(count <= 220, "{count} tokens: {text}");
    }
}
