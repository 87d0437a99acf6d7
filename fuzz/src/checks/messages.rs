//! Any lines from a client: each request with an id is answered exactly once, and nothing else is answered.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;

use super::super::{engine, small_limits};
use lispbox::server::{CancellationToken, Configuration, ServeOptions, serve_streams};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex, split};
use tokio::runtime::{Builder, Runtime};

/// Maximum length of a message, in bytes; longer ones are refused.
const LARGEST: usize = 2 << 10;
/// Maximum time for the server to end after its client has disconnected.
const PATIENCE: Duration = Duration::from_secs(10);

/// Checks one input.
pub fn check(bytes: &[u8]) {
    let (taken, output) = runtime().block_on(serve(bytes));
    let mut answers: BTreeMap<String, usize> = BTreeMap::new();
    for line in output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let answer: Value = serde_json::from_slice(line).expect("what the server writes is JSON");
        assert_eq!(answer["jsonrpc"], "2.0");
        assert!(answer.get("method").is_none(), "nothing is asked of the client: {answer}");
        assert!(answer.get("result").is_some() != answer.get("error").is_some(), "{answer}");
        *answers.entry(answer["id"].to_string()).or_default() += 1;
    }
    let mut asked: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut is_withdrawn = false;
    // A line that is not valid JSON may have an id that only the server's scan finds.
    let mut unreadable = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let Ok(Value::Object(message)) = serde_json::from_slice(line) else {
            unreadable += 1;
            continue;
        };
        is_withdrawn |= message.get("method").is_some_and(|method| method == "notifications/cancelled");
        let Some(id) = message.get("id") else { continue };
        let (whole, all) = asked.entry(id.to_string()).or_default();
        *all += 1;
        let is_id = id.is_string() || id.is_i64();
        // A line without a terminator was cut off.
        if is_id && line.ends_with(b"\n") && message.get("method").is_some_and(Value::is_string) && line.len() < LARGEST
        {
            *whole += 1;
        }
    }
    for (id, (whole, all)) in &asked {
        let count = answers.remove(id).unwrap_or(0);
        assert!(count <= *all + unreadable, "{count} answers to {all} requests {id}");
        // The server leaves a client at once that does not begin with MCP, and need not answer a request that was
        // cancelled.
        if taken && !is_withdrawn {
            assert!(count >= *whole, "{count} answers to {whole} requests {id}");
        }
    }
    assert!(answers.values().sum::<usize>() <= unreadable, "nobody asked for {answers:?}");
}

/// Serves a client that sends these bytes and closes its side. Returns whether the server accepted it as a client, and
/// the server's output.
async fn serve(bytes: &[u8]) -> (bool, Vec<u8>) {
    let mut options = ServeOptions::new(Configuration::default());
    options.limits = small_limits();
    options.most = small_limits();
    options.largest_message = LARGEST;
    let (near, far) = duplex(1 << 16);
    let (input, output) = split(near);
    let (mut from, mut to) = split(far);
    let talk = async {
        // The server may close its side first.
        let _ = to.write_all(bytes).await;
        let _ = to.shutdown().await;
    };
    let mut told = Vec::new();
    let serving = serve_streams(engine().clone(), options, input, output, CancellationToken::new());
    let all = async { tokio::join!(serving, talk, from.read_to_end(&mut told)) };
    let (outcome, (), _) = tokio::time::timeout(PATIENCE, all).await.expect("the server ends when its client has gone");
    (outcome.is_ok(), told)
}

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Builder::new_current_thread().enable_all().build().expect("a runtime"))
}
