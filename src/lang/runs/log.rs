//! The log of a run.

use super::logged::{CallState, DRAW_BYTES, Draw, Entry, LogChange, Logged, Timing, reply_bytes, told_bytes};
use super::matched::{Untaken, reply_again};
use crate::host::{CallId, Decision, Happened, Question, ToolCall, ToolReply};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most different readings of the clock that are logged for a form. Beyond them, the clock that the run sees moves in
/// steps of [`COARSE_MILLIS`], so that the log stays small.
const MOST_READINGS: usize = 10_000;

const COARSE_MILLIS: i64 = 100;

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
    /// The changes alone: the run cannot be suspended.
    Nothing,
    /// The calls of the running form, with their replies, and the changes of the forms before.
    Form,
    /// All calls of the run, with their replies.
    Run,
}

/// The log of a run, shared by the branches of its evaluation.
pub struct RunLog {
    state: Mutex<State>,
    journal: Option<Arc<dyn Journal>>,
    most_bytes: u64,
    is_timed: bool,
    /// The number of the attempt, from 0.
    attempt: u32,
}

/// Most bytes of the calls that wait for a decision in a log that keeps nothing else.
const MOST_ASKED: u64 = 16 << 20;

struct State {
    keep: Keep,
    logged: Logged,
    /// The position of each call in the log.
    at: HashMap<CallId, usize>,
    /// The calls of earlier attempts that are still to be asked for.
    untaken: Untaken,
    /// True if a model may insist on a call of unknown outcome.
    may_insist: bool,
    /// True once a call is known as a change.
    has_change: bool,
    /// The size of the changes that are kept.
    change_bytes: u64,
    /// True once the clock was read, or random numbers were drawn, which a further attempt has anew.
    has_unkept_draws: bool,
    /// The size of all that is logged.
    bytes: u64,
    /// True once there is no room for a reply: the run cannot be suspended any more.
    is_full: bool,
    form: u32,
    /// The position among the draws of the form: the entry, and the number of times that it was read.
    drawn: (usize, u32),
    /// The position among the answers that the form was told.
    told: usize,
    /// The positions of calls, and the forms, that have changed since [`RunLog::changes`].
    changed: Option<(BTreeSet<usize>, BTreeSet<u32>)>,
}

impl RunLog {
    /// Creates a log, empty or that of a run that is resumed. Beyond `most_bytes`, nothing more is kept but that calls were
    /// made, and the run can no longer be suspended. Calls that wait for a decision may take as much again.
    pub fn new(mut logged: Logged, keep: Keep, most_bytes: u64) -> RunLog {
        if logged.attempt > 0 {
            for answers in logged.calls.iter().filter_map(|entry| entry.answers) {
                logged.earlier.iter_mut().skip(answers as usize).take(1).for_each(|earlier| earlier.is_taken = true);
            }
        }
        let (untaken, attempt) = (Untaken::of(&logged), logged.attempt);
        let change_bytes = logged.changes().map(Entry::bytes).sum();
        let at = logged.calls.iter().enumerate().map(|(at, entry)| (entry.id.clone(), at)).collect();
        let bytes = logged.bytes();
        let is_full = keep == Keep::Nothing;
        let (form, drawn, told, changed, has_change) = (0, (0, 0), 0, None, false);
        let state = State {
            keep,
            logged,
            at,
            untaken,
            may_insist: true,
            has_change,
            change_bytes,
            has_unkept_draws: false,
            bytes,
            is_full,
            form,
            drawn,
            told,
            changed,
        };
        RunLog { state: Mutex::new(state), journal: None, most_bytes, is_timed: false, attempt }
    }

    /// Creates the log of a run that is never suspended: calls are kept only while a person is asked about them.
    pub fn unkept() -> RunLog {
        RunLog::new(Logged::default(), Keep::Nothing, MOST_ASKED)
    }

    /// Sets the journal of the calls that change something.
    #[must_use]
    pub fn kept_by(self, journal: Arc<dyn Journal>) -> RunLog {
        self.state().changed = Some(Default::default());
        RunLog { journal: Some(journal), ..self }
    }

    /// Offers no way to make calls of unknown outcome again: whoever evaluates the run has other means.
    #[must_use]
    pub fn without_insisting(self) -> RunLog {
        self.state().may_insist = false;
        self
    }

    /// Logs the times of forms and calls.
    #[must_use]
    pub fn timed(self) -> RunLog {
        RunLog { is_timed: true, ..self }
    }

    /// Returns whether the times of forms and calls are logged.
    pub(super) fn is_timed(&self) -> bool {
        self.is_timed
    }

    /// Returns what has changed since the last call of this function, if the log has a journal.
    pub fn changes(&self) -> Vec<LogChange> {
        let mut state = self.state();
        let (calls, forms) = state.changed.as_mut().map(std::mem::take).unwrap_or_default();
        let logged = &state.logged;
        let of_form = |form| LogChange::Form {
            form,
            draws: logged.draws.get(&form).cloned().unwrap_or_default(),
            told: logged.told.get(&form).cloned().unwrap_or_default(),
            begun: logged.begun.get(&form).copied(),
            forked: logged.forked.clone(),
        };
        // The draws come first: a call may depend on them.
        let forms = forms.into_iter().map(of_form);
        forms.chain(calls.into_iter().map(|at| LogChange::Call(Box::new(logged.calls[at].clone())))).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of the attempt, from 0.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Returns the content.
    pub fn logged(&self) -> Logged {
        self.state().logged.clone()
    }

    /// Calls a function with the calls that have changed something, or may have.
    pub fn among_changes<R>(&self, work: impl FnOnce(&mut dyn Iterator<Item = &Entry>) -> R) -> R {
        work(&mut self.state().logged.changes())
    }

    /// Returns the size of the log in bytes.
    pub fn bytes(&self) -> u64 {
        self.state().bytes
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

    /// Returns whether a call was answered by one of an earlier attempt.
    pub(super) fn is_answered(&self, id: &CallId) -> bool {
        let state = self.state();
        state.at.get(id).is_some_and(|at| state.logged.calls[*at].answers.is_some())
    }

    /// Adds a call that has not been sent, unless it is there. Returns the reply if an earlier attempt has made the call.
    pub(super) fn add(&self, call: &ToolCall) -> Option<ToolReply> {
        let mut state = self.state();
        if state.at.contains_key(&call.id) {
            return None;
        }
        state.make_room(call.arguments.len() as u64, self.most_bytes);
        let mut entry = Entry::new(call.id.clone(), call.server.clone(), call.tool.clone(), call.arguments.clone());
        let answers = state.untaken.take(call);
        let reply = answers.and_then(|answers| state.take(answers, &mut entry));
        state.bytes += entry.bytes();
        let at = state.logged.calls.len();
        state.at.insert(call.id.clone(), at);
        state.has_changed(at);
        state.logged.calls.push(entry);
        reply
    }

    /// Records that a call that may change something is about to be sent.
    ///
    /// # Errors
    /// Returns the reason why that is not stored, as a clause; the call must not be sent then.
    pub fn starting(&self, id: &CallId) -> Result<(), String> {
        let entry = self.change(id, |entry| {
            (entry.state, entry.is_sent, entry.is_change) = (CallState::Started, true, true);
        });
        match (&self.journal, entry) {
            (Some(journal), Some(entry)) => journal.store(&entry),
            _ => Ok(()),
        }
    }

    /// Records that a call that may change something is about to be sent, which does no harm if it is made again.
    pub fn changing(&self, id: &CallId) {
        self.change(id, |entry| entry.is_change = true);
    }

    /// Records that a call was not sent after all.
    pub fn unsent(&self, id: &CallId) {
        self.change(id, |entry| (entry.is_sent, entry.is_change) = (false, false));
    }

    /// True if a further attempt has other times or random numbers than this one.
    pub fn has_unkept_draws(&self) -> bool {
        self.state().has_unkept_draws
    }

    /// Returns whether the run has made a change, in this attempt or an earlier one.
    pub fn has_changes(&self) -> bool {
        self.state().logged.changes().next().is_some()
    }

    /// Records the reply to a call. The outcome of a call that was started is stored; an error of that is ignored, since
    /// the call is found as started then, and a person decides. Returns false if the reply is a question for which there
    /// is no room: nobody can be asked then.
    pub(crate) fn ended(&self, id: &CallId, reply: &ToolReply, timing: Option<Timing>) -> bool {
        let mut was_started = false;
        let is_kept = match reply {
            ToolReply::Ask(question) => self.state().has_room_to_ask(question, self.most_bytes),
            reply => {
                let mut state = self.state();
                state.make_room(reply_bytes(reply), self.most_bytes) || state.keeps_change(id, reply, self.most_bytes)
            }
        };
        let (mut change_bytes, changes) = (0, self.state().change_bytes);
        let entry = self.change(id, |entry| {
            was_started = entry.state == CallState::Started;
            entry.timing = timing;
            match reply {
                ToolReply::Ask(question) if is_kept => {
                    entry.question = Some(question.clone());
                    (entry.decision, entry.covered) = (None, None);
                    entry.state = CallState::Open;
                }
                reply if is_kept => entry.state = CallState::Done(reply.clone()),
                ToolReply::Ask(_) => {
                    (entry.is_sent, entry.is_change) = (false, false);
                    entry.forget();
                }
                _ if !entry.is_change => entry.forget(),
                reply => {
                    // The outcome of a change may find room without its arguments.
                    entry.state = CallState::Done(reply.clone());
                    entry.truncate();
                    if changes + entry.bytes() > self.most_bytes {
                        entry.forget();
                    }
                }
            }
            change_bytes = if entry.is_change { entry.bytes() } else { 0 };
        });
        if change_bytes > 0 {
            self.state().change_bytes += change_bytes;
        }
        if let (true, Some(journal), Some(entry)) = (was_started, &self.journal, entry) {
            let _ = journal.store(&entry);
        }
        is_kept || !matches!(reply, ToolReply::Ask(_))
    }

    /// Records the decision on a call. One that is pending, or that covers the call only for now, is not one on the call.
    pub fn decided(&self, id: &CallId, decision: &Decision) {
        self.change(id, |entry| {
            entry.covered = None;
            match decision {
                Decision::Pending => return,
                Decision::Covered(by) => return entry.covered = Some(by.clone()),
                Decision::Approved | Decision::Denied(_) | Decision::Unavailable(_) => {}
            }
            if let Decision::Denied(rule) = decision {
                entry.state = CallState::Done(ToolReply::Denied(rule.clone()));
            }
            if let (Decision::Denied(_) | Decision::Unavailable(_), Some(question)) = (decision, &mut entry.question) {
                // Nothing is sent; the arguments as the program gave them are enough to compare.
                question.arguments = String::new();
            }
            entry.decision = Some(decision.clone());
        });
        let is_refused = matches!(decision, Decision::Denied(_) | Decision::Unavailable(_));
        if is_refused && !self.state().make_room(0, self.most_bytes) {
            self.change(id, Entry::forget);
        }
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
        let is_change = entry.is_change;
        state.has_change |= is_change;
        state.bytes = state.bytes + after - before;
        state.has_changed(at);
        copy
    }

    /// Records that a form begins, at that time. The calls of committed forms are dropped, unless the whole run is kept.
    pub(super) fn begin_form(&self, form: u32, at: Option<i64>) {
        let mut state = self.state();
        (state.form, state.drawn, state.told) = (form, (0, 0), 0);
        at.map(|at| state.logged.begun.entry(form).or_insert(at));
        if state.keep != Keep::Run && state.logged.has_before(form) {
            state.has_unkept_draws |= state.logged.draws.range(..form).any(|(_, drawn)| !drawn.is_empty());
            state.logged.drop_before(form);
            state.index();
        }
    }

    /// Returns the next value of the log, or else the value of the host, which it logs.
    pub(super) fn draw(&self, live: impl FnOnce() -> Draw) -> Draw {
        let mut state = self.state();
        if state.keep == Keep::Nothing {
            state.has_unkept_draws = true;
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
        if !state.make_room(DRAW_BYTES, self.most_bytes) {
            return live();
        }
        let draws = state.logged.draws.entry(form).or_default();
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
        state.bytes += if count == 1 { DRAW_BYTES } else { 0 };
        state.drawn = (last, count);
        state.form_has_changed();
        live
    }

    /// Returns the handle of a copy of the session, like [`RunLog::tell`]. The copy is made when the run has ended, though
    /// the form be evaluated again before.
    ///
    /// # Errors
    /// Returns the logged error, or that of the host.
    pub(super) fn fork(&self, live: impl FnOnce() -> Result<String, String>) -> Result<String, String> {
        let handle = self.tell(live)?;
        let mut state = self.state();
        if state.keep != Keep::Nothing && state.logged.promise(handle.clone()) {
            state.form_has_changed();
        }
        Ok(handle)
    }

    /// Returns the handles of the copies of the session that the run was promised.
    pub fn forked(&self) -> Vec<String> {
        self.state().logged.forked.clone()
    }

    /// Returns the next answer of the log, or else the answer of the host, which it logs.
    ///
    /// # Errors
    /// Returns the logged error, or that of the host.
    pub(super) fn tell(&self, live: impl FnOnce() -> Result<String, String>) -> Result<String, String> {
        let mut state = self.state();
        if state.keep == Keep::Nothing {
            drop(state);
            return live();
        }
        let (form, at) = (state.form, state.told);
        if let Some(told) = state.logged.told.get(&form).and_then(|told| told.get(at)) {
            let told = told.clone();
            state.told += 1;
            return told;
        }
        // The host may take its time, and branches run one after the other.
        drop(state);
        let answer = live();
        let mut state = self.state();
        let bytes = told_bytes(&answer);
        if !state.make_room(bytes, self.most_bytes) {
            return answer;
        }
        state.bytes += bytes;
        state.told += 1;
        state.logged.told.entry(form).or_default().push(answer.clone());
        state.form_has_changed();
        answer
    }
}

impl State {
    fn has_changed(&mut self, at: usize) {
        if let Some((calls, _)) = &mut self.changed {
            calls.insert(at);
        }
    }

    /// Answers a call of this attempt by one of an earlier attempt. A call whose outcome is unknown stays to be asked for.
    fn take(&mut self, answers: u32, entry: &mut Entry) -> Option<ToolReply> {
        let earlier = self.logged.earlier.get_mut(answers as usize)?;
        let reply = reply_again(&earlier.entry, self.may_insist);
        if earlier.entry.happened() != Happened::Unknown {
            earlier.is_taken = true;
            (entry.state, entry.answers) = (CallState::Done(reply.clone()), Some(answers));
        }
        Some(reply)
    }

    /// Returns true if a call is a change that is kept, though there is no room for the log as a whole.
    fn keeps_change(&self, id: &CallId, reply: &ToolReply, most: u64) -> bool {
        if !self.has_change {
            return false;
        }
        let entry = self.at.get(id).map(|at| &self.logged.calls[*at]);
        entry.is_some_and(|entry| entry.is_change && self.change_bytes + entry.bytes() + reply_bytes(reply) <= most)
    }

    fn form_has_changed(&mut self) {
        let form = self.form;
        if let Some((_, forms)) = &mut self.changed {
            forms.insert(form);
        }
    }

    /// Returns true if there is room for that many further bytes. If necessary, truncates the arguments of changes, and forgets
    /// the replies of committed forms, from which the run is no longer suspended, but without which it cannot be evaluated
    /// from its beginning.
    fn make_room(&mut self, bytes: u64, most: u64) -> bool {
        if !self.is_full && self.bytes + bytes > most {
            self.truncate_changes();
        }
        if !self.is_full && self.bytes + bytes > most && self.keep == Keep::Run {
            for at in 0..self.logged.calls.len() {
                let entry = &mut self.logged.calls[at];
                let is_kept = entry.is_change && self.change_bytes <= most / 2;
                if entry.id.form >= self.form || is_kept || !matches!(entry.state, CallState::Done(_)) {
                    continue;
                }
                self.bytes -= entry.bytes();
                entry.forget();
                self.bytes += entry.bytes();
                self.has_changed(at);
            }
        }
        self.is_full |= self.bytes + bytes > most;
        !self.is_full
    }

    /// Truncates the arguments of changes.
    fn truncate_changes(&mut self) {
        for at in 0..self.logged.calls.len() {
            let entry = &mut self.logged.calls[at];
            let before = entry.bytes();
            if entry.is_change && matches!(entry.state, CallState::Done(_)) {
                entry.truncate();
            }
            let less = before - entry.bytes();
            if less > 0 {
                (self.bytes, self.change_bytes) = (self.bytes - less, self.change_bytes.saturating_sub(less));
                self.has_changed(at);
            }
        }
    }

    fn index(&mut self) {
        self.at = self.logged.calls.iter().enumerate().map(|(at, entry)| (entry.id.clone(), at)).collect();
        self.bytes = self.logged.bytes();
    }

    /// Returns true if a question can be kept until it is decided on: there is room, or the calls that wait for a decision
    /// take less than all of it.
    fn has_room_to_ask(&mut self, question: &Question, most: u64) -> bool {
        let bytes = (question.arguments.len() + question.reason.len()) as u64;
        let asked = || self.logged.calls.iter().filter(|entry| entry.is_asked()).map(Entry::bytes).sum::<u64>();
        let has_room = self.bytes + bytes <= most || asked() + bytes <= most;
        self.make_room(bytes, most);
        has_room
    }
}
