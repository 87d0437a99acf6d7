//! Decodes one message, or says why it is not decoded.

use rmcp::model::{ErrorCode, ErrorData};
use rmcp::service::{RxJsonRpcMessage, ServiceRole};
use serde_json::json;

use super::super::batch;
use super::super::envelope::Envelope;
use super::super::frequent;
use super::super::lenient::{self, Waits};

/// The code of errors that replace a message which could not be accepted.
pub(in crate::server) const UNREADABLE: ErrorCode = ErrorCode(-32099);

/// Maximum nesting depth; deeper messages are not decoded. serde_json stops at 128 levels, because decoding and
/// dropping take stack in proportion. rmcp's own layers are within this number.
const DEEPEST: u32 = 120;

/// Maximum number of values and keys; larger messages are not decoded. Two bytes of a line take up to 350 bytes while
/// rmcp decodes them.
pub(in crate::server) const MOST_MARKS: u64 = 1_000_000;

/// The key of messages that says what they are.
const JSON_RPC: &[u8] = b"\"jsonrpc\"";

/// The reason for which a message of a peer is unreadable.
pub(super) enum Unreadable {
    Large {
        bytes: u64,
        most: usize,
    },
    Deep(u32),
    Many(u64),
    Odd(String),
    /// JSON that is not a message of MCP.
    Unfit(String),
    /// A malformed batch, or a batch in a session of a revision without batches.
    Batch(String),
}

impl Unreadable {
    /// Returns the problem of a message that is nested too deeply.
    fn deep(envelope: &Envelope) -> Option<Unreadable> {
        let depth = envelope.deepest();
        (depth > DEEPEST).then_some(Unreadable::Deep(depth))
    }

    /// Returns the problem of a message that has too many values.
    fn many(envelope: &Envelope) -> Option<Unreadable> {
        let marks = envelope.marks();
        (marks > MOST_MARKS).then_some(Unreadable::Many(marks))
    }

    /// Returns the error reply to the message, or in its place.
    pub(super) fn error(&self) -> ErrorData {
        let (message, data) = match self {
            Unreadable::Batch(problem) | Unreadable::Unfit(problem) => {
                return ErrorData::new(ErrorCode::INVALID_REQUEST, problem.clone(), None);
            }
            Unreadable::Large { bytes, most } => {
                (format!("the message has {bytes} bytes; at most {most} are accepted"), json!({ "bytes": bytes }))
            }
            Unreadable::Deep(depth) => (
                format!("the message is nested {depth} levels deep; at most {DEEPEST} are accepted"),
                json!({ "depth": depth }),
            ),
            Unreadable::Many(marks) => (
                format!("the message has about {marks} values and keys; at most {MOST_MARKS} are accepted"),
                json!({ "values": marks }),
            ),
            Unreadable::Odd(problem) => (format!("the message is not JSON-RPC: {problem}"), json!({})),
        };
        ErrorData::new(UNREADABLE, message, Some(data))
    }
}

/// Returns why a message must not be decoded, if so.
pub(in crate::server) fn problem_of(envelope: &Envelope) -> Option<ErrorData> {
    Unreadable::deep(envelope).or_else(|| Unreadable::many(envelope)).map(|unreadable| unreadable.error())
}

/// Returns the number of bytes if an error of [`UNREADABLE`] replaces a message that was too large.
pub(in crate::server) fn bytes_of(error: &ErrorData) -> Option<u64> {
    error.data.as_ref()?.get("bytes")?.as_u64()
}

/// Decodes one line; `None` for lines to be ignored: empty lines, log lines that a server prints by mistake,
/// notifications of other protocols.
pub(super) fn read_message<Role: ServiceRole>(
    line: &[u8],
    waits: Waits<'_>,
) -> Result<Option<RxJsonRpcMessage<Role>>, (Envelope, Unreadable)> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return Ok(None);
    }
    // A value or key takes a byte and its mark, so that a short line need not be scanned twice.
    if line.len() as u64 > 2 * MOST_MARKS {
        let envelope = Envelope::of(line);
        if let Some(many) = Unreadable::many(&envelope) {
            return Err((envelope, many));
        }
    }
    let read = match Role::IS_CLIENT {
        true => lenient::read::<Role>(line, waits),
        false => frequent::call::<Role>(line).map_or_else(|| serde_json::from_slice(line), Ok),
    };
    let problem = match read {
        Ok(message) => return Ok(Some(message)),
        Err(problem) => problem,
    };
    if Role::IS_CLIENT
        && let Some(reply) = reply_behind(line)
        && let Ok(message) = lenient::read::<Role>(reply, waits)
    {
        return Ok(Some(message));
    }
    let envelope = Envelope::of(line);
    if !envelope.has_id() && !envelope.is_batch() || Role::IS_CLIENT && is_of_a_log(line) {
        tracing::debug!("ignored a line that is not a message");
        return Ok(None);
    }
    let unreadable = if envelope.is_batch() {
        Unreadable::Batch(batch::NO_BATCHES.to_owned())
    } else {
        Unreadable::deep(&envelope).unwrap_or_else(|| Unreadable::Odd(problem.to_string()))
    };
    Err((envelope, unreadable))
}

/// Returns whether a line of a server that cannot be read is one of its log, whatever identity it has.
fn is_of_a_log(line: &[u8]) -> bool {
    lenient::is_no_message(line) || behind(line).is_some_and(|json| memchr::memmem::find(json, JSON_RPC).is_none())
}

/// Returns the JSON on a line that begins with something else.
fn behind(line: &[u8]) -> Option<&[u8]> {
    line.iter().position(|byte| *byte == b'{').filter(|at| *at > 0).map(|at| &line[at..])
}

/// Returns the reply on a line of a server that begins with something else, such as the level of a log or codes of a
/// terminal. Requests are not looked for there: a log may have those that were received. What does not say that it is
/// JSON-RPC is data of the log, whatever identity it has.
fn reply_behind(line: &[u8]) -> Option<&[u8]> {
    let json = behind(line)?;
    memchr::memmem::find(json, JSON_RPC)?;
    let envelope = Envelope::of(json);
    (envelope.has_id() && !envelope.has_method() && !envelope.is_open()).then_some(json)
}

/// Reads a message that was taken out of a longer text of the peer; `None` for what is none.
pub(super) fn read_item<Role: ServiceRole>(text: &[u8], waits: Waits<'_>) -> Option<RxJsonRpcMessage<Role>> {
    if Role::IS_CLIENT { lenient::read::<Role>(text, waits).ok() } else { serde_json::from_slice(text).ok() }
}
