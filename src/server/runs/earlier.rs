//! The runs of earlier processes that did not end well: a new process looks for them in the store after its start.

use std::collections::HashSet;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};

use crate::lang::{MadeCalls, Status};
use crate::store::{Key, LEASE, Store, Summary};

use super::Runs;
use super::failures::{Changes, FailedIn, FailedRun, Failures, KNOWN};
use super::listing::{RECORDS, StoredRuns};
use super::stored::StoredRun;
use super::summary::{RunState, RunSummary};

/// The time after the start of a process at which it looks: the first programs need the store more.
const LOOK: Duration = Duration::from_secs(3);

/// The time after which it looks again if some run seemed to be evaluated: the lease of a dead process is over by then.
const LOOK_AGAIN: Duration = Duration::from_secs(LEASE.as_secs() + 1);

impl Runs {
    /// Looks, in the background, for runs that failed, or whose processes died while they were evaluated. If one has changed
    /// something less than an hour ago, later programs do not repeat its calls by accident: those of its principal if its
    /// process has died, and else those of its session, which may be alive in another process. One that was cut off is told
    /// of in the next reply to its principal, and is in the log if it has a call of unknown outcome.
    pub(in crate::server) fn look_for_failed(&self) {
        let Some(persistence) = &self.persistence else { return };
        let store = Arc::clone(persistence.store());
        let failures = Arc::clone(&self.failures);
        let work = move || {
            std::thread::park_timeout(LOOK);
            let running = look(&store, &failures, |_| true);
            if !running.is_empty() {
                std::thread::park_timeout(LOOK_AGAIN);
                look(&store, &failures, |key| running.contains(key));
            }
        };
        // Without the thread, `lispbox approvals list` and `run/status` show them all the same.
        let _ = std::thread::Builder::new().name("runs".to_owned()).spawn(work);
    }
}

/// Looks at the runs that are wanted, the oldest first and one text at a time. Returns those that seem to be evaluated.
fn look(store: &Arc<dyn Store>, failures: &Failures, is_wanted: impl Fn(&Key) -> bool) -> HashSet<Key> {
    let runs = StoredRuns::new(Arc::clone(store));
    let mut running = HashSet::new();
    for summary in store.list().unwrap_or_default().into_iter().rev() {
        let key = &summary.key;
        if !StoredRuns::has(&summary) || key.principal == RECORDS || !is_wanted(key) {
            continue;
        }
        if summary.is_leased {
            running.insert(key.clone());
        } else if may_concern(&summary)
            && let Ok(run) = runs.read(key)
        {
            found(failures, &summary, &run);
        }
    }
    running
}

/// True for a run whose process died, or that failed lately.
fn may_concern(summary: &Summary) -> bool {
    RunSummary::of(summary).is_none_or(|run| run.state == RunState::Failed && age(summary) < KNOWN)
}

/// Returns the time since a run was written last.
fn age(summary: &Summary) -> Duration {
    SystemTime::now().duration_since(summary.used).unwrap_or_default()
}

fn found(failures: &Failures, summary: &Summary, run: &StoredRun) {
    let Key { principal, handle } = &summary.key;
    let is_dead = run.head.is_cut_off;
    let unknown = run.asked(handle).unknown.len();
    if is_dead && unknown > 0 {
        tracing::warn!(
            run = handle,
            principal,
            calls = unknown,
            "it is not known whether calls of a program happened, because its process died: see `lispbox approvals show`"
        );
    }
    let status = match run.attempts().last() {
        _ if is_dead => Status::Cancelled,
        Some(last) if run.state() == RunState::Failed => last.status,
        _ => return,
    };
    let made = MadeCalls::of(run.run().log().changes());
    if made.is_empty() || age(summary) >= KNOWN {
        return;
    }
    failures.add_found(FailedRun {
        identity: handle.clone(),
        principal: principal.clone(),
        session: FailedIn { handle: run.session().to_owned(), entry: Weak::new(), is_elsewhere: !is_dead },
        status,
        made,
        changes: Changes::of(run.run().log()),
        kept: None,
        is_taken: Arc::default(),
        is_untold: status == Status::Cancelled,
        ended_well: None,
        reply_bytes: 0,
        // The clock of a system that has just started may not go back that far.
        since: Instant::now().checked_sub(age(summary)).unwrap_or_else(Instant::now),
    });
}
