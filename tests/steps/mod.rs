//! A tool under the control of a test: records each call on arrival, and answers it when the test allows.
#![allow(dead_code, reason = "each test file uses its part")]

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;

/// The tool, with the configuration through which programs call it as `(step/taken {:text "…"})`.
pub struct Steps {
    address: SocketAddr,
    state: Arc<State>,
    folder: tempfile::TempDir,
}

#[derive(Default)]
struct State {
    taken: Mutex<Taken>,
    changed: Condvar,
}

#[derive(Default)]
struct Taken {
    calls: Vec<String>,
    is_held: bool,
}

impl Steps {
    pub fn new() -> Steps {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::<State>::default();
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || answer(stream, &shared));
            }
        });
        Steps { address, state, folder: tempfile::tempdir().expect("a folder") }
    }

    /// Writes the configuration file and returns its path.
    pub fn configuration(&self) -> PathBuf {
        let file = self.folder.path().join("servers.json");
        let tool = json!({
            "url": format!("http://{}/{{text}}", self.address), "timeout_seconds": 60,
            "parameters": {"properties": {"text": {"type": "string"}}, "required": ["text"]},
        });
        // Programs whose processes have died are repeated on purpose.
        let root = json!({"local": {"step/taken": tool}, "policy": {"repeats": "make"}});
        std::fs::write(&file, root.to_string()).expect("written");
        file
    }

    /// Returns the texts of the calls received so far.
    pub fn calls(&self) -> Vec<String> {
        self.state.taken.lock().expect("nobody panics").calls.clone()
    }

    /// Holds back the answers to calls from now on.
    pub fn hold(&self) {
        self.state.taken.lock().expect("nobody panics").is_held = true;
    }

    /// Answers all calls, including those that are held back.
    pub fn let_go(&self) {
        self.state.taken.lock().expect("nobody panics").is_held = false;
        self.state.changed.notify_all();
    }

    /// Waits until a call with that text has been received.
    pub fn wait_for(&self, text: &str) {
        let begun = Instant::now();
        let mut taken = self.state.taken.lock().expect("nobody panics");
        while !taken.calls.iter().any(|call| call == text) {
            assert!(begun.elapsed() < Duration::from_secs(60), "no call {text}: {:?}", taken.calls);
            taken = self.state.changed.wait_timeout(taken, Duration::from_millis(100)).expect("nobody panics").0;
        }
    }
}

/// Records a request and answers it.
fn answer(mut stream: TcpStream, state: &State) {
    let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
    let (mut first, mut line) = (String::new(), String::new());
    if reader.read_line(&mut first).is_err() {
        return;
    }
    while reader.read_line(&mut line).is_ok_and(|length| length > 0) && !line.trim().is_empty() {
        line.clear();
    }
    let Some(text) = first.split(' ').nth(1).and_then(|path| path.strip_prefix('/')) else { return };
    let mut taken = state.taken.lock().expect("nobody panics");
    taken.calls.push(text.to_owned());
    state.changed.notify_all();
    while taken.is_held {
        taken = state.changed.wait(taken).expect("nobody panics");
    }
    drop(taken);
    // The client may have disconnected.
    let _ = stream
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
}
