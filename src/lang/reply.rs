//! The one record of an evaluation: what an agent, a terminal, a log line and `--json` all show.

use serde::Serialize;

/// What came of an evaluation. Serialised with empty fields left out.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Reply {
    /// How it ended.
    pub status: Status,
    /// The value of the last form, printed within the output limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The value as JSON, where it can be said in JSON within the output limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json: Option<serde_json::Value>,
    /// What the program printed, within the output limit.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub prints: String,
    /// What was cut from the value, such as `50 of 347 items`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<String>,
    /// Names that this evaluation defined and kept, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub defined: Vec<String>,
    /// Tool calls made, in the order in which they were begun.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallRecord>,
    /// The handle of the session, when the server has something to say about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// What was spent.
    pub spent: Spent,
    /// What went wrong, when something did; its fields stand beside the others.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Names whose values are kept in the session although a later form failed: whether anything was
    /// undone is said by the rendering.
    #[serde(skip)]
    pub forms_kept: u32,
}

/// How an evaluation ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It came to a value.
    #[default]
    Ok,
    /// The program was wrong, or a tool failed and nothing caught it.
    Error,
    /// A limit was exceeded.
    Limit,
    /// It was cancelled from outside.
    Cancelled,
}

/// One tool call as the record shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CallRecord {
    /// Exact name of the server.
    pub server: String,
    /// Exact name of the tool.
    pub tool: String,
    /// How long it took, in milliseconds.
    pub ms: u64,
    /// `ok`, or the error code.
    pub outcome: String,
}

/// What an evaluation spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Spent {
    /// Steps.
    pub fuel: u64,
    /// The most live bytes that were seen.
    pub memory_bytes: u64,
    /// The deepest nesting of calls.
    pub depth: u32,
    /// Wall-clock time less waiting for the host.
    pub compute_ms: u64,
    /// Wall-clock time.
    pub total_ms: u64,
}

/// What went wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The stable code, such as `UnboundVariable` or `LimitExceeded`.
    pub error: String,
    /// What was expected, what came, what to do.
    pub message: String,
    /// The name it is about, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// A correction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    /// Line in the program, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Column in the line, from 1, in characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The limit's name, when a limit was exceeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// The calls that led there, innermost first, as `name (place)`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trace: Vec<String>,
    /// The data of an `ex-info`, printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// The whole rendering with source line and caret, as a person or a model reads it.
    #[serde(skip)]
    pub rendered: String,
}

impl Reply {
    /// The reply as text: the value, what was printed, what was kept and called; or the error.
    pub fn text(&self, _limit: usize) -> String {
        match &self.failure {
            Some(failure) => failure.rendered.clone(),
            None => self.value.clone().unwrap_or_default(),
        }
    }
}
