//! Worlds: the tools, clocks and observers of evaluations.

use super::call::{Call, Progress};
#[cfg(feature = "tokio")]
use super::cancel::CancelGuard;
use super::cancel::CancelHandle;
use super::layer::Layer;
use super::spans::RunSpan;
use super::suspended::Suspended;
use super::tools::{ToolEntry, Tools};
use crate::foreign_text;
use crate::host::panic_text;
use crate::host::{
    CallId, Catalogue, Decision, Host, OsRandom, Question, SeededRandom, Server, SystemClock, TestClock, Tool,
    ToolCall, ToolError, ToolReply,
};
use crate::plan::Plan;
use crate::runs::RunLog;
use serde::Serialize;
use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A closure that is told about something.
type Observer<'w, T> = dyn Fn(&T) + Send + Sync + 'w;

/// A closure that asks a person.
type Decider<'w> = dyn Fn(&Question) -> Decision + Send + Sync + 'w;

/// Everything that the programs of an evaluation can reach: tools, a clock, random numbers, an output, and a handle that cancels
/// them. A world is borrowed by an evaluation and may borrow itself, so that it can be created for each request.
///
/// The default world has no tools, the clock and the random numbers of the operating system, and no output but that in
/// the [`Report`](crate::Report).
///
/// ```
/// use lispbox::lang::{Engine, SeededRandom, TestClock, World};
/// use std::sync::Arc;
/// # #[global_allocator]
/// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
///
/// let clock = Arc::new(TestClock::at_millis(0));
/// let world = World::default().clock(clock).random(SeededRandom::new(7)).on_print(|text| print!("{text}"));
/// let mut session = Engine::builder().build().unwrap().session();
/// let outcome = session.run("(println \"hello\") (System/currentTimeMillis)").eval::<i64>(&world).unwrap();
/// assert_eq!(outcome.done(), Some(0));
/// ```
#[derive(Default)]
pub struct World<'w> {
    tools: Tools<'w>,
    clock: Option<Arc<TestClock>>,
    random: Option<SeededRandom>,
    cancel: CancelHandle,
    print: Option<Box<Observer<'w, str>>>,
    observe: Option<Box<Observer<'w, CallReport>>>,
    progress: Option<Box<dyn Fn(Progress) + Send + Sync + 'w>>,
    decide: Option<Box<Decider<'w>>>,
    pub(super) layers: Vec<Box<dyn Layer + 'w>>,
}

/// One evaluation in a world. Several may share a world at the same time.
pub(crate) struct Visit<'v, 'w> {
    pub(super) world: &'v World<'w>,
    span: RunSpan,
    checkpoints: Option<Checkpoints<'v>>,
    /// The plan to which the run is held.
    pub(super) plan: Option<&'v Plan>,
    /// The calls that are in progress, and those that were abandoned before they began.
    running: Mutex<HashMap<CallId, CancelHandle>>,
    /// The calls that were made and have ended.
    calls: Mutex<Vec<CallReport>>,
}

/// A closure that stores a run.
pub(super) type Checkpoint<'c> = dyn Fn(&Suspended) -> Result<(), String> + Send + Sync + 'c;

/// Stores a run while it goes on.
pub(super) struct Checkpoints<'c> {
    pub(super) log: Arc<RunLog>,
    /// The run at its start, without a log.
    pub(super) run: Suspended,
    /// Stores the run; without it, only the log marks the changes.
    pub(super) store: Option<&'c Checkpoint<'c>>,
    /// Why the run was not stored after its last change, if it was not.
    pub(super) unstored: &'c Mutex<Option<String>>,
}

impl Checkpoints<'_> {
    fn store(&self) -> Result<(), String> {
        let Some(store) = self.store else { return Ok(()) };
        let run = self.run.with_log(self.log.logged());
        let stored = catch_unwind(AssertUnwindSafe(|| store(&run)));
        stored.unwrap_or_else(|payload| Err(format!("it panicked: {}", panic_text(&*payload))))
    }

    /// Stores that a call is about to be made.
    fn before(&self, call: &CallId) -> Result<(), String> {
        self.log.starting(call)?;
        self.store()
    }

    /// Stores the reply to a call.
    fn after(&self, call: &CallId, reply: &ToolReply) {
        self.log.ended(call, reply, None);
        // If this fails, the call is found as started, and a person decides.
        // Of concurrent calls, the last one to be stored says whether all are.
        let mut unstored = self.unstored.lock().unwrap_or_else(PoisonError::into_inner);
        *unstored = self.store().err();
    }
}

/// The record of a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CallReport {
    /// The identity of the call.
    pub id: CallId,
    /// The server of the tool.
    pub server: Arc<str>,
    /// The tool.
    pub tool: Arc<str>,
    /// The arguments: the text of a JSON object.
    pub arguments: String,
    /// `ok`, or the error code; `asked` if the call waits for a decision, `rehearsed` if a layer has collected it.
    pub outcome: &'static str,
    /// The size of the result as JSON text, in bytes.
    pub result_bytes: u64,
    /// The time that the tool took.
    pub time: Duration,
    /// The steps that the evaluation had spent before the call.
    pub fuel: u64,
    /// The live bytes of the evaluation and its session before the call.
    pub memory: u64,
}

impl CallReport {
    /// Returns the record of a call that a person has refused.
    fn of_question(question: &Question, reply: &ToolReply) -> CallReport {
        CallReport {
            id: question.id.clone(),
            server: Arc::clone(&question.server),
            tool: Arc::clone(&question.tool),
            arguments: question.arguments.clone(),
            outcome: reply.outcome(),
            result_bytes: reply.bytes(),
            time: Duration::ZERO,
            fuel: 0,
            memory: 0,
        }
    }
}

/// A line for a log.
impl fmt::Display for CallReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CallReport { id, server, tool, arguments, outcome, time, .. } = self;
        let (name, arguments) = (foreign_text::qualified(server, tool), foreign_text::json_text(arguments.clone()));
        write!(f, "{id} {name} {arguments}: {outcome} after {}", crate::meter::time(*time))
    }
}

impl<'w> World<'w> {
    /// Creates a world with these tools.
    ///
    /// ```
    /// use lispbox::lang::{Call, NoArguments, Tools, World};
    ///
    /// let mut tools = Tools::new();
    /// tools.tool("mail/unread", |_: NoArguments, _: &Call| Ok(3));
    /// let world = World::new(tools);
    /// assert_eq!(format!("{:?}", world.tools()), r#"["mail/unread"]"#);
    /// ```
    pub fn new(tools: Tools<'w>) -> World<'w> {
        World { tools, ..World::default() }
    }

    /// Sets the clock, for the time of day and for time limits.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Engine, TestClock, World};
    /// use std::sync::Arc;
    ///
    /// let world = World::default().clock(Arc::new(TestClock::at_millis(5)));
    /// let mut session = Engine::builder().build().unwrap().session();
    /// assert_eq!(session.run("(System/currentTimeMillis)").eval::<i64>(&world).unwrap().done(), Some(5));
    /// ```
    pub fn clock(self, clock: Arc<TestClock>) -> World<'w> {
        World { clock: Some(clock), ..self }
    }

    /// Sets the source of random numbers.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Engine, SeededRandom, World};
    ///
    /// let drawn = |seed| {
    ///     let world = World::default().random(SeededRandom::new(seed));
    ///     let mut session = Engine::builder().build().unwrap().session();
    ///     session.run("(rand)").eval::<f64>(&world).unwrap().done()
    /// };
    /// assert_eq!(drawn(1), drawn(1));
    /// ```
    pub fn random(self, random: SeededRandom) -> World<'w> {
        World { random: Some(random), ..self }
    }

    /// Lets a handle cancel the evaluations in this world.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{CancelHandle, Engine, Outcome, World};
    ///
    /// let cancel = CancelHandle::new();
    /// let world = World::default().cancelled_by(&cancel);
    /// cancel.cancel();
    /// let mut session = Engine::builder().build().unwrap().session();
    /// assert!(matches!(session.run("1").eval::<i64>(&world), Ok(Outcome::Cancelled)));
    /// ```
    pub fn cancelled_by(self, cancel: &CancelHandle) -> World<'w> {
        World { cancel: cancel.clone(), ..self }
    }

    /// Passes each printed text on as it is printed. The [`Report`](crate::Report) contains it as well. A panic of the
    /// observer does not affect the run.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Engine, World};
    /// use std::sync::Mutex;
    ///
    /// let printed = Mutex::new(String::new());
    /// let world = World::default().on_print(|text| printed.lock().unwrap().push_str(text));
    /// let mut session = Engine::builder().build().unwrap().session();
    /// session.run("(println 1)").eval::<Option<i64>>(&world).unwrap().done().unwrap();
    /// assert_eq!(*printed.lock().unwrap(), "1\n");
    /// ```
    pub fn on_print(self, print: impl Fn(&str) + Send + Sync + 'w) -> World<'w> {
        World { print: Some(Box::new(print)), ..self }
    }

    /// Passes the record of each tool call on: as it ends, as it is denied, and as it begins to wait for a decision. The
    /// [`Report`](crate::Report) contains those that were made. A panic of the observer does not affect the run.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Call, Engine, NoArguments, Tools, World};
    /// use std::sync::Mutex;
    ///
    /// let mut tools = Tools::new();
    /// tools.tool("mail/unread", |_: NoArguments, _: &Call| Ok(3));
    /// let seen = Mutex::new(Vec::new());
    /// let world = World::new(tools).on_call(|call| seen.lock().unwrap().push((call.tool.to_string(), call.outcome)));
    /// let mut session = Engine::builder().build().unwrap().session();
    /// session.run("(mail/unread)").eval::<u64>(&world).unwrap().done().unwrap();
    /// assert_eq!(*seen.lock().unwrap(), [("unread".to_owned(), "ok")]);
    /// ```
    pub fn on_call(self, observe: impl Fn(&CallReport) + Send + Sync + 'w) -> World<'w> {
        World { observe: Some(Box::new(observe)), ..self }
    }

    /// Passes the [progress](Call::progress) that tools report on.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Call, Engine, NoArguments, Tools, World};
    /// use std::sync::atomic::{AtomicU64, Ordering};
    ///
    /// let mut tools = Tools::new();
    /// tools.tool("files/copy", |_: NoArguments, call: &Call| Ok(call.progress(3.0, None, "copied")));
    /// let done = AtomicU64::new(0);
    /// let world = World::new(tools).on_progress(|progress| done.store(progress.done as u64, Ordering::Relaxed));
    /// let mut session = Engine::builder().build().unwrap().session();
    /// session.run("(files/copy)").eval::<()>(&world).unwrap().done().unwrap();
    /// assert_eq!(done.load(Ordering::Relaxed), 3);
    /// ```
    pub fn on_progress(self, progress: impl Fn(Progress) + Send + Sync + 'w) -> World<'w> {
        World { progress: Some(Box::new(progress)), ..self }
    }

    /// Asks a person who can answer at once about the calls that [need approval](crate::ToolEntry::needs_approval). A run whose
    /// call is [`Decision::Pending`] is suspended, as all are without this.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Call, Decision, Engine, NoArguments, Tools, World};
    ///
    /// let mut tools = Tools::new();
    /// tools.tool("disk/format", |_: NoArguments, _: &Call| Ok(())).needs_approval();
    /// let world = World::new(tools).on_question(|question| Decision::Denied(format!("no {}", question.tool)));
    /// let mut session = Engine::builder().build().unwrap().session();
    /// let denied = session.run("(disk/format)").eval::<()>(&world).unwrap().into_result().unwrap_err();
    /// assert_eq!(denied.to_string(), "ToolDenied: `disk/format` may not be called: no format");
    /// ```
    pub fn on_question(self, decide: impl Fn(&Question) -> Decision + Send + Sync + 'w) -> World<'w> {
        World { decide: Some(Box::new(decide)), ..self }
    }

    /// Returns whether a person may have to decide on a call.
    pub(super) fn can_ask(&self) -> bool {
        !self.layers.is_empty() || self.tools.entries.iter().any(|entry| entry.needs_approval)
    }

    /// Returns a tool whose name a function has as well, which is asked for in canonical spelling.
    pub(super) fn conflict(&self, is_function: impl Fn(&str) -> bool) -> Option<String> {
        self.tools.entries.iter().find(|entry| is_function(&entry.canonical)).map(|entry| entry.name())
    }

    /// Returns whether this thread must not wait for asynchronous tools, because it drives a runtime.
    #[cfg(feature = "tokio")]
    pub(super) fn would_block_runtime(&self) -> bool {
        let runtime = self.tools.entries.iter().find_map(|entry| entry.runtime.as_ref());
        // Only a thread of a runtime has one. Tokio tells of a task that is exempt from the budget only by a panic.
        let blocks = |runtime: &tokio::runtime::Handle| {
            tokio::runtime::Handle::try_current().is_ok()
                && (is_budgeted() || catch_unwind(AssertUnwindSafe(|| runtime.block_on(async {}))).is_err())
        };
        runtime.is_some_and(blocks)
    }

    /// Returns the tools.
    ///
    /// ```
    /// use lispbox::lang::World;
    ///
    /// assert_eq!(format!("{:?}", World::default().tools()), "[]");
    /// ```
    pub fn tools(&self) -> &Tools<'w> {
        &self.tools
    }

    /// Returns a guard that cancels the evaluations of the world.
    #[cfg(feature = "tokio")]
    pub(super) fn cancel_on_drop(&self) -> CancelGuard {
        self.cancel.cancel_on_drop()
    }

    /// Returns whether the handle of the world was cancelled.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Returns the time of the clock, in milliseconds since 1970.
    pub(super) fn now_millis(&self) -> i64 {
        self.clock.as_ref().map_or_else(|| SystemClock.now_millis(), |clock| clock.now_millis())
    }

    fn time(&self) -> Duration {
        self.clock.as_ref().map_or_else(|| SystemClock.monotonic(), |clock| clock.monotonic())
    }
}

impl<'v, 'w> Visit<'v, 'w> {
    pub(super) fn new(world: &'v World<'w>, span: RunSpan) -> Visit<'v, 'w> {
        Visit { world, span, checkpoints: None, plan: None, running: Mutex::default(), calls: Mutex::default() }
    }

    /// Stores the run before and after calls that may change something.
    pub(super) fn checkpointed(self, checkpoints: Checkpoints<'v>) -> Visit<'v, 'w> {
        Visit { checkpoints: Some(checkpoints), ..self }
    }

    /// Tells those who decide on calls the plan of the run.
    pub(super) fn within(self, plan: Option<&'v Plan>) -> Visit<'v, 'w> {
        Visit { plan, ..self }
    }

    /// Returns whether a call was made.
    pub(super) fn has_calls(&self) -> bool {
        !self.calls.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Returns the records of the calls that were made, in the order in which they ended.
    pub(crate) fn into_calls(self) -> Vec<CallReport> {
        self.calls.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the handle that abandons a single call.
    fn handle_of(&self, call: &CallId) -> CancelHandle {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.entry(call.clone()).or_default().clone()
    }

    /// Returns the record of a call.
    fn report(&self, call: ToolCall, began: Duration, reply: &ToolReply) -> CallReport {
        let ToolCall { id, server, tool, arguments, fuel, memory, .. } = call;
        let time = self.world.time().saturating_sub(began);
        let (outcome, result_bytes) = (reply.outcome(), reply.bytes());
        CallReport { id, server, tool, arguments, outcome, result_bytes, time, fuel, memory }
    }

    /// Passes the record of a call to the observer.
    fn observe(&self, report: &CallReport) {
        if let Some(observe) = &self.world.observe {
            // What has happened has happened: a panic of the observer does not change it.
            let _ = catch_unwind(AssertUnwindSafe(|| observe(report)));
        }
    }

    /// Records a call that was made and has ended.
    fn record(&self, call: ToolCall, began: Duration, reply: &ToolReply) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&call.id);
        let report = self.report(call, began, reply);
        self.observe(&report);
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(report);
    }

    /// Returns the error of a call whose arguments do not fit the type that its tool takes.
    pub(super) fn unfit(&self, call: &ToolCall, entry: &ToolEntry<'_>) -> Option<ToolError> {
        let (own, now) = (CancelHandle::default(), || self.world.time());
        let begun = self.world.time();
        let called = Call { call, world: &self.world.cancel, own: &own, report: None, begun, now: &now };
        let checked = catch_unwind(AssertUnwindSafe(|| entry.check(&called)));
        checked.unwrap_or_else(|payload| Err(ToolError::panicked(&call.server, &call.tool, &*payload))).err()
    }

    /// Makes a call.
    pub(super) fn make(&self, call: ToolCall, entry: &ToolEntry<'_>) -> ToolReply {
        let hints = &entry.tool.hints;
        let is_harmless = hints.read_only == Some(true) || hints.idempotent == Some(true);
        let checkpoints = self.checkpoints.as_ref().filter(|_| !is_harmless);
        if let Some(checkpoints) = checkpoints
            && let Err(why) = checkpoints.before(&call.id)
        {
            let name = foreign_text::qualified(&call.server, &call.tool);
            let problem = format!("`{name}` was not called, because the checkpoint before it failed: {why}");
            let reply = ToolReply::Error(ToolError::unavailable(problem));
            self.observe(&self.report(call, self.world.time(), &reply));
            return reply;
        }
        let own = self.handle_of(&call.id);
        let span = self.span.call(&call);
        let began = self.world.time();
        let now = || self.world.time();
        let reply = catch_unwind(AssertUnwindSafe(|| {
            let report = self.world.progress.as_deref();
            let made = Call { call: &call, world: &self.world.cancel, own: &own, report, begun: began, now: &now };
            (entry.run)(&made)
        }));
        let reply =
            reply.unwrap_or_else(|payload| ToolReply::Error(ToolError::panicked(&call.server, &call.tool, &*payload)));
        if let Some(checkpoints) = checkpoints {
            checkpoints.after(&call.id, &reply);
        }
        span.ended(reply.outcome(), reply.bytes());
        self.record(call, began, &reply);
        reply
    }
}

/// Returns whether tokio polls a future on this thread: it gives each poll a budget of 128 operations. They are taken until
/// there are no more, and given back.
#[cfg(feature = "tokio")]
fn is_budgeted() -> bool {
    const MOST: usize = 256;
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let mut taken = Vec::with_capacity(MOST);
    while taken.len() < MOST
        && let std::task::Poll::Ready(one) = tokio::task::coop::poll_proceed(&mut context)
    {
        taken.push(one);
    }
    let is_budgeted = taken.len() < MOST;
    // Each sets the budget to what it was before.
    while taken.pop().is_some() {}
    is_budgeted
}

impl std::fmt::Debug for World<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("tools", &self.tools).finish_non_exhaustive()
    }
}

impl Host for Visit<'_, '_> {
    fn takes_values(&self) -> bool {
        true
    }

    fn servers(&self) -> Vec<Server> {
        self.world.tools.servers.clone()
    }

    fn tools(&self, server: &str) -> Result<Vec<Arc<Tool>>, ToolError> {
        let tools = self.world.tools.entries.iter().filter(|entry| entry.tool.server == server);
        Ok(tools.map(|entry| entry.tool.clone()).collect())
    }

    fn catalogue(&self) -> Catalogue {
        let tools = self.world.tools.entries.iter().map(|entry| entry.tool.clone()).collect();
        Catalogue { tools, ..Catalogue::default() }
    }

    fn call(&self, call: ToolCall) -> ToolReply {
        let entry = self
            .world
            .tools
            .entries
            .iter()
            .find(|entry| entry.tool.server == *call.server && entry.tool.name == *call.tool);
        let Some(entry) = entry else {
            return ToolReply::Error(ToolError::unavailable(format!(
                "there is no tool `{}/{}`",
                call.server, call.tool
            )));
        };
        if self.world.layers.is_empty() && !entry.needs_approval {
            return self.make(call, entry);
        }
        let (reply, is_made) = self.through_layers(&call, entry);
        if !is_made {
            self.observe(&self.report(call, self.world.time(), &reply));
        }
        reply
    }

    fn decide(&self, questions: &[Question]) -> Vec<Decision> {
        let decide = |question: &Question| match self.world.decide.as_ref().map(|decide| decide(question)) {
            None => Decision::Pending,
            // A tool of an embedder is called right after the decision.
            Some(Decision::Covered(_)) => Decision::Approved,
            Some(decision) => {
                if let Some(refusal) = decision.refusal() {
                    self.observe(&CallReport::of_question(question, &refusal));
                }
                decision
            }
        };
        questions.iter().map(decide).collect()
    }

    fn give_up(&self, call: &CallId) {
        self.handle_of(call).cancel();
    }

    fn print(&self, text: &str) {
        if let Some(print) = &self.world.print {
            // A panic of the observer is no failure of the program.
            let _ = catch_unwind(AssertUnwindSafe(|| print(text)));
        }
    }

    fn now_millis(&self) -> i64 {
        self.world.now_millis()
    }

    fn random(&self) -> u64 {
        self.world.random.as_ref().map_or_else(|| OsRandom.bits(), SeededRandom::bits)
    }

    fn monotonic(&self) -> Duration {
        self.world.time()
    }

    fn cancelled(&self) -> bool {
        self.world.is_cancelled()
    }
}
