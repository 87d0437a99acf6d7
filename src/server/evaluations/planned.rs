//! A program that is planned: the tools that it can call are computed in its session, and nothing is evaluated.

use std::sync::Arc;

use crate::lang::{Environment, Host, Reply, Status};
use crate::server::admission::request::Refused;
use crate::server::downstream::Downstreams;

use super::program::{Finished, ProgramRun};

/// The name that `data` binds.
const DATA: &str = "data";

impl ProgramRun {
    /// Plans the program, and keeps it as a run that waits if a person can approve the plan.
    ///
    /// # Errors
    /// Refuses if the audit record cannot be written, or if the session cannot be read.
    pub(super) fn plan(
        mut self,
        downstreams: &Downstreams,
        session: &mut Box<dyn Environment>,
        host: Arc<dyn Host>,
    ) -> Result<Finished, Refused> {
        self.look_at(&mut **session)?;
        let inputs: Vec<String> = self.program.data.iter().map(|_| DATA.to_owned()).collect();
        let reply = match session.plan(&self.program, &inputs, Arc::clone(&host)) {
            Ok(plan) => {
                let mut plan = downstreams.decided(&plan, &*host);
                let (next, run) =
                    self.services.runs.keep_plan(&self.place.entry, &self.program, &plan, self.known.is_unread);
                plan.next = next;
                Reply { plan: Some(plan), run, ..Reply::default() }
            }
            Err(failure) => {
                let status = if failure.limit.is_some() { Status::Limit } else { Status::Error };
                Reply { status, failure: Some(*failure), ..Reply::default() }
            }
        };
        let state = self.place.entry.used(&**session, &[], self.place.is_own);
        Ok(Finished::with(reply, state))
    }
}
