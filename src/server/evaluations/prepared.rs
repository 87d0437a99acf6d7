//! A program that is ready to be evaluated: with the log of its run, and a host that uses it.

use std::sync::Arc;

use crate::lang::{Environment, Host, Keep, Logged, Mark, PlanBounds, Recorder, RunLog, Suspended};
use crate::server::admission::request::Refused;
use crate::server::runs::planned::{PlanTerms, without_plan};
use crate::server::runs::recorded::Recording;
use crate::server::runs::{ResumedRun, most_logged, not_resumed};

use super::attempts::Beginning;
use super::evaluated::{Attempted, Evaluated};
use super::leased::Leased;
use super::program::ProgramRun;

/// A program with the log of its run.
pub(super) struct Prepared<'r> {
    leased: Leased<'r>,
    host: Arc<dyn Host>,
    log: Arc<RunLog>,
    /// The plan to which the run is held.
    bounds: Option<Arc<PlanBounds>>,
    beginning: Beginning,
    /// The recording of the run beside its log, if runs are recorded.
    recording: Option<Recording>,
}

impl<'r> Leased<'r> {
    /// Prepares the session, the guards and the log, and records that the evaluation begins.
    ///
    /// # Errors
    /// Refuses if that cannot be recorded.
    pub(super) fn prepare(
        mut self,
        session: &mut Box<dyn Environment>,
        host: Arc<dyn Host>,
    ) -> Result<Prepared<'r>, Refused> {
        let run = self.run.get().map(|run| run.run().clone().into_parts());
        let (mut from, logged) = run.map(|(_, mark, log)| (Box::new(mark), without_plan(log))).unzip();
        let plan = self.run.get().and_then(ResumedRun::plan);
        if let (Some(consent), Some(plan)) = (&self.program.consent, &plan) {
            consent.set(plan);
        }
        let made = from.as_deref().map_or(&[][..], |mark: &Mark| &mark.calls);
        let bounds = plan.as_ref().map(|plan| Arc::new(plan.bounds(made)));
        if let Some(start) = self.run.get().and_then(ResumedRun::start) {
            (from, self.program.program.data) = (None, start.data.clone());
        }
        let is_resumed = from.is_some();
        let data = &self.program.program.data;
        let has_data = data.is_some() || from.as_ref().is_some_and(|mark| !mark.inputs.is_empty());
        let place = &self.program.place;
        let beginning = Beginning::of(self.run.get(), &place.entry, session, &place.sandbox, has_data);
        self.guard(logged.as_ref(), plan.as_ref(), is_resumed);
        let recording = self.record(is_resumed, session, &host);
        let host = recording.as_ref().map_or(host, Recording::host);
        let log = self.log(logged.unwrap_or_default(), recording.is_some())?;
        self.program.program.from = from;
        Ok(Prepared { leased: self, host, log, bounds, beginning, recording })
    }

    /// Tells the guards what the program may know when it begins.
    fn guard(&self, logged: Option<&Logged>, plan: Option<&PlanTerms>, is_resumed: bool) {
        let ProgramRun { known, program, .. } = &self.program;
        known.add_words();
        let Some(guarded) = &known.guarded else { return };
        if let Some(logged) = logged {
            guarded.returned_before(logged);
        }
        // The literals of a run that goes on are known; those of a rehearsed one are the arguments of its calls. Those of a
        // planned one are as old as its plan.
        let is_unread = plan.filter(|_| !is_resumed).map_or(known.is_unread, |plan| plan.is_unread);
        if self.run.is_new() || self.run.is_retry() || plan.is_some() && !is_resumed {
            guarded.begin(&program.program, program.data.as_deref(), is_unread);
        }
    }

    /// Begins to record what a run is given beside its calls, if runs are recorded.
    fn record(&self, is_resumed: bool, session: &mut Box<dyn Environment>, host: &Arc<dyn Host>) -> Option<Recording> {
        let run = self.run.get().filter(|run| run.is_journalled())?;
        // A run that was not recorded from its beginning is not recorded at all.
        let so_far = run.recorded();
        let options = self.program.services.runs.record().filter(|_| so_far.is_some() || !is_resumed)?;
        let data = self.program.program.data.as_ref();
        Recording::begin(options, so_far.cloned(), &mut **session, data, Arc::clone(host))
    }

    /// Creates the log of the run, and records that the evaluation begins.
    ///
    /// # Errors
    /// Refuses if that cannot be recorded.
    fn log(&self, logged: Logged, is_timed: bool) -> Result<Arc<RunLog>, Refused> {
        let ProgramRun { program, run: wanted, client, requests, .. } = &self.program;
        let journal = self.run.get().and_then(ResumedRun::journal);
        // What is cut off is evaluated again from where it was resumed.
        let keep = if journal.is_some() { Keep::Run } else { wanted.keep };
        let log = RunLog::new(logged, keep, most_logged(&program.limits));
        let log = if let Some(journal) = journal { log.kept_by(journal) } else { log };
        let log = Arc::new(if is_timed { log.timed() } else { log });
        if let Some(run) = self.run.get() {
            run.begin(self.version, &log).map_err(|problem| not_resumed(&problem))?;
        }
        client.activity.logs_in(&log);
        let promise = self.run.get().and_then(ResumedRun::promise);
        promise.into_iter().for_each(|promise| client.activity.is_stored_by(promise));
        requests.log_in(Arc::clone(&log));
        requests.promise(log.forked());
        Ok(log)
    }
}

impl<'r> Prepared<'r> {
    /// Evaluates the program.
    pub(super) fn evaluate(self, session: &mut Box<dyn Environment>) -> Evaluated<'r> {
        let Prepared { leased, host, log, bounds, beginning, recording } = self;
        let Leased { program: run, run: held, lease, .. } = leased;
        let ProgramRun { program: request, place, known, client, services, requests, .. } = run;
        let (program, limits) = (request.program.clone(), request.limits.clone());
        let recorder = Recorder::new(host, Arc::clone(&log)).within(bounds);
        let mut reply = session.eval(request, Arc::new(recorder));
        reply.notes.extend(beginning.note.map(str::to_owned));
        known.guarded.iter().for_each(|guarded| guarded.replied(&program, &reply));
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
        requests.promise(log.forked());
        let attempted = Attempted { program, limits, log, beginning };
        Evaluated { reply, attempted, suspended, recording, run: held, lease, place, client, requests, services }
    }
}
