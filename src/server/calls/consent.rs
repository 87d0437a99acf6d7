//! Decides on a call by policy, guards, limits and grants, once for all attempts.

use std::sync::Arc;

use crate::server::policy::Consent;

use super::layer::{Answer, Call, Layer, Next};

pub(super) struct Allowed(pub(super) Arc<Consent>);

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
