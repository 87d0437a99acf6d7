//! Connections over which requests come: how many there may be, and how long one may keep us waiting.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;

use super::CONNECTIONS_EACH;
use crate::server::lines::UNREADABLE;

/// How long answers may take to be written once nothing is accepted any more.
const LAST_ANSWERS: Duration = Duration::from_millis(500);

/// The most bytes of the head of a request.
const HEAD: usize = 32 << 10;

/// How long a client may leave what we write unread.
const UNREAD: Duration = Duration::from_secs(30);

/// How many connections are told at once that they are one too many; others are closed without a word.
const REFUSALS: usize = 64;

/// How long telling one may take.
const REFUSAL: Duration = Duration::from_secs(1);

/// How long nothing is accepted when the system has no more sockets.
const RESPITE: Duration = Duration::from_millis(100);

/// Who is at the other end of a connection: an address, or the network of one that has many.
#[derive(Clone, Copy)]
pub(super) struct Peer(pub(super) IpAddr);

impl Peer {
    fn of(address: IpAddr) -> Peer {
        match address.to_canonical() {
            // Whoever has one address of the new kind has as many as fill a network.
            IpAddr::V6(address) if !address.is_loopback() => {
                let network = Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64));
                Peer(IpAddr::V6(network))
            }
            address => Peer(address),
        }
    }
}

/// What connections are held against.
pub(super) struct Bounds {
    /// The most at a time.
    pub(super) most: usize,
    /// The most at a time from one peer; without a number a usual one, that does not hold for this machine.
    pub(super) each: Option<usize>,
    /// How long the head of a request may take to come, the wait for it included.
    pub(super) arrival: Duration,
}

/// The connections that are open, by their peers.
type Open = Arc<Mutex<HashMap<IpAddr, usize>>>;

/// The place of a connection among those that are open, given back when it is dropped.
struct Place {
    open: Open,
    peer: IpAddr,
}

impl Place {
    /// A place for one more connection.
    ///
    /// # Errors
    /// The status and the reason why there is none.
    fn take(open: &Open, peer: IpAddr, bounds: &Bounds) -> Result<Place, (&'static str, String)> {
        let mut counts = lock(open);
        let (own, all) = (counts.get(&peer).copied().unwrap_or(0), counts.values().sum::<usize>());
        let usual = if peer.is_loopback() { usize::MAX } else { CONNECTIONS_EACH };
        if own >= bounds.each.unwrap_or(usual) {
            let reason =
                format!("{peer} has {own} connections open, the most from one address (`serve --connections-each`)");
            return Err(("429 Too Many Requests", reason));
        }
        if all >= bounds.most {
            let reason = format!("{all} connections are open, the most that this server takes (`serve --connections`)");
            return Err(("503 Service Unavailable", reason));
        }
        counts.insert(peer, own + 1);
        Ok(Place { open: Arc::clone(open), peer })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = lock(&self.open);
        match counts.get_mut(&self.peer) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(counts.remove(&self.peer)),
        }
    }
}

fn lock(open: &Open) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers until `stop` is cancelled; what is under way then may end within [`LAST_ANSWERS`].
pub(super) async fn listen(router: Router, listener: TcpListener, bounds: Bounds, stop: CancellationToken) {
    let (open, refusals) = (Open::default(), Arc::new(Semaphore::new(REFUSALS)));
    let under_way = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(bounds.arrival).max_buf_size(HEAD);
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
        let place = match Place::take(&open, peer.0, &bounds) {
            Ok(place) => place,
            Err((status, reason)) => {
                tracing::debug!(reason, "a connection was refused");
                if let Ok(permit) = Arc::clone(&refusals).try_acquire_owned() {
                    tokio::spawn(async move {
                        let _permit = permit;
                        let _ = tokio::time::timeout(REFUSAL, refuse(stream, status, &reason)).await;
                    });
                }
                continue;
            }
        };
        let answers = TowerToHyperService::new(router.clone());
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(peer);
            answers.call(request)
        });
        let connection = under_way.watch(http.serve_connection(TokioIo::new(Box::pin(prepared(stream))), service));
        tokio::spawn(async move {
            let _place = place;
            if let Err(problem) = connection.await {
                tracing::debug!(%problem, "a connection ended");
            }
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(LAST_ANSWERS, under_way.shutdown()).await;
}

/// A connection as answers are written to it: at once, and to somebody who reads them.
fn prepared(stream: TcpStream) -> TimeoutStream<TcpStream> {
    // An answer is written in pieces, of which none is to wait for the client to confirm the one before.
    let _ = stream.set_nodelay(true);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(UNREAD));
    stream
}

/// True where another connection may be accepted at once.
fn is_of_one_connection(problem: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(problem.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

/// Says that a connection is one too many, whatever was asked.
async fn refuse(mut stream: TcpStream, status: &str, reason: &str) -> io::Result<()> {
    let body = super::refusal::error(UNREADABLE, None, &format!("{reason}; try again in a moment"));
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nRetry-After: 1\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await?;
    stream.shutdown().await?;
    // What was sent and is not read would take the answer away from the client.
    let mut rest = [0; 4096];
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
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
        // Otherwise one call in eight takes the 40 ms after which a client confirms what it was sent.
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
