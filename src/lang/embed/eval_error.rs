//! The reasons why a run has no outcome.

use super::names::NameError;
use crate::convert::ConvertError;
use std::fmt;

/// The reason why a run has no outcome.
#[derive(Debug)]
#[non_exhaustive]
pub enum EvalError {
    /// The data or a parameter of the run, of that name, has no counterpart in the language. Nothing ran.
    Input(String, ConvertError),
    /// The program returned a value that does not fit the type. Its effects have happened, and its definitions are
    /// kept; [`Report::failed`](crate::Report::failed) has a run that is [retryable](crate::Run::retryable).
    Result(ConvertError),
    /// The name of a parameter is no name that a program can use. Nothing ran.
    Name(NameError),
    /// The suspended run, of that [number](crate::Suspended::number), does not wait in this session: it has been resumed or
    /// discarded, or the session is a fork. Nothing ran.
    AlreadyResumed(u32),
    /// A tool of the world, of that name, has the name of a function of the engine, which a program would call instead,
    /// without any decision. Nothing ran.
    Conflict(String),
    /// The world has asynchronous tools, and this thread drives a tokio runtime, so that it must not wait for them. Nothing
    /// ran.
    #[cfg(feature = "tokio")]
    OnRuntime,
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EvalError::Input(name, error) => write!(f, "`{name}` cannot be given to the program: {error}"),
            EvalError::Result(error) => write!(f, "the result does not fit its type: {error}"),
            EvalError::Name(error) => error.fmt(f),
            EvalError::AlreadyResumed(number) => write!(
                f,
                "run {number} does not wait in this session: it has been resumed or discarded, or it was suspended in \
                 another session"
            ),
            EvalError::Conflict(name) => {
                write!(f, "`{name}` is a tool of the world and a function of the engine: give one of them another name")
            }
            #[cfg(feature = "tokio")]
            EvalError::OnRuntime => f.write_str(
                "asynchronous tools cannot be waited for on a thread of a tokio runtime: use `Session::run_async`, or \
                 evaluate within `tokio::task::spawn_blocking`",
            ),
        }
    }
}

impl std::error::Error for EvalError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            EvalError::Input(_, error) | EvalError::Result(error) => Some(error),
            EvalError::Name(error) => Some(error),
            EvalError::AlreadyResumed(_) | EvalError::Conflict(_) => None,
            #[cfg(feature = "tokio")]
            EvalError::OnRuntime => None,
        }
    }
}
