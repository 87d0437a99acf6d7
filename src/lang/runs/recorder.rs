//! A host that logs the calls of a run, and answers those that are logged already.

use super::bounds::PlanBounds;
use super::log::RunLog;
use super::logged::{CallState, Draw, Entry, Timing};
use super::matched::{Replies, is_truncation_of};
use crate::host::{
    Audience, CallId, Catalogue, Decision, Found, Host, Question, Server, Tool, ToolCall, ToolError, ToolReply,
};
use std::collections::HashSet;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The host of a run, around the host that makes its calls; see the [module](crate::runs).
pub struct Recorder<H> {
    inner: H,
    log: Arc<RunLog>,
    /// True if a call without an entry is refused.
    is_strict: bool,
    /// The replies to requests of another run, which are not made again.
    replies: Option<Replies>,
    /// The plan to which the run is held.
    bounds: Option<Arc<PlanBounds>>,
    /// True if a person is asked about a call whose outcome is unknown.
    asks_about_unknown: bool,
    /// The calls on which this evaluation has the decision: they are not asked about again.
    decided: Mutex<HashSet<CallId>>,
}

impl<H> Recorder<H> {
    /// Creates the host of a run with that log.
    pub fn new(inner: H, log: Arc<RunLog>) -> Recorder<H> {
        Recorder {
            inner,
            log,
            is_strict: false,
            replies: None,
            bounds: None,
            asks_about_unknown: false,
            decided: Mutex::default(),
        }
    }

    /// Refuses calls without an entry, so that nothing is called.
    #[must_use]
    pub fn strict(self) -> Recorder<H> {
        Recorder { is_strict: true, ..self }
    }

    /// Answers calls without an entry by the replies to the same requests of another run.
    #[must_use]
    pub fn matching(self, replies: Replies) -> Recorder<H> {
        Recorder { replies: Some(replies), ..self }
    }

    /// Stops the run before a call that is not in these bounds, if there are any.
    #[must_use]
    pub fn within(self, bounds: Option<Arc<PlanBounds>>) -> Recorder<H> {
        Recorder { bounds, ..self }
    }

    /// Suspends the run again at a call whose outcome is unknown, instead of ending it.
    #[must_use]
    pub fn asking_about_unknown(self) -> Recorder<H> {
        Recorder { asks_about_unknown: true, ..self }
    }

    fn decided(&self) -> MutexGuard<'_, HashSet<CallId>> {
        self.decided.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the logged reply to a call, or the arguments that were approved for it.
    fn logged(&self, entry: Entry) -> Result<ToolReply, Option<Arc<str>>> {
        if self.asks_about_unknown && entry.state == CallState::Unknown {
            return Ok(ToolReply::Ask(Box::new(entry.unknown_question())));
        }
        if let Some(question) = &entry.question
            && !self.decided().contains(&entry.id)
        {
            // The branch is parked again, though the decision may be known: the order of the branches stays the same.
            return Ok(asked((**question).clone(), entry.arguments));
        }
        match entry.state {
            CallState::Done(reply) => Ok(reply),
            CallState::Forgotten => Ok(ToolReply::Diverged(format!(
                "the reply of `{}/{}` was too large to be recorded, so the run cannot be repeated",
                entry.server, entry.tool
            ))),
            CallState::Unknown => Ok(ToolReply::Diverged(format!(
                "it is not known whether `{}/{}` was called, and nobody has decided on it",
                entry.server, entry.tool
            ))),
            CallState::Open | CallState::Started => {
                let is_approved = entry.decision == Some(Decision::Approved);
                Err(entry.question.filter(|_| is_approved).map(|question| question.arguments.into()))
            }
        }
    }
}

/// Returns the reply to the evaluation for a call on which a person must decide. The evaluation does not see the arguments
/// as they will be sent, which may contain what the host adds to them.
fn asked(question: Question, given: String) -> ToolReply {
    ToolReply::Ask(Box::new(Question { arguments: given, ..question }))
}

/// Explains that a call is not made, because it has no recorded reply.
pub(super) fn unrecorded(call: &ToolCall) -> String {
    let arguments = cut(&call.arguments);
    format!(
        "the record has no reply to this call of `{}/{}`, so nothing was sent; its arguments are {arguments}",
        call.server, call.tool
    )
}

/// Cuts arguments for a message.
fn cut(text: &str) -> String {
    match text.len() {
        0..=300 => text.to_owned(),
        length => format!("{}… ({length} bytes)", &text[..text.floor_char_boundary(300)]),
    }
}

/// Describes the difference between a call and its entry, if any.
fn difference(entry: &Entry, call: &ToolCall) -> Option<String> {
    let (logged, made) = ((&*entry.server, &*entry.tool), (&*call.server, &*call.tool));
    let how = if entry.state == CallState::Forgotten {
        return None;
    } else if logged != made {
        format!("recorded was a call of `{}/{}`, now it is `{}/{}`", logged.0, logged.1, made.0, made.1)
    } else if entry.arguments != call.arguments && !is_truncation_of(&entry.arguments, &call.arguments) {
        format!(
            "recorded were the arguments {} of `{}/{}`, now they are {}",
            cut(entry.shown_arguments()),
            made.0,
            made.1,
            cut(&call.arguments)
        )
    } else {
        return None;
    };
    Some(format!("the run differs from its record, so nothing was sent: {how}"))
}

impl<H> Host for Recorder<H>
where
    H: Deref + Send + Sync,
    H::Target: Host,
{
    fn call(&self, mut call: ToolCall) -> ToolReply {
        call.approved = None;
        if let Some(Err(reply)) = self.bounds.as_ref().map(|bounds| bounds.count(&call)) {
            return reply;
        }
        match self.log.entry(&call.id) {
            Some(entry) => {
                if let Some(how) = difference(&entry, &call) {
                    return ToolReply::Diverged(how);
                }
                match self.logged(entry) {
                    Ok(reply) => return reply,
                    Err(approved) => call.approved = approved,
                }
            }
            None => {
                if let Some(reply) = self.log.add(&call) {
                    return reply;
                }
            }
        }
        if let Some(reply) = self.replies.as_ref().and_then(|replies| replies.take(&call)) {
            self.log.ended(&call.id, &reply, None);
            return reply;
        }
        if self.is_strict {
            return ToolReply::Diverged(unrecorded(&call));
        }
        let (id, given) = (call.id.clone(), call.arguments.clone());
        let begun = self.log.is_timed().then(|| (self.inner.now_millis(), self.inner.monotonic()));
        let reply = self.inner.call(call);
        let timing = begun.map(|(at, since)| {
            let took = self.inner.monotonic().saturating_sub(since);
            Timing { at, ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX) }
        });
        let is_kept = self.log.ended(&id, &reply, timing);
        match reply {
            ToolReply::Ask(question) if !is_kept => {
                self.inner.give_up(&id);
                ToolReply::Unapproved(format!(
                    "{}, and the arguments of the calls that wait for a decision take all the room of the run",
                    question.reason
                ))
            }
            ToolReply::Ask(question) => {
                self.decided().remove(&id);
                asked(*question, given)
            }
            reply => reply,
        }
    }

    fn decide(&self, questions: &[Question]) -> Vec<Decision> {
        // The questions of the log are those of the host; an isolated evaluation may claim anything.
        let asked: Vec<Option<Entry>> = questions.iter().map(|question| self.log.entry(&question.id)).collect();
        let is_open = |entry: &&Entry| entry.is_asked();
        let open: Vec<Question> =
            asked.iter().flatten().filter(is_open).filter_map(|entry| entry.question.as_deref().cloned()).collect();
        let mut answers = if open.is_empty() { Vec::new() } else { self.inner.decide(&open) }.into_iter();
        let decide = |entry: Option<Entry>| {
            let none = || Decision::Unavailable("no one was asked about it".to_owned());
            if self.asks_about_unknown && entry.as_ref().is_some_and(|entry| entry.state == CallState::Unknown) {
                return Decision::Pending;
            }
            let answer = entry.as_ref().filter(is_open).and_then(|_| answers.next());
            let Some(Entry { id, question: Some(question), decision, state, .. }) = entry else { return none() };
            if decision.is_none() && matches!(state, CallState::Done(_) | CallState::Forgotten) {
                // It was made under a grant, or a person has settled it: nothing is left to decide on, whatever holds now.
                self.decided().insert(id);
                return Decision::Approved;
            }
            let decision = match decision.or(answer).unwrap_or_else(none) {
                Decision::Pending if !self.log.is_kept() => Decision::Unavailable(format!(
                    "{}, and the run cannot wait for a person, because it is not recorded",
                    question.reason
                )),
                decision => decision,
            };
            self.log.decided(&id, &decision);
            self.decided().insert(id);
            match decision {
                // The evaluation makes the call again in any case, and learns nothing about other decisions.
                Decision::Covered(_) => Decision::Approved,
                decision => decision,
            }
        };
        asked.into_iter().map(decide).collect()
    }

    fn begin_form(&self, form: u32) {
        self.log.begin_form(form, self.log.is_timed().then(|| self.inner.now_millis()));
        self.inner.begin_form(form);
    }

    fn now_millis(&self) -> i64 {
        match self.log.draw(|| Draw::Clock(self.inner.now_millis())) {
            Draw::Clock(millis) => millis,
            Draw::Random(_) => self.inner.now_millis(),
        }
    }

    fn random(&self) -> u64 {
        match self.log.draw(|| Draw::Random(self.inner.random())) {
            Draw::Random(bits) => bits,
            Draw::Clock(_) => self.inner.random(),
        }
    }

    fn audience(&self) -> Audience {
        self.inner.audience()
    }

    fn takes_values(&self) -> bool {
        self.inner.takes_values()
    }

    fn servers(&self) -> Vec<Server> {
        self.inner.servers()
    }

    fn tools(&self, server: &str) -> Result<Vec<Arc<Tool>>, ToolError> {
        self.inner.tools(server)
    }

    fn tools_anew(&self, server: &str) -> Option<Vec<Arc<Tool>>> {
        self.inner.tools_anew(server)
    }

    fn instructions(&self, server: &str) -> Option<String> {
        self.inner.instructions(server)
    }

    fn denied(&self, server: &str) -> Vec<(String, String)> {
        self.inner.denied(server)
    }

    fn refused(&self, server: &str, tool: &str) {
        self.inner.refused(server, tool);
    }

    fn catalogue(&self) -> Catalogue {
        self.inner.catalogue()
    }

    fn search(&self, query: &str, most: usize) -> Found {
        self.inner.search(query, most)
    }

    fn was_sent(&self, call: &CallId) -> bool {
        // Only changes are marked; whatever else was sent makes no difference.
        self.log.entry(call).is_none_or(|entry| entry.is_sent)
    }

    fn was_made_before(&self, call: &CallId) -> bool {
        self.log.attempt() > 0 && self.log.is_answered(call)
    }

    fn note(&self, call: &CallId) -> Option<String> {
        self.inner.note(call)
    }

    fn give_up(&self, call: &CallId) {
        self.inner.give_up(call);
    }

    fn print(&self, text: &str) {
        self.inner.print(text);
    }

    fn fork_session(&self) -> Result<String, String> {
        self.log.fork(|| self.inner.fork_session())
    }

    fn runs(&self, run: Option<&str>) -> Result<String, String> {
        self.log.tell(|| self.inner.runs(run))
    }

    fn close_session(&self) -> Result<(), String> {
        self.inner.close_session()
    }

    fn held(&self) -> u64 {
        self.log.bytes() + self.inner.held()
    }

    fn monotonic(&self) -> Duration {
        self.inner.monotonic()
    }

    fn processor_time(&self) -> Option<Duration> {
        self.inner.processor_time()
    }

    fn cancelled(&self) -> bool {
        self.inner.cancelled()
    }
}
