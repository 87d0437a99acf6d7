//! Principals share the capacity of the server: protocol sessions, event streams, message buffers, and the rate limit
//! of unknown clients.

use std::time::{Duration, Instant};

use crate::http_client::{Connection, Server, Session, tokens_file};
use serde_json::json;

const ANN: &str = "Authorization: Bearer ann-ann-ann-ann-ann\r\n";
const BOB: &str = "Authorization: Bearer bob-bob-bob-bob-bob\r\n";

fn server_for_two(arguments: &[&str]) -> Server {
    let folder = tempfile::tempdir().expect("a folder");
    let file = tokens_file(folder.path(), &json!({"ann": "ann-ann-ann-ann-ann", "bob": "bob-bob-bob-bob-bob"}));
    let file = file.to_string_lossy();
    let arguments: Vec<&str> = ["--tokens", &file].into_iter().chain(arguments.iter().copied()).collect();
    Server::start(&arguments, &[])
}

/// Returns whether a session exists, by a ping.
fn is_there(session: &Session) -> bool {
    match session.post(&json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).status {
        200 => true,
        404 => false,
        status => panic!("{status}"),
    }
}

#[test]
fn a_flood_of_sessions_costs_its_principal_its_own() {
    let server = server_for_two(&[]);
    let of_bob: Vec<Session> = (0..3).map(|_| server.initialize(BOB, "2025-06-18").expect("a session")).collect();
    let first = server.initialize(ANN, "2025-06-18").expect("a session");
    let flood: Vec<Session> = (0..1_200).map(|_| server.initialize(ANN, "2025-11-25").expect("room is made")).collect();
    assert!(of_bob.iter().all(is_there), "another's are left alone");
    assert!(!is_there(&first), "the longest idle one made room");
    assert!(is_there(flood.last().expect("there are some")));
    assert!((0..20).all(|_| server.initialize(BOB, "2025-03-26").is_ok()), "others are let in");
    assert!(of_bob.iter().all(is_there));
}

#[test]
fn event_streams_leave_room_for_requests() {
    // All clients connect from one address, as through a proxy: only their tokens distinguish them.
    let server = server_for_two(&["--connections", "20"]);
    let of_ann = server.initialize(ANN, "2025-06-18").expect("a session");
    let mut streams: Vec<Connection> = Vec::new();
    let refused = loop {
        let mut stream = of_ann.listen("");
        let head = stream.receive_head();
        if head.status != 200 {
            break head;
        }
        streams.push(stream);
        assert!(streams.len() < 20, "there is an end");
    };
    assert_eq!((streams.len(), refused.status, refused.header("retry-after")), (10, 429, Some("1")));
    assert_eq!(server.eval(BOB, "(+ 1 2)", None), ("3".to_owned(), false));
    let of_bob = server.initialize(BOB, "2025-06-18").expect("a session");
    let mut stream = of_bob.listen("");
    assert_eq!(stream.receive_head().status, 200);
    assert_eq!(of_bob.eval("(+ 1 2)"), ("3".to_owned(), false));
    drop(streams);
    let begun = Instant::now();
    while of_ann.post(&json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).status != 200 {
        assert!(begun.elapsed() < Duration::from_secs(40), "the places are given back");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

#[test]
fn event_streams_of_everybody_leave_room_for_requests() {
    let server = Server::start(&["--connections", "20"], &[]);
    let session = server.initialize("", "2025-06-18").expect("a session");
    let mut streams: Vec<Connection> = (0..18).map(|_| session.listen("")).collect();
    assert!(streams.iter_mut().all(|stream| stream.receive_head().status == 200));
    assert_eq!(session.listen("").receive_head().status, 429);
    assert_eq!(server.eval("", "(+ 1 2)", None), ("3".to_owned(), false));
}

#[test]
fn readiness_is_counted_for_unknown_clients() {
    let server = Server::start(&["--requests-per-minute", "5"], &[]);
    let ask = |path: &str| server.request("GET", path, "", b"").status;
    assert!((0..5).all(|_| ask("/readyz") == 200));
    assert_eq!(ask("/readyz"), 429);
    assert_eq!(ask("/healthz"), 200);
}

#[test]
fn large_messages_of_one_principal_leave_room_for_others() {
    let server = server_for_two(&["--arrival", "20s"]);
    // Four such messages would take all buffer space until they are complete, and they are never completed.
    let halves: Vec<Connection> = (0..4)
        .map(|_| {
            let mut connection = server.connect();
            let length = 16 << 20;
            let head =
                format!("POST /mcp HTTP/1.1\r\nHost: {}\r\n{ANN}Content-Length: {length}\r\n\r\n{{", server.address);
            connection.write(head.as_bytes());
            connection
        })
        .collect();
    let begun = Instant::now();
    assert_eq!(server.eval(BOB, "(+ 1 2)", None), ("3".to_owned(), false));
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    drop(halves);
}

#[test]
fn a_message_takes_room_until_it_is_decoded() {
    let server = server_for_two(&["--limit", "compute=60s", "--limit", "fuel=1e12"]);
    // Each message has nearly half the buffer space of its principal, and its program runs for a minute.
    let data = "x".repeat(15 << 20);
    let program = json!({"program": "(loop [] (recur))", "data": data});
    let running: Vec<Connection> = (0..2).map(|_| server.begin(ANN, "lisp_eval", program.clone())).collect();
    let begun = Instant::now();
    let headers = format!("{ANN}Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n");
    let answer = server.request("POST", "/mcp", &headers, json!(data).to_string().as_bytes());
    drop(running);
    assert!(answer.status == 400 && begun.elapsed() < Duration::from_secs(25), "{:?} {answer:?}", begun.elapsed());
}
