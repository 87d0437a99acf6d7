//! The state of an evaluation: a machine per branch, and the core that the branches share.
//!
//! This room holds data and the bookkeeping on it; [`eval`](crate::eval) is the code that runs on it. It lies
//! below the evaluator because values refer to builtins, and the signature of a builtin names the machine.

mod accounting;
mod bindings;
mod branches;
mod core;
mod counted;
mod frame;
mod holders;
mod look_ups;
mod rows;
mod similar;
mod stacks;
mod surroundings;
mod waiting;

pub use bindings::{Binding, Bindings};
pub use branches::Branch;
pub(crate) use branches::{Caller, Capture, Job, Next, Scheduler, Turn, Turns, Work, closed};
pub(crate) use core::unbound;
pub use core::{Core, Global};
pub use counted::CountedCalls;
pub use frame::{Answer, Frame, Stopped, Tail, Walked};
pub use look_ups::LookUps;
pub use rows::Object;
pub use stacks::Stacks;
pub(crate) use stacks::here;
pub(crate) use surroundings::Surroundings;

use crate::error::Signal;
use crate::value::Value;
use crate::value::shape::Shape;
use std::sync::Arc;

/// The interpreter for one branch of an evaluation.
pub struct Machine {
    /// The state shared by all branches of an evaluation. This machine holds it while it is its turn to run.
    pub(crate) core: Box<Core>,
    pub(crate) stack: Vec<Value>,
    /// The number of active calls.
    pub(crate) depth: u32,
    /// The maximum number of nested nodes in the active calls: the sum of their static nesting depths.
    pub(crate) nesting: u32,
    /// The lowest address that the native stack may reach.
    pub(crate) floor: usize,
    /// True while a function of the prelude runs.
    pub(crate) in_prelude: bool,
    /// The value of the last node if an [`Answer`] cannot hold it, until it is taken.
    pub(crate) passed: Value,
    /// The signal that is unwinding the walk, until it is taken.
    pub(crate) signal: Option<Signal>,
    /// Callee and number of arguments of a pending tail call.
    pub(crate) tail: Option<Tail>,
    /// The rest of the arguments of the next call, which follow those on the stack. Its callee has an `& rest`.
    pub(crate) further: Option<Value>,
    pub(crate) branch: Branch,
    /// The dynamic bindings (`binding`) of this branch.
    pub(crate) bindings: Bindings,
    /// Inline cache of the last look-up: the index of the key in a small map.
    pub(crate) place: usize,
    /// The last key that was not found, with the shape of the map that lacked it. It explains a later type error
    /// whose cause is an unexpected nil.
    pub(crate) missed: Option<(Value, Arc<Shape>)>,
}

impl Machine {
    /// Creates the machine for the main branch, on a thread with `stack_size` bytes of stack available.
    pub(crate) fn new(core: Box<Core>, stack_size: usize) -> Machine {
        Machine {
            core,
            stack: Vec::new(),
            depth: 0,
            nesting: 0,
            floor: stacks::floor(stack_size),
            in_prelude: false,
            passed: Value::Nil,
            signal: None,
            tail: None,
            further: None,
            branch: Branch::default(),
            bindings: Bindings::default(),
            place: 0,
            missed: None,
        }
    }

    /// Returns the core at the end of the evaluation. Drops the branch's stack first.
    pub(crate) fn into_core(self) -> Box<Core> {
        let Machine { core, stack, .. } = self;
        drop(stack);
        core
    }
}
