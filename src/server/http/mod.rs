//! The server over HTTP: MCP at `/mcp`, on every revision of the protocol, how it is at `/healthz` and `/readyz`, and
//! what it has counted at `/metrics`.
//!
//! rmcp speaks the protocol. What comes in is looked at before that: who asks, by a bearer token, and whether the
//! message is one that can be decoded at no great cost. TLS is the business of a proxy in front.

mod batches;
mod connections;
mod heads;
mod intake;
mod places;
mod principals;
mod protocol_sessions;
mod rates;
mod readiness;
mod refusal;
mod scrape;
mod shares;
mod tokens;

pub(super) use intake::taken_in;
pub(super) use principals::LOCAL;
pub use principals::Principals;
pub(super) use scrape::serve_metrics;

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::get;
use http::StatusCode;
use intake::{Intake, count, take_in};
use protocol_sessions::ProtocolSessions;
use readiness::Readiness;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokens::Directory;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::lang::Sandbox;

use super::lines::LARGEST_LINE;
use super::mcp::Front;
use super::serve::{Assembled, ServeOptions, assemble, until_told_to_end};
use super::shutdown::{Shutdown, Stop};

/// The principal of a request, as its handlers find it.
#[derive(Clone)]
pub(super) struct Principal(pub(super) String);

/// Where and for whom to serve over HTTP.
#[derive(Clone)]
pub struct HttpOptions {
    /// The address; port 0 takes a free one.
    pub address: SocketAddr,
    /// Further addresses of the same name, for a system that does not have the first. Each has to be one that may be
    /// served.
    pub alternatives: Vec<SocketAddr>,
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
            alternatives: Vec::new(),
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

    fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        std::iter::once(self.address).chain(self.alternatives.iter().copied())
    }

    /// Why it must not be served like that, if it must not.
    pub fn objection(&self) -> Option<String> {
        let reachable = self.addresses().find(|address| !address.ip().is_loopback())?;
        (self.principals.is_empty() && !self.open).then(|| {
            format!(
                "{reachable} can be reached from other machines, so it needs tokens: `--tokens FILE`, or LISPBOX_TOKEN; `--without-tokens` serves everybody who reaches it"
            )
        })
    }
}

/// Serves over HTTP until we are told to end (SIGTERM, SIGINT, SIGHUP). Requests that were taken in are answered before,
/// within [`ServeOptions::grace`]; a second signal ends that at once. `listening` is told the address.
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
        let listener = bind(http.addresses()).await?;
        let metrics = match options.metrics {
            Some(address) => Some(scrape::bind(address).await?),
            None => None,
        };
        listening(listener.local_addr()?);
        serve(sandbox, options, http, (listener, metrics), stop).await
    })
}

/// Why an address cannot be listened at, and the way out.
const IN_USE: &str = "in use by another process; end it or choose another port";

/// Listens at the first of these addresses that this system has.
///
/// # Errors
/// With the address, when it is in use or may not be listened at.
async fn bind(addresses: impl Iterator<Item = SocketAddr>) -> io::Result<TcpListener> {
    let mut last = io::Error::other("there is no address to listen at");
    for address in addresses {
        let problem = match TcpListener::bind(address).await {
            Ok(listener) => return Ok(listener),
            Err(problem) => problem,
        };
        let message = match problem.kind() {
            io::ErrorKind::AddrInUse => format!("{address} is {IN_USE}"),
            _ => format!("cannot listen at {address}: {problem}"),
        };
        last = io::Error::new(problem.kind(), message);
        // Another address of the same name is no way round a port that is taken or forbidden.
        if matches!(problem.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied) {
            break;
        }
    }
    Err(last)
}

async fn serve(
    sandbox: Arc<dyn Sandbox>,
    options: ServeOptions,
    http: HttpOptions,
    (listener, metrics_listener): (TcpListener, Option<TcpListener>),
    stop: Stop,
) -> io::Result<()> {
    let largest = options.largest_message;
    let allowances = http.principals.allowances();
    let Assembled { evaluations, manner, downstreams } = assemble(sandbox, options, Arc::clone(&allowances));
    let shutdown = Arc::clone(evaluations.shutdown());
    let stopping = Arc::clone(&shutdown);
    let is_stopping = move || stopping.is_closing();
    let asked = Arc::clone(&evaluations);
    let readiness = Readiness::new(move || asked.trouble());
    let metrics = match metrics_listener {
        Some(listener) => {
            scrape::serve_metrics_at(listener, Arc::clone(&evaluations), shutdown.over().clone())?;
            Router::new()
        }
        None => scrape::route(Arc::clone(&evaluations), http.hosts.clone()),
    };
    let counted = Arc::clone(&downstreams);
    let front = move || Front::over_http(Arc::clone(&evaluations), Arc::clone(&manner));
    let bounds = http.bounds();
    let directory = Arc::new(Directory::new(http.principals.clone(), Arc::clone(&allowances)));
    let sessions = Arc::<ProtocolSessions>::default();
    let watching = {
        let (directory, sessions, over) = (Arc::clone(&directory), Arc::clone(&sessions), shutdown.over().clone());
        async move { directory.watch(&sessions, |stale| counted.metrics().tokens_stale(stale), over).await }
    };
    tokio::spawn(watching);
    let intake = Arc::new(Intake::new(&http, directory, sessions, allowances, largest, Arc::clone(&shutdown)));
    // Streams of events and the connections themselves end when all requests have been answered.
    let answered = CancellationToken::new();
    let ready = (readiness, is_stopping);
    let router = router(front, ready, metrics, http, intake, listener.local_addr()?, answered.clone());
    tracing::info!(version = env!("CARGO_PKG_VERSION"), servers = downstreams.names().len(), "serving over HTTP");
    let ending = async {
        stop.told.cancelled().await;
        shutdown.run(std::future::pending(), &stop.at_once).await;
        answered.cancel();
    };
    tokio::join!(connections::listen(router, listener, bounds, answered.clone()), ending);
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
    let allowances = http.principals.allowances();
    let directory = Arc::new(Directory::new(http.principals.clone(), Arc::clone(&allowances)));
    let shutdown = Shutdown::new(Duration::from_secs(1));
    let intake = Arc::new(Intake::new(&http, directory, Arc::default(), allowances, LARGEST_LINE, shutdown));
    let ready = (Readiness::new(|| None), || false);
    let router = router(handler, ready, Router::new(), http, intake, listener.local_addr()?, ending.clone());
    connections::listen(router, listener, bounds, stop).await;
    ending.cancel();
    Ok(())
}

/// What is answered at which path: MCP by the handlers, until `ending` is cancelled, how the server is, and by `metrics`
/// what it has counted. `ready` says what is wrong and whether the server is stopping, `address` is where we listen.
fn router<Handler: ServerHandler>(
    handler: impl Fn() -> Handler + Send + Sync + 'static,
    ready: (Readiness, impl Fn() -> bool + Send + Sync + 'static),
    metrics: Router,
    http: HttpOptions,
    intake: Arc<Intake>,
    address: SocketAddr,
    ending: CancellationToken,
) -> Router {
    // Who could have a page there but us is on this machine, and reaches us without one.
    let own = match address.ip().is_loopback() {
        true => vec![format!("http://{address}"), format!("http://localhost:{}", address.port())],
        false => Vec::new(),
    };
    let mut config = StreamableHttpServerConfig::default()
        .with_cancellation_token(ending)
        .with_max_request_body_bytes(intake.largest())
        .with_allowed_origins(http.origins.into_iter().chain(own))
        .enforce_origin_validation();
    config.allowed_hosts.extend(http.hosts);
    let service = StreamableHttpService::new(move || Ok(handler()), intake.sessions(), config);
    let ready = Arc::new(ready);
    let ready = move || async move {
        let (readiness, is_stopping) = &*ready;
        let trouble = if is_stopping() { Some("the server is stopping".to_owned()) } else { readiness.trouble().await };
        match trouble {
            None => (StatusCode::OK, "ready\n".to_owned()),
            Some(trouble) => (StatusCode::SERVICE_UNAVAILABLE, format!("{trouble}\n")),
        }
    };
    let counted = Router::new().route("/readyz", get(ready)).layer(from_fn_with_state(Arc::clone(&intake), count));
    Router::new()
        .route_service("/mcp", service)
        .merge(metrics)
        .layer(from_fn_with_state(intake, take_in))
        .merge(counted)
        .route("/healthz", get(|| async { "ok\n" }))
        .layer(from_fn(heads::of_one_host))
}
