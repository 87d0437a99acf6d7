//! Stores that a call is about to be sent, if its run is stored and a second call would do harm.

use std::sync::Arc;

use crate::lang::ToolReply;
use crate::server::policy::Effect;
use crate::server::sessions::requests::SessionRequests;

use super::layer::{Answer, Call, Layer, Next};

pub(super) struct Started(pub(super) Arc<SessionRequests>);

impl Layer for Started {
    fn call(&self, call: &mut Call<'_>, next: Next<'_>) -> Answer {
        if Effect::is_harmless(&call.tool().tool.hints) {
            return next.call(call);
        }
        match self.0.starting(&call.given.id) {
            Ok(()) => next.call(call),
            Err(problem) => {
                call.rule = Some(problem.clone());
                Ok(ToolReply::Denied(problem))
            }
        }
    }
}
