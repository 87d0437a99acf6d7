//! Answers to requests that are refused before the protocol sees them.

use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use http::{HeaderValue, StatusCode, header};
use rmcp::model::{ErrorCode, RequestId};
use serde_json::json;

use crate::server::lines;
use crate::server::shutdown::SHUTTING_DOWN;

/// How long a connection may take that is one too many.
pub(super) const REFUSAL: Duration = Duration::from_secs(1);

/// That a request may be sent again after a while.
#[derive(Debug)]
pub(super) struct Later {
    /// 429 where the principal or the address has its share, 503 where the server is full.
    pub(super) status: StatusCode,
    /// The share or bound, how much of it is taken, by whom, and when to try again.
    pub(super) message: String,
    /// When it may be sent again.
    pub(super) wait: Duration,
}

impl Later {
    /// That the reason may be gone in a moment.
    pub(super) fn in_a_moment(status: StatusCode, reason: &str) -> Later {
        Later { status, message: format!("{reason}; try again in a moment"), wait: Duration::from_secs(1) }
    }

    /// That the server is shutting down. Another instance may answer the request, or this one when it is back.
    pub(super) fn shutting_down() -> Later {
        Later {
            status: StatusCode::SERVICE_UNAVAILABLE,
            message: SHUTTING_DOWN.to_owned(),
            wait: Duration::from_secs(1),
        }
    }

    /// The response; clients show its text, as that of an error of the protocol, to whoever called.
    pub(super) fn response(&self, id: Option<RequestId>) -> Response {
        let mut response = failed(self.status, lines::UNREADABLE, id, &self.message);
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(self.wait.as_secs()));
        response
    }

    /// The response to a message that nobody has read: for a while it is read and dropped, since a connection that is
    /// closed before takes the response away from a client that still sends.
    pub(super) async fn response_to(&self, message: Body) -> Response {
        let rest = message.into_data_stream().take_while(|chunk| std::future::ready(chunk.is_ok()));
        let _ = tokio::time::timeout(REFUSAL, rest.for_each(|_| std::future::ready(()))).await;
        self.response(None)
    }
}

/// Why a request is nobody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unauthorized {
    /// There is no bearer token in it.
    NoToken,
    /// Its token is unknown, or not known any more.
    InvalidToken,
    /// It has more than one `Authorization`, so that it is unclear whose it is.
    Ambiguous,
}

impl IntoResponse for Unauthorized {
    /// The challenge, as RFC 6750 has it.
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

/// The answer to an `Mcp-Session-Id` that names no session of the principal: exactly that of rmcp to an unknown one.
pub(super) fn no_such_session() -> Response {
    (StatusCode::NOT_FOUND, "Not Found: Session not found").into_response()
}

/// An error of the protocol as a response.
pub(super) fn failed(status: StatusCode, code: ErrorCode, id: Option<RequestId>, message: &str) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], error(code, id, message)).into_response()
}

/// The text of an error of the protocol.
pub(super) fn error(code: ErrorCode, id: Option<RequestId>, message: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code.0, "message": message}}).to_string()
}
