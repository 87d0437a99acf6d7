//! Branches: `pmap` and its kin overlap the waiting of tool calls, never the computing.
//!
//! Each branch runs on an evaluation thread of its own, but only the one that holds the [`Core`] runs
//! Lisp. A branch hands the core back when it waits for the host; the scheduler gives it to the next
//! new branch while there is room, else to the branch that has waited longest, once its reply is
//! there. So the order in which branches run depends on the program alone, never on which reply came
//! first, and results are the same every time. The first branch that fails ends the others: those that wait
//! for the host are told to stop, and no new one begins.

use super::{Core, Machine};
use crate::lang::error::{Error, Outcome};
use crate::lang::heap::Handle;
use crate::lang::host::{CallId, ToolCall, ToolReply};
use crate::lang::meter::{self, Account};
use crate::lang::value::Value;
use crate::lang::value::release::Scratch;
use crate::lang::value::text::Text;
use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Which branch a machine runs, and how it gives its turn away.
#[derive(Default)]
pub(super) struct Branch {
    path: Vec<u32>,
    form: u32,
    ordinal: u32,
    turns: Option<Turns>,
    /// How many texts were being printed to and read from when it began: those are not its own.
    outside: (usize, usize),
    /// The counts of the checks of the `run-tests` that it is in.
    pub(super) counts: Option<Arc<Handle>>,
}

/// The texts that a branch prints to and reads from, taken out while it waits.
struct Streams {
    captured: Vec<String>,
    inputs: Vec<(Text, usize)>,
}

/// A branch's end of the arrangement with its scheduler.
struct Turns {
    index: usize,
    events: Sender<Event>,
    turn: Receiver<Turn>,
}

/// What a branch is given the core for.
enum Turn {
    /// To go on.
    Go(Box<Core>),
    /// To end, since a branch beside it has failed.
    End(Box<Core>),
}

/// What a branch tells its scheduler.
enum Event {
    /// It waits for the host, for the reply to that call if it is one, and gives the core away.
    Waits(usize, Box<Core>, Option<CallId>),
    /// Its reply is there.
    Ready(usize),
    /// It is done, and gives the core away.
    Done(usize, Box<Core>, Outcome<Value>),
}

impl Branch {
    /// The identity of the next host call of this branch.
    pub(super) fn next_call(&mut self, form: u32) -> CallId {
        if self.form != form {
            self.form = form;
            self.ordinal = 0;
        }
        let id = CallId { form, branch: self.path.clone(), ordinal: self.ordinal };
        self.ordinal += 1;
        id
    }

    /// What tells it from the others that run beside it; 0 for the main branch.
    pub(super) fn number(&self) -> u32 {
        self.turns.as_ref().map_or(0, |turns| turns.index as u32 + 1)
    }

    /// Takes out what it prints to and reads from: other branches do not see it.
    fn take_streams(&self, core: &mut Core) -> Streams {
        let (captured, inputs) = self.outside;
        Streams {
            captured: core.captured.drain(captured.min(core.captured.len())..).collect(),
            inputs: core.inputs.drain(inputs.min(core.inputs.len())..).collect(),
        }
    }
}

impl Streams {
    fn put_back(self, core: &mut Core) {
        core.captured.extend(self.captured);
        core.inputs.extend(self.inputs);
    }
}

impl Machine {
    /// Makes a host call; other branches run meanwhile.
    pub(super) fn call_host(&mut self, call: ToolCall) -> ToolReply {
        let host = self.core.host.clone();
        let id = self.is_branch().then(|| call.id.clone());
        self.give_way(id, || host.call(call)).unwrap_or(ToolReply::Stopped)
    }

    /// True inside of a branch that others run beside.
    pub(crate) fn is_branch(&self) -> bool {
        self.branch.turns.is_some()
    }

    /// Where checks are counted here, while `run-tests` runs.
    pub(crate) fn counts(&mut self) -> &mut Option<Arc<Handle>> {
        &mut self.branch.counts
    }

    /// Gives the core to other branches while something outside of it is waited for, such as the reply to that
    /// call; `None` if this branch is to end.
    pub(super) fn give_way<R>(&mut self, call: Option<CallId>, wait: impl FnOnce() -> R) -> Option<R> {
        let Some(turns) = &self.branch.turns else { return Some(self.waiting(wait)) };
        let index = turns.index;
        let placeholder = Box::new(Core::placeholder(&self.core));
        let mut core = std::mem::replace(&mut self.core, placeholder);
        self.bindings.suspend(&mut core);
        let streams = self.branch.take_streams(&mut core);
        handed_over(core, |core| turns.events.send(Event::Waits(index, core, call)).ok());
        let reply = meter::outside(wait);
        let _ = turns.events.send(Event::Ready(index));
        let (mut core, reply) = match turns.turn.recv().ok()? {
            Turn::Go(core) => (core, Some(reply)),
            Turn::End(core) => (core, None),
        };
        core.account.open();
        self.bindings.resume(&mut core);
        streams.put_back(&mut core);
        self.core = core;
        reply
    }

    /// Calls `function` on what `arguments` makes of each item, in branches, and returns the results in order.
    /// The first branch that raises something ends the others.
    ///
    /// # Errors
    /// What that branch raised.
    pub fn in_branches<T: Send + 'static>(
        &mut self,
        function: &Value,
        mut items: Scratch<T>,
        arguments: fn(T) -> Vec<Value>,
    ) -> Outcome<Vec<Value>> {
        let count = items.len();
        items.reverse();
        let inside = self.branch.turns.is_some() || count < 2 || self.core.host.servers().is_empty();
        if inside {
            // One branch has nothing to wait beside; branches in branches take their turns in order.
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
            active: 0,
            results: (0..count).map(|_| None).collect(),
            failed: None,
        };
        let mut core = Some(core);
        loop {
            // The core is here: give it to a new branch, or to the one that has waited longest.
            let Some(here) = core.take() else { break };
            if scheduler.active < parallel
                && scheduler.failed.is_none()
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
                if stacks.run(move || job.run()) {
                    handed_over(here, |core| turn.send(Turn::Go(core)).ok());
                    scheduler.turns.push(turn);
                    scheduler.active += 1;
                } else {
                    scheduler.results[index] =
                        Some(Err(Error::new("Busy", "the system has no thread to give for another branch").into()));
                    scheduler.turns.push(turn);
                    scheduler.failed = Some(index);
                    core = Some(here);
                    continue;
                }
            } else if let Some((next, _)) = scheduler.waiting.pop_front() {
                scheduler.resume(next, here, &from_branches);
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

/// Closes the account of this thread and gives the core away with it.
fn handed_over<R>(mut core: Box<Core>, give: impl FnOnce(Box<Core>) -> R) -> R {
    core.account = Account::close();
    give(core)
}

/// What a branch needs to run on its thread, once it is given the core.
struct Job {
    branch: Branch,
    in_prelude: bool,
    size: usize,
    depth: u32,
    nesting: u32,
    /// What the branch that began this one has bound.
    bound: Vec<(u32, Value)>,
    function: Value,
    arguments: Vec<Value>,
}

impl Job {
    fn run(mut self) {
        let Some(Turn::Go(mut core)) = self.branch.turns.as_ref().and_then(|turns| turns.turn.recv().ok()) else {
            return;
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
        // A defect of ours must not leave the scheduler waiting.
        let result = called.unwrap_or_else(|_| Err(super::internal_error().into()));
        drop((self.function, self.arguments));
        drop(machine.branch.take_streams(&mut machine.core));
        let Some(turns) = machine.branch.turns.take() else { return };
        let placeholder = Box::new(Core::placeholder(&machine.core));
        let core = std::mem::replace(&mut machine.core, placeholder);
        drop(machine);
        handed_over(core, |core| turns.events.send(Event::Done(turns.index, core, result)).ok());
    }
}

struct Scheduler {
    turns: Vec<Sender<Turn>>,
    ready: Vec<bool>,
    /// The branches that wait, longest first, and for the replies to which calls.
    waiting: VecDeque<(usize, Option<CallId>)>,
    active: usize,
    results: Vec<Option<Outcome<Value>>>,
    /// The first branch that failed.
    failed: Option<usize>,
}

impl Scheduler {
    /// Gives the core to a waiting branch once its reply is there, or once it is given up.
    fn resume(&mut self, index: usize, mut core: Box<Core>, events: &Receiver<Event>) {
        let before = core.host.monotonic();
        while !self.ready[index] {
            match events.recv() {
                Ok(Event::Ready(index)) => self.ready[index] = true,
                // Only the holder of the core sends the other events, and that is us.
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

    /// Waits for the branch that runs to give the core back, and opens its account here.
    fn until_core_returns(&mut self, events: &Receiver<Event>) -> Option<Box<Core>> {
        loop {
            let core = match events.recv().ok()? {
                Event::Ready(index) => {
                    self.ready[index] = true;
                    continue;
                }
                Event::Waits(index, mut core, call) => {
                    core.account.open();
                    self.waiting.push_back((index, call));
                    core
                }
                Event::Done(index, mut core, result) => {
                    core.account.open();
                    self.active -= 1;
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
