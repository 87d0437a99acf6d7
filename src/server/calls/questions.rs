//! The calls on which a person must decide, from the question to the decision.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::lang::{CallId, Decision, Question, ToolReply};
use crate::server::audit::AuditedCall;

use super::layers::audit::unwritten_outcome;
use super::layers::telemetry::Traced;
use super::parts::Parts;

#[derive(Default)]
pub(super) struct Questions(Mutex<HashMap<CallId, AskedCall>>);

/// A call on which a person must decide.
struct AskedCall {
    audited: Option<AuditedCall>,
    /// The time when the program made the call.
    since: Instant,
}

impl Questions {
    fn asked(&self) -> MutexGuard<'_, HashMap<CallId, AskedCall>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a call on which a person must decide.
    pub(super) fn ask(&self, id: &CallId, audited: Option<AuditedCall>, since: Instant) {
        self.asked().insert(id.clone(), AskedCall { audited, since });
    }

    /// Returns the audit record of a call that is made again after its question, and when it was first made.
    pub(super) fn take(&self, id: &CallId) -> (Option<AuditedCall>, Instant) {
        match self.asked().remove(id) {
            Some(AskedCall { audited, since }) => (audited, since),
            None => (None, Instant::now()),
        }
    }

    /// Completes the records of a call that is not made, by this decision. Returns why that failed, as a clause.
    pub(super) fn settle(&self, parts: &Parts, question: &Question, decision: &Decision) -> Option<String> {
        let reply = match decision {
            Decision::Pending => ToolReply::Ask(Box::new(question.clone())),
            decision => decision.refusal()?,
        };
        let AskedCall { audited, since } = self.asked().remove(&question.id)?;
        let (traced, name) = (Traced::new(parts), (&*question.server, &*question.tool));
        traced.ended(&traced.span(name), name, since.elapsed(), &reply);
        unwritten_outcome(audited, &reply, Some(question.reason.clone()), since)
    }

    /// Completes the record of a call that the evaluation gives up. Returns false if there is no question about it.
    pub(super) fn give_up(&self, id: &CallId) -> bool {
        let Some(AskedCall { audited, since }) = self.asked().remove(id) else { return false };
        // A record that cannot be written waits, and is in the log of the process.
        let _ = unwritten_outcome(audited, &ToolReply::Unapproved(String::new()), None, since);
        true
    }
}
