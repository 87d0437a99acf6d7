//! A program that is planned: the tools that it can call are computed in its session, and nothing is evaluated.

use std::sync::Arc;

use crate::lang::{Environment, Host, Reply, Status};
use crate::server::admission::request::Refused;
use crate::server::downstream::Downstreams;
use crate::server::evaluations::dry_run::{DryProgram, DryRun};

/// The name that `data` binds.
const DATA: &str = "data";

/// Plans programs that call tools of these servers.
pub(in crate::server) struct Planning(pub(in crate::server) Arc<Downstreams>);

impl DryRun for Planning {
    fn name(&self) -> &'static str {
        "planned"
    }

    /// Plans the program, and keeps it as a run that waits if a person can approve the plan.
    fn reply(&self, program: DryProgram, session: &mut dyn Environment, host: Arc<dyn Host>) -> Result<Reply, Refused> {
        let DryProgram { request, entry, known, runs, .. } = program;
        let inputs: Vec<String> = request.data.iter().map(|_| DATA.to_owned()).collect();
        Ok(match session.plan(&request, &inputs, Arc::clone(&host)) {
            Ok(plan) => {
                let mut plan = self.0.decided(&plan, &*host);
                let (next, run) = runs.keep_plan(&entry, &request, &plan, known.is_unread());
                plan.next = next;
                Reply { plan: Some(plan), run, ..Reply::default() }
            }
            Err(failure) => {
                let status = if failure.limit.is_some() { Status::Limit } else { Status::Error };
                Reply { status, failure: Some(*failure), ..Reply::default() }
            }
        })
    }
}
