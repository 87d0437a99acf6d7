//! Results that a rehearsal does not know: they can be passed on, and nothing can depend on them.
//!
//! Such a result is a cell of the kind [`CellKind::Unknown`]. A builtin takes one as an argument only if it declares that
//! it passes its arguments on. A walk that meets one inside of a collection, as printing and comparing do, records that in
//! the heap, as does a condition; the evaluation stops at the next builtin, tool call or end of a form.

use super::Machine;
use crate::error::{Halt, Outcome, Signal};
use crate::heap::{CellKind, Handle, State};
use crate::native::{Builtin, Native};
use crate::value::Value;

impl Machine {
    /// Creates the result of a call of that tool that was not made.
    pub(super) fn unknown_result(&mut self, tool: &str) -> Value {
        Value::Cell(self.core.heap.allocate(CellKind::Unknown, State::Done(Value::string(tool))))
    }

    /// The halt of a program that depends on that unknown result.
    #[cold]
    pub(super) fn depends_on(&self, cell: &Handle) -> Signal {
        match self.core.heap.state(cell) {
            Ok(State::Done(Value::Str(tool))) => Halt::Rehearsed(tool.as_str().to_owned()).into(),
            Ok(_) => super::internal_error().into(),
            Err(error) => error.into(),
        }
    }

    /// Stops a program that depends on an unknown result.
    ///
    /// # Errors
    /// Returns the halt.
    #[inline]
    pub(crate) fn check_unknown(&self) -> Outcome<()> {
        if self.core.heap.has_unknown() { self.look_for_unknown() } else { Ok(()) }
    }

    #[cold]
    fn look_for_unknown(&self) -> Outcome<()> {
        match self.core.heap.take_touched() {
            Some(tool) => Err(Halt::Rehearsed(tool.as_str().unwrap_or_default().to_owned()).into()),
            None => Ok(()),
        }
    }

    /// Refuses a call of a builtin with an unknown result, unless it passes that on.
    ///
    /// # Errors
    /// Returns the halt.
    #[cold]
    pub(super) fn refuse_unknown(&self, builtin: &Builtin, arguments: &[Value]) -> Outcome<()> {
        self.check_unknown()?;
        let unknown = |argument: &Value| match argument {
            Value::Cell(cell) if cell.is_unknown() => Some(self.depends_on(cell)),
            _ => None,
        };
        match arguments.iter().find_map(unknown) {
            Some(halt) if !builtin.passes_on => Err(halt),
            _ => Ok(()),
        }
    }

    /// Runs a builtin, and stops the program if what it does depends on an unknown result.
    #[cold]
    pub(super) fn run_in_rehearsal(
        &mut self,
        builtin: &'static Builtin,
        native: Option<&Native>,
        arguments: &mut [Value],
    ) -> Outcome<Value> {
        self.refuse_unknown(builtin, arguments)?;
        let before = self.core.heap.watch(true);
        let result = match native {
            None => (builtin.run)(self, arguments),
            Some(native) => self.run_native(native, arguments),
        };
        let checked = self.check_unknown();
        self.core.heap.rewatch(before);
        checked.and(result)
    }

    /// Runs work that may meet unknown results without depending on them.
    pub(crate) fn unwatched<R>(&mut self, work: impl FnOnce(&mut Machine) -> Outcome<R>) -> Outcome<R> {
        let before = self.core.heap.watch(false);
        let result = work(self);
        self.core.heap.rewatch(before);
        result
    }
}
