//! Robustness against arbitrary input from clients and downstream servers: each request has exactly one reply or the
//! connection closes, no queue grows without bound, and memory stays bounded.
#![cfg(target_os = "linux")]

mod server;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use server::{Server, Streams, calling, outcome};

const BOTH: [bool; 2] = [false, true];
const TIGHT: &str = "(loop [n 0] (if (< n 100000) (recur (inc n)) n))";
/// A program that runs until it is cancelled or reaches a limit.
const ENDLESS: &str = "(loop [] (recur))";

/// Arguments of a server that lets [`ENDLESS`] go on for a minute on any machine.
const TIRELESS: [&str; 2] = ["--limit", "fuel=1000000000000"];

/// The expected response to one line of input.
enum Fate {
    /// A result of the tool: its text, or its error code.
    Tool(&'static str),
    /// A protocol error with this code.
    Error(i64),
    /// A protocol error with this code and without a request id.
    Nameless(i64),
    Nothing,
}
use Fate::{Error, Nameless, Nothing, Tool};

const ODD: i64 = -32099;
const INVALID: i64 = -32600;

/// Lines of input and their expected responses. `@` is the placeholder for the `_meta` field of 2026-07-28 requests.
fn lines(stateless: bool) -> Vec<(Vec<u8>, Fate)> {
    let call =
        |params: &str, fate| (format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#), fate);
    let arguments = |arguments: &str, fate| call(&format!(r#"{{@"name":"lisp_eval","arguments":{arguments}}}"#), fate);
    let text = |line: &str, fate| (line.to_owned(), fate);
    let identity = |id: &str, fate| {
        let rest = r#""method":"tools/call","params":{@"name":"lisp_eval","arguments":{"program":"1"}}}"#;
        (format!(r#"{{"jsonrpc":"2.0","id":{id},{rest}"#), fate)
    };
    let deep = |depth: usize, fate| {
        arguments(&format!(r#"{{"program":"1","data":{}{}}}"#, "[".repeat(depth), "]".repeat(depth)), fate)
    };
    let mut lines = vec![
        // Values of the wrong type in every position of a call.
        call(r#"{@"name":5,"arguments":{}}"#, Tool("InvalidArguments")),
        call(r#"{@"name":null,"arguments":{}}"#, Tool("InvalidArguments")),
        call(r#"{@"name":["lisp_eval"],"arguments":{}}"#, Tool("InvalidArguments")),
        call(r#"{@"arguments":{"program":"1"}}"#, Tool("InvalidArguments")),
        call(r#"{@"name":"lisp_evil","arguments":{}}"#, Error(-32602)),
        call(r#"{@"name":"","arguments":{}}"#, Error(-32602)),
        call(r#"{@"name":"lisp_eval"}"#, Tool("InvalidArguments")),
        arguments("null", Tool("InvalidArguments")),
        arguments("[]", Tool("InvalidArguments")),
        arguments(r#""(+ 1 1)""#, Tool("InvalidArguments")),
        arguments("17", Tool("InvalidArguments")),
        arguments("{}", Tool("InvalidArguments")),
        arguments(r#"{"program":null}"#, Tool("InvalidArguments")),
        arguments(r#"{"program":1}"#, Tool("InvalidArguments")),
        arguments(r#"{"program":["+",1,1]}"#, Tool("InvalidArguments")),
        arguments(r#"{"program":{"text":"1"}}"#, Tool("InvalidArguments")),
        arguments(r#"{"program":"1","session":5}"#, Tool("InvalidArguments")),
        arguments(r#"{"program":"1","session":["a"]}"#, Tool("InvalidArguments")),
        arguments(r#"{"program":"1","session":"no such session"}"#, Tool("UnknownSession")),
        arguments(r#"{"program":"1","limits":"all"}"#, Tool("InvalidArguments")),
        arguments(r#"{"program":"1","limits":[1]}"#, Tool("InvalidArguments")),
        arguments(r#"{"program":"1","limits":{"fuel":[]}}"#, Tool("InvalidArguments")),
        arguments(r#"{"program":"1","limits":{"fuel":-1}}"#, Tool("InvalidArguments")),
        arguments(r#"{"program":"1","limits":{"steps":1}}"#, Tool("InvalidArguments")),
        arguments(r#"{"program":"1","limits":{"fuel":1e999}}"#, Error(ODD)),
        arguments(r#"{"program":"1","code":"1"}"#, Tool("InvalidArguments")),
        arguments(r#"{"program":"1","data":1e308}"#, Tool("1")),
        arguments(r#"{"program":"1","program":"2"}"#, Tool("2")),
        call("[1]", Error(INVALID)),
        call("3", Error(INVALID)),
        call("null", if stateless { Error(-32602) } else { Tool("InvalidArguments") }),
        // Unknown fields next to the known ones, unknown methods, and JSON that is no request.
        call(r#"{@"name":"lisp_eval","arguments":{"program":"1"},"extra":{"a":[]}}"#, Tool("1")),
        text(r#"{"jsonrpc":"2.0","extra":1,"id":1,"method":"tools/list","params":{@"more":1}}"#, Tool("")),
        text(r#"{"jsonrpc":"2.0","id":1,"method":"no/such","params":{@"a":1}}"#, Error(-32601)),
        text(r#"{"jsonrpc":"2.0","id":1,"method":5}"#, Error(ODD)),
        text(r#"{"jsonrpc":"2.0","id":1,"method":null}"#, Error(ODD)),
        text(r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, Error(INVALID)),
        text(r#"{"id":1,"method":"ping"}"#, Error(INVALID)),
        text(r#"{"jsonrpc":"2.0","id":1,"result":{},"method":"ping"}"#, Error(ODD)),
        text(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, Nothing),
        text(r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}"#, Nothing),
        text(r#"{"jsonrpc":"2.0","id":1}"#, Nothing),
        text(r#"{"jsonrpc":"2.0","method":"notifications/nonsense","params":[1]}"#, Nothing),
        text(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"never"}}"#, Nothing),
        text("[]", Nameless(INVALID)),
        (format!("[{},{}]", identity("1", Nothing).0, identity("2", Nothing).0), Nameless(INVALID)),
        // Request ids.
        identity(r#""1""#, Tool("1")),
        identity(r#""""#, Tool("1")),
        identity("0", Tool("1")),
        identity("-7", Tool("1")),
        identity("9007199254740993", Tool("1")),
        identity("9223372036854775807", Tool("1")),
        identity("1.0", Tool("1")),
        identity("9223372036854775808", Nameless(ODD)),
        identity("1.5", Nameless(ODD)),
        identity("null", Nameless(ODD)),
        identity("true", Nameless(ODD)),
        identity("{}", Nameless(ODD)),
        identity("[1]", Nameless(ODD)),
        identity(&format!("\"{}\"", "i".repeat(256)), Tool("1")),
        identity(&format!("\"{}\"", "i".repeat(257)), Nameless(INVALID)),
        identity(&format!("\"{}\"", "i".repeat(1 << 20)), Nameless(INVALID)),
        // JSON that is truncated, has trailing characters, or is invalid.
        text(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"li"#, Error(ODD)),
        text(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}}"#, Error(ODD)),
        text(r#"{"jsonrpc":"2.0","id":1,"method":"ping",}"#, Error(ODD)),
        text("{'jsonrpc':'2.0','id':1,'method':'ping'}", Nothing),
        text("", Nothing),
        text("   \t  \r", Nothing),
        text("ping", Nothing),
        text("{", Nothing),
        text("}", Nothing),
        text("\"", Nothing),
        text("null", Nothing),
        text("17", Nothing),
        text("\u{0}\u{0}\u{0}", Nothing),
        // Surrogates, control characters and a byte order mark.
        arguments(r#"{"program":"\ud800"}"#, Error(ODD)),
        arguments(r#"{"program":"\ud83d\ude00"}"#, Tool("UnboundVariable")),
        arguments("{\"program\":\"1\u{0}\"}", Error(ODD)),
        arguments(r#"{"program":"1\u0000"}"#, Tool("UnexpectedCharacter")),
        (format!("\u{feff}{}\r", identity("1", Nothing).0), Tool("1")),
        // Nesting.
        deep(100, Tool("1")),
        deep(130, Error(ODD)),
        deep(10_000, Error(ODD)),
        deep(5_000_000, Error(ODD)),
        arguments(&format!(r#"{{"program":"{}"}}"#, "(".repeat(100_000)), Tool("NestingTooDeep")),
    ];
    lines.push((" ".repeat(20 << 20), Nothing));
    let mut lines: Vec<(Vec<u8>, Fate)> = lines.into_iter().map(|(line, fate)| (line.into_bytes(), fate)).collect();
    for place in [&b"lisp_"[..], b"para", b"2."] {
        let mut line = identity("1", Nothing).0.into_bytes();
        let at = line.windows(place.len()).position(|window| window == place).expect("it is there");
        line.splice(at..at, *b"\xff\xfe");
        lines.push((line, Error(ODD)));
    }
    lines
}

#[test]
fn each_line_has_its_fate() {
    for stateless in BOTH {
        let mut server = Server::start(stateless);
        server.listen();
        for (number, (line, fate)) in lines(stateless).into_iter().enumerate() {
            let line = server.completed(&line);
            let shown = String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned();
            server.write(&line);
            let expected = match fate {
                Tool(text) => Some(text.to_owned()),
                Error(code) => Some(format!("error {code}")),
                Nameless(code) => Some(format!("error {code} of nobody")),
                Nothing => None,
            };
            if let Some(expected) = expected {
                let reply = server.reply().expect("the server goes on");
                assert_eq!(outcome(&reply), expected, "{shown}: {reply}");
            }
            // No further message precedes the reply to the next request.
            let after = json!(format!("after {number}"));
            server.write(&server.line(&after, "tools/list", json!({})));
            assert_eq!(server.reply().expect("the server goes on")["id"], after, "{shown}");
        }
        server.close();
        assert_eq!(server.reply(), None);
        server.ends_within(5);
    }
}

#[test]
fn what_comes_before_the_first_request() {
    for stateless in BOTH {
        let mut server = Server::silent(stateless, Streams::Pipes, &[]);
        server.write(
            b"hello\n\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}\n",
        );
        server.write(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":5}\n");
        server.listen();
        assert_eq!(outcome(&server.reply().expect("an answer")), format!("error {ODD}"));
        server.shake_hands();
        assert_eq!(server.eval("(+ 1 1)"), "2");
    }
}

#[test]
fn large_frames_are_dropped_and_answered() {
    for stateless in BOTH {
        let mut server = Server::start(stateless);
        server.listen();
        let before = server.most_memory();
        let filling = "x".repeat(17 << 20);
        let cases = [
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{filling}"}}}}"#),
            format!(r#"{{"params":{{"name":"{filling}"}},"method":"tools/call","jsonrpc":"2.0","id":1}}"#),
        ];
        for line in cases {
            server.write(line.as_bytes());
            server.write(b"\n");
            let reply = server.reply().expect("an answer");
            assert_eq!((&reply["id"], &reply["error"]["data"]["bytes"]), (&json!(1), &json!(line.len() + 1)));
        }
        // A quarter of a million values of two bytes each are decoded; two million are not.
        let zeros = |count: usize| format!("{{\"program\":\"(count data)\",\"data\":[{}0]}}", "0,".repeat(count));
        for (count, expected) in [(250_000, "250001".to_owned()), (2_000_000, format!("error {ODD}"))] {
            let line = format!(
                r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{@"name":"lisp_eval","arguments":{}}}}}"#,
                zeros(count)
            );
            let line = server.completed(line.as_bytes());
            server.write(&line);
            assert_eq!(outcome(&server.reply().expect("an answer")), expected);
        }
        // A line of 200 MiB.
        server.write(br#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":""#);
        let block = vec![b'y'; 1 << 20];
        (0..200).for_each(|_| server.write(&block));
        server.write(b"\n");
        assert_eq!(
            server.reply().expect("an answer")["error"]["data"]["bytes"].as_u64().map(|bytes| bytes >> 20),
            Some(200)
        );
        let grown = server.most_memory() - before;
        println!("large frames: {grown} MiB more");
        assert!(grown < 400, "{grown} MiB");
        server.write(&block);
        server.close();
        assert_eq!(server.reply(), None);
        server.ends_within(5);
    }
}

#[test]
fn ten_thousand_queued_requests() {
    for (stateless, program, value) in [(false, "(+ 1 1)", "2"), (true, "(+ 1 1)", "2"), (true, TIGHT, "100000")] {
        let mut server = Server::start(stateless);
        let before = server.most_memory();
        let begun = Instant::now();
        let taken = server.pour(10_000, Duration::from_millis(500), |n| calling(stateless, &json!(n), program));
        let held = server.most_memory() - before;
        server.listen();
        let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
        let mut replies: BTreeMap<u64, usize> = BTreeMap::new();
        let mut rest = taken..10_000;
        while replies.len() < 10_000 {
            for n in rest.by_ref().take(50) {
                server.write(&calling(stateless, &json!(n), program));
            }
            let reply = server.reply().expect("each request has a reply");
            *replies.entry(reply["id"].as_u64().expect("one of ours")).or_default() += 1;
            *outcomes.entry(outcome(&reply)).or_default() += 1;
        }
        println!("ten thousand: {taken} taken in unread, {held} MiB more; {outcomes:?} in {:?}", begun.elapsed());
        assert!(replies.values().all(|count| *count == 1));
        assert!(outcomes.keys().all(|outcome| outcome == value || outcome == "Busy"), "{outcomes:?}");
        assert!(outcomes[value] >= 60, "{outcomes:?}");
        assert!(held < 64, "{held} MiB");
        assert_eq!(server.eval("(+ 1 1)"), "2");
    }
}

#[test]
fn a_cancellation_gets_through_a_crowd() {
    for stateless in BOTH {
        let mut server = Server::start_with(stateless, &TIRELESS);
        server.listen();
        let endless = json!({"program": ENDLESS, "limits": {"compute": "50s", "fuel": 1e12}});
        for id in 0..200 {
            server.write(&server.line(&json!(id), "tools/call", json!({"name": "lisp_eval", "arguments": endless})));
        }
        // Requests beyond the capacity of the queue are refused. The others run or wait until they are cancelled.
        let mut open: Vec<u64> = (0..200).collect();
        let places = 2 * std::thread::available_parallelism().map_or(1, |cores| cores.get()) + 64;
        while open.len() > places {
            let reply = server.reply().expect("an answer");
            assert_eq!(outcome(&reply), "Busy");
            open.retain(|id| reply["id"] != *id);
        }
        let begun = Instant::now();
        for id in open {
            let withdrawn = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
            server.write(format!("{withdrawn}\n").as_bytes());
        }
        assert_eq!(server.eval_when_free("(+ 1 1)"), "2");
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    }
}

#[test]
fn requests_of_one_identity_have_a_reply_each() {
    let mut server = Server::start(true);
    server.listen();
    let slow = "(loop [n 0] (if (< n 3000000) (recur (inc n)) n))";
    server.write(&calling(true, &json!("twin"), slow));
    server.write(&calling(true, &json!("twin"), "(+ 1 1)"));
    let replies = [(); 2].map(|()| server.reply().expect("an answer"));
    assert!(replies.iter().all(|reply| reply["id"] == "twin"));
    assert_eq!(replies.each_ref().map(outcome), [format!("error {INVALID}"), "3000000".to_owned()]);
    server.write(&calling(true, &json!("twin"), "(+ 1 1)"));
    assert_eq!(outcome(&server.reply().expect("an answer")), "2");
}

#[test]
fn a_client_that_never_reads() {
    let large = r#"(apply str (repeat 30000 "x"))"#;
    for (streams, stateless, by_signal) in [
        (Streams::Pipes, false, true),
        (Streams::Pipes, true, false),
        (Streams::Sockets, true, false),
        (Streams::Sockets, false, true),
    ] {
        let mut server = Server::silent(stateless, streams, &[]);
        server.shake_hands_unread();
        let before = server.most_memory();
        let begun = Instant::now();
        let taken = server.pour(200_000, Duration::from_millis(700), |n| match n % 2 {
            0 => calling(stateless, &json!(n), large),
            _ => server::message(stateless, &json!(n), "tools/list", json!({})),
        });
        let grown = server.most_memory() - before;
        println!("never reads, {streams:?}: {taken} taken in, {grown} MiB more, after {:?}", begun.elapsed());
        assert!(taken < 30_000, "the server reads on: {taken}");
        // Room for 8 MiB of unwritten replies with their overhead, the open requests (132 on two cores), and their
        // evaluations.
        assert!(grown < 128, "{grown} MiB");
        if by_signal {
            server.terminate();
        } else {
            server.close();
        }
        println!("ended after {:?}", server.ends_within(6));
    }
}

#[test]
fn ends_of_streams() {
    // Output closed, input open: no reply can be delivered, so the server ends.
    let mut server = Server::start(false);
    server.close_output();
    server.pour(1000, Duration::from_secs(4), |n| calling(false, &json!(n), "(+ 1 1)"));
    server.ends_within(5);

    // Input closed while requests are in progress: those that finish within the grace period are answered.
    let mut server = Server::start(false);
    server.listen();
    server.write(&calling(false, &json!(1), TIGHT));
    server.write(&calling(false, &json!(2), "(+ 1 1)"));
    server.write(&calling(false, &json!(3), ENDLESS));
    server.close();
    let mut outcomes: BTreeMap<String, String> = BTreeMap::new();
    while let Some(reply) = server.reply() {
        outcomes.insert(reply["id"].to_string(), outcome(&reply));
    }
    assert_eq!((outcomes["1"].as_str(), outcomes["2"].as_str()), ("100000", "2"));
    server.ends_within(5);

    // After half a line and a pause, the server waits for the rest. After half a line and the end of input, no reply.
    let mut server = Server::start(true);
    server.listen();
    let line = calling(true, &json!(1), "(+ 1 1)");
    let (half, rest) = line.split_at(line.len() / 2);
    server.write(half);
    server.says_nothing_for(Duration::from_millis(300));
    server.write(rest);
    assert_eq!(outcome(&server.reply().expect("an answer")), "2");
    server.write(half);
    server.close();
    assert_eq!(server.reply(), None);
    server.ends_within(5);
}

#[test]
fn programs_and_data_that_wait_are_bounded() {
    let mut server = Server::start_with(true, &TIRELESS);
    server.listen();
    let before = server.most_memory();
    let limits = json!({"compute": "50s", "fuel": 1e12});
    let endless = json!({"program": ENDLESS, "limits": limits, "data": "d".repeat(31 << 19)});
    // Eight requests of 15.5 MiB fit into the limit of 128 MiB; two more do not.
    for id in 0..10 {
        server.write(&server.line(&json!(id), "tools/call", json!({"name": "lisp_eval", "arguments": endless})));
    }
    let replies = [(); 2].map(|()| outcome(&server.reply().expect("an answer")));
    let grown = server.most_memory() - before;
    println!("waiting data: {grown} MiB more");
    assert_eq!(replies, ["Busy", "Busy"]);
    server.says_nothing_for(Duration::from_millis(300));
    assert!(grown < 400, "{grown} MiB");
}

#[test]
fn evaluations_share_the_memory_of_the_server() {
    let mut server = Server::silent(true, Streams::Pipes, &["--total-memory", "512MiB"]);
    server.shake_hands();
    server.listen();
    let call = |id: u64, program: &str, memory: &str| {
        let arguments = json!({"program": program, "limits": {"memory": memory, "compute": "1500ms", "fuel": 1e9}});
        server::message(true, &json!(id), "tools/call", json!({"name": "lisp_eval", "arguments": arguments}))
    };
    // The first evaluation reserves 200 of 256 MiB. The second fits next to it; the third has to wait.
    server.write(&call(1, ENDLESS, "200MiB"));
    server.write(&call(2, "(+ 1 1)", "32MiB"));
    assert_eq!(server.reply().expect("an answer")["id"], 2);
    server.write(&call(3, "(+ 1 2)", "200MiB"));
    server.says_nothing_for(Duration::from_millis(500));
    // It runs once the first has ended, and may be answered before the reply to that one is written.
    let mut replies = [(); 2].map(|()| server.reply().expect("an answer"));
    replies.sort_by_key(|reply| reply["id"].as_u64());
    assert_eq!(replies.each_ref().map(|reply| reply["id"].clone()), [json!(1), json!(3)]);
    assert_eq!(outcome(&replies[1]), "3");
    // No evaluation may reserve more than the server has.
    server.write(&call(4, "(vec (range 1e9))", "10GiB"));
    let reply = server.reply().expect("an answer");
    let text = reply["result"]["content"][0]["text"].as_str().expect("a text");
    assert!(text.contains("allowed 256 MiB"), "{text}");
}

/// A kind of excessive output, its count, and the expected result of the call.
type Case = (&'static str, u32, &'static str);

#[test]
fn servers_behind_that_say_too_much() {
    let Some(configuration) = server::flooding() else { return };
    let cases: [(&str, &[Case]); 2] = [
        (
            "tool=20s",
            &[
                ("notifications", 20_000, "\"done\""),
                ("unknown", 10_000, "\"done\""),
                ("lines", 50_000, "\"done\""),
                ("unasked", 20_000, "\"done\""),
                ("errors", 50, "\"done\""),
                ("pings", 5_000, "\"done\""),
                ("twice", 0, "\"done\""),
                ("twice", 0, "\"done\""),
                ("many", 250_000, "1"),
                ("many", 2_000_000, "ToolError"),
                ("half", 0, "ServerUnavailable"),
                // Sends more requests than lispbox buffers unread replies for: lispbox closes the connection.
                ("pings", 200_000, "ServerUnavailable"),
                ("twice", 0, "\"done\""),
            ],
        ),
        ("tool=1s", &[("other", 0, "ToolTimeout"), ("endless", 200, "ToolTimeout")]),
    ];
    for (limit, cases) in cases {
        let arguments = ["--config", &configuration.file(), "--limit", limit];
        let mut server = Server::silent(false, Streams::Pipes, &arguments);
        server.shake_hands();
        server.listen();
        let before = server.most_memory();
        for (kind, count, expected) in cases {
            let begun = Instant::now();
            let call = format!("(flooding/flood :kind \"{kind}\" :count {count})");
            let answer = server.eval(&format!("(let [answer {call}] (if (string? answer) answer (count answer)))"));
            println!("{kind}: {answer}, {:?}, {} MiB more", begun.elapsed(), server.most_memory() - before);
            assert_eq!(answer, *expected, "{kind}");
        }
        let grown = server.most_memory() - before;
        assert!(grown < 400, "{grown} MiB");
        assert_eq!(server.eval("(+ 1 1)"), "2");
    }
}

#[test]
fn a_server_behind_that_does_not_read() {
    let Some(configuration) = server::flooding() else { return };
    let mut server = Server::silent(false, Streams::Pipes, &["--config", &configuration.file(), "--limit", "tool=1s"]);
    server.shake_hands();
    server.listen();
    let before = server.most_memory();
    // The server stops reading. lispbox buffers a bounded amount of what it still has to send.
    let program = r#"
        (let [text (reduce (fn [text _] (str text text)) "t" (range 22))
              answers (for [n (range 15)]
                        (try (flooding/flood :kind "deaf" :text text) (catch Exception e (ex-message e))))]
          (frequencies (map #(cond (re-find #"does not read" %) "unread" (re-find #"did not answer" %) "late" :else %)
                            answers)))"#;
    let answer = server.eval(program);
    let grown = server.most_memory() - before;
    println!("deaf: {answer}, {grown} MiB more");
    assert!(answer.contains("\"unread\""), "{answer}");
    assert!(grown < 300, "{grown} MiB");
    let mut server = Server::silent(false, Streams::Pipes, &["--config", &configuration.file()]);
    server.shake_hands();
    server.listen();
    let large = server.eval(r#"(flooding/flood :kind "" :text (reduce (fn [text _] (str text text)) "t" (range 25)))"#);
    assert_eq!(large, "ToolArgumentError");
}

#[test]
fn lists_of_tools_are_bounded() {
    let Some(configuration) = server::flooding() else { return };
    let mut server = Server::silent(true, Streams::Pipes, &["--config", &configuration.file()]);
    server.shake_hands();
    server.listen();
    let before = server.most_memory();
    assert_eq!(server.eval("(many/flood :kind \"\")"), "\"done\"");
    assert_eq!(server.eval("(pages/flood :kind \"\")"), "\"done\"");
    let grown = server.most_memory() - before;
    println!("lists of tools: {grown} MiB more");
    assert!(grown < 200, "{grown} MiB");
    let found: Value = json!(server.eval("(many/tool-9999 :kind \"twice\")"));
    assert_eq!(found, "\"done\"");
}
