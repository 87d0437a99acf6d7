//! The end of a run: it is removed, or kept for those who ask for its reply, or for a further attempt.

use std::sync::Arc;
use std::time::Instant;

use crate::lang::{Again, Limits, Logged, MadeCalls, Reply, RunLog, Status, Suspended, unknown_calls};
use crate::server::identity::sha256;
use crate::server::sessions::Entry;
use crate::store::Key;

use super::attempts::FailedAttempt;
use super::failures::{Changes, FailedIn, FailedRun, is_slow};
use super::listing::{RECORDS, StoredRuns, missing};
use super::resumed::ResumedRun;
use super::stored::{Start, StoredRun};
use super::summary::RunState;
use super::{MOST, Runs};

/// A program that has ended, with its session.
pub(in crate::server) struct EndedProgram<'e> {
    pub(in crate::server) entry: &'e Arc<Entry>,
    pub(in crate::server) program: &'e str,
    pub(in crate::server) limits: &'e Limits,
    /// The identity of its run, or why there is none.
    pub(in crate::server) run: Result<String, String>,
}

impl Runs {
    /// Records that a run has ended with a reply, which is kept if its client knows the run. Returns why its end is not
    /// recorded, as a clause.
    pub(in crate::server) fn ended(&self, resumed: &ResumedRun, reply: &Reply, principal: &str) -> Option<String> {
        let Some((before, record)) = resumed.record() else {
            self.failures.ended(resumed.identity(), resumed.attempted().map(|before| before.ended_with(reply)));
            return None;
        };
        self.failures.remove(resumed.identity());
        let recording = resumed.finished_recording();
        let is_recorded = recording.is_some();
        let mut ended = before.ended_with(reply);
        if let Some(recording) = recording {
            ended = ended.recorded_as(recording, principal);
            self.purge();
        }
        if resumed.is_in_store() {
            return record.close_with(&ended).err();
        }
        // Unless a client was told to, no one can ask for its reply.
        let kept = record.end(&ended);
        if !is_recorded || kept == Ok(true) {
            return kept.err();
        }
        let key = Key { principal: RECORDS.to_owned(), handle: record.identity().to_owned() };
        let store = self.persistence.as_ref()?.store();
        store.create(&key, &ended.encode(), &ended.summary().names()).err().map(|problem| missing(&problem))
    }

    /// Keeps a run that did not end well after it has made changes, or whose reply is lost, in the store or else in memory,
    /// and says so in its reply. Blocks if there is a store.
    pub(in crate::server) fn failed(
        &self,
        ended: &EndedProgram<'_>,
        resumed: Option<&ResumedRun>,
        reply: &mut Reply,
        failed: FailedAttempt,
    ) {
        reply.made = MadeCalls::of(failed.log.changes());
        (reply.unknown, reply.unknown_count) = unknown_calls(failed.log.changes());
        reply.again = Again { has_reads: failed.log.has_reads(), has_new_draws: failed.has_unkept_draws };
        let changes = Changes::of(&failed.log);
        let identity = match &ended.run {
            Ok(identity) => identity.clone(),
            Err(problem) => return tracing::warn!(problem, "a program that failed is not kept"),
        };
        reply.run = Some(identity.clone());
        let run = failed_run(ended, resumed, reply, failed);
        let kept = match resumed.and_then(ResumedRun::record).map(|(_, record)| record) {
            None => Some(Box::new(run)),
            Some(record) => {
                let room = || self.persistence.as_ref().map_or(Ok(()), |store| store.room(ended.entry.caller()));
                let written = if record.is_stored() { Ok(()) } else { room() }.and_then(|()| record.close_with(&run));
                if let Err(problem) = &written {
                    tracing::warn!(problem, run = identity, "a program that failed is kept in memory, and not stored");
                }
                self.forget_surplus(ended.entry.caller());
                written.is_err().then(|| Box::new(run))
            }
        };
        self.failures.add(FailedRun {
            identity,
            principal: ended.entry.caller().to_owned(),
            session: FailedIn {
                handle: ended.entry.handle.clone(),
                entry: Arc::downgrade(ended.entry),
                is_elsewhere: false,
            },
            status: reply.status,
            made: reply.made.clone(),
            changes,
            kept,
            is_taken: Arc::default(),
            is_untold: matches!(reply.status, Status::Cancelled | Status::Ok) && !reply.made.is_empty(),
            ended_well: None,
            reply_bytes: 0,
            since: Instant::now(),
        });
    }

    /// Notes what later programs should know of a program that has ended well, and names the calls in its reply of which it
    /// is not known whether they were carried out.
    pub(in crate::server) fn ended_well(&self, ended: &EndedProgram<'_>, reply: &mut Reply, log: &RunLog) {
        let log = log.logged();
        (reply.unknown, reply.unknown_count) = unknown_calls(log.changes());
        let (changes, digest) = (Changes::of(&log), sha256(ended.program.as_bytes()));
        let (principal, session) = (ended.entry.caller(), &ended.entry.handle);
        let is_slow = is_slow(reply) && !self.failures.is_meant(principal, session, &digest);
        if !(changes.are_unknown() || is_slow && !changes.is_empty()) {
            return;
        }
        self.failures.add(FailedRun {
            identity: ended.run.clone().unwrap_or_default(),
            principal: principal.to_owned(),
            session: FailedIn { handle: session.clone(), entry: Arc::downgrade(ended.entry), is_elsewhere: false },
            status: reply.status,
            made: Vec::new(),
            changes,
            kept: None,
            is_taken: Arc::default(),
            is_untold: false,
            ended_well: Some(if is_slow { digest } else { String::new() }),
            reply_bytes: 0,
            since: Instant::now(),
        });
    }

    /// True if [`Runs::ended_well`] has something to note of a program.
    pub(in crate::server) fn is_notable(reply: &Reply, log: &RunLog) -> bool {
        let may_be =
            reply.status == Status::Ok && (is_slow(reply) || reply.calls.iter().any(|call| call.failed.is_some()));
        may_be && log.has_changes()
    }

    /// Removes the oldest failed runs of a principal from the store, if there are too many. Those with a call whose outcome
    /// is unknown are left for a person.
    fn forget_surplus(&self, principal: &str) {
        let (Some(persistence), Ok(runs)) = (&self.persistence, self.summaries(principal)) else { return };
        let failed = runs.iter().filter(|(_, run)| run.state == RunState::Failed && run.unknown == 0);
        for (handle, _) in failed.skip(MOST) {
            let key = Key { principal: principal.to_owned(), handle: handle.clone() };
            // One that is not removed expires.
            let _ = persistence.store().remove(&key, None);
        }
    }

    /// Removes expired runs in the background, from time to time.
    pub(super) fn purge(&self) {
        let Some(persistence) = &self.persistence else { return };
        let mut purged = self.purged.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if purged.is_some_and(|purged| purged.elapsed() < super::PURGE) {
            return;
        }
        *purged = Some(Instant::now());
        let runs = StoredRuns::new(Arc::clone(persistence.store()));
        let work = move || {
            if let Err(problem) = runs.purge() {
                tracing::warn!(%problem, "expired runs could not be removed");
            }
        };
        if let Err(problem) = std::thread::Builder::new().name("purge".to_owned()).spawn(work) {
            tracing::warn!(%problem, "expired runs could not be removed");
        }
    }
}

/// Returns the record of a run that did not end well.
fn failed_run(
    ended: &EndedProgram<'_>,
    resumed: Option<&ResumedRun>,
    reply: &Reply,
    failed: FailedAttempt,
) -> StoredRun {
    let mut run = match resumed.and_then(ResumedRun::attempted) {
        Some(before) => before.ended_with(reply),
        None => {
            let run = Suspended::of(ended.program, ended.limits.clone(), Default::default(), Logged::default());
            // Its data is not kept.
            let start = Start { data: None, session_version: 0 };
            StoredRun::begun(&ended.entry.handle, run, None, start).ended_with(reply)
        }
    };
    if let Some(recording) = resumed.and_then(ResumedRun::finished_recording) {
        run = run.recorded_as(recording, ended.entry.caller());
    }
    run.failed_with(reply, failed)
}
