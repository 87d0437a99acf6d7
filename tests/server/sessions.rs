//! Sessions in both generations of the protocol, cancellation, and invalid calls.

use crate::mcp_client::{Answer, Client};
use serde_json::{Value, json};

fn none() -> Value {
    json!({"mcpServers": {}})
}

#[test]
fn a_connection_of_an_older_protocol_has_one_session() {
    let mut client = Client::start(&none(), &[]);
    assert_eq!(client.eval("(+ 1 2)").handle(), None, "there is nothing to come back to yet");
    let handle = client.eval("(def prices 3)").handle().expect("the first definition names the handle");
    assert!(handle.len() >= 20, "{handle}");
    assert_eq!(client.eval("(def weights 4)").handle(), None, "the handle is named once");
    assert!(!client.eval("prices").is_error);
    let named = client.call("lisp_eval", json!({"program": "prices", "session": handle}));
    assert!(!named.is_error);
}

#[test]
fn without_a_session_of_the_connection_an_omitted_one_is_fresh() {
    let mut client = Client::start_stateless(&none(), &[]);
    let handle = client.eval("(def prices 3)").handle().expect("named");
    let fresh = client.eval("prices");
    assert!(fresh.is_error);
    assert_eq!(fresh.record["error"], "UnboundVariable");
    assert!(fresh.record["suggestion"].as_str().is_some_and(|text| text.contains(&handle)), "{fresh:?}");
    assert!(fresh.text.contains(&handle), "{fresh:?}");
    let back = client.call("lisp_eval", json!({"program": "prices", "session": handle}));
    assert!(!back.is_error && back.handle().is_none(), "{back:?}");
}

/// Evaluates a program in the session with this handle.
fn eval_in(client: &mut Client, handle: &str, program: &str) -> Answer {
    client.call("lisp_eval", json!({"program": program, "session": handle}))
}

/// The handle that a program returned as its value.
fn printed(answer: &Answer) -> String {
    assert!(!answer.is_error, "{answer:?}");
    answer.text.lines().next().unwrap_or_default().trim_matches('"').to_owned()
}

#[test]
fn a_session_that_is_forked_goes_on_in_two_ways() {
    for arguments in [&[][..], &["--isolate"]] {
        let mut client = Client::start_stateless(&none(), arguments);
        let handle = client.eval("(def n 1) (def twice #(* 2 n))").handle().expect("named");
        let copy = printed(&eval_in(&mut client, &handle, "(def copy (session/fork)) (def n 2) copy"));
        assert_ne!(copy, handle);
        assert_eq!(eval_in(&mut client, &handle, "(def n 3) (twice)").text.lines().next(), Some("6"));
        let there = eval_in(&mut client, &copy, "[n (twice)]");
        assert_eq!(there.text, "[2 4]", "as the session was when the program ended");
        assert_eq!(there.handle(), None, "it was named already");
        let (error, _) = client.fails("(session/fork)");
        assert_eq!(error, "SessionNotForked", "there is nothing in it");
        let many = eval_in(&mut client, &handle, "(dotimes [_ 17] (session/fork))");
        assert_eq!(many.record["error"], "NoSession");
        assert!(many.text.contains("a program may fork its session 16 times"), "{many:?}");
    }
}

#[test]
fn a_session_that_is_closed_is_gone() {
    for arguments in [&[][..], &["--isolate"]] {
        let mut client = Client::start_stateless(&none(), arguments);
        let handle = client.eval("(def n 1)").handle().expect("named");
        let closing = eval_in(&mut client, &handle, "(session/close) (def m 2) (+ n m)");
        assert_eq!(closing.text, "3", "it lasts until the program has ended, and nothing of it is listed");
        let gone = eval_in(&mut client, &handle, "n");
        assert_eq!(gone.record["error"], "UnknownSession", "{gone:?}");
        let unbound = client.eval("n");
        assert!(!unbound.text.contains("another session"), "{unbound:?}");
        // The session of a connection is replaced by an empty one.
        let mut client = Client::start(&none(), arguments);
        let handle = client.eval("(def n 1)").handle().expect("named");
        assert_eq!(client.eval("(session/close) n").text, "1");
        assert_eq!(client.fails("n").0, "UnboundVariable");
        assert_eq!(eval_in(&mut client, &handle, "1").record["error"], "UnknownSession");
        assert_eq!(client.eval("(def m 2)").handle(), Some(handle.clone()), "it is named anew");
        assert_eq!(eval_in(&mut client, &handle, "m").text, "2");
    }
}

#[test]
fn what_is_forgotten_is_not_kept() {
    let mut client = Client::start(&none(), &[]);
    client.eval("(def mails (vec (range 100))) (def page 2)");
    assert_eq!(client.eval("(session/forget 'mails)").text.lines().next(), Some("(mails)"));
    assert_eq!(client.fails("mails").0, "UnboundVariable");
    let (error, message) = client.fails("(session/forget 'page 'mials)");
    assert_eq!(error, "UnboundVariable");
    assert!(message.contains("mials"), "{message}");
    assert_eq!(client.eval("page").text, "2", "all of them or none");
}

#[test]
fn an_unknown_handle_is_an_error_that_says_so() {
    let mut client = Client::start(&none(), &[]);
    let answer = client.call("lisp_eval", json!({"program": "(+ 1 2)", "session": "nonsense"}));
    assert!(answer.is_error);
    assert_eq!(answer.record["error"], "UnknownSession");
}

#[test]
fn wrong_arguments_are_answered() {
    let mut client = Client::start(&none(), &[]);
    let cases = [
        (json!({}), "`lisp_eval` needs `program`, the text of the program, such as `\"(+ 1 2)\"`"),
        (json!({"program": 5}), "argument `program` of `lisp_eval`: expected a string, got the number `5`"),
        (
            json!({"programme": "x"}),
            "`lisp_eval` has no argument `programme`; it takes `program`, `session`, `data`, `limits`, `run`, `reads`, `repeat`, `cancel`, `rehearse`, `plan`",
        ),
        (
            json!("(+ 1 2)"),
            "a tool call needs `name`, a string, and `arguments`, an object such as `{\"program\": \"(+ 1 2)\"}`",
        ),
    ];
    for (arguments, message) in cases {
        let answer = client.call("lisp_eval", arguments.clone());
        assert!(answer.is_error, "{arguments}");
        assert_eq!(answer.record["message"], message, "{arguments}");
    }
    let deep = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":\"deep\",\"method\":\"tools/call\",\"params\":{}{}}}",
        "[".repeat(10_000),
        "]".repeat(10_000)
    );
    client.send(&deep);
    assert_eq!(client.receive()["id"], "deep");
    client.send("this is no JSON");
    client.send(&format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"id\":\"large\",\"params\":\"{}\"}}",
        "x".repeat(17 << 20)
    ));
    let answer = client.receive();
    assert_eq!(answer["id"], "large");
    assert!(answer["error"]["data"]["bytes"].as_u64().is_some_and(|bytes| bytes > 17 << 20));
    assert!(!client.eval("(+ 1 2)").is_error);
}

#[test]
fn a_withdrawn_call_stops() {
    let mut client = Client::start(&none(), &[]);
    let arguments = json!({"program": "(loop [] (recur))", "limits": {"compute": "60s", "fuel": 1e9}});
    let endless = client.begin("tools/call", json!({"name": "lisp_eval", "arguments": arguments}));
    client.notify("notifications/cancelled", json!({"requestId": endless}));
    // Calls of one session run in order, so this one is answered once the endless one has stopped.
    let answer = client.request("tools/call", json!({"name": "lisp_eval", "arguments": {"program": "(+ 1 2)"}}));
    assert!(!Answer::of(&answer).is_error);
}

#[test]
fn data_and_limits_reach_the_program() {
    let mut client = Client::start(&none(), &[]);
    let answer = client.call("lisp_eval", json!({"program": "data", "data": "plain"}));
    assert!(answer.text.starts_with("\"plain\""), "{answer:?}");
    let answer = client.call("lisp_eval", json!({"program": "data", "limits": {"fuell": 5}}));
    assert!(answer.text.contains("Did you mean fuel?"), "{answer:?}");
}

#[test]
fn the_environment_is_described() {
    let mut client = Client::start(&none(), &[]);
    client.eval("(def prices 3)");
    assert!(client.call("lisp_env", json!({})).text.contains("prices"));
}

#[test]
fn replies_come_in_three_forms() {
    let data = json!([{"id": 1, "name": "Ada"}, {"id": 2, "name": "Grace"}]);
    let arguments = json!({"program": "data", "data": data});
    let text = Client::start(&none(), &[]).call("lisp_eval", arguments.clone());
    assert!(text.record.is_null() && text.text.contains("Ada"), "{text:?}");
    let structured = Client::start(&none(), &["--reply", "structured"]).call("lisp_eval", arguments.clone());
    assert_eq!(structured.record["status"], "ok", "{structured:?}");
    assert_eq!(structured.record["json"], data);
    let toon = Client::start(&none(), &["--reply", "toon"]).call("lisp_eval", arguments);
    assert!(toon.text.starts_with("[2]{id,name}:\n  1,Ada\n  2,Grace"), "{toon:?}");
}

#[test]
fn a_client_that_does_not_read_the_log_is_served_all_the_same() {
    let mut client = Client::start_with_unread_log(&none());
    for _ in 0..2000 {
        assert!(!client.eval("(+ 1 2)").is_error);
    }
    client.close();
    assert!(client.wait().success());
}

#[test]
fn beyond_the_queue_a_call_is_refused_as_busy() {
    let mut client = Client::start_stateless(&none(), &[]);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let arguments = json!({"program": "(loop [] (recur))", "limits": {"compute": "60s", "fuel": 1e9}});
    let begun: Vec<i64> = (0..=2 * cores + 64)
        .map(|_| client.begin("tools/call", json!({"name": "lisp_eval", "arguments": arguments})))
        .collect();
    let refused = Answer::of(&client.receive());
    assert_eq!(refused.record["error"], "Busy", "{refused:?}");
    for request in begun {
        client.notify("notifications/cancelled", json!({"requestId": request}));
    }
    client.close();
    assert!(client.wait().success());
}
