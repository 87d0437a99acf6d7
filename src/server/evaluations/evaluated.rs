//! A program that has been evaluated: its session is kept, and its run, if it waits or has failed.

use std::sync::Arc;

use crate::lang::{Attempt, Environment, Limits, Reply, RunLog, Status, Suspended};
use crate::server::approvals::asked::AskedRun;
use crate::server::runs::attempts::FailedAttempt;
use crate::server::runs::ended::EndedProgram;
use crate::server::runs::{ResumedRun, Runs};
use crate::server::sessions::persistence::{Persistence, SessionLease, failed, only_in_memory, unwritable};
use crate::server::sessions::requests::SessionRequests;
use crate::server::sessions::{Entry, SessionState};

use super::attempts::{Beginning, session_state};
use super::hints::unbound;
use super::leased::HeldRun;
use super::program::{Client, Definer, Finished, Place, Services};

/// An attempt of a program, which is kept if it has failed.
pub(super) struct Attempted {
    pub(super) program: String,
    pub(super) limits: Limits,
    pub(super) log: Arc<RunLog>,
    pub(super) beginning: Beginning,
}

/// A program that has been evaluated, with what is to be kept of it.
pub(super) struct Evaluated<'r> {
    pub(super) reply: Box<Reply>,
    pub(super) attempted: Attempted,
    /// The run, if it waits for a person.
    pub(super) suspended: Option<Suspended>,
    pub(super) run: HeldRun<'r>,
    pub(super) lease: Option<SessionLease>,
    pub(super) place: Place,
    pub(super) client: Client,
    pub(super) requests: Arc<SessionRequests>,
    pub(super) services: Services,
}

impl Evaluated<'_> {
    /// Keeps the session and the run, and completes the reply by what became of them.
    pub(super) fn conclude(mut self, session: &mut Box<dyn Environment>) -> Finished {
        let is_cut_off = self.is_cut_off();
        let copies = self.copies(session, is_cut_off);
        // Another process may continue it from its record.
        let is_left = is_cut_off && self.run.get().is_some_and(ResumedRun::is_in_store);
        let store = self.place.persistence.clone();
        let mut failure = if is_left { None } else { self.failure(store.as_deref()) };
        let state = self.keep_session(session, is_cut_off);
        let definer = self.definer();
        let asked = self.keep_waiting();
        let goes_on = asked.is_some() || is_left;
        if !goes_on {
            // A session that could not be kept is a failure too.
            failure = failure.or_else(|| self.failure(None));
        }
        let is_kept = matches!(state, SessionState::New | SessionState::Known);
        if is_kept && self.run.get().is_some_and(ResumedRun::outlives_request) {
            // The client may have received it from another process, or never.
            self.reply.session = Some(self.place.entry.handle.clone());
        }
        self.reply.attempt = Attempt::of(&self.attempted.log, self.reply.status);
        if let Some(failure) = failure {
            self.keep_failed(failure, &**session);
        } else if !goes_on {
            self.end_run();
            self.note_end();
        }
        Finished { reply: self.reply, state, copies, definer, asked }
    }

    /// True if the program was cut off, as by a shutdown, and the next request continues its run. One that its client has
    /// ended is not continued.
    fn is_cut_off(&self) -> bool {
        let Some(run) = self.run.get() else { return false };
        let is_given_up = self.client.withdrawn.is_cancelled() && run.is_in_store();
        run.outlives_request() && self.reply.status == Status::Cancelled && !is_given_up
    }

    /// Makes the copies of the session that the program requested. A copy is one of the session at the end of the run.
    fn copies(&mut self, session: &mut Box<dyn Environment>, is_cut_off: bool) -> Vec<Arc<Entry>> {
        if self.suspended.is_some() || is_cut_off {
            return Vec::new();
        }
        let Place { entry, sandbox, persistence, .. } = &self.place;
        let copies = self.requests.copies(entry, &mut **session, sandbox, persistence.as_deref());
        copies.unwrap_or_else(|problem| {
            let message = format!("the session could not be copied: {problem}");
            failed(&mut self.reply, "SessionNotForked", &message);
            Vec::new()
        })
    }

    /// Returns what is to be kept of the attempt if it did not end well.
    fn failure(&self, persistence: Option<&Persistence>) -> Option<FailedAttempt> {
        let Attempted { beginning, log, .. } = &self.attempted;
        // The client does not know its run, and will not receive its reply.
        let is_lost = !self.run.get().is_some_and(ResumedRun::is_known) && self.client.request.is_withdrawn();
        let is_told_of = log.attempt() > 0 || self.client.activity.is_promised();
        beginning.failed(&self.reply, (is_told_of, is_lost), log, &self.place.entry, persistence)
    }

    /// Writes or closes the session.
    fn keep_session(&mut self, session: &mut Box<dyn Environment>, is_cut_off: bool) -> SessionState {
        let (entry, is_own) = (Arc::clone(&self.place.entry), self.place.is_own);
        let lease = self.lease.take();
        // A program that waits has not ended.
        let closes = self.requests.closes() && self.suspended.is_none();
        let closed = closes.then(|| lease.as_ref().map_or(Ok(()), SessionLease::close));
        if let Some(Ok(())) = closed {
            *session = Arc::clone(&self.place.sandbox).environment();
            entry.close(is_own);
            // The reply lists only names that still exist.
            self.reply.defined.clear();
            return SessionState::Closed;
        }
        let reply = &mut self.reply;
        let state = match entry.used(&**session, &reply.defined, is_own) {
            // The suspended run refers to it.
            SessionState::Empty if self.suspended.is_some() && lease.is_some() => SessionState::New,
            state => state,
        };
        let is_stored = lease.is_some();
        match (lease, closed) {
            // The next request continues the run in the session as it was.
            (Some(lease), None) if is_cut_off => {
                *session = Arc::clone(&self.place.sandbox).environment();
                entry.forget();
                reply.defined.clear();
                drop(lease);
            }
            (Some(lease), Some(Err(problem))) => lease.goes_on(&entry, &problem, reply),
            (Some(lease), _) => lease.end(&entry, &mut **session, reply),
            (None, _) => match (session.unkept(), &self.place.without) {
                (Some(problem), _) => unwritable(reply, &entry, &problem),
                (None, Some(problem)) if session.bindings() > 0 => {
                    entry.not_kept(&problem.to_string(), &reply.defined);
                    reply.notes.push(only_in_memory(problem));
                }
                (None, _) => entry.kept(),
            },
        }
        self.services.shutdown.explain(reply, is_stored);
        state
    }

    /// Returns the stored session that defines the name because of which the program failed.
    fn definer(&self) -> Option<Definer> {
        let Place { entry, persistence, handles, .. } = &self.place;
        let (handles, persistence) = (handles.as_ref()?, persistence.as_ref()?);
        let handle = persistence.definer(entry, unbound(&self.reply)?)?;
        Some(if handles.has(&handle) { Definer::Known(handle) } else { Definer::Unknown })
    }

    /// Keeps a run that waits for a person.
    fn keep_waiting(&mut self) -> Option<AskedRun> {
        // A run whose session was not kept cannot be resumed; the reply says so.
        let run = self.suspended.take().filter(|_| self.reply.status == Status::Suspended)?;
        match self.services.runs.keep(&self.place.entry, run, self.run.get()) {
            Ok(asked) => Some(asked),
            Err(problem) => {
                let message = format!("the program cannot wait for approval, and has ended: {problem}");
                failed(&mut self.reply, "RunNotKept", &message);
                None
            }
        }
    }

    /// Keeps a run that did not end well, for a further attempt.
    fn keep_failed(&mut self, mut failure: FailedAttempt, session: &dyn Environment) {
        let (entry, Attempted { program, limits, .. }) = (&self.place.entry, &self.attempted);
        failure.after = session_state(entry, session);
        let ended = EndedProgram { entry, program, limits, run: self.client.activity.run() };
        self.services.runs.failed(&ended, self.run.get(), &mut self.reply, failure);
    }

    /// Notes what later programs should know of one that has ended well.
    fn note_end(&mut self) {
        let Attempted { program, limits, log, .. } = &self.attempted;
        if Runs::is_notable(&self.reply, log) {
            let ended = EndedProgram { entry: &self.place.entry, program, limits, run: self.client.activity.run() };
            self.services.runs.ended_well(&ended, &mut self.reply, log);
        }
    }

    /// Records that the run has ended.
    fn end_run(&mut self) {
        let Some(run) = self.run.get() else { return };
        let (runs, caller) = (&self.services.runs, self.place.entry.caller());
        if let Some(problem) = runs.ended(run, &self.reply, caller) {
            tracing::warn!(problem, "the end of a run was not stored");
        }
    }
}
