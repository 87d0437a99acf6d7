//! A program with its plan, as a run that waits for a person.

use crate::lang::{DecidedPlan, Mark, Request, Suspended};
use crate::server::runs::Runs;
use crate::server::runs::stored::{Start, StoredRun};
use crate::server::sessions::Entry;
use crate::store;

use super::terms::{PlanTerms, asked};

impl Runs {
    /// Stores a program with its plan as a run that waits for a person, who decides on the calls of each tool that needs
    /// approval. Returns a sentence on how it goes on, with the identity of the run if there is one. Blocks.
    pub(super) fn keep_plan(
        &self,
        entry: &Entry,
        request: &Request,
        plan: &DecidedPlan,
        is_unread: bool,
    ) -> (String, Option<String>) {
        if !plan.unknown.is_empty() {
            let next = "It cannot be approved: the program may call any tool.";
            return (next.to_owned(), None);
        }
        if asked(plan).next().is_none() {
            return ("No tool in it needs approval: call again without `plan`.".to_owned(), None);
        }
        match self.try_to_keep_plan(entry, request, plan, is_unread) {
            Ok(Some(run)) => (
                format!(
                    "It is approved by the operator (`lispbox approvals show {run}`); then call with {{\"run\": \
                     \"{run}\"}} in place of `program`: the program runs, and stops before a call beyond the plan."
                ),
                Some(run),
            ),
            Ok(None) => ("It cannot be approved: the server has no `--store`.".to_owned(), None),
            Err(problem) => (format!("It cannot be approved: {problem}."), None),
        }
    }

    fn try_to_keep_plan(
        &self,
        entry: &Entry,
        request: &Request,
        plan: &DecidedPlan,
        is_unread: bool,
    ) -> Result<Option<String>, String> {
        if !self.are_stored() {
            return Ok(None);
        }
        let (terms, log) = (PlanTerms::new(plan, is_unread), PlanTerms::questions(plan));
        let run = Suspended::of(&request.program, request.limits.clone(), Mark::default(), log);
        let start = Start { data: request.data.clone(), session_version: entry.version() };
        let identity = store::handle()?;
        self.put_waiting(entry, &identity, &StoredRun::planned(&entry.handle, run, start, terms))?;
        Ok(Some(identity))
    }
}
