//! The log of a run.

use crate::host::{CallId, Decision, Question, ToolCall, ToolReply};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most different readings of the clock that are logged for a form. Beyond them, the clock that the run sees moves in
/// steps of [`COARSE_MILLIS`], so that the log stays small.
const MOST_READINGS: usize = 10_000;

const COARSE_MILLIS: i64 = 100;

/// A host call of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The identity of the call within the run.
    pub id: CallId,
    /// The server of the tool.
    pub server: Arc<str>,
    /// The tool.
    pub tool: Arc<str>,
    /// The arguments as the program gave them: the text of a JSON object.
    pub arguments: String,
    /// The question that a person is asked about the call, if its outcome depends on one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Box<Question>>,
    /// The decision of the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// The state of the call.
    pub state: CallState,
    /// True once a call that may change something was about to be sent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_sent: bool,
}

impl Entry {
    /// Returns the size of its texts in bytes.
    pub fn bytes(&self) -> u64 {
        let reply = match &self.state {
            CallState::Done(ToolReply::Error(error)) => error.message.len() as u64,
            CallState::Done(ToolReply::Denied(text) | ToolReply::Unapproved(text) | ToolReply::Diverged(text)) => {
                text.len() as u64
            }
            CallState::Done(reply) => reply.bytes(),
            CallState::Open | CallState::Started | CallState::Forgotten | CallState::Unknown => 0,
        };
        let question = self.question.as_ref().map_or(0, |question| question.arguments.len() + question.reason.len());
        // The names and the identity are small.
        reply + (self.arguments.len() + question + 200) as u64
    }
}

/// The state of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum CallState {
    /// It has not been sent.
    Open,
    /// It is about to be sent, or was sent and has not been answered.
    Started,
    /// It has ended with this reply.
    Done(ToolReply),
    /// It has ended with a reply that the log has no room for.
    Forgotten,
    /// It was started by a process that has died: its effect may have happened, or not.
    Unknown,
}

/// The content of a log, as it is stored with a suspended run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Logged {
    /// The calls, in the order in which they began.
    pub calls: Vec<Entry>,
    /// The clock readings and seeds by form, each with the number of times that it was read in a row.
    pub draws: BTreeMap<u32, Vec<(Draw, u32)>>,
}

impl Logged {
    /// Prepares the log of a process that has died for a resumed run: a call that was started is made again if that is
    /// harmless, as for a tool that changes nothing or is idempotent; otherwise its outcome is unknown, and a person
    /// [settles](Logged::settle) it.
    pub fn recover(&mut self, is_harmless: impl Fn(&Entry) -> bool) {
        for entry in self.calls.iter_mut().filter(|entry| entry.state == CallState::Started) {
            entry.state = if is_harmless(entry) { CallState::Open } else { CallState::Unknown };
        }
    }

    /// Prepares the log of a run that was cut off in the middle, in whatever way: like [`Logged::recover`], and a call that
    /// was given up before it was answered is made again if it was not sent, and is unknown otherwise.
    pub fn cut_off(&mut self) {
        self.recover(|_| false);
        for entry in self.calls.iter_mut().filter(|entry| entry.state == CallState::Done(ToolReply::Stopped)) {
            entry.state = if entry.is_sent { CallState::Unknown } else { CallState::Open };
        }
    }

    /// Drops what belongs to forms before that one.
    pub fn drop_before(&mut self, form: u32) {
        self.calls.retain(|entry| entry.id.form >= form);
        self.draws.retain(|drawn, _| *drawn >= form);
    }

    /// Returns the calls of which nobody knows whether they happened.
    pub fn unknown(&self) -> impl Iterator<Item = &Entry> {
        self.calls.iter().filter(|entry| entry.state == CallState::Unknown)
    }

    /// Records what a person has found out about an unknown call: that it happened, with its reply, or that it did not,
    /// so that it is made. Returns false if the call is not unknown.
    pub fn settle(&mut self, id: &CallId, happened: Option<ToolReply>) -> bool {
        let unknown = |entry: &&mut Entry| entry.id == *id && entry.state == CallState::Unknown;
        let Some(entry) = self.calls.iter_mut().find(unknown) else { return false };
        entry.state = happened.map_or(CallState::Open, CallState::Done);
        true
    }
}

/// A value from outside other than the reply to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Draw {
    /// The time of day in milliseconds.
    Clock(i64),
    /// A seed of random numbers.
    Random(u64),
}

/// Keeps the calls that change something beyond the life of this process.
pub trait Journal: Send + Sync {
    /// Stores the present state of an entry. A state [`CallState::Started`] is durable when this returns.
    ///
    /// # Errors
    /// Returns the reason why it is not stored, as a clause. A call that is not yet sent is not sent then.
    fn store(&self, entry: &Entry) -> Result<(), String>;
}

/// The extent to which a log is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// No replies: the run cannot be suspended.
    Nothing,
    /// The calls of the running form, with their replies.
    Form,
    /// All calls of the run, with their replies.
    Run,
}

/// The log of a run, shared by the branches of its evaluation.
pub struct RunLog {
    state: Mutex<State>,
    journal: Option<Arc<dyn Journal>>,
    most_bytes: u64,
}

struct State {
    keep: Keep,
    logged: Logged,
    /// The position of each call in the log.
    at: HashMap<CallId, usize>,
    /// The size of arguments and replies.
    bytes: u64,
    /// True once there is no room for a reply: the run cannot be suspended any more.
    is_full: bool,
    form: u32,
    /// The position among the draws of the form: the entry, and the number of times that it was read.
    drawn: (usize, u32),
}

impl RunLog {
    /// Creates a log, empty or that of a run that is resumed. Beyond `most_bytes` of arguments and replies, no reply is
    /// kept, and the run can no longer be suspended.
    pub fn new(logged: Logged, keep: Keep, most_bytes: u64) -> RunLog {
        let at = logged.calls.iter().enumerate().map(|(at, entry)| (entry.id.clone(), at)).collect();
        let bytes = logged.calls.iter().map(Entry::bytes).sum();
        let state = State { keep, logged, at, bytes, is_full: keep == Keep::Nothing, form: 0, drawn: (0, 0) };
        RunLog { state: Mutex::new(state), journal: None, most_bytes }
    }

    /// Sets the journal of the calls that change something.
    #[must_use]
    pub fn kept_by(self, journal: Arc<dyn Journal>) -> RunLog {
        RunLog { journal: Some(journal), ..self }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the content.
    pub fn logged(&self) -> Logged {
        self.state().logged.clone()
    }

    /// Returns whether the run can be suspended.
    pub fn is_kept(&self) -> bool {
        !self.state().is_full
    }

    /// Returns the entry of a call.
    pub(super) fn entry(&self, id: &CallId) -> Option<Entry> {
        let state = self.state();
        state.at.get(id).map(|at| state.logged.calls[*at].clone())
    }

    /// Adds a call that has not been sent, unless it is there.
    pub(super) fn add(&self, call: &ToolCall) {
        let mut state = self.state();
        if state.at.contains_key(&call.id) {
            return;
        }
        state.is_full |= state.bytes + call.arguments.len() as u64 > self.most_bytes;
        let entry = Entry {
            id: call.id.clone(),
            server: call.server.clone(),
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
            question: None,
            decision: None,
            state: CallState::Open,
            is_sent: false,
        };
        state.bytes += entry.bytes();
        let at = state.logged.calls.len();
        state.at.insert(call.id.clone(), at);
        state.logged.calls.push(entry);
    }

    /// Records that a call that may change something is about to be sent.
    ///
    /// # Errors
    /// Returns the reason why that is not stored, as a clause; the call must not be sent then.
    pub fn starting(&self, id: &CallId) -> Result<(), String> {
        let entry = self.change(id, |entry| (entry.state, entry.is_sent) = (CallState::Started, true));
        match (&self.journal, entry) {
            (Some(journal), Some(entry)) => journal.store(&entry),
            _ => Ok(()),
        }
    }

    /// Records the reply to a call. The outcome of a call that was started is stored; an error of that is ignored, since
    /// the call is found as started then, and a person decides.
    pub(crate) fn ended(&self, id: &CallId, reply: &ToolReply) {
        let has_room = {
            let mut state = self.state();
            state.is_full |= state.bytes + reply.bytes() > self.most_bytes;
            !state.is_full
        };
        let mut was_started = false;
        let entry = self.change(id, |entry| {
            was_started = entry.state == CallState::Started;
            match reply {
                ToolReply::Ask(question) => {
                    entry.question = Some(question.clone());
                    entry.decision = None;
                    entry.state = CallState::Open;
                }
                reply if has_room => entry.state = CallState::Done(reply.clone()),
                _ => entry.state = CallState::Forgotten,
            }
        });
        if let (true, Some(journal), Some(entry)) = (was_started, &self.journal, entry) {
            let _ = journal.store(&entry);
        }
        if !has_room && !matches!(reply, ToolReply::Ask(_)) {
            self.change(id, |entry| entry.arguments = String::new());
        }
    }

    /// Records the decision on a call.
    pub fn decided(&self, id: &CallId, decision: &Decision) {
        self.change(id, |entry| {
            if let Decision::Denied(rule) = decision {
                entry.state = CallState::Done(ToolReply::Denied(rule.clone()));
            }
            entry.decision = Some(decision.clone());
        });
    }

    /// Changes an entry, if it is there, and returns a copy of it if there is a journal.
    fn change(&self, id: &CallId, change: impl FnOnce(&mut Entry)) -> Option<Entry> {
        let mut state = self.state();
        let at = *state.at.get(id)?;
        let entry = &mut state.logged.calls[at];
        let before = entry.bytes();
        change(entry);
        let after = entry.bytes();
        let copy = self.journal.is_some().then(|| entry.clone());
        state.bytes = state.bytes + after - before;
        copy
    }

    /// Records that a form begins. The calls of committed forms are dropped, unless the whole run is kept.
    pub(super) fn begin_form(&self, form: u32) {
        let mut state = self.state();
        (state.form, state.drawn) = (form, (0, 0));
        if state.keep != Keep::Run {
            state.logged.draws.retain(|drawn, _| *drawn >= form);
            if state.logged.calls.iter().any(|entry| entry.id.form < form) {
                state.logged.calls.retain(|entry| entry.id.form >= form);
                state.index();
            }
        }
    }

    /// Returns the next value of the log, or else the value of the host, which it logs.
    pub(super) fn draw(&self, live: impl FnOnce() -> Draw) -> Draw {
        let mut state = self.state();
        if state.keep == Keep::Nothing {
            return live();
        }
        let (form, (at, times)) = (state.form, state.drawn);
        let draws = state.logged.draws.entry(form).or_default();
        if let Some((logged, count)) = draws.get(at) {
            let (logged, count) = (*logged, *count);
            let is_last = at + 1 == draws.len();
            if times < count {
                state.drawn = if times + 1 < count || is_last { (at, times + 1) } else { (at + 1, 0) };
                return logged;
            }
        }
        let live = match (draws.last(), live()) {
            (Some((Draw::Clock(last), _)), Draw::Clock(now))
                if draws.len() >= MOST_READINGS && (0..COARSE_MILLIS).contains(&(now - last)) =>
            {
                Draw::Clock(*last)
            }
            (_, live) => live,
        };
        match draws.last_mut() {
            Some((last, count)) if *last == live && matches!(live, Draw::Clock(_)) && *count < u32::MAX => *count += 1,
            _ => draws.push((live, 1)),
        }
        let last = draws.len() - 1;
        let count = draws[last].1;
        state.drawn = (last, count);
        live
    }
}

impl State {
    fn index(&mut self) {
        self.at = self.logged.calls.iter().enumerate().map(|(at, entry)| (entry.id.clone(), at)).collect();
        self.bytes = self.logged.calls.iter().map(Entry::bytes).sum();
    }
}
