//! Recorded replies that are found by request, for a program other than the recorded one.

use super::logged::{CallState, EarlierCall, Entry, Logged};
use crate::foreign_text;
use crate::host::{Happened, ToolCall, ToolError, ToolErrorKind, ToolReply};
use crate::json::with_exact_numbers;
use sha2::{Digest, Sha256};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum length of the arguments in a message, in characters.
const ARGUMENTS: usize = 80;

/// A tool and its arguments: the server, the tool, and the arguments with their keys in order.
type RequestKey = (Arc<str>, Arc<str>, String);

fn request_key(server: &Arc<str>, tool: &Arc<str>, arguments: &str) -> RequestKey {
    (server.clone(), tool.clone(), asked_for(arguments))
}

/// The replies of a log by request. Equal requests receive their replies in the recorded order, and the last one again
/// if they are made more often.
pub struct Replies(Mutex<HashMap<RequestKey, VecDeque<ToolReply>>>);

impl Replies {
    /// Collects the replies of a log.
    pub fn of(log: &Logged) -> Replies {
        let mut replies: HashMap<RequestKey, VecDeque<ToolReply>> = HashMap::new();
        for entry in &log.calls {
            if let CallState::Done(reply) = &entry.state {
                let key = request_key(&entry.server, &entry.tool, &entry.arguments);
                replies.entry(key).or_default().push_back(reply.clone());
            }
        }
        Replies(Mutex::new(replies))
    }

    /// Returns the next reply to a request, if it was recorded.
    pub fn take(&self, call: &ToolCall) -> Option<ToolReply> {
        let key = request_key(&call.server, &call.tool, &call.arguments);
        let mut replies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let replies = replies.get_mut(&key)?;
        match replies.len() {
            0 | 1 => replies.front().cloned(),
            _ => replies.pop_front(),
        }
    }
}

/// The calls of earlier attempts of a run that are still to be asked for, as their ordinals in the log, by request.
#[derive(Default)]
pub(super) struct Untaken(HashMap<RequestKey, VecDeque<u32>>);

impl Untaken {
    /// Collects the calls of a log that answer those of its attempt.
    pub(super) fn of(log: &Logged) -> Untaken {
        let mut untaken: HashMap<RequestKey, VecDeque<u32>> = HashMap::new();
        for (at, EarlierCall { attempt, entry, is_taken }) in (0..).zip(&log.earlier) {
            let is_asked_for = match entry.happened() {
                Happened::Yes => true,
                Happened::Unknown => !log.repeats_unknown,
                Happened::No => log.repeats_reads,
            };
            if *attempt < log.attempt && !is_taken && is_asked_for {
                let key = request_key(&entry.server, &entry.tool, &entry.arguments);
                untaken.entry(key).or_default().push_back(at);
            }
        }
        Untaken(untaken)
    }

    /// Takes the next call that answers this one, if there is any.
    pub(super) fn take(&mut self, call: &ToolCall) -> Option<u32> {
        if self.0.is_empty() {
            return None;
        }
        let key = request_key(&call.server, &call.tool, &call.arguments);
        self.0.get_mut(&key)?.pop_front()
    }
}

/// Returns the reply of an earlier call to the same one in a later attempt. A model `may_insist` on one of unknown outcome if
/// its client passes that on.
pub(super) fn reply_again(earlier: &Entry, may_insist: bool) -> ToolReply {
    let Entry { server, tool, .. } = earlier;
    match (&earlier.state, earlier.happened()) {
        (_, Happened::Unknown) => ToolReply::Repeated(format!(
            "an earlier attempt has sent {} {}, and it is not known whether it was carried out; nothing was sent: look at \
             what it changes with a tool that reads, then leave the call out{}",
            foreign_text::qualified(server, tool),
            foreign_text::begun(earlier.shown_arguments(), ARGUMENTS),
            if may_insist { ", or add `\"repeat\": true` to make it" } else { "" },
        )),
        (CallState::Done(reply), _) => reply.clone(),
        _ => ToolReply::Error(ToolError::new(
            ToolErrorKind::TooLarge,
            "the call was made by an earlier attempt, whose record has no room for the reply",
        )),
    }
}

/// The size in bytes from which on arguments are compared by their digest.
const KEPT_ARGUMENTS: usize = 1024;

/// The prefix of truncated arguments, with which no JSON text begins: their digest follows, then a space and their first
/// characters.
const DIGEST: &str = "sha256:";

/// Truncates long arguments to their digest and their first characters; `None` if they are short, or truncated already.
pub(super) fn truncated(arguments: &str) -> Option<String> {
    if arguments.len() <= KEPT_ARGUMENTS || arguments.starts_with(DIGEST) {
        return None;
    }
    let digest = Some(asked_for(arguments)).filter(|text| text.starts_with(DIGEST))?;
    Some(format!("{digest} {}", &arguments[..arguments.floor_char_boundary(ARGUMENTS)]))
}

/// Returns the arguments, or the first characters of truncated ones.
pub(super) fn readable(arguments: &str) -> &str {
    let truncated = arguments.strip_prefix(DIGEST).and_then(|text| text.split_once(' '));
    truncated.map_or(arguments, |(_, first)| first)
}

/// True if truncated arguments have the digest of these.
pub(super) fn is_truncation_of(truncated: &str, arguments: &str) -> bool {
    truncated.starts_with(DIGEST) && asked_for(truncated) == asked_for(arguments)
}

/// Returns the key by which the arguments of a call are compared, equal for the texts of equal JSON objects, truncated or
/// not: their canonical text, or its digest if that is long.
pub fn asked_for(arguments: &str) -> String {
    if arguments.starts_with(DIGEST) {
        return arguments.split(' ').next().unwrap_or_default().to_owned();
    }
    let text = in_order(arguments);
    // Equal objects may be written at different lengths.
    if text.len() <= KEPT_ARGUMENTS {
        return text;
    }
    let digits: String = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{DIGEST}{digits}")
}

/// Writes the keys of all objects in order, and numbers in one notation of their exact value.
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
    match serde_json::from_str::<serde_json::Value>(&with_exact_numbers(arguments)) {
        Ok(mut value) => {
            sorted(&mut value);
            value.to_string()
        }
        Err(_) => arguments.to_owned(),
    }
}
