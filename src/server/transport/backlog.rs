//! Back-pressure of a connection: the requests that have no reply yet, and the messages that are not written yet.
//!
//! rmcp starts a task for a request as soon as it is read and keeps a reply until it is written, so a peer that writes
//! and never reads would make us grow without bound. The transport accepts nothing while too much is owed; further
//! input of the peer then stays in its own pipe.
//!
//! A cancellation queued after that input waits there too. Reading on and refusing requests immediately would let it
//! through, but each refusal is one more reply to keep. Instead fewer evaluations are admitted than requests may be
//! owed, and the others are refused as `Busy` at once: a peer that reads its replies never exhausts the room, and its
//! cancellations get through.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;
use tokio::sync::Notify;

/// Default maximum number of a peer's requests without a reply.
pub(in crate::server) const MOST_REQUESTS: usize = 64;
/// Threshold of unwritten replies, in bytes, above which nothing is accepted.
const MOST_REPLIES: usize = 8 << 20;
/// Limit of our own unwritten messages (requests to a downstream server), in bytes; further ones are refused.
pub(in crate::server) const MOST_SAID: usize = 32 << 20;
/// The overhead of a message until it is written, in bytes: its task and its list entries.
const BESIDE: usize = 1 << 10;

/// The books of one connection.
pub(in crate::server) struct Backlog {
    owed: Mutex<Owed>,
    settled: Notify,
    most_requests: usize,
}

#[derive(Default)]
struct Owed {
    requests: HashSet<RequestId>,
    /// Bytes of unwritten replies, and of our own unwritten messages.
    replies: usize,
    said: usize,
}

/// The kind of a message: a reply that is owed, or a message of our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum Kind {
    Reply,
    Ours,
}

/// A message that waits to be written; dropped when it was written or never will be.
pub(in crate::server) struct Unwritten {
    backlog: Arc<Backlog>,
    kind: Kind,
    bytes: usize,
}

impl Backlog {
    /// Creates the books of a connection with at most `most_requests` open requests.
    pub(in crate::server) fn new(most_requests: usize) -> Arc<Backlog> {
        Arc::new(Backlog { owed: Mutex::default(), settled: Notify::new(), most_requests })
    }

    fn owed(&self) -> MutexGuard<'_, Owed> {
        self.owed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room for another message. Only one task may wait at a time.
    pub(in crate::server) async fn room(&self) {
        while !self.has_room() {
            self.settled.notified().await;
        }
    }

    /// Waits until nothing is owed: all requests are answered and all replies written. Only one task may wait at a
    /// time.
    pub(in crate::server) async fn settled(&self) {
        while !self.is_settled() {
            self.settled.notified().await;
        }
    }

    fn is_settled(&self) -> bool {
        let owed = self.owed();
        owed.requests.is_empty() && owed.replies == 0
    }

    /// True if all requests are answered, though replies may not be written yet.
    pub(in crate::server) fn is_answered(&self) -> bool {
        self.owed().requests.is_empty()
    }

    fn has_room(&self) -> bool {
        let owed = self.owed();
        owed.requests.len() < self.most_requests && owed.replies < MOST_REPLIES
    }

    /// Records a request; false if one with the same identity is still open.
    pub(in crate::server) fn open(&self, id: &RequestId) -> bool {
        self.owed().requests.insert(id.clone())
    }

    /// True if a request with that identity is open.
    pub(in crate::server) fn is_open(&self, id: &RequestId) -> bool {
        self.owed().requests.contains(id)
    }

    /// Removes a request: it has its reply, or was withdrawn and gets none.
    pub(in crate::server) fn close(&self, id: &RequestId) {
        self.owed().requests.remove(id);
        self.settled.notify_one();
    }

    /// Records a message until the returned value is dropped; `None` for a message of our own if the peer has left too
    /// much unread.
    pub(in crate::server) fn write(self: &Arc<Self>, kind: Kind, length: usize) -> Option<Unwritten> {
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
