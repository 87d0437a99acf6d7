//! Messages that no client should send.

use serde_json::{Value, json};

use crate::mailbox::chance::Chance;

/// More bytes than the largest message that the server accepts.
const OVERSIZED: usize = (16 << 20) + 1_000;

/// A message and its expected outcome.
pub enum Wrong {
    /// A well-formed request with invalid content: method, parameters, outcome.
    Request(&'static str, Value, &'static str),
    /// A line built from the request number, and the outcome.
    Line(Box<dyn FnOnce(u64) -> Vec<u8>>, &'static str),
    /// A line that has no reply.
    Unanswered(Vec<u8>),
}

/// Chooses a message.
pub fn message(chance: &mut Chance) -> Wrong {
    const REFUSED: &str = "error: InvalidArguments";
    /// The error code for a line that could not be read.
    const UNREADABLE: &str = "protocol: -32099";
    let eval = |arguments: Value, outcome| {
        Wrong::Request("tools/call", json!({"name": "lisp_eval", "arguments": arguments}), outcome)
    };
    let line = |line: fn(u64) -> Vec<u8>| Wrong::Line(Box::new(line), UNREADABLE);
    // Rare, because sending 16 MiB takes time.
    if chance.below(40) == 0 {
        return line(|number| call(number, format!("\"{}\"", "x".repeat(OVERSIZED))));
    }
    match chance.below(20) {
        0 => eval(json!({"program": "1", "session": "nonsense"}), "error: UnknownSession"),
        1 => eval(json!({"program": "1", "session": "x".repeat(10_000)}), "error: UnknownSession"),
        2 => eval(json!({}), REFUSED),
        3 => eval(json!({"program": 5}), REFUSED),
        4 => eval(json!({"program": ["+", 1, 2]}), REFUSED),
        5 => eval(json!({"programme": "1"}), REFUSED),
        6 => eval(json!({"program": "1", "limits": 7}), REFUSED),
        7 => eval(json!({"program": "1", "session": 7}), REFUSED),
        8 => eval(json!("(+ 1 2)"), REFUSED),
        9 => Wrong::Request("tools/call", json!({"name": "lisp_evil", "arguments": {}}), "protocol: -32602"),
        10 => Wrong::Request("tools/brew", json!({}), "protocol: -32601"),
        11 => line(|number| call(number, "{\"name\":".to_owned())),
        12 => line(|number| call(number, format!("{}{}", "[".repeat(5_000), "]".repeat(5_000)))),
        13 => line(|number| {
            let mut line = call(number, "\"?\"".to_owned());
            line.iter_mut().filter(|byte| **byte == b'?').for_each(|byte| *byte = 0xff);
            line
        }),
        14 => Wrong::Unanswered(b"this is no JSON".to_vec()),
        15 => Wrong::Unanswered(b"{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":{".to_vec()),
        16 => Wrong::Unanswered(b"".to_vec()),
        17 => Wrong::Unanswered(json!({"jsonrpc": "2.0", "method": "notifications/weather"}).to_string().into_bytes()),
        18 => Wrong::Unanswered(json!({"jsonrpc": "2.0", "id": 4, "result": {}}).to_string().into_bytes()),
        _ => {
            let params = json!({"requestId": 1_000_000_000});
            let note = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
            Wrong::Unanswered(note.to_string().into_bytes())
        }
    }
}

/// A tool call with `params` as raw text.
fn call(number: u64, params: String) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{number},\"method\":\"tools/call\",\"params\":{params}}}").into_bytes()
}
