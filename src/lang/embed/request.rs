//! Calls that are about to be made, on which the embedder decides.

use crate::host::{CallId, Question, Tool, ToolCall};
use crate::plan::Plan;
use serde::Serialize;

/// A call that is about to be made; see [`World::on_request`](crate::World::on_request) and [`Layer`](crate::Layer).
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
    /// The time of the world's clock, in milliseconds since 1970.
    #[serde(skip)]
    pub now_millis: i64,
    /// The call as the evaluation makes it.
    #[doc(hidden)]
    #[serde(skip)]
    pub call: &'c ToolCall,
    /// The tool as it was declared.
    #[doc(hidden)]
    #[serde(skip)]
    pub declared: &'c Tool,
}

impl CallRequest<'_> {
    /// Returns the question whether the call may be made, for that reason, a clause. `is_guarded` says that the values of
    /// the arguments are the reason.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Call, CallRequest, Engine, Layer, Next, NoArguments, Outcome, ToolReply, Tools, World};
    ///
    /// struct AskFirst;
    ///
    /// impl Layer for AskFirst {
    ///     fn call(&self, request: &CallRequest<'_>, next: Next<'_>) -> ToolReply {
    ///         match request.is_approved {
    ///             true => next.call(request),
    ///             false => ToolReply::Ask(Box::new(request.question("all calls are asked about".to_owned(), false))),
    ///         }
    ///     }
    /// }
    ///
    /// let mut tools = Tools::new();
    /// tools.tool("mail/unread", |_: NoArguments, _: &Call| Ok(3));
    /// let world = World::new(tools).layer(AskFirst);
    /// let mut session = Engine::builder().build().unwrap().session();
    /// assert!(matches!(session.run("(mail/unread)").eval::<u64>(&world).unwrap(), Outcome::Suspended(_)));
    /// ```
    pub fn question(&self, reason: String, is_guarded: bool) -> Question {
        let ToolCall { id, server, tool, arguments, .. } = self.call.clone();
        Question { id, server, tool, arguments, reason, is_guarded }
    }
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
