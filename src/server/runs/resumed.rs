//! A run while it is resumed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::lang::{CallState, Entry, Journal, Reply, Suspended};
use crate::server::admission::request::Refused;
use crate::server::sessions::leases::HeldLease;
use crate::server::sessions::persistence::Persistence;
use crate::store::{self, Key, Problem, boot};

use super::stored::{LOOK, PATIENCE, RUN, Start, StoredRun, missing};
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
    content: Mutex<Content>,
}

struct Content {
    text: String,
    version: u64,
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
        let store = persistence.store();
        let holder = store::handle().map_err(|message| Refused::new("InternalError", message))?;
        let begun = Instant::now();
        let held = loop {
            let asked = boot::elapsed();
            match store.lease(&key, &holder) {
                Ok(lease) => break persistence.hold(HeldLease::new(key.clone(), lease, asked, stop)),
                Err(Problem::Leased) if begun.elapsed() < patience.max(PATIENCE) => std::thread::park_timeout(LOOK),
                Err(problem) => return Err(not_resumed(&missing(&problem))),
            }
        };
        // From here on the lease is released on every path.
        let content = Mutex::new(Content { text: String::new(), version: 0 });
        let mut record = HeldRecord { persistence: Arc::clone(persistence), held, content };
        let read = store.read(&key, 0).map_err(|problem| not_resumed(&missing(&problem)))?;
        let read = read.ok_or_else(|| not_resumed("the run cannot be read"))?;
        let stored = StoredRun::decode(&read.text).map_err(|problem| not_resumed(&problem.to_string()))?;
        record.content = Mutex::new(Content { text: read.text, version: read.version });
        Ok((record, stored))
    }

    pub(super) fn identity(&self) -> &str {
        &self.held.key.handle
    }

    /// Writes the record.
    ///
    /// # Errors
    /// Returns why it was not written, as a clause.
    pub(super) fn write(&self, run: &StoredRun) -> Result<(), String> {
        self.write_text(|text| *text = run.encode())
    }

    fn write_text(&self, change: impl FnOnce(&mut String)) -> Result<(), String> {
        let mut content = self.content.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = content.text.clone();
        change(&mut text);
        if self.held.lost().is_some() {
            return Err("another process may have taken the run".to_owned());
        }
        let HeldLease { key, lease, .. } = &*self.held;
        let written = self.persistence.store().write(key, lease, content.version, &text, &[RUN.to_owned()]);
        let version = written.map_err(|problem| missing(&problem))?;
        *content = Content { text, version };
        Ok(())
    }
}

impl Journal for HeldRecord {
    fn store(&self, entry: &Entry) -> Result<(), String> {
        let stored = self.write_text(|text| text.push_str(&StoredRun::line(entry)));
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
