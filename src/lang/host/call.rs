//! The identity of calls, and the decisions on them.

use super::ToolReply;
use crate::foreign_text;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

/// The position of a host call in an evaluation. It is stable between runs of the same program on the same data, so
/// that a run can be recorded and replayed.
///
/// ```
/// use lispbox::lang::CallId;
///
/// // The second call in the first branch of a `pmap` in the third form of a program.
/// let id = CallId { form: 2, branch: vec![0], ordinal: 1 };
/// assert_eq!(serde_json::to_string(&id).unwrap(), r#"{"form":2,"branch":[0],"ordinal":1}"#);
/// assert_eq!(id.to_string(), "2/0/1");
/// assert_eq!("2/0/1".parse(), Ok(id));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallId {
    /// Ordinal of the top-level form, from 0.
    pub form: u32,
    /// Path of `pmap`/`pcalls` branches that led to the call; empty outside of them.
    pub branch: Vec<u32>,
    /// Ordinal of the host call within that branch of that form, from 0.
    pub ordinal: u32,
}

/// The identity of a call is looked up a dozen times while the call is made: it is hashed in as few parts as possible.
impl Hash for CallId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(u64::from(self.form) << 32 | u64::from(self.ordinal));
        self.branch.iter().for_each(|step| state.write_u32(*step));
    }
}

/// The form, the branch and the ordinal, such as `2/0.3/1`; the branch may be empty.
impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/", self.form)?;
        for (at, step) in self.branch.iter().enumerate() {
            write!(f, "{}{step}", if at == 0 { "" } else { "." })?;
        }
        write!(f, "/{}", self.ordinal)
    }
}

/// A text that is not the identity of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallIdError(String);

impl fmt::Display for CallIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected the identity of a call, such as `2/0.3/1`, got {:?}", self.0)
    }
}

impl std::error::Error for CallIdError {}

impl FromStr for CallId {
    type Err = CallIdError;

    fn from_str(text: &str) -> Result<CallId, CallIdError> {
        let read = || {
            let mut parts = text.split('/');
            let (form, branch, ordinal) = (parts.next()?, parts.next()?, parts.next()?);
            let steps = branch.split('.').filter(|_| !branch.is_empty()).map(str::parse);
            let id = CallId {
                form: form.parse().ok()?,
                branch: steps.collect::<Result<_, _>>().ok()?,
                ordinal: ordinal.parse().ok()?,
            };
            // A number has one spelling, so that an identity has one as well.
            (id.to_string() == text).then_some(id)
        };
        read().ok_or_else(|| CallIdError(text.chars().take(80).collect()))
    }
}

/// A call on which a person must decide before it is made.
///
/// ```
/// use lispbox::lang::{CallId, Question};
///
/// let question = Question {
///     id: CallId::default(),
///     server: "mail".into(),
///     tool: "send".into(),
///     arguments: r#"{"to":"ann@example.org"}"#.to_owned(),
///     reason: "it may send mail".to_owned(),
///     is_guarded: false,
/// };
/// assert_eq!(question.to_string(), r#"mail/send {"to":"ann@example.org"}, because it may send mail"#);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The identity of the call within its run.
    pub id: CallId,
    /// The server of the tool.
    pub server: Arc<str>,
    /// The tool.
    pub tool: Arc<str>,
    /// The arguments as they will be sent: the text of a JSON object.
    pub arguments: String,
    /// The reason why a person must decide, as a clause.
    pub reason: String,
    /// True if the values of the arguments are the reason. A decision about the tool in general does not cover the call
    /// then.
    #[serde(default)]
    pub is_guarded: bool,
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Question { server, tool, arguments, reason, .. } = self;
        let (name, arguments) = (foreign_text::qualified(server, tool), foreign_text::json_text(arguments.clone()));
        write!(f, "{name} {arguments}, because {}", foreign_text::printable(reason))
    }
}

/// The decision on a call.
///
/// ```
/// use lispbox::lang::Decision;
///
/// assert_eq!(serde_json::to_string(&Decision::Approved).unwrap(), "\"Approved\"");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Decision {
    /// The call is made, once.
    Approved,
    /// The call is not made; the reason, as a clause. The program can catch this.
    Denied(String),
    /// No person can be asked, and the run cannot wait; the reason, as a clause. The program can catch this.
    Unavailable(String),
    /// The decision is still to be made: the run is suspended.
    Pending,
    /// An earlier decision of a person covers the call, as the clause says. It is not recorded as a decision on this call:
    /// the host checks it again when the call is about to be sent, and asks again if it no longer holds.
    Covered(String),
}

impl Decision {
    /// Returns the reply to a call that is not made because of this decision; `None` if it is made, or may be later.
    #[doc(hidden)]
    pub fn refusal(&self) -> Option<ToolReply> {
        match self {
            Decision::Denied(reason) => Some(ToolReply::Denied(reason.clone())),
            Decision::Unavailable(reason) => Some(ToolReply::Unapproved(reason.clone())),
            Decision::Approved | Decision::Pending | Decision::Covered(_) => None,
        }
    }
}
