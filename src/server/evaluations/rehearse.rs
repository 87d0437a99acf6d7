//! A program that is rehearsed: evaluated in a copy of its session, without the calls that may change something.

use std::sync::Arc;

use crate::lang::{Environment, Host, Recorder, Rehearsed, RunLog, Status};
use crate::server::admission::request::Refused;
use lispbox_policy::Rehearsal;

use super::program::{Finished, ProgramRun};

impl ProgramRun {
    /// Evaluates the program in a copy of its session, and keeps the calls that were not made as a run that waits.
    ///
    /// # Errors
    /// Refuses if the audit record cannot be written, or if the session cannot be read or copied; nothing was evaluated
    /// then.
    pub(super) fn rehearse(
        mut self,
        rehearsal: &Rehearsal,
        session: &mut Box<dyn Environment>,
        host: Arc<dyn Host>,
    ) -> Result<Finished, Refused> {
        self.look_at(&mut **session)?;
        let mut copy = Arc::clone(&self.place.sandbox).environment();
        if session.bindings() > 0 {
            let copied = session.encode().and_then(|text| copy.decode(&text));
            copied.map_err(|problem| {
                let message =
                    format!("the session could not be copied for a rehearsal: {problem}; nothing was evaluated");
                Refused::new("SessionNotForked", message)
            })?;
        }
        self.known.add_words();
        if let Some(guarded) = &self.known.guarded {
            guarded.begin(&self.program.program, self.program.data.as_deref(), self.known.is_unread);
        }
        let log = RunLog::unkept();
        let (program, limits) = (self.program.program.clone(), self.program.limits.clone());
        let mut reply = copy.eval(self.program, Arc::new(Recorder::new(host, Arc::new(log))));
        reply.defined.clear();
        let mut next = String::new();
        if let Some(changes) = rehearsal.changes().filter(|_| reply.status == Status::Ok) {
            match self.services.runs.keep_rehearsal(&self.place.entry, (&program, limits), changes, self.run.key.take())
            {
                Ok(Some(run)) => {
                    next = format!(
                        "They are made once the operator has decided on each (`lispbox approvals show {run}`); then \
                         call with {{\"run\": \"{run}\"}} in place of `program`."
                    );
                    reply.run = Some(run);
                }
                Ok(None) => "They cannot be made later: the server has no `--store`.".clone_into(&mut next),
                Err(problem) => next = format!("They cannot be made later: {problem}."),
            }
        } else if reply.status != Status::Ok {
            "They cannot be made: the program did not come to its end.".clone_into(&mut next);
        }
        let calls = rehearsal.calls();
        if calls.is_empty() {
            next.clear();
        }
        reply.rehearsed = Some(Rehearsed { calls, next });
        self.known.guarded.iter().for_each(|guarded| guarded.replied(&program, &reply));
        let state = self.place.entry.used(&**session, &[], self.place.is_own);
        Ok(Finished::with(reply, state))
    }
}
