//! Reads the messages of servers for what is needed of them, whatever their optional parts look like.
//!
//! rmcp's types are strict: one odd annotation makes a whole reply unreadable. A message that they do not accept is
//! mended: what is not needed is dropped, and what is needed is converted where its meaning is certain.
//! Messages that they accept cost nothing more. [`results`] has the rules for each kind of result, [`text`] those for
//! JSON that is not quite JSON.

mod results;
mod text;

use std::any::Any;

use rmcp::model::{ErrorCode, JsonRpcMessage, RequestId, ServerResult};
use rmcp::service::{RxJsonRpcMessage, ServiceRole};
use serde_json::{Map, Value, json};

pub(in crate::server) use text::forgiven;

use super::frequent;

/// The key of the metadata under which a result of a tool names the parts that were dropped from it.
pub(in crate::server) const DROPPED: &str = "lispbox/dropped";

/// The key of the metadata of a tool that runs as a task alone.
pub(in crate::server) const TASK_ONLY: &str = "lispbox/task-only";

/// The key by which a tool says whether it runs as a task. rmcp does not know it.
const TASK_SUPPORT: &[u8] = b"\"taskSupport\"";

/// The names of these parts. A server may write anything under the key.
pub(in crate::server) const PARTS: [&str; 4] = ["isError", "annotations", "_meta", NO_TEXT];

/// The name for halves of surrogate pairs, bytes that are not UTF-8, and numbers that JSON does not have.
const NO_TEXT: &str = "NaN, Infinity or half a character";

/// The request that waits for a reply without a fitting identity.
#[derive(Clone, Copy)]
pub(in crate::server) enum Waits<'a> {
    /// None, or several.
    Nobody,
    /// The only one on a connection. A reply with the identity of an earlier one is late, and not meant for it.
    Only(&'a RequestId),
    /// The one to which the message is the response.
    This(&'a RequestId),
}

impl<'a> Waits<'a> {
    /// Returns what the only request on a connection waits for, if there is one.
    pub(in crate::server) fn of(only: Option<&'a RequestId>) -> Waits<'a> {
        only.map_or(Waits::Nobody, Waits::Only)
    }
}

/// Reads the text of a message that a server sends.
///
/// # Errors
/// Returns the problem if the text cannot be read.
pub(in crate::server) fn read<Role: ServiceRole>(
    text: &[u8],
    waits: Waits<'_>,
) -> Result<RxJsonRpcMessage<Role>, serde_json::Error> {
    read_and_compare::<Role>(text, waits).map(|(message, _)| message)
}

/// Reads the text of a message as [`read`] does, and also returns whether rmcp reads something else in it.
///
/// # Errors
/// Returns the problem if the text cannot be read.
pub(in crate::server) fn read_and_compare<Role: ServiceRole>(
    text: &[u8],
    waits: Waits<'_>,
) -> Result<(RxJsonRpcMessage<Role>, bool), serde_json::Error> {
    let strict = frequent::returned::<Role>(text).map_or_else(|| serde_json::from_slice(text), Ok);
    let (mut message, is_mended) = match strict {
        Ok(message) if is_understood(&message, text) => (message, false),
        strict => {
            let mended = mended(text).and_then(|value| serde_json::from_value::<RxJsonRpcMessage<Role>>(value).ok());
            (mended.map_or(strict, Ok)?, true)
        }
    };
    let is_adopted = adopt(&mut message, waits);
    Ok((message, is_mended || is_adopted))
}

/// True if a reply has one of the types of results that MCP defines, and no part that they represent wrongly.
fn is_understood<Req, Resp: Any, Not>(message: &JsonRpcMessage<Req, Resp, Not>, text: &[u8]) -> bool {
    let JsonRpcMessage::Response(response) = message else { return true };
    match (&response.result as &dyn Any).downcast_ref::<ServerResult>() {
        Some(ServerResult::CustomResult(_)) => false,
        Some(ServerResult::ListToolsResult(_)) => memchr::memmem::find(text, TASK_SUPPORT).is_none(),
        // `null`, and an empty object beside a text, stand for nothing.
        Some(ServerResult::CallToolResult(result)) => match &result.structured_content {
            Some(Value::Null) => false,
            Some(Value::Object(fields)) => !fields.is_empty() || result.content.is_empty(),
            _ => true,
        },
        _ => true,
    }
}

/// Gives a reply the identity of the request that waits, if its own is missing or written in another way. Returns whether
/// that changes the reply.
fn adopt<Req, Resp, Not>(message: &mut JsonRpcMessage<Req, Resp, Not>, waits: Waits<'_>) -> bool {
    let (id, is_certain) = match waits {
        Waits::Nobody => return false,
        Waits::Only(id) => (id, false),
        Waits::This(id) => (id, true),
    };
    match message {
        JsonRpcMessage::Error(error) => {
            let is_of_another = |own: &RequestId| own.to_string().parse::<i64>().is_ok() && !is_same(own, id);
            let is_meant = is_certain || !error.id.as_ref().is_some_and(is_of_another);
            let is_other = error.id.as_ref() != Some(id);
            if is_meant {
                error.id = Some(id.clone());
            }
            is_meant && is_other
        }
        JsonRpcMessage::Response(response) if is_same(&response.id, id) => {
            let is_other = response.id != *id;
            response.id = id.clone();
            is_other
        }
        _ => false,
    }
}

/// True for two identities that differ in their type only, such as `1` and `"1"`.
fn is_same(one: &RequestId, other: &RequestId) -> bool {
    one == other || one.to_string() == other.to_string()
}

/// Returns whether a text is an object that is no message, such as a line of a log in JSON.
pub(in crate::server) fn is_no_message(text: &[u8]) -> bool {
    serde_json::from_slice::<Value>(text).is_ok_and(|value| value.as_object().is_some_and(is_foreign))
}

/// True for an object that does not say that it is JSON-RPC, and has keys that no message has: an identity and an error
/// may be those of anything else.
fn is_foreign(message: &Map<String, Value>) -> bool {
    let is_of_rpc = |key: &String| matches!(key.as_str(), "id" | "method" | "params" | "result" | "error");
    !message.contains_key("jsonrpc") && !message.keys().all(is_of_rpc)
}

/// Returns a message in the form that MCP prescribes; `None` if it is no message.
fn mended(text: &[u8]) -> Option<Value> {
    let mut dropped = Vec::new();
    let mut value: Value = match serde_json::from_slice(text) {
        Ok(value) => value,
        Err(_) => {
            dropped.push(NO_TEXT);
            serde_json::from_slice(&forgiven(text)?).ok()?
        }
    };
    let message = value.as_object_mut()?;
    if is_foreign(message) {
        return None;
    }
    message.insert("jsonrpc".to_owned(), json!("2.0"));
    if let Some(id) = message.get("id").filter(|id| id.is_f64()).and_then(Value::as_f64).filter(|id| id.fract() == 0.0)
    {
        message.insert("id".to_owned(), json!(id as i64));
    }
    if message.get("params").is_some_and(|params| !params.is_object()) {
        message.shift_remove("params");
    }
    if message.contains_key("method") {
        return Some(value);
    }
    match message.shift_remove("error") {
        None | Some(Value::Null | Value::Bool(false)) => {
            let result = message.get_mut("result")?;
            results::mend(result, dropped);
        }
        Some(error) => {
            message.shift_remove("result");
            message.insert("error".to_owned(), error_of(error));
            if !message.get("id").is_some_and(|id| id.is_string() || id.is_i64()) {
                message.shift_remove("id");
            }
        }
    }
    Some(value)
}

/// Returns an error with a code that is a number and a message that is a text.
fn error_of(error: Value) -> Value {
    let fields = match error {
        Value::Object(fields) => fields,
        Value::String(text) => Map::from_iter([("message".to_owned(), Value::String(text))]),
        other => Map::from_iter([("message".to_owned(), Value::String(other.to_string()))]),
    };
    let text = |key: &str| fields.get(key).filter(|value| !value.is_null()).map(as_text);
    let words = text("message").or_else(|| text("error")).or_else(|| text("data")).or_else(|| text("code"));
    let code = fields.get("code").and_then(Value::as_f64).filter(|code| code.fract() == 0.0);
    let code = code.map_or(i64::from(ErrorCode::INTERNAL_ERROR.0), |code| code as i64);
    let code = i32::try_from(code).unwrap_or(ErrorCode::INTERNAL_ERROR.0);
    let mut mended = json!({"code": code, "message": words.unwrap_or_else(|| "it gave no reason".to_owned())});
    if let (Some(data), Some(mended)) = (fields.get("data").filter(|data| !data.is_null()), mended.as_object_mut()) {
        mended.insert("data".to_owned(), data.clone());
    }
    mended
}

/// Returns a text as it is and any other value as JSON.
fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests;
