//! The evaluator: a tree walk over resolved nodes.
//!
//! A [`Machine`] runs one branch of an evaluation. It owns the branch's value stack and, during its turn, the
//! [`Core`]: the ledger, the heap, the definitions and the host. Locals are slots on the value stack. A call of a
//! function puts its arguments where the callee's frame begins; a call of a builtin passes them as a slice. A
//! successful evaluation allocates nothing but the values themselves.
//!
//! Evaluating a node yields an [`Answer`](crate::machine::Answer), which fits two registers. Calls of keywords, and of
//! builtins that are an [`Operator`](crate::operators::Operator), are separate nodes that do their work inline. Such
//! fast paths change only the running time: `tests/language/shortcuts.rs` and the fuzz target `evaluate` compare
//! results with a walk that takes none.

mod aliases;
mod answer;
mod arity;
mod bare;
mod branches;
mod call;
mod lazy;
mod macros;
mod metadata;
mod names;
mod operators;
mod pure;
mod rehearsal;
mod tools;
pub(crate) mod transients;
mod vars;
mod walk;

pub use lazy::place_in_text;
pub(crate) use lazy::{Realised, rest_of};
pub(crate) use macros::Expansion;
pub(crate) use metadata::{ANNOTATED, annotate, metadata_of, of_queue};
pub(crate) use names::{Constants, value_of};
pub(crate) use vars::{UNBOUND, is_unbound, language_name, parameter_lists};

use crate::error::{Error, Outcome, Raised, Signal, suggest};
use crate::expand::{Expander, Reached};
use crate::form::Form;
use crate::machine::{Core, Frame, Global, Machine};
use crate::native::Builtin;
use crate::resolve::Program;
use crate::span::Source;
use crate::value::Value;
use crate::value::function::Captures;
use crate::value::map::Map;
use std::sync::Arc;

/// Number of nested nodes allowed per allowed nested call.
const NODES_A_CALL: u32 = 20;

impl Machine {
    /// Runs a resolved top-level form.
    ///
    /// # Errors
    /// Returns what the form raises.
    pub(crate) fn run(&mut self, program: &Program, source: &Arc<Source>) -> Outcome<Value> {
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
            let program = crate::resolve::Resolver::new(self, source).program(&form)?;
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
            if let (Value::Keyword(name), Some((Value::Keyword(known), last))) = (key, &self.missed)
                && name.address() == known.address()
                && Arc::ptr_eq(shape, last)
            {
                return;
            }
            self.missed = Some((key.clone(), shape.clone()));
        }
    }

    /// Adds a suggestion for the key that was likely meant, if the error is due to a nil from a failed look-up.
    fn blame_miss(&self, mut error: Arc<Error>) -> Arc<Error> {
        // A long text is never a misspelt key.
        const LONGEST: usize = 100;
        let Some((key, shape)) = &self.missed else { return error };
        let is_short = |key: &Value| key.is_scalar() && (key.as_str().map_or(0, str::len) <= LONGEST);
        if error.got_nil() && is_short(key) {
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
    fn placed(&self, frame: &Frame<'_>, signal: Signal, span: crate::span::Span) -> Signal {
        match signal.into_raised() {
            Raised::Error(error) => Signal::from(self.blame_miss(error)).at(frame.source, span),
            Raised::Fault(fault) => fault.into(),
            Raised::Halt(halt) => halt.into(),
        }
    }
}

/// The error for an internal defect of lispbox.
#[cold]
pub(crate) fn internal_error() -> crate::error::Error {
    crate::error::Error::new("InternalError", "this program exposed a bug in lispbox; please report it")
}
