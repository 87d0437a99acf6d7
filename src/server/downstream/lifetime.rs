//! The lifetime of a connection: from its handshake until the server is gone or no further request may begin.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

/// The beginning of a connection, and its end.
pub(super) struct Lifetime {
    begun: Instant,
    /// Cancelled when the server closes its side, or when a call finds the connection broken, with all calls on it.
    ended: CancellationToken,
    /// The time at which that happened.
    ended_at: Arc<OnceLock<Instant>>,
    /// True once a request over HTTP was lost with its connection: the others go on, and no new one begins.
    is_retired: AtomicBool,
}

impl Lifetime {
    /// Creates a lifetime that begins now and ends once `ended` is cancelled.
    pub(super) fn until(ended: CancellationToken) -> Lifetime {
        let ended_at = Arc::<OnceLock<Instant>>::default();
        let (at, end) = (Arc::clone(&ended_at), ended.clone());
        tokio::spawn(async move {
            end.cancelled().await;
            let _ = at.set(Instant::now());
        });
        Lifetime { begun: Instant::now(), ended, ended_at, is_retired: AtomicBool::new(false) }
    }

    /// Returns whether requests may begin.
    pub(super) fn goes_on(&self) -> bool {
        !self.is_retired() && !self.ended.is_cancelled()
    }

    /// True if no further request may begin, but those that are under way go on.
    pub(super) fn is_retired(&self) -> bool {
        self.is_retired.load(Ordering::Acquire) && !self.ended.is_cancelled()
    }

    /// Lets no further request begin.
    pub(super) fn retire(&self) {
        self.is_retired.store(true, Ordering::Release);
    }

    /// Ends all requests.
    pub(super) fn end(&self) {
        self.ended.cancel();
    }

    /// Waits for the end.
    pub(super) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Returns the time of the end, or else the current one.
    pub(super) fn ended_at(&self) -> Instant {
        self.ended_at.get().copied().unwrap_or_else(Instant::now)
    }

    /// Returns the time from the beginning to the end, or else until now.
    pub(super) fn age(&self) -> Duration {
        self.ended_at().saturating_duration_since(self.begun)
    }
}
