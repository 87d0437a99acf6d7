//! A client that can send arbitrary bytes to the real binary and reads its replies.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::meta;
use serde_json::{Value, json};

/// Maximum time to wait for a reply.
const PATIENCE: Duration = Duration::from_secs(40);

/// The kind of stream between client and server. Real clients use both.
#[derive(Clone, Copy, Debug)]
pub enum Streams {
    Pipes,
    Sockets,
}

pub struct Server {
    process: Child,
    input: Option<File>,
    output: Option<File>,
    replies: Option<Receiver<Value>>,
    stateless: bool,
    /// The part of a line that the server has not read yet.
    left: Vec<u8>,
    _cache: tempfile::TempDir,
}

/// A request in either generation of the protocol, with its end of line.
pub fn message(stateless: bool, id: &Value, method: &str, mut params: Value) -> Vec<u8> {
    if stateless {
        params["_meta"] = meta();
    }
    format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).into_bytes()
}

/// A call of `lisp_eval`.
pub fn calling(stateless: bool, id: &Value, program: &str) -> Vec<u8> {
    message(stateless, id, "tools/call", json!({"name": "lisp_eval", "arguments": {"program": program}}))
}

/// Summarizes a reply: `error CODE`, the code of a failed call, or the first line of its value.
pub fn outcome(reply: &Value) -> String {
    if let Some(code) = reply["error"]["code"].as_i64() {
        let nobody = if reply.get("id").is_none_or(Value::is_null) { " of nobody" } else { "" };
        return format!("error {code}{nobody}");
    }
    let result = &reply["result"];
    if let Some(code) = result["structuredContent"]["error"].as_str() {
        return code.to_owned();
    }
    result["content"][0]["text"].as_str().and_then(|text| text.lines().next()).unwrap_or_default().to_owned()
}

impl Server {
    /// Starts a server and completes the handshake.
    pub fn start(stateless: bool) -> Server {
        Server::start_with(stateless, &[])
    }

    /// Starts a server with these arguments, on pipes, and shakes hands with it.
    pub fn start_with(stateless: bool, arguments: &[&str]) -> Server {
        let mut server = Server::silent(stateless, Streams::Pipes, arguments);
        server.shake_hands();
        server
    }

    /// Starts a server without a handshake.
    pub fn silent(stateless: bool, streams: Streams, arguments: &[&str]) -> Server {
        let cache = tempfile::tempdir().expect("a folder");
        let mut command = Command::new(env!("CARGO_BIN_EXE_lispbox"));
        command.arg("serve").args(arguments).env("LISPBOX_CACHE", cache.path()).stderr(Stdio::null());
        command.env("LISPBOX_PINS", cache.path().join("pins"));
        command.env("LISPBOX_STORE", "memory").env("LISPBOX_NO_PREFETCH", "true");
        let (process, input, output) = match streams {
            Streams::Pipes => {
                command.stdin(Stdio::piped()).stdout(Stdio::piped());
                let mut process = command.spawn().expect("the binary runs");
                let input = OwnedFd::from(process.stdin.take().expect("piped"));
                let output = OwnedFd::from(process.stdout.take().expect("piped"));
                (process, input, output)
            }
            Streams::Sockets => {
                let (input, theirs) = UnixStream::pair().expect("a pair");
                let (output, also_theirs) = UnixStream::pair().expect("a pair");
                command.stdin(OwnedFd::from(theirs)).stdout(OwnedFd::from(also_theirs));
                let process = command.spawn().expect("the binary runs");
                drop(command);
                (process, OwnedFd::from(input), OwnedFd::from(output))
            }
        };
        // SAFETY: a system call that sets a flag on a file descriptor that this process owns.
        assert_eq!(unsafe { libc::fcntl(input.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) }, 0);
        Server {
            process,
            input: Some(File::from(input)),
            output: Some(File::from(output)),
            replies: None,
            stateless,
            left: Vec::new(),
            _cache: cache,
        }
    }

    /// Sends the opening messages of the protocol generation and leaves the reply unread.
    pub fn shake_hands_unread(&mut self) {
        if self.stateless {
            self.write(&message(true, &json!("hello"), "tools/list", json!({})));
        } else {
            let hello = json!({
                "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}
            });
            self.write(&message(false, &json!("hello"), "initialize", hello));
            self.write(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
        }
    }

    /// Performs the handshake and reads its reply, and no further line.
    pub fn shake_hands(&mut self) {
        self.shake_hands_unread();
        let answer = match &self.replies {
            Some(_) => self.reply().expect("an answer"),
            None => {
                let mut line = String::new();
                // A buffer of one byte reads nothing of the next line.
                let output = self.output.as_ref().expect("the output is open");
                BufReader::with_capacity(1, output).read_line(&mut line).expect("the server speaks");
                serde_json::from_str(&line).expect("JSON")
            }
        };
        assert_eq!(answer["id"], "hello", "{answer}");
    }

    /// A request in the protocol generation of this server.
    pub fn line(&self, id: &Value, method: &str, params: Value) -> Vec<u8> {
        message(self.stateless, id, method, params)
    }

    /// Replaces `@` by the fields that each request carries, and appends the end of the line.
    pub fn completed(&self, line: &[u8]) -> Vec<u8> {
        let carried = if self.stateless { format!("\"_meta\":{},", meta()) } else { String::new() };
        let mut whole = Vec::with_capacity(line.len() + carried.len() + 1);
        for piece in line.split_inclusive(|byte| *byte == b'@') {
            whole.extend_from_slice(piece.strip_suffix(b"@").unwrap_or(piece));
            if piece.ends_with(b"@") {
                whole.extend_from_slice(carried.as_bytes());
            }
        }
        whole.push(b'\n');
        whole
    }

    /// Writes all bytes. Panics if the server stops reading.
    pub fn write(&mut self, bytes: &[u8]) {
        let mut whole = std::mem::take(&mut self.left);
        whole.extend_from_slice(bytes);
        assert!(self.offer(&whole, PATIENCE), "the server does not read");
    }

    /// Writes up to `count` lines, until the server has read nothing for `patience` or has closed its input. Returns
    /// the number of lines that were begun.
    pub fn pour(&mut self, count: usize, patience: Duration, mut line: impl FnMut(usize) -> Vec<u8>) -> usize {
        (0..count).find(|number| !self.offer(&line(*number), patience)).map_or(count, |last| last + 1)
    }

    /// Writes bytes until the server has read nothing for `patience`, and keeps the rest for the next write. Returns
    /// whether all were written.
    fn offer(&mut self, bytes: &[u8], patience: Duration) -> bool {
        let mut input = self.input.as_ref().expect("the input is open");
        let mut rest = bytes;
        let mut since = Instant::now();
        while !rest.is_empty() {
            match input.write(rest) {
                Ok(taken) => {
                    rest = &rest[taken..];
                    since = Instant::now();
                }
                Err(problem) if problem.kind() == ErrorKind::WouldBlock && since.elapsed() < patience => {
                    std::thread::park_timeout(Duration::from_millis(1));
                }
                Err(_) => {
                    self.left = rest.to_vec();
                    return false;
                }
            }
        }
        true
    }

    /// Starts a thread that reads replies.
    pub fn listen(&mut self) {
        let output = BufReader::new(self.output.take().expect("the output is open"));
        let (sender, replies) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let reply = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"));
                if sender.send(reply).is_err() {
                    return;
                }
            }
        });
        self.replies = Some(replies);
    }

    /// The next reply; `None` once the server has closed its output.
    pub fn reply(&mut self) -> Option<Value> {
        match self.replies.as_ref().expect("somebody listens").recv_timeout(PATIENCE) {
            Ok(reply) => Some(reply),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("no reply"),
        }
    }

    /// Checks that no reply arrives for this time.
    pub fn says_nothing_for(&mut self, time: Duration) {
        let replies = self.replies.as_ref().expect("somebody listens");
        assert_eq!(replies.recv_timeout(time), Err(RecvTimeoutError::Timeout));
    }

    /// Evaluates a program and returns its outcome, skipping replies to other requests.
    pub fn eval(&mut self, program: &str) -> String {
        self.write(&calling(self.stateless, &json!("eval"), program));
        loop {
            let reply = self.reply().expect("an answer");
            if reply["id"] == "eval" {
                return outcome(&reply);
            }
        }
    }

    /// Evaluates a program, and retries while the server is busy.
    pub fn eval_when_free(&mut self, program: &str) -> String {
        let begun = Instant::now();
        loop {
            let outcome = self.eval(program);
            if outcome != "Busy" || begun.elapsed() > PATIENCE {
                return outcome;
            }
        }
    }

    /// Peak resident memory of the server, in MiB.
    pub fn most_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") / 1024
    }

    pub fn close(&mut self) {
        self.input = None;
    }

    pub fn close_output(&mut self) {
        self.output = None;
    }

    pub fn terminate(&self) {
        let process = i32::try_from(self.process.id()).expect("a process number");
        // SAFETY: a system call on integers; the process is a child that has not been reaped.
        assert_eq!(unsafe { libc::kill(process, libc::SIGTERM) }, 0);
    }

    /// Waits for the process to end, for at most `seconds`. Returns the time that it took.
    pub fn ends_within(&mut self, seconds: u64) -> Duration {
        let begun = Instant::now();
        while self.process.try_wait().expect("a child").is_none() {
            assert!(begun.elapsed() < Duration::from_secs(seconds), "the server does not end");
            std::thread::park_timeout(Duration::from_millis(10));
        }
        begun.elapsed()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A file that configures downstream servers with excessive output.
pub struct Configuration(tempfile::NamedTempFile);

impl Configuration {
    pub fn file(&self) -> String {
        self.0.path().to_string_lossy().into_owned()
    }
}

/// Configures three servers: `flooding`, `many` with ten thousand tools, and `pages` whose list of tools has endless
/// pages.
pub fn flooding() -> Option<Configuration> {
    let runs = Command::new("python3").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    crate::peers::peer("python3", runs.is_ok_and(|status| status.success()).then(|| "python3".into()))?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/flooding.py");
    let server = |arguments: &[&str]| {
        let all: Vec<&str> = [script.to_str().expect("a text")].into_iter().chain(arguments.iter().copied()).collect();
        json!({"command": "python3", "args": all})
    };
    let servers = json!({"mcpServers": {
        "flooding": server(&[]), "many": server(&["--tools", "10000"]), "pages": server(&["--pages"])
    }});
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(servers.to_string().as_bytes()).expect("written");
    Some(Configuration(file))
}
