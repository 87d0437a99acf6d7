//! Finds the server of a call, unless the policy denies the tool by its name.

use std::sync::Arc;

use crate::lang::ToolReply;
use crate::server::downstream::Downstreams;

use crate::server::calls::layer::{Answer, Call, Layer, Next};

pub(in crate::server::calls) struct Found(pub(in crate::server::calls) Arc<Downstreams>);

impl Layer for Found {
    fn call(&self, call: &mut Call<'_>, next: Next<'_>) -> Answer {
        let server = match self.0.find(&call.given.server) {
            Ok(server) => server,
            Err(error) => return Ok(ToolReply::Error(error)),
        };
        // A tool that is denied by name does not start the server.
        call.times.timeout = match server.admit(call.given) {
            Ok(timeout) => timeout,
            Err(rule) => {
                call.rule = Some(rule.clone());
                return Ok(ToolReply::Denied(rule));
            }
        };
        call.server = Some(Arc::clone(&server));
        let reply = next.call(call);
        // A server that has started has perhaps listed its tools, which rules name.
        self.0.log_unfit_rules();
        let secrets = self.0.secrets();
        call.note = call.note.take().map(|note| secrets.redact_own(note));
        reply.or_else(|failure| match failure.reply() {
            ToolReply::Error(error) => Ok(ToolReply::Error(secrets.redact_error(error))),
            reply => Ok(reply),
        })
    }
}
