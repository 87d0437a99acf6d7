//! The terms of a plan: the calls in it, and the decisions of a person.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::lang::{self, CallId, CallRecord, DecidedCall, DecidedPlan, Decision, Logged, PlanBounds};
use crate::server::approvals::PLANNED;
use crate::server::policy::Verdict;

/// The plan of a run, with the decisions of a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::server) struct PlanTerms {
    calls: Vec<PlanTerm>,
    /// True if the model had read no text that is not trusted when it wrote the program.
    pub(super) is_unread: bool,
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
    pub(in crate::server) fn decided(mut self, log: &Logged) -> PlanTerms {
        for entry in log.calls.iter().filter(|entry| entry.id.form == PLANNED) {
            let is_it = |term: &&mut PlanTerm| (&*term.server, &*term.tool) == (&*entry.server, &*entry.tool);
            if let Some(term) = self.calls.iter_mut().find(is_it) {
                term.decision = entry.decision.clone();
            }
        }
        self
    }

    /// Returns the server and tool of each call that a person has approved.
    pub(in crate::server) fn approved(&self) -> impl Iterator<Item = (&str, &str)> {
        let approved = self.calls.iter().filter(|term| term.decision == Some(Decision::Approved));
        approved.map(|term| (&*term.server, &*term.tool))
    }

    /// Returns the bounds of a run that has made those calls.
    pub(super) fn bounds(&self, made: &[CallRecord]) -> PlanBounds {
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
