//! A server over HTTP, and connections that stay open.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

/// A running server.
pub struct Server {
    process: Child,
    pub address: SocketAddr,
}

impl Server {
    /// Starts one at a free port.
    pub fn start(arguments: &[&str]) -> Server {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lispbox"));
        command.args(["serve", "--http", "127.0.0.1:0"]).args(arguments).env_remove("LISPBOX_TOKEN");
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().expect("the server starts");
        let mut line = String::new();
        let output = process.stdout.take().expect("piped");
        BufReader::new(output).read_line(&mut line).expect("it says where it listens");
        let address = line.trim().trim_start_matches("listening on http://").trim_end_matches("/mcp");
        Server { address: address.parse().expect("an address"), process }
    }

    /// What the process takes of memory now, in bytes.
    pub fn resident(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? << 10)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// One connection of a client of MCP 2026-07-28.
pub struct Connection {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
}

impl Connection {
    /// Connects.
    pub fn open(address: SocketAddr) -> Connection {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_nodelay(true).expect("a socket");
        Connection { stream: BufReader::new(stream), address }
    }

    /// Evaluates a program, in a session if one is named, and gives the text of the reply.
    pub fn eval(&mut self, program: &str, session: Option<&str>) -> String {
        let mut arguments = json!({"program": program});
        if let Some(session) = session {
            arguments["session"] = json!(session);
        }
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({"name": "lisp_eval", "arguments": arguments, "_meta": meta});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: lisp_eval\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).expect("the server reads");
        let answer = self.answer();
        let text = answer.lines().filter_map(|line| line.strip_prefix("data:")).rfind(|event| !event.trim().is_empty());
        let message: Value = serde_json::from_str(text.unwrap_or(&answer)).expect("JSON");
        let result = &message["result"];
        assert!(result["isError"] != true && message["error"].is_null(), "{message}");
        result["content"][0]["text"].as_str().expect("a text").to_owned()
    }

    /// The body of the next response.
    fn answer(&mut self) -> String {
        let (mut length, mut chunked) = (0, false);
        loop {
            let line = self.line().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
            chunked |= line == "transfer-encoding: chunked";
        }
        let mut body = Vec::new();
        if !chunked {
            self.read(length, &mut body);
        }
        while chunked {
            let size = usize::from_str_radix(&self.line(), 16).expect("a size");
            self.read(size, &mut body);
            self.line();
            chunked = size > 0;
        }
        String::from_utf8(body).expect("UTF-8")
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.stream.read_line(&mut line).expect("the server answers") > 0, "the server has gone");
        line.trim_end().to_owned()
    }

    fn read(&mut self, size: usize, body: &mut Vec<u8>) {
        let from = body.len();
        body.resize(from + size, 0);
        self.stream.read_exact(&mut body[from..]).expect("the server answers");
    }
}
