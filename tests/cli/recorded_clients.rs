//! Common clients, by what each declares when it connects: from an empty home folder to a call that a person has allowed by
//! the door of that client, a restart, and the session that goes on. `recorded_clients.json` has what is known of each, and
//! where that is from; versions, and names of capabilities without a bearing on the doors, are examples. `docs/clients.md`
//! says how many requests and seconds that takes and how many tokens a model reads of it, which is checked here.
#![cfg(unix)]

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::desktop::{Home, end, mailbox, run_of};
use crate::mcp_client::{Answer, Client};

fn recorded() -> Value {
    serde_json::from_str(include_str!("recorded_clients.json")).expect("JSON")
}

/// The time that a walk may take beyond what the page says, on a busy machine. It is less than that of a form which is
/// waited for in vain.
const BUSY: Duration = Duration::from_secs(15);

/// A client with a person before it.
struct Seat<'h> {
    home: &'h Home,
    about: Value,
    client: Client,
    /// The requests that it has sent.
    steps: usize,
    /// The texts that its model has read: the tools, and the replies.
    read: Vec<String>,
}

impl Seat<'_> {
    fn connect(home: &Home, about: &Value) -> Client {
        let serve = about["serve"].as_array().expect("a list").iter();
        let serve: Vec<&str> = serve.filter_map(Value::as_str).collect();
        match &about["meta"] {
            Value::Null => Client::start_at_home_as(home.0.path(), &serve, about["hello"].clone()),
            meta => {
                let mut client = Client::start_stateless_at_home(home.0.path(), &serve);
                let found = client.request("server/discover", json!({ "_meta": meta }));
                assert!(found["error"].is_null(), "{found}");
                client
            }
        }
    }

    /// Reads the tools, those for interfaces excepted, as clients give them to a model.
    fn list(&mut self) {
        self.steps += 1;
        let listed = self.client.request("tools/list", self.with_meta(json!({})));
        let is_for_models = |tool: &&Value| tool["_meta"]["ui"]["visibility"] != json!(["app"]);
        let given = |tool: &Value| json!({"name": tool["name"], "description": tool["description"], "inputSchema": tool["inputSchema"]});
        let tools: Vec<Value> =
            listed["result"]["tools"].as_array().expect("a list").iter().filter(is_for_models).map(given).collect();
        self.read.push(Value::from(tools).to_string());
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let reply = self.send(json!({"name": tool, "arguments": arguments}));
        if tool != "lisp_decide" {
            let content = reply["result"]["content"].as_array().unwrap_or_else(|| panic!("no content: {reply}"));
            self.read.extend(content.iter().filter_map(|part| part["text"].as_str()).map(str::to_owned));
        }
        reply
    }

    /// Sends a call, again with the answers if its reply asks for some.
    fn send(&mut self, call: Value) -> Value {
        self.steps += 1;
        let id = self.client.begin("tools/call", self.with_meta(call.clone()));
        let reply = loop {
            let message = self.client.receive();
            if message["method"] == "elicitation/create" {
                let Some(result) = self.answer(&message) else { continue };
                self.client.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string());
            } else if message["id"] == id {
                break message;
            }
        };
        let result = &reply["result"];
        if result["resultType"] != "input_required" {
            return reply;
        }
        let forms = result["inputRequests"].as_object().unwrap_or_else(|| panic!("no forms: {reply}"));
        let answers = forms.iter().filter_map(|(key, form)| Some((key.clone(), self.answer(form)?)));
        let mut again = call;
        again["inputResponses"] = Value::Object(answers.collect());
        again["requestState"] = result["requestState"].clone();
        self.send(again)
    }

    /// Adds what a client of a revision without a handshake says with each request.
    fn with_meta(&self, mut params: Value) -> Value {
        if self.about["meta"].is_object() {
            params["_meta"] = self.about["meta"].clone();
        }
        params
    }

    /// The answer to a form, as this client gives it; `None` if it leaves it unanswered.
    fn answer(&self, form: &Value) -> Option<Value> {
        match self.about["form"].as_str() {
            Some("accept") => Some(json!({"action": "accept", "content": {"allow": true}})),
            Some("decline") => Some(json!({"action": "decline"})),
            Some("none") => None,
            other => panic!("a form was sent to a client that shows {other:?}: {form}"),
        }
    }

    /// The tokens of what its model has read. Handles are random, so that each counts as the same one.
    fn tokens(&self) -> usize {
        let encoding = tiktoken_rs::o200k_base().expect("the encoding is built in");
        let handle = regex::Regex::new("\\b[a-z0-9]{26}\\b").expect("a pattern");
        let count =
            |text: &String| encoding.encode_ordinary(&handle.replace_all(text, "hqzfw3eyhad5s45tehqs35anj5")).len();
        self.read.iter().map(count).sum()
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
        let goes_on = Answer::of(&self.call("lisp_eval", json!({ "run": run })));
        assert!(goes_on.text.contains("added hello"), "{}", goes_on.text);
    }
}

/// What a walk takes.
#[derive(Debug)]
struct Cost {
    requests: usize,
    time: Duration,
    tokens: usize,
}

/// Walks through the first use of a client.
fn walk(name: &str) -> Cost {
    let about = recorded()[name].clone();
    let home = Home::new().with_notes();
    home.write(".config/lispbox/config.d/mail.json", &json!({"mcpServers": {"mail": mailbox()}}).to_string());
    let begun = Instant::now();
    let client = Seat::connect(&home, &about);
    let mut seat = Seat { home: &home, about, client, steps: 1, read: Vec::new() };
    seat.list();

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
    let time = begun.elapsed();
    println!("{name}: {:.1} s", time.as_secs_f64());
    Cost { requests: seat.steps + 1, time, tokens: seat.tokens() }
}

/// Walks through the first use of clients, whose rows in the page about clients must say what that takes.
fn walks(names: &[&str]) {
    let is_as_said = |(name, cost): &(&str, Cost)| {
        let mut columns = row(name).split(" | ").skip(3);
        let requests = columns.next().and_then(|text| text.parse().ok());
        let time = columns.next().and_then(|text| text.parse().ok()).map(Duration::from_secs_f64);
        let tokens = columns.next().and_then(|text| text.parse().ok());
        (requests, tokens) == (Some(cost.requests), Some(cost.tokens))
            && time.is_some_and(|time| cost.time < time + BUSY)
    };
    let costs = names.iter().map(|name| (*name, walk(name)));
    let wrong: Vec<_> = costs.filter(|cost| !is_as_said(cost)).collect();
    assert!(wrong.is_empty(), "requests, time and tokens in docs/clients.md: {wrong:?}");
}

/// The row of a client in the page about clients.
fn row(name: &str) -> &'static str {
    let mut rows = include_str!("../../docs/clients.md").lines();
    rows.find(|line| line.starts_with(&format!("| {name} |"))).unwrap_or_else(|| panic!("no row for {name}"))
}

#[test]
fn claude_desktop() {
    walks(&["Claude Desktop, chat", "Claude Desktop, Code tab"]);
}

#[test]
fn an_agent_that_shows_no_forms() {
    walks(&["Claude Desktop, embedded agent"]);
}

#[test]
fn claude_code_where_it_declines_forms_that_it_does_not_show() {
    walks(&["Claude Code in VS Code"]);
}

#[test]
fn claude_ai() {
    walks(&["claude.ai"]);
}

#[test]
fn claude_code() {
    walks(&["Claude Code before 2.1.76", "Claude Code", "Claude Code at 2026-07-28"]);
}

#[test]
fn cursor_and_vs_code() {
    walks(&["Cursor", "VS Code"]);
}

#[test]
fn codex() {
    walks(&["Codex"]);
}

/// `docs/clients.md` lists the same clients, each with its door and its source.
#[test]
fn the_page_about_clients_lists_them() {
    let recorded = recorded();
    for (name, about) in recorded.as_object().expect("an object") {
        let row = row(name);
        let (door, source) = (about["door"].as_str().expect("a door"), about["source"].as_str().expect("a source"));
        assert!(row.contains(&format!("| {door} |")) && row.contains(source), "{row}");
    }
}
