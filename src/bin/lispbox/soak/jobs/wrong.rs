//! Messages that no client should send.

use serde_json::{Value, json};

use crate::chance::Chance;

/// Larger than the largest message that the server takes in.
const OVERSIZED: usize = (16 << 20) + 1_000;

/// A message, and what must come of it.
pub enum Wrong {
    /// A request like any other but for its content: method, parameters, outcome.
    Request(&'static str, Value, &'static str),
    /// A line of which the number becomes known as it is sent, and the outcome.
    Line(Box<dyn FnOnce(u64) -> Vec<u8>>, &'static str),
    /// A line to which there is no reply.
    Unanswered(Vec<u8>),
}

/// One of them.
pub fn message(chance: &mut Chance) -> Wrong {
    const REFUSED: &str = "error: InvalidArguments";
    /// A line that could not be taken in.
    const UNREADABLE: &str = "protocol: -32099";
    let eval = |arguments: Value, outcome| {
        Wrong::Request("tools/call", json!({"name": "lisp_eval", "arguments": arguments}), outcome)
    };
    let line = |line: fn(u64) -> Vec<u8>| Wrong::Line(Box::new(line), UNREADABLE);
    // Seventeen megabytes take their time.
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

/// A call of a tool, with parameters as text.
fn call(number: u64, params: String) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{number},\"method\":\"tools/call\",\"params\":{params}}}").into_bytes()
}
