//! Logs each call that has ended, counts it, and traces it.

use std::sync::Arc;
use std::time::Duration;

use tracing::Span;

use crate::lang::ToolReply;
use crate::server::downstream::Downstreams;
use crate::server::identity::Identity;
use crate::server::telemetry::log;

use crate::server::calls::layer::{Answer, Call, Layer, Next};
use crate::server::calls::parts::Parts;

pub(in crate::server::calls) struct Traced {
    downstreams: Arc<Downstreams>,
    identity: Arc<Identity>,
}

impl Traced {
    pub(in crate::server::calls) fn new(parts: &Parts) -> Traced {
        Traced { downstreams: Arc::clone(&parts.downstreams), identity: Arc::clone(&parts.identity) }
    }

    /// Logs and counts a call that has ended.
    pub(in crate::server::calls) fn ended(
        &self,
        span: &Span,
        (server, tool): (&str, &str),
        took: Duration,
        reply: &ToolReply,
    ) {
        log::tool_call(&self.identity, span, server, tool, took, reply);
        self.downstreams.counted(server, took, reply);
    }

    /// Creates the span of a call.
    pub(in crate::server::calls) fn span(&self, (server, tool): (&str, &str)) -> Span {
        log::call_span(&self.identity, server, tool)
    }
}

impl Layer for Traced {
    fn call(&self, call: &mut Call<'_>, next: Next<'_>) -> Answer {
        let name = (&*call.given.server, &*call.given.tool);
        let span = self.span(name);
        let reply = span.in_scope(|| next.reply(call));
        if !matches!(reply, ToolReply::Ask(_)) {
            self.ended(&span, name, call.times.begun.unwrap_or(call.times.made).elapsed(), &reply);
        }
        Ok(reply)
    }
}
