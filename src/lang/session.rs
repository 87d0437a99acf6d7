//! Sessions: environments that persist across programs.

use crate::builtin::discovery;
use crate::builtin::discovery::vocabulary::{self, Word};
use crate::embed::{Report, RestoreError, SessionError};
use crate::engine::Engine;
use crate::error::{Error, Halt, Signal};
use crate::eval::internal_error;
use crate::evaluation::{Bind, Evaluated, Finish, bind_json, diagnose, evaluate, planned, refused};
use crate::failure::Failure;
use crate::form::Form;
use crate::host::{Host, HostAccess, NoHost};
use crate::machine::{Core, Machine};
use crate::meter::{self, Account, Limits, Meter};
use crate::plan::{Input, Plan};
use crate::reply::{Mark, Reply, Status};
use crate::snapshot::EncodeError;
use crate::span::{Source, SourceName};
use crate::value::release;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

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
    /// The place at which a suspended run of the program is resumed.
    pub from: Option<Box<Mark>>,
}

impl Request {
    /// Creates a request with the default limits.
    pub fn new(program: impl Into<String>) -> Request {
        Request { program: program.into(), data: None, limits: Limits::default(), name: None, from: None }
    }
}

/// An environment that persists across programs.
///
/// ```
/// # #[global_allocator]
/// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
/// use lispbox::lang::{Engine, World};
///
/// let engine = Engine::builder().build().unwrap();
/// let mut session = engine.session();
/// session.run("(def tax 19)").eval::<()>(&World::default()).unwrap();
/// let text = session.encode().unwrap();
/// let mut later = engine.restore(&text).unwrap();
/// assert_eq!(later.names(), ["tax"]);
/// assert_eq!(later.run("(* 2 tax)").eval::<i64>(&World::default()).unwrap().done(), Some(38));
/// ```
pub struct Session {
    engine: Arc<Engine>,
    /// The state kept between evaluations.
    kept: Option<Box<Core>>,
    pub(crate) report: Report,
}

/// A program that is about to be evaluated, with its limits, its name, and the place at which it is resumed.
pub(crate) struct Planned<'p> {
    pub(crate) text: &'p str,
    /// The forms of the text, if it has been read.
    pub(crate) forms: Option<&'p [Form]>,
    pub(crate) limits: &'p Limits,
    pub(crate) name: Option<&'p str>,
    pub(crate) from: Option<&'p Mark>,
    /// The names of its data and parameters, whose values the session keeps for it if it is suspended.
    pub(crate) inputs: &'p [String],
    /// True if the session keeps count of its suspended runs, so that each is resumed once.
    pub(crate) is_counted: bool,
    /// Says of a resumed run that has failed in the form of its mark whether it waits again as before.
    pub(crate) waits_again: &'p dyn Fn(&Reply) -> bool,
}

impl Session {
    pub(crate) fn new(engine: Arc<Engine>) -> Session {
        Session { engine, kept: None, report: Report::default() }
    }

    /// Evaluates a program on the calling thread, which it blocks: an asynchronous caller uses a thread that may block.
    /// The definitions of each form are kept, up to the first form that fails.
    #[doc(hidden)]
    pub fn eval(&mut self, request: Request, host: Arc<dyn Host>) -> Reply {
        let Request { program, data, limits, name, from } = request;
        let inputs = if data.is_some() { vec!["data".to_owned()] } else { Vec::new() };
        let mut bind = |machine: &mut Machine| match &data {
            // A resumed run has its data; a later program may have bound other data.
            Some(data) if from.is_none() => bind_json(machine, "data", data),
            _ => Ok(()),
        };
        let (name, from) = (name.as_deref(), from.as_deref());
        let planned = Planned {
            text: &program,
            forms: None,
            limits: &limits,
            name,
            from,
            inputs: &inputs,
            is_counted: false,
            waits_again: &|_| false,
        };
        self.evaluate_with(&planned, &*host, &mut bind, None)
    }

    /// Copies the session: the definitions of both are the same, and later changes of one do not affect the other. The
    /// values are shared, so the time is proportional to the number of definitions and of atoms, delays and lazy
    /// sequences, not to the size of the data. Each session is charged for the values that they share, and is credited
    /// for those that it is the last to drop.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Engine, World};
    ///
    /// let mut session = Engine::builder().build().unwrap().session();
    /// let _ = session.run("(def counter (atom 1))").eval::<()>(&World::default());
    /// let mut fork = session.fork();
    /// let _ = fork.run("(swap! counter inc)").eval::<()>(&World::default());
    /// assert_eq!(fork.run("@counter").eval::<i64>(&World::default()).unwrap().done(), Some(2));
    /// assert_eq!(session.run("@counter").eval::<i64>(&World::default()).unwrap().done(), Some(1));
    /// ```
    pub fn fork(&mut self) -> Session {
        let kept = self.kept.as_mut().map(|core| {
            core.account.settle();
            Box::new(core.fork())
        });
        Session { engine: self.engine.clone(), kept, report: Report::default() }
    }

    /// Evaluates a program, and passes its value to `finish` or else prints it.
    pub(crate) fn evaluate_with(
        &mut self,
        planned: &Planned<'_>,
        host: &dyn Host,
        bind: &mut Bind<'_>,
        finish: Option<&mut Finish<'_>>,
    ) -> Reply {
        let Planned { text, forms, limits, name, from, inputs, is_counted, waits_again } = *planned;
        let mut replied = Reply::default();
        let evaluated = |machine: &mut Machine| {
            let number = match from {
                Some(mark) => {
                    machine.core.programs = machine.core.programs.max(mark.program);
                    mark.program
                }
                None => {
                    machine.core.programs = machine.core.programs.saturating_add(1);
                    machine.core.programs
                }
            };
            let given = name.map(|name| SourceName::Given(name.into()));
            let name = given.unwrap_or(SourceName::Program(number));
            // The functions that the program defines keep its text, so the session pays for a copy of its own.
            let source = Arc::new(Source { name, text: text.into(), is_hidden: false });
            let evaluated = Evaluated { forms, source, from };
            let bind: &mut Bind<'_> = &mut |machine| {
                if let Some(mark) = from {
                    machine.core.lend_inputs(mark.program, &mark.inputs).map_err(|name| {
                        let how = format!("the session does not hold the value of `{name}` that the run was given");
                        Signal::from(Halt::Diverged(how))
                    })?;
                    machine.core.stop_waiting(mark.program);
                }
                bind(machine)
            };
            let leaving = Leaving(&mut replied);
            let reply = &mut *leaving.0;
            evaluate(machine, &evaluated, bind, finish, reply);
            // A form that has failed is undone, and the one of the mark is the first of those that are evaluated.
            let is_undone = from.is_some_and(|mark| machine.core.form <= mark.form) && reply.status != Status::Ok;
            let again = from.filter(|_| is_undone && reply.mark.is_none() && waits_again(reply));
            match &mut reply.mark {
                _ if let Some(mark) = again => machine.core.wait_for(number, mark.turn),
                Some(mark) => {
                    mark.program = number;
                    mark.inputs = from.map_or_else(Vec::new, |mark| mark.inputs.clone());
                    mark.inputs.extend(inputs.iter().cloned());
                    machine.core.keep_inputs(number, &mark.inputs);
                    if is_counted {
                        mark.turn = from.map_or(0, |mark| mark.turn).saturating_add(1);
                        machine.core.wait_for(number, mark.turn);
                    }
                }
                None if from.is_some() => machine.core.drop_inputs(number),
                None => {}
            }
        };
        match self.with_moved(limits, host, evaluated) {
            Ok(()) => replied,
            Err(error) => refused(error),
        }
    }

    /// Computes the plan of a program that the session could run next. The session is unchanged.
    ///
    /// # Errors
    /// Returns the failure of a run of the program, if it cannot be read or resolved.
    pub(crate) fn plan_with(
        &mut self,
        run: &Planned<'_>,
        inputs: impl FnOnce(&mut Machine) -> Vec<Input>,
        host: &dyn Host,
    ) -> Result<Plan, Box<Failure>> {
        let number = self.start().program;
        let name = run.name.map_or(SourceName::Program(number), |name| SourceName::Given(name.into()));
        let mut copy = self.fork();
        let plan = |machine: &mut Machine| {
            let source = Arc::new(Source { name, text: run.text.into(), is_hidden: false });
            let inputs = inputs(machine);
            planned(machine, &Evaluated { forms: run.forms, source, from: None }, &inputs)
        };
        copy.with_machine(run.limits, host, plan, |error| Err(Box::new(diagnose(&error.into()).1)))
    }

    /// Computes the plan of a program to which `inputs` are bound by name, to any JSON; see [`Run::plan`](crate::Run::plan).
    ///
    /// # Errors
    /// Returns the failure of a run of the program, if it cannot be read or resolved.
    #[doc(hidden)]
    pub fn plan(&mut self, request: &Request, inputs: &[String], host: Arc<dyn Host>) -> Result<Plan, Box<Failure>> {
        let Request { program, limits, name, .. } = request;
        let run = Planned {
            text: program,
            forms: None,
            limits,
            name: name.as_deref(),
            from: None,
            inputs,
            is_counted: false,
            waits_again: &|_| false,
        };
        let any = |name: &String| Input { name: name.clone(), value: None };
        self.plan_with(&run, |_| inputs.iter().map(any).collect(), &*host)
    }

    /// Works on the session's values for the embedder.
    ///
    /// # Errors
    /// Returns an error of the conversion, or the failure that ended the work.
    pub(crate) fn on_machine<R>(
        &mut self,
        work: impl FnOnce(&mut Machine) -> Result<R, crate::convert::ConvertError>,
    ) -> Result<R, SessionError> {
        let worked = self.with_moved(&Limits::default(), &NoHost, |machine| {
            work(machine).map_err(|error| match error.into_signal() {
                Ok(signal) => meter::outside(|| SessionError::Failed(Box::new(diagnose(&signal).1))),
                Err(error) => SessionError::Convert(error),
            })
        });
        worked.unwrap_or_else(|error| Err(SessionError::Failed(Box::new(diagnose(&error.into()).1))))
    }

    /// Binds a name to the value of JSON text for later programs, as [`Request::data`] does for `data`.
    ///
    /// # Errors
    /// Returns a sentence that describes the error in the text, or reports that the value takes too much memory.
    /// Nothing is bound then.
    #[doc(hidden)]
    pub fn bind(&mut self, name: &str, text: &str, host: Arc<dyn Host>) -> Result<(), String> {
        let bind = |machine: &mut Machine| bind_json(machine, name, text).map_err(|signal| diagnose(&signal).1.message);
        self.with_machine(&Limits::default(), &*host, bind, |error| Err(error.message))
    }

    /// Returns the answer of `lisp_env`: the bindings, the servers, or the results of a query.
    #[doc(hidden)]
    pub fn describe(&mut self, query: Option<&str>, host: Arc<dyn Host>) -> String {
        self.describe_for(query, &*host)
    }

    pub(crate) fn describe_for(&mut self, query: Option<&str>, host: &dyn Host) -> String {
        let limits = Limits::default();
        let budget = limits.output as usize;
        let describe = |machine: &mut Machine| match discovery::describe_environment(machine, query) {
            Ok(text) => text,
            Err(signal) => diagnose(&signal).1.rendered,
        };
        let mut text = self.with_machine(&limits, host, describe, |error| refused(error).text(u64::MAX));
        text.truncate(text.floor_char_boundary(budget));
        text
    }

    /// Returns the definitions of the session: names, signatures, and the values in one line each.
    #[doc(hidden)]
    pub fn definitions(&mut self, host: Arc<dyn Host>) -> Vec<Word> {
        let collect = |machine: &mut Machine| vocabulary::definitions(machine).unwrap_or_default();
        self.with_machine(&Limits::default(), &*host, collect, |_| Vec::new())
    }

    /// Returns the output of `(doc name)` or `(doc name :schema)`. This does not count as a program of the session:
    /// `*1` is unchanged.
    ///
    /// # Errors
    /// Returns a failure with a suggestion if nothing has that name.
    #[doc(hidden)]
    pub fn explain(&mut self, name: &str, host: Arc<dyn Host>) -> Result<String, Box<Failure>> {
        let failure = |signal: &Signal| Box::new(diagnose(signal).1);
        let explain = |machine: &mut Machine| discovery::explain(machine, name).map_err(|signal| failure(&signal));
        self.with_machine(&Limits::default(), &*host, explain, |error| Err(failure(&error.into())))
    }

    /// Returns whether the session defines that name.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::Engine;
    ///
    /// let mut session = Engine::builder().build().unwrap().session();
    /// session.set("a", &1).unwrap();
    /// assert!(session.defines("a") && !session.defines("b"));
    /// ```
    pub fn defines(&self, name: &str) -> bool {
        self.kept.as_ref().is_some_and(|core| core.globals.find(name).is_some())
    }

    /// Returns the number of names that the session defines.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::Engine;
    ///
    /// let mut session = Engine::builder().build().unwrap().session();
    /// session.set("a", &1).unwrap();
    /// assert_eq!(session.bindings(), 1);
    /// ```
    pub fn bindings(&self) -> usize {
        self.kept.as_ref().map_or(0, |core| core.globals.iter().count())
    }

    /// A change counter: it differs whenever a definition of the session, or a cell that a definition holds, has
    /// changed, so that the result of [`Session::encode`] may differ. A change visible only through `*1` and its kin
    /// does not count.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::Engine;
    ///
    /// let mut session = Engine::builder().build().unwrap().session();
    /// let before = session.changes();
    /// session.set("a", &1).unwrap();
    /// assert_ne!(session.changes(), before);
    /// ```
    pub fn changes(&self) -> u64 {
        self.kept.as_ref().map_or(0, |core| core.globals.changes() + core.heap.changes())
    }

    /// Returns whether the engine has a function of that name, in canonical spelling.
    pub(crate) fn has_function(&self, canonical: &str) -> bool {
        self.engine.functions().contains(canonical)
    }

    /// Returns whether a run may be resumed here: it waits in this session since it was suspended last, or the session
    /// has not begun it, because it was stored before the run.
    pub(crate) fn may_resume(&self, mark: &Mark) -> bool {
        let Some(core) = &self.kept else { return true };
        // Versions of lispbox that did not count wrote 0.
        mark.turn == 0 || mark.program > core.programs || core.globals.turn(mark.program) == Some(mark.turn)
    }

    /// Returns the place at which the next program begins.
    pub(crate) fn start(&self) -> Mark {
        let programs = self.kept.as_ref().map_or(0, |core| core.programs);
        Mark { program: programs.saturating_add(1), turn: 1, ..Mark::default() }
    }

    /// Returns the number of live bytes that the session holds. Values released by the last program may still be in the
    /// process of being dropped: they count until they are freed, which the next evaluation waits for.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::Engine;
    ///
    /// let mut session = Engine::builder().build().unwrap().session();
    /// let before = session.live_bytes();
    /// session.set("a", &vec![0; 1_000]).unwrap();
    /// assert!(session.live_bytes() > before + 1_000);
    /// ```
    pub fn live_bytes(&self) -> u64 {
        self.kept.as_ref().map_or(0, |core| u64::try_from(core.account.live()).unwrap_or(0))
    }

    /// Returns the names that the session defines, in the order of their first appearance.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::Engine;
    ///
    /// let mut session = Engine::builder().build().unwrap().session();
    /// session.set("b", &1).unwrap();
    /// session.set("a", &2).unwrap();
    /// assert_eq!(session.names(), ["b", "a"]);
    /// ```
    pub fn names(&self) -> Vec<String> {
        self.kept
            .iter()
            .flat_map(|core| core.globals.iter().map(|global| global.name.to_string()).collect::<Vec<_>>())
            .collect()
    }

    /// Serializes the environment as text that [`Engine::restore`] reads. It makes no calls, and works after an
    /// evaluation that was cancelled.
    ///
    /// # Errors
    /// Returns an error that names the value that cannot be serialized and the definition that holds it. The session is
    /// unchanged then.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::Engine;
    ///
    /// let mut session = Engine::builder().build().unwrap().session();
    /// session.set("a", &1).unwrap();
    /// assert!(session.encode().unwrap().contains("(define a 1)"));
    /// ```
    pub fn encode(&mut self) -> Result<String, EncodeError> {
        let failed = |error| Err(EncodeError::outside(error));
        self.with_machine(&snapshot_limits(), &NoHost, crate::snapshot::encode, failed)
    }

    /// Replaces the environment by the one that the text describes.
    ///
    /// # Errors
    /// Returns the reason why the text is not one of a session for this engine. The session is unchanged then.
    #[doc(hidden)]
    pub fn decode(&mut self, text: &str) -> Result<(), RestoreError> {
        let mut fresh = self.engine.session();
        let decode = |machine: &mut Machine| {
            let source = Arc::new(Source::new("snapshot", text));
            crate::snapshot::decode(machine, &source).map_err(|signal| RestoreError::of(machine, &signal, text))
        };
        let failed = |error: Error| Err(RestoreError::Limit(error.message));
        fresh.with_machine(&snapshot_limits(), &NoHost, decode, failed)?;
        *self = fresh;
        Ok(())
    }

    /// Runs `work` on an evaluation stack, with the session's account open. Returns what `failed` makes of the error
    /// `Busy` if the system cannot allocate a stack.
    fn with_machine<R: Clone>(
        &mut self,
        limits: &Limits,
        host: &dyn Host,
        work: impl FnOnce(&mut Machine) -> R,
        failed: impl FnOnce(Error) -> R,
    ) -> R {
        let mut result = None;
        let worked = self.with_moved(limits, host, |machine| {
            let charged = work(machine);
            // The result leaves the evaluation: return a copy that is not charged to its account.
            meter::outside(|| result = Some(charged.clone()));
        });
        match worked {
            Ok(()) => result.unwrap_or_else(|| failed(internal_error())),
            Err(error) => failed(error),
        }
    }

    /// Like `with_machine`, for a result that is not charged to the account.
    ///
    /// # Errors
    /// Returns `Busy` if the system cannot allocate a stack.
    fn with_moved<R>(
        &mut self,
        limits: &Limits,
        host: &dyn Host,
        work: impl FnOnce(&mut Machine) -> R,
    ) -> Result<R, Error> {
        // The caller may itself have an open account, as a tool that evaluates programs does.
        meter::outside(|| {
            let begun = host.monotonic();
            HostAccess::lend(host, |host| self.with_host(limits, host, begun, work))
        })
    }

    fn with_host<R>(
        &mut self,
        limits: &Limits,
        host: HostAccess,
        begun: Duration,
        work: impl FnOnce(&mut Machine) -> R,
    ) -> Result<R, Error> {
        let stacks = &self.engine.stacks;
        let settled = self.kept.as_mut().is_some_and(|core| core.account.settle());
        let mut meter = Meter::new(limits.clone(), self.engine.memory_counted, begun);
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
        let switched = stacks.switch(|| {
            let Some(mut core) = kept.take() else { return ((), true) };
            core.account.open();
            if settled {
                // Reclaims cells that were kept alive only by the values dropped since.
                core.heap.reclaim();
            }
            let mut machine = Machine::new(core, stacks.size());
            let worked = std::panic::catch_unwind(AssertUnwindSafe(|| {
                result = Some(work(&mut machine));
            }));
            if worked.is_err() {
                // A panic is an internal defect: it loses the running form, not the session.
                result = None;
                machine.core.undo();
            }
            let (core, is_shallow) = end(machine);
            *kept = Some(core);
            ((), is_shallow)
        });
        if let Some(core) = kept {
            core.host = HostAccess::none();
        }
        switched.ok_or_else(|| Error::new("Busy", "the system cannot allocate a stack; try again"))?;
        result.ok_or_else(internal_error)
    }
}

/// A reply that is filled in place, because it is large. However its evaluation ends, nothing in it stays charged to it.
struct Leaving<'r>(&'r mut Reply);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.leave();
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
        core.stacks.run(move || {
            drop(leaving);
            || ()
        });
    }
    (core, is_shallow)
}

/// Returns the limits for encoding and decoding snapshots, which is work of the host and not of a program.
fn snapshot_limits() -> Limits {
    let time = Duration::from_secs(60);
    Limits { fuel: 10_000_000_000, memory: 2 << 30, compute: time, total: time, ..Limits::default() }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("names", &self.names()).finish_non_exhaustive()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The values are dropped on an arbitrary thread, outside of any account; the thread's balance is not read.
        drop(self.kept.take());
    }
}
