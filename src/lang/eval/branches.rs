//! Branches: `pmap` and related functions overlap the waiting time of tool calls, never the computation.
//!
//! Each branch has its own evaluation thread, but only the one that holds the [`Core`] runs Lisp. A branch yields the
//! core when it waits for the host. The scheduler then passes the core to the next new branch while the limit on
//! parallel branches allows it, otherwise to the branch that has waited longest, as soon as its reply has arrived.
//! The order in which branches run thus depends on the program alone, never on the order of the replies, and results
//! are deterministic. The first branch that fails ends the others: calls that wait for the host are told to stop, and
//! no new branch starts.
//!
//! A branch whose call needs the decision of a person is parked. The parked calls are decided on together once no other
//! branch can proceed, whether or not the answers are known already: the order in which branches run does not depend on
//! when or how a person decides.

use super::{Core, Machine};
use crate::error::{Error, Halt, Outcome};
use crate::heap::Handle;
use crate::host::{CallId, Decision, Question, ToolCall, ToolReply};
use crate::machine::{Branch, Event, MOST_PARKED, Turn, Turns};
use crate::meter::{self, Account, Outside};
use crate::value::Value;
use crate::value::release::Scratch;
use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

impl Machine {
    /// Makes a host call; other branches run in the meantime.
    pub(super) fn call_host(&mut self, call: &ToolCall) -> Outside<ToolReply> {
        let host = self.core.host.clone();
        let id = self.is_branch().then(|| call.id.clone());
        let call = Outside::of(|| call.apart());
        self.give_way(id, || host.call(call)).unwrap_or_else(|| Outside::of(|| ToolReply::Stopped))
    }

    /// Returns whether this machine runs a branch other than the main one.
    pub(crate) fn is_branch(&self) -> bool {
        self.branch.turns.is_some()
    }

    /// The counters for the checks of `run-tests`, while it runs.
    pub(crate) fn counts(&mut self) -> &mut Option<Arc<Handle>> {
        &mut self.branch.counts
    }

    /// Waits for the decision on a call; other branches run in the meantime.
    ///
    /// # Errors
    /// Returns `Suspended` if the decision is still to be made, and `Cancelled` if this branch must end.
    pub(super) fn decide(&mut self, question: Question) -> Outcome<Decision> {
        let decision = match &self.branch.turns {
            None => {
                let host = self.core.host.clone();
                let decisions = self.waiting(|| host.decide(&[question]));
                decisions.first().cloned()
            }
            Some(_) => {
                let question = Box::new(question);
                self.step_aside(|index, core| Event::Asks(index, core, question), |_| ())
                    .and_then(|(_, decision)| decision)
            }
        };
        match decision {
            Some(Decision::Pending) => Err(Halt::Suspended.into()),
            Some(decision) => Ok(decision),
            None => Err(Halt::Cancelled.into()),
        }
    }

    /// Yields the core to other branches during an external wait, such as for the reply to `call`. Returns `None` if
    /// this branch must end.
    pub(super) fn give_way<R>(&mut self, call: Option<CallId>, wait: impl FnOnce() -> R) -> Option<R> {
        if self.branch.turns.is_none() {
            return Some(self.waiting(wait));
        }
        let waited = |turns: &Turns| {
            let reply = meter::outside(wait);
            let _ = turns.events.send(Event::Ready(turns.index));
            reply
        };
        self.step_aside(|index, core| Event::Waits(index, core, call), waited).map(|(reply, _)| reply)
    }

    /// Yields the core with an event, does `work` without it, and waits for the next turn. Returns the decision that
    /// comes with the turn; `None` if this branch must end.
    fn step_aside<R>(
        &mut self,
        event: impl FnOnce(usize, Box<Core>) -> Event,
        work: impl FnOnce(&Turns) -> R,
    ) -> Option<(R, Option<Decision>)> {
        let turns = self.branch.turns.as_ref()?;
        let placeholder = Box::new(Core::placeholder(&self.core));
        let mut core = std::mem::replace(&mut self.core, placeholder);
        self.bindings.suspend(&mut core);
        let streams = self.branch.take_streams(&mut core);
        handed_over(core, |core| turns.events.send(event(turns.index, core)).ok());
        let result = work(turns);
        let (mut core, result) = match turns.turn.recv().ok()? {
            Turn::Go(core) => (core, Some((result, None))),
            Turn::Decided(core, decision) => (core, Some((result, Some(decision)))),
            Turn::End(core) => (core, None),
        };
        core.account.open();
        self.bindings.resume(&mut core);
        streams.put_back(&mut core);
        self.core = core;
        result
    }

    /// Calls `function` once per item, in branches, with the arguments that `arguments` derives from the item.
    /// Returns the results in order. The first branch that raises ends the others.
    ///
    /// # Errors
    /// Returns what that branch raised.
    pub(crate) fn in_branches<T: Send + 'static>(
        &mut self,
        function: &Value,
        mut items: Scratch<T>,
        arguments: fn(T) -> Vec<Value>,
    ) -> Outcome<Vec<Value>> {
        let count = items.len();
        items.reverse();
        let inside = self.branch.turns.is_some() || count < 2 || self.core.host.servers().is_empty();
        if inside {
            // A single branch has nothing to overlap with; nested branches run in order.
            let mut values = Scratch::from(Vec::with_capacity(count));
            while let Some(item) = items.pop() {
                values.push(self.call(function, &mut arguments(item))?);
            }
            return Ok(values.into_vec());
        }
        let parallel = (self.core.meter.limits.parallel as usize).clamp(1, count);
        let (events, from_branches) = channel();
        let form = self.core.form;
        let number = self.branch.next_call(form).ordinal;
        let placeholder = Box::new(Core::placeholder(&self.core));
        let bound = self.bound_now();
        let mut core = std::mem::replace(&mut self.core, placeholder);
        self.bindings.suspend(&mut core);
        let mut scheduler = Scheduler {
            turns: Vec::with_capacity(count),
            ready: vec![false; count],
            waiting: VecDeque::new(),
            parked: Vec::new(),
            decided: VecDeque::new(),
            idle: 0,
            active: 0,
            results: (0..count).map(|_| None).collect(),
            failed: None,
        };
        let mut core = Some(core);
        loop {
            // The scheduler holds the core: pass it to a branch whose call was decided on, to a new branch, or to the one
            // that has waited longest.
            let Some(here) = core.take() else { break };
            let has_room = scheduler.active < parallel;
            if let Some((index, decision)) = scheduler.next_decided(parallel) {
                scheduler.resume_decided(index, here, decision);
            } else if has_room
                && scheduler.failed.is_none()
                && scheduler.parked.len() + scheduler.active < MOST_PARKED.max(parallel)
                && let Some(item) = items.pop()
            {
                let index = scheduler.turns.len();
                let (turn, receiver) = channel();
                let mut path = self.branch.path.clone();
                path.extend([number, index as u32]);
                let branch = Branch {
                    path,
                    form,
                    ordinal: 0,
                    turns: Some(Turns { index, events: events.clone(), turn: receiver }),
                    outside: (here.captured.len(), here.inputs.len()),
                    counts: self.branch.counts.clone(),
                };
                let (function, in_prelude) = (function.clone(), self.in_prelude);
                let stacks = here.stacks.clone();
                let size = stacks.size();
                let (depth, nesting) = (self.depth, self.nesting);
                let bound = bound.clone();
                let arguments = arguments(item);
                let job = Job { branch, in_prelude, size, depth, nesting, bound, function, arguments };
                let work = move || {
                    let hand_back = job.run();
                    move || hand_back.into_iter().for_each(|hand_back| hand_back())
                };
                if stacks.run(work) {
                    handed_over(here, |core| turn.send(Turn::Go(core)).ok());
                    scheduler.turns.push(turn);
                    scheduler.active += 1;
                    scheduler.idle = 0;
                } else {
                    scheduler.results[index] =
                        Some(Err(Error::new("Busy", "the system cannot start a thread for another branch").into()));
                    scheduler.turns.push(turn);
                    scheduler.failed = Some(index);
                    core = Some(here);
                    continue;
                }
            } else if !scheduler.is_stuck()
                && let Some((next, _)) = scheduler.waiting.pop_front()
            {
                scheduler.resume(next, here, &from_branches);
            } else if !scheduler.parked.is_empty() {
                core = Some(scheduler.decide(here));
                continue;
            } else {
                core = Some(here);
                break;
            }
            core = scheduler.until_core_returns(&from_branches);
        }
        let Some(core) = core else { return Err(Error::new("Busy", "a branch of the evaluation was lost").into()) };
        self.core = core;
        self.bindings.resume(&mut self.core);
        if let Some(first) = scheduler.failed {
            scheduler.results.swap(0, first);
        }
        let mut values = Vec::with_capacity(count);
        for result in scheduler.results.into_iter().flatten() {
            values.push(result?);
        }
        Ok(values)
    }
}

/// Closes the account on this thread and hands over the core with it.
fn handed_over<R>(mut core: Box<Core>, give: impl FnOnce(Box<Core>) -> R) -> R {
    core.account = Account::close();
    give(core)
}

/// The state that a branch needs to run on its thread once it receives the core.
struct Job {
    branch: Branch,
    in_prelude: bool,
    size: usize,
    depth: u32,
    nesting: u32,
    /// The dynamic bindings of the parent branch.
    bound: Vec<(u32, Value)>,
    function: Value,
    arguments: Vec<Value>,
}

impl Job {
    /// Runs the branch. Returns the step that hands the core back to the scheduler; `None` if there is no scheduler.
    fn run(mut self) -> Option<impl FnOnce() + Send> {
        let Some(Turn::Go(mut core)) = self.branch.turns.as_ref().and_then(|turns| turns.turn.recv().ok()) else {
            return None;
        };
        core.account.open();
        let mut machine = Machine::new(core, self.size);
        machine.in_prelude = self.in_prelude;
        machine.branch = self.branch;
        (machine.depth, machine.nesting) = (self.depth, self.nesting);
        let (bound, function, arguments) = (self.bound, &self.function, &mut self.arguments);
        let called = std::panic::catch_unwind(AssertUnwindSafe(|| {
            machine.with_bindings(bound, |machine| machine.call(function, arguments))
        }));
        // A panic is an internal defect; it must not leave the scheduler waiting.
        let result = called.unwrap_or_else(|_| Err(super::internal_error().into()));
        drop((self.function, self.arguments));
        drop(machine.branch.take_streams(&mut machine.core));
        let turns = machine.branch.turns.take()?;
        let placeholder = Box::new(Core::placeholder(&machine.core));
        let core = std::mem::replace(&mut machine.core, placeholder);
        drop(machine);
        handed_over(core, |core| {
            Some(move || {
                // A scheduler that has gone needs no result.
                let _ = turns.events.send(Event::Done(turns.index, core, result));
            })
        })
    }
}

struct Scheduler {
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
}

impl Scheduler {
    /// Returns whether all waiting branches wait for values of parked branches.
    fn is_stuck(&self) -> bool {
        !self.parked.is_empty()
            && self.failed.is_none()
            && self.idle >= self.waiting.len()
            && self.waiting.iter().all(|(_, call)| call.is_none())
    }

    /// Returns the next branch whose call was decided on, if its call may be made beside those under way. Branches that
    /// wait for values of others make no call.
    fn next_decided(&mut self, parallel: usize) -> Option<(usize, Decision)> {
        let is_crowded = || self.waiting.iter().filter(|(_, call)| call.is_some()).count() >= parallel;
        if self.decided.is_empty() || self.failed.is_none() && is_crowded() {
            return None;
        }
        self.decided.pop_front()
    }

    /// Asks the host for the decisions on the calls of all parked branches, which are resumed next. If one of them is
    /// still to be made, its branch is resumed first, and ends the others.
    fn decide(&mut self, mut core: Box<Core>) -> Box<Core> {
        let (indices, questions): (Vec<usize>, Vec<Question>) =
            self.parked.drain(..).map(|(index, question)| (index, *question)).unzip();
        if self.failed.is_some() {
            self.decided.extend(indices.into_iter().map(|index| (index, Decision::Pending)));
            return core;
        }
        let host = core.host.clone();
        let before = host.monotonic();
        let decisions = host.decide(&questions);
        core.meter.wait(host.monotonic().saturating_sub(before));
        self.decided.extend(indices.into_iter().zip(decisions.iter().cloned()));
        if let Some(pending) = self.decided.iter().position(|(_, decision)| *decision == Decision::Pending)
            && let Some(first) = self.decided.remove(pending)
        {
            self.decided.push_front(first);
        }
        core
    }

    /// Passes the core to a branch whose call was decided on.
    fn resume_decided(&mut self, index: usize, core: Box<Core>, decision: Decision) {
        self.active += 1;
        self.idle = 0;
        let turn = match self.failed {
            None => |core, decision| Turn::Decided(core, decision),
            Some(_) => |core, _| Turn::End(core),
        };
        handed_over(core, |core| self.turns[index].send(turn(core, decision)).ok());
    }

    /// Passes the core to a waiting branch once its wait has ended, be it by a reply or because the call was given
    /// up.
    fn resume(&mut self, index: usize, mut core: Box<Core>, events: &Receiver<Event>) {
        let before = core.host.monotonic();
        while !self.ready[index] {
            match events.recv() {
                Ok(Event::Ready(index)) => self.ready[index] = true,
                // Only the holder of the core sends the other events, and the scheduler holds it now.
                Ok(_) => {}
                Err(_) => return,
            }
        }
        let after = core.host.monotonic();
        core.meter.wait(after.saturating_sub(before).max(Duration::ZERO));
        self.ready[index] = false;
        let turn = if self.failed.is_none() { Turn::Go } else { Turn::End };
        handed_over(core, |core| self.turns[index].send(turn(core)).ok());
    }

    /// Waits until the running branch returns the core, then opens its account on this thread.
    fn until_core_returns(&mut self, events: &Receiver<Event>) -> Option<Box<Core>> {
        loop {
            let core = match events.recv().ok()? {
                Event::Ready(index) => {
                    self.ready[index] = true;
                    continue;
                }
                Event::Waits(index, mut core, call) => {
                    core.account.open();
                    self.idle = if call.is_none() { self.idle + 1 } else { 0 };
                    self.waiting.push_back((index, call));
                    core
                }
                Event::Asks(index, mut core, question) => {
                    core.account.open();
                    self.active -= 1;
                    self.idle = 0;
                    self.parked.push((index, question));
                    core
                }
                Event::Done(index, mut core, result) => {
                    core.account.open();
                    self.active -= 1;
                    self.idle = 0;
                    if result.is_err() && self.failed.is_none() {
                        self.failed = Some(index);
                        self.waiting
                            .iter()
                            .filter_map(|(_, call)| call.as_ref())
                            .for_each(|call| core.host.give_up(call));
                    }
                    self.results[index] = Some(result);
                    core
                }
            };
            return Some(core);
        }
    }
}
