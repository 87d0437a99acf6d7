//! Calls that are about to be made, on which the embedder decides.

use crate::host::CallId;
use crate::plan::Plan;
use serde::Serialize;

/// A call that is about to be made; see [`World::on_request`](crate::World::on_request).
#[derive(Clone, Copy, Debug, Serialize)]
#[non_exhaustive]
pub struct CallRequest<'c> {
    /// The identity of the call within its run.
    pub id: &'c CallId,
    /// The server of the tool.
    pub server: &'c str,
    /// The tool.
    pub tool: &'c str,
    /// The arguments: the text of a JSON object. A decision of a person is about exactly this text.
    pub arguments: &'c str,
    /// True if a person has approved the call with these arguments.
    pub is_approved: bool,
    /// The plan to which the run is [held](crate::Run::within).
    #[serde(skip)]
    pub plan: Option<&'c Plan>,
}

/// The decision on a [`CallRequest`].
///
/// ```
/// use lispbox::lang::Access;
///
/// assert_ne!(Access::Allow, Access::Deny("the account is frozen".to_owned()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// The call is made, unless the tool [needs approval](crate::ToolEntry::needs_approval) and has none.
    Allow,
    /// The call is not made; the reason, as a clause. The program receives `ToolDenied`, which it can catch.
    Deny(String),
    /// A person must decide on the call, if nobody has yet; the reason, as a clause.
    Ask(String),
}
