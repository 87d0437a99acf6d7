//! Why a session could not be written.

use crate::lang::error::render::halt_message;
use crate::lang::error::{Error, Fault, Halt, Raised, Signal};

/// Why [`Session::encode`](crate::lang::Session::encode) could not write a session. Nothing was changed: it can be
/// tried again, and succeeds once the definition that is named has been redefined or forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodeError {
    /// The definition that could not be written, or `*1` and its kin; none if it is not a definition's fault.
    pub name: Option<String>,
    /// What is in the way.
    pub reason: EncodeReason,
}

/// What is in the way of writing a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EncodeReason {
    /// Writing takes more time, memory or steps than writing may take; with the limit's name.
    Limit(&'static str, String),
    /// The host stopped it.
    Cancelled,
    /// A delay or lazy sequence was left in the middle of its computation, after a defect of lispbox.
    Unfinished,
    /// It holds an atom, a delay or a lazy sequence of another session, which a function of the host gave it.
    Foreign,
    /// The system had no stack to give; trying again may help.
    Busy,
    /// A defect of lispbox, with its message.
    Defect(String),
}

impl EncodeError {
    /// The error of what was raised while that definition was written.
    pub(crate) fn of(name: Option<String>, signal: &Signal) -> EncodeError {
        let reason = match signal.raised() {
            Raised::Halt(Halt::Cancelled) => EncodeReason::Cancelled,
            Raised::Halt(halt @ Halt::Limit { name, .. }) => EncodeReason::Limit(name, halt_message(halt)),
            Raised::Error(error) | Raised::Fault(Fault { error, .. }) => match &*error.code {
                UNFINISHED => EncodeReason::Unfinished,
                "ForeignCell" => EncodeReason::Foreign,
                _ => EncodeReason::Defect(error.message.clone()),
            },
        };
        EncodeError { name, reason }
    }

    /// The error of an encoding that could not begin, or that a defect ended.
    pub(crate) fn outside(error: Error) -> EncodeError {
        let reason = if error.code == "Busy" { EncodeReason::Busy } else { EncodeReason::Defect(error.message) };
        EncodeError { name: None, reason }
    }
}

/// The code of the error that a cell raises whose content is being computed.
pub(super) const UNFINISHED: &str = "Unfinished";

impl std::fmt::Display for EncodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(name) = &self.name {
            write!(f, "`{name}` cannot be written: ")?;
        }
        match &self.reason {
            EncodeReason::Limit(_, message) | EncodeReason::Defect(message) => f.write_str(message),
            EncodeReason::Cancelled => f.write_str("it was cancelled"),
            EncodeReason::Unfinished => f.write_str("a value in it is still being computed"),
            EncodeReason::Foreign => f.write_str("it holds an atom or a sequence of another session"),
            EncodeReason::Busy => f.write_str("the system has no stack to give; try again"),
        }
    }
}

impl std::error::Error for EncodeError {}
