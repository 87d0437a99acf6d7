//! Waiting for what is asynchronous, on the thread of the evaluation.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::server::downstream::Failure;
use crate::server::sessions::requests::SessionRequests;

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
        // Work that is dropped before its end tells its server so by a task.
        let _runtime = self.runtime.enter();
        let mut work = pin!(work);
        if self.end.is_cancelled() || self.is_lost() {
            return Err(Failure::Stopped);
        }
        // Most waits are over at once; entering the runtime to block costs more than they do.
        if let Poll::Ready(outcome) = work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return Ok(outcome);
        }
        self.runtime.block_on(async {
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

/// Waits until that time, if there is one.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}
