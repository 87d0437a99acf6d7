//! Programs that call the tools of two identical sample mailboxes. The soak has the same mailbox, so the answers are
//! known.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::good::{quoted, spaced};
use super::{Expected, Job};
use crate::mailbox::Mailbox;
use crate::mailbox::chance::Chance;

/// The names of the two servers.
pub const SERVERS: [&str; 2] = ["mail", "archive"];

/// Chooses a program that calls tools.
pub fn job(chance: &mut Chance, mailbox: &Mailbox) -> Job {
    let kinds: [fn(&mut Chance, &Mailbox) -> Job; 8] = [counted, sizes, busiest, one, searched, missing, beside, both];
    chance.of(&kinds)(chance, mailbox)
}

/// Chooses a message; returns its id and its size.
pub fn message(chance: &mut Chance, mailbox: &Mailbox) -> (String, i64) {
    let id = format!("msg-{:04}", 1 + chance.below(1_000));
    let size = answer(mailbox, "get-email", json!({"id": id}))["size"].as_i64().unwrap_or_default();
    (id, size)
}

/// Computes the answer of the mailbox.
fn answer(mailbox: &Mailbox, tool: &str, arguments: Value) -> Value {
    let Value::Object(arguments) = arguments else { unreachable!("the arguments below are objects") };
    mailbox.call(tool, &arguments).and_then(Result::ok).unwrap_or_default()
}

fn rows(answer: &Value) -> &[Value] {
    answer.as_array().map_or(&[], Vec::as_slice)
}

fn sum(answer: &Value, field: &str) -> i64 {
    rows(answer).iter().filter_map(|row| row[field].as_i64()).sum()
}

fn counted(chance: &mut Chance, mailbox: &Mailbox) -> Job {
    let (server, limit, offset) = (chance.of(&SERVERS), 1 + chance.below(100), chance.below(1_050));
    let count = rows(&answer(mailbox, "fetch-emails", json!({"limit": limit, "offset": offset}))).len();
    Job::good(format!("(count ({server}/fetch-emails :limit {limit} :offset {offset}))"), count.to_string())
}

fn sizes(chance: &mut Chance, mailbox: &Mailbox) -> Job {
    let server = chance.of(&SERVERS);
    // One time in ten all messages, which are more than a megabyte.
    let limit = if chance.below(10) == 0 { 1_000 } else { 1 + chance.below(200) };
    let sum = sum(&answer(mailbox, "fetch-emails", json!({"limit": limit, "unread_only": true})), "size");
    let program =
        format!("(->> ({server}/fetch-emails {{:limit {limit} :unread_only true}}) (map :size) (reduce + 0))");
    Job::good(program, sum.to_string())
}

fn busiest(chance: &mut Chance, mailbox: &Mailbox) -> Job {
    let (server, limit) = (chance.of(&SERVERS), 1 + chance.below(150));
    let mails = answer(mailbox, "fetch-emails", json!({"limit": limit}));
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    for mail in rows(&mails) {
        *counts.entry(mail["sender"]["email"].as_str().unwrap_or_default()).or_default() += 1;
    }
    let most = counts.iter().min_by_key(|(sender, count)| (-**count, **sender));
    let (sender, count) = most.map_or(("", 0), |(sender, count)| (*sender, *count));
    let program = format!(
        "(->> ({server}/fetch-emails :limit {limit})
     (map #(get-in % [:sender :email]))
     frequencies
     (sort-by (juxt (comp - val) key))
     first)"
    );
    Job::good(program, format!("[{} {count}]", quoted(sender)))
}

fn one(chance: &mut Chance, mailbox: &Mailbox) -> Job {
    let (server, (id, size)) = (chance.of(&SERVERS), message(chance, mailbox));
    Job::good(format!("(let [m ({server}/get-email :id \"{id}\")] [(:id m) (:size m)])"), format!("[\"{id}\" {size}]"))
}

fn searched(chance: &mut Chance, mailbox: &Mailbox) -> Job {
    let (server, word) =
        (chance.of(&SERVERS), chance.of(&["invoice", "build", "meeting", "report", "nothing-like-it"]));
    let count = rows(&answer(mailbox, "search-emails", json!({"query": word, "limit": 100}))).len();
    Job::good(format!("(count ({server}/search-emails {{:query \"{word}\" :limit 100}}))"), count.to_string())
}

/// A message that does not exist, caught and uncaught, and a wrong argument name.
fn missing(chance: &mut Chance, _: &Mailbox) -> Job {
    let server = chance.of(&SERVERS);
    let call = format!("({server}/get-email :id \"msg-9999\")");
    match chance.below(3) {
        0 => Job::good(format!("(try {call} (catch Exception e :caught))"), ":caught"),
        1 => Job::bad(call, json!({}), Expected::OneOf(&["error: ToolError"])),
        _ => Job::bad(
            format!("({server}/get-email :identity \"msg-0001\")"),
            json!({}),
            Expected::OneOf(&["error: ToolArgumentError"]),
        ),
    }
}

/// Parallel calls.
fn beside(chance: &mut Chance, mailbox: &Mailbox) -> Job {
    let server = chance.of(&SERVERS);
    let messages: Vec<(String, i64)> = (0..1 + chance.below(24)).map(|_| message(chance, mailbox)).collect();
    let ids = spaced(messages.iter().map(|(id, _)| quoted(id)));
    let answer = spaced(messages.iter().map(|(_, size)| size));
    Job::good(format!("(pmap (fn [id] (:size ({server}/get-email :id id))) [{ids}])"), format!("({answer})"))
}

/// Parallel calls of both servers.
fn both(_: &mut Chance, mailbox: &Mailbox) -> Job {
    let labels = answer(mailbox, "list-labels", json!({}));
    let mails = answer(mailbox, "fetch-emails", json!({"limit": 40}));
    let (one, other) = (sum(&labels, "unread"), sum(&mails, "size"));
    let program = "(pmap (fn [f] (f))
      [(fn [] (reduce + (map :unread (mail/list-labels))))
       (fn [] (reduce + (map :size (archive/fetch-emails :limit 40))))])";
    Job::good(program, format!("({one} {other})"))
}
