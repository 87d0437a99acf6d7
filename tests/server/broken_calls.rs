//! Calls that do not go well, beside others that do: over HTTP one that breaks its own connection, and more at once than a
//! server reads.

use std::process::Command;

use crate::mcp_client::{Client, announced, python, script};
use serde_json::json;

#[test]
fn a_call_that_breaks_its_connection_ends_no_other() {
    let Some(python) = python() else { return };
    for breaking in ["reset", "cut", "page"] {
        let peer = announced(Command::new(&python).arg(script("breaking.py")));
        let url = peer.url("http", "mcp");
        let mut client = Client::start(&json!({"mcpServers": {"h": {"type": "http", "url": url}}}), &[]);
        let program =
            format!("(pmap (fn [n] (if (= n 0) (try (h/{breaking}) (catch Exception e :broken)) (h/hold))) (range 4))");
        let together = client.eval(&program).text;
        assert!(together.starts_with("(:broken \"held\" \"held\" \"held\")"), "{breaking}: {together}");
        // However often that happens, the server goes on.
        for _ in 0..4 {
            client.fails(&format!("(h/{breaking})"));
        }
        let after = client.eval("(h/hold)").text;
        assert!(after.starts_with("\"held\""), "{breaking}: {after}");
    }
}

#[test]
fn a_server_that_reads_slowly_gets_all_calls() {
    let Some(python) = python() else { return };
    let server = json!({"command": python, "args": [script("unhurried.py")]});
    let mut client = Client::start(&json!({"mcpServers": {"s": server}}), &[]);
    // More than is kept for a server that does not read.
    let program = "(let [text (reduce (fn [text _] (str text text)) \"t\" (range 21))]
                     (frequencies (pmap #(s/size {:n % :text text}) (range 24))))";
    let sizes = client.eval(program).text;
    assert!(sizes.starts_with("{\"2097152\" 24}"), "{sizes}");
}
