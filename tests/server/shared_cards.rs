//! Cards (MCP Apps) of a server with several principals: only the principal whose call waits sees its card and decides on it.
#![cfg(unix)]

use crate::failed_runs::configuration;
use crate::http_client::{Server, Session, tokens_file};
use crate::waiting_runs::lines;
use serde_json::{Value, json};

const ANN: &str = "Authorization: Bearer ann-ann-ann-ann-ann\r\n";
const BOB: &str = "Authorization: Bearer bob-bob-bob-bob-bob\r\n";

fn call(session: &Session, tool: &str, arguments: Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    session.post(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})).message()["result"]
        .clone()
}

fn card(result: &Value) -> &Value {
    &result["_meta"]["lispbox/card"]
}

#[test]
fn a_principal_neither_sees_nor_decides_on_the_card_of_another_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let tokens = tokens_file(folder.path(), &json!({"ann": "ann-ann-ann-ann-ann", "bob": "bob-bob-bob-bob-bob"}));
    let servers = folder.path().join("servers.json");
    std::fs::write(&servers, configuration(folder.path()).to_string()).expect("written");
    let store = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let arguments =
        ["--tokens", &*tokens.to_string_lossy(), "--config", &*servers.to_string_lossy(), "--store", &store];
    let server = Server::start(&arguments, &[]);
    let able = json!({"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}});
    let connect = |headers: &str| {
        server.client.initialize_with(headers, "2025-11-25", &able).unwrap_or_else(|response| panic!("{response:?}"))
    };
    let (ann, bob) = (connect(ANN), connect(BOB));
    let waits = |session: &Session, line: &str| {
        let program = json!({"program": format!("(notes/share {{:line {line:?}}})")});
        let waits = call(session, "lisp_eval", program);
        let text = waits["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{waits}"));
        let (_, rest) = text.split_once("{\"run\": \"").unwrap_or_else(|| panic!("no run: {text}"));
        rest.split('"').next().expect("a run").to_owned()
    };
    let (hers, his) = (waits(&ann, "hers"), waits(&bob, "his"));
    let shown = call(&ann, "lisp_approve", json!({"run": hers}));
    let secret = &card(&shown)["secret"];
    assert!(secret.as_str().is_some_and(|secret| secret.len() == 64), "{shown}");

    // The run of another principal is one that does not exist.
    let none = call(&bob, "lisp_approve", json!({"run": "n".repeat(26)}));
    let refused = call(&bob, "lisp_approve", json!({"run": hers}));
    assert_eq!((&refused["isError"], card(&refused)), (&json!(true), card(&none)), "{refused}");
    assert_eq!(refused["content"].to_string().replace(&hers, &"n".repeat(26)), none["content"].to_string());
    // Neither her secret nor his own decides on her call.
    let own = call(&bob, "lisp_approve", json!({"run": his}));
    for (secret, run) in [(secret, &hers), (&card(&own)["secret"], &hers), (&json!("0".repeat(64)), &hers)] {
        let form = json!({"action": "approve", "calls": "1.1", "run": run});
        call(&bob, "lisp_decide", json!({"secret": secret, "form": form}));
        let waits = call(&ann, "lisp_eval", json!({"run": hers}));
        assert!(!waits.to_string().contains("added hers"), "{waits}");
    }
    assert!(!lines(folder.path(), "shared").contains(&"hers".to_owned()));
    // Hers still does, once.
    for _ in 0..2 {
        call(&ann, "lisp_decide", json!({"secret": secret, "form": {"action": "approve", "calls": "1.1"}}));
    }
    let done = call(&ann, "lisp_eval", json!({"run": hers}));
    assert!(done.to_string().contains("added hers"), "{done}");
    assert_eq!(lines(folder.path(), "shared").iter().filter(|line| *line == "hers").count(), 1);
}
