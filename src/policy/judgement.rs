//! The decision of a policy on one call: its rules, its guards, an earlier approval, and its limits, in this order.

use serde_json::{Map, Value};

use lispbox_lang::ToolHints;

use crate::origins::Origins;
use crate::rules::{Decision, Objection, Policy, ToolName, Verdict};

/// A call on which a policy decides.
pub struct JudgedCall<'c> {
    /// The name of the tool among the others.
    pub name: &'c ToolName<'c>,
    /// What the tool declares about its effects.
    pub hints: &'c ToolHints,
    /// The schema of its arguments.
    pub schema: &'c Value,
    /// The arguments as they will be sent.
    pub arguments: &'c Map<String, Value>,
    /// False if the arguments could not be checked against the schema.
    pub is_checked: bool,
    /// What a person has approved.
    pub approval: Approval,
}

/// What a person has approved of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// Nothing: they were not asked.
    None,
    /// The call with exactly these arguments.
    These,
    /// The call with other arguments.
    Others,
}

/// The decision of a policy on one call, with the rule behind it as a clause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The call is made.
    Allowed(String),
    /// The call is refused.
    Denied(String),
    /// A person must decide.
    Asked {
        /// The rule.
        rule: String,
        /// True if the values of the arguments are the reason.
        is_guarded: bool,
    },
}

impl Policy {
    /// Decides on a call. `count` counts it against the limits; it is not called for what is denied anyway, nor for a call
    /// that a person has approved, which was counted when they were asked.
    #[doc(hidden)]
    pub fn judge(
        &self,
        call: &JudgedCall<'_>,
        origins: Option<&Origins>,
        count: impl FnOnce() -> Result<(), String>,
    ) -> Judgement {
        let JudgedCall { name, hints, schema, arguments, is_checked, approval } = *call;
        let Decision { verdict, rule } =
            if is_checked { self.decide_on(name, hints) } else { self.decide_unchecked(name, hints) };
        if verdict == Verdict::Deny {
            return Judgement::Denied(rule);
        }
        let objection = match self.objection(name, schema, arguments, origins) {
            Some(Objection { verdict: Verdict::Deny, rule }) => return Judgement::Denied(rule),
            objection => objection,
        };
        // The person has seen these arguments.
        if approval == Approval::These {
            return Judgement::Allowed(format!("{rule}; a person said yes"));
        }
        if let Err(used_up) = count() {
            return Judgement::Denied(used_up);
        }
        let is_guarded = objection.is_some();
        match (objection, verdict) {
            (Some(objection), _) => Judgement::Asked { rule: objection.rule, is_guarded },
            (None, Verdict::Allow) if approval == Approval::None => Judgement::Allowed(rule),
            // What a person has approved are other arguments, as of a rehearsal: these are asked about, whatever the policy.
            (None, Verdict::Allow) => {
                let rule = "the arguments are not those that a person has approved".to_owned();
                Judgement::Asked { rule, is_guarded }
            }
            (None, _) => Judgement::Asked { rule, is_guarded },
        }
    }
}
