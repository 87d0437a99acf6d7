//! Plans that a person approves: the run of a program that has not begun, with a question for each tool.
//!
//! The questions are entries in the log of the run, as those about calls, under an identity that no call has. So a plan
//! is listed, shown, approved and denied as any run that waits. Once the run begins, its answers become the bounds to which
//! it is held, and the consent to its calls.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::lang::{self, CallId, CallRecord, DecidedCall, DecidedPlan, Decision, Logged, PlanBounds};
use crate::server::policy::{Grants, LaterCalls, PLANNED, Take, TakenCall, Verdict};

/// The reason why a call of a plan is made, as a clause.
const APPROVED: &str = "a person has approved the plan of the program";

/// The plan of a run, with the decisions of a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::server) struct PlanTerms {
    calls: Vec<PlanTerm>,
    /// True if the model had read no text that is not trusted when it wrote the program.
    pub(in crate::server) is_unread: bool,
}

/// The calls of one tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct PlanTerm {
    server: String,
    tool: String,
    /// The most calls; absent for any number.
    most: Option<u64>,
    /// The decision of a person, if the policy requires one.
    decision: Option<Decision>,
}

impl PlanTerms {
    /// Creates the terms of an undecided plan.
    pub(super) fn new(plan: &DecidedPlan, is_unread: bool) -> PlanTerms {
        let term = |call: &DecidedCall| PlanTerm {
            server: call.server.clone(),
            tool: call.tool.clone(),
            most: call.most,
            decision: None,
        };
        PlanTerms { calls: plan.calls.iter().map(term).collect(), is_unread }
    }

    /// Returns the questions about a plan, as the log of a run.
    pub(super) fn questions(plan: &DecidedPlan) -> Logged {
        let mut log = Logged::default();
        for (at, DecidedCall { server, tool, most, rule, .. }) in asked(plan).enumerate() {
            let arguments = json!({"most": most}).to_string();
            let question = lang::Question {
                id: CallId { form: PLANNED, branch: Vec::new(), ordinal: u32::try_from(at).unwrap_or(u32::MAX) },
                server: server.as_str().into(),
                tool: tool.as_str().into(),
                arguments: arguments.clone(),
                reason: rule.clone().unwrap_or_else(|| "its server does not answer".to_owned()),
                is_guarded: false,
            };
            log.calls.push(lang::Entry::asked(question, arguments));
        }
        log
    }

    /// Returns the terms with the decisions in a log.
    pub(super) fn decided(mut self, log: &Logged) -> PlanTerms {
        for entry in log.calls.iter().filter(|entry| entry.id.form == PLANNED) {
            let is_it = |term: &&mut PlanTerm| (&*term.server, &*term.tool) == (&*entry.server, &*entry.tool);
            if let Some(term) = self.calls.iter_mut().find(is_it) {
                term.decision = entry.decision.clone();
            }
        }
        self
    }

    /// Returns the bounds of a run that has made those calls.
    pub(in crate::server) fn bounds(&self, made: &[CallRecord]) -> PlanBounds {
        let bound = |term: &PlanTerm| (term.server.clone(), term.tool.clone(), term.most);
        let bounds = PlanBounds::new(self.calls.iter().map(bound)).after(made);
        self.calls.iter().fold(bounds, |bounds, term| match &term.decision {
            Some(Decision::Denied(reason)) => bounds.denying(&term.server, &term.tool, reason),
            _ => bounds,
        })
    }
}

/// Returns the calls of a plan on which a person must decide.
pub(super) fn asked(plan: &DecidedPlan) -> impl Iterator<Item = &DecidedCall> {
    plan.calls.iter().filter(|call| call.decision.as_deref() != Some(Verdict::Allow.key()))
}

/// Removes the questions about a plan from a log: what remains is about calls.
pub(in crate::server) fn without_plan(mut log: Logged) -> Logged {
    log.calls.retain(|entry| entry.id.form != PLANNED);
    log
}

/// The calls to which a person has consented with the plan of a run, before other grants.
pub(in crate::server) struct PlanGrants {
    /// The server and tool of each approved call; set once the run has been taken.
    approved: OnceLock<HashMap<String, Vec<String>>>,
    others: Option<Arc<dyn Grants>>,
}

impl PlanGrants {
    /// Creates the grants of an evaluation that may turn out to have a plan.
    pub(in crate::server) fn new(others: Option<Arc<dyn Grants>>) -> PlanGrants {
        PlanGrants { approved: OnceLock::new(), others }
    }

    /// Sets the plan of the evaluation.
    pub(in crate::server) fn set(&self, terms: &PlanTerms) {
        let mut approved: HashMap<String, Vec<String>> = HashMap::new();
        for term in terms.calls.iter().filter(|term| term.decision == Some(Decision::Approved)) {
            approved.entry(term.server.clone()).or_default().push(term.tool.clone());
        }
        let _ = self.approved.set(approved);
    }

    fn covers(&self, asked: &lang::Question) -> bool {
        // The plan was approved without knowledge of the values.
        let tools = self.approved.get().filter(|_| !asked.is_guarded).and_then(|plan| plan.get(&*asked.server));
        tools.is_some_and(|tools| tools.iter().any(|tool| **tool == *asked.tool))
    }
}

impl Grants for PlanGrants {
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
