//! Tests of lines that are large, deeply nested, malformed or truncated.

use rmcp::{RoleClient, RoleServer};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};

use super::*;

/// Feeds `input` to a client's transport and returns the messages that it accepts, as JSON.
async fn received(input: Vec<u8>, largest: usize) -> Vec<serde_json::Value> {
    let (mut far, near) = tokio::io::duplex(1 << 16);
    let (read, write) = tokio::io::split(near);
    let feeding = tokio::spawn(async move {
        far.write_all(&input).await.expect("the transport reads all");
    });
    let mut lines = Lines::new(read, write, largest, CancellationToken::new());
    let mut messages = Vec::new();
    while let Some(message) = Transport::<RoleClient>::receive(&mut lines).await {
        messages.push(serde_json::to_value(&message).expect("a message is JSON"));
    }
    feeding.await.expect("fed");
    messages
}

#[tokio::test]
async fn a_large_reply_becomes_an_error_with_its_size() {
    let mut input = Vec::from(&b"{\"jsonrpc\":\"2.0\",\"result\":{\"content\":[{\"type\":\"text\",\"text\":\""[..]);
    input.extend(vec![b'x'; 100_000]);
    input.extend(b"\"}]},\"id\":3}\n");
    let bytes = input.len();
    input.extend(b"{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{}}\n");
    let messages = received(input, 1000).await;
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[0]["id"], 3);
    assert_eq!(messages[0]["error"]["data"]["bytes"], bytes);
    assert_eq!(messages[1]["id"], 4);
}

#[tokio::test]
async fn odd_and_deep_replies_become_errors_and_garbage_is_passed_over() {
    let deep = format!("{{\"id\":2,\"result\":{}{}}}", "[".repeat(5000), "]".repeat(5000));
    let input = format!("starting up...\n\n{{\"id\":1,\"result\":oops}}\r\n{deep}\n{{\"log\":1}}\n{{\"cut\":");
    let messages = received(input.into_bytes(), 1 << 20).await;
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert_eq!(messages[0]["id"], 1);
    assert_eq!(messages[0]["error"]["code"], UNREADABLE.0);
    assert_eq!(messages[1]["error"]["data"]["depth"], 5001);
}

#[tokio::test]
async fn a_line_of_a_log_with_an_identity_is_no_reply() {
    let log = "WARN retrying {\"id\":5,\"error\":\"timeout\"}\n{\"level\":\"warn\",\"id\":5,\"error\":\"timeout\"}\n";
    let reply = "INFO {\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}}\n";
    let messages = received(format!("{log}{reply}").into_bytes(), 1 << 20).await;
    assert_eq!(messages, [json!({"jsonrpc": "2.0", "id": 5, "result": {}})]);
}

#[tokio::test]
async fn a_long_line_that_comes_in_pieces_is_scanned_once() {
    let pieces = "{\"a\":1},".repeat(100_000);
    let text = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"content\":[],\"structuredContent\":{{\"a\":[{pieces}0]}}}}}}"
    );
    let (mut far, near) = tokio::io::duplex(16);
    let (read, write) = tokio::io::split(near);
    let sent = text.clone();
    // Each piece ends where the message might end; it ends without a line.
    let feeding = tokio::spawn(async move {
        for piece in sent.as_bytes().chunks(8) {
            far.write_all(piece).await.expect("the transport reads all");
        }
        far
    });
    let mut lines = Lines::new(read, write, 1 << 21, CancellationToken::new());
    assert!(Transport::<RoleClient>::receive(&mut lines).await.is_some());
    assert_eq!(lines.reader.scanned.1, text.len());
    drop(feeding.await.expect("fed"));
}

#[tokio::test]
async fn a_request_that_cannot_be_read_is_answered() {
    let (mut far, near) = tokio::io::duplex(1 << 16);
    let (read, write) = tokio::io::split(near);
    let ended = CancellationToken::new();
    let mut lines = Lines::new(read, write, 100, ended.clone());
    let request = format!("{{\"method\":\"tools/call\",\"id\":\"q\",\"params\":\"{}\"}}\n", "y".repeat(200));
    far.write_all(request.as_bytes()).await.expect("written");
    far.shutdown().await.expect("closed");
    assert!(Transport::<RoleServer>::receive(&mut lines).await.is_none());
    assert!(ended.is_cancelled());
    // As rmcp does at the end; everything still to be written has been queued.
    Transport::<RoleServer>::close(&mut lines).await.expect("closed");
    drop(lines);
    let mut answer = Vec::new();
    far.read_to_end(&mut answer).await.expect("an answer");
    let answer: serde_json::Value = serde_json::from_slice(&answer).expect("JSON");
    assert_eq!((&answer["id"], &answer["error"]["data"]["bytes"]), (&json!("q"), &json!(request.len())));
    let message = format!("the message has {} bytes; at most 100 are accepted", request.len());
    assert_eq!(answer["error"]["message"], message);
}

#[tokio::test]
async fn messages_over_several_lines_are_put_together() {
    let whole = br#"{"jsonrpc":"2.0","id":4,"result":{}}"#;
    let pretty = b"{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 3,\n  \"result\": {\"a\": \"}\"}\n}\n";
    let cases: [(&[u8], &[i64]); 5] = [
        (pretty, &[3, 4]),
        // A line that looks like the beginning of a message is none once a whole one follows.
        (b"{ starting\n", &[4]),
        (b"[\n", &[4]),
        (
            b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}},\n{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}]\n",
            &[1, 2, 4],
        ),
        (b"Content-Length: 36\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":8,\"result\":{}}", &[8, 4]),
    ];
    for (before, expected) in cases {
        let input = [before, whole, b"\n"].concat();
        let ids: Vec<i64> =
            received(input, 1 << 20).await.iter().filter_map(|message| message["id"].as_i64()).collect();
        assert_eq!(ids, expected, "{}", String::from_utf8_lossy(before));
    }
    let cut = received(b"{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\n".to_vec(), 1 << 20).await;
    assert_eq!(cut[0]["error"]["code"], -32099, "a message that was cut off is answered with an error at once");
    let large = [b"{\n \"id\": 3,\n \"x\": \"".to_vec(), vec![b'x'; 5_000], b"\"\n}\n".to_vec()].concat();
    let bytes = large.len();
    assert_eq!(received(large, 4_000).await[0]["error"]["data"]["bytes"], bytes);
}

/// Returns the text of a request with that identity, which takes more than one piece of the pipe of [`connected`].
fn request(id: &RequestId) -> Vec<u8> {
    let text = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "x".repeat(200)}});
    serde_json::to_vec(&text).expect("JSON")
}

/// The transport of a client over a pipe in memory.
type Near = Lines<ReadHalf<DuplexStream>, Stream<WriteHalf<DuplexStream>>>;

/// Returns the transport of a client, and the side of its server.
fn connected() -> (Near, BufReader<DuplexStream>) {
    let (far, near) = tokio::io::duplex(64);
    let (read, write) = tokio::io::split(near);
    (Lines::new(read, write, 1000, CancellationToken::new()), BufReader::new(far))
}

/// Reads the lines that the transport of a client receives, and returns the messages that are for its service.
fn served<Read: AsyncRead + Unpin + Send + 'static, Out: Outlet>(
    mut lines: Lines<Read, Out>,
) -> tokio::task::JoinHandle<Vec<serde_json::Value>> {
    tokio::spawn(async move {
        let mut messages = Vec::new();
        while let Some(message) = Transport::<RoleClient>::receive(&mut lines).await {
            messages.push(serde_json::to_value(&message).expect("a message is JSON"));
        }
        messages
    })
}

#[tokio::test]
async fn direct_requests_have_their_own_answers_and_the_service_the_others() {
    let (lines, mut far) = connected();
    let direct = lines.direct();
    let served = served(lines);
    let server = tokio::spawn(async move {
        let (mut ids, mut line) = (Vec::new(), String::new());
        while ids.len() < 4 {
            line.clear();
            far.read_line(&mut line).await.expect("a request");
            ids.push(
                serde_json::from_str::<serde_json::Value>(&line).expect("a whole line")["id"]
                    .as_i64()
                    .expect("a number"),
            );
        }
        let replies = [
            format!(r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-5,"message":"no"}}}}"#, ids[3]),
            r#"{"jsonrpc":"2.0","id":0,"result":{}}"#.to_owned(),
            format!(r#"{{"jsonrpc":"2.0","id":"{}","result":{{"content":[{{"type":"text","text":"a"}}]}}}}"#, ids[0]),
            format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":[],"x":"{}"}}}}"#, ids[2], "y".repeat(2000)),
            format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, ids[1]),
            format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, ids[1]),
        ];
        far.write_all((replies.join("\n") + "\n").as_bytes()).await.expect("they are read");
    });
    let ask = || async {
        let request_of = direct.begin().expect("the connection is open");
        let text = request(request_of.id());
        match request_of.answer(text).await {
            Ok(answer) => serde_json::to_value(answer).expect("JSON").to_string(),
            Err(ServiceError::McpError(error)) => format!("{}", error.code.0),
            Err(other) => other.to_string(),
        }
    };
    let (a, b, c, d) = tokio::join!(ask(), ask(), ask(), ask());
    assert!(a.contains(r#""text":"a""#), "{a}");
    assert_eq!((b.as_str(), c, d.as_str()), ("{}", UNREADABLE.0.to_string(), "-5"));
    server.await.expect("it ends");
    let of_service: Vec<_> = served.await.expect("it ends").iter().map(|message| message["id"].clone()).collect();
    assert_eq!(of_service.len(), 2, "the service gets its own reply, and one that came twice: {of_service:?}");
    assert_eq!(of_service[0], 0);
}

#[tokio::test]
async fn a_direct_request_that_is_given_up_is_written_as_a_whole() {
    let (lines, mut far) = connected();
    let direct = lines.direct();
    let request_of = direct.begin().expect("the connection is open");
    let text = request(request_of.id());
    let mut answer = Box::pin(request_of.answer(text.clone()));
    assert!(futures::poll!(answer.as_mut()).is_pending(), "the pipe is full");
    drop(answer);
    let mut line = Vec::new();
    far.read_until(b'\n', &mut line).await.expect("a line");
    assert_eq!(line.trim_ascii_end(), text);
    assert_eq!(lines.requests.only(), None, "nobody waits for it");
}

#[tokio::test]
async fn the_end_of_a_connection_ends_its_direct_requests() {
    let (lines, far) = connected();
    let direct = lines.direct();
    let served = served(lines);
    let request_of = direct.begin().expect("the connection is open");
    let text = request(request_of.id());
    let (answer, ()) = tokio::join!(request_of.answer(text), async { drop(far) });
    assert!(matches!(answer, Err(ServiceError::TransportClosed | ServiceError::TransportSend(_))), "{answer:?}");
    served.await.expect("it ends");
    assert!(matches!(direct.begin(), Err(ServiceError::TransportClosed)));
}
