//! Common clients, by what each declares when it connects: from an empty home folder to a call that a person has allowed by
//! the door of that client, a restart, and the session that goes on. `recorded_clients.json` has what is known of each, and
//! where that is from; versions, and names of capabilities without a bearing on the doors, are examples.
#![cfg(unix)]

use std::time::Instant;

use serde_json::{Value, json};

use crate::desktop::{Home, continued, end, mailbox, run_of};
use crate::mcp_client::{Answer, Client};

fn recorded() -> Value {
    serde_json::from_str(include_str!("recorded_clients.json")).expect("JSON")
}

/// A client with a person before it.
struct Seat<'h> {
    home: &'h Home,
    about: Value,
    client: Client,
    /// The requests that it has sent.
    steps: usize,
}

impl Seat<'_> {
    fn connect(home: &Home, about: &Value) -> Client {
        let serve = about["serve"].as_array().expect("a list").iter();
        let serve: Vec<&str> = serve.filter_map(Value::as_str).collect();
        Client::start_at_home_as(home.0.path(), &serve, about["hello"].clone())
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.steps += 1;
        let id = self.client.begin("tools/call", json!({"name": tool, "arguments": arguments}));
        loop {
            let message = self.client.receive();
            if message["method"] == "elicitation/create" {
                self.answer(&message);
            } else if message["id"] == id {
                return message;
            }
        }
    }

    /// Answers a form as this client does.
    fn answer(&mut self, form: &Value) {
        let result = match self.about["form"].as_str() {
            Some("accept") => json!({"action": "accept", "content": {"allow": true}}),
            Some("decline") => json!({"action": "decline"}),
            Some("none") => return,
            other => panic!("a form was sent to a client that shows {other:?}: {form}"),
        };
        self.client.send(&json!({"jsonrpc": "2.0", "id": form["id"], "result": result}).to_string());
    }

    /// Lets the person allow the calls of a program that waits.
    fn allow(&mut self, waits: &Answer) {
        let run = run_of(waits);
        match self.about["door"].as_str().expect("a door") {
            "prompt" => {
                let line = waits.text.lines().find_map(|line| line.strip_prefix("- ")).expect("a call");
                let allowed = self.call("lisp_approve", json!({"run": run, "calls": [line]}));
                assert_eq!(allowed["result"]["isError"], Value::Bool(false), "{allowed}");
            }
            "card" => {
                let shown = self.call("lisp_approve", json!({ "run": run }));
                let secret = &shown["result"]["_meta"]["lispbox/card"]["secret"];
                let form = json!({"action": "approve", "calls": "1.1"});
                self.call("lisp_decide", json!({"secret": secret, "form": form}));
            }
            // The page itself is tried out elsewhere; the store has the decision in the same form.
            "page" => {
                assert!(waits.text.contains("`lispbox approvals open`"), "{}", waits.text);
                self.home.ends(0, &["approvals", "approve", &run]);
            }
            other => panic!("a program waits at a client with a {other}: {}", waits.text),
        }
        self.steps += 1;
        let goes_on = continued(&mut self.client, &run);
        assert!(goes_on.text.contains("added hello"), "{}", goes_on.text);
    }
}

/// Walks through the first use of a client.
fn walk(name: &str) {
    let about = recorded()[name].clone();
    let home = Home::new().with_notes();
    home.write(".config/lispbox/config.d/mail.json", &json!({"mcpServers": {"mail": mailbox()}}).to_string());
    let begun = Instant::now();
    let client = Seat::connect(&home, &about);
    let mut seat = Seat { home: &home, about, client, steps: 1 };

    let read = Answer::of(&seat.call("lisp_eval", json!({"program": "(count (mail/fetch-emails {:limit 2}))"})));
    assert!(read.text.starts_with('2'), "{}", read.text);
    let kept = Answer::of(&seat.call("lisp_eval", json!({"program": "(def kept 41)"})));
    let handle = kept.handle().expect("a handle");
    let shared = Answer::of(&seat.call("lisp_eval", json!({"program": "(notes/share {:line \"hello\"})"})));
    if shared.text.contains("added hello") {
        assert_eq!(seat.about["door"], "form", "{}", shared.text);
    } else {
        seat.allow(&shared);
    }
    assert_eq!(home.shared(), "hello\n");

    let again = Seat::connect(&home, &seat.about);
    end(std::mem::replace(&mut seat.client, again));
    let goes_on = Answer::of(&seat.call("lisp_eval", json!({"program": "(inc kept)", "session": handle})));
    assert!(goes_on.text.starts_with("42"), "{}", goes_on.text);
    println!("{name}: {} requests, {:.1} s", seat.steps + 1, begun.elapsed().as_secs_f64());
}

#[test]
fn claude_desktop() {
    walk("Claude Desktop, chat");
    walk("Claude Desktop, Code tab");
}

#[test]
fn an_agent_that_shows_no_forms() {
    walk("Claude Desktop, embedded agent");
}

#[test]
fn claude_code_where_it_declines_forms_that_it_does_not_show() {
    walk("Claude Code in VS Code");
}

#[test]
fn claude_ai() {
    walk("claude.ai");
}

#[test]
fn claude_code() {
    walk("Claude Code before 2.1.76");
    walk("Claude Code");
}

#[test]
fn cursor_and_vs_code() {
    walk("Cursor");
    walk("VS Code");
}

#[test]
fn codex() {
    walk("Codex");
}

/// `docs/clients.md` lists the same clients, each with its door and its source.
#[test]
fn the_page_about_clients_lists_them() {
    let page = include_str!("../../docs/clients.md");
    let recorded = recorded();
    for (name, about) in recorded.as_object().expect("an object") {
        let row = page.lines().find(|line| line.starts_with(&format!("| {name} |")));
        let row = row.unwrap_or_else(|| panic!("no row for {name}"));
        let (door, source) = (about["door"].as_str().expect("a door"), about["source"].as_str().expect("a source"));
        assert!(row.contains(&format!("| {door} |")) && row.contains(source), "{row}");
    }
}
