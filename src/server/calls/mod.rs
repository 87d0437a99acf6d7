//! Tool calls: the way of a call from a program to a server, through an ordered chain of layers.
//!
//! A concern of a call is a [`Layer`](layer::Layer), in a file of its own, that knows nothing of the others: in [`layers`], or
//! in the room of the feature that it is a part of. [`Chain::new`] has the order, which is a security property. All layers run on the thread of the evaluation (or of its
//! branch), one after the other, and may block; futures are awaited there by [`Wait`](wait::Wait). The
//! thread writes a call to a process itself, and changes once, when the task that reads hands over the answer. A call over
//! HTTP changes twice: when the connection's task takes the request, too.
//!
//! Two designs were considered. Asynchronous services, as those of tower, would run on the threads of the runtime: each
//! record that has to be written before the call goes on (audit, run log) is then a message to the evaluation's thread or
//! to a blocking thread and one back, since the threads of the runtime must not block; that was the earlier design, with
//! three to seven changes of thread for each call and a protocol of announcements. Synchronous layers need none of that,
//! at the price of a thread for each call that waits, which an evaluation and its branches have anyway.

pub(in crate::server) mod activity;
pub(in crate::server) mod layer;
mod layers;
mod parts;
mod questions;
mod wait;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use crate::lang::{CallId, Decision, Question, ToolCall, ToolReply};
use crate::server::approvals::layers as approval;
use crate::server::downstream::Failure;

use crate::server::guards::layers as origins;
use crate::server::rehearsals::layers as rehearsal;

use layer::{Arguments, Call, Layer, Next, Times};
use layers::{
    arguments, audit, connection, lease, progress, repeats, retries, run_log, server, slots, telemetry, transport,
};
use questions::Questions;
use wait::Wait;

pub(in crate::server) use parts::{Features, Parts};

/// The layers of all calls of an evaluation.
struct Chain(Vec<Box<dyn Layer>>);

impl Chain {
    /// Puts the layers in order, from the program to the server. A layer that is off is left out.
    fn new(parts: &Parts) -> Chain {
        let Parts { downstreams, consent, features, .. } = parts;
        let Features { guarded, rehearsal: rehearsed, repeats: repeated } = features;
        let (audit, requests) = (downstreams.audit(), parts.requests.as_ref());
        let mut chain = Chain(Vec::with_capacity(19));
        // Nothing is done in a session that another process may have by now.
        chain.add(requests.cloned().map(lease::Leased));
        // Everything behind this is recorded: refusals, questions and failures as well as results.
        chain.add(audit.map(|audit| audit::Recorded::new(audit, parts)));
        chain.add([progress::Shown(Arc::clone(&parts.activity))]);
        chain.add([telemetry::Traced::new(parts)]);
        // A reply has an origin as soon as the program has it, whatever the outcome of the call.
        chain.add(guarded.clone().map(origins::Learned));
        // A question about a call that is not made needs no person.
        chain.add(rehearsed.clone().map(rehearsal::Asked));
        chain.add([slots::Limited::new(parts.slots)]);
        // A tool that is denied by its name does not start its server.
        chain.add([server::Found(Arc::clone(downstreams))]);
        // The layers from here on run again for each attempt, but the call is decided on once.
        chain.add([retries::Retried(Arc::clone(consent))]);
        chain.add([connection::Connected]);
        // Arguments are decided on as they will be sent, so they are repaired and checked before.
        chain.add([arguments::Checked(Arc::clone(consent))]);
        // Nobody is asked about a call that is stopped because an earlier program has made it.
        chain.add(repeated.clone().map(repeats::Stopped));
        // Policy, guards, limits and the consent of a person.
        chain.add([approval::Allowed(Arc::clone(consent))]);
        // A rehearsal has the decision that the call would have.
        chain.add(rehearsed.clone().map(rehearsal::Withheld));
        // A decision may have waited for a person or another process.
        chain.add(requests.cloned().map(lease::Leased));
        // A call is on record before anything is sent: in the log of its run, then in the audit log.
        chain.add(requests.cloned().map(run_log::Started));
        chain.add(audit.map(|_| audit::Intended));
        // The records may have taken their time: a grant is checked once more, directly before the call is sent.
        chain.add([approval::Held(Arc::clone(consent))]);
        chain.add([transport::Sent(Arc::clone(consent))]);
        chain
    }

    /// Adds a layer behind the others, if it is on.
    fn add<L: Layer + 'static>(&mut self, layer: impl IntoIterator<Item = L>) {
        self.0.extend(layer.into_iter().map(|layer| Box::new(layer) as Box<dyn Layer>));
    }
}

/// The tool calls of one evaluation.
pub(in crate::server) struct Calls {
    parts: Parts,
    chain: Chain,
    /// The calls that are under way or abandoned, each with the token that cancels it.
    ends: Mutex<HashMap<CallId, CancellationToken>>,
    /// Notes on calls that were answered.
    notes: Mutex<HashMap<CallId, String>>,
    questions: Questions,
}

impl Calls {
    /// Creates the calls of an evaluation.
    pub(in crate::server) fn new(parts: Parts) -> Calls {
        let chain = Chain::new(&parts);
        Calls { parts, chain, ends: Mutex::default(), notes: Mutex::default(), questions: Questions::default() }
    }

    /// Makes a call and waits for its reply. The reply to a call on which a person must decide is a question; see
    /// [`Calls::decide`].
    pub(in crate::server) fn make(&self, given: &ToolCall) -> ToolReply {
        let (audited, made) = self.questions.take(&given.id);
        let end = self.end_of(&given.id);
        let mut call = Call {
            given,
            times: Times { made, begun: None, sent: None, timeout: given.timeout },
            wait: self.waiting(end).until(Instant::now().checked_add(given.remaining)),
            audited,
            server: None,
            target: None,
            arguments: Arguments::default(),
            rule: None,
            is_allowed: false,
            note: None,
        };
        let reply = Next(&self.chain.0).reply(&mut call);
        self.ends().remove(&given.id);
        if matches!(reply, ToolReply::Ask(_)) {
            self.questions.ask(&given.id, call.audited, made);
        } else if let Some(note) = call.note {
            self.notes().insert(given.id.clone(), note);
        }
        reply
    }

    /// Returns what waits until `end` is cancelled.
    fn waiting(&self, end: CancellationToken) -> Wait<'_> {
        Wait::new(&self.parts.runtime, self.parts.requests.as_ref(), end)
    }

    /// Asks a person to decide on calls.
    pub(in crate::server) fn decide(&self, questions: &[Question]) -> Vec<Decision> {
        let wait = self.waiting(self.parts.cancel.clone());
        let decisions = wait.run(self.parts.consent.decide(questions)).unwrap_or_default();
        for (question, decision) in questions.iter().zip(&decisions) {
            if let Some(unwritten) = self.questions.settle(&self.parts, question, decision) {
                self.notes().insert(question.id.clone(), unwritten);
            }
        }
        decisions
    }

    /// Ends a call that the evaluation does not wait for any longer.
    pub(in crate::server) fn give_up(&self, call: &CallId) {
        if !self.questions.give_up(call) {
            self.end_of(call).cancel();
        }
    }

    /// Returns the note on a call that was answered, once.
    pub(in crate::server) fn note(&self, call: &CallId) -> Option<String> {
        self.notes().remove(call)
    }

    /// Runs a future that is no call, until the evaluation is to end.
    ///
    /// # Errors
    /// Returns [`Failure::Stopped`] if the evaluation has ended.
    pub(in crate::server) fn wait<T>(&self, work: impl Future<Output = T>) -> Result<T, Failure> {
        self.waiting(self.parts.cancel.clone()).run(work)
    }

    /// Returns the token that cancels a call.
    fn end_of(&self, call: &CallId) -> CancellationToken {
        self.ends().entry(call.clone()).or_insert_with(|| self.parts.cancel.child_token()).clone()
    }

    fn ends(&self) -> MutexGuard<'_, HashMap<CallId, CancellationToken>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notes(&self) -> MutexGuard<'_, HashMap<CallId, String>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
