//! The content of the log of a run.

use super::matched::{asked_for, readable, truncated};
use crate::host::{CallId, Decision, Happened, Question, ToolReply};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

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
    /// The earlier decision that covered the call when it was decided on last, as a clause. It holds for no later time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub covered: Option<String>,
    /// The state of the call.
    pub state: CallState,
    /// True once a call that may change something was about to be sent, and a second one would do harm.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_sent: bool,
    /// True once a call that may change something was about to be sent, though it may be idempotent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_change: bool,
    /// The ordinal among the [earlier calls](Logged::earlier) of the one whose reply it received, if it was not made again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<u32>,
    /// The time that it took, if times are logged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timing: Option<Timing>,
}

/// The time that a call took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    /// The time at which it began, in milliseconds since 1970.
    pub at: i64,
    /// The time until its reply, in milliseconds.
    pub ms: u64,
}

impl Entry {
    /// True for a call that changes nothing and has its own reply.
    fn is_read(&self) -> bool {
        !self.is_change
            && self.answers.is_none()
            && matches!(&self.state, CallState::Done(reply) if reply.text().is_some())
    }

    /// True for a call of the same tool with the same arguments.
    fn asks_for_the_same_as(&self, other: &Entry) -> bool {
        let is_same = (&self.server, &self.tool) == (&other.server, &other.tool);
        is_same && asked_for(&self.arguments) == asked_for(&other.arguments)
    }

    /// Creates the entry of a call that has not been made, with those arguments.
    pub fn new(id: CallId, server: Arc<str>, tool: Arc<str>, arguments: String) -> Entry {
        Entry {
            id,
            server,
            tool,
            arguments,
            question: None,
            decision: None,
            covered: None,
            state: CallState::Open,
            is_sent: false,
            is_change: false,
            answers: None,
            timing: None,
        }
    }

    /// Creates the entry of a call that a person is asked about; `given` are its arguments as the program gave them.
    pub fn asked(question: Question, given: String) -> Entry {
        let (id, server, tool) = (question.id.clone(), question.server.clone(), question.tool.clone());
        Entry { question: Some(Box::new(question)), ..Entry::new(id, server, tool, given) }
    }

    /// Returns true if a person has to decide on the call: it was asked about, is not decided on, and no earlier decision
    /// covered it.
    pub fn is_open(&self) -> bool {
        self.is_asked() && self.covered.is_none()
    }

    /// Returns true if the call was asked about and is not decided on, whether or not an earlier decision covered it.
    pub fn is_asked(&self) -> bool {
        self.question.is_some() && self.decision.is_none() && self.state == CallState::Open
    }

    /// Returns the size of its texts in bytes.
    pub fn bytes(&self) -> u64 {
        let reply = if let CallState::Done(reply) = &self.state { reply_bytes(reply) } else { 0 };
        let question = self.question.as_ref().map_or(0, |question| question.arguments.len() + question.reason.len());
        // The names and the identity are small.
        reply + (self.arguments.len() + question + 200) as u64
    }

    /// Returns the question about a call whose outcome is unknown.
    pub fn unknown_question(&self) -> Question {
        let Entry { id, server, tool, .. } = self.clone();
        let given = || self.shown_arguments().to_owned();
        let arguments = self.question.as_ref().map_or_else(given, |question| question.arguments.clone());
        let reason = "it is not known whether it was made".to_owned();
        Question { id, server, tool, arguments, reason, is_guarded: false }
    }

    /// Forgets the reply to a call, for which there is no room, and its arguments; those of a change are truncated, so that it is
    /// still found.
    pub(super) fn forget(&mut self) {
        // Whether it was carried out is not forgotten.
        let happened = self.happened();
        self.state = if happened == Happened::Unknown { CallState::Unknown } else { CallState::Forgotten };
        self.question = None;
        if happened == Happened::No {
            (self.is_sent, self.is_change) = (false, false);
        }
        if self.is_change {
            self.truncate();
        } else {
            self.arguments = String::new();
        }
    }

    /// Truncates long arguments to their digest and their first characters.
    pub(super) fn truncate(&mut self) {
        if let Some(truncated) = truncated(&self.arguments) {
            self.arguments = truncated;
        }
    }

    /// Returns the arguments, or the first characters of truncated ones, for a person or a model.
    pub fn shown_arguments(&self) -> &str {
        readable(&self.arguments)
    }

    /// Returns whether the call has changed what its tool changes. The outcome of a call that does no harm if it is made
    /// again is never unknown: it has not happened.
    pub fn happened(&self) -> Happened {
        match &self.state {
            _ if !self.is_change => Happened::No,
            CallState::Open => Happened::No,
            CallState::Forgotten => Happened::Yes,
            CallState::Started | CallState::Unknown => ToolReply::Stopped.happened(self.is_sent),
            CallState::Done(reply) => reply.happened(self.is_sent),
        }
    }
}

/// A call of a form that is committed, or of an earlier attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EarlierCall {
    /// The number of its attempt, from 0.
    pub attempt: u32,
    /// The call.
    pub entry: Entry,
    /// True if it is of an earlier attempt, and has answered a call of the present one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_taken: bool,
}

/// Returns the size of a reply in a log, in bytes.
pub(super) fn reply_bytes(reply: &ToolReply) -> u64 {
    match reply {
        ToolReply::Error(error) => error.message.len() as u64,
        ToolReply::Denied(text)
        | ToolReply::Unapproved(text)
        | ToolReply::Diverged(text)
        | ToolReply::Unplanned(text)
        | ToolReply::Repeated(text) => text.len() as u64,
        reply => reply.bytes(),
    }
}

/// The size of a reading of the clock or a seed in a log, in bytes.
pub(super) const DRAW_BYTES: u64 = 32;

/// Returns the size of an answer about sessions or runs in a log, in bytes.
pub(super) fn told_bytes(told: &Result<String, String>) -> u64 {
    let text = told.as_ref().map_or_else(String::len, String::len);
    text as u64 + 64
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
    /// The answers of the host to questions about sessions and runs by form, in order.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub told: BTreeMap<u32, Vec<Result<String, String>>>,
    /// The times at which forms began, in milliseconds since 1970, if times are logged.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub begun: BTreeMap<u32, i64>,
    /// The handles of the copies of its session that the run was promised. They are made when it ends.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub forked: Vec<String>,
    /// The number of the attempt, from 0.
    #[serde(skip_serializing_if = "is_first")]
    pub attempt: u32,
    /// The changes of committed forms whose calls are dropped, and the calls of earlier attempts, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<EarlierCall>,
    /// True if reads are answered by those of earlier attempts too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub repeats_reads: bool,
    /// True if calls of earlier attempts whose outcome is unknown are made again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub repeats_unknown: bool,
}

fn is_first(attempt: &u32) -> bool {
    *attempt == 0
}

/// A change of a log since it was stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum LogChange {
    /// The present state of a call.
    Call(Box<Entry>),
    /// All other values that a form has received.
    Form {
        /// The ordinal of the form.
        form: u32,
        /// Its clock readings and seeds.
        draws: Vec<(Draw, u32)>,
        /// The answers about sessions and runs.
        told: Vec<Result<String, String>>,
        /// The time at which it began.
        begun: Option<i64>,
        /// The handles of the copies that the run was promised so far.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        forked: Vec<String>,
    },
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

    /// Returns its size in bytes.
    pub fn bytes(&self) -> u64 {
        let calls: u64 = self.calls.iter().map(Entry::bytes).sum();
        let draws: usize = self.draws.values().map(Vec::len).sum();
        let told: u64 = self.told.values().flatten().map(told_bytes).sum();
        let calls = calls + self.earlier.iter().map(|earlier| earlier.entry.bytes()).sum::<u64>();
        calls + draws as u64 * DRAW_BYTES + told
    }

    /// Returns true if it has anything of forms before that one.
    pub(super) fn has_before(&self, form: u32) -> bool {
        let is_before = |first: Option<&u32>| first.is_some_and(|first| *first < form);
        self.calls.iter().any(|entry| entry.id.form < form)
            || is_before(self.draws.keys().next())
            || is_before(self.told.keys().next())
            || is_before(self.begun.keys().next())
    }

    /// Drops what belongs to forms before that one. Changes become earlier calls.
    pub fn drop_before(&mut self, form: u32) {
        let Logged { calls, earlier, attempt, .. } = self;
        calls.retain(|entry| {
            let is_kept = entry.id.form >= form;
            if !is_kept && entry.is_change {
                earlier.push(EarlierCall { attempt: *attempt, entry: entry.clone(), is_taken: false });
            }
            is_kept
        });
        self.draws.retain(|drawn, _| *drawn >= form);
        self.told.retain(|told, _| *told >= form);
        self.begun.retain(|begun, _| *begun >= form);
    }

    /// Returns the log with which a further attempt begins: its calls are answered by those of the attempts so far, as
    /// often as these were made, and its forms see the same clock and random numbers at the same places.
    #[must_use]
    pub fn next_attempt(self) -> Logged {
        let Logged { calls, mut earlier, draws, attempt, .. } = self;
        earlier.iter_mut().for_each(|earlier| earlier.is_taken = false);
        let calls = calls.into_iter().filter(|entry| entry.answers.is_none());
        earlier.extend(calls.map(|entry| EarlierCall { attempt, entry, is_taken: false }));
        earlier.retain(|EarlierCall { entry, .. }| entry.is_read() || entry.happened() != Happened::No);
        Logged { earlier, draws, attempt: attempt.saturating_add(1), ..Logged::default() }
    }

    /// True if a read has a reply, which a further attempt can have again.
    pub fn has_reads(&self) -> bool {
        self.earlier.iter().map(|earlier| &earlier.entry).chain(&self.calls).any(Entry::is_read)
    }

    /// Returns the calls that have changed something, or may have, of this attempt and of those before.
    pub fn changes(&self) -> impl Iterator<Item = &Entry> {
        let all = self.earlier.iter().map(|earlier| &earlier.entry).chain(&self.calls);
        all.filter(|entry| entry.happened() != Happened::No)
    }

    /// Returns the calls of earlier attempts that have answered a call of this one.
    pub fn taken(&self) -> impl Iterator<Item = &Entry> {
        self.earlier.iter().filter(|earlier| earlier.is_taken).map(|earlier| &earlier.entry)
    }

    /// Returns the changes of earlier attempts that this one has not asked for.
    pub fn left(&self) -> impl Iterator<Item = &Entry> {
        let is_left = |earlier: &&EarlierCall| {
            let is_again =
                || self.repeats_unknown && self.calls.iter().any(|call| call.asks_for_the_same_as(&earlier.entry));
            match earlier.entry.happened() {
                Happened::No => false,
                _ if earlier.attempt >= self.attempt || earlier.is_taken => false,
                Happened::Yes => true,
                Happened::Unknown => !is_again(),
            }
        };
        self.earlier.iter().filter(is_left).map(|earlier| &earlier.entry)
    }

    /// Adds the handle of a promised copy; returns false if it is there.
    pub(super) fn promise(&mut self, handle: String) -> bool {
        let is_new = !self.forked.contains(&handle);
        if is_new {
            self.forked.push(handle);
        }
        is_new
    }

    /// Applies changes, in the order in which they were made.
    pub fn apply(&mut self, changes: impl IntoIterator<Item = LogChange>) {
        let mut at: HashMap<CallId, usize> = HashMap::new();
        at.extend(self.calls.iter().enumerate().map(|(at, entry)| (entry.id.clone(), at)));
        for change in changes {
            match change {
                LogChange::Call(entry) => match at.get(&entry.id) {
                    Some(at) => self.calls[*at] = *entry,
                    None => {
                        at.insert(entry.id.clone(), self.calls.len());
                        self.calls.push(*entry);
                    }
                },
                LogChange::Form { form, draws, told, begun, forked } => {
                    self.draws.insert(form, draws);
                    self.told.insert(form, told);
                    forked.into_iter().for_each(|handle| _ = self.promise(handle));
                    begun.map(|begun| self.begun.insert(form, begun));
                }
            }
        }
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
        if entry.decision.is_none() {
            // The question was whether the call was made.
            entry.question = None;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(is_change: bool, reply: ToolReply) -> Entry {
        let id = CallId { form: 0, branch: Vec::new(), ordinal: 0 };
        let entry = Entry::new(id, "shop".into(), "order".into(), "{}".to_owned());
        Entry { state: CallState::Done(reply), is_sent: is_change, is_change, ..entry }
    }

    fn results() -> [ToolReply; 3] {
        let text = || "[1]".to_owned();
        [ToolReply::Json(text()), ToolReply::Text(text()), ToolReply::Marked(text())]
    }

    #[test]
    fn a_change_that_has_a_result_has_happened_whatever_the_result_holds() {
        for reply in results() {
            assert_eq!(answered(true, reply.clone()).happened(), Happened::Yes, "{reply:?}");
        }
        assert_eq!(answered(true, ToolReply::Denied("rule".to_owned())).happened(), Happened::No);
    }

    #[test]
    fn a_call_that_was_answered_from_an_earlier_attempt_is_no_read() {
        let change = EarlierCall { attempt: 0, entry: answered(true, results()[0].clone()), is_taken: true };
        let again = Entry { answers: Some(0), ..answered(false, results()[0].clone()) };
        let log = Logged { calls: vec![again], earlier: vec![change], attempt: 1, ..Logged::default() };
        assert!(!log.has_reads());
    }

    #[test]
    fn the_next_attempt_knows_every_result_of_a_call_that_only_reads() {
        let calls = results().map(|reply| answered(false, reply)).to_vec();
        let next = Logged { calls, ..Logged::default() }.next_attempt();
        assert_eq!(next.earlier.len(), 3);
    }
}
