//! The description of the error with which an evaluation ended.

use super::error::ErrorCode;
use super::foreign_text;
use serde::{Deserialize, Serialize};

/// The description of an error.
///
/// ```
/// # #[global_allocator]
/// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
/// use lispbox::lang::{Engine, ErrorCode, World};
///
/// let mut session = Engine::builder().build().unwrap().session();
/// let outcome = session.run("(def a 1)\n(inc b)").name("nightly").eval::<i64>(&World::default()).unwrap();
/// let failure = outcome.into_result().unwrap_err();
/// assert_eq!(failure.code(), ErrorCode::UnboundVariable);
/// assert_eq!((failure.source.as_deref(), failure.line, failure.column), (Some("nightly"), Some(2), Some(6)));
/// assert!(failure.rendered.contains("(inc b)"), "{}", failure.rendered);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The stable code, such as `UnboundVariable` or `LimitExceeded`.
    pub error: String,
    /// The message: the expectation, the actual value, and the remedy.
    pub message: String,
    /// The name that the error concerns, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// A suggested correction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    /// The name of the text that `line` and `column` are in: `program 2` or a [name](crate::Run::name), which is that of an
    /// earlier program if a function of it has failed. A function of a restored session is in the text of that session, and
    /// the name is `stored program 1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Line in the source, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Column in the line, from 1, in characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The name of the limit, if one was exceeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// The calls that led to the error, innermost first, as `name (place)`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trace: Vec<String>,
    /// The data of an `ex-info`, printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// The complete rendering with source line and caret, for people and models.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rendered: String,
}

/// The code and the message, without characters that control a terminal.
impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", foreign_text::line(&self.error), foreign_text::printable(&self.message))
    }
}

impl std::error::Error for Failure {}

impl Failure {
    /// Creates a failure without a position.
    pub(crate) fn of(code: &str, message: &str) -> Failure {
        let rendered = format!("{code}: {message}");
        Failure { error: code.to_owned(), message: message.to_owned(), rendered, ..Failure::default() }
    }

    /// Returns the code.
    ///
    /// ```
    /// use lispbox::lang::{ErrorCode, Failure};
    /// let failure: Failure = serde_json::from_str(r#"{"error":"ToolDenied","message":"no"}"#).unwrap();
    /// assert_eq!(failure.code(), ErrorCode::ToolDenied);
    /// ```
    pub fn code(&self) -> ErrorCode {
        ErrorCode::from(self.error.as_str())
    }

    /// Sets the suggestion, and appends it to the rendering, unless a suggestion exists.
    ///
    /// ```
    /// use lispbox::lang::Failure;
    ///
    /// let mut failure: Failure = serde_json::from_str(r#"{"error":"ToolError","message":"no","rendered":"ToolError: no"}"#).unwrap();
    /// failure.suggest("try again tomorrow".to_owned());
    /// assert_eq!(failure.rendered, "ToolError: no\ntry again tomorrow");
    /// ```
    pub fn suggest(&mut self, advice: String) {
        if self.suggestion.is_none() {
            self.rendered = format!("{}\n{advice}", self.rendered.trim_end());
            self.suggestion = Some(advice);
        }
    }
}
