//! Asks about a call again whose grant was revoked or has expired since it was decided on.

use std::sync::Arc;

use crate::server::downstream::Failure;
use crate::server::policy::Consent;

use super::layer::{Answer, Call, Layer, Next};

pub(super) struct Held(pub(super) Arc<Consent>);

impl Layer for Held {
    fn call(&self, call: &mut Call<'_>, next: Next<'_>) -> Answer {
        if let Some(asked) = call.wait.run(self.0.lapsed(&call.given.id))? {
            return Ok(asked);
        }
        // A call that has ended meanwhile is not sent.
        if call.wait.is_over() { Err(Failure::Stopped) } else { next.call(call) }
    }
}
