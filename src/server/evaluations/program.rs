//! One program in its session: the part of an evaluation that blocks.

use std::sync::Arc;
use std::time::Duration;

use crate::lang::{Environment, Host, Keep, Recorder, Reply, Request, RunLog, Sandbox, Status, Suspended};
use crate::server::admission::request::Refused;
use crate::server::admission::shutdown::Shutdown;
use crate::server::audit::{AuditLog, Record};
use crate::server::calls::activity::Activity;
use crate::server::calls::guarded::{Guarded, received};
use crate::server::downstream::Downstreams;
use crate::server::runs::ended::{EndedProgram, tell_attempt};
use crate::server::runs::planned::{PlanGrants, without_plan};
use crate::server::runs::recorded::Recording;
use crate::server::runs::rehearsal::Rehearsal;
use crate::server::runs::{AskedRun, Free, ResumedRun, Resumption, RunKey, Runs, most_logged, not_resumed};
use crate::server::secrets::Secrets;
use crate::server::sessions::handles::Handles;
use crate::server::sessions::persistence::{Begin, Persistence, SessionLease, failed, unwritable};
use crate::server::sessions::requests::SessionRequests;
use crate::server::sessions::{Entry, SessionState};
use crate::store::Key;

use super::attempts::{Beginning, session_state};
use super::hints::unbound;
use super::unwritten;
use super::waits::LONGEST_LEASE;
use super::withdrawn::ClientRequest;

/// A program with everything that its thread needs.
pub(super) struct ProgramRun {
    pub(super) program: Request,
    /// The run that is resumed.
    pub(super) resumption: Option<Resumption>,
    /// The key of a run that has not begun.
    pub(super) key: Option<RunKey>,
    pub(super) runs: Arc<Runs>,
    /// The extent to which the log is kept.
    pub(super) keep: Keep,
    /// Its session.
    pub(super) entry: Arc<Entry>,
    /// True if the session is that of the caller's connection.
    pub(super) is_own: bool,
    pub(super) persistence: Option<Arc<Persistence>>,
    pub(super) sandbox: Arc<dyn Sandbox>,
    pub(super) shutdown: Arc<Shutdown>,
    /// What others see of it while it is evaluated.
    pub(super) activity: Arc<Activity>,
    /// The request of its client.
    pub(super) request: Arc<ClientRequest>,
    /// The requests of the program for its session.
    pub(super) requests: Arc<SessionRequests>,
    /// The handles that the caller's connection knows, if the protocol revision tracks them.
    pub(super) handles: Option<Arc<Handles>>,
    /// The origins of values, if there are guards.
    pub(super) guarded: Option<Guarded>,
    /// True if the model can have read no text that is not trusted outside of this session.
    pub(super) is_unread: bool,
    /// The words of the user, if the client passes them.
    pub(super) words: Option<String>,
    /// Collects the calls that are not made, if the program is only rehearsed.
    pub(super) rehearsal: Option<Arc<Rehearsal>>,
    /// Decides on the plan, if the program is only planned.
    pub(super) planner: Option<Arc<Downstreams>>,
    /// Receives the consent to the calls of a plan.
    pub(super) consent: Option<Arc<PlanGrants>>,
    /// The audit log, if there is one, with the record that announces the program.
    pub(super) audit: Option<(Arc<AuditLog>, Secrets, Record)>,
    /// The time for which this thread waits while another evaluation uses the run or the session.
    pub(super) patience: Duration,
}

/// The outcome of an attempt to run a program.
pub(super) enum Ran {
    Finished(Box<Finished>),
    /// Nothing was done: another evaluation uses this record, which is awaited for that time.
    Busy(Box<ProgramRun>, Key, Duration),
}

impl From<Finished> for Ran {
    fn from(finished: Finished) -> Ran {
        Ran::Finished(Box::new(finished))
    }
}

/// A program that has ended.
pub(super) struct Finished {
    pub(super) reply: Reply,
    pub(super) state: SessionState,
    /// The copies of its session that it requested, to be kept in memory.
    pub(super) copies: Vec<Arc<Entry>>,
    /// The handle of a stored session that defines the name because of which the program failed.
    pub(super) definer: Option<String>,
    /// The run, if it is suspended.
    pub(super) asked: Option<AskedRun>,
}

impl Finished {
    /// Creates the outcome of a program that requested nothing for its session and does not wait.
    pub(super) fn with(reply: Reply, state: SessionState) -> Finished {
        Finished { reply, state, copies: Vec::new(), definer: None, asked: None }
    }
}

impl ProgramRun {
    /// Announces the program in the audit log, loads its session, evaluates it, and writes the session.
    ///
    /// # Errors
    /// Refuses if the announcement cannot be written, or if the session cannot be loaded or leased; nothing was
    /// evaluated then.
    pub(super) fn run(mut self, session: &mut Box<dyn Environment>, host: Arc<dyn Host>) -> Result<Ran, Refused> {
        if let Some(rehearsal) = self.rehearsal.take() {
            return self.rehearse(&rehearsal, session, host).map(Ran::from);
        }
        if let Some(planner) = self.planner.take() {
            return self.plan(&planner, session, host).map(Ran::from);
        }
        // Requests that resume the same run take turns at it: the first takes it.
        let (caller, stop) = (self.entry.caller().to_owned(), self.requests.stop());
        let resumption = self.resumption.clone();
        let taken = resumption.map(|run| self.runs.take(run, &caller, stop, self.patience)).transpose()?;
        let resumed = match taken {
            None => None,
            Some(Free::Now(resumed)) => Some(resumed),
            Some(Free::Later(key, _)) => {
                let patience = self.program.limits.total.max(LONGEST_LEASE);
                return Ok(Ran::Busy(Box::new(self), key, patience));
            }
        };
        let runs = Arc::clone(&self.runs);
        let ran = self.resume(resumed.as_ref(), session, host);
        if let (Err(_) | Ok(Ran::Busy(..)), Some(resumed)) = (&ran, resumed) {
            // Nothing was evaluated.
            runs.put_back(resumed);
        }
        ran
    }

    /// Writes the record that announces the program, if there is an audit log.
    ///
    /// # Errors
    /// Refuses if it cannot be written.
    fn announce(&mut self) -> Result<(), Refused> {
        let Some((audit, secrets, announced)) = self.audit.take() else { return Ok(()) };
        audit.write_program(announced, &self.program.program, &secrets).map_err(unwritten)?;
        Ok(())
    }

    /// Announces a program that changes nothing, and reads its session as it is in the store.
    ///
    /// # Errors
    /// Refuses if the announcement cannot be written, or if the session cannot be read.
    pub(super) fn look_at(&mut self, session: &mut dyn Environment) -> Result<(), Refused> {
        self.announce()?;
        self.persistence.as_ref().map_or(Ok(()), |persistence| persistence.refresh(&self.entry, session))
    }

    fn resume(
        mut self,
        resumed: Option<&ResumedRun>,
        session: &mut Box<dyn Environment>,
        host: Arc<dyn Host>,
    ) -> Result<Ran, Refused> {
        self.announce()?;
        let store = self.persistence.clone();
        let persistence = store.as_deref();
        let begun = persistence
            .map(|store| store.begin(&self.entry, &mut **session, &host, &self.requests, self.patience))
            .transpose()?;
        let lease = match begun {
            None => None,
            Some(Begin::Leased(lease)) => Some(lease),
            Some(Begin::Busy(key)) => return Ok(Ran::Busy(Box::new(self), key, LONGEST_LEASE)),
        };
        let version = self.entry.version();
        let stop = self.requests.stop();
        let begun = match (resumed, &self.key) {
            (None, Some(key)) => {
                match self.runs.begin(key, &self.entry, (&self.program, version), stop, self.patience)? {
                    Free::Now(begun) => Some(begun),
                    Free::Later(key, patience) => {
                        drop(lease);
                        return Ok(Ran::Busy(Box::new(self), key, patience));
                    }
                }
            }
            (None, None) => self.runs.first(&self.entry, &self.program, version, || self.activity.run(), stop)?,
            (Some(_), _) => None,
        };
        let (is_new, is_retry) = (resumed.is_none(), resumed.is_some_and(ResumedRun::is_retry));
        let resumed = resumed.or(begun.as_ref());
        resumed.iter().for_each(|resumed| self.activity.is_run(resumed.identity()));
        let outlives_request = resumed.is_some_and(ResumedRun::outlives_request);
        if let Some(reply) = resumed.and_then(ResumedRun::reply) {
            received(self.entry.origins(), &self.program.program, reply);
            let (reply, state) = (reply.clone(), self.entry.used(&**session, &[], self.is_own));
            return Ok(Finished::with(reply, state).into());
        }
        if let (Some(guarded), Some(words)) = (&self.guarded, &self.words) {
            guarded.origins().add_words(words);
        }
        let run = resumed.map(|resumed| resumed.run().clone().into_parts());
        let (mut from, logged) = run.map(|(_, mark, log)| (Box::new(mark), without_plan(log))).unzip();
        let plan = resumed.and_then(ResumedRun::plan);
        if let (Some(consent), Some(plan)) = (&self.consent, &plan) {
            consent.set(plan);
        }
        let made = from.as_ref().map_or(&[][..], |mark| &mark.calls);
        let bounds = plan.as_ref().map(|plan| Arc::new(plan.bounds(made)));
        if let Some(start) = resumed.and_then(ResumedRun::start) {
            (from, self.program.data) = (None, start.data.clone());
        }
        let journal = resumed.and_then(ResumedRun::journal);
        let is_journalled = journal.is_some();
        // What is cut off is evaluated again from where it was resumed.
        let keep = if is_journalled { Keep::Run } else { self.keep };
        let is_resumed = from.is_some();
        let has_data = self.program.data.is_some() || from.as_ref().is_some_and(|mark| !mark.inputs.is_empty());
        let beginning = Beginning::of(resumed, &self.entry, session, &self.sandbox, has_data);
        if let (Some(guarded), Some(logged)) = (&self.guarded, &logged) {
            guarded.returned_before(logged);
        }
        // The literals of a run that goes on are known; those of a rehearsed one are the arguments of its calls. Those of a
        // planned one are as old as its plan.
        let is_unread = plan.as_ref().filter(|_| !is_resumed).map_or(self.is_unread, |plan| plan.is_unread);
        if let Some(guarded) = self.guarded.as_ref().filter(|_| is_new || is_retry || plan.is_some() && !is_resumed) {
            guarded.begin(&self.program.program, self.program.data.as_deref(), is_unread);
        }
        let log = RunLog::new(logged.unwrap_or_default(), keep, most_logged(&self.program.limits));
        let log = if let Some(journal) = journal { log.kept_by(journal) } else { log };
        // A run that was not recorded from its beginning is not recorded at all.
        let so_far = resumed.and_then(ResumedRun::recorded);
        let options = self.runs.record().filter(|_| is_journalled && (so_far.is_some() || !is_resumed));
        let recording = options.and_then(|options| {
            Recording::begin(options, so_far.cloned(), &mut **session, self.program.data.as_ref(), Arc::clone(&host))
        });
        let host = recording.as_ref().map_or(host, Recording::host);
        let log = Arc::new(if recording.is_some() { log.timed() } else { log });
        if let Some(resumed) = resumed.filter(|_| is_journalled) {
            resumed.begin(version, &log).map_err(|problem| not_resumed(&problem))?;
        }
        self.activity.logs_in(&log);
        resumed.and_then(ResumedRun::promise).into_iter().for_each(|promise| self.activity.is_stored_by(promise));
        self.requests.log_in(Arc::clone(&log));
        self.program.from = from;
        self.requests.promise(log.forked());
        let (program, limits) = (self.program.program.clone(), self.program.limits.clone());
        let recorder = Recorder::new(host, Arc::clone(&log)).within(bounds);
        let mut reply = session.eval(self.program, Arc::new(recorder));
        reply.notes.extend(beginning.note.map(str::to_owned));
        self.guarded.iter().for_each(|guarded| guarded.replied(&program, &reply));
        let recording = recording.map(|recording| recording.end(&reply, &mut **session, log.logged()));
        let suspended = reply.mark.take().map(|mark| {
            let mut logged = log.logged();
            if recording.is_none() {
                logged.drop_before(mark.form);
            }
            // Concurrent calls are logged as they come; people see them in the order of the program.
            logged.calls.sort_by_key(|call| (call.id.form, [&call.id.branch[..], &[call.id.ordinal]].concat()));
            Suspended::of(&program, limits.clone(), *mark, logged)
        });
        // As by a shutdown: the next request continues the run.
        let is_cut_off = outlives_request && reply.status == Status::Cancelled;
        // A copy is one of the session at the end of the run.
        let is_cut_short = suspended.is_some() || is_cut_off;
        self.requests.promise(log.forked());
        let copies = match is_cut_short {
            true => Ok(Vec::new()),
            false => self.requests.copies(&self.entry, &mut **session, &self.sandbox, persistence),
        };
        let copies = copies.unwrap_or_else(|problem| {
            failed(&mut reply, "SessionNotForked", &format!("the session could not be copied: {problem}"));
            Vec::new()
        });
        // Another process may continue it from its record.
        let is_left = is_cut_off && resumed.is_some_and(ResumedRun::is_in_store);
        // The client does not know its run, and will not receive its reply.
        let is_lost = !resumed.is_some_and(ResumedRun::is_known) && self.request.is_withdrawn();
        let mut failure =
            if is_left { None } else { beginning.failed(&reply, is_lost, &log, &self.entry, persistence) };
        // A program that waits has not ended.
        let closes = self.requests.closes() && suspended.is_none();
        let closed = closes.then(|| lease.as_ref().map_or(Ok(()), SessionLease::close));
        let state = if let Some(Ok(())) = closed {
            *session = self.sandbox.environment();
            self.entry.close(self.is_own);
            // The reply lists only names that still exist.
            reply.defined.clear();
            SessionState::Closed
        } else {
            let state = match self.entry.used(&**session, &reply.defined, self.is_own) {
                // The run finds it.
                SessionState::Empty if suspended.is_some() && lease.is_some() => SessionState::New,
                state => state,
            };
            let is_stored = lease.is_some();
            match (lease, closed) {
                // The next request continues the run in the session as it was.
                (Some(lease), None) if is_cut_off => {
                    *session = self.sandbox.environment();
                    self.entry.forget();
                    reply.defined.clear();
                    drop(lease);
                }
                (Some(lease), Some(Err(problem))) => lease.goes_on(&self.entry, &problem, &mut reply),
                (Some(lease), _) => lease.end(&self.entry, &mut **session, &mut reply),
                (None, _) => match session.unkept() {
                    Some(problem) => unwritable(&mut reply, &self.entry, &problem),
                    None => self.entry.kept(),
                },
            }
            self.shutdown.explain(&mut reply, is_stored);
            state
        };
        let definer = self.handles.and_then(|handles| {
            persistence?.definer(&self.entry, unbound(&reply)?).filter(|handle| handles.has(handle))
        });
        // A run whose session was not kept cannot be resumed; the reply says so.
        let suspended = suspended.filter(|_| reply.status == Status::Suspended);
        let mut recording = recording;
        let asked = suspended.and_then(|run| match self.runs.keep(&self.entry, run, resumed, recording.take()) {
            Ok(asked) => Some(asked),
            Err(problem) => {
                let message = format!("the program cannot wait for approval, and has ended: {problem}");
                failed(&mut reply, "RunNotKept", &message);
                None
            }
        });
        if outlives_request && matches!(state, SessionState::New | SessionState::Known) {
            // The client may have received it from another process, or never.
            reply.session = Some(self.entry.handle.clone());
        }
        let goes_on = asked.is_some() || is_left;
        if !goes_on {
            // A session that could not be kept is a failure too.
            failure = failure.or_else(|| beginning.failed(&reply, is_lost, &log, &self.entry, None));
        }
        tell_attempt(&mut reply, &log);
        if let Some(mut failed) = failure {
            failed.after = session_state(&self.entry, &**session);
            let ended =
                EndedProgram { entry: &self.entry, program: &program, limits: &limits, run: self.activity.run() };
            self.runs.failed(&ended, resumed, &mut reply, failed, recording);
        } else if let Some(resumed) = resumed.filter(|_| !goes_on)
            && let Some(problem) = self.runs.ended(resumed, &reply, self.entry.caller(), recording)
        {
            tracing::warn!(problem, "the end of a run was not stored");
        }
        Ok(Finished { reply, state, copies, definer, asked }.into())
    }
}
