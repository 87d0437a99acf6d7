//! Connections over TLS: kept for calls in a row, unless the server closes them, and never at the cost of a call.

use std::process::Command;

use crate::mcp_client::{Announced, Client, announced, python, script};
use crate::refused_requests::certify;
use serde_json::{Map, Value, json};

/// A server over TLS that counts the connections and the calls of each of its paths.
struct Counting {
    folder: tempfile::TempDir,
    peer: Announced,
}

impl Counting {
    fn start() -> Option<Counting> {
        let folder = tempfile::tempdir().expect("a folder");
        python()?;
        if !certify(folder.path(), "own", "IP:127.0.0.1", "critical,CA:FALSE") {
            eprintln!("SKIPPED: there is no openssl");
            return None;
        }
        let [certificate, key] = ["own.pem", "own.key"].map(|name| folder.path().join(name));
        let peer = announced(Command::new("python3").arg(script("persistent.py")).arg(certificate).arg(key));
        Some(Counting { folder, peer })
    }

    fn client(&self, names: &[&str]) -> Client {
        let server = |name: &&str| ((*name).to_owned(), json!({"url": self.peer.url("https", name)}));
        let servers: Map<String, Value> = names.iter().map(server).collect();
        let trusted = self.folder.path().join("own.pem").display().to_string();
        Client::start_with(&json!({"mcpServers": servers}), &[("SSL_CERT_FILE", &trusted)])
    }
}

/// Returns the calls of `note` and the connections of a path, each call of `count` included.
fn counts(client: &mut Client, name: &str) -> (u64, u64) {
    let text = client.eval(&format!("(let [c ({name}/count)] [(:notes c) (:connections c)])")).text;
    let numbers: Vec<u64> = text
        .lines()
        .next()
        .into_iter()
        .flat_map(|line| line.trim_matches(['[', ']']).split(' '))
        .filter_map(|number| number.parse().ok())
        .collect();
    let [notes, connections] = *numbers else { panic!("{text}") };
    (notes, connections)
}

#[test]
fn calls_in_a_row_use_connections_that_the_server_keeps() {
    let Some(peer) = Counting::start() else { return };
    let mut client = peer.client(&["kept", "idle"]);
    for name in ["kept", "idle"] {
        let all = client.eval(&format!("(dotimes [i 40] ({name}/note {{:i i}}))"));
        assert!(!all.is_error, "{all:?}");
        let (notes, connections) = counts(&mut client, name);
        assert_eq!(notes, 40, "{name}");
        // One, and one more after each pause that a busy machine makes.
        assert!(connections <= 20, "{name}: {connections} connections");
    }
    let all = client.eval("(count (pmap (fn [i] (kept/note {:i i :at-once true})) (range 100)))");
    assert!(all.text.starts_with("100"), "{all:?}");
    let (notes, connections) = counts(&mut client, "kept");
    assert!(notes == 140 && connections <= 100, "{notes} calls on {connections} connections");
}

/// A server that closes connections without a word: a call on one that is used again would be lost.
#[test]
fn no_call_is_lost_at_a_server_that_closes_its_connections() {
    let Some(peer) = Counting::start() else { return };
    let mut client = peer.client(&["closed"]);
    let row = client.eval("(dotimes [i 20] (closed/note {:i i}))");
    assert!(!row.is_error, "{row:?}");
    for round in 0..3 {
        let program = format!("(count (pmap (fn [i] (closed/note {{:i i :round {round}}})) (range 40)))");
        let at_once = client.eval(&program);
        assert!(at_once.text.starts_with("40"), "{at_once:?}");
    }
    let reads = client.eval("(count (pmap (fn [_] (closed/count)) (range 100)))");
    assert!(reads.text.starts_with("100"), "{reads:?}");
    let (notes, connections) = counts(&mut client, "closed");
    assert!(notes == 140 && connections > 240, "{notes} calls on {connections} connections");
}

/// A server that keeps a connection for a while, and loses the request after that.
#[test]
fn a_server_that_has_lost_a_call_on_a_used_connection_loses_no_further_one() {
    let Some(peer) = Counting::start() else { return };
    let mut client = peer.client(&["dropped"]);
    client.eval("(dir 'dropped)");
    let (code, message) = client.fails("(dropped/note {:i 0})");
    assert_eq!(code, "ServerUnavailable", "{message}");
    for i in 1..20 {
        let noted = client.eval(&format!("(dropped/note {{:i {i}}})"));
        assert!(!noted.is_error, "{noted:?}");
    }
    assert_eq!(counts(&mut client, "dropped").0, 19);

    // A call that changes nothing is made again, so that none fails.
    let mut client = peer.client(&["dropped"]);
    for _ in 0..20 {
        assert_eq!(counts(&mut client, "dropped").0, 19);
    }
    assert!(!client.eval("(dropped/note {:i 20})").is_error);
}
