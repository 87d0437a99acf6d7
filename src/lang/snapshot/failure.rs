//! Errors of encoding a session.

use crate::error::render::halt_message;
use crate::error::{Error, Fault, Halt, Raised, Signal};

/// The error of [`Session::encode`](crate::Session::encode). The session is unchanged. Encoding can be retried,
/// and succeeds once the named definition has been redefined or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodeError {
    /// The definition that could not be encoded, or one of `*1`, `*2`, `*3`, `*e`, or `derive` for the type hierarchy;
    /// `None` if no single definition caused the error.
    pub name: Option<String>,
    /// The cause.
    pub reason: EncodeReason,
}

/// The cause of an [`EncodeError`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EncodeReason {
    /// Encoding exceeded its limit on time, memory or steps: the name of the limit, and a message.
    Limit(&'static str, String),
    /// A delay or lazy sequence is stuck in the middle of its computation, because of a defect in lispbox.
    Unfinished,
    /// The session holds an atom, a delay or a lazy sequence of another session, passed in by a host function.
    Foreign,
    /// The system could not provide a stack; a retry may succeed.
    Busy,
    /// A defect in lispbox, with its message.
    Defect(String),
}

impl EncodeError {
    /// Converts a signal raised while encoding the definition `name`.
    pub(crate) fn of(name: Option<String>, signal: &Signal) -> EncodeError {
        let reason = match signal.raised() {
            // It runs without a host, so there is none that could cancel it.
            Raised::Halt(halt @ Halt::Limit { name, .. }) => EncodeReason::Limit(name, halt_message(halt)),
            // Encoding makes no calls, and nothing cancels it.
            Raised::Halt(halt) => EncodeReason::Defect(halt_message(halt)),
            Raised::Error(error) | Raised::Fault(Fault { error, .. }) => match &*error.code {
                UNFINISHED => EncodeReason::Unfinished,
                "ForeignCell" => EncodeReason::Foreign,
                _ => EncodeReason::Defect(error.message.clone()),
            },
        };
        EncodeError { name, reason }
    }

    /// Converts the error of an encoding that could not start or that failed because of a defect.
    pub(crate) fn outside(error: Error) -> EncodeError {
        let reason = if error.code == "Busy" { EncodeReason::Busy } else { EncodeReason::Defect(error.message) };
        EncodeError { name: None, reason }
    }
}

/// Error code for a cell whose content is still being computed.
pub(super) const UNFINISHED: &str = "Unfinished";

impl std::fmt::Display for EncodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(name) = &self.name {
            write!(f, "`{name}` cannot be written: ")?;
        }
        match &self.reason {
            EncodeReason::Limit(_, message) | EncodeReason::Defect(message) => f.write_str(message),
            EncodeReason::Unfinished => f.write_str("a value in it is still being computed"),
            EncodeReason::Foreign => f.write_str("it holds an atom or a sequence of another session"),
            EncodeReason::Busy => f.write_str("the system cannot allocate a stack; try again"),
        }
    }
}

impl std::error::Error for EncodeError {}
