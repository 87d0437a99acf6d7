//! The evaluator: a tree walk over resolved nodes.
//!
//! A [`Machine`] runs one branch of an evaluation. It owns the branch's value stack and, during its turn, the
//! [`Core`]: the ledger, the heap, the definitions and the host. Locals are slots on the value stack. A call of a
//! function puts its arguments where the callee's frame begins; a call of a builtin passes them as a slice. A
//! successful evaluation allocates nothing but the values themselves.
//!
//! Evaluating a node yields an [`Answer`](answer::Answer), which fits two registers. Calls of keywords, and of
//! builtins that are an [`Operator`](crate::lang::builtin::operators::Operator), are separate nodes that do their
//! work inline. Such fast paths change only the running time: `tests/shortcuts.rs` and the fuzz target `evaluate`
//! compare results with a walk that takes none.

mod aliases;
mod answer;
mod branches;
mod call;
mod core;
mod lazy;
mod macros;
mod names;
mod operators;
mod rows;
mod stacks;
mod tools;
mod vars;
mod walk;

pub use answer::Walked;
pub use call::Frame;
pub use core::{Core, Global, Globals, Visible};
pub(crate) use lazy::Realised;
pub use lazy::place_in_text;
pub(crate) use macros::Expansion;
pub(crate) use names::{Constants, value_of};
pub use rows::Object;
pub use stacks::Stacks;
pub(crate) use vars::is_unbound;

use crate::lang::builtin::Builtin;
use crate::lang::error::{Error, Halt, Outcome, Raised, Signal, suggest};
use crate::lang::expand::{Expander, Reached};
use crate::lang::form::Form;
use crate::lang::host::Host;
use crate::lang::resolve::Program;
use crate::lang::span::Source;
use crate::lang::value::Value;
use crate::lang::value::function::Captures;
use crate::lang::value::map::Map;
use crate::lang::value::shape::Shape;
use std::any::Any;
use std::sync::Arc;

/// Number of nested nodes allowed per allowed nested call.
const NODES_A_CALL: u32 = 20;

/// The interpreter for one branch of an evaluation.
pub struct Machine {
    /// The state shared by all branches of an evaluation. This machine holds it while it is its turn to run.
    pub core: Box<Core>,
    stack: Vec<Value>,
    /// The number of active calls.
    depth: u32,
    /// The maximum number of nested nodes in the active calls: the sum of their static nesting depths.
    nesting: u32,
    /// The lowest address that the native stack may reach.
    floor: usize,
    /// True while a function of the prelude runs.
    in_prelude: bool,
    /// The value of the last node if an [`Answer`](answer::Answer) cannot hold it, until it is taken.
    passed: Value,
    /// The signal that is unwinding the walk, until it is taken.
    signal: Option<Signal>,
    /// Callee and number of arguments of a pending tail call.
    tail: Option<call::Tail>,
    /// The rest of the arguments of the next call, which follow those on the stack. Its callee has an `& rest`.
    further: Option<Value>,
    branch: branches::Branch,
    /// The dynamic bindings (`binding`) of this branch.
    bindings: vars::Bindings,
    /// Inline cache of the last look-up: the index of the key in a small map.
    place: usize,
    /// The last key that was not found, with the shape of the map that lacked it. It explains a later type error
    /// whose cause is an unexpected nil.
    missed: Option<(Value, Arc<Shape>)>,
}

impl Machine {
    /// Creates the machine for the main branch, on a thread with `stack_size` bytes of stack available.
    pub fn new(core: Box<Core>, stack_size: usize) -> Machine {
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
            branch: branches::Branch::default(),
            bindings: vars::Bindings::default(),
            place: 0,
            missed: None,
        }
    }

    /// Returns the host of this evaluation if it is of type `H`. Functions that the host has added to the language
    /// use it.
    pub fn host<H: Host>(&self) -> Option<&H> {
        let host: &dyn Any = &*self.core.host;
        host.downcast_ref()
    }

    /// Charges fuel for steps.
    ///
    /// # Errors
    /// Returns a halt if a limit is exceeded or the host requests one.
    #[inline]
    pub fn charge(&mut self, steps: u64) -> Outcome<()> {
        if self.core.meter.pay(steps) { self.look() } else { Ok(()) }
    }

    #[cold]
    #[inline(never)]
    fn look(&mut self) -> Outcome<()> {
        if !self.core.meter.pay_debts() {
            // The debt belongs to another thread's evaluation.
            return Ok(());
        }
        if self.core.heap.wants_sweep() {
            self.sweep();
        }
        self.or_sweep(|machine| machine.core.meter.look(&*machine.core.host))
    }

    /// Checks that `bytes` of memory may be allocated. Bulk operations call this before they allocate.
    ///
    /// # Errors
    /// Returns a halt if the memory limit does not allow it.
    pub fn reserve(&mut self, bytes: u64) -> Outcome<()> {
        self.or_sweep(|machine| machine.core.meter.check_memory(bytes, &*machine.core.host))
    }

    /// Returns whether `count` values fit into a quarter of the remaining memory, so that they may be reserved
    /// speculatively.
    pub fn has_room_for(&self, count: usize) -> bool {
        let bytes = (count as u64).saturating_mul(size_of::<Value>() as u64);
        self.core.meter.has_room(bytes.saturating_mul(4))
    }

    /// Checks the deadline only, for long work that charges no fuel.
    ///
    /// # Errors
    /// Returns a halt if the time limit is exceeded or the host requests one.
    pub fn check_time(&mut self) -> Outcome<()> {
        let core = &mut *self.core;
        Ok(core.meter.check_time(&*core.host)?)
    }

    /// Checks that memory for `count` values may be allocated. Counts below 64 are not checked.
    pub fn reserve_values(&mut self, count: u64) -> Outcome<()> {
        if count < 64 { Ok(()) } else { self.reserve(count.saturating_mul(size_of::<Value>() as u64)) }
    }

    /// Runs a memory check. If memory is short, drops the row numbers of the last session text, collects cyclic
    /// garbage and repeats the check.
    fn or_sweep(&mut self, ask: impl Fn(&mut Self) -> Result<(), Halt>) -> Outcome<()> {
        match ask(self) {
            Err(Halt::Limit { name: "memory", .. }) if !self.core.heap.is_empty() || !self.core.rows.is_empty() => {
                self.core.rows = Vec::new();
                let looked_at = self.sweep();
                let _ = self.core.meter.pay(looked_at);
                Ok(ask(self)?)
            }
            other => Ok(other?),
        }
    }

    /// Collects cells that are reachable only from themselves; returns the number of nodes visited. Its working
    /// memory is bounded by a quarter of the memory limit.
    ///
    /// A collection that is triggered by the number of cells charges no fuel: its timing depends on what ran before,
    /// and the step count of a program must not. The heap schedules these collections so that their cost is
    /// amortized. A collection that is triggered by a memory shortage is charged, which bounds how often a program
    /// can cause one.
    fn sweep(&mut self) -> u64 {
        let most = usize::try_from(self.core.meter.limits.memory / 4).unwrap_or(usize::MAX);
        let core = &mut *self.core;
        // Only the time limit can be exceeded here; the program then ends at the next check.
        let (meter, host) = (&mut core.meter, &*core.host);
        let mut stop = || meter.check_time(host).is_err();
        core.heap.sweep(most, &mut stop)
    }

    /// Runs a resolved top-level form.
    ///
    /// # Errors
    /// Returns what the form raises.
    pub fn run(&mut self, program: &Program, source: &Arc<Source>) -> Outcome<Value> {
        self.in_prelude = source.is_hidden;
        let base = self.stack.len();
        self.stack.resize(base + program.frame as usize, Value::Nil);
        let captures = Captures::default();
        let frame = Frame { base, closure: None, captures: captures.as_slice(), source };
        let value = self.value(&frame, &program.body);
        self.stack.truncate(base);
        value
    }

    /// Expands, resolves and runs one form.
    ///
    /// # Errors
    /// Returns what any of these steps raises.
    pub fn evaluate(&mut self, form: Form, source: &Arc<Source>) -> Outcome<Value> {
        self.evaluate_part(form, source, Reached::default())
    }

    /// Evaluates a form whose macros have been expanded as far as `reached`.
    fn evaluate_part(&mut self, mut form: Form, source: &Arc<Source>, reached: Reached) -> Outcome<Value> {
        self.in_prelude = source.is_hidden;
        self.core.shadowed.clear();
        let mut expander = Expander::of_part(self, source, reached);
        expander.head(&mut form)?;
        let Some(parts) = expander.parts(&form) else {
            expander.expand(&mut form)?;
            let program = crate::lang::resolve::Resolver::new(self, source).program(&form)?;
            drop(form);
            return self.run(&program, source);
        };
        let reached = expander.within_block(form.span)?;
        self.charge(parts.len() as u64)?;
        self.core.coming.extend(parts.iter().filter_map(|part| part.defined_name()).map(str::to_string));
        let mut last = Value::Nil;
        for part in parts {
            last = self.evaluate_part(part.into_owned(), source, reached)?;
        }
        Ok(last)
    }

    /// Records a key that a map lacks.
    #[cold]
    fn note_miss(&mut self, key: &Value, map: &Map) {
        if let (Value::Keyword(_) | Value::Str(_), Some((shape, _))) = (key, map.as_shaped()) {
            self.missed = Some((key.clone(), shape.clone()));
        }
    }

    /// Adds a suggestion for the key that was likely meant, if the error is due to a nil from a failed look-up.
    fn blame_miss(&self, mut error: Arc<Error>) -> Arc<Error> {
        // A long text is never a misspelt key.
        const LONGEST: usize = 100;
        let Some((key, shape)) = &self.missed else { return error };
        let is_short = |key: &Value| key.is_scalar() && (key.as_str().map_or(0, str::len) <= LONGEST);
        if error.code == "TypeError" && error.message.ends_with("got nil") && is_short(key) {
            let written = format!("{key:?}");
            let keys = shape.keys().iter().filter(|key| is_short(key));
            let keys: Vec<String> = keys.map(|key| format!("{key:?}")).collect();
            if let Some(nearest) = suggest::closest(&written, keys.iter().map(String::as_str)) {
                Arc::make_mut(&mut error).suggestion =
                    Some(format!("the map has no key {written}. {}", suggest::did_you_mean(nearest)));
            }
        }
        error
    }

    /// Attaches the name of the builtin that rejected its argument. Does nothing in a function of the prelude: its
    /// parts are not what the program called, and the function itself is named later.
    #[cold]
    fn named(&self, signal: Signal, builtin: &Builtin) -> Signal {
        if self.in_prelude { signal } else { signal.within(builtin) }
    }

    /// Attaches the location of a call to a signal that has none yet.
    #[cold]
    fn placed(&self, frame: &Frame<'_>, signal: Signal, span: crate::lang::span::Span) -> Signal {
        match signal.into_raised() {
            Raised::Error(error) => Signal::from(self.blame_miss(error)).at(frame.source, span),
            Raised::Fault(fault) => fault.into(),
            Raised::Halt(halt) => halt.into(),
        }
    }
}

impl Machine {
    /// Returns the core at the end of the evaluation. Drops the branch's stack first.
    pub fn into_core(self) -> Box<Core> {
        let Machine { core, stack, .. } = self;
        drop(stack);
        core
    }
}

/// The error for an internal defect of lispbox.
#[cold]
pub(crate) fn internal_error() -> crate::lang::error::Error {
    crate::lang::error::Error::new("InternalError", "lispbox has a defect that this program found; please report it")
}
