//! A call of a tool in progress.

use super::arguments;
use super::cancel::CancelHandle;
use super::form::Form;
use crate::convert::{self, Unwritten};
use crate::host::{CallId, ToolCall, ToolError, ToolErrorKind, ToolReply};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// A report of the progress of a call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// The call.
    pub id: CallId,
    /// The name of the tool.
    pub tool: String,
    /// The part of the work that is done, in units of the tool.
    pub done: f64,
    /// The whole work, if it is known.
    pub total: Option<f64>,
    /// A line of text on the current work.
    pub message: String,
}

/// A call of a tool in progress.
///
/// ```
/// # #[global_allocator]
/// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
/// use lispbox::lang::{Call, Engine, NoArguments, Tools, World};
///
/// let mut tools = Tools::new();
/// tools.tool("web/wait", |_: NoArguments, call: &Call| {
///     let mut rounds = 0;
///     while !call.cancelled() && rounds < 3 {
///         rounds += 1;
///         call.progress(f64::from(rounds), Some(3.0), "waiting");
///     }
///     Ok((call.name(), call.id().ordinal, rounds))
/// });
/// let mut session = Engine::builder().build().unwrap().session();
/// let outcome = session.run("(web/wait)").eval::<(String, u32, i32)>(&World::new(tools)).unwrap();
/// assert_eq!(outcome.done(), Some(("web/wait".to_owned(), 0, 3)));
/// ```
pub struct Call<'c> {
    pub(super) call: &'c ToolCall,
    /// The handles of the world and of this call.
    pub(super) world: &'c CancelHandle,
    pub(super) own: &'c CancelHandle,
    pub(super) report: Option<&'c (dyn Fn(Progress) + Send + Sync + 'c)>,
    /// The time of the world's clock when the call began, and that clock.
    pub(super) begun: Duration,
    pub(super) now: &'c (dyn Fn() -> Duration + 'c),
}

impl Call<'_> {
    /// Returns the identity of the call within its run, which is the same in each run of the same program on the same
    /// data. Under the MCP server, which does not pass it on, it is the default.
    ///
    /// ```
    /// use lispbox::lang::{Call, NoArguments, Tools};
    ///
    /// Tools::new().tool("mail/send", |_: NoArguments, call: &Call| Ok(call.id().form));
    /// ```
    pub fn id(&self) -> &CallId {
        &self.call.id
    }

    /// Returns the name of the tool: `mail/search`.
    ///
    /// ```
    /// use lispbox::lang::{Call, NoArguments, Tools};
    ///
    /// Tools::new().tool("mail/send", |_: NoArguments, call: &Call| Ok(call.name().len()));
    /// ```
    pub fn name(&self) -> String {
        format!("{}/{}", self.call.server, self.call.tool)
    }

    /// Returns the time left for the call: that of the evaluation, or the limit on one tool call if it is less.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Call, Engine, Limits, NoArguments, Tools, World};
    /// use std::time::Duration;
    ///
    /// let mut tools = Tools::new();
    /// tools.tool("web/left", |_: NoArguments, call: &Call| Ok(call.deadline().as_millis() as u64));
    /// let limits = Limits { tool: Duration::from_secs(2), ..Limits::default() };
    /// let mut session = Engine::builder().build().unwrap().session();
    /// let left = session.run("(web/left)").limits(limits).eval::<u64>(&World::new(tools)).unwrap();
    /// assert!(left.done().unwrap() <= 2_000);
    /// ```
    pub fn deadline(&self) -> Duration {
        let passed = (self.now)().saturating_sub(self.begun);
        self.call.remaining.min(self.call.timeout).saturating_sub(passed)
    }

    /// Returns whether the result is no longer wanted, because the evaluation was cancelled, its time is over, or
    /// another branch has failed. A tool that works for long looks here now and then.
    ///
    /// ```
    /// use lispbox::lang::{Call, NoArguments, Tools};
    ///
    /// Tools::new().tool("mail/send", |_: NoArguments, call: &Call| Ok(call.cancelled()));
    /// ```
    pub fn cancelled(&self) -> bool {
        self.world.is_cancelled() || self.own.is_cancelled() || self.deadline().is_zero()
    }

    /// Reports progress to the [observer](crate::World::on_progress) of the world.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Call, Engine, NoArguments, Tools, World};
    ///
    /// let mut tools = Tools::new();
    /// tools.tool("files/copy", |_: NoArguments, call: &Call| {
    ///     call.progress(1.0, Some(2.0), "copied a.txt");
    ///     Ok(2)
    /// });
    /// let world = World::new(tools).on_progress(|progress| assert_eq!(progress.message, "copied a.txt"));
    /// let mut session = Engine::builder().build().unwrap().session();
    /// session.run("(files/copy)").eval::<u64>(&world).unwrap().done().unwrap();
    /// ```
    pub fn progress(&self, done: f64, total: Option<f64>, message: &str) {
        if let Some(report) = self.report {
            let message = message.to_owned();
            let progress = Progress { id: self.call.id.clone(), tool: self.name(), done, total, message };
            // A panic of the observer is no failure of the tool.
            let _ = catch_unwind(AssertUnwindSafe(|| report(progress)));
        }
    }

    /// Reads the arguments, whose type has that form.
    pub(super) fn arguments<A: DeserializeOwned>(&self, form: Form) -> Result<A, ToolError> {
        match &self.call.values {
            Some(values) => arguments::read(values, form, &self.shown_name(), self.call.room),
            None => serde_json::from_str(&self.call.arguments).map_err(|error| {
                self.error(ToolErrorKind::Arguments, format!("does not take these arguments: {error}"))
            }),
        }
    }

    fn shown_name(&self) -> String {
        crate::foreign_text::qualified(&self.call.server, &self.call.tool)
    }

    pub(super) fn error(&self, kind: ToolErrorKind, problem: String) -> ToolError {
        ToolError::new(kind, format!("`{}` {problem}", self.shown_name()))
    }
}

pub(super) fn reply<R: Serialize>(result: Result<R, ToolError>, call: &Call<'_>) -> ToolReply {
    let result = match result {
        Ok(result) => result,
        Err(error) => return ToolReply::Error(error),
    };
    let unfit = |problem: &dyn fmt::Display| {
        let problem = format!("returned a result that is not data: {problem}");
        ToolReply::Error(call.error(ToolErrorKind::Failed, problem))
    };
    if call.call.values.is_none() {
        return serde_json::to_string(&result).map_or_else(|error| unfit(&error), ToolReply::Json);
    }
    match convert::to_text(&result, call.call.room) {
        Ok(reply) => reply,
        Err(Unwritten::Unfit(error)) => unfit(&error),
        Err(Unwritten::TooLarge) => {
            let room = crate::meter::bytes(call.call.room);
            let problem = format!("returned a result that takes more than the {room} of memory that are left");
            ToolReply::Error(call.error(ToolErrorKind::TooLarge, problem))
        }
    }
}
