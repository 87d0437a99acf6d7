//! Runs lispbox over HTTP, and provides a raw HTTP/1.1 client for it.
#![allow(dead_code, reason = "each test file uses its part")]

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

/// Headers of a POST request that carries a JSON-RPC message.
const MESSAGE: &str = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";

/// A running server, such as `lispbox serve --http`.
pub struct Server {
    pub process: Child,
    pub client: Client,
}

/// A client of the server at this address; opens a new connection for each request.
#[derive(Clone, Copy)]
pub struct Client {
    pub address: SocketAddr,
}

/// A connection to a server that stays open between requests.
pub struct Connection {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
}

/// A session of a protocol before 2026-07-28.
#[derive(Clone)]
pub struct Session {
    pub client: Client,
    /// The `Authorization` header line of the principal that began the session; may be empty.
    pub headers: String,
    /// The session's `Mcp-Session-Id`.
    pub id: String,
}

/// An HTTP response.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

/// Writes a tokens file that is readable only by its owner.
pub fn tokens_file(folder: &Path, tokens: &Value) -> PathBuf {
    let file = folder.join("tokens.json");
    std::fs::write(&file, tokens.to_string()).expect("written");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
    }
    file
}

impl Server {
    /// Starts a server on a free port of the loopback interface.
    pub fn start(arguments: &[&str], variables: &[(&str, &str)]) -> Server {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lispbox"));
        command.args(["serve", "--http", "127.0.0.1:0"]).args(arguments);
        // Pins of an earlier run would hold the tools of a server that has changed since.
        let pins = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("pins-{}", std::process::id()));
        command.env("LISPBOX_PINS", pins).env_remove("LISPBOX_TOKEN").envs(variables.iter().copied());
        Server::of(command)
    }

    /// Starts any server that prints its listening address on its first line of output.
    pub fn of(mut command: Command) -> Server {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().expect("the binary runs");
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("piped")).read_line(&mut line).expect("it says where it listens");
        let address = line.trim().trim_end_matches("/mcp").strip_prefix("listening on http://");
        let address = address.unwrap_or_else(|| panic!("no address: {line:?}")).parse().expect("an address");
        Server { process, client: Client { address } }
    }

    /// Returns a memory figure of the server process, such as `VmRSS` or `VmHWM`, in bytes, as the kernel reports it.
    pub fn memory(&self, name: &str) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).ok()?;
        let size = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(size.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
    }
}

#[cfg(target_os = "linux")]
impl Server {
    /// Stops the process, and waits until each of its threads has stopped.
    pub fn pause(&self) {
        self.signal("STOP");
        let threads = format!("/proc/{}/task", self.process.id());
        let is_stopped = |thread: std::fs::DirEntry| {
            let status = std::fs::read_to_string(thread.path().join("status")).unwrap_or_default();
            status.lines().any(|line| line.starts_with("State:\tT"))
        };
        let are_stopped = || std::fs::read_dir(&threads).expect("it is there").flatten().all(is_stopped);
        while !are_stopped() {
            std::thread::yield_now();
        }
    }

    /// Lets a process that was paused go on.
    pub fn go_on(&self) {
        self.signal("CONT");
    }

    fn signal(&self, signal: &str) {
        let told = Command::new("kill").args(["-s", signal, &self.process.id().to_string()]).status();
        assert!(told.expect("it runs").success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl std::ops::Deref for Server {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Client {
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Opens a connection.
    pub fn connect(&self) -> Connection {
        self.try_to_connect().expect("it listens")
    }

    fn try_to_connect(&self) -> std::io::Result<Connection> {
        let stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time-out");
        stream.set_nodelay(true).expect("a socket");
        Ok(Connection { stream: BufReader::new(stream), address: self.address })
    }

    /// Sends a request on a new connection; see [`Connection::request`].
    pub fn request(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> Response {
        self.connect().request(method, path, headers, body)
    }

    /// Posts a message on a new connection; see [`Connection::post`].
    pub fn post(&self, headers: &str, message: &Value) -> Response {
        self.connect().post(headers, message)
    }

    /// Calls a tool on a new connection; see [`Connection::call`].
    pub fn call(&self, headers: &str, tool: &str, arguments: Value) -> Response {
        self.connect().call(headers, tool, arguments)
    }

    /// Begins a session of a protocol revision before 2026-07-28.
    ///
    /// # Errors
    /// Returns the response if the server did not create a session.
    pub fn initialize(&self, headers: &str, version: &str) -> Result<Session, Response> {
        self.initialize_with(headers, version, &json!({}))
    }

    /// Like [`Client::initialize`], for a client with these capabilities.
    ///
    /// # Errors
    /// As [`Client::initialize`].
    pub fn initialize_with(&self, headers: &str, version: &str, capabilities: &Value) -> Result<Session, Response> {
        let info = json!({"name": "test", "version": "1"});
        let hello = json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": info});
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello});
        let response = self.post(headers, &hello);
        let Some(id) = response.header("mcp-session-id") else { return Err(response) };
        assert_eq!(response.message()["result"]["protocolVersion"], version);
        let session = Session { client: *self, headers: headers.to_owned(), id: id.to_owned() };
        assert_eq!(session.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).status, 202);
        Ok(session)
    }

    /// Begins a tool call without waiting for the response.
    pub fn begin(&self, headers: &str, tool: &str, arguments: Value) -> Connection {
        let mut connection = self.connect();
        connection.begin(headers, tool, arguments);
        connection
    }

    /// Opens a stream of events.
    pub fn listen(&self, headers: &str) -> Connection {
        let mut connection = self.connect();
        connection.send("GET", "/mcp", &format!("Accept: text/event-stream\r\n{headers}"), b"");
        connection
    }

    /// Evaluates a program on a new connection; see [`Connection::eval`].
    pub fn eval(&self, headers: &str, program: &str, session: Option<&str>) -> (String, bool) {
        self.connect().eval(headers, program, session)
    }

    /// Returns the `result` object of a program's reply, or `None` if the server ends before it has answered.
    pub fn try_to_eval(&self, program: &str, session: Option<&str>) -> Option<Value> {
        let response = self.try_to_connect().ok()?.call("", "lisp_eval", program_in(session, program));
        Some(response.whole_message().ok()?["result"].clone())
    }
}

impl Session {
    /// Returns the headers of the session's requests.
    pub fn head(&self) -> String {
        format!("{}Mcp-Session-Id: {}\r\n", self.headers, self.id)
    }

    /// Posts a message.
    pub fn post(&self, message: &Value) -> Response {
        self.client.post(&self.head(), message)
    }

    /// Posts a request and reads the head of its response, whose body is a stream of events.
    pub fn stream(&self, message: &Value) -> Connection {
        let mut connection = self.client.connect();
        connection.begin_post(&self.head(), message);
        let head = connection.receive_head();
        assert_eq!(head.header("content-type"), Some("text/event-stream"), "{head:?}");
        connection
    }

    /// Returns the text of a program's reply, and whether it is an error.
    pub fn eval(&self, program: &str) -> (String, bool) {
        self.post(&evaluation(1, program)).result()
    }

    /// Opens the stream of events.
    pub fn listen(&self, more: &str) -> Connection {
        self.client.listen(&format!("{}{more}", self.head()))
    }
}

/// Builds a call of `lisp_eval` in a protocol revision before 2026-07-28.
pub fn evaluation(id: i64, program: &str) -> Value {
    let params = json!({"name": "lisp_eval", "arguments": {"program": program}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

impl Connection {
    /// Sends a request with these additional header lines.
    pub fn send(&mut self, method: &str, path: &str, headers: &str, body: &[u8]) {
        let host = if headers.contains("Host:") { String::new() } else { format!("Host: {}\r\n", self.address) };
        let head = format!("{method} {path} HTTP/1.1\r\n{host}Content-Length: {}\r\n{headers}\r\n", body.len());
        let request = [head.as_bytes(), body].concat();
        // The server may refuse the request before it has read all of it.
        let _ = self.stream.get_mut().write_all(&request);
    }

    /// Sends a request and reads the response.
    pub fn request(&mut self, method: &str, path: &str, headers: &str, body: &[u8]) -> Response {
        self.send(method, path, headers, body);
        Response::read(&mut self.stream)
    }

    /// Writes raw bytes.
    pub fn write(&mut self, bytes: &[u8]) {
        // The server may have closed the connection.
        let _ = self.stream.get_mut().write_all(bytes);
    }

    /// Reads the next response.
    pub fn receive(&mut self) -> Response {
        Response::read(&mut self.stream)
    }

    /// Reads the status line and headers of the next response.
    pub fn receive_head(&mut self) -> Response {
        Response::head(&mut self.stream)
    }

    /// Reads the rest of a chunked stream, up to its end.
    pub fn rest(&mut self) -> String {
        Response::chunks(&mut self.stream)
    }

    /// Returns the message of the next event of a chunked stream that has one.
    pub fn event(&mut self) -> Value {
        loop {
            let text = line(&mut self.stream);
            if let Some(message) = text.strip_prefix("data:").map(str::trim).filter(|message| !message.is_empty()) {
                return serde_json::from_str(message).expect("JSON");
            }
            assert!(self.stream.fill_buf().is_ok_and(|bytes| !bytes.is_empty()), "the stream has ended");
        }
    }

    /// Posts a message without waiting for the response.
    pub fn begin_post(&mut self, headers: &str, message: &Value) {
        self.send("POST", "/mcp", &format!("{MESSAGE}{headers}"), message.to_string().as_bytes());
    }

    /// Returns true if no data arrives within `time`.
    pub fn is_silent_for(&mut self, time: Duration) -> bool {
        self.stream.get_ref().set_read_timeout(Some(time)).expect("a time-out");
        let came = self.stream.fill_buf().map_err(|error| error.kind());
        matches!(came, Err(ErrorKind::WouldBlock | ErrorKind::TimedOut))
    }

    /// Posts a JSON-RPC message and reads the response.
    pub fn post(&mut self, headers: &str, message: &Value) -> Response {
        self.request("POST", "/mcp", &format!("{MESSAGE}{headers}"), message.to_string().as_bytes())
    }

    /// Calls a tool as a client of revision 2026-07-28.
    pub fn call(&mut self, headers: &str, tool: &str, arguments: Value) -> Response {
        self.begin(headers, tool, arguments);
        Response::read(&mut self.stream)
    }

    fn begin(&mut self, headers: &str, tool: &str, arguments: Value) {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let headers =
            format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n{headers}");
        self.send("POST", "/mcp", &format!("{MESSAGE}{headers}"), message.to_string().as_bytes());
    }

    /// Evaluates a program; returns the text of the reply, and whether it is an error.
    pub fn eval(&mut self, headers: &str, program: &str, session: Option<&str>) -> (String, bool) {
        self.call(headers, "lisp_eval", program_in(session, program)).result()
    }
}

impl Response {
    /// Reads a whole response. The missing parts of a truncated response are empty, and its status is 0.
    fn read(stream: &mut impl BufRead) -> Response {
        let mut response = Response::head(stream);
        let mut body = Vec::new();
        if response.header("transfer-encoding") == Some("chunked") {
            response.body = Response::chunks(stream);
        } else {
            let length = response.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
            let _ = stream.take(length).read_to_end(&mut body);
            response.body = String::from_utf8_lossy(&body).into_owned();
        }
        response
    }

    /// Reads a chunked body.
    fn chunks(stream: &mut impl BufRead) -> String {
        let mut body = Vec::new();
        while let Some(size) = usize::from_str_radix(&line(stream), 16).ok().filter(|size| *size > 0) {
            let _ = stream.take(size as u64).read_to_end(&mut body);
            line(stream);
        }
        line(stream);
        String::from_utf8_lossy(&body).into_owned()
    }

    /// Reads the status line and headers of a response.
    fn head(stream: &mut impl BufRead) -> Response {
        let mut head = line(stream);
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let mut headers = Vec::new();
        loop {
            head = line(stream);
            let Some((name, value)) = head.split_once(':') else { break };
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
        Response { status, headers, body: String::new() }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Returns the JSON-RPC message of the body: the whole body, or the last non-empty event of an event stream.
    pub fn message(&self) -> Value {
        self.whole_message().unwrap_or_else(|problem| panic!("{problem}: {self:?}"))
    }

    fn whole_message(&self) -> serde_json::Result<Value> {
        let mut events = self.body.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim);
        let text = events.rfind(|event| !event.is_empty()).unwrap_or(&self.body);
        serde_json::from_str(text)
    }

    /// Returns the text of a tool's result, and whether it is an error.
    pub fn result(&self) -> (String, bool) {
        let message = self.message();
        let text = message["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {message}"));
        (text.to_owned(), message["result"]["isError"] == true)
    }
}

/// Reads the next line without its terminator; empty at the end of the stream.
fn line(stream: &mut impl BufRead) -> String {
    let mut line = String::new();
    let _ = stream.read_line(&mut line);
    line.trim_end().to_owned()
}

/// Builds the arguments of `lisp_eval` for a program in a session, or in a fresh one.
fn program_in(session: Option<&str>, program: &str) -> Value {
    let mut arguments = json!({"program": program});
    if let Some(session) = session {
        arguments["session"] = json!(session);
    }
    arguments
}

/// Extracts the session handle from the text of a reply.
pub fn handle(text: &str) -> String {
    let (_, rest) = text.split_once("[session: ").unwrap_or_else(|| panic!("no handle: {text}"));
    rest.split(']').next().unwrap_or_default().to_owned()
}
