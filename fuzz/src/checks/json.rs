//! Any text as JSON: `json/parse` accepts the texts that `serde_json` accepts, with the same result, and written JSON
//! reads back as the same value.

use super::super::{evaluate, session, small_limits};
use lispbox::lang::Limits;
use serde_json::Value;

const PROGRAM: &str = "(let [value (json/parse data) text (json/write value) again (json/parse text)]
  [(= value again) (= text (json/write again)) (= value (json/parse (json/write value :indent true))) text])";

/// Checks one input.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let limits = Limits { fuel: 2_000_000, memory: 64 << 20, output: 1 << 20, ..small_limits() };
    let reply = evaluate(&mut session(), PROGRAM, Some(&text), limits);
    let theirs = serde_json::from_str::<Value>(&text);
    match (&reply.failure, theirs) {
        (None, Ok(theirs)) => {
            let Some(Value::Array(ours)) = &reply.json else { return };
            let [Value::Bool(true), Value::Bool(true), Value::Bool(true), Value::String(written)] = ours.as_slice()
            else {
                panic!("what is written is not read as the same value: {ours:?}")
            };
            let ours: Value = serde_json::from_str(written).expect("what we write is JSON");
            assert!(is_same(&ours, &theirs), "read as {written}");
        }
        (None, Err(error)) => {
            // serde_json limits nesting to 128 levels, this parser to 1,000. This parser also accepts numbers of any
            // size, and reads an unpaired surrogate as U+FFFD.
            let problem = error.to_string();
            let is_meant = ["recursion limit", "number out of range", "hex escape", "surrogate"]
                .into_iter()
                .any(|known| problem.contains(known));
            assert!(is_meant, "taken here, refused there: {problem}");
        }
        (Some(failure), Ok(_)) if failure.limit.is_none() => {
            panic!("refused here, taken there: {}", failure.rendered);
        }
        (Some(_), _) => {}
    }
}

/// Returns true if the values are equal, where an integer equals a float of the same value.
fn is_same(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Number(ours), Value::Number(theirs)) => ours.as_f64() == theirs.as_f64(),
        (Value::Array(ours), Value::Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| is_same(ours, theirs))
        }
        (Value::Object(ours), Value::Object(theirs)) => {
            ours.len() == theirs.len()
                && ours.iter().all(|(key, ours)| theirs.get(key).is_some_and(|theirs| is_same(ours, theirs)))
        }
        _ => ours == theirs,
    }
}
