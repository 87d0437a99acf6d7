//! Readiness checks of the server, which query its store as rarely as possible.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// Validity of an answer, counted from when the store was queried.
const FRESH: Duration = Duration::from_millis(250);

/// Maximum time that a request waits for an answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs the check on at most one dedicated thread at a time. Regardless of the number of callers and the duration of
/// the check, evaluations lose no thread and at most one connection to the store.
pub(super) struct Readiness {
    shared: Arc<Shared>,
    check: Arc<dyn Fn() -> Option<String> + Send + Sync>,
    patience: Duration,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    answered: Notify,
}

#[derive(Default)]
struct State {
    /// The latest answer, and when the check that gave it began.
    latest: Option<(Instant, Option<String>)>,
    /// When the running check began, if one is running.
    since: Option<Instant>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Readiness {
    /// Creates a readiness check that calls `check`, which may block.
    pub(super) fn new(check: impl Fn() -> Option<String> + Send + Sync + 'static) -> Readiness {
        Readiness { shared: Arc::default(), check: Arc::new(check), patience: PATIENCE }
    }

    /// Returns what is wrong, if anything, as of at most [`FRESH`] ago; waits at most [`PATIENCE`].
    pub(super) async fn trouble(&self) -> Option<String> {
        let asked = Instant::now();
        let deadline = tokio::time::Instant::from_std(asked + self.patience);
        loop {
            // Register before reading the state, so that no notification is missed.
            let answered = self.shared.answered.notified();
            tokio::pin!(answered);
            answered.as_mut().enable();
            let since = {
                let mut state = self.shared.state();
                // An answer from a check that began more than `FRESH` before this call is too old.
                if let Some((when, answer)) = &state.latest
                    && *when + FRESH > asked
                {
                    return answer.clone();
                }
                match state.since {
                    Some(since) => since,
                    None => {
                        let now = Instant::now();
                        state.since = Some(now);
                        if let Err(problem) = self.begin(now) {
                            state.since = None;
                            return Some(format!("there is no thread to ask the store on: {problem}"));
                        }
                        now
                    }
                }
            };
            if tokio::time::timeout_at(deadline, answered).await.is_err() {
                return Some(format!("the store has not answered for {} s", since.elapsed().as_secs()));
            }
        }
    }

    fn begin(&self, now: Instant) -> std::io::Result<()> {
        let (shared, check) = (Arc::clone(&self.shared), Arc::clone(&self.check));
        let runtime = tokio::runtime::Handle::current();
        let asking = move || {
            let _inside = runtime.enter();
            let answer = catch_unwind(AssertUnwindSafe(|| check()));
            let answer = answer.unwrap_or_else(|_| Some("the check of the store panicked".to_owned()));
            *shared.state() = State { latest: Some((now, answer)), since: None };
            shared.answered.notify_waiters();
        };
        std::thread::Builder::new().name("lispbox-ready".to_owned()).spawn(asking).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::{Receiver, channel};

    #[tokio::test]
    async fn many_questions_are_one_check() {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let readiness = Readiness::new(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            Some("it is full".to_owned())
        });
        let answers = futures::future::join_all((0..100).map(|_| readiness.trouble())).await;
        assert!(answers.iter().all(|answer| answer.as_deref() == Some("it is full")));
        assert_eq!(readiness.trouble().await.as_deref(), Some("it is full"));
        assert_eq!(count.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn a_store_that_hangs_is_asked_once_and_not_waited_for() {
        let (release, held) = channel::<()>();
        let (held, count) = (Mutex::<Receiver<()>>::new(held), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&count);
        let mut readiness = Readiness::new(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            let _ = held.lock().unwrap_or_else(PoisonError::into_inner).recv();
            None
        });
        readiness.patience = Duration::from_millis(10);
        for _ in 0..3 {
            let answer = readiness.trouble().await.expect("it does not answer");
            assert!(answer.starts_with("the store has not answered for"), "{answer}");
        }
        drop(release);
        assert_eq!(count.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn a_check_that_breaks_is_trouble() {
        let readiness = Readiness::new(|| panic!("on purpose"));
        assert_eq!(readiness.trouble().await.as_deref(), Some("the check of the store panicked"));
    }
}
