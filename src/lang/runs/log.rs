//! The log of a run.

use super::logged::{CallState, Draw, Entry, LogChange, Logged, Timing};
use crate::host::{CallId, Decision, ToolCall, ToolReply};
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
    is_timed: bool,
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
    /// The position among the answers that the form was told.
    told: usize,
    /// The positions of calls, and the forms, that have changed since [`RunLog::changes`].
    changed: Option<(BTreeSet<usize>, BTreeSet<u32>)>,
}

impl RunLog {
    /// Creates a log, empty or that of a run that is resumed. Beyond `most_bytes` of arguments and replies, no reply is
    /// kept, and the run can no longer be suspended.
    pub fn new(logged: Logged, keep: Keep, most_bytes: u64) -> RunLog {
        let at = logged.calls.iter().enumerate().map(|(at, entry)| (entry.id.clone(), at)).collect();
        let bytes = logged.calls.iter().map(Entry::bytes).sum();
        let is_full = keep == Keep::Nothing;
        let state = State { keep, logged, at, bytes, is_full, form: 0, drawn: (0, 0), told: 0, changed: None };
        RunLog { state: Mutex::new(state), journal: None, most_bytes, is_timed: false }
    }

    /// Sets the journal of the calls that change something.
    #[must_use]
    pub fn kept_by(self, journal: Arc<dyn Journal>) -> RunLog {
        self.state().changed = Some(Default::default());
        RunLog { journal: Some(journal), ..self }
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
        };
        // The draws come first: a call may depend on them.
        let forms = forms.into_iter().map(of_form);
        forms.chain(calls.into_iter().map(|at| LogChange::Call(Box::new(logged.calls[at].clone())))).collect()
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
        state.make_room(call.arguments.len() as u64, self.most_bytes);
        let entry = Entry::new(call.id.clone(), call.server.clone(), call.tool.clone(), call.arguments.clone());
        state.bytes += entry.bytes();
        let at = state.logged.calls.len();
        state.at.insert(call.id.clone(), at);
        state.has_changed(at);
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
    pub(crate) fn ended(&self, id: &CallId, reply: &ToolReply, timing: Option<Timing>) {
        let has_room = self.state().make_room(reply.bytes(), self.most_bytes);
        let mut was_started = false;
        let entry = self.change(id, |entry| {
            was_started = entry.state == CallState::Started;
            entry.timing = timing;
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
        state.has_changed(at);
        copy
    }

    /// Records that a form begins, at that time. The calls of committed forms are dropped, unless the whole run is kept.
    pub(super) fn begin_form(&self, form: u32, at: Option<i64>) {
        let mut state = self.state();
        (state.form, state.drawn, state.told) = (form, (0, 0), 0);
        at.map(|at| state.logged.begun.entry(form).or_insert(at));
        if state.keep != Keep::Run && state.logged.has_before(form) {
            state.logged.drop_before(form);
            state.index();
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
        state.form_has_changed();
        live
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
        state.told += 1;
        if let Some(told) = state.logged.told.get(&form).and_then(|told| told.get(at)) {
            return told.clone();
        }
        // The host may take its time, and branches run one after the other.
        drop(state);
        let answer = live();
        let mut state = self.state();
        state.bytes += answer.as_ref().map_or_else(String::len, String::len) as u64;
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

    fn form_has_changed(&mut self) {
        let form = self.form;
        if let Some((_, forms)) = &mut self.changed {
            forms.insert(form);
        }
    }

    /// Returns true if there is room for that many further bytes. If necessary, forgets the replies of committed forms,
    /// from which the run is no longer suspended, but without which it cannot be evaluated from its beginning.
    fn make_room(&mut self, bytes: u64, most: u64) -> bool {
        if !self.is_full && self.bytes + bytes > most && self.keep == Keep::Run {
            for at in 0..self.logged.calls.len() {
                let entry = &mut self.logged.calls[at];
                if entry.id.form >= self.form || !matches!(entry.state, CallState::Done(_)) {
                    continue;
                }
                self.bytes -= entry.bytes();
                (entry.state, entry.arguments) = (CallState::Forgotten, String::new());
                self.bytes += entry.bytes();
                self.has_changed(at);
            }
        }
        self.is_full |= self.bytes + bytes > most;
        !self.is_full
    }

    fn index(&mut self) {
        self.at = self.logged.calls.iter().enumerate().map(|(at, entry)| (entry.id.clone(), at)).collect();
        self.bytes = self.logged.calls.iter().map(Entry::bytes).sum();
    }
}
