//! The runs of earlier processes that did not end well: a new process looks for them in the store after its start.

use std::collections::HashSet;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};

use crate::lang::{MadeCalls, Status};
use crate::store::{Key, LEASE};

use super::Runs;
use super::failures::{FailedIn, FailedRun, Failures, KNOWN};
use super::listing::{ListedRun, StoredRuns};
use super::stored::StoredRun;
use super::summary::{RunState, now};

/// The time after the start of a process at which it looks: the first programs need the store more.
const LOOK: Duration = Duration::from_secs(3);

/// The time after which it looks again if some run seemed to be evaluated: the lease of a dead process is over by then.
const LOOK_AGAIN: Duration = Duration::from_secs(LEASE.as_secs() + 1);

impl Runs {
    /// Looks, in the background, for runs that failed, or whose processes died while they were evaluated. If one has changed
    /// something less than an hour ago, programs of its principal repeat none of its calls by accident. One that was cut
    /// off is told of in the next reply to its principal, and is in the log if it has a call of unknown outcome.
    pub(in crate::server) fn look_for_failed(&self) {
        let Some(persistence) = &self.persistence else { return };
        let runs = StoredRuns::new(Arc::clone(persistence.store()));
        let failures = Arc::clone(&self.failures);
        let work = move || {
            std::thread::park_timeout(LOOK);
            let (running, others): (Vec<ListedRun>, Vec<ListedRun>) =
                runs.list().unwrap_or_default().into_iter().partition(|(_, run)| is_running(run));
            others.iter().for_each(|(key, run)| found(&failures, key, run.as_ref().ok()));
            if running.is_empty() {
                return;
            }
            std::thread::park_timeout(LOOK_AGAIN);
            let again = runs.list().unwrap_or_default();
            let dead =
                again.iter().filter(|(key, run)| !is_running(run) && running.iter().any(|(known, _)| known == key));
            dead.for_each(|(key, run)| found(&failures, key, run.as_ref().ok()));
        };
        // Without the thread, `lispbox approvals list` and `run/status` show them all the same.
        let _ = std::thread::Builder::new().name("runs".to_owned()).spawn(work);
    }
}

fn is_running(run: &Result<StoredRun, String>) -> bool {
    run.as_ref().is_ok_and(|run| run.is_running)
}

fn found(failures: &Failures, Key { principal, handle }: &Key, run: Option<&StoredRun>) {
    let Some((run, end)) = run.and_then(|run| Some((run, End::of(run)?))) else { return };
    let unknown = run.asked(handle).unknown.len();
    if unknown > 0 && end.status == Status::Cancelled {
        tracing::warn!(
            run = handle,
            principal,
            calls = unknown,
            "it is not known whether calls of a program happened, because its process died or it was cancelled: see \
             `lispbox approvals show`"
        );
    }
    let made = MadeCalls::of(run.run().log().changes());
    let age = Duration::from_secs(now().saturating_sub(end.at));
    let Some(since) = Instant::now().checked_sub(age).filter(|_| age < KNOWN && !made.is_empty()) else { return };
    failures.add(FailedRun {
        identity: handle.clone(),
        principal: principal.clone(),
        // It is not in the memory of this process, and may never be.
        session: FailedIn { handle: run.session().to_owned(), entry: Weak::new() },
        status: end.status,
        made,
        calls: FailedRun::calls_of(run.run().log()),
        stopped: HashSet::new(),
        kept: None,
        is_taken: Arc::default(),
        is_untold: end.status == Status::Cancelled,
        ended_well: None,
        reply_bytes: 0,
        since,
    });
}

/// The end of an attempt that did not end well.
struct End {
    status: Status,
    /// Its time, or that of the beginning of the run, in seconds since 1970.
    at: u64,
}

impl End {
    fn of(run: &StoredRun) -> Option<End> {
        if run.state() == RunState::Failed {
            return run.attempts().last().map(|last| End { status: last.status, at: last.at });
        }
        let since = run.since().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        run.head.is_cut_off.then_some(End { status: Status::Cancelled, at: since })
    }
}
