//! Stops a program, once, before a call that a program before it has made, which did not end well.

use std::sync::Arc;

use crate::lang::ToolReply;
use crate::server::policy::{Effect, RepeatedCalls};
use crate::server::runs::Repeats;

use crate::server::calls::layer::{Answer, Call, Layer, Next};

/// The rule in the audit record of a call that is not made.
const RULE: &str = "a program that did not end well has made this call";

/// The note on a call that is answered by an earlier one.
const KEPT: &str = "answered by the call of a program that failed (`policy.repeats`)";

pub(in crate::server::calls) struct Stopped(pub(in crate::server::calls) Arc<Repeats>);

impl Layer for Stopped {
    fn call(&self, call: &mut Call<'_>, next: Next<'_>) -> Answer {
        if Effect::is_harmless(&call.tool().tool.hints) {
            return next.call(call);
        }
        let treatment = call.server().repeated_calls();
        let kept = || self.0.kept(call.given);
        let reply = match treatment {
            RepeatedCalls::Make => None,
            RepeatedCalls::Keep if let Some(reply) = kept() => {
                call.note = Some(KEPT.to_owned());
                Some(reply)
            }
            RepeatedCalls::Keep | RepeatedCalls::Ask => {
                let is_declared = Effect::of(&call.tool().tool.hints) != Effect::Unannotated;
                self.0.stop(call.given, is_declared).map(ToolReply::Repeated)
            }
        };
        match reply {
            Some(reply) => {
                call.rule = Some(RULE.to_owned());
                Ok(reply)
            }
            None => next.call(call),
        }
    }
}
