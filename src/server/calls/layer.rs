//! A layer of the chain, and the call that goes through it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use crate::lang::{ToolCall, ToolReply};
use crate::server::audit::AuditedCall;
use crate::server::downstream::{CheckedTool, Downstream, Failure, ToolTransport};

use super::wait::Wait;

/// The reply to a call, or the reason why there is none yet: a layer further out may try again.
pub(super) type Answer = Result<ToolReply, Failure>;

/// One concern of every tool call.
pub(super) trait Layer: Send + Sync {
    /// Answers the call, or passes it on to the layers behind this one.
    fn call(&self, call: &mut Call<'_>, next: Next<'_>) -> Answer;
}

/// The layers behind the current one.
#[derive(Clone, Copy)]
pub(super) struct Next<'n>(pub(super) &'n [Box<dyn Layer>]);

impl Next<'_> {
    /// Passes the call on.
    pub(super) fn call(self, call: &mut Call<'_>) -> Answer {
        let (first, others) = self.0.split_first().expect("the last layer passes nothing on");
        first.call(call, Next(others))
    }

    /// Passes the call on; a failure becomes the reply.
    pub(super) fn reply(self, call: &mut Call<'_>) -> ToolReply {
        self.call(call).unwrap_or_else(Failure::reply)
    }
}

/// A call on its way through the chain.
pub(super) struct Call<'c> {
    /// The call as the program made it.
    pub(super) given: &'c ToolCall,
    /// The time when the program made it.
    pub(super) made: Instant,
    /// The time when it had a slot.
    pub(super) begun: Option<Instant>,
    /// The time when it was first sent.
    pub(super) sent: Option<Instant>,
    /// The time that the server has.
    pub(super) timeout: Duration,
    pub(super) wait: Wait<'c>,
    /// Its audit record.
    pub(super) audited: Option<AuditedCall>,
    pub(super) server: Option<Arc<Downstream>>,
    /// The tool, and the connection over which it was listed.
    pub(super) target: Option<(Arc<CheckedTool>, ToolTransport)>,
    /// The arguments as they will be sent.
    pub(super) arguments: Arguments,
    /// The rule that decided on the call, or why it is refused: a clause for the audit record.
    pub(super) rule: Option<String>,
    /// True once the layer `consent` has allowed it, which holds for all attempts. No other layer sets it.
    pub(super) is_allowed: bool,
    /// A note for the program, as a clause.
    pub(super) note: Option<String>,
}

/// The arguments as they will be sent.
#[derive(Default)]
pub(super) struct Arguments {
    pub(super) given: Map<String, Value>,
    /// The reason why they could not be checked against the schema of the tool, as a clause.
    pub(super) unchecked: Option<String>,
}

impl Call<'_> {
    /// The server; the layer `server` has found it.
    pub(super) fn server(&self) -> Arc<Downstream> {
        Arc::clone(self.server.as_ref().expect("the server is found before this layer"))
    }

    /// The tool; the layer `connection` has found it.
    pub(super) fn tool(&self) -> Arc<CheckedTool> {
        Arc::clone(&self.target.as_ref().expect("the tool is found before this layer").0)
    }

    /// The remaining time of the evaluation.
    pub(super) fn remaining(&self) -> Duration {
        self.given.remaining.saturating_sub(self.made.elapsed())
    }

    /// Adds a note behind those that the program has to read first.
    pub(super) fn add_note(&mut self, note: String) {
        self.note = Some(self.note.take().map_or(note.clone(), |earlier| format!("{note}; {earlier}")));
    }
}
