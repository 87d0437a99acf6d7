//! Connections to a server over HTTP: a new one for each request, or over TLS those that are kept for the next request.
//!
//! A TLS handshake takes several round trips. However, a request on a reused connection fails if the server or the network
//! has just closed it, and its outcome is then unknown. A request that must not be repeated therefore reuses a connection
//! only after the server has answered [`PROOF`] requests on one and has lost none, and only within [`KEPT_FOR`] of the
//! previous request.

use std::collections::VecDeque;
use std::error::Error as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{Extensions, StatusCode};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpInfo;
use reqwest::{Client, RequestBuilder, Response};

/// The time for which a connection is kept without a request. Most servers close idle connections after two seconds or
/// more.
pub(super) const KEPT_FOR: Duration = Duration::from_secs(1);

/// The number of responses on one connection that prove that a server keeps connections.
const PROOF: u32 = 3;

/// Maximum number of idle connections that are kept, and of connections whose responses are counted.
pub(super) const MOST_KEPT: usize = 64;

/// The clients for a server.
pub(super) struct Connections {
    /// Opens a connection for each request. Without TLS that costs less than the 40 ms by which some servers delay the
    /// reply on a reused connection.
    single: Client,
    kept: Option<Client>,
    reuse: Arc<Reuse>,
}

impl Connections {
    pub(super) fn new(single: Client, kept: Option<Client>, reuse: Arc<Reuse>) -> Connections {
        Connections { single, kept, reuse }
    }

    /// The client that opens a connection for each request.
    pub(super) fn single(&self) -> &Client {
        &self.single
    }

    /// Sends the request that `build` creates. One that may be repeated is sent again if it was lost on a reused
    /// connection.
    ///
    /// # Errors
    /// Returns the reason why there is no response.
    pub(super) async fn send(
        &self,
        may_be_repeated: bool,
        build: impl Fn(&Client) -> RequestBuilder,
    ) -> reqwest::Result<Response> {
        let Some(kept) = self.kept.as_ref().filter(|_| self.reuse.is_allowed(may_be_repeated)) else {
            return build(&self.single).send().await;
        };
        let outcome = build(kept).send().await;
        let is_lost = match &outcome {
            Ok(response) => self.reuse.answered(response),
            Err(problem) => self.reuse.failed(problem),
        };
        if is_lost && may_be_repeated {
            tracing::warn!("a request was lost on a reused connection and is retried on a new one");
            return build(&self.single).send().await;
        }
        outcome
    }
}

/// Records how a server treats reused connections. It outlives the connections.
#[derive(Default)]
pub(super) struct Reuse(Mutex<Known>);

#[derive(Default)]
struct Known {
    standing: Standing,
    /// Our addresses on the latest connections, the most recent first, with the number of responses on each.
    answered: VecDeque<(SocketAddr, u32)>,
}

#[derive(Clone, Copy, Default)]
enum Standing {
    #[default]
    Untried,
    /// The server has answered repeatedly on one connection.
    Proven,
    /// A request was lost on a reused connection.
    Unreliable,
}

impl Reuse {
    fn is_allowed(&self, may_be_repeated: bool) -> bool {
        match self.known().standing {
            Standing::Untried => may_be_repeated,
            Standing::Proven => true,
            Standing::Unreliable => false,
        }
    }

    /// Notes a response. Returns true for one that a front end sends while it closes an idle connection (RFC 9110,
    /// section 15.5.9), so that the request is lost.
    fn answered(&self, response: &Response) -> bool {
        let Some(address) = response.extensions().get::<HttpInfo>().map(HttpInfo::local_addr) else { return false };
        let mut known = self.known();
        if response.status() == StatusCode::REQUEST_TIMEOUT && known.has_answered(address) {
            known.standing = Standing::Unreliable;
            return true;
        }
        known.answers(address);
        false
    }

    /// Notes a request without a response. Returns true if it was lost on a reused connection.
    fn failed(&self, problem: &reqwest::Error) -> bool {
        let mut extras = Extensions::new();
        let mut cause = problem.source();
        while let Some(inner) = cause {
            if let Some(connected) = inner.downcast_ref::<legacy::Error>().and_then(legacy::Error::connect_info) {
                connected.get_extras(&mut extras);
            }
            cause = inner.source();
        }
        let Some(address) = extras.get::<HttpInfo>().map(HttpInfo::local_addr) else { return false };
        let mut known = self.known();
        let is_lost = known.has_answered(address);
        if is_lost {
            known.standing = Standing::Unreliable;
        }
        is_lost
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn has_answered(&self, address: SocketAddr) -> bool {
        self.answered.iter().any(|(known, _)| *known == address)
    }

    fn answers(&mut self, address: SocketAddr) {
        let at = self.answered.iter().position(|(known, _)| *known == address);
        let before = at.and_then(|at| self.answered.remove(at)).map_or(0, |(_, responses)| responses);
        self.answered.push_front((address, before.saturating_add(1)));
        self.answered.truncate(MOST_KEPT);
        if before + 1 >= PROOF && matches!(self.standing, Standing::Untried) {
            self.standing = Standing::Proven;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_proven_by_several_responses_on_one_connection() {
        let address = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        let reuse = Reuse::default();
        for port in [1, 2, 3, 1, 2, 3] {
            reuse.known().answers(address(port));
            assert!(!reuse.is_allowed(false) && reuse.is_allowed(true), "{port}");
        }
        reuse.known().answers(address(2));
        assert!(reuse.is_allowed(false));
        reuse.known().standing = Standing::Unreliable;
        for _ in 0..PROOF {
            reuse.known().answers(address(2));
        }
        assert!(!reuse.is_allowed(false) && !reuse.is_allowed(true), "it stays unreliable");
    }
}
