//! Communication with a database over the network, on a runtime owned by the store, with a bound on every wait.

use super::Problem;
use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

/// Timeout of a request, including connecting and retrying.
pub(super) const PATIENCE: Duration = Duration::from_secs(4);

/// Timeout of the probe that follows a request which timed out.
const PROBE: Duration = Duration::from_secs(1);

/// Back-off after a silent database: requests fail at once, so that callers do not wait for it one after another.
const PAUSE: Duration = Duration::from_secs(1);

/// The runtime on which a store talks to its database.
pub(super) struct Remote {
    /// Taken when this is dropped.
    runtime: Option<Runtime>,
    /// The time at which the database was found silent.
    silent: Mutex<Option<Instant>>,
}

impl Remote {
    /// Creates a runtime with one worker thread, which drives the connections.
    ///
    /// # Errors
    /// Returns [`Problem::Unavailable`] if the system has no thread for it.
    pub(super) fn new() -> Result<Remote, Problem> {
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("store").enable_all().build();
        let runtime = runtime.map_err(|problem| Problem::Unavailable(problem.to_string()))?;
        Ok(Remote { runtime: Some(runtime), silent: Mutex::default() })
    }

    /// Runs `work` and waits for it for at most [`PATIENCE`]. Work that has timed out may still take effect.
    ///
    /// A timeout may concern only this work: another row may be unlocked, another text shorter. Only if `probe`, which
    /// has to open its own connection, gets no answer either is the database considered silent, and requests fail at
    /// once for [`PAUSE`]. After a timeout `late` is called with the result of the probe.
    ///
    /// # Errors
    /// Returns the error of `work`, or [`Problem::Unavailable`] if it times out.
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
                    "it did not complete this within {} s, but answers otherwise: the data may be too large, or \
                     something in the database may block it",
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

/// Installs ring as the TLS provider, unless the program has installed another one.
pub(super) fn prepare_tls() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

impl Drop for Remote {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // A store may be dropped on another runtime, whose threads must not block until this one has shut down.
            runtime.shutdown_background();
        }
    }
}
