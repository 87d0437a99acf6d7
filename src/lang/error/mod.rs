//! The three kinds of early exit of an evaluation, and the signal that carries them.
//!
//! An [`Error`] describes a failure without its position; builtins return it. A [`Fault`] is an error with its position
//! and the calls that led there; the evaluator creates it. A [`Halt`] is an exceeded limit or a cancellation: it is not
//! an error, and no program can catch it.

pub mod class;
mod code;
pub(crate) mod path;
pub mod render;
pub mod suggest;

pub use code::ErrorCode;

use crate::heap::CellKind;
use crate::native::Builtin;
use crate::span::{Source, Span};
use crate::value::walk::Free;
use crate::value::{Reduced, Value};
use std::borrow::Cow;
use std::sync::Arc;

/// The result of an operation that may raise a [`Signal`].
pub type Outcome<T> = Result<T, Signal>;

/// An error, as bound by `catch`.
///
/// ```
/// # #[global_allocator]
/// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
/// use lispbox::lang::{Engine, Error, World};
///
/// let mut builder = Engine::builder();
/// builder.function("my/root", |n: f64| {
///     if n < 0.0 { Err(Error::new("ArgumentError", "expected a number from 0").suggest("use `abs`")) } else { Ok(n.sqrt()) }
/// });
/// let mut session = builder.build().unwrap().session();
/// let failure = session.run("(my/root -1)").eval::<f64>(&World::default()).unwrap().into_result().unwrap_err();
/// assert_eq!((failure.error.as_str(), failure.suggestion.as_deref()), ("ArgumentError", Some("use `abs`")));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Error {
    /// The stable code: `TypeError`, `ArityError`, …
    pub code: Cow<'static, str>,
    /// The message: the expectation, the actual value, and the remedy; lower case, no full stop, code in backticks.
    pub message: String,
    /// The name that the error concerns.
    pub symbol: Option<String>,
    /// A suggested correction.
    pub suggestion: Option<String>,
    wording: Wording,
    payload: Payload,
}

/// Properties of the wording of a message, on which later additions to it depend.
#[derive(Clone, Copy, Debug, Default)]
struct Wording {
    /// The message begins with "expected" and does not name the function whose argument was rejected.
    lacks_function: bool,
    /// The rejected value was nil.
    got_nil: bool,
}

/// The values that an error carries, boxed so that a long chain of causes is dropped without recursion.
#[derive(Clone, Debug, Default)]
struct Payload {
    data: Option<Arc<Reduced>>,
    cause: Option<Arc<Reduced>>,
}

impl Error {
    /// Creates an error with that code.
    pub fn new(code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Error {
        Error { code: code.into(), message: message.into(), ..Error::default() }
    }

    /// Creates a `TypeError` that reports the expectation and the actual value.
    ///
    /// ```
    /// use lispbox::lang::{Error, Value};
    /// let error = Error::expected("a number", &Value::string("x"));
    /// assert_eq!(error.message, "expected a number, got \"x\" (a string)");
    /// ```
    pub fn expected(what: &str, got: &Value) -> Error {
        let mut error = Error::unmet("TypeError", format!("{what}, got {}", describe(got)));
        error.wording.got_nil = got.is_nil();
        match got {
            Value::Cell(cell) if cell.cell_kind() == CellKind::Transient => error.suggest(
                "`(persistent! t)` makes a collection of a transient; `conj!`, `assoc!` and the like change it",
            ),
            _ => error,
        }
    }

    /// Creates an error whose message is "expected" and `expectation`. The name of the builtin or function whose argument
    /// was rejected is prepended when the error leaves it.
    pub fn unmet(code: impl Into<Cow<'static, str>>, expectation: impl std::fmt::Display) -> Error {
        let wording = Wording { lacks_function: true, got_nil: false };
        Error { wording, ..Error::new(code, format!("expected {expectation}")) }
    }

    /// Creates the error for an option that a function or form does not have. It has the options `listed`; `all` are these
    /// and their other names, without their colons.
    pub(crate) fn unknown_option(function: &str, name: &str, listed: &[&str], all: &[&str]) -> Error {
        let takes = format!("takes :{}", listed.join(", :"));
        let error = Error::new("UnknownOption", format!("`{function}` has no option `:{name}`"));
        match suggest::closest(name, all.iter().copied()) {
            Some(nearest) if listed == [nearest] => error.suggest(format!("Did you mean :{nearest}?")),
            Some(nearest) => error.suggest(format!("Did you mean :{nearest}? It {takes}")),
            None => error.suggest(format!("it {takes}")),
        }
    }

    /// Creates a `TypeError` about an argument of a function whose name is prepended to the message.
    pub(crate) fn of_argument(message: String) -> Error {
        let wording = Wording { lacks_function: true, got_nil: false };
        Error { wording, ..Error::new("TypeError", message) }
    }

    /// True if the error reports that nil came where another value was expected.
    pub(crate) fn got_nil(&self) -> bool {
        self.wording.got_nil
    }

    /// Sets the name that the error concerns.
    pub fn about(mut self, symbol: &str) -> Error {
        // A very long name is not helpful, and it is part of the reply.
        const LONGEST: usize = 256;
        self.symbol = Some(symbol[..symbol.floor_char_boundary(LONGEST)].to_string());
        self
    }

    /// Sets the suggested correction.
    pub fn suggest(mut self, suggestion: impl Into<String>) -> Error {
        self.suggestion = Some(suggestion.into());
        self
    }

    /// Puts a suggestion, a question, before the present one.
    pub(crate) fn prefer(mut self, suggestion: String) -> Error {
        let before = self.suggestion.take().map(|before| format!(" Or: {before}"));
        self.suggestion = Some(suggestion + &before.unwrap_or_default());
        self
    }

    /// Sets the data, as `ex-info` does.
    pub fn with_data(mut self, data: Value) -> Error {
        self.payload.data = (!data.is_nil()).then(|| Arc::new(Reduced(data)));
        self
    }

    /// Sets the exception that caused the error.
    pub fn with_cause(mut self, cause: Value) -> Error {
        self.payload.cause = (!cause.is_nil()).then(|| Arc::new(Reduced(cause)));
        self
    }

    /// Returns the data, or nil.
    pub fn data(&self) -> &Value {
        self.payload.data.as_ref().map_or(&Value::Nil, |data| &data.0)
    }

    /// Returns the cause, or nil.
    pub fn cause(&self) -> &Value {
        self.payload.cause.as_ref().map_or(&Value::Nil, |cause| &cause.0)
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Error {}

/// Formats a value for messages: shortened, with its kind. The time is independent of the length of the value, since it
/// is charged to no account.
pub fn describe(value: &Value) -> String {
    const SHOWN: usize = 60;
    let beginning = match value {
        Value::Nil => return "nil".to_string(),
        // Cut the text first: the printer would otherwise walk all of it to count the omitted part.
        Value::Str(text) => Some(Value::string(&text.as_str()[..text.as_str().floor_char_boundary(4 * SHOWN)])),
        _ => None,
    };
    let shown = beginning.as_ref().unwrap_or(value);
    let Ok(printed) = crate::value::print::print_within(shown, SHOWN, true, &mut Free);
    format!("{} ({})", printed.text, value.kind())
}

/// An error with its position and the calls that led there.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The error.
    pub error: Arc<Error>,
    /// The source of the error.
    pub source: Arc<Source>,
    /// The position in that source.
    pub span: Span,
    /// Other relevant positions, each with an explanation.
    pub related: Vec<(Span, String)>,
    /// The calls that led to the error, innermost first.
    pub trace: Vec<TraceEntry>,
}

impl Fault {
    /// Creates a fault for an error at that position.
    pub(crate) fn new(error: impl Into<Arc<Error>>, source: &Arc<Source>, span: Span) -> Fault {
        Fault { error: error.into(), source: source.clone(), span, related: Vec::new(), trace: Vec::new() }
    }
}

/// One call on the path to an error.
#[derive(Clone, Debug)]
pub struct TraceEntry {
    /// The function that was called.
    pub function: String,
    /// The source of the call.
    pub source: Arc<Source>,
    /// The position of the call.
    pub span: Span,
}

/// The reason why an evaluation was stopped, outside of the program's control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Halt {
    /// A limit of [`Limits`](crate::Limits) was exceeded.
    Limit {
        /// The limit's name.
        name: &'static str,
        /// The limit, with its unit.
        allowed: String,
        /// The amount spent or requested, with its unit.
        spent: String,
    },
    /// The host cancelled the evaluation.
    Cancelled,
    /// A call waits for the decision of a person: the running form is undone, and the run can be resumed.
    Suspended,
    /// A replayed run differs from its record, as the text describes.
    Diverged(String),
    /// A run leaves the plan to which it is held, as the text describes.
    Unplanned(String),
    /// The program makes a call that an earlier program has made, as the text describes.
    Repeated(String),
    /// The program used the result of this tool, which a rehearsal does not know. A handler would take the error for one of
    /// the tool.
    Rehearsed(String),
}

/// The payload of an early exit: a single pointer, so that an `Outcome` is no larger than a value.
#[derive(Debug)]
pub struct Signal(Box<Raised>);

/// The contents of a [`Signal`].
#[derive(Debug)]
pub enum Raised {
    /// An error whose position is not known yet. Shared, so that rethrowing preserves the identity of the exception.
    Error(Arc<Error>),
    /// An error with its position.
    Fault(Fault),
    /// An exceeded limit or a cancellation.
    Halt(Halt),
}

impl Signal {
    /// Unwraps the contents.
    pub fn into_raised(self) -> Raised {
        *self.0
    }

    /// Borrows the contents.
    pub fn raised(&self) -> &Raised {
        &self.0
    }

    /// Attaches a position to an error that has none. Hidden sources are skipped, so that an error in a function of the
    /// prelude gets the position of the program's call.
    #[cold]
    pub(crate) fn at(self, source: &Arc<Source>, span: Span) -> Signal {
        match *self.0 {
            Raised::Error(error) if !source.is_hidden => Fault::new(error, source, span).into(),
            other => Signal(Box::new(other)),
        }
    }

    /// Prepends the name of the builtin to the message of an unmet expectation, unless the builtin is internal.
    #[cold]
    pub(crate) fn within(self, builtin: &Builtin) -> Signal {
        if builtin.is_internal() { self } else { self.by(builtin.name) }
    }

    /// Prepends the name of the function to the message of an unmet expectation that names none yet.
    #[cold]
    pub(crate) fn by(mut self, function: &str) -> Signal {
        if let Raised::Error(error) = &mut *self.0
            && error.wording.lacks_function
        {
            let error = Arc::make_mut(error);
            error.message = format!("`{function}` {}", error.message);
            error.wording.lacks_function = false;
        }
        self
    }

    /// Adds the name of the function of the prelude in which the error occurred, unless the message contains it.
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

    /// Appends the call of `function` at that position to the trace of a fault.
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

/// Maximum number of calls in a trace.
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
