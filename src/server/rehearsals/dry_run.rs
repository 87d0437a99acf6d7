//! A program that is rehearsed: evaluated in a copy of its session, without the calls that may change something.

use std::sync::Arc;

use crate::lang::{Environment, Host, Recorder, Rehearsed, Reply, RunLog, Status};
use crate::server::admission::request::Refused;
use crate::server::calls::Features;
use crate::server::evaluations::dry_run::{DryProgram, DryRun};
use crate::server::runs::{RunKey, Runs};
use crate::server::sessions::Entry;
use lispbox_policy::Rehearsal;

/// Rehearses one program.
#[derive(Default)]
pub(in crate::server) struct Rehearsing(Arc<Rehearsal>);

impl DryRun for Rehearsing {
    fn name(&self) -> &'static str {
        "rehearsed"
    }

    fn prepare(&self, features: &mut Features) {
        features.rehearsal = Some(Arc::clone(&self.0));
    }

    /// Evaluates the program in a copy of its session, and keeps the calls that were not made as a run that waits.
    ///
    /// # Errors
    /// Refuses if the session cannot be copied; nothing was evaluated then.
    fn reply(&self, program: DryProgram, session: &mut dyn Environment, host: Arc<dyn Host>) -> Result<Reply, Refused> {
        let DryProgram { request, entry, sandbox, known, runs, key } = program;
        let mut copy = sandbox.environment();
        if session.bindings() > 0 {
            let copied = session.encode().and_then(|text| copy.decode(&text));
            copied.map_err(|problem| {
                let message =
                    format!("the session could not be copied for a rehearsal: {problem}; nothing was evaluated");
                Refused::new("SessionNotForked", message)
            })?;
        }
        known.add_words();
        known.begin(&request, known.is_unread());
        let (text, limits) = (request.program.clone(), request.limits.clone());
        let mut reply = copy.eval(request, Arc::new(Recorder::new(host, Arc::new(RunLog::unkept()))));
        reply.defined.clear();
        let calls = self.0.calls();
        let next = self.keep(&mut reply, (&runs, &entry), (&text, limits), key);
        let next = if calls.is_empty() { String::new() } else { next };
        reply.rehearsed = Some(Rehearsed { calls, next });
        known.replied(&text, &reply);
        Ok(reply)
    }
}

impl Rehearsing {
    /// Keeps the calls that were not made as a run that waits. Returns how they are made, as a sentence.
    fn keep(
        &self,
        reply: &mut Reply,
        (runs, entry): (&Runs, &Entry),
        program: (&str, crate::lang::Limits),
        key: Option<RunKey>,
    ) -> String {
        if reply.status != Status::Ok {
            return "They cannot be made: the program did not come to its end.".to_owned();
        }
        let Some(changes) = self.0.changes() else { return String::new() };
        match runs.keep_rehearsal(entry, program, changes, key) {
            Ok(Some(run)) => {
                let next = format!(
                    "They are made once the operator has decided on each (`lispbox approvals show {run}`); then call with \
                     {{\"run\": \"{run}\"}} in place of `program`."
                );
                reply.run = Some(run);
                next
            }
            Ok(None) => "They cannot be made later: the server has no `--store`.".to_owned(),
            Err(problem) => format!("They cannot be made later: {problem}."),
        }
    }
}
