//! The layer of a call that records the origins of what its tool returns.

use crate::lang::ToolReply;
use crate::server::calls::layer::{Answer, Call, Layer, Next};

use super::Guarded;

pub(in crate::server) struct Learned(pub(in crate::server) Guarded);

impl Layer for Learned {
    fn call(&self, call: &mut Call<'_>, next: Next<'_>) -> Answer {
        let reply = next.reply(call);
        if !matches!(reply, ToolReply::Ask(_)) {
            self.0.returned(&call.given.server, &call.given.tool, &reply);
        }
        Ok(reply)
    }
}
