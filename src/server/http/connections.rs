//! Connections of clients: limits on their number and on the time that each may take.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use futures::StreamExt;
use http::{HeaderValue, StatusCode, header};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;

use super::refusal::{REFUSAL, RetryLater};
use super::slots::{ConnectionSlots, OnConnection, SlotHandle};

/// Maximum number of connections from one address of another machine, unless `HttpOptions::connections_each` is set.
pub const CONNECTIONS_EACH: usize = 100;

/// Maximum time for writing responses once a connection is being closed.
const LAST_ANSWERS: Duration = Duration::from_millis(500);

/// Maximum size of the head of a request, in bytes.
const HEAD: usize = 32 << 10;

/// Maximum time for which a client may leave written data unread.
const UNREAD: Duration = Duration::from_secs(30);

/// Number of connections beyond the limit that still get a response, a refusal or the health of the server; when all of
/// these are taken, an idle one is evicted for a new one. Also the number of evicted connections that may finish their
/// responses.
const RESERVE: usize = 64;

/// The paths that report health to everyone.
const ABOUT_HEALTH: [&str; 2] = ["/healthz", "/readyz"];

/// Pause in accepting connections when the system has no sockets left.
const RESPITE: Duration = Duration::from_millis(100);

/// The peer of a connection: its address, or the /64 network of an IPv6 address.
#[derive(Clone, Copy)]
pub(super) struct Peer(pub(super) IpAddr);

impl Peer {
    fn of(address: IpAddr) -> Peer {
        match address.to_canonical() {
            // An owner of one IPv6 address usually has a whole /64 network of them.
            IpAddr::V6(address) if !address.is_loopback() => {
                let network = Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64));
                Peer(IpAddr::V6(network))
            }
            address => Peer(address),
        }
    }
}

/// Limits on connections.
pub(super) struct Bounds {
    /// Maximum number of concurrent connections.
    pub(super) most: usize,
    /// Maximum number of concurrent connections from one peer. `None` means [`CONNECTIONS_EACH`], and no limit for this
    /// machine.
    pub(super) each: Option<usize>,
    /// Maximum time for the head of a request to arrive, including the wait for its first byte.
    pub(super) arrival: Duration,
}

/// Serves connections until `stop` is cancelled; requests in progress may then finish within [`LAST_ANSWERS`].
pub(super) async fn listen(router: Router, listener: TcpListener, bounds: Bounds, stop: CancellationToken) {
    let (slots, reserve) = (ConnectionSlots::new(bounds.most), ConnectionSlots::new(RESERVE));
    let lingering = Arc::new(Semaphore::new(RESERVE));
    let under_way = UnderWay::new();
    let http = |arrival: Duration| {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(arrival).max_buf_size(HEAD);
        http
    };
    let (usual, hurried) = (http(bounds.arrival), http(REFUSAL.min(bounds.arrival)));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        let (stream, peer) = match accepted {
            Ok((stream, address)) => (stream, Peer::of(address.ip())),
            Err(problem) if is_of_one_connection(&problem) => continue,
            Err(problem) => {
                tracing::warn!(%problem, "no connection can be accepted");
                tokio::time::sleep(RESPITE).await;
                continue;
            }
        };
        let each = bounds.each.unwrap_or(if peer.0.is_loopback() { usize::MAX } else { CONNECTIONS_EACH });
        let (place, refusal) = match slots.take(peer.0, each) {
            Ok(place) => (place, None),
            Err(later) => {
                tracing::debug!(reason = later.message, "a connection was refused");
                let Ok(place) = reserve.take(peer.0, usize::MAX) else { continue };
                (place, Some(later))
            }
        };
        let http = if refusal.is_some() { &hurried } else { &usual };
        let answers = Arc::new(Answers {
            router: router.clone(),
            peer,
            slot: place.slot(),
            refusal,
            evicted: place.evicted.clone(),
            has_begun: AtomicBool::new(false),
        });
        let answering = Arc::clone(&answers);
        let service = service_fn(move |request| Arc::clone(&answering).answer(request));
        let connection = http.serve_connection(TokioIo::new(Box::pin(prepared(stream))), service);
        let (told, lingering) = (under_way.told(), Arc::clone(&lingering));
        tokio::spawn(async move {
            let mut connection = pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = told.ending() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
                () = place.evicted.cancelled() => {
                    // A client that has just connected must get a response before its connection is closed.
                    if answers.has_begun.load(Ordering::Relaxed) {
                        connection.as_mut().graceful_shutdown();
                    }
                    // Connections beyond these are cut off, including data not yet sent.
                    let Ok(_permit) = lingering.try_acquire() else { return };
                    tokio::time::timeout(REFUSAL, connection).await.unwrap_or(Ok(()))
                }
            };
            if let Err(problem) = ended {
                tracing::debug!(%problem, "a connection ended");
            }
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(LAST_ANSWERS, under_way.shutdown()).await;
}

/// The connections being served, which can be signalled to end.
struct UnderWay(watch::Sender<bool>);

/// Signals a connection when to end; the server waits until this is dropped.
struct Told(watch::Receiver<bool>);

impl UnderWay {
    fn new() -> UnderWay {
        UnderWay(watch::Sender::new(false))
    }

    fn told(&self) -> Told {
        Told(self.0.subscribe())
    }

    /// Signals all connections to end once their requests are answered, and waits until they have ended.
    async fn shutdown(self) {
        self.0.send_replace(true);
        self.0.closed().await;
    }
}

impl Told {
    async fn ending(&self) {
        // The sender lives until all receivers are dropped.
        let _ = self.0.clone().wait_for(|is_ending| *is_ending).await;
    }
}

/// Answers the requests of one connection.
struct Answers {
    router: Router,
    peer: Peer,
    slot: SlotHandle,
    /// The refusal of a connection beyond a limit; only health requests are then answered.
    refusal: Option<RetryLater>,
    /// Cancelled when the connection is evicted; its later requests are refused.
    evicted: CancellationToken,
    /// True once the first request has arrived.
    has_begun: AtomicBool,
}

impl Answers {
    async fn answer(self: Arc<Self>, mut request: hyper::Request<Incoming>) -> Result<Response, Infallible> {
        self.has_begun.store(true, Ordering::Relaxed);
        let path = request.uri().path();
        let evicted = self.evicted.is_cancelled().then(|| {
            let reason = "this connection was closed for a newer one, since a limit is reached (`serve \
                          --connections`, `--connections-each`)";
            RetryLater::in_a_moment(StatusCode::SERVICE_UNAVAILABLE, reason)
        });
        let refusal = self.refusal.as_ref().or(evicted.as_ref());
        let (mut response, open) = match refusal {
            // Not counted as an open request: a client that sends no message must not block a slot needed for health
            // requests.
            Some(later) if !ABOUT_HEALTH.contains(&path) => {
                (later.response_to(Body::new(request.into_body())).await, None)
            }
            _ => {
                let open = self.slot.begin();
                request.extensions_mut().insert(self.peer);
                request.extensions_mut().insert(self.slot.clone());
                (TowerToHyperService::new(self.router.clone()).call(request).await?, Some(open))
            }
        };
        let is_refused = [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE].contains(&response.status());
        if refusal.is_some() || is_refused {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(held(response, open))
    }
}

/// Returns a response that keeps `held` until a body of unknown size has ended; a body of known size is already
/// complete.
fn held(response: Response, held: Option<OnConnection>) -> Response {
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    let (parts, body) = response.into_parts();
    let chunks = body.into_data_stream().map(move |chunk| {
        let _held = &held;
        chunk
    });
    Response::from_parts(parts, Body::from_stream(chunks))
}

/// Configures a connection: responses are written without delay, and only to a client that reads them.
fn prepared(stream: TcpStream) -> TimeoutStream<TcpStream> {
    // Responses are written in several pieces, and none must wait for the client to acknowledge the previous one.
    let _ = stream.set_nodelay(true);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(UNREAD));
    stream
}

/// True if the error concerns one connection only, so that the next can be accepted at once.
fn is_of_one_connection(problem: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(problem.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn answers_are_written_at_once_and_not_for_ever() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let _client = TcpStream::connect(listener.local_addr().expect("it listens")).await.expect("it is accepted");
        let (accepted, _) = listener.accept().await.expect("a connection");
        let stream = prepared(accepted);
        // Otherwise one call in eight takes 40 ms, the delayed acknowledgement of the client.
        assert!(stream.get_ref().nodelay().expect("a socket"));
        assert_eq!(stream.write_timeout(), Some(UNREAD));
    }

    #[test]
    fn a_peer_is_an_address_or_a_network() {
        let peer = |text: &str| Peer::of(text.parse().expect("an address")).0.to_string();
        assert_eq!(peer("192.0.2.7"), "192.0.2.7");
        assert_eq!(peer("::ffff:192.0.2.7"), "192.0.2.7");
        assert_eq!(peer("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(peer("::1"), "::1");
    }
}
