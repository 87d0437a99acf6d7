//! What a connection owes its peer: requests that have no reply yet, and what is not written yet.
//!
//! rmcp starts a task for a request as soon as it is read and keeps a reply until it is written, so a
//! peer that writes and never reads would make us grow without end. The transport takes in nothing
//! while too much is owed; what the peer writes then stays in its own pipe.
//!
//! A cancellation that stands behind it waits there too. Reading on and refusing requests on the spot
//! would let it through, but each refusal is one more reply to keep. Instead the evaluations that are
//! admitted are fewer than the requests that may be owed, and the others are refused as `Busy` at once:
//! a peer that reads its replies never comes to the end of the room, and its cancellations get through.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;
use tokio::sync::Notify;

/// How many requests of a peer may be without a reply, unless something else is configured.
pub(super) const MOST_REQUESTS: usize = 64;
/// Nothing is taken in while replies of this many bytes wait to be written.
const MOST_REPLIES: usize = 8 << 20;
/// What is ours to say (requests to a server behind us) is refused while this much of it waits.
const MOST_SAID: usize = 32 << 20;
/// What a message takes beside its bytes until it is written: its task and its place in lists.
const BESIDE: usize = 1 << 10;

/// The books of one connection.
pub(super) struct Backlog {
    owed: Mutex<Owed>,
    settled: Notify,
    most_requests: usize,
}

#[derive(Default)]
struct Owed {
    requests: HashSet<RequestId>,
    /// Bytes of replies that wait to be written, and of what is ours to say.
    replies: usize,
    said: usize,
}

/// What a message is: a reply that is owed, or something that we begin ourselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Reply,
    Ours,
}

/// A message that waits to be written, until it has been or never will be.
pub(super) struct Unwritten {
    backlog: Arc<Backlog>,
    kind: Kind,
    bytes: usize,
}

impl Backlog {
    /// Books in which at most so many requests are open.
    pub(super) fn new(most_requests: usize) -> Arc<Backlog> {
        Arc::new(Backlog { owed: Mutex::default(), settled: Notify::new(), most_requests })
    }

    fn owed(&self) -> MutexGuard<'_, Owed> {
        self.owed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room for another message. One task waits at a time.
    pub(super) async fn room(&self) {
        while !self.has_room() {
            self.settled.notified().await;
        }
    }

    /// Waits until nothing is owed: all requests are answered, and the replies are written. One task waits at a time.
    pub(super) async fn settled(&self) {
        while !self.is_settled() {
            self.settled.notified().await;
        }
    }

    fn is_settled(&self) -> bool {
        let owed = self.owed();
        owed.requests.is_empty() && owed.replies == 0
    }

    /// True where all requests are answered, and perhaps the replies not written yet.
    pub(super) fn is_answered(&self) -> bool {
        self.owed().requests.is_empty()
    }

    fn has_room(&self) -> bool {
        let owed = self.owed();
        owed.requests.len() < self.most_requests && owed.replies < MOST_REPLIES
    }

    /// Takes down a request; false when one of the same identity is still open.
    pub(super) fn open(&self, id: &RequestId) -> bool {
        self.owed().requests.insert(id.clone())
    }

    /// True for the identity of a request that is open.
    pub(super) fn is_open(&self, id: &RequestId) -> bool {
        self.owed().requests.contains(id)
    }

    /// Strikes a request out: it has its reply, or was withdrawn and gets none.
    pub(super) fn close(&self, id: &RequestId) {
        self.owed().requests.remove(id);
        self.settled.notify_one();
    }

    /// Takes down a message until what this gives is dropped; nothing for a message of ours when the
    /// peer has left too much unread.
    pub(super) fn write(self: &Arc<Self>, kind: Kind, length: usize) -> Option<Unwritten> {
        let bytes = length + BESIDE;
        let mut owed = self.owed();
        match kind {
            Kind::Reply => owed.replies += bytes,
            Kind::Ours if owed.said >= MOST_SAID => return None,
            Kind::Ours => owed.said += bytes,
        }
        Some(Unwritten { backlog: Arc::clone(self), kind, bytes })
    }
}

impl Drop for Unwritten {
    fn drop(&mut self) {
        let mut owed = self.backlog.owed();
        match self.kind {
            Kind::Reply => owed.replies -= self.bytes,
            Kind::Ours => owed.said -= self.bytes,
        }
        drop(owed);
        self.backlog.settled.notify_one();
    }
}
