//! Records the origins of the values that tools return, for guards.

use crate::lang::ToolReply;

use super::guarded::Guarded;
use super::layer::{Answer, Call, Layer, Next};

pub(super) struct Learned(pub(super) Guarded);

impl Layer for Learned {
    fn call(&self, call: &mut Call<'_>, next: Next<'_>) -> Answer {
        let reply = next.reply(call);
        if !matches!(reply, ToolReply::Ask(_)) {
            self.0.returned(&call.given.server, &call.given.tool, &reply);
        }
        Ok(reply)
    }
}
