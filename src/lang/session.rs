//! Sessions: a session runs programs form by form, each top-level form as a transaction.

use crate::builtin::discovery::vocabulary::{self, Word};
use crate::builtin::{self, discovery};
use crate::error::render::{Diagnosis, halt_message, shown, trace_line};
use crate::error::{Error, Fault, Halt, Outcome, Raised, Signal};
use crate::eval::internal_error;
use crate::form::Form;
use crate::host::Host;
use crate::machine::{Core, Machine, Stacks};
use crate::meter::{self, Account, Limits, Meter, Residence, Watch};
use crate::native::Builtin;
use crate::registry::{Registry, Table};
use crate::reply::{Failure, Reply, Spent, Status};
use crate::snapshot::EncodeError;
use crate::span::{Source, SourceName};
use crate::value::Value;
use crate::value::print::{Printed, print_within};
use crate::value::release;
use crate::{foreign, foreign_text, json, reader};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// State shared by all sessions: the registry of builtins, and the pool of evaluation stacks.
pub struct Engine {
    registry: Arc<Registry>,
    stacks: Arc<Stacks>,
    memory_counted: bool,
    watch: Option<Arc<Watch>>,
}

/// The reason why an engine could not be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineError(String);

impl std::fmt::Display for EngineError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for EngineError {}

/// Builds an [`Engine`].
#[derive(Default)]
pub struct EngineBuilder {
    unlimited_memory: bool,
    is_plain: bool,
    stacks: Option<Arc<Stacks>>,
    residence: Option<Box<dyn Residence>>,
    functions: Vec<Table>,
}

impl EngineBuilder {
    /// Disables the memory limit, for a process that does not allocate through
    /// [`Metered`](crate::Metered). Without this call, [`build`](EngineBuilder::build) fails in such a
    /// process.
    pub fn unlimited_memory(mut self) -> Self {
        self.unlimited_memory = true;
        self
    }

    /// Disables the inlining of common builtins: the evaluator walks the tree node by node. Only the speed differs. For
    /// tests that compare the two modes.
    pub fn plain_walk(mut self) -> Self {
        self.is_plain = true;
        self
    }

    /// Adds functions of the host to the language, under a title in the documentation. Each one is an entry like those
    /// of the language's own builtins; its name must have a namespace. These functions are documented, searchable,
    /// checked for arity, serialized by name and called like any builtin. A call takes a tenth of the time of a tool
    /// call: it works on values, without JSON and without a record in the reply.
    ///
    /// Such a function runs on the evaluation's thread and within its account: its allocations count towards the memory
    /// limit. A long-running function calls [`Machine::charge`] as it proceeds, with one step per ten nanoseconds or
    /// so, and [`Machine::reserve`] before it allocates much memory. An operation that blocks, or whose effects may
    /// need approval, should be a tool instead. [`Machine::host`] returns the host that runs the evaluation, for data
    /// that differs between users.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Builtin, arguments::string};
    /// use lispbox::lang::{Engine, Host, Request, ToolCall, ToolReply, Value};
    /// use std::{sync::Arc, time::Duration};
    ///
    /// struct Assistant { user: String }
    ///
    /// impl Host for Assistant {
    /// #   fn call(&self, _: ToolCall) -> ToolReply { ToolReply::Denied("there are no tools".to_string()) }
    /// #   fn now_millis(&self) -> i64 { 0 }
    /// #   fn random(&self) -> u64 { 4 }
    /// #   fn monotonic(&self) -> Duration { Duration::ZERO }
    ///     // …
    /// }
    ///
    /// static FUNCTIONS: [Builtin; 1] = [Builtin::new(
    ///     "user/is-sender?",
    ///     &["[mail]"],
    ///     "True if the user sent this mail.",
    ///     &[],
    ///     |machine, arguments| {
    ///         let Value::Map(mail) = &arguments[0] else { return Ok(Value::Bool(false)) };
    ///         let sender = mail.field("sender").map(string).transpose()?;
    ///         let user = machine.host::<Assistant>().map(|host| host.user.as_str());
    ///         Ok(Value::Bool(sender.is_some() && sender == user))
    ///     },
    /// )];
    ///
    /// let engine = Engine::builder().functions("The user", &FUNCTIONS).build().unwrap();
    /// let host = Arc::new(Assistant { user: "ann@example.org".to_string() });
    /// let mut session = engine.session();
    /// let reply = session.eval(Request::new(r#"(user/is-sender? {:sender "ann@example.org"})"#), host);
    /// assert_eq!(reply.value.as_deref(), Some("true"));
    /// ```
    pub fn functions(mut self, title: &'static str, table: &'static [Builtin]) -> Self {
        self.functions.push((title, table));
        self
    }

    /// Uses this pool of stacks for evaluations.
    pub fn stacks(mut self, stacks: Arc<Stacks>) -> Self {
        self.stacks = Some(stacks);
        self
    }

    /// Enforces a bound on the growth of the process: an evaluation ends, with the memory limit, when the resident set
    /// grows by more than one and a half times the limit plus 16 MiB, even if less memory is live. Without this call,
    /// the resident set is not monitored.
    pub fn residence(mut self, residence: impl Residence + 'static) -> Self {
        self.residence = Some(Box::new(residence));
        self
    }

    /// Builds the engine.
    ///
    /// # Errors
    /// Returns an error if memory limits cannot be enforced, because the metering allocator is not installed and
    /// [`unlimited_memory`](EngineBuilder::unlimited_memory) was not called, or if the name of a host function is not
    /// available.
    pub fn build(self) -> Result<Arc<Engine>, EngineError> {
        let memory_counted = meter::is_installed();
        if !memory_counted && !self.unlimited_memory {
            return Err(EngineError(
                "memory limits cannot be enforced: install `lispbox::lang::Metered` as the global allocator, or call `unlimited_memory()`".to_string(),
            ));
        }
        let registry = Registry::new(&builtin::LIBRARY).map_err(EngineError)?;
        let mut registry = if self.is_plain { registry.plain() } else { registry };
        for table in self.functions {
            registry.add(table).map_err(EngineError)?;
        }
        Ok(Arc::new(Engine {
            registry: Arc::new(registry),
            stacks: self.stacks.unwrap_or_default(),
            memory_counted: memory_counted && !self.unlimited_memory,
            watch: self.residence.filter(|_| !self.unlimited_memory).map(|residence| Arc::new(Watch::new(residence))),
        }))
    }
}

impl Engine {
    /// Returns a builder for an engine. Memory limits require a process that allocates through
    /// [`Metered`](crate::Metered).
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    /// Creates a session without definitions.
    pub fn session(self: &Arc<Self>) -> Session {
        Session { engine: self.clone(), kept: None }
    }

    /// Returns the builtins of the language.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }
}

/// A program to evaluate, with its options.
#[derive(Clone, Debug)]
pub struct Request {
    /// The program's text.
    pub program: String,
    /// JSON text, bound as `data` for this and later programs of the session.
    pub data: Option<String>,
    /// The limits of the evaluation.
    pub limits: Limits,
    /// The name of the program in error messages; `program 1` and so on if `None`.
    pub name: Option<String>,
}

impl Request {
    /// Creates a request with the default limits.
    pub fn new(program: impl Into<String>) -> Request {
        Request { program: program.into(), data: None, limits: Limits::default(), name: None }
    }
}

/// An environment that persists across programs.
pub struct Session {
    engine: Arc<Engine>,
    /// The state kept between evaluations.
    kept: Option<Box<Core>>,
}

impl Session {
    /// Evaluates a program on the calling thread, which it blocks: an asynchronous caller uses a thread that may block.
    /// The definitions of each form are kept, up to the first form that fails.
    pub fn eval(&mut self, request: Request, host: Arc<dyn Host>) -> Reply {
        self.with_machine(&request.limits, host, |machine| {
            machine.core.programs = machine.core.programs.saturating_add(1);
            let given = request.name.as_deref().map(|name| SourceName::Given(name.into()));
            let name = given.unwrap_or(SourceName::Program(machine.core.programs));
            let source = Arc::new(Source { name, text: request.program.as_str().into(), is_hidden: false });
            evaluate(machine, &request, &source)
        })
        .unwrap_or_else(refused)
    }

    /// Binds a name to the value of JSON text for later programs, as [`Request::data`] does for `data`.
    ///
    /// # Errors
    /// Returns a sentence that describes the error in the text, or reports that the value takes too much memory.
    /// Nothing is bound then.
    pub fn bind(&mut self, name: &str, text: &str, host: Arc<dyn Host>) -> Result<(), String> {
        self.with_machine(&Limits::default(), host, |machine| {
            bind(machine, name, text).map_err(|signal| diagnose(&signal).1.message)
        })
        .unwrap_or_else(|error| Err(error.message))
    }

    /// Returns the answer of `lisp_env`: the bindings, the servers, or the results of a query.
    pub fn describe(&mut self, query: Option<&str>, host: Arc<dyn Host>) -> String {
        let limits = Limits::default();
        let budget = limits.output as usize;
        let text = self.with_machine(&limits, host, |machine| match discovery::describe_environment(machine, query) {
            Ok(text) => text,
            Err(signal) => diagnose(&signal).1.rendered,
        });
        let mut text = text.unwrap_or_else(|error| refused(error).text(u64::MAX));
        text.truncate(text.floor_char_boundary(budget));
        text
    }

    /// Returns the definitions of the session: names, signatures, and the values in one line each.
    pub fn definitions(&mut self, host: Arc<dyn Host>) -> Vec<Word> {
        let defined = self.with_machine(&Limits::default(), host, |machine| vocabulary::definitions(machine).ok());
        defined.ok().flatten().unwrap_or_default()
    }

    /// Returns the output of `(doc name)` or `(doc name :schema)`. This does not count as a program of the session:
    /// `*1` is unchanged.
    ///
    /// # Errors
    /// Returns a failure with a suggestion if nothing has that name.
    pub fn explain(&mut self, name: &str, host: Arc<dyn Host>) -> Result<String, Box<Failure>> {
        let explained = self.with_machine(&Limits::default(), host, |machine| {
            discovery::explain(machine, name).map_err(|signal| Box::new(diagnose(&signal).1))
        });
        explained.unwrap_or_else(|error| Err(Box::new(diagnose(&error.into()).1)))
    }

    /// Returns whether the session defines that name.
    pub fn defines(&self, name: &str) -> bool {
        self.kept.as_ref().is_some_and(|core| core.globals.find(name).is_some())
    }

    /// Returns the number of names that the session defines.
    pub fn bindings(&self) -> usize {
        self.kept.as_ref().map_or(0, |core| core.globals.len())
    }

    /// A change counter: it differs whenever a definition of the session, or a cell that a definition holds, has
    /// changed, so that the result of [`Session::encode`] may differ. A change visible only through `*1` and its kin
    /// does not count.
    pub fn changes(&self) -> u64 {
        self.kept.as_ref().map_or(0, |core| core.globals.changes() + core.heap.changes())
    }

    /// Returns the number of live bytes that the session holds. Values released by the last program may still be in the
    /// process of being dropped: they count until they are freed, which the next evaluation waits for.
    pub fn live_bytes(&self) -> u64 {
        self.kept.as_ref().map_or(0, |core| u64::try_from(core.account.live()).unwrap_or(0))
    }

    /// Returns the names that the session defines, in the order of their first appearance.
    pub fn names(&self) -> Vec<String> {
        self.kept
            .iter()
            .flat_map(|core| core.globals.iter().map(|global| global.name.to_string()).collect::<Vec<_>>())
            .collect()
    }

    /// Serializes the environment as text that [`Session::decode`] reads.
    ///
    /// # Errors
    /// Returns an error that names the value that cannot be serialized and the definition that holds it. The session is
    /// unchanged then.
    pub fn encode(&mut self, host: Arc<dyn Host>) -> Result<String, EncodeError> {
        self.with_machine(&snapshot_limits(), host, crate::snapshot::encode)
            .unwrap_or_else(|error| Err(EncodeError::outside(error)))
    }

    /// Replaces the environment by the one that the text describes.
    ///
    /// # Errors
    /// Returns a sentence that describes the error in the text. The session is unchanged then.
    pub fn decode(&mut self, text: &str, host: Arc<dyn Host>) -> Result<(), String> {
        let mut fresh = self.engine.session();
        let read = fresh.with_machine(&snapshot_limits(), host, |machine| {
            let source = Arc::new(Source::new("snapshot", text));
            crate::snapshot::decode(machine, &source).map_err(|signal| diagnose(&signal).1.message)
        });
        read.unwrap_or_else(|error| Err(error.message)).map(|()| *self = fresh)
    }

    /// Runs `work` on an evaluation stack, with the session's account open.
    ///
    /// # Errors
    /// Returns `Busy` if the system cannot allocate a stack.
    fn with_machine<R: Clone>(
        &mut self,
        limits: &Limits,
        host: Arc<dyn Host>,
        work: impl FnOnce(&mut Machine) -> R,
    ) -> Result<R, Error> {
        let stacks = self.engine.stacks.clone();
        let settled = self.kept.as_mut().is_some_and(|core| core.account.settle());
        let mut meter = Meter::new(limits.clone(), self.engine.memory_counted, host.monotonic());
        if let Some(watch) = &self.engine.watch {
            meter.watch(watch.clone(), self.kept.as_ref().map_or(0, |core| core.account.live()));
        }
        match &mut self.kept {
            Some(core) => {
                core.meter = meter;
                core.host = host;
            }
            none => *none = Some(Box::new(Core::new(meter, host, self.engine.registry.clone(), stacks.clone()))),
        }
        let kept = &mut self.kept;
        let mut result = None;
        // The caller may itself have an open account, as a tool that evaluates programs does.
        let switched = meter::outside(|| {
            stacks.switch(|| {
                let Some(mut core) = kept.take() else { return ((), true) };
                core.account.open();
                if settled {
                    // Reclaims cells that were kept alive only by the values dropped since.
                    core.heap.reclaim();
                }
                let mut machine = Machine::new(core, stacks.size());
                let worked = std::panic::catch_unwind(AssertUnwindSafe(|| {
                    let charged = work(&mut machine);
                    // The result leaves the evaluation: return a copy that is not charged to its account.
                    meter::outside(|| result = Some(charged.clone()));
                }));
                if worked.is_err() {
                    // A panic is an internal defect: it loses the running form, not the session.
                    result = None;
                    machine.core.undo();
                }
                let (core, is_shallow) = end(machine);
                *kept = Some(core);
                ((), is_shallow)
            })
        });
        switched.ok_or_else(|| Error::new("Busy", "the system cannot allocate a stack; try again"))?;
        result.ok_or_else(internal_error)
    }
}

/// Ends an evaluation. The values that it released last are dropped on another thread, so that the caller does not
/// wait. Also returns whether the evaluation used little of its stack.
fn end(machine: Machine) -> (Box<Core>, bool) {
    const SHALLOW: u32 = 100;
    let mut core = machine.into_core();
    let is_shallow = core.meter.peak_depth <= SHALLOW;
    core.end_evaluation();
    release::more();
    core.heap.reclaim();
    core.account = Account::close();
    if let Some(leaving) = core.account.leave() {
        core.stacks.run(move || drop(leaving));
    }
    (core, is_shallow)
}

/// Returns the limits for encoding and decoding snapshots, which is work of the host and not of a program.
fn snapshot_limits() -> Limits {
    let time = std::time::Duration::from_secs(60);
    Limits { fuel: 10_000_000_000, memory: 2 << 30, compute: time, total: time, ..Limits::default() }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The values are dropped on an arbitrary thread, outside of any account; the thread's balance is not read.
        drop(self.kept.take());
    }
}

/// Builds the reply for an evaluation that could not take place.
fn refused(error: Error) -> Reply {
    let (status, failure) = diagnose(&error.into());
    Reply { status, failure: Some(failure), ..Reply::default() }
}

/// Evaluates a program form by form.
fn evaluate(machine: &mut Machine, request: &Request, source: &Arc<Source>) -> Reply {
    let mut reply = Reply::default();
    let live_before = meter::live();
    let ended = run_forms(machine, request, source, &mut reply);
    match ended {
        Ok(shown) => {
            reply.value = Some(shown.printed.text);
            reply.truncated = shown.printed.truncated;
            reply.json = shown.json;
        }
        Err(signal) => {
            let (status, failure) = diagnose(&signal);
            if let Raised::Fault(Fault { error, .. }) = signal.raised() {
                machine.core.globals.history[3] = Value::Exception(error.clone());
            }
            reply.status = status;
            reply.failure = Some(failure);
        }
    }
    let core = &mut *machine.core;
    reply.prints = std::mem::take(&mut core.prints);
    if core.prints_cut > 0 {
        reply.prints.push_str(&format!("… [{} more bytes were printed]", core.prints_cut));
    }
    reply.calls = std::mem::take(&mut core.calls);
    let (total, compute) = core.meter.times(core.host.monotonic());
    let peak = core.meter.peak_memory.max(meter::live()).max(live_before);
    reply.spent = Spent {
        fuel: core.meter.fuel_spent(),
        memory_bytes: peak,
        depth: core.meter.peak_depth,
        compute_ms: compute.as_millis() as u64,
        total_ms: total.as_millis() as u64,
    };
    reply
}

/// Runs the forms of a program, each as a transaction, and returns the value of the last one. Printing that value is
/// part of its transaction: what printing computes is kept or undone with the form.
fn run_forms(machine: &mut Machine, request: &Request, source: &Arc<Source>, reply: &mut Reply) -> Outcome<Shown> {
    let limits = &machine.core.meter.limits;
    if request.program.len() as u64 > limits.program {
        let (allowed, came) = (meter::bytes(limits.program), meter::bytes(request.program.len() as u64));
        return Err(meter::limit("program", allowed, came).into());
    }
    if let Some(data) = &request.data {
        bind(machine, "data", data)?;
    }
    machine.charge(request.program.len() as u64 / 16)?;
    let forms = reader::read(&request.program).map_err(|error| unreadable(error, source))?;
    if let Some((span, error)) = foreign::at_top_level(&forms, &request.program) {
        return Err(Signal::from(error).at(source, span));
    }
    machine.core.coming.extend(forms.iter().filter_map(Form::defined_name).map(str::to_string));
    let mut last = (Value::Nil, None);
    let count = forms.len();
    let has_aliases = memchr::memmem::find(request.program.as_bytes(), b"::").is_some();
    for (ordinal, mut form) in forms.into_iter().enumerate() {
        let span = form.span;
        machine.core.form = ordinal as u32;
        let is_last = ordinal + 1 == count;
        let resolved = if has_aliases { machine.resolve_aliases(&mut form) } else { Ok(()) };
        let resolved = resolved.map_err(|failed| Signal::from(failed.0).at(source, failed.1));
        let result = resolved.and_then(|()| machine.evaluate(form, source)).and_then(|value| {
            match machine.settle(&value) {
                // This value is not printed, so the program did not ask for the failing item: ignore the error.
                Err(signal) if is_last || matches!(signal.raised(), Raised::Halt(_)) => return Err(signal),
                _ => {}
            }
            let shown = if is_last { Some(show(machine, &value)?) } else { None };
            machine.core.check_session()?;
            Ok((value, shown))
        });
        match result {
            Ok(result) => {
                for name in machine.core.commit(&result.0) {
                    if !reply.defined.contains(&name) {
                        reply.defined.push(name);
                    }
                }
                last = result;
            }
            Err(signal) => {
                drop(last);
                machine.core.undo();
                return Err(signal.at(source, span));
            }
        }
    }
    let (last, shown) = last;
    let shown = shown.map_or_else(|| show(machine, &last), Ok)?;
    let history = &mut machine.core.globals.history;
    history[2] = std::mem::take(&mut history[1]);
    history[1] = std::mem::take(&mut history[0]);
    history[0] = last;
    Ok(shown)
}

/// Binds a name to the value of JSON text.
fn bind(machine: &mut Machine, name: &str, text: &str) -> Outcome<()> {
    machine.reserve(text.len() as u64)?;
    let value = json::parse(machine, text).map_err(|signal| no_json(name, signal))?;
    let index = machine.core.globals.index(name);
    machine.core.globals.set(index, crate::machine::Global { value: Some(value), ..Default::default() });
    // Commit the binding, but do not report it as a definition of the program.
    machine.core.commit(&Value::Nil);
    Ok(())
}

fn no_json(name: &str, signal: Signal) -> Signal {
    match signal.into_raised() {
        Raised::Error(mut error) => {
            Arc::make_mut(&mut error).message = format!("`{name}` is not JSON: {}", error.message);
            error.into()
        }
        Raised::Fault(fault) => fault.into(),
        Raised::Halt(halt) => halt.into(),
    }
}

fn unreadable(error: reader::ReadError, source: &Arc<Source>) -> Signal {
    let mut made = Error::new(error.code, error.message);
    made.suggestion = match foreign::advice(&source.text) {
        Some(advice) => Some(format!("this looks like another language, and programs here are Clojure: {advice}")),
        None => error.suggestion,
    };
    Fault { related: error.related, ..Fault::new(made, source, error.span) }.into()
}

/// The value of a program, as shown in its reply.
struct Shown {
    printed: Printed,
    json: Option<serde_json::Value>,
}

fn show(machine: &mut Machine, value: &Value) -> Outcome<Shown> {
    let budget = machine.core.meter.limits.output as usize;
    let printed = print_within(value, budget, true, machine)?;
    let json = if printed.truncated.is_none() { json::to_serde(machine, value, budget)? } else { None };
    Ok(Shown { printed, json })
}

/// Converts a signal to the status and failure of a reply.
fn diagnose(signal: &Signal) -> (Status, Failure) {
    match signal.raised() {
        Raised::Fault(fault) => {
            let (line, column) = fault.source.line_column(fault.span.start);
            let failure = Failure {
                line: Some(line),
                column: Some(column),
                trace: fault.trace.iter().map(trace_line).collect(),
                rendered: Diagnosis::of(fault).render(false),
                ..failure_of(&fault.error)
            };
            (Status::Error, failure)
        }
        Raised::Error(error) => {
            let message = foreign_text::message(shown(&error.message));
            let mut rendered = format!("{}: {message}", foreign_text::line(&error.code));
            if let Some(suggestion) = &error.suggestion {
                rendered.push_str(&format!("\n{}", foreign_text::message(suggestion)));
            }
            (Status::Error, Failure { rendered, ..failure_of(error) })
        }
        Raised::Halt(halt) => {
            let message = halt_message(halt);
            let (status, code, limit) = match halt {
                Halt::Limit { name, .. } => (Status::Limit, "LimitExceeded", Some((*name).to_string())),
                Halt::Cancelled => (Status::Cancelled, "Cancelled", None),
            };
            let rendered = format!("{code}: {message}");
            (status, Failure { error: code.to_string(), message, limit, rendered, ..Failure::default() })
        }
    }
}

fn failure_of(error: &Error) -> Failure {
    let data = (!error.data().is_nil()).then(|| {
        let Ok(printed) = print_within(error.data(), 2_000, true, &mut crate::value::walk::Free);
        printed.text
    });
    Failure {
        error: error.code.to_string(),
        message: shown(&error.message).to_string(),
        symbol: error.symbol.clone(),
        suggestion: error.suggestion.clone(),
        data,
        ..Failure::default()
    }
}
