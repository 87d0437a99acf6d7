//! A run while it is resumed.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::lang::{CallState, Entry, Journal, Reply, RunLog, Suspended};
use crate::server::admission::request::Refused;
use crate::server::sessions::leases::HeldLease;
use crate::server::sessions::persistence::Persistence;
use crate::store::{Key, Problem, wait_for_lease};

use super::stored::{PATIENCE, RUN, Start, StoredRun, missing};
use super::{WaitingRun, not_resumed};

/// A run that is being resumed. In a store it is leased until this is dropped.
pub(in crate::server) struct ResumedRun(Source);

enum Source {
    Here { identity: String, run: Box<Suspended>, before: Box<WaitingRun> },
    Stored { run: Box<StoredRun>, record: Arc<HeldRecord> },
}

impl ResumedRun {
    pub(super) fn here(identity: String, run: Suspended, before: WaitingRun) -> ResumedRun {
        ResumedRun(Source::Here { identity, run: Box::new(run), before: Box::new(before) })
    }

    pub(super) fn stored(run: StoredRun, record: HeldRecord) -> ResumedRun {
        ResumedRun(Source::Stored { run: Box::new(run), record: Arc::new(record) })
    }

    /// Returns the run, with the decisions on its calls.
    pub(in crate::server) fn run(&self) -> &Suspended {
        match &self.0 {
            Source::Here { run, .. } => run,
            Source::Stored { run, .. } => run.run(),
        }
    }

    /// Returns with what the run is evaluated from its beginning, if it was not suspended.
    pub(in crate::server) fn start(&self) -> Option<&Start> {
        self.record().and_then(|(run, _)| run.start())
    }

    /// Returns the reply of a run that has ended meanwhile.
    pub(in crate::server) fn reply(&self) -> Option<&Reply> {
        self.record().and_then(|(run, _)| run.reply())
    }

    /// Returns where the calls of the run are stored before they are sent.
    pub(in crate::server) fn journal(&self) -> Option<Arc<dyn Journal>> {
        self.record().map(|(_, record)| Arc::clone(record) as _)
    }

    /// Stores that the run is resumed while its session has that version, with the decisions on its calls. What is
    /// journalled from now on is that log.
    ///
    /// # Errors
    /// Returns why the run cannot be resumed, as a clause.
    pub(in crate::server) fn begin(&self, version: u64, log: &Arc<RunLog>) -> Result<(), String> {
        let Some((run, record)) = self.record() else { return Ok(()) };
        let run = run.resumed_at(version)?;
        record.write(&run)?;
        // A run is taken for each evaluation anew.
        let _ = record.under_way.set((run, Arc::downgrade(log)));
        Ok(())
    }

    /// Returns the record of a run in a store, as it was before it was resumed, with the decisions.
    pub(super) fn record(&self) -> Option<(&StoredRun, &Arc<HeldRecord>)> {
        match &self.0 {
            Source::Here { .. } => None,
            Source::Stored { run, record } => Some((run, record)),
        }
    }

    /// Returns the run in memory as it was, with its identity.
    pub(super) fn into_waiting(self) -> Option<(String, WaitingRun)> {
        match self.0 {
            Source::Here { identity, before, .. } => Some((identity, *before)),
            Source::Stored { .. } => None,
        }
    }
}

/// The record of a run in a store, leased by this process.
pub(super) struct HeldRecord {
    persistence: Arc<Persistence>,
    held: Arc<HeldLease>,
    /// The version in the store.
    version: Mutex<u64>,
    /// The evaluation that is under way: the run as it was resumed, and its log.
    under_way: OnceLock<(StoredRun, Weak<RunLog>)>,
}

impl HeldRecord {
    /// Takes the lease of a run, and reads it.
    ///
    /// # Errors
    /// Refuses if there is no such run, if another process resumes it, or if it cannot be read.
    pub(super) fn take(
        persistence: &Arc<Persistence>,
        key: Key,
        stop: CancellationToken,
        patience: Duration,
    ) -> Result<(HeldRecord, StoredRun), Refused> {
        let taken = wait_for_lease(&**persistence.store(), &key, patience.max(PATIENCE), || stop.is_cancelled());
        let held = match taken {
            Ok(taken) => persistence.hold(HeldLease::new(key.clone(), taken, stop)),
            Err(Problem::Leased) if stop.is_cancelled() => {
                return Err(Refused::new("Cancelled", "the call was cancelled before it started"));
            }
            Err(problem) => return Err(not_resumed(&missing(&problem))),
        };
        // From here on the lease is released on every path.
        let persistence = Arc::clone(persistence);
        let record = HeldRecord { persistence, held, version: Mutex::new(0), under_way: OnceLock::new() };
        let store = record.persistence.store();
        let read = store.read(&key, 0).map_err(|problem| not_resumed(&missing(&problem)))?;
        let read = read.ok_or_else(|| not_resumed("the run cannot be read"))?;
        let stored = StoredRun::decode(&read.text).map_err(|problem| not_resumed(&problem.to_string()))?;
        *record.version() = read.version;
        Ok((record, stored))
    }

    pub(super) fn identity(&self) -> &str {
        &self.held.key.handle
    }

    fn version(&self) -> MutexGuard<'_, u64> {
        self.version.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the record.
    ///
    /// # Errors
    /// Returns why it was not written, as a clause.
    pub(super) fn write(&self, run: &StoredRun) -> Result<(), String> {
        let mut version = self.version();
        self.write_at(&mut version, run)
    }

    fn write_at(&self, version: &mut u64, run: &StoredRun) -> Result<(), String> {
        if self.held.lost().is_some() {
            return Err("another process may have taken the run".to_owned());
        }
        let HeldLease { key, lease, .. } = &*self.held;
        let written = self.persistence.store().write(key, lease, *version, &run.encode(), &[RUN.to_owned()]);
        *version = written.map_err(|problem| missing(&problem))?;
        Ok(())
    }
}

impl Journal for HeldRecord {
    fn store(&self, entry: &Entry) -> Result<(), String> {
        // In turn, so that the log that is written last is the latest one.
        let mut version = self.version();
        let stored = match self.under_way.get().and_then(|(run, log)| Some((run, log.upgrade()?))) {
            // With what the run has received before, on which the call may depend.
            Some((run, log)) => self.write_at(&mut version, &run.under_way(log.logged())),
            None => Err("the run is not under way".to_owned()),
        };
        if let (Err(problem), true) = (&stored, entry.state != CallState::Started) {
            tracing::warn!(problem, "the outcome of a call was not stored with its run");
        }
        stored.map_err(|problem| {
            format!("that the call begins cannot be stored with its run, so it is not made: {problem}")
        })
    }
}

impl Drop for HeldRecord {
    fn drop(&mut self) {
        self.persistence.let_go(&self.held);
    }
}
