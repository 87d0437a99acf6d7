//! Batches of messages, as in protocol revision 2025-03-26: each message is handled separately, and the replies to the
//! requests are returned as one array.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{StatusCode, header};
use rmcp::model::{ErrorCode, RequestId};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::server::transport::batch::{self, Item};
use crate::server::transport::unfit;

use super::refusal::{RetryLater, error, failed};

/// Maximum size of the reply to one message, in bytes.
const LARGEST_REPLY: usize = 64 << 20;

/// Passes on the messages of a batch and answers with the array of replies. Each call of `count` counts one more
/// request against the rate limit.
pub(super) async fn answer(
    mut parts: Parts,
    text: &[u8],
    next: Next,
    count: impl Fn() -> Result<(), RetryLater>,
) -> Response {
    parts.headers.remove(header::CONTENT_LENGTH);
    let items = match batch::items(text) {
        Ok(items) => items,
        Err(problem) => return failed(StatusCode::BAD_REQUEST, ErrorCode::INVALID_REQUEST, None, &problem),
    };
    // The HTTP request that carried the batch has already been counted, which covers the first message.
    for _ in items.iter().skip(1) {
        if let Err(later) = count() {
            return later.response(None);
        }
    }
    let replies = futures::future::join_all(items.iter().map(|item| reply(&parts, item, &next))).await;
    let replies: Vec<Box<RawValue>> = replies.into_iter().flatten().collect();
    if replies.is_empty() {
        return StatusCode::ACCEPTED.into_response();
    }
    match serde_json::to_string(&replies) {
        Ok(text) => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(problem) => {
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            failed(status, ErrorCode::INTERNAL_ERROR, None, &problem.to_string())
        }
    }
}

/// Returns the reply to one message; `None` if it needs none.
async fn reply(parts: &Parts, item: &Item<'_>, next: &Next) -> Option<Box<RawValue>> {
    let (text, id) = match item {
        Item::Wrong { id, code, problem } => return raw(error(*code, id.clone(), problem)),
        Item::Message { text, id } => (*text, id),
    };
    let request = Request::from_parts(parts.clone(), Body::from(text.to_owned()));
    let response = next.clone().run(request).await;
    let status = response.status();
    let body = to_bytes(response.into_body(), LARGEST_REPLY).await;
    let id = id.as_ref()?;
    let Ok(body) = body else {
        return raw(error(ErrorCode::INTERNAL_ERROR, Some(id.clone()), "the reply is too large for a batch"));
    };
    let body = String::from_utf8_lossy(&body);
    let events = body.lines().filter_map(|line| line.strip_prefix("data:"));
    match events.chain([&*body]).find(|text| answers(text, id)) {
        Some(text) => raw(text.trim().to_owned()),
        None if status == StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            raw(error(ErrorCode::INVALID_REQUEST, Some(id.clone()), &unfit::reason(text.as_bytes())))
        }
        None => raw(error(ErrorCode::INTERNAL_ERROR, Some(id.clone()), &format!("there is no reply: HTTP {status}"))),
    }
}

/// True if `text` is a result or an error with this id.
fn answers(text: &str, id: &RequestId) -> bool {
    let Ok(message) = serde_json::from_str::<Value>(text) else { return false };
    let is_reply = message.get("result").is_some() || message.get("error").is_some();
    is_reply && message.get("id").is_some_and(|found| serde_json::to_value(id).is_ok_and(|id| *found == id))
}

fn raw(text: String) -> Option<Box<RawValue>> {
    RawValue::from_string(text).ok()
}
