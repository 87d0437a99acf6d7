//! Work that may take long, off the threads of the runtime.
//!
//! The runtime has few threads, and connections, time-outs and signals all depend on them. Work whose length a stranger
//! decides runs on threads of its own ([`Offload::run`]), with a deadline for whoever waits. Work that is linear in a
//! message of bounded size goes to the runtime's own threads for what blocks ([`linear`]) if the message is large.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use tokio::sync::{Semaphore, oneshot};

/// The stack of a thread; memory is taken up only as far as it is used.
const STACK: usize = 64 << 20;

/// The fewest threads at once.
const FEWEST: usize = 2;

/// Runs work on threads of its own, at most as many at once as there are cores. Copies share the threads.
#[derive(Clone, Debug)]
pub(super) struct Offload(Arc<Semaphore>);

/// Why work has no outcome.
#[derive(Debug)]
pub(super) enum NotDone {
    /// The deadline came first. The work may still be going on.
    Late,
    /// No thread could be started, or the work panicked.
    Failed(String),
}

impl Default for Offload {
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(FEWEST, usize::from);
        Offload(Arc::new(Semaphore::new(cores.max(FEWEST))))
    }
}

impl Offload {
    /// Runs `work` and waits for it, and for its turn, until the deadline. Work that has begun keeps its thread until
    /// it ends.
    ///
    /// # Errors
    /// [`NotDone`].
    pub(super) async fn run<T: Send + 'static>(
        &self,
        deadline: Instant,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, NotDone> {
        let outcome = async {
            let turn = Arc::clone(&self.0).acquire_owned().await.expect("the semaphore is never closed");
            let (answer, answered) = oneshot::channel();
            let work = move || {
                // The receiver is gone once the deadline is over.
                let _ = answer.send(work());
                drop(turn);
            };
            spawn(work).map_err(|problem| NotDone::Failed(format!("no thread could be started: {problem}")))?;
            answered.await.map_err(|_| NotDone::Failed("the work ended without an outcome".to_owned()))
        };
        tokio::time::timeout_at(deadline.into(), outcome).await.unwrap_or(Err(NotDone::Late))
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<thread::JoinHandle<()>> {
    thread::Builder::new().name("lispbox-work".to_owned()).stack_size(STACK).spawn(work)
}

/// The largest input that is worked on where it is; some tenths of a millisecond.
const SMALL: usize = 64 << 10;

/// Runs work that is linear in an input of that many bytes: here if the input is small, else on a thread for what
/// blocks.
///
/// # Panics
/// When the work panics.
pub(super) async fn linear<T: Send + 'static>(bytes: usize, work: impl FnOnce() -> T + Send + 'static) -> T {
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

    #[tokio::test]
    async fn whoever_waits_does_so_until_the_deadline_only() {
        let offload = Offload(Arc::new(Semaphore::new(1)));
        let (release, released) = mpsc::channel::<()>();
        let stuck = offload.run(Instant::now() + Duration::from_millis(20), move || released.recv());
        assert!(matches!(stuck.await, Err(NotDone::Late)));
        // The thread is still taken.
        let queued = offload.run(Instant::now() + Duration::from_millis(20), || 1);
        assert!(matches!(queued.await, Err(NotDone::Late)));
        release.send(()).expect("the work waits");
        let next = offload.run(Instant::now() + Duration::from_secs(60), || 2);
        assert_eq!(next.await.expect("a free thread"), 2);
    }

    #[tokio::test]
    async fn a_panic_of_the_work_is_an_error() {
        let offload = Offload::default();
        let outcome = offload.run(Instant::now() + Duration::from_secs(60), || {
            std::panic::resume_unwind(Box::new("gone"));
        });
        assert!(matches!(outcome.await, Err(NotDone::Failed(_))));
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
