//! Collects the calls of a rehearsal that may change something, in place of making them.

use std::sync::Arc;

use serde_json::Value;

use crate::lang::ToolReply;
use crate::server::policy::Effect;
use lispbox_policy::Rehearsal;

use crate::server::calls::layer::{Answer, Call, Layer, Next};

/// Collects a call on which a person would have to decide.
pub(in crate::server) struct Asked(pub(in crate::server) Arc<Rehearsal>);

impl Layer for Asked {
    fn call(&self, call: &mut Call<'_>, next: Next<'_>) -> Answer {
        let question = match next.call(call)? {
            ToolReply::Ask(question) => question,
            reply => return Ok(reply),
        };
        let objection = question.is_guarded.then(|| question.reason.clone());
        call.rule = Some(question.reason);
        self.0.withhold(call.given.clone(), question.arguments, objection);
        Ok(ToolReply::Rehearsed)
    }
}

/// Collects a call that is allowed and does not only read.
pub(in crate::server) struct Withheld(pub(in crate::server) Arc<Rehearsal>);

impl Layer for Withheld {
    fn call(&self, call: &mut Call<'_>, next: Next<'_>) -> Answer {
        if Effect::of(&call.tool().tool.hints) == Effect::ReadOnly {
            return next.call(call);
        }
        let arguments = Value::Object(call.arguments.given.clone()).to_string();
        self.0.withhold(call.given.clone(), arguments, None);
        Ok(ToolReply::Rehearsed)
    }
}
