//! A program's requests for its own session, carried out when the program has ended (copying or closing it), and the
//! lease under which the program may continue.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::lang::{CallId, Environment, RunLog, Sandbox};

use super::Entry;
use super::leases::HeldLease;
use super::persistence::Persistence;

/// Maximum number of copies that one program may make.
const MOST_COPIES: usize = 16;

/// The requests recorded while a program runs.
#[derive(Default)]
pub(in crate::server) struct SessionRequests {
    requested: Mutex<Requested>,
    /// The token that cancels the program.
    stop: OnceLock<CancellationToken>,
    /// The lease of its session, if that is in a store.
    held: OnceLock<Arc<HeldLease>>,
    /// The log of its run.
    log: OnceLock<Arc<RunLog>>,
}

#[derive(Default)]
struct Requested {
    /// The handles of the copies.
    copies: Vec<String>,
    closes: bool,
}

impl SessionRequests {
    fn requested(&self) -> MutexGuard<'_, Requested> {
        self.requested.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the token that cancels the program.
    pub(in crate::server) fn stop_by(&self, stop: CancellationToken) {
        // A host is created once for each program.
        let _ = self.stop.set(stop);
    }

    /// Returns the token that cancels the program.
    pub(in crate::server) fn stop(&self) -> CancellationToken {
        self.stop.get().cloned().unwrap_or_default()
    }

    /// Records the lease under which the program runs.
    pub(in crate::server) fn run_under(&self, held: Arc<HeldLease>) {
        // A lease is taken once for each program.
        let _ = self.held.set(held);
    }

    /// Records the log of a run.
    pub(in crate::server) fn log_in(&self, log: Arc<RunLog>) {
        // A run is resumed once for each program.
        let _ = self.log.set(log);
    }

    /// Records that a call is about to be sent, and stores that if the run of the program is stored.
    ///
    /// # Errors
    /// Returns why it is not stored, as a clause. The call must then not be sent.
    pub(in crate::server) fn starting(&self, call: &CallId) -> Result<(), String> {
        self.log.get().map_or(Ok(()), |log| log.starting(call))
    }

    /// Records that a call is about to be sent that may change something, and does no harm if it is made again.
    pub(in crate::server) fn changing(&self, call: &CallId) {
        self.log.get().into_iter().for_each(|log| log.changing(call));
    }

    /// Records that a call was not sent after all.
    pub(in crate::server) fn unsent(&self, call: &CallId) {
        self.log.get().into_iter().for_each(|log| log.unsent(call));
    }

    /// True once the lease is lost: the program must not do anything more.
    pub(in crate::server) fn is_lost(&self) -> bool {
        self.held.get().is_some_and(|held| held.lost().is_some())
    }

    /// Promises a copy and returns its handle.
    ///
    /// # Errors
    /// Returns a message if there are too many copies, or if the system has no randomness for a handle.
    pub(in crate::server) fn fork(&self) -> Result<String, String> {
        let mut requested = self.requested();
        if requested.copies.len() >= MOST_COPIES {
            return Err(format!("a program may fork its session {MOST_COPIES} times"));
        }
        let handle = crate::store::handle()?;
        requested.copies.push(handle.clone());
        Ok(handle)
    }

    /// Promises copies with these handles, which an earlier evaluation of the run was promised.
    pub(in crate::server) fn promise(&self, handles: Vec<String>) {
        let mut requested = self.requested();
        for handle in handles {
            if !requested.copies.contains(&handle) {
                requested.copies.push(handle);
            }
        }
    }

    /// Promises to close the session.
    pub(in crate::server) fn close(&self) {
        self.requested().closes = true;
    }

    /// True if the session is to be closed.
    pub(in crate::server) fn closes(&self) -> bool {
        self.requested().closes
    }

    /// Makes the promised copies: in the store, or as sessions to be kept in memory.
    ///
    /// # Errors
    /// Returns why the session cannot be copied.
    pub(in crate::server) fn copies(
        &self,
        entry: &Entry,
        session: &mut dyn Environment,
        sandbox: &Arc<dyn Sandbox>,
        persistence: Option<&Persistence>,
    ) -> Result<Vec<Arc<Entry>>, String> {
        let handles = std::mem::take(&mut self.requested().copies);
        if handles.is_empty() {
            return Ok(Vec::new());
        }
        if self.is_lost() {
            return Err("its lease was lost".to_owned());
        }
        if session.bindings() == 0 {
            return Err("nothing is defined in it".to_owned());
        }
        let text = session.encode()?;
        let mut here = Vec::new();
        for handle in handles {
            match persistence {
                Some(persistence) => {
                    let text = entry.with_origins(text.clone());
                    persistence.make(&entry.key_of(handle), &text, &session.names())?;
                }
                None => {
                    let mut copy = Arc::clone(sandbox).environment();
                    copy.decode(&text)?;
                    here.push(entry.copied(handle, copy));
                }
            }
        }
        Ok(here)
    }
}
