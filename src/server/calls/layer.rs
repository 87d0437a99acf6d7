//! A layer of the chain, and the call that goes through it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use crate::lang::{ToolCall, ToolReply};
use crate::server::audit::AuditedCall;
use crate::server::downstream::{CheckedTool, Downstream, Failure, ToolTransport};

use super::wait::Wait;

/// The reply to a call, or the reason why there is none yet: a layer further out may try again.
pub(in crate::server) type Answer = Result<ToolReply, Failure>;

/// One concern of every tool call.
pub(in crate::server) trait Layer: Send + Sync {
    /// Answers the call, or passes it on to the layers behind this one.
    fn call(&self, call: &mut Call<'_>, next: Next<'_>) -> Answer;
}

/// The layers behind the current one.
#[derive(Clone, Copy)]
pub(in crate::server) struct Next<'n>(pub(in crate::server) &'n [Box<dyn Layer>]);

impl Next<'_> {
    /// Passes the call on.
    pub(in crate::server) fn call(self, call: &mut Call<'_>) -> Answer {
        let (first, others) = self.0.split_first().expect("the last layer passes nothing on");
        first.call(call, Next(others))
    }

    /// Passes the call on; a failure becomes the reply.
    pub(in crate::server) fn reply(self, call: &mut Call<'_>) -> ToolReply {
        self.call(call).unwrap_or_else(Failure::reply)
    }
}

/// A call on its way through the chain.
pub(in crate::server) struct Call<'c> {
    /// The call as the program made it.
    pub(in crate::server) given: &'c ToolCall,
    pub(in crate::server) times: Times,
    pub(in crate::server) wait: Wait<'c>,
    /// Its audit record.
    pub(in crate::server) audited: Option<AuditedCall>,
    pub(in crate::server) server: Option<Arc<Downstream>>,
    /// The tool, and the connection over which it was listed.
    pub(in crate::server) target: Option<(Arc<CheckedTool>, ToolTransport)>,
    /// The arguments as they will be sent.
    pub(in crate::server) arguments: Arguments,
    /// The rule that decided on the call, or why it is refused: a clause for the audit record.
    pub(in crate::server) rule: Option<String>,
    /// True once the layer of approvals has allowed it, which holds for all attempts. No other layer sets it.
    pub(in crate::server) is_allowed: bool,
    /// A note for the program, as a clause.
    pub(in crate::server) note: Option<String>,
}

/// The times of a call.
pub(in crate::server) struct Times {
    /// The time when the program made it.
    pub(in crate::server) made: Instant,
    /// The time when it had a slot.
    pub(in crate::server) begun: Option<Instant>,
    /// The time when it was first sent.
    pub(in crate::server) sent: Option<Instant>,
    /// The time limit of the server.
    pub(in crate::server) timeout: Duration,
}

/// The arguments as they will be sent.
#[derive(Default)]
pub(in crate::server) struct Arguments {
    pub(in crate::server) given: Map<String, Value>,
    /// The reason why they could not be checked against the schema of the tool, as a clause.
    pub(in crate::server) unchecked: Option<String>,
}

impl Call<'_> {
    /// The server; the layer `server` has found it.
    pub(in crate::server) fn server(&self) -> Arc<Downstream> {
        Arc::clone(self.server.as_ref().expect("the server is found before this layer"))
    }

    /// The tool; the layer `connection` has found it.
    pub(in crate::server) fn tool(&self) -> Arc<CheckedTool> {
        Arc::clone(&self.target.as_ref().expect("the tool is found before this layer").0)
    }

    /// The remaining time of the evaluation.
    pub(in crate::server) fn remaining(&self) -> Duration {
        self.given.remaining.saturating_sub(self.times.made.elapsed())
    }

    /// Adds a note behind those that the program has to read first.
    pub(in crate::server) fn add_note(&mut self, note: String) {
        self.note = Some(self.note.take().map_or(note.clone(), |earlier| format!("{note}; {earlier}")));
    }
}
