//! Shutdown in three steps: no further request is accepted, evaluations are cancelled, and finally requests are
//! answered without waiting for their evaluations.
//!
//! An accepted request is [under way](UnderWay) until its reply has been handed on and its record is written. The
//! server ends when no request is under way, or when the time of the last step has elapsed.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::lang::internal::time;
use crate::lang::{Reply, Status};

use super::request::Refused;

/// Time limit for cancelled evaluations to end and their sessions to be written.
const SAVING: Duration = Duration::from_millis(1_500);

/// Time limit for the last replies.
const REPLIES: Duration = Duration::from_millis(500);

/// The tokens that trigger shutdown.
#[derive(Clone, Default)]
pub(in crate::server) struct Stop {
    /// Cancelled when the server is to shut down.
    pub(in crate::server) told: CancellationToken,
    /// Cancelled when it is to shut down at once.
    pub(in crate::server) at_once: CancellationToken,
}

/// The state of a server's shutdown, with the requests that it has to answer first.
pub(in crate::server) struct Shutdown {
    grace: Duration,
    closing: CancellationToken,
    cancelling: CancellationToken,
    over: CancellationToken,
    under_way: watch::Sender<usize>,
}

/// A request under way, until this is dropped.
pub(in crate::server) struct UnderWay(Arc<Shutdown>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.send_modify(|count| *count -= 1);
    }
}

impl Shutdown {
    /// Creates the state for a server that lets evaluations continue for `grace`.
    pub(in crate::server) fn new(grace: Duration) -> Arc<Shutdown> {
        Arc::new(Shutdown {
            grace,
            closing: CancellationToken::new(),
            cancelling: CancellationToken::new(),
            over: CancellationToken::new(),
            under_way: watch::Sender::new(0),
        })
    }

    /// Registers a request as under way.
    pub(in crate::server) fn enter(self: &Arc<Self>) -> UnderWay {
        self.under_way.send_modify(|count| *count += 1);
        UnderWay(Arc::clone(self))
    }

    /// Accepts a request, unless the server is shutting down.
    pub(in crate::server) fn admit(self: &Arc<Self>) -> Option<UnderWay> {
        // Counted before the check, so that the server does not end between the two.
        let under_way = self.enter();
        (!self.is_closing()).then_some(under_way)
    }

    /// True from the first step on.
    pub(in crate::server) fn is_closing(&self) -> bool {
        self.closing.is_cancelled()
    }

    /// Waits for the first step.
    pub(in crate::server) async fn closing(&self) {
        self.closing.cancelled().await;
    }

    /// The token that is cancelled in the second step.
    pub(in crate::server) fn cancelling(&self) -> &CancellationToken {
        &self.cancelling
    }

    /// The token that is cancelled in the third step, which every shutdown reaches.
    pub(in crate::server) fn over(&self) -> &CancellationToken {
        &self.over
    }

    /// Shuts down: returns when no request is under way or the time has run out. `hurry` ends the grace period.
    pub(in crate::server) async fn run(&self, hurry: impl Future<Output = ()>, at_once: &CancellationToken) {
        self.closing.cancel();
        tokio::select! {
            () = self.idle() => {}
            () = tokio::time::sleep(self.grace) => tracing::info!("evaluations that are still running are cancelled"),
            () = hurry => {}
            () = at_once.cancelled() => {}
        }
        self.cancelling.cancel();
        tokio::select! {
            () = self.idle() => {}
            () = tokio::time::sleep(SAVING) => tracing::warn!("the server exits before all evaluations have ended"),
            () = at_once.cancelled() => {}
        }
        self.over.cancel();
        if tokio::time::timeout(REPLIES, self.idle()).await.is_err() {
            tracing::warn!("the server exits before all replies have been read");
        }
    }

    /// Waits until no request is under way.
    async fn idle(&self) {
        let mut under_way = self.under_way.subscribe();
        // The sender lives as long as `self`.
        let _ = under_way.wait_for(|count| *count == 0).await;
    }

    /// The refusal of a program whose turn did not come in time.
    pub(in crate::server) fn too_late(&self) -> Refused {
        Refused::new(
            "Cancelled",
            format!("{}; nothing was evaluated", self.came_before("this program was not started")),
        )
    }

    /// The refusal of a request whose evaluation is no longer waited for.
    pub(in crate::server) fn given_up(&self) -> Refused {
        let message = format!(
            "{}; it may have run to completion, and its definitions may or may not have been kept",
            self.came_before("this program did not end in time")
        );
        Refused::new("Cancelled", message)
    }

    fn came_before(&self, what: &str) -> String {
        format!("the server is shutting down, and {what}")
    }

    /// Explains, in the reply of a program that the second step cancelled, the reason and what was kept. `is_stored` is
    /// true if its session is kept in a store.
    pub(in crate::server) fn explain(&self, reply: &mut Reply, is_stored: bool) {
        let Some(failure) = reply.failure.as_mut().filter(|failure| failure.error == "Cancelled") else { return };
        if reply.status != Status::Cancelled || !self.cancelling.is_cancelled() {
            return;
        }
        let kept = match (reply.defined.is_empty(), is_stored) {
            (true, true) => "it had defined nothing, and its session is unchanged",
            (false, true) => "the definitions of its earlier expressions are kept in its session",
            (_, false) => "its session ends with the server, which has no store",
        };
        let grace = time(self.grace);
        let message = format!(
            "the evaluation was cancelled: the server is shutting down and lets programs run for at most {grace} \
             (`serve --grace`); {kept}"
        );
        failure.rendered = failure.rendered.replacen(&failure.message, &message, 1);
        failure.message = message;
    }
}

/// The message to a request that arrives during shutdown.
pub(in crate::server) const SHUTTING_DOWN: &str =
    "the server is shutting down and accepts no further requests; nothing was done";

/// The note on a reply that is sent while a server without a store is shutting down.
pub(in crate::server) const SESSION_ENDS: &str =
    "[the server is shutting down and has no store: the session ends with it]";

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    use futures::FutureExt;

    const SHORT: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn the_end_waits_for_what_is_under_way_and_no_longer_than_it_may() {
        let shutdown = Shutdown::new(SHORT);
        let request = shutdown.admit().expect("it is not shutting down");
        let begun = Instant::now();
        shutdown.run(std::future::pending(), &CancellationToken::new()).await;
        assert!(begun.elapsed() >= SHORT + SAVING + REPLIES);
        assert!(shutdown.admit().is_none() && shutdown.over().is_cancelled());
        drop(request);
        assert!(shutdown.idle().now_or_never().is_some(), "one that was not taken in is not under way");
    }

    #[tokio::test]
    async fn each_step_ends_when_nothing_is_under_way() {
        let shutdown = Shutdown::new(SHORT);
        let request = shutdown.enter();
        let told = CancellationToken::new();
        let steps = async {
            shutdown.closing().await;
            assert!(!shutdown.cancelling().is_cancelled());
            shutdown.cancelling().cancelled().await;
            drop(request);
        };
        let begun = Instant::now();
        tokio::join!(shutdown.run(std::future::pending(), &told), steps);
        assert!(begun.elapsed() >= SHORT && begun.elapsed() < SAVING);
    }

    #[tokio::test]
    async fn being_told_again_ends_the_grace_at_once() {
        let shutdown = Shutdown::new(Duration::from_secs(3_600));
        let _request = shutdown.enter();
        let (at_once, begun) = (CancellationToken::new(), Instant::now());
        at_once.cancel();
        shutdown.run(std::future::pending(), &at_once).await;
        assert!(begun.elapsed() < SAVING);
    }
}
