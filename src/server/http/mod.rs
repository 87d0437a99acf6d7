//! The server over HTTP: MCP at `/mcp` for every protocol revision, health at `/healthz` and `/readyz`, metrics at
//! `/metrics`, and a page for operators at `/approvals`.
//!
//! rmcp implements the protocol. Requests are checked before they reach it ([`intake`]): the caller is authenticated by a
//! bearer token, and a message must be decodable at bounded cost. Most calls of tools need nothing of rmcp but its types
//! and are answered past it ([`direct`]). TLS is left to a reverse proxy.

mod accepted;
mod approvals;
mod batches;
mod connections;
mod direct;
mod heads;
mod intake;
mod local_page;
mod pages;
mod principals;
mod protocol_sessions;
mod rates;
mod readiness;
mod refusal;
mod scrape;
mod shares;
mod slots;
mod tokens;

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::future::BoxFuture;
use http::StatusCode;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::lang::Sandbox;
use crate::server::admission::shutdown::{Shutdown, Stop};
use crate::server::protocol::front::Front;
use crate::server::serve::signals::until_told_to_end;
use crate::server::serve::{Assembled, ServeOptions, assemble};
use crate::server::transport::lines::LARGEST_LINE;

use approvals::{Approvals, Site};
use direct::DirectCalls;
use intake::{Intake, count, take_in};
use pages::{Pages, share};
use protocol_sessions::ProtocolSessions;
use readiness::Readiness;
use tokens::Directory;

pub use connections::CONNECTIONS_EACH;
pub use local_page::serve_approvals;
pub use principals::Principals;
pub(in crate::server) use scrape::serve_metrics;

/// Options of the HTTP server: its addresses, principals and limits.
#[derive(Clone)]
pub struct HttpOptions {
    /// The address to bind; port 0 selects a free port.
    pub address: SocketAddr,
    /// Further addresses of the same host name, for a system that lacks the first. Each of them must pass
    /// [`HttpOptions::objection`].
    pub alternatives: Vec<SocketAddr>,
    /// The principals that may use the server; if empty, everyone who reaches the address may.
    pub principals: Principals,
    /// The operators, who decide at `/approvals` on calls that need approval; if empty, there is no such page. Their
    /// tokens are not those of principals. They need [`StorageOptions::store`](crate::server::StorageOptions::store).
    pub operators: Principals,
    /// Accepted `Host` names, in addition to those of this machine.
    pub hosts: Vec<String>,
    /// Allowed origins of web pages, such as `https://app.example.com:443`. Other origins are rejected, except those of
    /// the address itself if it is a loopback address.
    pub origins: Vec<String>,
    /// Serves without tokens even at an address that other machines can reach.
    pub open: bool,
    /// Maximum number of concurrent connections; further ones are refused.
    pub connections: usize,
    /// Maximum number of connections from one address (for IPv6: from one /64 network). `None` means
    /// [`CONNECTIONS_EACH`] for other machines and no limit for this one, where a proxy may forward for many clients.
    pub connections_each: Option<usize>,
    /// Maximum number of requests per minute from one address without a known token. `None` means
    /// [`REQUESTS_PER_MINUTE`] for other machines and no limit for this one.
    pub requests_per_minute: Option<NonZeroU32>,
    /// Maximum time for the head of a request to arrive, counted from when the connection is free for it; then also for
    /// its body.
    pub arrival: Duration,
}

/// Maximum number of requests per minute from one address of another machine, unless
/// [`HttpOptions::requests_per_minute`] is set.
pub const REQUESTS_PER_MINUTE: NonZeroU32 = NonZeroU32::new(1_200).expect("it is not 0");

impl HttpOptions {
    /// Creates default options for an address, with no principals.
    pub fn new(address: SocketAddr) -> HttpOptions {
        HttpOptions {
            address,
            alternatives: Vec::new(),
            principals: Principals::default(),
            operators: Principals::default(),
            hosts: Vec::new(),
            origins: Vec::new(),
            open: false,
            connections: 500,
            connections_each: None,
            requests_per_minute: None,
            arrival: Duration::from_secs(30),
        }
    }

    /// Returns the limits on connections.
    fn bounds(&self) -> connections::Bounds {
        connections::Bounds { most: self.connections, each: self.connections_each, arrival: self.arrival }
    }

    fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        std::iter::once(self.address).chain(self.alternatives.iter().copied())
    }

    /// Returns why the server must not be started with these options, or `None` if it may.
    pub fn objection(&self) -> Option<String> {
        if let Some(objection) = self.operators.objection_to_operators(&self.principals) {
            return Some(objection);
        }
        let reachable = self.addresses().find(|address| !address.ip().is_loopback())?;
        (self.principals.is_empty() && !self.open).then(|| {
            format!(
                "{reachable} can be reached from other machines, so it needs tokens: `--tokens FILE`, or \
                 LISPBOX_TOKEN; `--without-tokens` serves everyone who can reach it"
            )
        })
    }
}

/// Serves over HTTP until a termination signal (SIGTERM, SIGINT, SIGHUP). Admitted requests are answered first, within
/// [`ServeOptions::grace`]; a second signal ends that at once. `listening` is called with the bound address.
///
/// # Errors
/// Returns an error if the address cannot be bound, or must not be served without tokens.
pub fn serve_http(
    sandbox: Arc<dyn Sandbox>,
    options: ServeOptions,
    http: HttpOptions,
    listening: impl FnOnce(SocketAddr),
) -> io::Result<()> {
    if let Some(objection) = http.objection() {
        return Err(io::Error::other(objection));
    }
    if !http.operators.is_empty() && options.storage.store.is_none() {
        return Err(io::Error::other("the operators decide on programs in a store, and there is none"));
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

/// Reason why an address cannot be bound, with a remedy.
const IN_USE: &str = "in use by another process; end it or choose another port";

/// Binds the first of the addresses that this system has.
///
/// # Errors
/// Returns an error that names the address if it is in use or binding it is not permitted.
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
        // Trying another address of the same name does not help if the port is taken or forbidden.
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
    let store = options.storage.store.clone();
    let Assembled { evaluations, settings, downstreams } = assemble(sandbox, options, Arc::clone(&allowances));
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
    let direct = Arc::new(DirectCalls::new(move || Front::over_http(Arc::clone(&evaluations), Arc::clone(&settings))));
    let bounds = http.bounds();
    let directory = Arc::new(Directory::new(http.principals.clone(), Arc::clone(&allowances)));
    let sessions = Arc::<ProtocolSessions>::default();
    let watching = {
        let (directory, sessions, over) = (Arc::clone(&directory), Arc::clone(&sessions), shutdown.over().clone());
        async move { directory.watch(&sessions, |stale| counted.metrics().tokens_stale(stale), over).await }
    };
    tokio::spawn(watching);
    let approvals = match store.filter(|_| !http.operators.is_empty()) {
        Some(store) => {
            let operators = Arc::new(Directory::new(http.operators.clone(), Arc::default()));
            let (watched, over) = (Arc::clone(&operators), shutdown.over().clone());
            tokio::spawn(async move { watched.watch(&ProtocolSessions::default(), |_| {}, over).await });
            let site = Site { hosts: http.hosts.clone(), origins: http.origins.clone(), arrival: http.arrival };
            Approvals::new(store, operators, Arc::clone(&directory), site, Arc::clone(&shutdown)).route()
        }
        None => Router::new(),
    };
    let intake = Intake::new(&http, directory, sessions, allowances, largest, Arc::clone(&shutdown));
    let intake = Arc::new(intake.with_direct(Arc::clone(&direct)));
    // Event streams and the connections themselves end once all requests have been answered.
    let answered = CancellationToken::new();
    let ready = (readiness, is_stopping);
    let router = router(
        move || direct.front(),
        ready,
        (metrics, approvals),
        http,
        intake,
        listener.local_addr()?,
        answered.clone(),
    );
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

/// Serves a custom MCP handler as [`serve_http`] serves the built-in one, until `stop` is cancelled.
///
/// Public for `tests/conformance`: MCP's conformance suite expects tools, resources and prompts that lispbox does not
/// have, but is still used to test this server's transport.
///
/// # Errors
/// Returns an error if the listener has no local address.
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
    let router =
        router(handler, ready, (Router::new(), Router::new()), http, intake, listener.local_addr()?, ending.clone());
    connections::listen(router, listener, bounds, stop).await;
    ending.cancel();
    Ok(())
}

/// Builds the routes: MCP, served by the handlers until `ending` is cancelled, health, metrics and approvals. `ready` reports
/// what is wrong and whether the server is stopping; `address` is the bound address.
fn router<Handler: ServerHandler>(
    handler: impl Fn() -> Handler + Send + Sync + 'static,
    ready: (Readiness, impl Fn() -> bool + Send + Sync + 'static),
    (metrics, approvals): (Router, Router),
    http: HttpOptions,
    intake: Arc<Intake>,
    address: SocketAddr,
    ending: CancellationToken,
) -> Router {
    // Only a process on this machine could serve a page from a loopback address, and it can reach the server directly
    // anyway.
    let own = match address.ip().is_loopback() {
        true => vec![format!("http://{address}"), format!("http://localhost:{}", address.port())],
        false => Vec::new(),
    };
    let mut config = StreamableHttpServerConfig::default()
        .with_cancellation_token(ending)
        .with_max_request_body_bytes(intake.largest())
        // A reply that nothing precedes is no stream.
        .with_json_response(true)
        .with_allowed_origins(http.origins.into_iter().chain(own))
        .enforce_origin_validation();
    config.allowed_hosts.extend(http.hosts);
    let service = StreamableHttpService::new(move || Ok(handler()), intake.sessions(), config);
    let (judge, counting) = (service.clone(), Arc::clone(&intake));
    let judge = move |request: Request| -> BoxFuture<'static, Response> {
        let judge = judge.clone();
        Box::pin(async move { judge.handle(request).await.into_response() })
    };
    let pages = Pages::new(judge, move |request| counting.excess(request));
    let ready = Arc::new(ready);
    let ready = move || async move {
        let (readiness, is_stopping) = &*ready;
        let trouble = if is_stopping() { Some("the server is stopping".to_owned()) } else { readiness.trouble().await };
        match trouble {
            None => (StatusCode::OK, "ready\n".to_owned()),
            Some(trouble) => (StatusCode::SERVICE_UNAVAILABLE, format!("{trouble}\n")),
        }
    };
    let counted = Router::new()
        .route("/readyz", get(ready))
        .merge(approvals)
        .layer(from_fn_with_state(Arc::clone(&intake), count));
    Router::new()
        .route_service("/mcp", service.clone())
        .route_service("/mcp/", service)
        .merge(metrics)
        .layer(from_fn_with_state(intake, take_in))
        .layer(from_fn_with_state(pages, share))
        .merge(counted)
        .route("/healthz", get(|| async { "ok\n" }))
        .layer(from_fn(heads::of_one_host))
}
