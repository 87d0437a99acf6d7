//! Batches of messages, a feature of protocol revision 2025-03-26.

use std::borrow::Cow;
use std::collections::HashSet;

use rmcp::model::{ErrorCode, ProtocolVersion, RequestId};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::cursor;
use super::envelope::Envelope;

/// Maximum number of messages in a batch.
const MOST: usize = 100;

/// The error for JSON that is not a message of MCP.
pub(in crate::server) const NO_MESSAGE: &str =
    "expected a request, a notification or a response of JSON-RPC 2.0, as MCP defines them";

/// The error for a batch in a session of another revision.
pub(in crate::server) const NO_BATCHES: &str =
    "expected one message, got a batch, which only protocol revision 2025-03-26 supports; send each message separately";

/// One message of a batch.
#[derive(Debug)]
pub(in crate::server) enum Item<'t> {
    /// A message to be handled, with its identity if it is a request.
    Message {
        /// The text of the message.
        text: &'t str,
        /// The identity, if the message is a request.
        id: Option<RequestId>,
    },
    /// A message that is answered with an error at once.
    Wrong {
        /// The identity, if there is one.
        id: Option<RequestId>,
        /// The code of the error.
        code: ErrorCode,
        /// A description of the error.
        problem: &'static str,
    },
}

/// True if a session of that revision supports batches.
pub(in crate::server) fn are_known_to(version: &str) -> bool {
    version == ProtocolVersion::V_2025_03_26.as_str()
}

/// The parts of a message that decide how to handle it.
#[derive(Deserialize)]
struct Head<'t> {
    #[serde(borrow, default)]
    method: Option<Cow<'t, str>>,
}

/// Splits a batch.
///
/// # Errors
/// Returns the problem of the batch as a whole.
pub(in crate::server) fn items(text: &[u8]) -> Result<Vec<Item<'_>>, String> {
    let messages: Vec<&RawValue> =
        serde_json::from_slice(text).map_err(|problem| format!("the batch is not JSON: {problem}"))?;
    if messages.is_empty() {
        return Err("expected messages in the batch, got none".to_owned());
    }
    if messages.len() > MOST {
        return Err(format!("expected at most {MOST} messages in a batch, got {}", messages.len()));
    }
    let mut ids = HashSet::new();
    messages.into_iter().map(|message| item(message.get(), &mut ids)).collect()
}

fn item<'t>(text: &'t str, ids: &mut HashSet<RequestId>) -> Result<Item<'t>, String> {
    let envelope = Envelope::of(text.as_bytes());
    let id = envelope.id();
    let wrong = |id, problem| Ok(Item::Wrong { id, code: ErrorCode::INVALID_REQUEST, problem });
    let head = match serde_json::from_str::<Head<'t>>(text) {
        Ok(head) if text.starts_with('{') => head,
        _ => return wrong(None, NO_MESSAGE),
    };
    let Some(method) = head.method else { return Ok(Item::Message { text, id: None }) };
    if method == "initialize" {
        return wrong(id, "`initialize` must not be part of a batch");
    }
    if let Some(problem) = cursor::problem(text.as_bytes()) {
        return Ok(Item::Wrong { id, code: ErrorCode::INVALID_PARAMS, problem });
    }
    match id {
        None if envelope.has_id() => wrong(None, NO_MESSAGE),
        Some(id) if !ids.insert(id.clone()) => {
            Err(format!("expected requests of different ids in a batch, got `{id}` twice"))
        }
        id => Ok(Item::Message { text, id }),
    }
}

/// The batches of one connection over lines: replies are held until all others of their batch exist.
#[derive(Default)]
pub(in crate::server) struct Batches {
    /// The request that negotiates the revision, until it is answered.
    initialize: Option<RequestId>,
    are_known: bool,
    open: Vec<Open>,
}

/// A batch that is not fully answered yet.
struct Open {
    waiting: HashSet<RequestId>,
    replies: Vec<Vec<u8>>,
}

/// The treatment of a reply.
pub(in crate::server) enum Outgoing {
    /// Write it on its own.
    Alone(Vec<u8>),
    /// Write the replies to the batch that it completes.
    Batch(Vec<u8>),
    /// It is held until the others exist.
    Kept,
}

impl Batches {
    /// True once a revision with batches has been negotiated.
    pub(in crate::server) fn are_known(&self) -> bool {
        self.are_known
    }

    /// Inspects a message from the client that may negotiate the revision.
    pub(in crate::server) fn comes(&mut self, line: &[u8]) {
        const NAME: &[u8] = b"\"initialize\"";
        if line.windows(NAME.len()).take(FRONT).any(|window| window == NAME) {
            self.initialize = Envelope::of(line).id();
        }
    }

    /// True while a request that negotiates the revision has no answer.
    pub(in crate::server) fn are_open(&self) -> bool {
        self.initialize.is_some()
    }

    /// Begins a batch with the replies that exist and the requests that are pending. Returns the text of the replies if
    /// none is pending.
    pub(in crate::server) fn begin(&mut self, waiting: HashSet<RequestId>, replies: Vec<Vec<u8>>) -> Option<Vec<u8>> {
        if !waiting.is_empty() {
            self.open.push(Open { waiting, replies });
            return None;
        }
        (!replies.is_empty()).then(|| array(&replies))
    }

    /// Processes a reply to the client.
    pub(in crate::server) fn goes(&mut self, id: &RequestId, line: Vec<u8>) -> Outgoing {
        if self.initialize.as_ref() == Some(id) {
            self.initialize = None;
            let answer = serde_json::from_slice::<Answer>(&line).ok();
            self.are_known = answer.is_some_and(|answer| are_known_to(&answer.result.protocol_version));
        }
        let Some(place) = self.open.iter().position(|open| open.waiting.contains(id)) else {
            return Outgoing::Alone(line);
        };
        self.open[place].replies.push(line);
        self.settled(place, id).map_or(Outgoing::Kept, Outgoing::Batch)
    }

    /// Records that a request gets no reply because it was withdrawn. Returns the replies to its batch if no other
    /// reply was pending.
    pub(in crate::server) fn withdrawn(&mut self, id: &RequestId) -> Option<Vec<u8>> {
        let place = self.open.iter().position(|open| open.waiting.contains(id))?;
        self.settled(place, id)
    }

    fn settled(&mut self, place: usize, id: &RequestId) -> Option<Vec<u8>> {
        self.open[place].waiting.remove(id);
        if !self.open[place].waiting.is_empty() {
            return None;
        }
        let Open { replies, .. } = self.open.swap_remove(place);
        (!replies.is_empty()).then(|| array(&replies))
    }
}

/// The length of the prefix of a message in which `initialize` is looked for: its parameters are small.
const FRONT: usize = 64 << 10;

/// The part of the answer to `initialize` that contains the revision.
#[derive(Deserialize)]
struct Answer {
    result: Negotiated,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Negotiated {
    protocol_version: String,
}

/// Encodes an array of messages.
fn array(messages: &[Vec<u8>]) -> Vec<u8> {
    let mut text = Vec::with_capacity(messages.iter().map(|message| message.len() + 1).sum::<usize>() + 1);
    for message in messages {
        text.push(if text.is_empty() { b'[' } else { b',' });
        text.extend(message);
    }
    text.push(b']');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match items(text.as_bytes()) {
            Err(problem) => problem,
            Ok(items) => {
                let shown = items.iter().map(|item| match item {
                    Item::Message { id: Some(id), .. } => format!("request {id}"),
                    Item::Message { id: None, .. } => "other".to_owned(),
                    Item::Wrong { id, .. } => {
                        format!("wrong {}", id.as_ref().map_or("-".to_owned(), RequestId::to_string))
                    }
                });
                shown.collect::<Vec<_>>().join(", ")
            }
        }
    }

    #[test]
    fn a_batch_is_taken_apart() {
        assert_eq!(
            shown(
                r#" [{"id":1,"method":"ping"}, {"method":"notifications/initialized"},{"id":"a","result":{"method":"x"}},
                    {"id":2,"method":"initialize"},3,[],{"id":[],"method":"ping"},{"id":1.5,"method":"\u0070ing"}] "#
            ),
            "request 1, other, other, wrong 2, wrong -, wrong -, wrong -, wrong -"
        );
        assert_eq!(shown("[]"), "expected messages in the batch, got none");
        assert_eq!(
            shown(r#"[{"id":1,"method":"ping"},{"id":1,"method":"ping"}]"#),
            "expected requests of different ids in a batch, got `1` twice"
        );
        assert_eq!(shown(&format!("[{}0]", "0,".repeat(100))), "expected at most 100 messages in a batch, got 101");
    }
}
