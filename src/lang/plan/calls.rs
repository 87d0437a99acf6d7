//! The contents of a plan, and its inputs.

use crate::host::ToolHints;
use crate::runs::PlanBounds;
use crate::span::{Source, Span};
use crate::value::Value;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The tools that a program can call; see [`Run::plan`](crate::Run::plan).
///
/// ```
/// # #[global_allocator]
/// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
/// use lispbox::lang::{Call, Engine, NoArguments, Tools, World};
///
/// let mut tools = Tools::new();
/// tools.tool("mail/search", |_: NoArguments, _: &Call| Ok(vec![1, 2]));
/// tools.tool("mail/read", |_: NoArguments, _: &Call| Ok(1));
/// let world = World::new(tools);
/// let mut session = Engine::builder().build().unwrap().session();
/// let plan = session.run("(doseq [id (take 5 (mail/search))] (mail/read))").plan(&world).unwrap();
/// let calls: Vec<_> = plan.calls.iter().map(|call| (call.tool.as_str(), call.most)).collect();
/// assert_eq!(calls, [("read", Some(5)), ("search", Some(1))]);
/// assert!(plan.unknown.is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Plan {
    /// The tools that the program can call, sorted by server and name. The program calls no other tool, and none more
    /// often than stated, if [`unknown`](Plan::unknown) is empty.
    pub calls: Vec<PlannedCall>,
    /// The places at which the program may call any tool any number of times.
    pub unknown: Vec<UnknownCall>,
}

impl Plan {
    /// Returns the bounds for a run of the program. What the plan calls unknown is not covered: such a call stops the run.
    #[doc(hidden)]
    pub fn bounds(&self) -> PlanBounds {
        let bound = |call: &PlannedCall| (call.server.clone(), call.tool.clone(), call.most);
        PlanBounds::new(self.calls.iter().map(bound))
    }
}

/// A tool that a program can call, with a bound on the number of calls.
///
/// ```
/// # #[global_allocator]
/// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
/// use lispbox::lang::{Call, Engine, NoArguments, Tools, World};
///
/// let mut tools = Tools::new();
/// tools.tool("mail/send", |_: NoArguments, _: &Call| Ok(1));
/// let world = World::new(tools);
/// let mut session = Engine::builder().build().unwrap().session();
/// let plan = session.run("(while true (mail/send))").plan(&world).unwrap();
/// assert_eq!((plan.calls[0].server.as_str(), plan.calls[0].most), ("mail", None));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PlannedCall {
    /// The exact name of the server.
    pub server: String,
    /// The exact name of the tool.
    pub tool: String,
    /// The most calls that a run makes; `None` if there is no evident bound.
    pub most: Option<u64>,
    /// The server's claims about the tool's effects.
    #[doc(hidden)]
    pub hints: ToolHints,
}

/// A place at which a program may call any tool.
///
/// ```
/// # #[global_allocator]
/// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
/// use lispbox::lang::{Engine, World};
///
/// let mut session = Engine::builder().build().unwrap().session();
/// let plan = session.run("(def name 'mail/send)\n((resolve name) 1)").plan(&World::default()).unwrap();
/// assert_eq!((plan.unknown[0].line, plan.unknown[0].column), (2, 2));
/// assert_eq!(plan.unknown[0].reason, "`resolve` looks names up at run time");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UnknownCall {
    /// The cause, as a clause.
    pub reason: String,
    /// The name of the program that contains the place.
    pub source: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

/// A place in a source text.
#[derive(Clone)]
pub struct Place {
    pub source: Arc<Source>,
    pub span: Span,
}

impl Place {
    /// Returns the report of a call at this place.
    pub fn unknown(&self, reason: String) -> UnknownCall {
        let (line, column) = self.source.line_column(self.span.start);
        UnknownCall { reason, source: self.source.name.to_string(), line, column }
    }
}

/// A name that a run binds.
pub struct Input {
    pub name: String,
    /// Its value; `None` if it is data. The plan holds for any data in its place.
    pub value: Option<Value>,
}
