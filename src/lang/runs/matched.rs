//! Recorded replies that are found by request, for a program other than the recorded one.

use super::logged::{CallState, Logged};
use crate::host::{ToolCall, ToolReply};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// A tool and its arguments: the server, the tool, and the arguments with their keys in order.
type RequestKey = (Arc<str>, Arc<str>, String);

/// The replies of a log by request. Equal requests receive their replies in the recorded order, and the last one again
/// if they are made more often.
pub struct Replies(Mutex<HashMap<RequestKey, VecDeque<ToolReply>>>);

impl Replies {
    /// Collects the replies of a log.
    pub fn of(log: &Logged) -> Replies {
        let mut replies: HashMap<RequestKey, VecDeque<ToolReply>> = HashMap::new();
        for entry in &log.calls {
            if let CallState::Done(reply) = &entry.state {
                let key = (entry.server.clone(), entry.tool.clone(), in_order(&entry.arguments));
                replies.entry(key).or_default().push_back(reply.clone());
            }
        }
        Replies(Mutex::new(replies))
    }

    /// Returns the next reply to a request, if it was recorded.
    pub fn take(&self, call: &ToolCall) -> Option<ToolReply> {
        let key = (call.server.clone(), call.tool.clone(), in_order(&call.arguments));
        let mut replies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let replies = replies.get_mut(&key)?;
        match replies.len() {
            0 | 1 => replies.front().cloned(),
            _ => replies.pop_front(),
        }
    }
}

/// Returns the text of a JSON object with the keys of all objects in order.
fn in_order(arguments: &str) -> String {
    fn sorted(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Object(fields) => {
                fields.values_mut().for_each(sorted);
                let mut ordered: Vec<_> = std::mem::take(fields).into_iter().collect();
                ordered.sort_by(|(one, _), (other, _)| one.cmp(other));
                fields.extend(ordered);
            }
            serde_json::Value::Array(items) => items.iter_mut().for_each(sorted),
            _ => {}
        }
    }
    match serde_json::from_str::<serde_json::Value>(arguments) {
        Ok(mut value) => {
            sorted(&mut value);
            value.to_string()
        }
        Err(_) => arguments.to_owned(),
    }
}
