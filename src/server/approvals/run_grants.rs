//! The calls to which a person has consented with their run, by its plan.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::lang;
use crate::server::runs::ResumedRun;

use super::{Grants, LaterCalls, Take, TakenCall};

/// The reason why a call of a plan is made, as a clause.
const APPROVED: &str = "a person has approved the plan of the program";

/// The calls to which a person has consented with the run, before other grants.
pub(in crate::server) struct RunGrants {
    /// The server and tool of each approved call; set once the run has been taken.
    approved: OnceLock<HashMap<String, Vec<String>>>,
    others: Option<Arc<dyn Grants>>,
}

impl RunGrants {
    /// Creates the grants of an evaluation whose run may turn out to have a plan.
    pub(in crate::server) fn new(others: Option<Arc<dyn Grants>>) -> RunGrants {
        RunGrants { approved: OnceLock::new(), others }
    }

    /// Sets the run of the evaluation.
    pub(in crate::server) fn set(&self, run: &ResumedRun) {
        let Some(plan) = run.plan() else { return };
        let mut approved: HashMap<String, Vec<String>> = HashMap::new();
        for (server, tool) in plan.approved() {
            approved.entry(server.to_owned()).or_default().push(tool.to_owned());
        }
        let _ = self.approved.set(approved);
    }

    fn covers(&self, asked: &lang::Question) -> bool {
        // The plan was approved without knowledge of the values.
        let tools = self.approved.get().filter(|_| !asked.is_guarded).and_then(|plan| plan.get(&*asked.server));
        tools.is_some_and(|tools| tools.iter().any(|tool| **tool == *asked.tool))
    }
}

impl Grants for RunGrants {
    fn covering(&self, asked: &[lang::Question]) -> Result<Vec<Option<String>>, String> {
        let mut covering: Vec<Option<String>> =
            asked.iter().map(|asked| self.covers(asked).then(|| APPROVED.to_owned())).collect();
        if let Some(others) = &self.others {
            let open: Vec<lang::Question> =
                asked.iter().zip(&covering).filter(|(_, by)| by.is_none()).map(|(asked, _)| asked.clone()).collect();
            let by_others = if open.is_empty() { Vec::new() } else { others.covering(&open)? };
            covering.iter_mut().filter(|by| by.is_none()).zip(by_others).for_each(|(by, other)| *by = other);
        }
        Ok(covering)
    }

    fn take(&self, asked: &lang::Question) -> Result<Take, String> {
        if self.covers(asked) {
            // The plan of a run that is under way does not change.
            return Ok(Take::Taken(TakenCall { by: APPROVED.to_owned(), holds: Arc::new(|| Ok(true)) }));
        }
        self.others.as_ref().map_or(Ok(Take::Uncovered), |others| others.take(asked))
    }

    fn give(&self, asked: &lang::Question, later: LaterCalls) -> Result<(), String> {
        self.others.as_ref().map_or(Ok(()), |others| others.give(asked, later))
    }
}
