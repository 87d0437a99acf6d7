//! Misbehaving downstream servers: each fault is reported immediately as an error that names server and tool.

use std::time::{Duration, Instant};

use crate::mcp_client::{Client, hostile, python};
use serde_json::json;

/// Evaluation in the process of the server and, on Linux, in worker processes.
const WAYS: &[&[&str]] = if cfg!(target_os = "linux") { &[&[], &["--isolate"]] } else { &[&[]] };

fn client(arguments: &[&str]) -> Option<Client> {
    python()?;
    let configuration = json!({"mcpServers": {
        "hostile": hostile(&[]),
        "noisy": hostile(&["--start", "noise"]),
        "broken": hostile(&["--start", "exit"]),
        "hanging": {
            "command": "python3", "args": hostile(&["--start", "hang"])["args"], "start_timeout_seconds": 0.5
        },
        "missing": {"command": "/secret/place/no-such-command"},
        "old": {"type": "sse", "url": "http://127.0.0.1:1/sse"},
        "unreachable": {"type": "http", "url": "http://127.0.0.1:1/mcp"},
    }});
    Some(Client::start(&configuration, arguments))
}

fn failure(code: &str, message: &str) -> (String, String) {
    (code.to_owned(), message.to_owned())
}

#[test]
fn replies_that_cannot_be_used_fail_at_once() {
    let Some(mut client) = client(&[]) else { return };
    assert_eq!(client.eval(r#"(hostile/echo {:text "hello"})"#).text.lines().next(), Some("\"hello\""));
    let begun = Instant::now();
    let cases = [
        ("(hostile/fail)", failure("ToolError", "`hostile/fail` failed: no such mailbox")),
        (
            "(hostile/deep)",
            failure(
                "ToolError",
                "the reply of `hostile/deep` cannot be read: the message is nested 5001 levels deep; at most 120 are \
                 accepted",
            ),
        ),
    ];
    for (program, expected) in cases {
        assert_eq!(client.fails(program), expected, "{program}");
    }
    let (code, message) = client.fails("(hostile/odd)");
    assert_eq!(code, "ToolError");
    let expected = "the reply of `hostile/odd` cannot be read: the message is not JSON-RPC: expected value";
    assert!(message.starts_with(expected), "{message}");
    let (code, message) = client.fails("(hostile/large {:megabytes 17})");
    assert_eq!(code, "ToolResultTooLarge");
    assert!(message.starts_with("the reply of `hostile/large` is too large: 178"), "{message}");
    assert!(begun.elapsed() < Duration::from_secs(20), "nothing ran into its time-out");
    assert!(client.eval("(hostile/garbage)").text.starts_with("\"after the garbage\""));
    assert!(client.eval("(hostile/flood)").text.starts_with("\"after the flood\""));
}

#[test]
fn a_server_that_dies_is_started_again() {
    let Some(mut client) = client(&[]) else { return };
    let first = client.eval("(hostile/pid)").text;
    let (code, message) = client.fails("(hostile/die)");
    assert_eq!(code, "ServerUnavailable");
    assert_eq!(
        message,
        "server `hostile` went away during `hostile/die`; it ended with exit status: 3; it said: \"out of luck\""
    );
    assert_ne!(client.eval("(hostile/pid)").text, first);
}

#[test]
fn a_call_that_hangs_is_withdrawn_after_its_time() {
    let Some(mut client) = client(&["--limit", "tool=300ms"]) else { return };
    assert_eq!(client.fails("(hostile/hang)"), failure("ToolTimeout", "`hostile/hang` did not answer within 0.3 s"));
    // The cancellation is a notification without a reply and may arrive after the next call, so the program polls.
    let ask = "(loop [n 1] (let [seen (hostile/cancelled)] (if (or (seq seen) (= n 200)) seen (recur (inc n)))))";
    let withdrawn = client.eval(ask).text;
    assert!(withdrawn.starts_with('[') && !withdrawn.starts_with("[]"), "{withdrawn}");
}

#[test]
fn a_branch_that_fails_ends_the_calls_beside_it() {
    for arguments in WAYS {
        let Some(mut client) = client(arguments) else { return };
        let begun = Instant::now();
        let program = "(try (parallel {:a (hostile/fail) :b (hostile/hang)}) (catch Exception e (ex-message e)))";
        let answer = client.eval(program).text;
        assert!(answer.starts_with("\"`hostile/fail` failed: no such mailbox\""), "{answer}");
        assert!(begun.elapsed() < Duration::from_secs(20), "the time-out of a call is 30 s");
    }
}

#[test]
fn who_asks_for_progress_hears_how_a_call_goes_on() {
    let Some(mut client) = client(&[]) else { return };
    let program = r#"(do (hostile/echo {:text "hello"}) (hostile/hang))"#;
    let meta = json!({"progressToken": "p"});
    client.begin("tools/call", json!({"name": "lisp_eval", "arguments": {"program": program}, "_meta": meta}));
    let mut before = 0.0;
    loop {
        let heard = client.receive();
        let report = &heard["params"];
        assert_eq!((&heard["method"], &report["progressToken"]), (&json!("notifications/progress"), &json!("p")));
        let progress = report["progress"].as_f64().expect("seconds");
        assert!(progress >= before + 0.5, "{before}: {heard}");
        before = progress;
        // Earlier reports may arrive while the server starts.
        if report["message"] == "2 tool calls so far, the last to `hostile/hang`" {
            return;
        }
    }
}

#[test]
fn servers_that_do_not_start_say_why() {
    let Some(mut client) = client(&[]) else { return };
    let cases = [
        ("broken", "server `broken` did not start: it ended with exit status: 7; it said: \"the key is missing\""),
        (
            "hanging",
            "server `hanging` did not start: it did not answer within 0.5 s (`start_timeout_seconds` allows more)",
        ),
        ("missing", "server `missing` did not start: the command `no-such-command` was not found"),
        ("old", "server `old` did not start: the connection was refused"),
        ("unreachable", "server `unreachable` did not start: the connection was refused"),
    ];
    for (server, message) in cases {
        assert_eq!(client.fails(&format!(r#"({server}/echo {{:text "x"}})"#)).1, message, "{server}");
    }
    assert!(client.eval(r#"(noisy/echo {:text "x"})"#).text.starts_with("\"x\""));
}

#[test]
fn arguments_are_checked_before_they_are_sent() {
    let Some(mut client) = client(&[]) else { return };
    let (code, message) = client.fails(r#"(hostile/echo {:txt "x"})"#);
    assert_eq!(code, "ToolArgumentError");
    assert_eq!(message, "`hostile/echo` has no argument `txt`; it takes `text`");
    assert_eq!(
        client.fails("(hostile/echo {:text true})").1,
        "argument `text` of `hostile/echo`: expected string, got the boolean `true`"
    );
    assert_eq!(client.fails("(hostile/echo)").1, "`hostile/echo` needs the argument `text` (string)");
}

#[test]
fn arguments_that_plainly_mean_what_fits_are_sent_so_and_it_is_said() {
    for arguments in WAYS {
        let Some(mut client) = client(arguments) else { return };
        let text = client.eval("(count (hostile/large {:megabytes \"1\"}))").text;
        assert!(text.starts_with("1048576\n"), "{text}");
        assert!(text.ends_with("[1 tool call; note: hostile/large: megabytes was \"1\", sent as 1]"), "{text}");
        let text = client.eval("(pmap #(hostile/echo {:text %}) [1 2 3 4 5])").text;
        assert!(text.starts_with("(\"1\" \"2\" \"3\" \"4\" \"5\")"), "{text}");
        assert!(text.ends_with("note: hostile/echo: text was 3, sent as \"3\"; 2 more notes]"), "{text}");
    }
}

#[test]
fn what_a_tool_has_returned_is_shown_and_outlives_the_server() {
    let Some(_) = python() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let cache = folder.path().join("cache").display().to_string();
    let configuration = json!({"mcpServers": {"hostile": hostile(&[])}});
    let mut client = Client::start_with(&configuration, &[("LISPBOX_CACHE", cache.as_str())]);
    assert!(!client.eval("(doc hostile/pid)").text.contains("seen"));
    client.eval("(hostile/pid)");
    let shown = "  seen to return [integer]; its server does not declare this\n";
    assert!(client.eval("(doc hostile/pid)").text.contains(shown));
    assert!(client.eval("(dir hostile)").text.contains("(hostile/pid) -> seen [integer]  Does pid"));
    client.close();
    client.wait();
    // A new process knows the observed result type from the cache, before it has started the server.
    let mut client = Client::start_with(&configuration, &[("LISPBOX_CACHE", cache.as_str())]);
    assert!(client.eval("(apropos \"pid\")").text.contains("(hostile/pid) -> seen [integer]"));
}

#[test]
fn a_server_is_started_when_it_is_named_and_once() {
    let Some(_) = python() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let configuration = json!({"mcpServers": {"hostile": hostile(&["--log", &log.to_string_lossy()])}});
    let mut client = Client::start(&configuration, &[]);
    client.eval("(+ 1 2)");
    assert!(!log.exists());
    let calls: Vec<i64> = (0..8)
        .map(|_| client.begin("tools/call", json!({"name": "lisp_eval", "arguments": {"program": "(hostile/pid)"}})))
        .collect();
    for _ in calls {
        client.receive();
    }
    assert_eq!(std::fs::read_to_string(&log).expect("started"), "started\n");
}
