//! A server over HTTP, and a client that speaks with it in raw HTTP/1.1.
#![allow(dead_code, reason = "each test file uses its part")]

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

/// The headers of a message.
const MESSAGE: &str = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";

/// A running server, such as `lispbox serve --http`.
pub struct Server {
    pub process: Child,
    pub client: Client,
}

/// What speaks with a server at that address, over a connection of its own for each request.
#[derive(Clone, Copy)]
pub struct Client {
    pub address: SocketAddr,
}

/// A connection to a server, which stays open from request to request.
pub struct Connection {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
}

/// A session of a protocol before 2026-07-28.
#[derive(Clone)]
pub struct Session {
    pub client: Client,
    /// The `Authorization` of who began it, if there is one.
    pub headers: String,
    /// Its `Mcp-Session-Id`.
    pub id: String,
}

/// What came back.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

/// Writes a tokens file that only its owner may read.
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
    /// Starts a server at a free port of this machine.
    pub fn start(arguments: &[&str], variables: &[(&str, &str)]) -> Server {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lispbox"));
        command.args(["serve", "--http", "127.0.0.1:0"]).args(arguments);
        command.env_remove("LISPBOX_TOKEN").envs(variables.iter().copied());
        Server::of(command)
    }

    /// Starts any server whose first line says where it listens.
    pub fn of(mut command: Command) -> Server {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().expect("the binary runs");
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("piped")).read_line(&mut line).expect("it says where it listens");
        let address = line.trim().trim_end_matches("/mcp").strip_prefix("listening on http://");
        let address = address.unwrap_or_else(|| panic!("no address: {line:?}")).parse().expect("an address");
        Server { process, client: Client { address } }
    }

    /// What the system says of the process's memory, such as `VmRSS` or `VmHWM`, in bytes.
    pub fn memory(&self, name: &str) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).ok()?;
        let size = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(size.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
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

    /// As [`Connection::request`].
    pub fn request(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> Response {
        self.connect().request(method, path, headers, body)
    }

    /// As [`Connection::post`].
    pub fn post(&self, headers: &str, message: &Value) -> Response {
        self.connect().post(headers, message)
    }

    /// As [`Connection::call`].
    pub fn call(&self, headers: &str, tool: &str, arguments: Value) -> Response {
        self.connect().call(headers, tool, arguments)
    }

    /// Begins a session of a protocol before 2026-07-28.
    ///
    /// # Errors
    /// The response where there is no session.
    pub fn initialize(&self, headers: &str, version: &str) -> Result<Session, Response> {
        let info = json!({"name": "test", "version": "1"});
        let hello = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": info});
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello});
        let response = self.post(headers, &hello);
        let Some(id) = response.header("mcp-session-id") else { return Err(response) };
        assert_eq!(response.message()["result"]["protocolVersion"], version);
        let session = Session { client: *self, headers: headers.to_owned(), id: id.to_owned() };
        assert_eq!(session.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).status, 202);
        Ok(session)
    }

    /// Begins a call, without waiting for what comes back.
    pub fn begin(&self, headers: &str, tool: &str, arguments: Value) -> Connection {
        let mut connection = self.connect();
        connection.begin(headers, tool, arguments);
        connection
    }

    /// Asks for a stream of events.
    pub fn listen(&self, headers: &str) -> Connection {
        let mut connection = self.connect();
        connection.send("GET", "/mcp", &format!("Accept: text/event-stream\r\n{headers}"), b"");
        connection
    }

    /// As [`Connection::eval`].
    pub fn eval(&self, headers: &str, program: &str, session: Option<&str>) -> (String, bool) {
        self.connect().eval(headers, program, session)
    }

    /// The result of a program, as the protocol has it, unless the server ends before it has answered.
    pub fn try_to_eval(&self, program: &str, session: Option<&str>) -> Option<Value> {
        let response = self.try_to_connect().ok()?.call("", "lisp_eval", program_in(session, program));
        Some(response.whole_message().ok()?["result"].clone())
    }
}

impl Session {
    /// The headers of its requests.
    pub fn head(&self) -> String {
        format!("{}Mcp-Session-Id: {}\r\n", self.headers, self.id)
    }

    /// Posts a message.
    pub fn post(&self, message: &Value) -> Response {
        self.client.post(&self.head(), message)
    }

    /// The text of a program's reply, and whether it is an error.
    pub fn eval(&self, program: &str) -> (String, bool) {
        self.post(&evaluation(1, program)).result()
    }

    /// Opens the stream of events.
    pub fn listen(&self, more: &str) -> Connection {
        self.client.listen(&format!("{}{more}", self.head()))
    }
}

/// A call of `lisp_eval` in a protocol before 2026-07-28.
pub fn evaluation(id: i64, program: &str) -> Value {
    let params = json!({"name": "lisp_eval", "arguments": {"program": program}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

impl Connection {
    /// Sends a request with these headers, one a line, beside the necessary ones.
    pub fn send(&mut self, method: &str, path: &str, headers: &str, body: &[u8]) {
        let host = if headers.contains("Host:") { String::new() } else { format!("Host: {}\r\n", self.address) };
        let head = format!("{method} {path} HTTP/1.1\r\n{host}Content-Length: {}\r\n{headers}\r\n", body.len());
        let request = [head.as_bytes(), body].concat();
        // It may refuse without reading everything.
        let _ = self.stream.get_mut().write_all(&request);
    }

    /// The same, and what comes back.
    pub fn request(&mut self, method: &str, path: &str, headers: &str, body: &[u8]) -> Response {
        self.send(method, path, headers, body);
        Response::read(&mut self.stream)
    }

    /// Sends bytes as they are.
    pub fn write(&mut self, bytes: &[u8]) {
        // It may have been closed.
        let _ = self.stream.get_mut().write_all(bytes);
    }

    /// The next response.
    pub fn receive(&mut self) -> Response {
        Response::read(&mut self.stream)
    }

    /// The next response up to its body.
    pub fn receive_head(&mut self) -> Response {
        Response::head(&mut self.stream)
    }

    /// Reads what is left of a stream until it ends.
    pub fn rest(&mut self) -> String {
        Response::chunks(&mut self.stream)
    }

    /// Begins a message, without waiting for what comes back.
    pub fn begin_post(&mut self, headers: &str, message: &Value) {
        self.send("POST", "/mcp", &format!("{MESSAGE}{headers}"), message.to_string().as_bytes());
    }

    /// True if nothing comes for that long.
    pub fn is_silent_for(&mut self, time: Duration) -> bool {
        self.stream.get_ref().set_read_timeout(Some(time)).expect("a time-out");
        let came = self.stream.fill_buf().map_err(|error| error.kind());
        matches!(came, Err(ErrorKind::WouldBlock | ErrorKind::TimedOut))
    }

    /// Sends a JSON-RPC message.
    pub fn post(&mut self, headers: &str, message: &Value) -> Response {
        self.request("POST", "/mcp", &format!("{MESSAGE}{headers}"), message.to_string().as_bytes())
    }

    /// Calls a tool as a client of 2026-07-28.
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

    /// The text of a program's reply, and whether it is an error.
    pub fn eval(&mut self, headers: &str, program: &str, session: Option<&str>) -> (String, bool) {
        self.call(headers, "lisp_eval", program_in(session, program)).result()
    }
}

impl Response {
    /// Reads a response to its end; what is missing of one that is cut off is empty, its status 0.
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

    /// Reads a body that comes in chunks.
    fn chunks(stream: &mut impl BufRead) -> String {
        let mut body = Vec::new();
        while let Some(size) = usize::from_str_radix(&line(stream), 16).ok().filter(|size| *size > 0) {
            let _ = stream.take(size as u64).read_to_end(&mut body);
            line(stream);
        }
        line(stream);
        String::from_utf8_lossy(&body).into_owned()
    }

    /// Reads a response up to its body.
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

    /// The JSON-RPC message in it, alone or as the last event of a stream that has any.
    pub fn message(&self) -> Value {
        self.whole_message().unwrap_or_else(|problem| panic!("{problem}: {self:?}"))
    }

    fn whole_message(&self) -> serde_json::Result<Value> {
        let mut events = self.body.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim);
        let text = events.rfind(|event| !event.is_empty()).unwrap_or(&self.body);
        serde_json::from_str(text)
    }

    /// The text of a tool's result, and whether it is an error.
    pub fn result(&self) -> (String, bool) {
        let message = self.message();
        let text = message["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {message}"));
        (text.to_owned(), message["result"]["isError"] == true)
    }
}

/// The next line without its end; empty where there is none.
fn line(stream: &mut impl BufRead) -> String {
    let mut line = String::new();
    let _ = stream.read_line(&mut line);
    line.trim_end().to_owned()
}

/// The arguments of a program in a session, or in a fresh one.
fn program_in(session: Option<&str>, program: &str) -> Value {
    let mut arguments = json!({"program": program});
    if let Some(session) = session {
        arguments["session"] = json!(session);
    }
    arguments
}

/// The handle that a reply's text names.
pub fn handle(text: &str) -> String {
    let (_, rest) = text.split_once("[session: ").unwrap_or_else(|| panic!("no handle: {text}"));
    rest.split(']').next().unwrap_or_default().to_owned()
}
