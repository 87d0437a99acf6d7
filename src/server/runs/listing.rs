//! The runs of a store, for the people who decide on their calls.

use std::sync::Arc;
use std::time::Duration;

use crate::store::{Key, LEASE, Lease, Problem, Store, Summary, wait_for_lease};

use super::stored::StoredRun;
use super::summary::{RUN, RunState, RunSummary};

/// The owner of the records of runs that have ended, which do not count as sessions of their principals. No principal has
/// this name.
pub(super) const RECORDS: &str = "";

/// The time for which a process waits for another one that holds a run: it outlasts the lease of a dead one.
pub(super) const PATIENCE: Duration = Duration::from_secs(LEASE.as_secs() + 2);

/// A run with its key, or the reason why it cannot be read.
pub type ListedRun = (Key, Result<StoredRun, String>);

/// The runs of a store, for the people who decide on their calls.
///
/// ```no_run
/// use lispbox::server::StoredRuns;
///
/// let store = lispbox::store::open_existing("sqlite:/var/lib/lispbox/sessions.db").unwrap();
/// let runs = StoredRuns::new(store);
/// for (key, run) in runs.list().unwrap() {
///     println!("{}: {} open calls", key.handle, run.map_or(0, |run| run.open().len()));
/// }
/// ```
pub struct StoredRuns(Arc<dyn Store>);

impl StoredRuns {
    /// Creates the view of a store.
    pub fn new(store: Arc<dyn Store>) -> StoredRuns {
        StoredRuns(store)
    }

    /// Returns true if a record of a store is a run, not a session.
    pub fn has(summary: &Summary) -> bool {
        summary.names.iter().any(|name| name == RUN)
    }

    /// Returns the runs that have not expired, the most recently changed first, without those that were only recorded. A
    /// run that cannot be read is listed with the reason.
    ///
    /// # Errors
    /// Returns the problem of the store.
    pub fn list(&self) -> Result<Vec<ListedRun>, Problem> {
        self.listed(|key| key.principal != RECORDS)
    }

    /// Returns all runs, like [`StoredRuns::list`].
    ///
    /// # Errors
    /// Returns the problem of the store.
    pub fn all(&self) -> Result<Vec<ListedRun>, Problem> {
        self.listed(|_| true)
    }

    /// Returns the runs whose identities begin so, like [`StoredRuns::all`].
    ///
    /// # Errors
    /// Returns the problem of the store.
    pub fn beginning_with(&self, beginning: &str) -> Result<Vec<ListedRun>, Problem> {
        self.listed(|key| key.handle.starts_with(beginning))
    }

    /// Returns the states of the runs among the sessions of a principal that have not ended, the most recently changed
    /// first. Reads one text at a time, and only those of runs whose process died.
    pub(super) fn summaries(&self, principal: &str) -> Result<Vec<(String, RunSummary)>, Problem> {
        let mut summaries = Vec::new();
        for summary in self.0.named(principal, RUN)? {
            let run = match RunSummary::of(&summary) {
                _ if summary.is_leased => RunSummary::running(summary.created),
                Some(run) => run,
                None => match self.read(&summary.key) {
                    Ok(run) => run.summary(),
                    // It has ended meanwhile, or cannot be read.
                    Err(_) => continue,
                },
            };
            if run.state != RunState::Ended && run.expires_in() > 0 {
                summaries.push((summary.key.handle, run));
            }
        }
        Ok(summaries)
    }

    fn listed(&self, is_wanted: impl Fn(&Key) -> bool) -> Result<Vec<ListedRun>, Problem> {
        let mut runs = Vec::new();
        let is_wanted = |summary: &Summary| StoredRuns::has(summary) && is_wanted(&summary.key);
        for summary in self.0.list()?.into_iter().filter(is_wanted) {
            let text = match self.0.read(&summary.key, 0) {
                // It has ended meanwhile.
                Err(Problem::Unknown | Problem::Expired) => continue,
                read => read.map(|read| read.map(|read| read.text).unwrap_or_default()),
            };
            let run = text.map_err(|problem| missing(&problem));
            let run = run.and_then(|text| StoredRun::decode(&text).map_err(|problem| problem.to_string()));
            let run = run.map(|run| run.running(summary.is_leased));
            if !run.as_ref().is_ok_and(StoredRun::is_expired) {
                runs.push((summary.key, run));
            }
        }
        Ok(runs)
    }

    /// Finds a run by its identity, also one that has expired; `None` if there is none.
    ///
    /// # Errors
    /// Returns the problem of the store.
    pub fn find(&self, identity: &str) -> Result<Option<ListedRun>, Problem> {
        let found =
            self.0.list()?.into_iter().find(|summary| summary.key.handle == identity && StoredRuns::has(summary));
        Ok(found.map(|Summary { key, is_leased, .. }| {
            let run = self.read(&key).map(|run| run.running(is_leased));
            (key, run)
        }))
    }

    /// Removes the runs that have expired.
    ///
    /// # Errors
    /// Returns the problem of the store.
    pub(super) fn purge(&self) -> Result<(), Problem> {
        for Summary { key, .. } in self.0.list()?.into_iter().filter(StoredRuns::has) {
            if self.read(&key).is_ok_and(|run| run.is_expired()) {
                // A process that has its lease sees that it has expired.
                let _ = self.0.remove(&key, None);
            }
        }
        Ok(())
    }

    /// Reads a run.
    ///
    /// # Errors
    /// Returns why it cannot be read.
    pub fn read(&self, key: &Key) -> Result<StoredRun, String> {
        let stored = self.0.read(key, 0).map_err(|problem| missing(&problem))?;
        let text = stored.map(|stored| stored.text).unwrap_or_default();
        StoredRun::decode(&text).map_err(|problem| problem.to_string())
    }

    /// Changes a run that no process is resuming, and returns what `change` returns. Of two changes at the same time, the
    /// second sees the first.
    ///
    /// # Errors
    /// Returns why nothing was changed.
    pub fn change<R>(&self, key: &Key, change: impl FnOnce(&mut StoredRun) -> Result<R, String>) -> Result<R, String> {
        let taken = wait_for_lease(&*self.0, key, PATIENCE, || false);
        let lease = taken.map_err(|problem| missing(&problem))?.lease;
        let changed = self.change_under(key, &lease, change);
        // Without it the lease expires.
        let _ = self.0.release(key, &lease);
        changed
    }

    fn change_under<R>(
        &self,
        key: &Key,
        lease: &Lease,
        change: impl FnOnce(&mut StoredRun) -> Result<R, String>,
    ) -> Result<R, String> {
        let stored = self.0.read(key, 0).map_err(|problem| missing(&problem))?;
        let stored = stored.ok_or_else(|| "the run cannot be read".to_owned())?;
        let mut run = StoredRun::decode(&stored.text).map_err(|problem| problem.to_string())?;
        if run.is_expired() {
            return Err("the run has expired: it waited too long".to_owned());
        }
        let outcome = change(&mut run)?;
        let written = self.0.write(key, lease, stored.version, &run.encode(), &run.summary().names());
        written.map_err(|problem| format!("the decision may not be recorded: {}", missing(&problem)))?;
        Ok(outcome)
    }

    /// Ends a run that no process is resuming: its open calls are never made. Its record remains, so that a client that
    /// repeats the call does not begin it again.
    ///
    /// # Errors
    /// Returns why it was not ended.
    pub fn cancel(&self, key: &Key, by: &str) -> Result<(), String> {
        self.change(key, |run| run.cancel(by))
    }
}

/// Describes a problem of the store with a run.
pub(super) fn missing(problem: &Problem) -> String {
    match problem {
        Problem::Unknown => "there is no such run: it was cancelled, or never existed".to_owned(),
        Problem::Expired => "the run has expired: it waited too long".to_owned(),
        Problem::Leased => "the run is being resumed, or another person decides on it at this moment".to_owned(),
        Problem::Lost | Problem::Changed => "another process has taken the run meanwhile".to_owned(),
        Problem::Damaged(what) => format!("the run is damaged: {what}"),
        Problem::Unavailable(reason) | Problem::Unusable(reason) => format!("the store cannot be used: {reason}"),
    }
}
