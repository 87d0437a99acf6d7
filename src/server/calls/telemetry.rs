//! Logs each call that has ended, counts it, and traces it.

use std::sync::Arc;
use std::time::Duration;

use tracing::Span;

use crate::lang::ToolReply;
use crate::server::downstream::Downstreams;
use crate::server::identity::Identity;
use crate::server::telemetry::log;

use super::layer::{Answer, Call, Layer, Next};
use super::parts::Parts;

pub(super) struct Traced {
    downstreams: Arc<Downstreams>,
    identity: Arc<Identity>,
}

impl Traced {
    pub(super) fn new(parts: &Parts) -> Traced {
        Traced { downstreams: Arc::clone(&parts.downstreams), identity: Arc::clone(&parts.identity) }
    }

    /// Logs and counts a call that has ended.
    pub(super) fn ended(&self, span: &Span, (server, tool): (&str, &str), took: Duration, reply: &ToolReply) {
        log::tool_call(&self.identity, span, server, tool, took, reply);
        self.downstreams.counted(server, took, reply);
    }

    /// Creates the span of a call.
    pub(super) fn span(&self, (server, tool): (&str, &str)) -> Span {
        log::call_span(&self.identity, server, tool)
    }
}

impl Layer for Traced {
    fn call(&self, call: &mut Call<'_>, next: Next<'_>) -> Answer {
        let name = (&*call.given.server, &*call.given.tool);
        let span = self.span(name);
        let reply = span.in_scope(|| next.reply(call));
        if !matches!(reply, ToolReply::Ask(_)) {
            self.ended(&span, name, call.begun.unwrap_or(call.made).elapsed(), &reply);
        }
        Ok(reply)
    }
}
