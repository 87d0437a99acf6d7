//! The three ways in which an evaluation ends early, and the signal that carries them.
//!
//! An [`Error`] is what went wrong; builtins return it and know no place. A [`Fault`] is an error
//! with its place and the calls that led there; the evaluator makes it. A [`Halt`] is a limit or a
//! cancellation: it is not an error, and no program can catch it.

pub mod render;
pub mod suggest;

use crate::lang::builtin::Builtin;
use crate::lang::heap::CellKind;
use crate::lang::span::{Source, Span};
use crate::lang::value::walk::Free;
use crate::lang::value::{Reduced, Value};
use std::borrow::Cow;
use std::sync::Arc;

/// The result of whatever may raise a [`Signal`].
pub type Outcome<T> = Result<T, Signal>;

/// What went wrong, as the value that `catch` binds.
#[derive(Clone, Debug, Default)]
pub struct Error {
    /// The stable code: `TypeError`, `ArityError`, …
    pub code: Cow<'static, str>,
    /// What was expected, what came, what to do; lower case, no full stop, code in backticks.
    pub message: String,
    /// The name it is about.
    pub symbol: Option<String>,
    /// A correction.
    pub suggestion: Option<String>,
    payload: Payload,
}

/// The values an error carries, boxed so that a long chain of causes is let go of without recursion.
#[derive(Clone, Debug, Default)]
struct Payload {
    data: Option<Arc<Reduced>>,
    cause: Option<Arc<Reduced>>,
}

impl Error {
    /// An error of that code.
    pub fn new(code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Error {
        Error { code: code.into(), message: message.into(), ..Error::default() }
    }

    /// `TypeError`: says what was expected and what came.
    ///
    /// ```
    /// use lispbox::lang::{Error, Value};
    /// let error = Error::expected("a number", &Value::string("x"));
    /// assert_eq!(error.message, "expected a number, got \"x\" (a string)");
    /// ```
    pub fn expected(what: &str, got: &Value) -> Error {
        let error = Error::new("TypeError", format!("expected {what}, got {}", describe(got)));
        match got {
            Value::Cell(cell) if cell.cell_kind() == CellKind::Transient => error.suggest(
                "`(persistent! t)` makes a collection of a transient; `conj!`, `assoc!` and their kin change it",
            ),
            _ => error,
        }
    }

    /// The same error, about that name.
    pub fn about(mut self, symbol: &str) -> Error {
        // A name as long as a text helps nobody, and is part of the reply.
        const LONGEST: usize = 256;
        self.symbol = Some(symbol[..symbol.floor_char_boundary(LONGEST)].to_string());
        self
    }

    /// The same error with a correction.
    pub fn suggest(mut self, suggestion: impl Into<String>) -> Error {
        self.suggestion = Some(suggestion.into());
        self
    }

    /// The same error with data, as `ex-info` gives it.
    pub fn with_data(mut self, data: Value) -> Error {
        self.payload.data = (!data.is_nil()).then(|| Arc::new(Reduced(data)));
        self
    }

    /// The same error with the exception that caused it.
    pub fn with_cause(mut self, cause: Value) -> Error {
        self.payload.cause = (!cause.is_nil()).then(|| Arc::new(Reduced(cause)));
        self
    }

    /// Its data, or nil.
    pub fn data(&self) -> &Value {
        self.payload.data.as_ref().map_or(&Value::Nil, |data| &data.0)
    }

    /// What caused it, or nil.
    pub fn cause(&self) -> &Value {
        self.payload.cause.as_ref().map_or(&Value::Nil, |cause| &cause.0)
    }
}

/// A value as messages show it: shortened, with its kind. It takes no longer for a long value than for a
/// short one, since nobody pays for it.
pub fn describe(value: &Value) -> String {
    const SHOWN: usize = 60;
    let beginning = match value {
        Value::Nil => return "nil".to_string(),
        // What was cut is counted otherwise, which takes a walk through all of it.
        Value::Str(text) => Some(Value::string(&text.as_str()[..text.as_str().floor_char_boundary(4 * SHOWN)])),
        _ => None,
    };
    let shown = beginning.as_ref().unwrap_or(value);
    let Ok(printed) = crate::lang::value::print::print_within(shown, SHOWN, true, &mut Free);
    format!("{} ({})", printed.text, value.kind())
}

/// An error with its place and the calls that led there.
#[derive(Clone, Debug)]
pub struct Fault {
    /// What went wrong.
    pub error: Arc<Error>,
    /// The text it happened in.
    pub source: Arc<Source>,
    /// Where in that text.
    pub span: Span,
    /// Other places that bear on it, each with what it has to do with it.
    pub related: Vec<(Span, String)>,
    /// The calls that led there, innermost first.
    pub trace: Vec<TraceEntry>,
}

impl Fault {
    /// An error at that place.
    pub fn new(error: impl Into<Arc<Error>>, source: &Arc<Source>, span: Span) -> Fault {
        Fault { error: error.into(), source: source.clone(), span, related: Vec::new(), trace: Vec::new() }
    }
}

/// One call on the way to an error.
#[derive(Clone, Debug)]
pub struct TraceEntry {
    /// The function that was called.
    pub function: String,
    /// The text that called it.
    pub source: Arc<Source>,
    /// Where it was called.
    pub span: Span,
}

/// Why an evaluation was stopped from outside of the program's control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Halt {
    /// A limit of [`Limits`](crate::lang::Limits) was exceeded.
    Limit {
        /// The limit's name.
        name: &'static str,
        /// What it allows, with its unit.
        allowed: String,
        /// What was spent or asked for, with its unit.
        spent: String,
    },
    /// The host asked for it.
    Cancelled,
}

/// What travels up when an evaluation ends early: one pointer, so that a result is no larger than
/// a value.
#[derive(Debug)]
pub struct Signal(Box<Raised>);

/// What a [`Signal`] carries.
#[derive(Debug)]
pub enum Raised {
    /// Something went wrong; the place is not known yet. Shared, so that what is thrown again is the same
    /// exception.
    Error(Arc<Error>),
    /// Something went wrong.
    Fault(Fault),
    /// A limit or a cancellation.
    Halt(Halt),
}

impl Signal {
    /// What it carries.
    pub fn into_raised(self) -> Raised {
        *self.0
    }

    /// What it carries, looked at.
    pub fn raised(&self) -> &Raised {
        &self.0
    }

    /// The same signal; an error gets its place, a fault one more call on its way. What goes wrong in
    /// a function of the prelude gets its place where the program called it.
    #[cold]
    pub(crate) fn at(self, source: &Arc<Source>, span: Span) -> Signal {
        match *self.0 {
            Raised::Error(error) if !source.is_hidden => Fault::new(error, source, span).into(),
            other => Signal(Box::new(other)),
        }
    }

    /// The same signal; an error that says only what was expected says by which builtin.
    #[cold]
    pub(crate) fn within(self, builtin: &Builtin) -> Signal {
        if builtin.is_internal() { self } else { self.by(builtin.name) }
    }

    /// The same signal; an error that says only what was expected says by which function.
    #[cold]
    pub(crate) fn by(mut self, function: &str) -> Signal {
        if let Raised::Error(error) = &mut *self.0
            && error.message.starts_with("expected ")
        {
            Arc::make_mut(error).message = format!("`{function}` {}", error.message);
        }
        self
    }

    /// The same signal; an error that has come up inside a function of the prelude says in which.
    #[cold]
    pub(crate) fn inside(self, function: &str) -> Signal {
        let mut named = self.by(function);
        if let Raised::Error(error) = &mut *named.0 {
            let name = format!("`{function}`");
            if !error.message.contains(&name) {
                Arc::make_mut(error).message = format!("in {name}: {}", error.message);
            }
        }
        named
    }

    /// The same signal; a fault has passed the call of `function` at that place.
    #[cold]
    pub(crate) fn through(mut self, function: &str, source: &Arc<Source>, span: Span) -> Signal {
        if let Raised::Fault(fault) = &mut *self.0
            && fault.trace.len() < TRACE
            && !source.is_hidden
        {
            fault.trace.push(TraceEntry { function: function.to_string(), source: source.clone(), span });
        }
        self
    }
}

/// How many calls a trace shows.
const TRACE: usize = 12;

impl From<Error> for Signal {
    #[cold]
    fn from(error: Error) -> Signal {
        Signal(Box::new(Raised::Error(Arc::new(error))))
    }
}

impl From<Arc<Error>> for Signal {
    #[cold]
    fn from(error: Arc<Error>) -> Signal {
        Signal(Box::new(Raised::Error(error)))
    }
}

impl From<Fault> for Signal {
    #[cold]
    fn from(fault: Fault) -> Signal {
        Signal(Box::new(Raised::Fault(fault)))
    }
}

impl From<Halt> for Signal {
    #[cold]
    fn from(halt: Halt) -> Signal {
        Signal(Box::new(Raised::Halt(halt)))
    }
}
