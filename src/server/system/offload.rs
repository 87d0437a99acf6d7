//! Runs long work off the threads of the runtime.
//!
//! The runtime has few threads, and connections, timeouts and signals all depend on them. Work whose duration an
//! untrusted party controls runs on dedicated threads ([`Offload::run`]), with a deadline for the caller. Work that is
//! linear in a message of bounded size runs on the runtime's blocking threads ([`linear`]) if the message is large.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Instant;

use tokio::sync::{AcquireError, Semaphore, oneshot};

/// Stack size of a thread; memory is committed only as far as it is used.
const STACK: usize = 64 << 20;

/// Minimum number of concurrent threads.
const FEWEST: usize = 2;

/// Runs work on dedicated threads, at most as many at once as there are cores, though at least [`FEWEST`]. One
/// principal may use all of them but one, so that its work does not block others. Clones share the threads.
#[derive(Clone, Debug)]
pub(in crate::server) struct Offload {
    turns: Arc<Semaphore>,
    /// Maximum number of threads of one principal, and the shares of those that use or wait for one.
    each: usize,
    shares: Arc<Mutex<HashMap<String, Weak<Semaphore>>>>,
}

/// The reason for which work has no outcome.
#[derive(Debug)]
pub(in crate::server) enum NotDone {
    /// The deadline expired while other work had all threads; the work has not begun.
    NoTurn,
    /// The deadline expired first. The work may still be running.
    Late,
    /// No thread could be started, or the work panicked.
    Failed(String),
}

impl Default for Offload {
    fn default() -> Self {
        Offload::of(thread::available_parallelism().map_or(FEWEST, usize::from).max(FEWEST))
    }
}

impl Offload {
    fn of(threads: usize) -> Offload {
        let each = threads.saturating_sub(1).max(1);
        Offload { turns: Arc::new(Semaphore::new(threads)), each, shares: Arc::default() }
    }

    /// Runs `work` of a principal and waits for its turn and its outcome, until the deadline. Work that has begun keeps
    /// its thread until it ends.
    ///
    /// # Errors
    /// Returns [`NotDone`] if there is no outcome.
    pub(in crate::server) async fn run<T: Send + 'static>(
        &self,
        principal: &str,
        deadline: Instant,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, NotDone> {
        let (share, turns) = (self.share(principal), Arc::clone(&self.turns));
        // The share is acquired first: a principal never queues more work for a turn than its share.
        let turn = async move { Ok((share.acquire_owned().await?, turns.acquire_owned().await?)) };
        let turn: Result<_, AcquireError> =
            tokio::time::timeout_at(deadline.into(), turn).await.map_err(|_| NotDone::NoTurn)?;
        let turn = turn.expect("the semaphores are never closed");
        let (answer, answered) = oneshot::channel();
        let work = move || {
            // The receiver has been dropped if the deadline has expired.
            let _ = answer.send(work());
            drop(turn);
        };
        spawn(work).map_err(|problem| NotDone::Failed(format!("no thread could be started: {problem}")))?;
        match tokio::time::timeout_at(deadline.into(), answered).await {
            Ok(outcome) => outcome.map_err(|_| NotDone::Failed("the work ended without an outcome".to_owned())),
            Err(_) => Err(NotDone::Late),
        }
    }

    fn share(&self, principal: &str) -> Arc<Semaphore> {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = shares.get(principal).and_then(Weak::upgrade) {
            return share;
        }
        shares.retain(|_, share| share.strong_count() > 0);
        let share = Arc::new(Semaphore::new(self.each));
        shares.insert(principal.to_owned(), Arc::downgrade(&share));
        share
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<thread::JoinHandle<()>> {
    thread::Builder::new().name("lispbox-work".to_owned()).stack_size(STACK).spawn(work)
}

/// Maximum size of an input that is processed on the current thread; that takes some tenths of a millisecond.
const SMALL: usize = 64 << 10;

/// Runs work that is linear in an input of `bytes` bytes: on the current thread if the input is small, else on a
/// blocking thread.
///
/// # Panics
/// Panics if the work panics.
pub(in crate::server) async fn linear<T: Send + 'static>(bytes: usize, work: impl FnOnce() -> T + Send + 'static) -> T {
    if bytes <= SMALL {
        return work();
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(problem) if problem.is_panic() => std::panic::resume_unwind(problem.into_panic()),
        // The runtime is shutting down and drops this task as well.
        Err(_) => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(20)
    }

    fn later() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[tokio::test]
    async fn whoever_waits_does_so_until_the_deadline_only() {
        let offload = Offload::of(1);
        let (release, released) = mpsc::channel::<()>();
        let stuck = offload.run("ann", soon(), move || released.recv());
        assert!(matches!(stuck.await, Err(NotDone::Late)));
        // The thread is still in use.
        assert!(matches!(offload.run("ann", soon(), || 1).await, Err(NotDone::NoTurn)));
        assert!(matches!(offload.run("bob", soon(), || 1).await, Err(NotDone::NoTurn)));
        release.send(()).expect("the work waits");
        assert_eq!(offload.run("ann", later(), || 2).await.expect("a free thread"), 2);
    }

    #[tokio::test]
    async fn work_of_one_principal_leaves_a_thread_for_others() {
        let offload = Offload::of(3);
        let mut release = Vec::new();
        for _ in 0..2 {
            let (sender, released) = mpsc::channel::<()>();
            release.push(sender);
            assert!(matches!(offload.run("ann", soon(), move || released.recv()).await, Err(NotDone::Late)));
        }
        assert!(matches!(offload.run("ann", soon(), || 1).await, Err(NotDone::NoTurn)));
        assert_eq!(offload.run("bob", later(), || 2).await.expect("a free thread"), 2);
        drop(release);
        assert_eq!(offload.run("ann", later(), || 3).await.expect("a free thread"), 3);
    }

    #[tokio::test]
    async fn a_panic_of_the_work_is_an_error() {
        let offload = Offload::default();
        let outcome = offload.run("ann", later(), || std::panic::resume_unwind(Box::new("gone")));
        assert!(matches!(outcome.await, Err::<(), _>(NotDone::Failed(_))));
    }

    #[tokio::test]
    async fn other_tasks_go_on_beside_linear_work_on_a_large_input() {
        let (tell, told) = mpsc::channel();
        let other = async move { tell.send(()).expect("the work waits") };
        let work = linear(SMALL + 1, move || told.recv_timeout(Duration::from_secs(60)));
        let (outcome, ()) = tokio::join!(work, other);
        outcome.expect("the other task has run");
        assert_eq!(linear(0, || 1).await, 1);
    }
}
