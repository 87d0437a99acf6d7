//! An MCP server connected by a pipe, with line-based messages.
#![allow(dead_code, reason = "each bench uses its part")]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A running server, and the connection to it.
pub struct Pipe {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    sent: usize,
    hello: Value,
}

impl Pipe {
    /// Starts the server and performs the handshake.
    pub fn start(command: &mut Command) -> Pipe {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().expect("the server starts");
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().expect("piped"));
        let mut pipe = Pipe { process, input, output, sent: 0, hello: Value::Null };
        let client = json!({"name": "bench", "version": "1"});
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        pipe.hello = pipe.request("initialize", hello);
        pipe.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        pipe
    }

    /// The server's reply to the `initialize` request.
    pub fn hello(&self) -> &Value {
        &self.hello
    }

    /// The id of the next request.
    pub fn next(&self) -> usize {
        self.sent + 1
    }

    /// Sends a request without waiting for the reply.
    pub fn send(&mut self, method: &str, params: Value) {
        self.sent += 1;
        self.write(&json!({"jsonrpc": "2.0", "id": self.sent, "method": method, "params": params}));
    }

    /// Receives the next reply, skipping notifications of the server.
    pub fn receive(&mut self) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).expect("the server answers") > 0, "the server has gone");
            let message: Value = serde_json::from_str(&line).expect("JSON");
            if message.get("method").is_none() {
                return message;
            }
        }
    }

    /// Sends a request and waits for the reply.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        self.send(method, params);
        self.receive()
    }

    /// Closes the server's input and waits for its end.
    pub fn finish(mut self) {
        self.input = None;
        self.process.wait().expect("it is a child of this process");
    }

    fn write(&mut self, message: &Value) {
        let mut line = message.to_string();
        line.push('\n');
        let input = self.input.as_mut().expect("it is open until the end");
        input.write_all(line.as_bytes()).expect("the server reads");
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
