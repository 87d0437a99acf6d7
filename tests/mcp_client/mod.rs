//! An MCP client for tests: exchanges raw JSON-RPC with the real binary over standard input and output.
#![allow(dead_code)]

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

#[allow(unused_imports, reason = "each test file uses its part")]
pub use super::peers::{installed, peer};
use serde_json::{Value, json};

/// Maximum time for a single step of a test.
const PATIENCE: Duration = Duration::from_secs(60);

/// The server under test.
pub struct Client {
    pub process: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    next: i64,
    stateless: bool,
    _folder: tempfile::TempDir,
}

/// A tool's result.
#[derive(Debug)]
pub struct Answer {
    pub text: String,
    pub is_error: bool,
    pub record: Value,
}

impl Client {
    /// Starts the server with a configuration, and performs the handshake of revision 2025-06-18.
    pub fn start(configuration: &Value, arguments: &[&str]) -> Client {
        Client::start_able(configuration, arguments, json!({}))
    }

    /// Starts the server like [`Client::start`], for a client with these capabilities.
    pub fn start_able(configuration: &Value, arguments: &[&str], capabilities: Value) -> Client {
        let mut client = Client::launch(configuration, arguments, Stdio::null());
        client.shake_hands(capabilities);
        client
    }

    /// Starts the server like [`Client::start`], with these environment variables.
    pub fn start_with(configuration: &Value, variables: &[(&str, &str)]) -> Client {
        let mut client = Client::launch_with(configuration, &[], variables, Stdio::null());
        client.shake_hands(json!({}));
        client
    }

    /// Starts the server like [`Client::start`], with a pipe for the log that is never read.
    pub fn start_with_unread_log(configuration: &Value) -> Client {
        let mut client = Client::launch(configuration, &[], Stdio::piped());
        client.shake_hands(json!({}));
        client
    }

    /// Starts the server like [`Client::start`], through a wrapper command that runs its arguments as a command.
    pub fn start_within(wrapper: &[&str], configuration: &Value, arguments: &[&str]) -> Client {
        let mut command = Command::new(wrapper[0]);
        command.args(&wrapper[1..]).arg(env!("CARGO_BIN_EXE_lispbox"));
        let mut client = Client::launch_as(command, configuration, arguments, &[], Stdio::null());
        client.shake_hands(json!({}));
        client
    }

    fn shake_hands(&mut self, capabilities: Value) {
        self.greet(json!({"protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": {"name": "test", "version": "1"}}));
    }

    fn greet(&mut self, hello: Value) {
        let answer = self.request("initialize", hello);
        assert_eq!(answer["result"]["serverInfo"]["name"], "lispbox", "{answer}");
        self.notify("notifications/initialized", json!({}));
    }

    /// Starts the server for a client of revision 2026-07-28, which has no handshake.
    pub fn start_stateless(configuration: &Value, arguments: &[&str]) -> Client {
        let mut client = Client::launch(configuration, arguments, Stdio::null());
        client.stateless = true;
        client
    }

    fn launch(configuration: &Value, arguments: &[&str], log: Stdio) -> Client {
        Client::launch_with(configuration, arguments, &[], log)
    }

    fn launch_with(configuration: &Value, arguments: &[&str], variables: &[(&str, &str)], log: Stdio) -> Client {
        let command = Command::new(env!("CARGO_BIN_EXE_lispbox"));
        Client::launch_as(command, configuration, arguments, variables, log)
    }

    fn launch_as(
        mut command: Command,
        configuration: &Value,
        arguments: &[&str],
        variables: &[(&str, &str)],
        log: Stdio,
    ) -> Client {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("servers.json");
        std::fs::write(&file, configuration.to_string()).expect("written");
        command
            .args(["serve", "--config"])
            .arg(&file)
            .args(arguments)
            .env("LISPBOX_CACHE", folder.path().join("cache"))
            // A test says which servers it starts.
            .env("LISPBOX_NO_PREFETCH", "true")
            // Nor does it write into the folders of whoever runs it.
            .env("LISPBOX_STORE", "memory")
            .envs(variables.iter().copied());
        Client::of(command, log, folder)
    }

    /// Starts the server as a program with a window does: with a home folder and hardly any environment. Its log is the
    /// file `log` in that folder.
    pub fn start_at_home(home: &Path, arguments: &[&str], capabilities: Value) -> Client {
        let mut client = Client::launch_at_home(home, arguments);
        client.shake_hands(capabilities);
        client
    }

    /// Starts the server like [`Client::start_at_home`], for a client that says this in `initialize`.
    pub fn start_at_home_as(home: &Path, arguments: &[&str], hello: Value) -> Client {
        let mut client = Client::launch_at_home(home, arguments);
        client.greet(hello);
        client
    }

    /// Starts the server like [`Client::start_at_home`], for a client of revision 2026-07-28, which has no handshake.
    pub fn start_stateless_at_home(home: &Path, arguments: &[&str]) -> Client {
        let mut client = Client::launch_at_home(home, arguments);
        client.stateless = true;
        client
    }

    /// Starts the server like [`Client::start_at_home`], through a wrapper command that runs its arguments as a command.
    pub fn start_at_home_within(wrapper: &[&str], home: &Path) -> Client {
        let mut command = Command::new(wrapper[0]);
        command.args(&wrapper[1..]).arg(env!("CARGO_BIN_EXE_lispbox"));
        let mut client = Client::launch_at_home_as(command, home, &[]);
        client.shake_hands(json!({}));
        client
    }

    fn launch_at_home(home: &Path, arguments: &[&str]) -> Client {
        Client::launch_at_home_as(Command::new(env!("CARGO_BIN_EXE_lispbox")), home, arguments)
    }

    fn launch_at_home_as(mut command: Command, home: &Path, arguments: &[&str]) -> Client {
        command
            .arg("serve")
            .args(arguments)
            .current_dir("/")
            .env_clear()
            .env("HOME", home)
            .env("PATH", "/usr/bin:/bin");
        let log = std::fs::OpenOptions::new().create(true).append(true).open(home.join("log")).expect("a log");
        Client::of(command, log.into(), tempfile::tempdir().expect("a folder"))
    }

    fn of(mut command: Command, log: Stdio, folder: tempfile::TempDir) -> Client {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut process = command.spawn().expect("the binary runs");
        let output = BufReader::new(process.stdout.take().expect("piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let input = process.stdin.take();
        Client { process, input, lines, next: 0, stateless: false, _folder: folder }
    }

    /// Sends one line verbatim.
    pub fn send(&mut self, line: &str) {
        let input = self.input.as_mut().expect("the input is open");
        writeln!(input, "{line}").expect("the server reads");
        input.flush().expect("the server reads");
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    /// Sends a request and returns its id.
    pub fn begin(&mut self, method: &str, mut params: Value) -> i64 {
        self.next += 1;
        if self.stateless && params["_meta"].is_null() {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        let request = json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        self.send(&request.to_string());
        self.next
    }

    /// Returns the next message from the server.
    pub fn receive(&mut self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("an answer");
        serde_json::from_str(&line).expect("JSON")
    }

    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        loop {
            let message = self.receive();
            if message["id"] == id {
                return message;
            }
        }
    }

    pub fn call(&mut self, tool: &str, arguments: Value) -> Answer {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        Answer::of(&answer)
    }

    pub fn eval(&mut self, program: &str) -> Answer {
        self.call("lisp_eval", json!({ "program": program }))
    }

    /// Runs a program that must fail, and returns the code and the message of its error.
    pub fn fails(&mut self, program: &str) -> (String, String) {
        let answer = self.eval(program);
        assert!(answer.is_error, "{program}: {answer:?}");
        answer.failure()
    }

    /// Closes the server's standard input.
    pub fn close(&mut self) {
        self.input = None;
    }

    /// Waits for the process to end.
    pub fn wait(&mut self) -> ExitStatus {
        let begun = Instant::now();
        until(|| self.process.try_wait().expect("a child").is_some());
        assert!(begun.elapsed() < Duration::from_secs(10), "it took {:?} to end", begun.elapsed());
        self.process.wait().expect("a child")
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Answer {
    /// The code and the message of an error.
    pub fn failure(&self) -> (String, String) {
        let field = |name: &str| self.record[name].as_str().unwrap_or_default().to_owned();
        (field("error"), field("message"))
    }

    pub fn of(message: &Value) -> Answer {
        let result = &message["result"];
        let text = result["content"][0]["text"].as_str();
        Answer {
            text: text.unwrap_or_else(|| panic!("no text: {message}")).to_owned(),
            is_error: result["isError"] == true,
            record: result["structuredContent"].clone(),
        }
    }

    /// Extracts the session handle from the text, if the text contains one.
    pub fn handle(&self) -> Option<String> {
        let (_, rest) = self.text.split_once("[session: ")?;
        Some(rest.split(']').next()?.to_owned())
    }
}

/// Waits until the condition holds.
pub fn until(mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < PATIENCE, "it did not come to pass");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

/// Returns true if the process exists and is not a zombie.
pub fn is_alive(process: i64) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    status.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['Z', 'X']))
}

/// A peer that listens on a loopback port; killed on drop.
pub struct Listening(Child);

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a peer and waits until it listens.
pub fn listening(command: &mut Command, port: u16) -> Listening {
    let peer = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
    let peer = Listening(peer);
    until(|| TcpStream::connect(("127.0.0.1", port)).is_ok());
    peer
}

/// A peer that has printed the port on which it listens; killed on drop.
pub struct Announced {
    pub port: u16,
    _peer: Listening,
}

impl Announced {
    pub fn url(&self, scheme: &str, path: &str) -> String {
        format!("{scheme}://127.0.0.1:{}/{path}", self.port)
    }
}

/// Starts a peer and waits until it prints its port. Its input is open for as long as it is used.
pub fn announced(command: &mut Command) -> Announced {
    let mut peer = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut port = String::new();
    BufReader::new(peer.stdout.as_mut().expect("piped")).read_line(&mut port).expect("a line");
    Announced { port: port.trim().parse().expect("a port"), _peer: Listening(peer) }
}

/// Returns an unused loopback port.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port()
}

/// Returns the path of a program in `tests/peers`.
pub fn script(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers").join(name).to_string_lossy().into_owned()
}

/// Returns the configuration of `hostile.py` with these arguments.
pub fn hostile(arguments: &[&str]) -> Value {
    let mut all = vec![script("hostile.py")];
    all.extend(arguments.iter().map(|argument| argument.to_string()));
    json!({"command": "python3", "args": all})
}

/// Returns the configuration of the real `server-filesystem` for a folder. Its writing tools are annotated as
/// destructive.
pub fn filesystem(folder: &Path) -> Option<Value> {
    let script = installed("node_modules/@modelcontextprotocol/server-filesystem/dist/index.js")?;
    Some(json!({"command": "node", "args": [script, folder]}))
}

/// Returns `python3`, which the hostile server needs, if it is installed.
pub fn python() -> Option<PathBuf> {
    let runs = Command::new("python3").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    peer("python3", runs.is_ok_and(|status| status.success()).then(|| PathBuf::from("python3")))
}
