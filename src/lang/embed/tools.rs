//! Tools as closures.

use super::call::{Call, reply};
use super::cancel::CancelHandle;
use super::form::{Form, form_of};
use super::names::{RegisterError, canonical_name, split_name};
use crate::host::{Server, SystemClock, Tool, ToolCall, ToolError, ToolReply};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};
use std::fmt;
use std::sync::Arc;
#[cfg(feature = "tokio")]
use std::{
    pin::pin,
    sync::atomic::{AtomicBool, Ordering},
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::Duration,
};

/// The code of a tool.
type Run<'w> = dyn Fn(&Call<'_>) -> ToolReply + Send + Sync + 'w;

/// Checks whether the arguments of a call fit the type that the tool takes.
type Check = fn(&Call<'_>, Form) -> Result<(), ToolError>;

/// Reads the arguments of a call, and drops them.
fn fit<A: DeserializeOwned>(call: &Call<'_>, form: Form) -> Result<(), ToolError> {
    call.arguments::<A>(form).map(drop)
}

/// The tools that a world offers to programs. They may borrow from their surroundings for `'w`.
///
/// ```
/// use lispbox::lang::{Call, Engine, Outcome, ToolError, Tools, World};
/// use serde::{Deserialize, Serialize};
/// # #[global_allocator]
/// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
///
/// #[derive(Deserialize)]
/// struct Search { text: String, limit: Option<usize> }
/// #[derive(Clone, Serialize)]
/// struct Mail { sender: String, subject: String }
///
/// let mails = vec![Mail { sender: "ann".into(), subject: "Lunch?".into() }];
/// let mut tools = Tools::new();
/// tools.tool("mail/search", |search: Search, _: &Call| -> Result<Vec<Mail>, ToolError> {
///     let fits = mails.iter().filter(|mail| mail.subject.contains(&search.text));
///     Ok(fits.take(search.limit.unwrap_or(10)).cloned().collect())
/// }).doc("Mails whose subject contains a text.").read_only();
///
/// let mut session = Engine::builder().build().unwrap().session();
/// let outcome = session.run("(map :sender (mail/search :text \"Lunch\"))").eval::<Vec<String>>(&World::new(tools));
/// assert_eq!(outcome.unwrap().done(), Some(vec!["ann".to_string()]));
/// ```
#[derive(Default)]
pub struct Tools<'w> {
    pub(super) servers: Vec<Server>,
    pub(super) entries: Vec<ToolEntry<'w>>,
}

impl<'w> Tools<'w> {
    /// Creates an empty set of tools.
    ///
    /// ```
    /// use lispbox::lang::{Tools, World};
    ///
    /// let world = World::new(Tools::new());
    /// assert_eq!(format!("{:?}", world.tools()), "[]");
    /// ```
    pub fn new() -> Tools<'w> {
        Tools::default()
    }

    /// Adds a tool named `server/tool`. Programs call it as a function, with arguments by name or by position; they
    /// become `A` by serde, and the result becomes data. If `A` is a struct, its fields are the names of the arguments.
    /// A tool without arguments takes [`NoArguments`].
    ///
    /// The closure runs on the thread of the evaluation, or on those of its branches, and may block. A panic in it is
    /// the error `ToolPanic` of that call.
    ///
    /// # Panics
    /// Panics if [`try_tool`](Tools::try_tool) returns an error.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Call, Engine, ToolError, Tools, World};
    /// use serde::Deserialize;
    ///
    /// #[derive(Deserialize)]
    /// struct Search {
    ///     sender: String,
    ///     limit: Option<usize>,
    /// }
    ///
    /// let mails = ["ann", "bob", "ann"];
    /// let mut tools = Tools::new();
    /// tools.tool("mail/count", |search: Search, _: &Call| {
    ///     let limit = search.limit.unwrap_or(usize::MAX);
    ///     match search.sender.as_str() {
    ///         "" => Err(ToolError::failed("a sender has a name")),
    ///         sender => Ok(mails.iter().filter(|mail| **mail == sender).take(limit).count()),
    ///     }
    /// });
    /// let world = World::new(tools);
    /// let mut session = Engine::builder().build().unwrap().session();
    /// let outcome = session.run("(mail/count :sender \"ann\" :limit 1)").eval::<u64>(&world).unwrap();
    /// assert_eq!(outcome.done(), Some(1));
    /// let outcome = session.run("(mail/count {:sender \"\"})").eval::<u64>(&world).unwrap();
    /// assert_eq!(outcome.into_result().unwrap_err().message, "a sender has a name");
    /// ```
    pub fn tool<A, R, F>(&mut self, name: &str, function: F) -> &mut ToolEntry<'w>
    where
        A: DeserializeOwned,
        R: Serialize,
        F: Fn(A, &Call<'_>) -> Result<R, ToolError> + Send + Sync + 'w,
    {
        self.try_tool(name, function).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Adds a tool, as [`tool`](Tools::tool) does.
    ///
    /// # Errors
    /// Returns an error if the name is not of the form `server/tool`, if a program cannot write it, if there is such a tool,
    /// in any spelling that means the same, or if `A` is not read from a map, such as a number or a list.
    ///
    /// ```
    /// use lispbox::lang::{Call, NoArguments, RegisterError, Tools};
    ///
    /// let mut tools = Tools::new();
    /// assert!(tools.try_tool("mail/send", |_: NoArguments, _: &Call| Ok(1)).is_ok());
    /// let again = tools.try_tool("mail/Send", |_: NoArguments, _: &Call| Ok(1)).err();
    /// assert_eq!(again, Some(RegisterError::Taken("mail/Send".to_owned())));
    /// let unusable = tools.try_tool("mail/send it", |_: NoArguments, _: &Call| Ok(1)).err();
    /// assert_eq!(unusable, Some(RegisterError::Name("mail/send it".to_owned())));
    /// ```
    pub fn try_tool<A, R, F>(&mut self, name: &str, function: F) -> Result<&mut ToolEntry<'w>, RegisterError>
    where
        A: DeserializeOwned,
        R: Serialize,
        F: Fn(A, &Call<'_>) -> Result<R, ToolError> + Send + Sync + 'w,
    {
        let form = form_of::<A>();
        let run = move |call: &Call<'_>| match call.arguments(form) {
            Ok(arguments) => reply(function(arguments, call), call),
            Err(error) => ToolReply::Error(error),
        };
        self.add(name, (form, fit::<A>), Box::new(run))
    }

    /// Adds an asynchronous tool; see [`Tools::tool`]. The future runs on the tokio runtime in which it is added. It is
    /// dropped at the deadline of the call, and when the evaluation is cancelled.
    ///
    /// The evaluation blocks its thread: an asynchronous caller uses [`Session::run_async`](crate::Session::run_async), or
    /// `tokio::task::spawn_blocking`. On a thread of the runtime itself the run is refused, with
    /// [`EvalError::OnRuntime`](crate::EvalError::OnRuntime). A runtime of a single thread has to be driven meanwhile.
    ///
    /// # Panics
    /// As [`Tools::tool`]; and outside of a tokio runtime.
    #[cfg(feature = "tokio")]
    pub fn async_tool<A, R, F>(&mut self, name: &str, function: F) -> &mut ToolEntry<'w>
    where
        A: DeserializeOwned,
        R: Serialize,
        F: AsyncFn(A, &Call<'_>) -> Result<R, ToolError> + Send + Sync + 'w,
    {
        self.try_async_tool(name, function).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Adds an asynchronous tool, as [`async_tool`](Tools::async_tool) does.
    ///
    /// # Errors
    /// As [`Tools::try_tool`].
    ///
    /// # Panics
    /// Panics outside of a tokio runtime.
    #[cfg(feature = "tokio")]
    pub fn try_async_tool<A, R, F>(&mut self, name: &str, function: F) -> Result<&mut ToolEntry<'w>, RegisterError>
    where
        A: DeserializeOwned,
        R: Serialize,
        F: AsyncFn(A, &Call<'_>) -> Result<R, ToolError> + Send + Sync + 'w,
    {
        let no_runtime = |_| RegisterError::NoRuntime(name.to_owned());
        let runtime = tokio::runtime::Handle::try_current().map_err(no_runtime)?;
        let driver = runtime.clone();
        let form = form_of::<A>();
        let run = move |call: &Call<'_>| {
            let arguments = match call.arguments(form) {
                Ok(arguments) => arguments,
                Err(error) => return ToolReply::Error(error),
            };
            let work = async {
                tokio::select! {
                    biased;
                    () = call.world.cancelled() => ToolReply::Stopped,
                    () = call.own.cancelled() => ToolReply::Stopped,
                    result = function(arguments, call) => reply(result, call),
                }
            };
            let _inside = driver.enter();
            block_until(work, call.call.remaining.min(call.call.timeout)).unwrap_or_else(|| late(call, &driver))
        };
        let entry = self.add(name, (form, fit::<A>), Box::new(run))?;
        entry.runtime = Some(runtime);
        Ok(entry)
    }

    /// Describes a server, the part of tool names before the `/`, for `(dir)`.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Call, Engine, NoArguments, Tools, World};
    ///
    /// let mut tools = Tools::new();
    /// tools.describe_server("mail", "the mails of the user");
    /// tools.tool("mail/unread", |_: NoArguments, _: &Call| Ok(3));
    /// let mut session = Engine::builder().build().unwrap().session();
    /// assert!(session.overview(None, &World::new(tools)).contains("the mails of the user"));
    /// ```
    pub fn describe_server(&mut self, name: &str, description: &str) -> &mut Tools<'w> {
        let server = self.server(name);
        description.clone_into(&mut server.description);
        self
    }

    /// Returns the servers with their tools.
    #[doc(hidden)]
    pub fn into_servers(self) -> Vec<(Server, Vec<ToolEntry<'w>>)> {
        let mut servers: Vec<_> = self.servers.into_iter().map(|server| (server, Vec::new())).collect();
        for entry in self.entries {
            if let Some((_, entries)) = servers.iter_mut().find(|(server, _)| server.name == entry.tool.server) {
                entries.push(entry);
            }
        }
        servers
    }

    /// Returns the tools as they are declared.
    #[doc(hidden)]
    pub fn declared(&self) -> impl Iterator<Item = &Tool> {
        self.entries.iter().map(|entry| &*entry.tool)
    }

    fn server(&mut self, name: &str) -> &mut Server {
        let at = self.servers.iter().position(|server| server.name == name).unwrap_or_else(|| {
            self.servers.push(Server { name: name.to_owned(), description: String::new() });
            self.servers.len() - 1
        });
        &mut self.servers[at]
    }

    fn add(
        &mut self,
        name: &str,
        (form, check): (Form, Check),
        run: Box<Run<'w>>,
    ) -> Result<&mut ToolEntry<'w>, RegisterError> {
        let (server, tool) = split_name(name).ok_or_else(|| RegisterError::Name(name.to_owned()))?;
        if let Form::Unfit(kind) = form {
            return Err(RegisterError::Arguments(name.to_owned(), kind));
        }
        let canonical = canonical_name(server, tool);
        if self.entries.iter().any(|entry| entry.canonical == canonical) {
            return Err(RegisterError::Taken(name.to_owned()));
        }
        self.server(server);
        let input_schema = match form.fields() {
            Some(fields) => {
                let properties: serde_json::Map<_, _> =
                    fields.iter().map(|field| (field.to_string(), json!({}))).collect();
                json!({"type": "object", "properties": properties})
            }
            None => json!({"type": "object"}),
        };
        let tool = Tool { server: server.to_owned(), name: tool.to_owned(), input_schema, ..Tool::default() };
        self.entries.push(ToolEntry {
            tool: Arc::new(tool),
            canonical,
            run,
            form,
            check,
            needs_approval: false,
            #[cfg(feature = "tokio")]
            runtime: None,
        });
        let last = self.entries.len() - 1;
        Ok(&mut self.entries[last])
    }
}

impl fmt::Debug for Tools<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.entries.iter().map(ToolEntry::name)).finish()
    }
}

/// A tool of [`Tools`] with its description.
///
/// ```
/// use lispbox::lang::{Call, NoArguments, Tools};
/// use serde_json::json;
///
/// let mut tools = Tools::new();
/// tools
///     .tool("mail/delete", |_: NoArguments, _: &Call| Ok(()))
///     .doc("Deletes the mails in the bin.")
///     .destructive()
///     .idempotent()
///     .schema(json!({"type": "object", "properties": {}}))
///     .output_schema(json!({"type": "null"}));
/// ```
pub struct ToolEntry<'w> {
    pub(super) tool: Arc<Tool>,
    /// Its name in the spelling by which names are compared.
    pub(super) canonical: String,
    pub(super) run: Box<Run<'w>>,
    /// The form of its type, and what checks arguments against it.
    form: Form,
    check: Check,
    /// True if a person must approve each call.
    pub(super) needs_approval: bool,
    /// The runtime of an asynchronous tool.
    #[cfg(feature = "tokio")]
    pub(super) runtime: Option<tokio::runtime::Handle>,
}

impl ToolEntry<'_> {
    fn change(&mut self, change: impl FnOnce(&mut Tool)) -> &mut Self {
        change(Arc::make_mut(&mut self.tool));
        self
    }

    /// Returns the name: `mail/search`.
    pub(super) fn name(&self) -> String {
        format!("{}/{}", self.tool.server, self.tool.name)
    }

    /// Checks the arguments of a call that is not made.
    ///
    /// # Errors
    /// Returns the error that the call would have.
    pub(super) fn check(&self, call: &Call<'_>) -> Result<(), ToolError> {
        (self.check)(call, self.form)
    }

    /// Returns the description.
    #[doc(hidden)]
    pub fn tool(&self) -> &Tool {
        &self.tool
    }

    /// Carries out a call outside of a world.
    #[doc(hidden)]
    pub fn invoke(&self, call: &ToolCall, cancel: &CancelHandle) -> ToolReply {
        let now = || SystemClock.monotonic();
        let made = Call { call, world: cancel, own: cancel, report: None, begun: now(), now: &now };
        (self.run)(&made)
    }

    /// Sets the description that `(doc name)` and searches show.
    ///
    /// ```
    /// use lispbox::lang::{Call, NoArguments, Tools};
    ///
    /// Tools::new().tool("mail/send", |_: NoArguments, _: &Call| Ok(1)).doc("Sends a mail.");
    /// ```
    pub fn doc(&mut self, text: &str) -> &mut Self {
        self.change(|tool| text.clone_into(&mut tool.description))
    }

    /// Declares that the tool modifies nothing.
    ///
    /// ```
    /// use lispbox::lang::{Call, NoArguments, Tools};
    ///
    /// Tools::new().tool("mail/send", |_: NoArguments, _: &Call| Ok(1)).read_only();
    /// ```
    pub fn read_only(&mut self) -> &mut Self {
        self.change(|tool| tool.hints.read_only = Some(true))
    }

    /// Declares that the tool modifies data, and destroys none.
    ///
    /// ```
    /// use lispbox::lang::{Call, NoArguments, Tools};
    ///
    /// Tools::new().tool("mail/send", |_: NoArguments, _: &Call| Ok(1)).writes();
    /// ```
    pub fn writes(&mut self) -> &mut Self {
        self.change(|tool| (tool.hints.read_only, tool.hints.destructive) = (Some(false), Some(false)))
    }

    /// Declares that the tool may destroy the data that it modifies.
    ///
    /// ```
    /// use lispbox::lang::{Call, NoArguments, Tools};
    ///
    /// Tools::new().tool("mail/send", |_: NoArguments, _: &Call| Ok(1)).destructive();
    /// ```
    pub fn destructive(&mut self) -> &mut Self {
        self.change(|tool| (tool.hints.read_only, tool.hints.destructive) = (Some(false), Some(true)))
    }

    /// Declares that another call with the same arguments has no further effect.
    ///
    /// ```
    /// use lispbox::lang::{Call, NoArguments, Tools};
    ///
    /// Tools::new().tool("mail/send", |_: NoArguments, _: &Call| Ok(1)).idempotent();
    /// ```
    pub fn idempotent(&mut self) -> &mut Self {
        self.change(|tool| tool.hints.idempotent = Some(true))
    }

    /// Requires that a person approves each call. The run is [suspended](crate::Outcome::Suspended) until then, unless
    /// [`World::on_question`](crate::World::on_question) decides at once.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Call, Engine, NoArguments, Outcome, Tools, World};
    ///
    /// let mut tools = Tools::new();
    /// tools.tool("disk/format", |_: NoArguments, _: &Call| Ok(())).destructive().needs_approval();
    /// let mut session = Engine::builder().build().unwrap().session();
    /// let outcome = session.run("(disk/format)").eval::<()>(&World::new(tools)).unwrap();
    /// assert!(matches!(outcome, Outcome::Suspended(_)));
    /// ```
    pub fn needs_approval(&mut self) -> &mut Self {
        self.needs_approval = true;
        self
    }

    /// Sets the JSON Schema of the arguments: an object schema, which documents them. Arguments are checked by the type
    /// that the closure takes.
    ///
    /// ```
    /// use lispbox::lang::{Call, NoArguments, Tools};
    ///
    /// Tools::new().tool("mail/send", |_: NoArguments, _: &Call| Ok(1)).schema(serde_json::json!({"type": "object"}));
    /// ```
    pub fn schema(&mut self, schema: Json) -> &mut Self {
        self.change(|tool| tool.input_schema = schema)
    }

    /// Sets the JSON Schema of the result.
    ///
    /// ```
    /// use lispbox::lang::{Call, NoArguments, Tools};
    ///
    /// Tools::new().tool("mail/send", |_: NoArguments, _: &Call| Ok(1)).output_schema(serde_json::json!({"type": "integer"}));
    /// ```
    pub fn output_schema(&mut self, schema: Json) -> &mut Self {
        self.change(|tool| tool.output_schema = Some(schema))
    }

    /// Sets the schema of the arguments to that of a type.
    #[cfg(feature = "schemars")]
    pub fn schema_of<A: schemars::JsonSchema>(&mut self) -> &mut Self {
        self.schema(schemars::schema_for!(A).to_value())
    }

    /// Sets the schema of the result to that of a type.
    #[cfg(feature = "schemars")]
    pub fn output_schema_of<R: schemars::JsonSchema>(&mut self) -> &mut Self {
        self.output_schema(schemars::schema_for!(R).to_value())
    }
}

/// The arguments of a tool that takes none.
///
/// ```
/// # #[global_allocator]
/// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
/// use lispbox::lang::{Call, Engine, NoArguments, Tools, World};
///
/// let mut tools = Tools::new();
/// tools.tool("mail/unread", |_: NoArguments, _: &Call| Ok(3));
/// let world = World::new(tools);
/// let mut session = Engine::builder().build().unwrap().session();
/// assert_eq!(session.run("(mail/unread)").eval::<u64>(&world).unwrap().done(), Some(3));
/// let refused = session.run("(mail/unread :since 1)").eval::<u64>(&world).unwrap().into_result().unwrap_err();
/// assert_eq!(refused.error, "ToolArgumentError");
/// ```
#[derive(Clone, Copy, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoArguments {}

/// Runs a future to its end on this thread; `None` if it takes longer than `within`. The runtime need not be driven for
/// that: the time is this thread's.
#[cfg(feature = "tokio")]
fn block_until<T>(work: impl Future<Output = T>, within: Duration) -> Option<T> {
    /// The thread, and whether the future is to be polled: what is polled may park the thread itself.
    struct Unpark(Thread, AtomicBool);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.1.store(true, Ordering::Release);
            self.0.unpark();
        }
    }
    // Nothing refills the budget of a task that this thread may be in.
    let (begun, mut work) = (SystemClock.monotonic(), pin!(tokio::task::unconstrained(work)));
    let unpark = Arc::new(Unpark(thread::current(), AtomicBool::new(false)));
    let waker = Waker::from(Arc::clone(&unpark));
    loop {
        if let Poll::Ready(done) = work.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(done);
        }
        while !unpark.1.swap(false, Ordering::AcqRel) {
            let left =
                within.checked_sub(SystemClock.monotonic().saturating_sub(begun)).filter(|left| !left.is_zero())?;
            thread::park_timeout(left);
        }
    }
}

/// Returns the reply to a call that has taken all its time.
#[cfg(feature = "tokio")]
fn late(call: &Call<'_>, runtime: &tokio::runtime::Handle) -> ToolReply {
    let ToolCall { remaining, timeout, .. } = call.call;
    if remaining <= timeout {
        return ToolReply::Stopped;
    }
    let mut problem = format!("did not answer within {}", crate::meter::time(*timeout));
    if runtime.runtime_flavor() == tokio::runtime::RuntimeFlavor::CurrentThread {
        problem.push_str("; its runtime has one thread, and does nothing unless that is in `block_on`");
    }
    ToolReply::Error(call.error(crate::host::ToolErrorKind::Timeout, problem))
}
