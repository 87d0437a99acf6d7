//! Branches: `pmap` and related functions overlap the waiting time of tool calls, never the computation.
//!
//! Each branch has its own evaluation thread, but only the one that holds the [`Core`] runs Lisp. A branch yields the
//! core when it waits for the host, in the order that the [`Scheduler`] keeps, so that results are deterministic. The
//! first branch that fails ends the others: calls that wait for the host are told to stop, and no new branch starts.
//!
//! A branch whose call needs the decision of a person is parked. The parked calls are decided on together once no other
//! branch can proceed, whether or not the answers are known already: the order in which branches run does not depend on
//! when or how a person decides.

use super::{Core, Machine};
use crate::error::{Error, Halt, Outcome};
use crate::heap::Handle;
use crate::host::{CallId, Decision, Question, ToolCall, ToolReply};
use crate::machine::{Caller, Job, Next, Scheduler, Stacks, Surroundings, Turn, Turns, Work, closed};
use crate::meter::{self, Outside};
use crate::value::Value;
use crate::value::release::Scratch;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::mpsc::Sender;

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
                self.step_aside(|turns, core| turns.scheduler.asks(turns.index, core, question), |_| ((), None))
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
            (reply, turns.scheduler.ready(turns.index))
        };
        self.step_aside(|turns, core| turns.scheduler.waits(turns.index, core, call), waited).map(|(reply, _)| reply)
    }

    /// Yields the core, does `work` without it, and waits for the next turn, unless `work` returns it. Returns the
    /// decision that comes with the turn; `None` if this branch must end.
    fn step_aside<R>(
        &mut self,
        yields: impl FnOnce(&Turns, Box<Core>) -> Next,
        work: impl FnOnce(&Turns) -> (R, Option<Turn>),
    ) -> Option<(R, Option<Decision>)> {
        let placeholder = self.branch.spare.take().unwrap_or_else(|| Box::new(Core::placeholder(&self.core)));
        let mut core = std::mem::replace(&mut self.core, placeholder);
        self.bindings.suspend(&mut core);
        let streams = self.branch.take_streams(&mut core);
        let turns = self.branch.turns.as_ref()?;
        let stacks = core.stacks.clone();
        if let Some(core) = passed_on(&turns.scheduler, &stacks, yields(turns, core)) {
            turns.scheduler.return_core(core);
        }
        let (result, turn) = work(turns);
        let (mut core, result) = match turn.or_else(|| turns.turn.recv().ok())? {
            Turn::Go(core) => (core, Some((result, None))),
            Turn::Decided(core, decision) => (core, Some((result, Some(decision)))),
            Turn::End(core) => (core, None),
        };
        core.account.open();
        self.bindings.resume(&mut core);
        streams.put_back(&mut core);
        self.branch.spare = Some(std::mem::replace(&mut self.core, core));
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
        let form = self.core.form;
        let number = self.branch.next_call(form).ordinal;
        let mut path = self.branch.path.clone();
        path.push(number);
        let work = Work {
            arguments: Box::new(move || items.pop().map(arguments)),
            function: function.clone(),
            bound: self.bound_now(),
            path,
            form,
            in_prelude: self.in_prelude,
            depth: self.depth,
            nesting: self.nesting,
            counts: self.branch.counts.clone(),
        };
        let placeholder = Box::new(Core::placeholder(&self.core));
        let mut core = std::mem::replace(&mut self.core, placeholder);
        self.bindings.suspend(&mut core);
        let stacks = core.stacks.clone();
        let Caller { scheduler, returned } = &Scheduler::start(work, count, parallel);
        loop {
            let passed = passed_on(scheduler, &stacks, scheduler.next(core));
            let Ok(back) = passed.map_or_else(|| returned.recv(), Ok) else {
                return Err(Error::new("Busy", "a branch of the evaluation was lost").into());
            };
            core = back;
            core.account.open();
            if !scheduler.decide(&mut core) {
                break;
            }
        }
        self.core = core;
        self.bindings.resume(&mut self.core);
        scheduler.results().into_iter().collect()
    }
}

/// Hands over the core to whoever holds it next, unless that is the caller of `pmap`, for whom it is returned.
fn passed_on(scheduler: &Arc<Scheduler>, stacks: &Arc<Stacks>, mut next: Next) -> Option<Box<Core>> {
    loop {
        match next {
            Next::Reply => return None,
            Next::Caller(core) => return Some(core),
            Next::Waiting(branch, turn) => {
                give(&branch, turn);
                return None;
            }
            Next::New(job, branch, core) => {
                let size = stacks.size();
                let surroundings = meter::outside(Surroundings::here);
                if stacks.run(move || surroundings.within(|| in_turn(*job, size))) {
                    give(&branch, Turn::Go(closed(core)));
                    return None;
                }
                scheduler.not_started();
                next = scheduler.next(core);
            }
        }
    }
}

/// Runs a branch once it gets its turn, then each new branch that is next when one is done. Returns the last step, which
/// hands over the core.
fn in_turn(job: Job, size: usize) -> impl FnOnce() + Send {
    let turn = job.branch.turns.as_ref().and_then(|turns| turns.turn.recv().ok());
    let mut after = match turn {
        Some(Turn::Go(mut core)) => {
            core.account.open();
            run(job, core, size)
        }
        _ => None,
    };
    while let Some((_, Next::New(job, _, core))) = after {
        after = run(*job, core, size);
    }
    move || match after {
        Some((scheduler, Next::Caller(core))) => scheduler.return_core(core),
        Some((_, Next::Waiting(branch, turn))) => give(&branch, turn),
        Some((_, Next::New(..) | Next::Reply)) | None => {}
    }
}

/// Gives a branch its turn. One that has gone needs none.
fn give(branch: &Sender<Turn>, turn: Turn) {
    let _ = branch.send(turn);
}

/// Runs a branch to its end. Returns who holds the core next; `None` if it is not a branch.
fn run(mut job: Job, core: Box<Core>, size: usize) -> Option<(Arc<Scheduler>, Next)> {
    let mut machine = Machine::new(core, size);
    machine.in_prelude = job.in_prelude;
    machine.branch = job.branch;
    (machine.depth, machine.nesting) = (job.depth, job.nesting);
    let (bound, function, arguments) = (job.bound, &job.function, &mut job.arguments);
    let called = std::panic::catch_unwind(AssertUnwindSafe(|| {
        machine.with_bindings(bound, |machine| machine.call(function, arguments))
    }));
    // A panic is an internal defect; it must not leave the others waiting.
    let result = called.unwrap_or_else(|_| Err(super::internal_error().into()));
    drop((job.function, job.arguments));
    drop(machine.branch.take_streams(&mut machine.core));
    let Turns { index, scheduler, .. } = machine.branch.turns.take()?;
    let placeholder = machine.branch.spare.take().unwrap_or_else(|| Box::new(Core::placeholder(&machine.core)));
    let core = std::mem::replace(&mut machine.core, placeholder);
    drop(machine);
    let next = scheduler.done(index, core, result);
    Some((scheduler, next))
}
