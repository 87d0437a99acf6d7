//! Shares of the principals in concurrent requests and event streams.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::StatusCode;
use tokio_util::sync::CancellationToken;

use crate::server::admission::allowances::Allowances;

use super::refusal::RetryLater;

/// The open requests and event streams of the principals.
pub(super) struct Shares {
    /// Maximum number of connections of the server; each open request and each event stream takes one.
    connections: usize,
    /// Maximum number of event streams, which leaves a tenth of the connections to other requests.
    streams: usize,
    allowances: Arc<Allowances>,
    open: Arc<Mutex<Open>>,
}

#[derive(Default)]
struct Open {
    /// The number of open requests of each principal, including event streams.
    requests: HashMap<Arc<str>, usize>,
    /// The event streams of each principal, oldest first.
    streams: HashMap<Arc<str>, VecDeque<(u64, CancellationToken)>>,
    next: u64,
}

/// An open request, whose slot is released on drop.
pub(super) struct OpenRequest {
    open: Arc<Mutex<Open>>,
    principal: Arc<str>,
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let mut open = lock(&self.open);
        if let Some(count) = open.requests.get_mut(&self.principal) {
            *count -= 1;
            if *count == 0 {
                open.requests.remove(&self.principal);
            }
        }
    }
}

/// An open event stream, whose slot is released on drop.
pub(super) struct OpenStream {
    open: Arc<Mutex<Open>>,
    principal: Arc<str>,
    id: u64,
    /// Cancelled when the stream must end to make room for one of another principal.
    pub(super) evicted: CancellationToken,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        lock(&self.open).remove_stream(&self.principal, self.id);
    }
}

fn lock(open: &Mutex<Open>) -> MutexGuard<'_, Open> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Open {
    fn remove_stream(&mut self, principal: &Arc<str>, id: u64) {
        if let Some(own) = self.streams.get_mut(principal) {
            own.retain(|(known, _)| *known != id);
            if own.is_empty() {
                self.streams.remove(principal);
            }
        }
    }
}

impl Shares {
    /// Creates the shares in `connections` connections.
    pub(super) fn new(connections: usize, allowances: Arc<Allowances>) -> Shares {
        let streams = connections.saturating_sub((connections / 10).max(1)).max(1);
        Shares { connections, streams, allowances, open: Arc::default() }
    }

    /// Takes a slot for a request. With several principals, each may have at most half of the connections.
    ///
    /// # Errors
    /// Returns `RetryLater` if the principal has used its share.
    pub(super) fn request(&self, principal: &Arc<str>) -> Result<OpenRequest, RetryLater> {
        let mut open = lock(&self.open);
        let own = open.requests.get(principal).copied().unwrap_or(0);
        let most = (self.connections / 2).max(1);
        if self.allowances.are_of_several() && own >= most {
            let message = format!(
                "{own} requests of `{principal}` are open, event streams included, which is its share: half of the {} \
                 connections of this server (`serve --connections`)",
                self.connections
            );
            return Err(RetryLater::in_a_moment(StatusCode::TOO_MANY_REQUESTS, &message));
        }
        open.requests.insert(Arc::clone(principal), own + 1);
        Ok(OpenRequest { open: Arc::clone(&self.open), principal: Arc::clone(principal) })
    }

    /// Takes a slot for an event stream. If all are taken, evicts the oldest stream of the principal with the most,
    /// provided that this is another principal with at least two more; its client reopens the stream.
    ///
    /// # Errors
    /// Returns `RetryLater` if no stream may be evicted.
    pub(super) fn stream(&self, principal: &Arc<str>) -> Result<OpenStream, RetryLater> {
        let mut open = lock(&self.open);
        let all: usize = open.streams.values().map(VecDeque::len).sum();
        if all >= self.streams {
            let own = open.streams.get(principal).map_or(0, VecDeque::len);
            let most = open.streams.iter().max_by_key(|(_, streams)| streams.len());
            let Some(most) = most.filter(|(_, streams)| streams.len() > own + 1).map(|(name, _)| Arc::clone(name))
            else {
                let message = format!(
                    "{all} event streams are open, the maximum for this server (nine tenths of `serve \
                     --connections`); {own} of them belong to `{principal}`, and no other principal has at least two \
                     more"
                );
                let status = if own > 0 { StatusCode::TOO_MANY_REQUESTS } else { StatusCode::SERVICE_UNAVAILABLE };
                return Err(RetryLater::in_a_moment(status, &message));
            };
            if let Some((_, evicted)) = open.streams.get_mut(&most).and_then(VecDeque::pop_front) {
                evicted.cancel();
            }
        }
        open.next += 1;
        let (id, evicted) = (open.next, CancellationToken::new());
        open.streams.entry(Arc::clone(principal)).or_default().push_back((id, evicted.clone()));
        Ok(OpenStream { open: Arc::clone(&self.open), principal: Arc::clone(principal), id, evicted })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Allowance;

    fn shares(connections: usize, principals: &[&str]) -> Shares {
        let mut allowances = Allowances::default();
        for name in principals {
            allowances.insert(name, Allowance::default());
        }
        Shares::new(connections, Arc::new(allowances))
    }

    #[test]
    fn event_streams_leave_connections_to_requests() {
        let shares = shares(10, &[]);
        let local: Arc<str> = "local".into();
        let streams: Vec<OpenStream> = std::iter::from_fn(|| shares.stream(&local).ok()).collect();
        assert_eq!(streams.len(), 9);
        let later = shares.stream(&local).err().expect("it is one too many");
        assert_eq!(later.status, StatusCode::TOO_MANY_REQUESTS);
        drop(streams);
        assert!(shares.stream(&local).is_ok(), "all places were given back");
    }

    #[test]
    fn a_principal_with_fewer_streams_takes_from_the_one_with_the_most() {
        let shares = shares(10, &["ann", "bob"]);
        let (ann, bob): (Arc<str>, Arc<str>) = ("ann".into(), "bob".into());
        let of_ann: Vec<OpenStream> = std::iter::from_fn(|| shares.stream(&ann).ok()).collect();
        let of_bob: Vec<OpenStream> = std::iter::from_fn(|| shares.stream(&bob).ok()).collect();
        assert_eq!((of_ann.len(), of_bob.len()), (9, 4));
        let ended: Vec<bool> = of_ann.iter().map(|stream| stream.evicted.is_cancelled()).collect();
        assert_eq!(ended, [true, true, true, true, false, false, false, false, false], "the oldest end");
        assert!(of_bob.iter().all(|stream| !stream.evicted.is_cancelled()));
    }

    #[test]
    fn among_several_one_has_half_of_the_connections() {
        let shares = shares(10, &["ann", "bob"]);
        let (ann, bob): (Arc<str>, Arc<str>) = ("ann".into(), "bob".into());
        let of_ann: Vec<OpenRequest> = std::iter::from_fn(|| shares.request(&ann).ok()).collect();
        assert_eq!(of_ann.len(), 5);
        assert!(shares.request(&ann).err().expect("it is one too many").message.contains("5 requests of `ann`"));
        assert!(shares.request(&bob).is_ok());
        drop(of_ann);
        assert!(shares.request(&ann).is_ok(), "all places were given back");
    }
}
