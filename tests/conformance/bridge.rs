//! A relay in front of lispbox through which scenarios of the suite call lispbox: a call of one of the suite's tools
//! becomes a call of `lisp_eval` with a program that needs approval. The questions, states and results are lispbox's
//! own, and the suite's answers reach lispbox unchanged.
//!
//! For one of its tools ([`NAMED`]) the suite fixes the name of the question and sends some answers without a first
//! round, as to a server that needs no state. There, `user_name` stands for `call-001`, lispbox's name of the first
//! question, and the relay makes the first round that is missing.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::http_client::Client;

/// The configuration of lispbox: a tool about which a person is asked.
pub fn configuration() -> Value {
    json!({
        "local": {"notes/share": {
            "command": "printf", "args": ["shared %s", "{line}"],
            "parameters": {"properties": {"line": {"type": "string"}}, "required": ["line"]},
        }},
        "policy": {"ask": ["notes/share"]},
    })
}

/// The tool whose question has a fixed name, and both names of the question.
const NAMED: &str = "test_input_required_result_elicitation";
const THEIRS: &str = "\"user_name\"";
const OURS: &str = "\"call-001\"";

/// Returns the program in place of a tool. No answer of the suite sets `allow`, so each is a refusal, which the
/// programs catch.
fn program(tool: &str) -> Option<&'static str> {
    Some(match tool {
        NAMED
        | "test_input_required_result_request_state"
        | "test_input_required_result_tampered_state"
        | "test_input_required_result_capabilities"
        | "test_streaming_elicitation"
        | "test_elicitation" => r#"(try (notes/share {:line "a"}) (catch ToolDenied e "denied"))"#,
        "test_input_required_result_multi_round" => {
            r#"(defn share [line] (try (notes/share {:line line}) (catch ToolDenied e "denied")))
               (do [(share "a") (share "b")])"#
        }
        "test_logging_tool" => r#"(println "a")"#,
        _ => return None,
    })
}

/// A running relay, stopped on drop.
pub struct Bridge {
    address: SocketAddr,
    ended: Arc<AtomicBool>,
}

impl Bridge {
    pub fn to(server: SocketAddr) -> Bridge {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let ended = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&ended);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if end.load(Ordering::SeqCst) {
                    return;
                }
                // Either side may disconnect at any time.
                std::thread::spawn(move || drop(relay(&client, server)));
            }
        });
        Bridge { address, ended }
    }

    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        // Wakes the listener, which is blocked until the next connection.
        let _ = TcpStream::connect(self.address);
    }
}

/// Passes on one request and its response.
fn relay(mut client: &TcpStream, server: SocketAddr) -> std::io::Result<()> {
    let mut input = BufReader::new(client);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if input.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    let (request, headers) = head.trim_end().split_once("\r\n").expect("a request line");
    let mut headers: Vec<(&str, String)> = headers
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name, value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let mut body = vec![0; length.and_then(|(_, length)| length.parse().ok()).unwrap_or_default()];
    input.read_exact(&mut body)?;
    let is_named = translate(&mut headers, &mut body, server);

    // A response of HTTP/1.0 ends with its connection, so it may change its length on the way.
    let mut server = TcpStream::connect(server)?;
    let mut passed = format!("{}\r\n", request.replace("HTTP/1.1", "HTTP/1.0"));
    for (name, value) in headers {
        if !["content-length", "connection"].contains(&&*name.to_lowercase()) {
            passed.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    passed.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
    server.write_all(passed.as_bytes())?;
    server.write_all(&body)?;
    let mut answers = BufReader::new(server);
    let mut line = Vec::new();
    while answers.read_until(b'\n', &mut line)? > 0 {
        let text = String::from_utf8_lossy(&line);
        if !text.to_lowercase().starts_with("content-length:") {
            let text = if is_named { text.replace(OURS, THEIRS) } else { text.into_owned() };
            client.write_all(text.as_bytes())?;
        }
        line.clear();
    }
    client.shutdown(Shutdown::Both)
}

/// Replaces a call of a tool of the suite by a call of `lisp_eval`. Returns true if its question has another name.
fn translate(headers: &mut [(&str, String)], body: &mut Vec<u8>, server: SocketAddr) -> bool {
    let Ok(mut message) = serde_json::from_slice::<Value>(body) else { return false };
    let tool = message["params"]["name"].as_str().unwrap_or_default().to_owned();
    let Some(program) = program(&tool).filter(|_| message["method"] == "tools/call") else { return false };
    let mut versions = String::new();
    for (name, value) in headers {
        if name.eq_ignore_ascii_case("mcp-name") && *value == tool {
            "lisp_eval".clone_into(value);
        }
        if name.to_lowercase().starts_with("mcp-") {
            versions.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    let params = &mut message["params"];
    params["name"] = json!("lisp_eval");
    params["arguments"] = json!({"program": program});
    if tool == NAMED && params["inputResponses"].is_object() && params["requestState"].is_null() {
        let mut first = message.clone();
        first["params"].as_object_mut().expect("parameters").remove("inputResponses");
        let asked = Client { address: server }.post(&versions, &first).message();
        message["params"]["requestState"] = asked["result"]["requestState"].clone();
    }
    let text = message.to_string();
    *body = if tool == NAMED { text.replace(THEIRS, OURS) } else { text }.into_bytes();
    tool == NAMED
}
