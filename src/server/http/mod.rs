//! The server over HTTP: MCP at `/mcp`, on every revision of the protocol, how it is at `/healthz` and `/readyz`, and
//! what it has counted at `/metrics`.
//!
//! rmcp speaks the protocol. What comes in is looked at before that: who asks, by a bearer token, and whether the
//! message is one that can be decoded at no great cost. TLS is the business of a proxy in front.

mod connections;
mod principals;
mod rates;
mod scrape;

pub(super) use principals::LOCAL;
pub use principals::Principals;
pub(super) use scrape::serve_metrics;

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use connections::Peer;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use rates::{Rates, TooOften};
use rmcp::ServerHandler;
use rmcp::model::{ProtocolVersion, RequestId};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::lang::Sandbox;

use super::envelope::Envelope;
use super::lines::{self, LARGEST_LINE};
use super::mcp::Front;
use super::serve::{Assembled, ServeOptions, assemble, until_told_to_end};

/// The most connections of a protocol with sessions of its own, from before 2026-07-28, at a time.
const PROTOCOL_SESSIONS: usize = 1_000;

/// The bytes of messages that are taken in at once, in units of [`UNIT`]; who comes later waits.
const ROOM: usize = 64 << 10;
const UNIT: usize = 1 << 10;

/// A message of more values and keys takes much more while it is decoded than it has bytes, so that few are at once.
const MANY: u64 = 50_000;
const MANY_AT_ONCE: usize = 4;

/// The principal of a request, as its handlers find it.
#[derive(Clone)]
pub(super) struct Principal(pub(super) String);

/// Where and for whom to serve over HTTP.
#[derive(Clone)]
pub struct HttpOptions {
    /// The address; port 0 takes a free one.
    pub address: SocketAddr,
    /// Who may use it; without any, everybody who reaches the address.
    pub principals: Principals,
    /// Names under which it is reached beside those of this machine, as `Host` has them.
    pub hosts: Vec<String>,
    /// Origins of web pages that may use it, such as `https://app.example.com:443`. No other page may, but for those of
    /// the address itself where it is one that only this machine reaches.
    pub origins: Vec<String>,
    /// Serves everybody who reaches an address that other machines reach, without tokens.
    pub open: bool,
    /// The most connections at a time; one more is refused.
    pub connections: usize,
    /// The most from one address (of IPv6: from one network of 64 bits); without a number [`CONNECTIONS_EACH`] from
    /// other machines, and any from this one, where a proxy may stand for many.
    pub connections_each: Option<usize>,
    /// The most requests a minute from one address without a token that is known; without a number
    /// [`REQUESTS_PER_MINUTE`] from other machines, and any from this one.
    pub requests_per_minute: Option<NonZeroU32>,
    /// How long the head of a request may take to come, from when the connection is free for it, and then its message.
    pub arrival: Duration,
}

/// The most connections from one address of another machine, unless [`HttpOptions::connections_each`] is set.
pub const CONNECTIONS_EACH: usize = 100;

/// The most requests a minute from one address of another machine, unless [`HttpOptions::requests_per_minute`] is set.
pub const REQUESTS_PER_MINUTE: NonZeroU32 = NonZeroU32::new(1_200).expect("it is not 0");

impl HttpOptions {
    /// At that address, for this machine alone.
    pub fn new(address: SocketAddr) -> HttpOptions {
        HttpOptions {
            address,
            principals: Principals::default(),
            hosts: Vec::new(),
            origins: Vec::new(),
            open: false,
            connections: 500,
            connections_each: None,
            requests_per_minute: None,
            arrival: Duration::from_secs(30),
        }
    }

    /// What connections are held against.
    fn bounds(&self) -> connections::Bounds {
        connections::Bounds { most: self.connections, each: self.connections_each, arrival: self.arrival }
    }

    /// Why it must not be served like that.
    fn objection(&self) -> Option<String> {
        (!self.address.ip().is_loopback() && self.principals.is_empty() && !self.open).then(|| {
            format!(
                "{} can be reached from other machines, so it needs tokens: `--tokens FILE`, or LISPBOX_TOKEN; `--without-tokens` serves everybody who reaches it",
                self.address
            )
        })
    }
}

/// Serves over HTTP until we are told to end (SIGTERM, SIGINT, SIGHUP). `listening` is told the address.
///
/// # Errors
/// When the address cannot be had, or must not be served without tokens.
pub fn serve_http(
    sandbox: Arc<dyn Sandbox>,
    options: ServeOptions,
    http: HttpOptions,
    listening: impl FnOnce(SocketAddr),
) -> io::Result<()> {
    if let Some(objection) = http.objection() {
        return Err(io::Error::other(objection));
    }
    until_told_to_end(async |stop| {
        let listener = TcpListener::bind(http.address).await?;
        listening(listener.local_addr()?);
        serve(sandbox, options, http, listener, stop).await
    })
}

async fn serve(
    sandbox: Arc<dyn Sandbox>,
    options: ServeOptions,
    http: HttpOptions,
    listener: TcpListener,
    stop: CancellationToken,
) -> io::Result<()> {
    let (largest, metrics_address) = (options.largest_message, options.metrics);
    // Evaluations may end by themselves for a while after nothing more is taken in.
    let ending = CancellationToken::new();
    let Assembled { evaluations, manner, downstreams } =
        assemble(sandbox, options, http.principals.allowances(), ending.clone());
    let trouble = {
        let (evaluations, stop) = (Arc::clone(&evaluations), stop.clone());
        move || evaluations.trouble().or_else(|| stop.is_cancelled().then(|| "the server is stopping".to_owned()))
    };
    let metrics = match metrics_address {
        Some(address) => {
            serve_metrics(address, Arc::clone(&evaluations), stop.clone()).await?;
            Router::new()
        }
        None => scrape::route(Arc::clone(&evaluations), http.hosts.clone()),
    };
    let front = move || Front::over_http(Arc::clone(&evaluations), Arc::clone(&manner));
    let bounds = http.bounds();
    let router = router(front, trouble, metrics, http, listener.local_addr()?, largest, ending.clone());
    tracing::info!(version = env!("CARGO_PKG_VERSION"), servers = downstreams.names().len(), "serving over HTTP");
    connections::listen(router, listener, bounds, stop).await;
    ending.cancel();
    downstreams.close().await;
    tracing::info!("ended");
    Ok(())
}

/// Serves another handler of MCP than our own as [`serve_http`] serves that one, until `stop` is cancelled.
///
/// It is public for `tests/conformance`: MCP's conformance suite expects tools, resources and prompts that lispbox has
/// not, and is to say something about this server nevertheless.
///
/// # Errors
/// When the listener breaks.
#[doc(hidden)]
pub async fn serve_handler<Handler: ServerHandler>(
    handler: impl Fn() -> Handler + Send + Sync + 'static,
    http: HttpOptions,
    listener: TcpListener,
    stop: CancellationToken,
) -> io::Result<()> {
    let ending = CancellationToken::new();
    let bounds = http.bounds();
    let router = router(handler, || None, Router::new(), http, listener.local_addr()?, LARGEST_LINE, ending.clone());
    connections::listen(router, listener, bounds, stop).await;
    ending.cancel();
    Ok(())
}

/// What is answered at which path: MCP by the handlers, until `ending` is cancelled, how the server is, and by `metrics`
/// what it has counted. `trouble` says why it is not ready, `address` is where we listen.
fn router<Handler: ServerHandler>(
    handler: impl Fn() -> Handler + Send + Sync + 'static,
    trouble: impl Fn() -> Option<String> + Clone + Send + Sync + 'static,
    metrics: Router,
    http: HttpOptions,
    address: SocketAddr,
    largest: usize,
    ending: CancellationToken,
) -> Router {
    // Who could have a page there but us is on this machine, and reaches us without one.
    let own = match address.ip().is_loopback() {
        true => vec![format!("http://{address}"), format!("http://localhost:{}", address.port())],
        false => Vec::new(),
    };
    let mut config = StreamableHttpServerConfig::default()
        .with_cancellation_token(ending)
        .with_max_request_body_bytes(largest)
        .with_allowed_origins(http.origins.into_iter().chain(own))
        .enforce_origin_validation();
    config.allowed_hosts.extend(http.hosts);
    let protocol_sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(handler()), Arc::clone(&protocol_sessions), config);
    let rates = Rates::new(&http.principals.allowances(), http.requests_per_minute.unwrap_or(REQUESTS_PER_MINUTE));
    let intake = Arc::new(Intake {
        principals: http.principals,
        rates,
        counts_this_machine: http.requests_per_minute.is_some(),
        protocol_sessions,
        largest,
        arrival: http.arrival,
        room: Semaphore::new(ROOM),
        decoding: Semaphore::new(MANY_AT_ONCE),
    });
    let ready = move || async move {
        match tokio::task::spawn_blocking(trouble).await {
            Ok(None) => (StatusCode::OK, "ready\n".to_owned()),
            Ok(Some(trouble)) => (StatusCode::SERVICE_UNAVAILABLE, format!("{trouble}\n")),
            Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "broken\n".to_owned()),
        }
    };
    Router::new()
        .route_service("/mcp", service)
        .merge(metrics)
        .layer(from_fn_with_state(intake, take_in))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
}

/// What every request is held against.
struct Intake {
    principals: Principals,
    rates: Rates,
    /// True where requests from this machine count like those from others.
    counts_this_machine: bool,
    protocol_sessions: Arc<LocalSessionManager>,
    largest: usize,
    arrival: Duration,
    room: Semaphore,
    decoding: Semaphore,
}

impl Intake {
    /// Whose request it is.
    ///
    /// # Errors
    /// Where it is nobody's, or asks too often.
    fn principal(&self, request: &Request) -> Result<&str, Refusal> {
        let known = bearer(request).and_then(|token| self.principals.find(token));
        match (known, request.extensions().get::<Peer>()) {
            (Some(name), _) => self.rates.of_principal(name)?,
            (None, Some(Peer(address))) if self.counts_this_machine || !address.is_loopback() => {
                self.rates.of_address(*address)?;
            }
            (None, _) => {}
        }
        known.or(self.principals.is_empty().then_some(LOCAL)).ok_or(Refusal::Unknown)
    }

    /// True if a request may begin a session of the protocol for which there is no room.
    async fn is_full(&self, headers: &HeaderMap) -> bool {
        let is_in_one = headers.contains_key("mcp-session-id");
        let version = headers.get("mcp-protocol-version").and_then(|version| version.to_str().ok());
        // Revisions are dates, so they compare as text; the first without sessions is the latest.
        let needs_none = version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28.as_str());
        !is_in_one && !needs_none && self.protocol_sessions.sessions.read().await.len() >= PROTOCOL_SESSIONS
    }
}

/// Why somebody may not ask.
enum Refusal {
    Unknown,
    TooOften(TooOften),
}

impl From<TooOften> for Refusal {
    fn from(too_often: TooOften) -> Refusal {
        Refusal::TooOften(too_often)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        match self {
            Refusal::Unknown => {
                let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
                (StatusCode::UNAUTHORIZED, challenge, "a bearer token that this server knows is needed\n")
                    .into_response()
            }
            Refusal::TooOften(TooOften { message, wait }) => later(StatusCode::TOO_MANY_REQUESTS, &message, wait),
        }
    }
}

/// Passes on a request of somebody who may ask, if it can be decoded.
async fn take_in(State(intake): State<Arc<Intake>>, mut request: Request, next: Next) -> Response {
    let principal = match intake.principal(&request) {
        Ok(principal) => Principal(principal.to_owned()),
        Err(refusal) => return refusal.into_response(),
    };
    request.extensions_mut().insert(principal);
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    if intake.is_full(request.headers()).await {
        let message = format!("{PROTOCOL_SESSIONS} clients of older protocols are connected; try again in a moment");
        return later(StatusCode::SERVICE_UNAVAILABLE, &message, Duration::from_secs(1));
    }
    let (parts, body) = request.into_parts();
    let said = parts.headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    let largest = said.unwrap_or(intake.largest);
    let too_large = || {
        let message = format!("a message may have {} bytes", intake.largest);
        unreadable(StatusCode::PAYLOAD_TOO_LARGE, None, &message)
    };
    if largest > intake.largest {
        return too_large();
    }
    let units = u32::try_from(largest / UNIT + 1).unwrap_or(u32::MAX).min(ROOM as u32);
    let Ok(_room) = tokio::time::timeout(intake.arrival, intake.room.acquire_many(units)).await else {
        let message = "too many messages are coming in; try again in a moment";
        return later(StatusCode::SERVICE_UNAVAILABLE, message, Duration::from_secs(1));
    };
    let bytes = match tokio::time::timeout(intake.arrival, to_bytes(body, intake.largest)).await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(_)) => return too_large(),
        Err(_) => return unreadable(StatusCode::REQUEST_TIMEOUT, None, "the message did not come in time"),
    };
    let envelope = Envelope::of(&bytes);
    if let Some(problem) = lines::problem_of(&envelope) {
        return unreadable(StatusCode::BAD_REQUEST, envelope.id(), &problem.message);
    }
    let _decoding = match envelope.marks() > MANY {
        true => Some(intake.decoding.acquire().await),
        false => None,
    };
    next.run(Request::from_parts(parts, Body::from(bytes))).await
}

/// The token of `Authorization: Bearer …`.
fn bearer(request: &Request) -> Option<&str> {
    let value = request.headers().get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The answer to a message that may be sent again after a while. Clients show its text, as that of an error of the
/// protocol, to whoever called.
fn later(status: StatusCode, message: &str, wait: Duration) -> Response {
    let mut response = unreadable(status, None, message);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(wait.as_secs()));
    response
}

/// The answer to a message that is not decoded.
fn unreadable(status: StatusCode, id: Option<RequestId>, message: &str) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], error(id, message)).into_response()
}

/// An error of the protocol.
fn error(id: Option<RequestId>, message: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": lines::UNREADABLE.0, "message": message}}).to_string()
}
