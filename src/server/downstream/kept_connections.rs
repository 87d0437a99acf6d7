//! Connections to a server over HTTP: a new one for each request, or over TLS those that are kept for the next request.
//!
//! A handshake of TLS takes several round trips. But a request on a connection that the server has just closed is lost,
//! and nobody knows whether it was carried out. So a request that must not be made twice uses a kept connection only
//! once the server has answered on one, and a kept connection is used only while requests follow each other.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hyper_util::client::legacy::connect::HttpInfo;
use reqwest::{Client, RequestBuilder, Response};

/// The time for which a connection is kept. Servers close idle connections after two seconds and more.
pub(super) const KEPT_FOR: Duration = Duration::from_secs(1);

/// The connections to a server.
pub(super) struct Connections {
    /// Opens a connection for each request. Without TLS that costs less than the 40 ms by which some servers delay the
    /// reply on a connection that is used again.
    single: Client,
    kept: Option<KeptConnections>,
}

impl Connections {
    pub(super) fn new(single: Client, kept: Option<Client>) -> Connections {
        Connections { single, kept: kept.map(KeptConnections::new) }
    }

    /// The client that opens a connection for each request.
    pub(super) fn single(&self) -> &Client {
        &self.single
    }

    /// Sends a request, which `request` creates. One that may be made twice is sent again if a kept connection fails.
    ///
    /// # Errors
    /// Returns the reason why there is no response.
    pub(super) async fn send(
        &self,
        may_be_repeated: bool,
        request: impl Fn(&Client) -> RequestBuilder,
    ) -> reqwest::Result<Response> {
        let Some(kept) = self.kept.as_ref().filter(|kept| kept.takes(may_be_repeated)) else {
            return request(&self.single).send().await;
        };
        match request(&kept.client).send().await {
            Ok(response) => {
                kept.answered(&response);
                Ok(response)
            }
            // No part of the request was sent.
            Err(problem) if problem.is_connect() || problem.is_builder() => Err(problem),
            Err(problem) => {
                kept.lost();
                if may_be_repeated { request(&self.single).send().await } else { Err(problem) }
            }
        }
    }
}

/// Connections that are kept, and what is known of the way in which the server treats them.
struct KeptConnections {
    client: Client,
    standing: AtomicU8,
    /// Our address on the connection of the last response.
    last: Mutex<Option<SocketAddr>>,
}

/// No connection has been used twice so far.
const UNTRIED: u8 = 0;
/// The server has answered on a connection that was used before.
const PROVEN: u8 = 1;
/// A request was lost on a connection.
const UNRELIABLE: u8 = 2;

impl KeptConnections {
    fn new(client: Client) -> KeptConnections {
        KeptConnections { client, standing: AtomicU8::new(UNTRIED), last: Mutex::default() }
    }

    fn takes(&self, may_be_repeated: bool) -> bool {
        match self.standing.load(Ordering::Acquire) {
            UNTRIED => may_be_repeated,
            standing => standing == PROVEN,
        }
    }

    fn answered(&self, response: &Response) {
        if self.standing.load(Ordering::Acquire) != UNTRIED {
            return;
        }
        let own = response.extensions().get::<HttpInfo>().map(HttpInfo::local_addr);
        let before = std::mem::replace(&mut *self.last.lock().unwrap_or_else(PoisonError::into_inner), own);
        if own.is_some() && own == before {
            // A connection that has failed meanwhile weighs more.
            let _ = self.standing.compare_exchange(UNTRIED, PROVEN, Ordering::AcqRel, Ordering::Acquire);
        }
    }

    fn lost(&self) {
        self.standing.store(UNRELIABLE, Ordering::Release);
    }
}
