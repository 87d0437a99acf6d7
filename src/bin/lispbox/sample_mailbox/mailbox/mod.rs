//! The data of the sample mailbox and the operations on it, without a protocol.

pub mod chance;
mod messages;
mod senders;

use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value, json};

use messages::Message;

/// A thousand messages and the operations on them.
pub struct Mailbox {
    /// The messages, newest first.
    messages: Vec<Message>,
    /// The drafts that `send-email` saved.
    drafts: Mutex<Vec<Value>>,
}

/// The arguments of a call.
pub type Arguments = Map<String, Value>;

impl Mailbox {
    /// Creates the mailbox; its contents are always the same.
    pub fn new() -> Mailbox {
        Mailbox { messages: messages::generate(), drafts: Mutex::default() }
    }

    /// Calls a tool: its answer or error; `None` if no such tool exists.
    pub fn call(&self, tool: &str, arguments: &Arguments) -> Option<Result<Value, String>> {
        Some(match tool {
            "fetch-emails" => Ok(self.fetch(arguments)),
            "search-emails" => self.search(arguments),
            "get-email" => self.get(arguments),
            "get-thread" => self.thread(arguments),
            "list-labels" => Ok(self.labels()),
            "send-email" => self.send(arguments),
            _ => return None,
        })
    }

    fn fetch(&self, arguments: &Arguments) -> Value {
        let unread = arguments.get("unread_only").and_then(Value::as_bool) == Some(true);
        let label = text(arguments, "label");
        let since = text(arguments, "since");
        let wanted = self.messages.iter().filter(|message| {
            (!unread || message.unread)
                && label.is_none_or(|label| message.labels.iter().any(|one| one == label))
                && since.is_none_or(|since| message.date.as_str() >= since)
        });
        let (offset, limit) = (count(arguments, "offset", 0), count(arguments, "limit", 100).clamp(1, 1000));
        wanted.skip(offset).take(limit).map(Message::whole).collect()
    }

    fn search(&self, arguments: &Arguments) -> Result<Value, String> {
        let words = text(arguments, "query").unwrap_or_default().to_lowercase();
        if words.trim().is_empty() {
            return Err("`query` must not be empty".to_owned());
        }
        let place = text(arguments, "in").unwrap_or("any");
        let found = self.messages.iter().filter(|message| {
            let text = message.searchable(place);
            words.split_whitespace().all(|word| text.contains(word))
        });
        Ok(found.take(count(arguments, "limit", 20).clamp(1, 100)).map(Message::summary).collect())
    }

    fn get(&self, arguments: &Arguments) -> Result<Value, String> {
        let id = text(arguments, "id").unwrap_or_default();
        let found = self.messages.iter().find(|message| message.id == id);
        found.map(Message::whole).ok_or_else(|| format!("there is no message `{id}`"))
    }

    fn thread(&self, arguments: &Arguments) -> Result<Value, String> {
        let id = text(arguments, "thread_id").unwrap_or_default();
        let found: Vec<Value> =
            self.messages.iter().rev().filter(|message| message.thread == id).map(Message::whole).collect();
        if found.is_empty() { Err(format!("there is no thread `{id}`")) } else { Ok(Value::Array(found)) }
    }

    fn labels(&self) -> Value {
        let mut counts: Map<String, Value> = Map::new();
        for message in &self.messages {
            for label in &message.labels {
                let entry =
                    counts.entry(label.clone()).or_insert_with(|| json!({"name": label, "messages": 0, "unread": 0}));
                for (field, more) in [("messages", 1), ("unread", u64::from(message.unread))] {
                    entry[field] = json!(entry[field].as_u64().unwrap_or(0) + more);
                }
            }
        }
        counts.into_iter().map(|(_, entry)| entry).collect()
    }

    /// Saves the message as a draft; nothing is ever sent.
    fn send(&self, arguments: &Arguments) -> Result<Value, String> {
        let recipients = arguments.get("to").and_then(Value::as_array).map_or(0, Vec::len);
        if recipients == 0 {
            return Err("`to` must name at least one recipient".to_owned());
        }
        let mut drafts = self.drafts.lock().unwrap_or_else(PoisonError::into_inner);
        drafts.push(Value::Object(arguments.clone()));
        Ok(json!({"id": format!("draft-{:04}", drafts.len()), "status": "draft", "recipients": recipients}))
    }
}

fn text<'a>(arguments: &'a Arguments, name: &str) -> Option<&'a str> {
    arguments.get(name).and_then(Value::as_str)
}

fn count(arguments: &Arguments, name: &str, default: usize) -> usize {
    let given = arguments.get(name).and_then(|value| value.as_u64().or(value.as_f64().map(|number| number as u64)));
    given.map_or(default, |number| usize::try_from(number).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(tool: &str, arguments: Value) -> Value {
        let Value::Object(arguments) = arguments else { panic!("an object") };
        Mailbox::new().call(tool, &arguments).expect("a tool").expect("it answers")
    }

    #[test]
    fn messages_are_fetched_by_what_was_asked() {
        let length = |arguments| call("fetch-emails", arguments).as_array().map_or(0, Vec::len);
        assert_eq!(length(json!({})), 100);
        assert_eq!(length(json!({"limit": 50})), 50);
        assert_eq!(length(json!({"limit": 1000})), 1000);
        assert_eq!(length(json!({"offset": 990})), 10);
        let unread = length(json!({"limit": 1000, "unread_only": true}));
        assert!((150..450).contains(&unread), "{unread}");
        let labels = call("list-labels", json!({}));
        let inbox = labels.as_array().and_then(|labels| labels.iter().find(|label| label["name"] == "inbox"));
        assert_eq!(inbox.map(|inbox| inbox["unread"].clone()), Some(json!(unread)));
    }

    #[test]
    fn one_message_and_its_thread() {
        let message = call("get-email", json!({"id": "msg-0500"}));
        assert_eq!(message["id"], "msg-0500");
        let thread = call("get-thread", json!({"thread_id": message["thread_id"]}));
        assert!(thread.as_array().is_some_and(|thread| thread.contains(&message)));
        let found = call("search-emails", json!({"query": "invoice", "in": "subject"}));
        assert!(found.as_array().is_some_and(|found| !found.is_empty() && found[0].get("body").is_none()));
    }

    #[test]
    fn nothing_is_sent() {
        let answer = call("send-email", json!({"to": ["a@example.com"], "subject": "x", "body": "y"}));
        assert_eq!(answer, json!({"id": "draft-0001", "status": "draft", "recipients": 1}));
    }
}
