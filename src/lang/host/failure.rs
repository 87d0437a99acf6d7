//! The failures of tool calls.

use serde::{Deserialize, Serialize};

/// The reason why a tool call failed.
///
/// ```
/// use lispbox::lang::{ToolError, ToolErrorKind};
///
/// let error = ToolError { suggestion: Some("log in again".to_owned()), ..ToolError::unavailable("the token has expired") };
/// assert_eq!((error.kind, error.to_string()), (ToolErrorKind::Unavailable, "the token has expired".to_owned()));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolError {
    /// The kind of failure.
    pub kind: ToolErrorKind,
    /// The cause, naming server and tool but neither paths nor addresses of the host; lower case, no full stop.
    pub message: String,
    /// A correction, such as `Did you mean limit?`.
    pub suggestion: Option<String>,
}

impl ToolError {
    /// Creates a failure of that kind, with that message and without a suggestion.
    pub fn new(kind: ToolErrorKind, message: impl Into<String>) -> ToolError {
        ToolError { kind, message: message.into(), suggestion: None }
    }

    /// Creates a failure of the tool itself, with that reason.
    ///
    /// ```
    /// use lispbox::lang::{ToolError, ToolErrorKind};
    ///
    /// assert_eq!(ToolError::failed("the disk is full").kind, ToolErrorKind::Failed);
    /// ```
    pub fn failed(message: impl Into<String>) -> ToolError {
        ToolError::new(ToolErrorKind::Failed, message)
    }

    /// Creates a failure of a tool of that name whose code panicked.
    pub(crate) fn panicked(server: &str, tool: &str, payload: &(dyn std::any::Any + Send)) -> ToolError {
        let name = crate::foreign_text::qualified(server, tool);
        ToolError::new(ToolErrorKind::Panicked, format!("`{name}` panicked: {}", panic_text(payload)))
    }

    /// Creates a failure of a server that could not be started or has exited, with that reason.
    ///
    /// ```
    /// use lispbox::lang::{ToolError, ToolErrorKind};
    ///
    /// assert_eq!(ToolError::unavailable("the disk is full").kind, ToolErrorKind::Unavailable);
    /// ```
    pub fn unavailable(message: impl Into<String>) -> ToolError {
        ToolError::new(ToolErrorKind::Unavailable, message)
    }
}

impl std::fmt::Display for ToolError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ToolError {}

/// The kinds of [`ToolError`]; each maps to a distinct error code.
///
/// ```
/// use lispbox::lang::{ErrorCode, ToolErrorKind};
///
/// assert_eq!(ErrorCode::from(ToolErrorKind::Timeout.code()), ErrorCode::ToolTimeout);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ToolErrorKind {
    /// The tool answered with an error.
    Failed,
    /// The arguments do not match the tool's schema; nothing was sent.
    Arguments,
    /// The call exceeded its timeout.
    Timeout,
    /// The server could not be started, or has exited.
    Unavailable,
    /// The server did not take the call for now, and has done nothing.
    Busy,
    /// The reply exceeded the size limit.
    TooLarge,
    /// The function behind the tool panicked.
    Panicked,
    /// The tool answered with something that cannot be read: it may have been carried out.
    Unreadable,
    /// The tool answered with an error that leaves open whether it was carried out, such as a time-out behind it.
    Uncertain,
    /// The server has changed the tool since it was pinned, and no person has accepted that; nothing was sent.
    Changed,
}

impl ToolErrorKind {
    /// Returns the stable error code that programs and clients see.
    pub const fn code(self) -> &'static str {
        match self {
            ToolErrorKind::Failed | ToolErrorKind::Unreadable | ToolErrorKind::Uncertain => "ToolError",
            ToolErrorKind::Arguments => "ToolArgumentError",
            ToolErrorKind::Timeout => "ToolTimeout",
            ToolErrorKind::Unavailable | ToolErrorKind::Busy => "ServerUnavailable",
            ToolErrorKind::TooLarge => "ToolResultTooLarge",
            ToolErrorKind::Panicked => "ToolPanic",
            ToolErrorKind::Changed => "ToolChanged",
        }
    }
}

/// Returns the message of a panic.
pub fn panic_text(payload: &(dyn std::any::Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("a payload that is not text")
}
