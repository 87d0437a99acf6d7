//! Makes a call again that was lost with its connection, if that is harmless. Retries count towards its timeout.

use std::sync::Arc;

use crate::lang::ToolError;
use crate::server::approvals::Consent;
use crate::server::downstream::Failure;

use crate::server::calls::layer::{Answer, Call, Layer, Next};

/// Maximum number of retries of a call.
const RETRIES: u32 = 2;

pub(in crate::server::calls) struct Retried(pub(in crate::server::calls) Arc<Consent>);

impl Layer for Retried {
    fn call(&self, call: &mut Call<'_>, next: Next<'_>) -> Answer {
        let reply = attempts(call, next);
        self.0.ended(&call.given.id);
        reply
    }
}

fn attempts(call: &mut Call<'_>, next: Next<'_>) -> Answer {
    let mut lost: Option<ToolError> = None;
    for retries_left in (0..=RETRIES).rev() {
        call.wait.attempt_until(call.times.sent.map(|sent| sent + call.times.timeout));
        match (next.call(call), lost.take()) {
            (Err(Failure::Unsent(error)), _) if retries_left > 0 => {
                let (server, tool) = (&*call.given.server, &*call.given.tool);
                tracing::warn!(server, tool, reason = error.message, "a call is made again");
                lost = Some(error);
            }
            (Err(Failure::NotStarted(error)), Some(lost)) => {
                let suggestion = error.and_then(|error| error.suggestion);
                return Err(Failure::Final(ToolError { suggestion, ..lost }));
            }
            (answer, _) => return answer,
        }
    }
    unreachable!("the last attempt returns")
}
