//! A server over HTTP, and a client that speaks with it in raw HTTP/1.1.
#![allow(dead_code, reason = "each test file uses its part")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

/// The headers of a message.
const MESSAGE: &str = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";

/// A running `lispbox serve --http`.
pub struct Server {
    pub process: Child,
    pub client: Client,
}

/// What speaks with a server at that address.
#[derive(Clone, Copy)]
pub struct Client {
    pub address: SocketAddr,
}

impl std::ops::Deref for Server {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

/// What came back.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The JSON-RPC message in it, alone or as the last event of a stream that has any.
    pub fn message(&self) -> Value {
        let mut events = self.body.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim);
        let text = events.rfind(|event| !event.is_empty()).unwrap_or(&self.body);
        serde_json::from_str(text).unwrap_or_else(|problem| panic!("{problem}: {self:?}"))
    }

    /// The text of a tool's result, and whether it is an error.
    pub fn result(&self) -> (String, bool) {
        let message = self.message();
        let text = message["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {message}"));
        (text.to_owned(), message["result"]["isError"] == true)
    }
}

impl Server {
    /// Starts a server at a free port of this machine.
    pub fn start(arguments: &[&str], variables: &[(&str, &str)]) -> Server {
        let mut process = Command::new(env!("CARGO_BIN_EXE_lispbox"))
            .args(["serve", "--http", "127.0.0.1:0"])
            .args(arguments)
            .env_remove("LISPBOX_TOKEN")
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("piped")).read_line(&mut line).expect("it says where it listens");
        let address = line.trim().strip_prefix("listening on http://").and_then(|rest| rest.strip_suffix("/mcp"));
        let address = address.unwrap_or_else(|| panic!("no address: {line:?}")).parse().expect("an address");
        Server { process, client: Client { address } }
    }
}

impl Client {
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Sends a request with these headers, one a line, beside the necessary ones.
    fn send(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> TcpStream {
        let host = if headers.contains("Host:") { String::new() } else { format!("Host: {}\r\n", self.address) };
        let head = format!(
            "{method} {path} HTTP/1.1\r\n{host}Content-Length: {}\r\nConnection: close\r\n{headers}\r\n",
            body.len()
        );
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time-out");
        stream.write_all(head.as_bytes()).expect("it reads");
        // It may refuse without reading everything.
        let _ = stream.write_all(body);
        stream
    }

    /// The same, and what comes back until the server closes the connection.
    pub fn request(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> Response {
        let mut stream = self.send(method, path, headers, body);
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all);
        Response::parse(&all)
    }

    /// Sends a JSON-RPC message.
    pub fn post(&self, headers: &str, message: &Value) -> Response {
        self.request("POST", "/mcp", &format!("{MESSAGE}{headers}"), message.to_string().as_bytes())
    }

    /// Calls a tool as a client of 2026-07-28.
    pub fn call(&self, headers: &str, tool: &str, arguments: Value) -> Response {
        let mut stream = self.begin(headers, tool, arguments);
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all);
        Response::parse(&all)
    }

    /// Begins such a call, without waiting for what comes back.
    pub fn begin(&self, headers: &str, tool: &str, arguments: Value) -> TcpStream {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let headers =
            format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n{headers}");
        self.send("POST", "/mcp", &format!("{MESSAGE}{headers}"), message.to_string().as_bytes())
    }

    /// The text of a program's reply, and whether it is an error.
    pub fn eval(&self, headers: &str, program: &str, session: Option<&str>) -> (String, bool) {
        let mut arguments = json!({"program": program});
        if let Some(session) = session {
            arguments["session"] = json!(session);
        }
        self.call(headers, "lisp_eval", arguments).result()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Response {
    fn parse(all: &[u8]) -> Response {
        let end = all.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(all.len());
        let head = String::from_utf8_lossy(&all[..end]).into_owned();
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).unwrap_or(0);
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
            .collect();
        let rest = all.get(end + 4..).unwrap_or_default();
        let response = Response { status, headers, body: String::new() };
        let body = if response.header("transfer-encoding") == Some("chunked") { joined(rest) } else { rest.to_vec() };
        Response { body: String::from_utf8_lossy(&body).into_owned(), ..response }
    }
}

/// The body that these chunks make.
fn joined(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(&String::from_utf8_lossy(&rest[..end]), 16).unwrap_or(0);
        if size == 0 || rest.len() < end + 2 + size {
            break;
        }
        body.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = rest.get(end + 4 + size..).unwrap_or_default();
    }
    body
}

/// The handle that a reply's text names.
pub fn handle(text: &str) -> String {
    let (_, rest) = text.split_once("[session: ").unwrap_or_else(|| panic!("no handle: {text}"));
    rest.split(']').next().unwrap_or_default().to_owned()
}
