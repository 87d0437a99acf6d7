//! The server under test and its client: JSON lines, with many requests in flight at once.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::ledger::{Account, Ledger, Reply};

/// The protocol revision in which requests are stateless and a session is named by a handle.
const REVISION: &str = "2026-07-28";

/// Maximum time to wait for a reply: longer than the time limit of any program, with a margin for a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// The server as a child process.
pub struct Server {
    process: Child,
    log: tempfile::NamedTempFile,
}

/// The connection to the server, shared by all sessions.
pub struct Client {
    input: Mutex<Option<ChildStdin>>,
    ledger: Arc<Mutex<Ledger>>,
}

/// A request that was sent.
pub struct Request {
    number: u64,
    made: Instant,
    reply: Receiver<Reply>,
}

/// The reason for a missing reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// The reply did not arrive within the timeout.
    Late,
    /// The server has ended.
    Ended,
}

/// Starts the server with a configuration file and a folder for its cache of tool lists.
///
/// # Errors
/// Returns an error if the server does not start.
pub fn start(binary: &Path, arguments: &[&str], configuration: &Path, cache: &Path) -> io::Result<(Server, Client)> {
    let log = tempfile::NamedTempFile::new()?;
    let mut process = Command::new(binary)
        .arg("serve")
        .args(arguments)
        .arg("--config")
        .arg(configuration)
        .env("LISPBOX_CACHE", cache)
        .env("LISPBOX_LOG", "error")
        .env("LISPBOX_STORE", "memory")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log.reopen()?)
        .spawn()?;
    let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
        return Err(io::Error::other("its standard input and output are no pipes"));
    };
    let ledger = Arc::new(Mutex::new(Ledger::default()));
    let filing = Arc::clone(&ledger);
    std::thread::Builder::new().name("replies".to_owned()).spawn(move || file_all(output, &filing))?;
    Ok((Server { process, log }, Client { input: Mutex::new(Some(input)), ledger }))
}

fn file_all(output: ChildStdout, ledger: &Mutex<Ledger>) {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    loop {
        line.clear();
        match output.read_until(b'\n', &mut line) {
            Ok(1..) => lock(ledger).file(String::from_utf8_lossy(&line).trim_end(), Instant::now()),
            Ok(0) | Err(_) => return lock(ledger).end(),
        }
    }
}

/// Locks a mutex, ignoring poisoning.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Server {
    /// The process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Waits for the server to exit; `None` if it does not exit within `patience`.
    pub fn wait(&mut self, patience: Duration) -> Option<ExitStatus> {
        let until = Instant::now() + patience;
        loop {
            match self.process.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(10)),
                _ => return None,
            }
        }
    }

    /// Kills the server.
    pub fn kill(&mut self) {
        // Killing a process that has exited fails.
        let _ = self.process.kill();
    }

    /// The first 4,000 bytes of the server's standard error.
    pub fn complaints(&self) -> String {
        let mut text = Vec::new();
        if let Ok(log) = File::open(self.log.path()) {
            let _ = log.take(4_000).read_to_end(&mut text);
        }
        String::from_utf8_lossy(&text).trim().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        // Waiting for the process leaves no zombie.
        let _ = self.process.wait();
    }
}

impl Client {
    /// Sends a request.
    pub fn request(&self, method: &str, mut params: Value) -> Request {
        if let Value::Object(fields) = &mut params {
            let revision = json!({
                "io.modelcontextprotocol/protocolVersion": REVISION,
                "io.modelcontextprotocol/clientInfo": {"name": "lispbox-soak", "version": env!("CARGO_PKG_VERSION")},
                "io.modelcontextprotocol/clientCapabilities": {},
            });
            fields.insert("_meta".to_owned(), revision);
        }
        self.request_as(|number| {
            json!({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).to_string().into_bytes()
        })
    }

    /// Sends a request whose line `line` builds from the request number.
    pub fn request_as(&self, line: impl FnOnce(u64) -> Vec<u8>) -> Request {
        let (number, reply) = lock(&self.ledger).begin();
        let made = Instant::now();
        self.send(&line(number));
        Request { number, made, reply }
    }

    /// Cancels a request. Returns false if its reply has already arrived.
    pub fn withdraw(&self, request: &Request) -> bool {
        let withdrawn = lock(&self.ledger).withdraw(request.number);
        if withdrawn {
            let params = json!({"requestId": request.number, "reason": "the soak changed its mind"});
            let note = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
            self.send(note.to_string().as_bytes());
        }
        withdrawn
    }

    /// Sends one line verbatim.
    pub fn send(&self, line: &[u8]) {
        if let Some(input) = lock(&self.input).as_mut() {
            // If the server has ended, the missing replies reveal it.
            let _ = input.write_all(line).and_then(|()| input.write_all(b"\n")).and_then(|()| input.flush());
        }
    }

    /// Closes the server's standard input, which makes the server exit.
    pub fn close(&self) {
        lock(&self.input).take();
    }

    /// Summarizes the requests and replies so far.
    pub fn account(&self) -> Account {
        lock(&self.ledger).account()
    }
}

impl Request {
    /// The time at which the request was sent.
    pub fn made(&self) -> Instant {
        self.made
    }

    /// Waits for the reply.
    ///
    /// # Errors
    /// Returns the reason if no reply arrives.
    pub fn reply(&self) -> Result<Reply, Silence> {
        self.reply_within(PATIENCE)
    }

    /// Waits for the reply for at most `patience`.
    ///
    /// # Errors
    /// Returns the reason if no reply arrives in this time.
    pub fn reply_within(&self, patience: Duration) -> Result<Reply, Silence> {
        self.reply.recv_timeout(patience).map_err(|problem| match problem {
            RecvTimeoutError::Timeout => Silence::Late,
            RecvTimeoutError::Disconnected => Silence::Ended,
        })
    }
}
