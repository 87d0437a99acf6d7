//! Speaking with a database over the network: on a runtime of the store's own, with a bound on every wait.

use super::Problem;
use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

/// How long an answer is waited for, with everything that it takes to get it.
pub(super) const PATIENCE: Duration = Duration::from_secs(4);

/// How long a database may take to show that it is there, when it has not answered something else in time.
const PROBE: Duration = Duration::from_secs(1);

/// How long nobody asks a database that has just been silent, so that not everybody waits for it in turn.
const PAUSE: Duration = Duration::from_secs(1);

/// Where what is said to a database is said.
pub(super) struct Remote {
    /// Taken when this is dropped.
    runtime: Option<Runtime>,
    /// Since when the database has been silent.
    silent: Mutex<Option<Instant>>,
}

impl Remote {
    /// A runtime of one thread, which keeps the connections.
    ///
    /// # Errors
    /// [`Problem::Unavailable`] if the system has no thread for it.
    pub(super) fn new() -> Result<Remote, Problem> {
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("store").enable_all().build();
        let runtime = runtime.map_err(|problem| Problem::Unavailable(problem.to_string()))?;
        Ok(Remote { runtime: Some(runtime), silent: Mutex::default() })
    }

    /// Does some work and waits for it, though not for long. Work that is given up may take place all the same.
    ///
    /// Work that does not end in time is its own: another row may be free, another text be shorter. Only when `probe`,
    /// which is to make a connection of its own, gets no answer either is the database taken to be silent, and nobody asks
    /// it for a second; `is_silent` is called then.
    ///
    /// # Errors
    /// The work's own, or [`Problem::Unavailable`] if it does not end in time.
    pub(super) fn wait<R>(
        &self,
        work: impl Future<Output = Result<R, Problem>>,
        probe: impl Future<Output = bool>,
        late: impl FnOnce(bool),
    ) -> Result<R, Problem> {
        let silent = || self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        let unavailable = || Err(Problem::Unavailable(format!("it did not answer within {} s", PATIENCE.as_secs())));
        if silent().is_some_and(|since| since.elapsed() < PAUSE) {
            return unavailable();
        }
        let runtime = self.runtime.as_ref().expect("the runtime is there until the end");
        let waited = runtime.block_on(async {
            match tokio::time::timeout(PATIENCE, work).await {
                Ok(result) => Ok(result),
                Err(_) => Err(tokio::time::timeout(PROBE, probe).await.unwrap_or(false)),
            }
        });
        match waited {
            Ok(result) => {
                *silent() = None;
                result
            }
            Err(true) => {
                late(true);
                Err(Problem::Unavailable(format!(
                    "it did not do this within {} s, though it answers otherwise: what was sent may be too large, or \
                     something in the database keeps it waiting",
                    PATIENCE.as_secs()
                )))
            }
            Err(false) => {
                *silent() = Some(Instant::now());
                late(false);
                unavailable()
            }
        }
    }
}

/// Lets TLS be done by ring, unless the program has chosen something else.
pub(super) fn prepare_tls() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

impl Drop for Remote {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Whoever drops a store may be on a runtime of its own, where nobody may wait for another to end.
            runtime.shutdown_background();
        }
    }
}
