//! Waiting for what is asynchronous, on the thread of the evaluation.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::server::downstream::Failure;
use crate::server::sessions::requests::SessionRequests;
use crate::server::system::blocking::{block_on, until};

/// Waits for futures until the call is to end.
pub(in crate::server) struct Wait<'c> {
    runtime: &'c Handle,
    requests: Option<&'c Arc<SessionRequests>>,
    end: CancellationToken,
    /// The time at which the evaluation is over.
    over: Option<Instant>,
    /// The time at which an attempt is over.
    attempt: Option<Instant>,
}

impl<'c> Wait<'c> {
    /// Creates a wait that ends when `end` is cancelled, or when the lease of the session is lost.
    pub(in crate::server) fn new(
        runtime: &'c Handle,
        requests: Option<&'c Arc<SessionRequests>>,
        end: CancellationToken,
    ) -> Wait<'c> {
        Wait { runtime, requests, end, over: None, attempt: None }
    }

    /// Sets the time at which the evaluation is over, if it ends at a time.
    pub(in crate::server) fn until(self, over: Option<Instant>) -> Wait<'c> {
        Wait { over, ..self }
    }

    /// Sets the time at which the current attempt is over.
    pub(in crate::server) fn attempt_until(&mut self, attempt: Option<Instant>) {
        self.attempt = attempt;
    }

    /// Runs a future to its end. Must not be called on an asynchronous thread of the runtime.
    ///
    /// # Errors
    /// Returns [`Failure::Stopped`] if the call is to end first, and [`Failure::NotStarted`] if the attempt is over.
    pub(in crate::server) fn run<T>(&self, work: impl Future<Output = T>) -> Result<T, Failure> {
        let work = pin!(work);
        block_on(self.runtime, async {
            // A suspended process resumes in the middle of its work: the lease is checked before each poll of it.
            let lost = std::future::poll_fn(|_| if self.is_lost() { Poll::Ready(()) } else { Poll::Pending });
            tokio::select! {
                biased;
                () = self.end.cancelled() => Err(Failure::Stopped),
                () = lost => Err(Failure::Stopped),
                outcome = work => Ok(outcome),
                () = until(self.over) => Err(Failure::Stopped),
                () = until(self.attempt) => Err(Failure::NotStarted(None)),
            }
        })
    }

    /// True if the call is to end.
    pub(in crate::server) fn is_over(&self) -> bool {
        self.end.is_cancelled() || self.is_lost() || self.over.is_some_and(|over| Instant::now() >= over)
    }

    /// True once another process may have the session: nothing more may be done in it.
    fn is_lost(&self) -> bool {
        self.requests.is_some_and(|requests| requests.is_lost())
    }
}
