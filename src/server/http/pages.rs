//! Web pages of other origins: what browsers need to let them use the server (CORS).
//!
//! The protocol layer decides which origins are allowed (`--origin`), as it does for every request; see [`Pages::admit`].

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};

/// The headers of responses that a page may read.
const EXPOSED: HeaderValue =
    HeaderValue::from_static("Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, Retry-After");

/// The methods of `/mcp`.
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");

/// The seconds for which a browser may remember the answer to a preflight.
const REMEMBERED: HeaderValue = HeaderValue::from_static("600");

const ASKS_FOR_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-request-private-network");
const ALLOWS_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// Answers a request without a body; the status says whether its host and its origin are allowed.
type Judge = dyn Fn(Request) -> BoxFuture<'static, Response> + Send + Sync;

/// Counts a request without a token; returns the refusal of one too many.
type Count = dyn Fn(&Request) -> Option<Response> + Send + Sync;

/// The pages that may use the server.
#[derive(Clone)]
pub(super) struct Pages {
    judge: Arc<Judge>,
    count: Arc<Count>,
}

impl Pages {
    /// Creates the check with the protocol layer as its judge.
    pub(super) fn new(
        judge: impl Fn(Request) -> BoxFuture<'static, Response> + Send + Sync + 'static,
        count: impl Fn(&Request) -> Option<Response> + Send + Sync + 'static,
    ) -> Pages {
        Pages { judge: Arc::new(judge), count: Arc::new(count) }
    }

    /// Returns the refusal of a page whose origin is not allowed: that of a request which differs in its method alone.
    async fn admit(&self, head: Request) -> Result<(), Response> {
        let response = (self.judge)(head).await;
        if response.status() == StatusCode::METHOD_NOT_ALLOWED { Ok(()) } else { Err(response) }
    }
}

/// Returns a request without a body from the same page to the same host.
fn head(request: &Request) -> Request {
    let mut head = Request::new(Body::empty());
    *head.method_mut() = Method::OPTIONS;
    *head.uri_mut() = request.uri().clone();
    for name in [header::HOST, header::ORIGIN] {
        for value in request.headers().get_all(&name) {
            head.headers_mut().append(name.clone(), value.clone());
        }
    }
    head
}

/// Answers the preflight of a browser, which carries no token, and lets an allowed page read the response to its
/// request.
pub(super) async fn share(State(pages): State<Pages>, request: Request, next: Next) -> Response {
    let mut origins = request.headers().get_all(header::ORIGIN).iter();
    let (Some(origin), None) = (origins.next().cloned(), origins.next()) else { return next.run(request).await };
    let head = head(&request);
    let refusal = pages.admit(head).await;
    let is_preflight =
        *request.method() == Method::OPTIONS && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = match (is_preflight, &refusal) {
        (true, _) => match ((pages.count)(&request), refusal) {
            (Some(later), _) => return later,
            (None, Err(refusal)) => return refusal,
            (None, Ok(())) => preflight(request.headers()),
        },
        (false, Err(_)) => return next.run(request).await,
        (false, Ok(())) => next.run(request).await,
    };
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    response
}

/// The answer to the preflight of an allowed page: it may use each method, and the headers that it names.
fn preflight(asked: &HeaderMap) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, REMEMBERED);
    for names in asked.get_all(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.append(header::ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
    }
    // A page of the internet that uses a server on this machine or in this network.
    if asked.contains_key(ASKS_FOR_PRIVATE_NETWORK) {
        headers.insert(ALLOWS_PRIVATE_NETWORK, HeaderValue::from_static("true"));
    }
    response
}
