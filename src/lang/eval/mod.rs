//! The evaluator: a walk over resolved nodes.
//!
//! A [`Machine`] runs one branch of an evaluation. It owns the branch's value stack and, while it is its
//! turn, the [`Core`]: ledger, heap, definitions, host. Locals are slots on the value stack; a call of a
//! function puts its arguments where the callee's frame begins; a call of a builtin passes them as an
//! array. Nothing on the way of a successful evaluation allocates but the values themselves.
//!
//! What a node comes to is an [`Answer`](answer::Answer), which fits two registers; calls of builtins that are an
//! [`Operator`](crate::lang::builtin::operators::Operator), and of keywords, are nodes of their own, that do the work where it stands. Such short cuts change nothing
//! but the time: `tests/shortcuts.rs` and the fuzz target `evaluate` compare with a walk that takes none.

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

/// How many nodes may nest for each call that may nest.
const NODES_A_CALL: u32 = 20;

/// Runs one branch of an evaluation.
pub struct Machine {
    /// What the branches of an evaluation share; it is this machine's turn while it runs.
    pub core: Box<Core>,
    stack: Vec<Value>,
    /// Calls that are under way.
    depth: u32,
    /// Nodes that those calls may nest.
    nesting: u32,
    /// The lowest address that the machine stack may reach.
    floor: usize,
    /// True while a function of the prelude is running.
    in_prelude: bool,
    /// What the last node came to, where it is no [`Answer`](answer::Answer) by itself, until it is taken.
    passed: Value,
    /// What ends the walk early, until somebody takes it.
    signal: Option<Signal>,
    /// Callee and number of arguments of a tail call on its way up.
    tail: Option<call::Tail>,
    /// What goes on behind the arguments of the next call, whose function has an `& rest`.
    further: Option<Value>,
    branch: branches::Branch,
    /// What `binding` has bound in this branch.
    bindings: vars::Bindings,
    /// Where the key of the last look-up stood in a small map.
    place: usize,
    /// The key that was last looked for in vain, and the keys that were there: when nil then turns up
    /// where something else was meant, this is likely why.
    missed: Option<(Value, Arc<Shape>)>,
}

impl Machine {
    /// A machine for the main branch, on a thread with that much stack to spare.
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

    /// The host that runs this evaluation, if it is of that kind: for the functions that it has added to the
    /// language.
    pub fn host<H: Host>(&self) -> Option<&H> {
        let host: &dyn Any = &*self.core.host;
        host.downcast_ref()
    }

    /// Pays for steps.
    ///
    /// # Errors
    /// A halt when a limit is exceeded or the host asks for it.
    #[inline]
    pub fn charge(&mut self, steps: u64) -> Outcome<()> {
        if self.core.meter.pay(steps) { self.look() } else { Ok(()) }
    }

    #[cold]
    #[inline(never)]
    fn look(&mut self) -> Outcome<()> {
        if !self.core.meter.pay_debts() {
            // Another thread's evaluation owes.
            return Ok(());
        }
        if self.core.heap.wants_sweep() {
            self.sweep();
        }
        self.or_sweep(|machine| machine.core.meter.look(&*machine.core.host))
    }

    /// Asks for memory before it is taken: bulk work calls this before it builds.
    ///
    /// # Errors
    /// A halt when the memory limit does not allow it.
    pub fn reserve(&mut self, bytes: u64) -> Outcome<()> {
        self.or_sweep(|machine| machine.core.meter.check_memory(bytes, &*machine.core.host))
    }

    /// True if that many values take no more than a part of the memory that is left, so that they may be reserved on the
    /// off-chance.
    pub fn has_room_for(&self, count: usize) -> bool {
        let bytes = (count as u64).saturating_mul(size_of::<Value>() as u64);
        self.core.meter.has_room(bytes.saturating_mul(4))
    }

    /// Looks at the clock alone, where work goes on for long that no steps are paid for.
    ///
    /// # Errors
    /// A halt when the time is up or the host asks for it.
    pub fn check_time(&mut self) -> Outcome<()> {
        let core = &mut *self.core;
        Ok(core.meter.check_time(&*core.host)?)
    }

    /// Asks for room for that many values.
    ///
    /// # Errors
    /// As [`Machine::reserve`].
    pub fn reserve_values(&mut self, count: u64) -> Outcome<()> {
        if count < 64 { Ok(()) } else { self.reserve(count.saturating_mul(size_of::<Value>() as u64)) }
    }

    /// When memory is short, the numbers of the last text and cells that only hold themselves are let go of,
    /// and the question is asked again.
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

    /// Lets go of cells that only hold themselves; says how many nodes it looked at. What it needs meanwhile is
    /// bounded by a quarter of the memory limit.
    ///
    /// When the cells have become many it takes no steps: when that happens depends on what ran before, and the steps
    /// of a program do not. The heap sees to it that it pays. When memory is short it is paid for, which bounds how
    /// often a program can cause it.
    fn sweep(&mut self) -> u64 {
        let most = usize::try_from(self.core.meter.limits.memory / 4).unwrap_or(usize::MAX);
        let core = &mut *self.core;
        // Only the time can be used up meanwhile, and then the program ends at the next look.
        let (meter, host) = (&mut core.meter, &*core.host);
        let mut stop = || meter.check_time(host).is_err();
        core.heap.sweep(most, &mut stop)
    }

    /// Runs a resolved top-level form.
    ///
    /// # Errors
    /// What the form raises.
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
    /// What any of these raises.
    pub fn evaluate(&mut self, form: Form, source: &Arc<Source>) -> Outcome<Value> {
        self.evaluate_part(form, source, Reached::default())
    }

    /// Evaluates a form of which macros have been expanded as far as that.
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

    /// Remembers a key that a map does not have.
    #[cold]
    fn note_miss(&mut self, key: &Value, map: &Map) {
        if let (Value::Keyword(_) | Value::Str(_), Some((shape, _))) = (key, map.as_shaped()) {
            self.missed = Some((key.clone(), shape.clone()));
        }
    }

    /// The error with the key that was likely meant, where a nil from a look-up is to blame.
    fn blame_miss(&self, mut error: Arc<Error>) -> Arc<Error> {
        // Nobody mistypes a whole text.
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

    /// A signal that says by which builtin something else was expected. In a function of the prelude
    /// that is the function itself, since its parts are not what the program called.
    #[cold]
    fn named(&self, signal: Signal, builtin: &Builtin) -> Signal {
        if self.in_prelude { signal } else { signal.within(builtin) }
    }

    /// A signal with the place of a call, if it has none yet.
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
    /// Gives the core back when the evaluation is over; the branch's stack is let go of first.
    pub fn into_core(self) -> Box<Core> {
        let Machine { core, stack, .. } = self;
        drop(stack);
        core
    }
}

/// The error of a defect in lispbox itself.
#[cold]
pub(crate) fn internal_error() -> crate::lang::error::Error {
    crate::lang::error::Error::new("InternalError", "lispbox has a defect that this program found; please report it")
}
