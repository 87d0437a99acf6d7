//! Logs that a call is about to be sent that may change something; stored first, if a second call would do harm.

use std::sync::Arc;

use crate::lang::ToolReply;
use crate::server::downstream::Failure;
use crate::server::policy::Effect;
use crate::server::sessions::requests::SessionRequests;

use crate::server::calls::layer::{Answer, Call, Layer, Next};

pub(in crate::server::calls) struct Started(pub(in crate::server::calls) Arc<SessionRequests>);

impl Layer for Started {
    fn call(&self, call: &mut Call<'_>, next: Next<'_>) -> Answer {
        let hints = call.tool().tool.hints;
        if Effect::of(&hints) == Effect::ReadOnly {
            return next.call(call);
        }
        if Effect::is_harmless(&hints) {
            self.0.changing(&call.given.id);
            return next.call(call);
        }
        match self.0.starting(&call.given.id) {
            Ok(()) => {
                let answer = next.call(call);
                if matches!(answer, Err(Failure::Unsent(_))) {
                    self.0.unsent(&call.given.id);
                }
                answer
            }
            Err(problem) => {
                call.rule = Some(problem.clone());
                Ok(ToolReply::Denied(problem))
            }
        }
    }
}
