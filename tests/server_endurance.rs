//! A downstream server over time: it crashes, is restarted, is given a back-off, is stopped when idle, and exceeds its
//! limits.
#![cfg(all(feature = "cli", target_os = "linux"))]

#[path = "mcp_client/mod.rs"]
mod mcp_client;
#[path = "peers/mod.rs"]
mod peers;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use lispbox::lang::{Engine, Limits, Request};
use lispbox::server::{CancellationToken, Configuration, Connections, DownstreamOptions};
use mcp_client::{Answer, Client, hostile, installed, is_alive, python, until};
use serde_json::{Value, json};

fn client(server: Value) -> Client {
    Client::start(&json!({"mcpServers": {"hostile": server}}), &[])
}

fn number(answer: &Answer) -> i64 {
    let digits: String = answer.text.chars().skip(1).take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|_| panic!("no number: {answer:?}"))
}

/// Returns the number of starts of a server with `--log`.
fn starts(log: &Path) -> usize {
    std::fs::read_to_string(log).unwrap_or_default().lines().count()
}

/// Creates a folder, and returns it with the path of a file in it that does not exist yet.
fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    (folder, file)
}

#[test]
fn a_server_that_nobody_calls_is_stopped_and_started_again() {
    let Some(_) = python() else { return };
    let mut server = hostile(&[]);
    server["idle_seconds"] = json!(0.3);
    let mut client = client(server);
    let first = number(&client.eval("(hostile/pid)"));
    until(|| !is_alive(first));
    assert_ne!(number(&client.eval("(hostile/pid)")), first);
    // A server is not idle during a call, however long the call takes.
    let (_folder, log) = place();
    let mut slow = hostile(&["--log", &log.to_string_lossy()]);
    slow["idle_seconds"] = json!(0.2);
    slow["timeout_seconds"] = json!(1);
    let mut client = self::client(slow);
    assert_eq!(client.fails("(hostile/hang)").0, "ToolTimeout");
    assert_eq!(starts(&log), 1);
}

#[test]
fn a_server_that_does_not_start_is_left_alone_for_a_while() {
    let Some(_) = python() else { return };
    let (_folder, log) = place();
    let mut client = client(hostile(&["--start", "exit", "--log", &log.to_string_lossy()]));
    let reason = "server `hostile` did not start: it ended with exit status: 7; it said: \"the key is missing\"";
    let mut fails = |suggestion: &str| {
        let answer = client.eval("(hostile/pid)");
        assert_eq!(answer.record["message"], reason);
        assert_eq!(answer.record["suggestion"], suggestion);
    };
    // Whoever asks again may have repaired it.
    fails("The next call starts it again.");
    let begun = Instant::now();
    for _ in 0..2 {
        fails("It is started again by a call in 1 s.");
    }
    assert_eq!(starts(&log), 2);
    until(|| {
        client.fails("(hostile/pid)");
        starts(&log) == 3
    });
    assert!(begun.elapsed() >= Duration::from_secs(1));
    let waits = client.eval("(hostile/pid)").record["suggestion"].clone();
    assert_eq!(waits, "It is started again by a call in 2 s.");
}

#[test]
fn a_server_that_dies_again_and_again_is_left_alone_for_a_while() {
    let Some(_) = python() else { return };
    let (_folder, log) = place();
    let mut client = client(hostile(&["--log", &log.to_string_lossy()]));
    for _ in 0..3 {
        let died = client.call("lisp_eval", json!({"program": "(hostile/die)", "repeat": true})).failure().1;
        assert!(died.starts_with("server `hostile` went away during `hostile/die`"), "{died}");
    }
    let answer = client.eval("(hostile/pid)");
    assert_eq!(answer.record["message"], "server `hostile` went away 3 times in a row");
    assert_eq!(answer.record["suggestion"], "It is started again by a call in 1 s.");
    assert_eq!(starts(&log), 3);
    until(|| !client.eval("(hostile/pid)").is_error);
}

#[test]
fn a_server_that_is_frozen_is_replaced_before_it_is_called() {
    let Some(_) = python() else { return };
    let text = json!({"mcpServers": {"hostile": hostile(&[])}}).to_string();
    let configuration = Configuration::parse(&text, "servers.json", &|_| None).expect("a configuration");
    let options = DownstreamOptions { ping_after: Duration::ZERO, cache: None, ..DownstreamOptions::default() };
    let servers = Connections::open_with(configuration, options).expect("a runtime");
    let engine = Engine::builder().unlimited_memory().build().expect("an engine");
    let limits = Limits::default();
    let pid = || {
        let host = servers.host(CancellationToken::new(), &limits);
        let reply = engine.session().eval(Request::new("(first (hostile/pid))"), host);
        reply.value.and_then(|value| value.parse::<i64>().ok()).expect("a number")
    };
    let first = pid();
    assert_eq!(pid(), first, "it answers, and stays");
    let frozen = Command::new("kill").args(["-STOP", &first.to_string()]).status().expect("it runs");
    assert!(frozen.success());
    let begun = Instant::now();
    assert_ne!(pid(), first);
    assert!(begun.elapsed() < Duration::from_secs(20), "the call did not run into its time-out");
    assert!(!is_alive(first));
    servers.close();
}

/// A process keeps its state, however it answers a ping.
#[test]
fn a_server_that_does_not_answer_a_ping_is_kept() {
    let Some(_) = python() else { return };
    let (engine, limits) = (Engine::builder().unlimited_memory().build().expect("an engine"), Limits::default());
    for ping in ["refuse", "ignore"] {
        let odd = json!({"command": "python3", "args": [mcp_client::script("odd.py"), "--ping", ping]});
        let text = json!({"mcpServers": {"odd": odd}}).to_string();
        let configuration = Configuration::parse(&text, "servers.json", &|_| None).expect("a configuration");
        let options = DownstreamOptions { ping_after: Duration::ZERO, cache: None, ..DownstreamOptions::default() };
        let servers = Connections::open_with(configuration, options).expect("a runtime");
        for calls in 1..3 {
            let host = servers.host(CancellationToken::new(), &limits);
            let reply = engine.session().eval(Request::new("(:calls (odd/count))"), host);
            assert_eq!(reply.value, Some(calls.to_string()), "{ping}: {:?}", reply.failure);
        }
        servers.close();
    }
}

#[test]
fn only_what_does_no_harm_is_called_again() {
    let Some(_) = python() else { return };
    let mut client = client(hostile(&[]));
    let (_folder, file) = place();
    let call =
        |tool: &str, deaths: u32| format!("(hostile/{tool} {{:file {:?} :deaths {deaths}}})", file.to_string_lossy());
    assert_eq!(client.eval(&call("fetch", 2)).text.lines().next(), Some("[3]"), "called again, and nobody noticed");
    std::fs::remove_file(&file).expect("it was there");
    let mut client = self::client(hostile(&[]));
    let (code, message) = client.fails(&call("store", 1));
    assert_eq!(code, "ServerUnavailable");
    assert!(message.starts_with("server `hostile` went away during `hostile/store`"), "{message}");
    assert_eq!(std::fs::read_to_string(&file).expect("written"), "x", "what may have been done is not done again");
    std::fs::remove_file(&file).expect("it was there");
    let mut client = self::client(hostile(&[]));
    let answer = client.eval(&call("fetch", 9));
    assert_eq!(
        answer.record["message"],
        "server `hostile` went away during `hostile/fetch`; it ended with exit status: 3"
    );
    assert_eq!(std::fs::read_to_string(&file).expect("written"), "xxx", "it is called three times at most");
}

#[test]
fn what_a_server_asks_of_us_is_answered_at_once() {
    let Some(_) = python() else { return };
    let mut client = client(hostile(&[]));
    let begun = Instant::now();
    let cases = [
        ("ping", "{}"),
        ("roots/list", "{:roots []}"),
        ("sampling/createMessage", "{:code -32601 :message \"no model can be asked here\"}"),
        ("elicitation/create", "{:code -32601 :message \"no one can be asked here: the call comes from a program\"}"),
        ("no/such-method", "{:code -32601 :message \"no/such-method\"}"),
    ];
    for (method, expected) in cases {
        let answer = client.eval(&format!("(hostile/ask {{:method {method:?}}})")).text.replace(',', "");
        assert_eq!(answer.lines().next(), Some(expected), "{method}");
    }
    assert!(begun.elapsed() < Duration::from_secs(20), "nothing hung");
}

#[test]
fn tools_that_change_are_seen() {
    let Some(_) = python() else { return };
    let mut client = client(hostile(&[]));
    assert!(client.eval("(hostile/change)").text.starts_with("\"changed\""));
    assert!(client.eval("(hostile/added)").text.starts_with("\"new\""));
}

#[test]
fn a_server_may_take_its_time_to_start() {
    let Some(_) = python() else { return };
    let mut client = client(hostile(&["--start", "9"]));
    assert!(!client.eval("(hostile/pid)").is_error, "9 s are within the 10 s that it has");
}

#[test]
fn what_is_no_text_can_be_part_of_an_answer() {
    let Some(file) = installed("node_modules/@modelcontextprotocol/server-everything/dist/index.js") else { return };
    let mut client = client(json!({"command": "node", "args": [file, "stdio"]}));
    let answer = client.eval("(first (filter :blob (hostile/get-tiny-image)))").text;
    let (_, reference) = answer.split_once("lispbox://blob/").unwrap_or_else(|| panic!("no reference: {answer}"));
    let reference = format!("lispbox://blob/{}", &reference[..32]);
    let read = client.request("resources/read", json!({"uri": reference}));
    let contents = &read["result"]["contents"][0];
    assert_eq!((&contents["uri"], &contents["mimeType"]), (&json!(reference), &json!("image/png")), "{read}");
    assert!(contents["blob"].as_str().is_some_and(|data| data.starts_with("iVBOR")), "{read}");
    let unknown = client.request("resources/read", json!({"uri": "lispbox://blob/0123"}));
    assert!(unknown["error"]["message"].as_str().is_some_and(|message| message.starts_with("there is no such blob")));
}
