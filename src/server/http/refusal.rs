//! Responses to requests that are refused before they reach the protocol layer.

use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use http::{HeaderValue, StatusCode, header};
use rmcp::model::{ErrorCode, RequestId};
use serde_json::json;

use crate::server::admission::shutdown::SHUTTING_DOWN;
use crate::server::transport::lines;

/// Time limit for a connection that is refused or evicted.
pub(super) const REFUSAL: Duration = Duration::from_secs(1);

/// A refusal of a request that may be retried later.
#[derive(Debug)]
pub(super) struct RetryLater {
    /// 429 if the principal or the address has used its share, 503 if the server is full.
    pub(super) status: StatusCode,
    /// The limit, how much of it is in use, by whom, and when to retry.
    pub(super) message: String,
    /// The delay before a retry.
    pub(super) wait: Duration,
}

impl RetryLater {
    /// A refusal for a reason that may no longer apply in a moment.
    pub(super) fn in_a_moment(status: StatusCode, reason: &str) -> RetryLater {
        RetryLater { status, message: format!("{reason}; try again in a moment"), wait: Duration::from_secs(1) }
    }

    /// A refusal because the server is shutting down. Another instance may answer the request, or this one after a
    /// restart.
    pub(super) fn shutting_down() -> RetryLater {
        RetryLater {
            status: StatusCode::SERVICE_UNAVAILABLE,
            message: SHUTTING_DOWN.to_owned(),
            wait: Duration::from_secs(1),
        }
    }

    /// Returns the response, a JSON-RPC error whose message clients show to the caller.
    pub(super) fn response(&self, id: Option<RequestId>) -> Response {
        let mut response = failed(self.status, lines::UNREADABLE, id, &self.message);
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(self.wait.as_secs()));
        response
    }

    /// Returns the response to a message that has not been read. Reads and discards the message for a while first:
    /// closing the connection earlier would take the response away from a client that is still sending.
    pub(super) async fn response_to(&self, message: Body) -> Response {
        let rest = message.into_data_stream().take_while(|chunk| std::future::ready(chunk.is_ok()));
        let _ = tokio::time::timeout(REFUSAL, rest.for_each(|_| std::future::ready(()))).await;
        self.response(None)
    }
}

/// Reason why a request could not be authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unauthorized {
    /// The request has no bearer token.
    NoToken,
    /// The token is unknown or has been revoked.
    InvalidToken,
    /// The request has more than one `Authorization` header, which makes its principal ambiguous.
    Ambiguous,
}

impl IntoResponse for Unauthorized {
    /// Returns the challenge defined by RFC 6750.
    fn into_response(self) -> Response {
        let (status, challenge, message) = match self {
            Unauthorized::NoToken => (
                StatusCode::UNAUTHORIZED,
                r#"Bearer realm="lispbox""#,
                "a bearer token is needed: `Authorization: Bearer TOKEN`\n",
            ),
            Unauthorized::InvalidToken => (
                StatusCode::UNAUTHORIZED,
                r#"Bearer realm="lispbox", error="invalid_token", error_description="the token is unknown or was revoked""#,
                "the bearer token is unknown or was revoked\n",
            ),
            Unauthorized::Ambiguous => (
                StatusCode::BAD_REQUEST,
                r#"Bearer realm="lispbox", error="invalid_request", error_description="expected one Authorization header""#,
                "expected one `Authorization` header, got several\n",
            ),
        };
        (status, [(header::WWW_AUTHENTICATE, challenge)], message).into_response()
    }
}

/// Returns the response to an `Mcp-Session-Id` that names no session of the principal; identical to that of rmcp to an
/// unknown id.
pub(super) fn no_such_session() -> Response {
    (StatusCode::NOT_FOUND, "Not Found: Session not found").into_response()
}

/// Returns a JSON-RPC error as a response.
pub(super) fn failed(status: StatusCode, code: ErrorCode, id: Option<RequestId>, message: &str) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], error(code, id, message)).into_response()
}

/// Returns a JSON-RPC error as text.
pub(super) fn error(code: ErrorCode, id: Option<RequestId>, message: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code.0, "message": message}}).to_string()
}
