//! A program that is ready to be evaluated: with the log of its run, and a host that uses it.

use std::sync::Arc;

use crate::lang::{Environment, Host, Keep, Logged, Mark, Recorder, RunLog, Suspended};
use crate::server::admission::request::Refused;
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
    beginning: Beginning,
}

impl<'r> Leased<'r> {
    /// Prepares the session, the host and the log, and records that the evaluation begins.
    ///
    /// # Errors
    /// Refuses if that cannot be recorded.
    pub(super) fn prepare(
        mut self,
        session: &mut Box<dyn Environment>,
        host: Arc<dyn Host>,
    ) -> Result<Prepared<'r>, Refused> {
        let begun = self.run.get().map(ResumedRun::begun);
        let (mut from, logged) = begun.map(|(mark, log)| (Box::new(mark), log)).unzip();
        if let (Some(consent), Some(run)) = (&self.program.consent, self.run.get()) {
            consent.set(run);
        }
        let made = from.as_deref().map_or(&[][..], |mark: &Mark| &mark.calls);
        let bounds = self.run.get().and_then(|run| run.bounds(made));
        if let Some(start) = self.run.get().and_then(ResumedRun::start) {
            (from, self.program.program.data) = (None, start.data.clone());
        }
        let data = &self.program.program.data;
        let has_data = data.is_some() || from.as_ref().is_some_and(|mark| !mark.inputs.is_empty());
        let place = &self.program.place;
        let beginning = Beginning::of(self.run.get(), &place.entry, session, &place.sandbox, has_data);
        self.tell_known(logged.as_ref());
        let host = match self.run.get() {
            Some(run) => run.observed_by(&self.program.services.runs, &mut **session, data.as_ref(), host),
            None => host,
        };
        let log = self.log(logged.unwrap_or_default())?;
        let host = Arc::new(Recorder::new(host, Arc::clone(&log)).within(bounds));
        self.program.program.from = from;
        Ok(Prepared { leased: self, host, log, beginning })
    }

    /// Tells what the program may know when it begins.
    fn tell_known(&self, logged: Option<&Logged>) {
        let ProgramRun { known, program, .. } = &*self.program;
        known.add_words();
        logged.iter().for_each(|logged| known.returned_before(logged));
        // The literals of a run that goes on are known; those of one that was approved before are as old as the question.
        let approved = self.run.get().and_then(ResumedRun::begins_unread);
        if self.run.is_new() || self.run.is_retry() || approved.is_some() {
            known.begin(program, approved.unwrap_or(known.is_unread()));
        }
    }

    /// Creates the log of the run, and records that the evaluation begins.
    ///
    /// # Errors
    /// Refuses if that cannot be recorded.
    fn log(&self, logged: Logged) -> Result<Arc<RunLog>, Refused> {
        let ProgramRun { program, run: wanted, client, requests, .. } = &*self.program;
        let journal = self.run.get().and_then(ResumedRun::journal);
        // What is cut off is evaluated again from where it was resumed.
        let keep = if journal.is_some() { Keep::Run } else { wanted.keep };
        let log = RunLog::new(logged, keep, most_logged(&program.limits));
        let log = if let Some(journal) = journal { log.kept_by(journal) } else { log };
        let is_observed = self.run.get().is_some_and(ResumedRun::is_observed);
        let log = Arc::new(if is_observed { log.timed() } else { log });
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
        let Prepared { leased, host, log, beginning } = self;
        let Leased { program: run, run: held, lease, .. } = leased;
        let ProgramRun { program: request, place, known, client, services, requests, .. } = *run;
        let (program, limits) = (request.program.clone(), request.limits.clone());
        let mut reply = Box::new(session.eval(request, host));
        reply.notes.extend(beginning.note.map(str::to_owned));
        known.replied(&program, &reply);
        held.get().iter().for_each(|run| run.observes_end(&reply, &mut **session, || log.logged()));
        let suspended = reply.mark.take().map(|mark| {
            let mut logged = log.logged();
            if !held.get().is_some_and(ResumedRun::is_observed) {
                logged.drop_before(mark.form);
            }
            // Concurrent calls are logged as they come; people see them in the order of the program.
            logged.calls.sort_by_key(|call| (call.id.form, [&call.id.branch[..], &[call.id.ordinal]].concat()));
            Suspended::of(&program, limits.clone(), *mark, logged)
        });
        requests.promise(log.forked());
        let attempted = Attempted { program, limits, log, beginning };
        Evaluated { reply, attempted, suspended, run: held, lease, place, client, requests, services }
    }
}
