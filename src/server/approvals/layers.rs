//! The layers of a call that decide on it.

use std::sync::Arc;

use crate::server::calls::layer::{Answer, Call, Layer, Next};
use crate::server::downstream::Failure;

use super::Consent;

/// Decides on a call by policy, guards, limits and grants, once for all attempts.
pub(in crate::server) struct Allowed(pub(in crate::server) Arc<Consent>);

impl Layer for Allowed {
    fn call(&self, call: &mut Call<'_>, next: Next<'_>) -> Answer {
        if call.is_allowed {
            return next.call(call);
        }
        let (server, tool) = (call.server(), call.tool());
        let unchecked = call.arguments.unchecked.as_deref();
        let ruling = server.ruling(&self.0, call.given, &tool, (&call.arguments.given, unchecked), call.remaining());
        let ruling = call.wait.run(ruling)?;
        if let Some(clause) = unchecked {
            call.note = Some(server.unchecked_note(&tool, &ruling.rule, clause));
        }
        call.rule = Some(ruling.rule);
        match ruling.refused {
            Some(refused) => Ok(refused),
            None => {
                call.is_allowed = true;
                next.call(call)
            }
        }
    }
}

/// Asks about a call again whose grant was revoked or has expired since it was decided on.
pub(in crate::server) struct Held(pub(in crate::server) Arc<Consent>);

impl Layer for Held {
    fn call(&self, call: &mut Call<'_>, next: Next<'_>) -> Answer {
        if let Some(asked) = call.wait.run(self.0.lapsed(&call.given.id))? {
            return Ok(asked);
        }
        // A call that has ended meanwhile is not sent.
        if call.wait.is_over() { Err(Failure::Stopped) } else { next.call(call) }
    }
}
