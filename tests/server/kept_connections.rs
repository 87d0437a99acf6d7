//! Connections over TLS: kept for calls in a row, unless the server closes them, and never at the cost of a call.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::mcp_client::{Client, python, script};
use crate::refused_requests::certify;
use serde_json::{Value, json};

/// A server that counts the connections and the calls of each of its paths.
struct Counting {
    peer: Child,
    port: String,
}

impl Drop for Counting {
    fn drop(&mut self) {
        let _ = (self.peer.kill(), self.peer.wait());
    }
}

impl Counting {
    fn start(folder: &Path) -> Counting {
        let mut command = Command::new("python3");
        command.arg(script("persistent.py")).arg(folder.join("own.pem")).arg(folder.join("own.key"));
        let mut peer = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut port = String::new();
        BufReader::new(peer.stdout.as_mut().expect("piped")).read_line(&mut port).expect("a port");
        Counting { peer, port: port.trim().to_owned() }
    }

    fn client(&self, folder: &Path, names: &[&str]) -> Client {
        let url = |name: &str| format!("https://127.0.0.1:{}/{name}", self.port);
        let servers = names.iter().map(|name| ((*name).to_owned(), json!({"url": url(name)})));
        let servers: Value = servers.collect::<serde_json::Map<_, _>>().into();
        let trusted = folder.join("own.pem").display().to_string();
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
    let folder = tempfile::tempdir().expect("a folder");
    if python().is_none() || !certify(folder.path(), "own", "IP:127.0.0.1", "critical,CA:FALSE") {
        eprintln!("SKIPPED: there is no openssl");
        return;
    }
    let peer = Counting::start(folder.path());
    let mut client = peer.client(folder.path(), &["kept", "idle"]);
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
    let folder = tempfile::tempdir().expect("a folder");
    if python().is_none() || !certify(folder.path(), "own", "IP:127.0.0.1", "critical,CA:FALSE") {
        eprintln!("SKIPPED: there is no openssl");
        return;
    }
    let peer = Counting::start(folder.path());
    let mut client = peer.client(folder.path(), &["closed"]);
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
    let folder = tempfile::tempdir().expect("a folder");
    if python().is_none() || !certify(folder.path(), "own", "IP:127.0.0.1", "critical,CA:FALSE") {
        eprintln!("SKIPPED: there is no openssl");
        return;
    }
    let peer = Counting::start(folder.path());
    let mut client = peer.client(folder.path(), &["dropped"]);
    client.eval("(dir 'dropped)");
    let (code, message) = client.fails("(dropped/note {:i 0})");
    assert_eq!(code, "ServerUnavailable", "{message}");
    for i in 1..20 {
        let noted = client.eval(&format!("(dropped/note {{:i {i}}})"));
        assert!(!noted.is_error, "{noted:?}");
    }
    assert_eq!(counts(&mut client, "dropped").0, 19);

    // A call that changes nothing is made again, so that none fails.
    let mut client = peer.client(folder.path(), &["dropped"]);
    for _ in 0..20 {
        assert_eq!(counts(&mut client, "dropped").0, 19);
    }
    assert!(!client.eval("(dropped/note {:i 20})").is_error);
}
