//! The branches of a `pmap`, the order in which they run, and the core while all of them wait.
//!
//! Only the branch that holds the [`Core`] runs Lisp. When it has to wait, or is done, it decides itself which branch
//! holds the core next, and wakes that one alone: there is no thread in between. Only if none can proceed, the core goes
//! back to the thread that called `pmap`.
//!
//! The core goes to the next new branch while the limit on parallel branches allows it, otherwise to the branch that has
//! waited longest. If its reply has not arrived, the core is left here until the branch takes it. The order in which
//! branches run thus depends on the program alone, never on the order of the replies.

use super::Core;
use super::stacks::MOST_PARKED;
use crate::error::{Error, Outcome};
use crate::heap::Handle;
use crate::host::{CallId, Decision, Question};
use crate::meter::Account;
use crate::value::Value;
use crate::value::text::Text;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The branch that a machine runs, with its connection to the others.
#[derive(Default)]
pub struct Branch {
    pub(crate) path: Vec<u32>,
    pub(crate) form: u32,
    pub(crate) ordinal: u32,
    pub(crate) turns: Option<Turns>,
    /// The numbers of print captures and input texts that were active when the branch started. Those belong to its
    /// parent.
    pub(crate) outside: (usize, usize),
    /// The check counters of the enclosing `run-tests`.
    pub(crate) counts: Option<Arc<Handle>>,
    /// The placeholder of the core, while the branch has the core.
    pub(crate) spare: Option<Box<Core>>,
}

/// A capture of what is printed.
#[derive(Default)]
pub(crate) struct Capture {
    /// The text that has been printed, and is not in the string builder yet.
    pub(crate) text: String,
    /// The string builder into which it goes, if any.
    pub(crate) into: Option<Arc<Handle>>,
}

/// The print captures and input texts of a branch, removed from the core while it waits.
pub(crate) struct Streams {
    pub(crate) captured: Vec<Capture>,
    pub(crate) inputs: Vec<(Text, usize)>,
}

/// A branch's connection to its scheduler.
pub(crate) struct Turns {
    pub(crate) index: usize,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) turn: Receiver<Turn>,
}

/// The message with which a branch receives the core.
pub(crate) enum Turn {
    /// Resume the branch.
    Go(Box<Core>),
    /// Resume the branch with the decision on its call.
    Decided(Box<Core>, Decision),
    /// End the branch, because a sibling has failed.
    End(Box<Core>),
}

impl Branch {
    /// Returns the identity of the next host call of this branch.
    pub(crate) fn next_call(&mut self, form: u32) -> CallId {
        if self.form != form {
            self.form = form;
            self.ordinal = 0;
        }
        let id = CallId { form, branch: self.path.clone(), ordinal: self.ordinal };
        self.ordinal += 1;
        id
    }

    /// Returns the identity that the next host call of this branch will have.
    pub(crate) fn upcoming_call(&self, form: u32) -> CallId {
        let ordinal = if self.form == form { self.ordinal } else { 0 };
        CallId { form, branch: self.path.clone(), ordinal }
    }

    /// The number of this branch among its siblings, from 1; 0 for the main branch.
    pub(crate) fn number(&self) -> u32 {
        self.turns.as_ref().map_or(0, |turns| turns.index as u32 + 1)
    }

    /// Removes the print captures and input texts of this branch from the core, so that other branches do not see
    /// them.
    pub(crate) fn take_streams(&self, core: &mut Core) -> Streams {
        let (captured, inputs) = self.outside;
        Streams {
            captured: core.captured.drain(captured.min(core.captured.len())..).collect(),
            inputs: core.inputs.drain(inputs.min(core.inputs.len())..).collect(),
        }
    }
}

impl Streams {
    pub(crate) fn put_back(self, core: &mut Core) {
        core.captured.extend(self.captured);
        core.inputs.extend(self.inputs);
    }
}

/// The branches of one `pmap`, shared by their threads.
pub(crate) struct Scheduler {
    state: Mutex<State>,
    caller: Sender<Box<Core>>,
}

/// The part of the thread that called `pmap`. When it is dropped, all branches end.
pub(crate) struct Caller {
    pub(crate) scheduler: Arc<Scheduler>,
    /// Gets the core whenever no branch can proceed.
    pub(crate) returned: Receiver<Box<Core>>,
}

impl Drop for Caller {
    fn drop(&mut self) {
        drop(self.scheduler.end());
    }
}

/// The branches that were not started yet, and what all of them are started with.
pub(crate) struct Work {
    /// Returns the arguments of the next branch; `None` after the last.
    pub(crate) arguments: Box<dyn FnMut() -> Option<Vec<Value>> + Send>,
    pub(crate) function: Value,
    /// The dynamic bindings of the caller.
    pub(crate) bound: Vec<(u32, Value)>,
    /// The identity of the `pmap` among the calls of the caller.
    pub(crate) path: Vec<u32>,
    pub(crate) form: u32,
    pub(crate) in_prelude: bool,
    pub(crate) depth: u32,
    pub(crate) nesting: u32,
    pub(crate) counts: Option<Arc<Handle>>,
}

/// A branch to be started.
pub(crate) struct Job {
    pub(crate) branch: Branch,
    pub(crate) in_prelude: bool,
    pub(crate) depth: u32,
    pub(crate) nesting: u32,
    pub(crate) bound: Vec<(u32, Value)>,
    pub(crate) function: Value,
    pub(crate) arguments: Vec<Value>,
}

/// Who holds the core next.
pub(crate) enum Next {
    /// A branch that waits for its turn; the account is closed.
    Waiting(Sender<Turn>, Turn),
    /// A new branch, on this thread, or on another one that gets its turn.
    New(Box<Job>, Sender<Turn>, Box<Core>),
    /// The thread that called `pmap`: no branch can proceed, or all are done. The account is closed.
    Caller(Box<Core>),
    /// The branch that has waited longest, once its reply has arrived: it takes the core itself.
    Reply,
}

#[derive(Default)]
struct State {
    /// The branches that were not started yet; `None` at the end.
    work: Option<Work>,
    /// The most branches that wait for replies at a time.
    parallel: usize,
    turns: Vec<Sender<Turn>>,
    ready: Vec<bool>,
    /// The waiting branches, the longest wait first, each with the call whose reply it awaits.
    waiting: VecDeque<(usize, Option<CallId>)>,
    /// The branches that wait for a decision, in the order in which they asked. They do not count as active.
    parked: Vec<(usize, Box<Question>)>,
    /// Those whose calls were decided on.
    decided: VecDeque<(usize, Decision)>,
    /// The number of branches that, one after the other, were resumed to look for the value of another branch, and
    /// found that it is not there yet.
    idle: usize,
    active: usize,
    results: Vec<Option<Outcome<Value>>>,
    /// The first branch that failed.
    failed: Option<usize>,
    /// The core while the branch that has waited longest awaits its reply, and since when.
    core: Option<(Box<Core>, Duration)>,
}

impl Scheduler {
    /// Creates the scheduler of `count` branches, of which `parallel` may wait for replies at a time.
    pub(crate) fn start(work: Work, count: usize, parallel: usize) -> Caller {
        let (caller, returned) = channel();
        let state = State {
            work: Some(work),
            parallel,
            turns: Vec::with_capacity(count),
            ready: vec![false; count],
            results: (0..count).map(|_| None).collect(),
            ..State::default()
        };
        Caller { scheduler: Arc::new(Scheduler { state: Mutex::new(state), caller }), returned }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a branch yields the core until it is [`ready`](Self::ready), and returns who holds the core next. The
    /// call is set if the branch waits for a reply.
    pub(crate) fn waits(self: &Arc<Self>, index: usize, core: Box<Core>, call: Option<CallId>) -> Next {
        let mut state = self.state();
        state.idle = if call.is_none() { state.idle + 1 } else { 0 };
        state.waiting.push_back((index, call));
        self.next_in(&mut state, core)
    }

    /// Notes that a branch yields the core until the decision on a call, and returns who holds it next.
    pub(crate) fn asks(self: &Arc<Self>, index: usize, core: Box<Core>, question: Box<Question>) -> Next {
        let mut state = self.state();
        state.active = state.active.saturating_sub(1);
        state.idle = 0;
        state.parked.push((index, question));
        self.next_in(&mut state, core)
    }

    /// Notes the result of a branch, and returns who holds the core next. The first branch that fails ends the others.
    pub(crate) fn done(self: &Arc<Self>, index: usize, core: Box<Core>, result: Outcome<Value>) -> Next {
        let mut state = self.state();
        state.active = state.active.saturating_sub(1);
        state.idle = 0;
        if result.is_err() && state.failed.is_none() {
            state.failed = Some(index);
            let calls: Vec<CallId> = state.waiting.iter().filter_map(|(_, call)| call.clone()).collect();
            drop(state);
            calls.iter().for_each(|call| core.host.give_up(call));
            state = self.state();
        }
        if let Some(place) = state.results.get_mut(index) {
            *place = Some(result);
        }
        self.next_in(&mut state, core)
    }

    /// Notes that the last new branch could not be started.
    pub(crate) fn not_started(&self) {
        let mut state = self.state();
        let index = state.turns.len().saturating_sub(1);
        state.active = state.active.saturating_sub(1);
        state.results[index] =
            Some(Err(Error::new("Busy", "the system cannot start a thread for another branch").into()));
        state.failed = Some(index);
    }

    /// Notes that the wait of a branch is over, be it by a reply or because the call was given up. Returns its turn if
    /// the core was left for it; otherwise the turn comes later.
    pub(crate) fn ready(&self, index: usize) -> Option<Turn> {
        let mut state = self.state();
        *state.ready.get_mut(index)? = true;
        if state.core.is_none() || state.waiting.front().is_none_or(|(first, _)| *first != index) {
            return None;
        }
        let (mut core, since) = state.core.take()?;
        core.meter.wait(core.host.monotonic().saturating_sub(since));
        Some(state.resume_first(core))
    }

    /// Returns who holds the core next.
    pub(crate) fn next(self: &Arc<Self>, core: Box<Core>) -> Next {
        self.next_in(&mut self.state(), core)
    }

    fn next_in(self: &Arc<Self>, state: &mut State, core: Box<Core>) -> Next {
        if let Some((index, decision)) = state.next_decided() {
            state.active += 1;
            state.idle = 0;
            let core = closed(core);
            let turn = if state.failed.is_none() { Turn::Decided(core, decision) } else { Turn::End(core) };
            return Next::Waiting(state.turns[index].clone(), turn);
        }
        if state.has_room()
            && let Some((job, turn)) = state.start(self, &core)
        {
            return Next::New(Box::new(job), turn, core);
        }
        let core = closed(core);
        let first = match state.waiting.front() {
            Some((first, _)) if !state.is_stuck() => *first,
            _ => return Next::Caller(core),
        };
        if state.ready[first] {
            let turn = state.turns[first].clone();
            return Next::Waiting(turn, state.resume_first(core));
        }
        let since = core.host.monotonic();
        state.core = Some((core, since));
        Next::Reply
    }

    /// Returns the core to the thread that called `pmap`.
    pub(crate) fn return_core(&self, core: Box<Core>) {
        // A caller that has gone needs no core.
        let _ = self.caller.send(core);
    }

    /// Asks the host for the decisions on the calls of all parked branches, which are resumed next. If one of them is
    /// still to be made, its branch is resumed first, and ends the others. Returns false if no branch is parked.
    pub(crate) fn decide(&self, core: &mut Core) -> bool {
        let (parked, failed) = {
            let mut state = self.state();
            (std::mem::take(&mut state.parked), state.failed.is_some())
        };
        if parked.is_empty() {
            return false;
        }
        let (indices, questions): (Vec<usize>, Vec<Question>) =
            parked.into_iter().map(|(index, question)| (index, *question)).unzip();
        if failed {
            self.state().decided.extend(indices.into_iter().map(|index| (index, Decision::Pending)));
            return true;
        }
        let host = core.host.clone();
        let before = host.monotonic();
        let decisions = host.decide(&questions);
        core.meter.wait(host.monotonic().saturating_sub(before));
        let mut state = self.state();
        state.decided.extend(indices.into_iter().zip(decisions.iter().cloned()));
        if let Some(pending) = state.decided.iter().position(|(_, decision)| *decision == Decision::Pending)
            && let Some(first) = state.decided.remove(pending)
        {
            state.decided.push_front(first);
        }
        true
    }

    /// Removes the state, so that whatever values it has are dropped by this thread, in whose account they are.
    fn end(&self) -> State {
        std::mem::take(&mut *self.state())
    }

    /// Returns the results of all branches once they are done, that of the first which failed before the others.
    pub(crate) fn results(&self) -> Vec<Outcome<Value>> {
        let mut state = self.end();
        if let Some(first) = state.failed {
            state.results.swap(0, first);
        }
        state.results.into_iter().flatten().collect()
    }
}

/// Closes the account of the core on this thread, so that another thread can take it.
pub(crate) fn closed(mut core: Box<Core>) -> Box<Core> {
    core.account = Account::close();
    core
}

impl State {
    /// Returns whether another branch may start.
    fn has_room(&self) -> bool {
        self.active < self.parallel
            && self.failed.is_none()
            && self.parked.len() + self.active < MOST_PARKED.max(self.parallel)
    }

    /// Creates the next branch.
    fn start(&mut self, scheduler: &Arc<Scheduler>, core: &Core) -> Option<(Job, Sender<Turn>)> {
        let index = self.turns.len();
        let work = self.work.as_mut()?;
        let arguments = (work.arguments)()?;
        let mut path = Vec::with_capacity(work.path.len() + 1);
        path.extend_from_slice(&work.path);
        path.push(index as u32);
        let (sender, turn) = channel();
        let branch = Branch {
            path,
            form: work.form,
            ordinal: 0,
            turns: Some(Turns { index, scheduler: scheduler.clone(), turn }),
            outside: (core.captured.len(), core.inputs.len()),
            counts: work.counts.clone(),
            spare: None,
        };
        let job = Job {
            branch,
            in_prelude: work.in_prelude,
            depth: work.depth,
            nesting: work.nesting,
            bound: work.bound.clone(),
            function: work.function.clone(),
            arguments,
        };
        self.turns.push(sender.clone());
        self.active += 1;
        self.idle = 0;
        Some((job, sender))
    }

    /// Removes the branch that has waited longest from those that wait, and returns its turn.
    fn resume_first(&mut self, core: Box<Core>) -> Turn {
        if let Some((index, _)) = self.waiting.pop_front() {
            self.ready[index] = false;
        }
        if self.failed.is_none() { Turn::Go(core) } else { Turn::End(core) }
    }

    /// Returns whether all waiting branches wait for values of parked branches.
    fn is_stuck(&self) -> bool {
        !self.parked.is_empty()
            && self.failed.is_none()
            && self.idle >= self.waiting.len()
            && self.waiting.iter().all(|(_, call)| call.is_none())
    }

    /// Returns the next branch whose call was decided on, if its call may be made beside those under way. Branches that
    /// wait for values of others make no call.
    fn next_decided(&mut self) -> Option<(usize, Decision)> {
        let is_crowded = || self.waiting.iter().filter(|(_, call)| call.is_some()).count() >= self.parallel;
        if self.decided.is_empty() || self.failed.is_none() && is_crowded() {
            return None;
        }
        self.decided.pop_front()
    }
}
