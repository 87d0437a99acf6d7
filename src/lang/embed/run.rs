//! Runs: a program with its data, parameters and limits.

use super::attempts::FailedRun;
use super::eval_error::EvalError;
use super::names::check_name;
use super::program::Program;
use super::spans::RunSpan;
use super::suspended::Suspended;
use super::world::{CallReport, Checkpoint, Checkpoints, Visit, World};
use crate::convert::{self, ConvertError};
use crate::effects::Attempt;
use crate::error::{ErrorCode, Halt, Signal};
use crate::evaluation::Finish;
use crate::failure::Failure;
use crate::host::Host;
use crate::machine::Machine;
use crate::meter::{self, Limits};
use crate::plan::{self as planned, Plan};
use crate::reply::{Reply, Spent, Status};
use crate::runs::{Keep, Logged, PlanBounds, Recorder, RunLog};
use crate::session::{Planned, Session};
use crate::value::Value;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};

/// Most bytes of arguments and replies that a run holds, so that it can be suspended.
const MOST_LOGGED: u64 = 64 << 20;

/// A part of the input of a run, converted once the evaluation can pay for it.
type Input<'d> = Box<dyn Fn(&mut Machine) -> Result<Value, ConvertError> + 'd>;

/// A program that is about to run in a session; see [`Session::run`](crate::Session::run).
///
/// ```
/// # #[global_allocator]
/// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
/// use lispbox::lang::{Engine, Limits, World};
///
/// let mut session = Engine::builder().build().unwrap().session();
/// let run = session.run("(str data who)").data("hello ").set("who", "ann").limits(Limits::default()).name("greeting");
/// assert_eq!(run.eval::<String>(&World::default()).unwrap().done().unwrap(), "hello ann");
/// ```
#[must_use = "a run does nothing until it is evaluated"]
pub struct Run<'s, 'd> {
    session: &'s mut Session,
    program: Program,
    inputs: Vec<(String, Input<'d>)>,
    limits: Limits,
    name: Option<String>,
    /// The run that is resumed.
    resumed: Option<Suspended>,
    /// The log of earlier attempts; empty if there were none.
    earlier: Logged,
    /// True if the changes are kept for a further attempt.
    is_retryable: bool,
    checkpoint: Option<Box<Checkpoint<'d>>>,
    /// The plan to which the run is held.
    plan: Option<Plan>,
}

/// The result of a run.
#[derive(Debug)]
#[non_exhaustive]
#[must_use]
pub enum Outcome<T> {
    /// The value of the last form.
    Done(T),
    /// The run waits for a decision of a person; see [`Session::resume`](crate::Session::resume). The forms before the
    /// one that waits are committed, and that form is undone until the run is resumed.
    Suspended(Box<Suspended>),
    /// The program raised an error, or a tool failed, and nothing caught it.
    Failed(Box<Failure>),
    /// A limit was exceeded; [`Failure::limit`] names it.
    Limited(Box<Failure>),
    /// The run was cancelled.
    Cancelled,
}

impl<T> Outcome<T> {
    /// Returns the value of a run that is done.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Engine, World};
    ///
    /// let mut session = Engine::builder().build().unwrap().session();
    /// assert_eq!(session.run("(/ 1 0)").eval::<i64>(&World::default()).unwrap().done(), None);
    /// ```
    pub fn done(self) -> Option<T> {
        match self {
            Outcome::Done(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the value, or the failure, so that `?` passes it on.
    ///
    /// # Errors
    /// Returns the failure of a run that is not done; that of a cancelled one has the code `Cancelled`.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Engine, World};
    ///
    /// let mut session = Engine::builder().build().unwrap().session();
    /// let failed = session.run("(/ 1 0)").eval::<i64>(&World::default()).unwrap().into_result();
    /// assert_eq!(failed.unwrap_err().to_string(), "ArithmeticError: divide by zero");
    /// ```
    pub fn into_result(self) -> Result<T, Box<Failure>> {
        match self {
            Outcome::Done(value) => Ok(value),
            Outcome::Failed(failure) | Outcome::Limited(failure) => Err(failure),
            Outcome::Cancelled => Err(Box::new(Failure::of("Cancelled", "the evaluation was cancelled"))),
            Outcome::Suspended(_) => {
                Err(Box::new(Failure::of("Suspended", "the run waits for a decision of a person")))
            }
        }
    }
}

/// The record of the last run of a session.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// The text that the program printed, within the output limit.
    pub prints: String,
    /// Names that the run defined and kept, in order.
    pub defined: Vec<String>,
    /// The tool calls, in the order in which they ended.
    pub calls: Vec<CallReport>,
    /// The resources spent.
    pub spent: Spent,
    /// The run that waits for a person, if [`Run::reply`] was suspended; also a run that waits as before, because its
    /// [resumption](crate::Session::resume) has failed before it called anything.
    pub suspended: Option<Box<Suspended>>,
    /// The run, if it is [retryable](Run::retryable) and did not end well after it has made changes. A result that does not
    /// fit its type ([`EvalError::Result`]) is no good end either.
    pub failed: Option<Box<FailedRun>>,
    /// Why the last [checkpoint](Run::checkpoint) after a change was not stored, if it was not: the stored run has that call
    /// as one of unknown outcome.
    pub unstored: Option<String>,
}

impl<'s, 'd> Run<'s, 'd> {
    pub(super) fn new(session: &'s mut Session, program: Program) -> Run<'s, 'd> {
        Run {
            session,
            program,
            inputs: Vec::new(),
            limits: Limits::default(),
            name: None,
            resumed: None,
            earlier: Logged::default(),
            is_retryable: false,
            checkpoint: None,
            plan: None,
        }
    }

    pub(super) fn further(session: &'s mut Session, program: Program, limits: Limits, earlier: Logged) -> Run<'s, 'd> {
        Run { limits, earlier, is_retryable: true, ..Run::new(session, program) }
    }

    pub(super) fn resumed(session: &'s mut Session, mut run: Suspended) -> Run<'s, 'd> {
        let (program, limits, name) = (Program::from(&run.program), run.limits.clone(), run.name.take());
        Run { limits, name, resumed: Some(run), ..Run::new(session, program) }
    }

    /// Binds `data` for this run, by serde. It is not kept in the session.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Engine, World};
    /// use serde::Serialize;
    ///
    /// #[derive(Serialize)]
    /// struct Mail {
    ///     size: u64,
    /// }
    ///
    /// let mut session = Engine::builder().build().unwrap().session();
    /// let mails = [Mail { size: 1 }, Mail { size: 2 }];
    /// let largest = session.run("(apply max (map :size data))").data(&mails).eval::<u64>(&World::default());
    /// assert_eq!(largest.unwrap().done(), Some(2));
    /// ```
    pub fn data<D: Serialize + ?Sized>(self, data: &'d D) -> Run<'s, 'd> {
        self.set("data", data)
    }

    /// Binds a name for this run: a parameter of the program. It is not kept in the session, unless the program defines
    /// the name itself.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Engine, World};
    ///
    /// let engine = Engine::builder().build().unwrap();
    /// let program = engine.compile("(filterv #(< least %) data)").unwrap();
    /// let mut session = engine.session();
    /// for (least, expected) in [(1, vec![2, 3]), (2, vec![3])] {
    ///     let run = session.run(&program).data(&[1, 2, 3]).set("least", &least);
    ///     assert_eq!(run.eval::<Vec<i64>>(&World::default()).unwrap().done(), Some(expected));
    /// }
    /// ```
    pub fn set<D: Serialize + ?Sized>(mut self, name: &str, value: &'d D) -> Run<'s, 'd> {
        self.inputs.push((name.to_owned(), Box::new(move |machine| convert::take_in(machine, value))));
        self
    }

    /// Sets the limits; the defaults otherwise.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Engine, ErrorCode, Limits, World};
    ///
    /// let mut session = Engine::builder().build().unwrap().session();
    /// let limits = Limits { fuel: 10_000, ..Limits::default() };
    /// let outcome = session.run("(loop [] (recur))").limits(limits).eval::<i64>(&World::default()).unwrap();
    /// let failure = outcome.into_result().unwrap_err();
    /// assert_eq!((failure.code(), failure.limit.as_deref()), (ErrorCode::LimitExceeded, Some("fuel")));
    /// ```
    pub fn limits(self, limits: Limits) -> Run<'s, 'd> {
        Run { limits, ..self }
    }

    /// Sets the name of the program in error messages; `program 1` and so on otherwise.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Engine, World};
    ///
    /// let mut session = Engine::builder().build().unwrap().session();
    /// let outcome = session.run("(/ 1 0)").name("nightly").eval::<i64>(&World::default()).unwrap();
    /// assert!(outcome.into_result().unwrap_err().rendered.contains("nightly:1:1"));
    /// ```
    pub fn name(self, name: &str) -> Run<'s, 'd> {
        Run { name: Some(name.to_owned()), ..self }
    }

    /// Keeps the changes that the run makes, so that a [further attempt](crate::Session::retry) makes none of them again if
    /// it does not end well: [`Report::failed`] has the run then. This costs a copy of the arguments and the reply of each
    /// call.
    pub fn retryable(self) -> Run<'s, 'd> {
        Run { is_retryable: true, ..self }
    }

    /// Stores the run before each call of a tool that is neither read-only nor idempotent, and after it. If this process
    /// dies, the last stored run continues in a session as it was before the run, without making a call twice: see
    /// [`Suspended::unknown`]. A call is not made if storing the run fails; the program receives the error.
    ///
    /// Calls whose replies were not stored, because they change nothing, are made again. If the program takes another
    /// course after them, the run fails with the code `ReplayDiverged`. The data and parameters of the run have to be set
    /// again.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Call, Engine, NoArguments, Suspended, Tools, World};
    /// use std::sync::Mutex;
    ///
    /// let mut tools = Tools::new();
    /// tools.tool("mail/send", |_: NoArguments, _: &Call| Ok("sent"));
    /// let world = World::new(tools);
    /// let mut session = Engine::builder().build().unwrap().session();
    /// let before = session.encode().unwrap();
    ///
    /// let database = Mutex::new(Vec::new());
    /// let store = |run: &Suspended| Ok(database.lock().unwrap().push(run.encode()));
    /// session.run("(mail/send)").checkpoint(store).eval::<String>(&world).unwrap().done().unwrap();
    ///
    /// // The process died after the first checkpoint: the mail may have been sent, or not.
    /// let mut run = Suspended::decode(&database.lock().unwrap()[0]).unwrap();
    /// let call = run.unknown().next().unwrap().clone();
    /// run.happened(&call, &"sent").unwrap(); // or run.did_not_happen(&call)
    /// let mut session = Engine::builder().build().unwrap().restore(&before).unwrap();
    /// assert_eq!(session.resume(run).eval::<String>(&world).unwrap().done().as_deref(), Some("sent"));
    /// ```
    pub fn checkpoint(self, store: impl Fn(&Suspended) -> Result<(), String> + Send + Sync + 'd) -> Run<'s, 'd> {
        Run { checkpoint: Some(Box::new(store)), ..self }
    }

    /// Computes the tools that the program can call, with bounds on the numbers of calls, without running it. The data
    /// and parameters of the run may have any value in the plan; what the session defines is taken as it is now.
    /// Functions of the [engine](crate::EngineBuilder::function) are assumed to call only functions that the running
    /// program gives them.
    ///
    /// # Errors
    /// Returns the failure of the run, if the program cannot be read or a name in it has no meaning.
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
    /// let program = "(when urgent (dotimes [_ 3] (mail/send)))";
    /// let plan = session.run(program).set("urgent", &true).plan(&world).unwrap();
    /// assert_eq!(plan.calls[0].most, Some(3));
    /// ```
    pub fn plan(self, world: &World<'_>) -> Result<Plan, Box<Failure>> {
        let Run { session, program: Program { text, forms }, inputs, limits, name, .. } = self;
        let (forms, name) = (forms.as_deref(), name.as_deref());
        let run = Planned {
            text: &text,
            forms,
            limits: &limits,
            name,
            from: None,
            inputs: &[],
            is_counted: true,
            waits_again: &|_| false,
        };
        // Data may have any value. A value of the language may hold functions, and the plan follows those.
        let inputs = |machine: &mut Machine| {
            let input = |(name, convert): (String, Input<'_>)| planned::Input { name, value: convert(machine).ok() };
            inputs.into_iter().map(input).collect()
        };
        session.plan_with(&run, inputs, &Visit::new(world, RunSpan::none()))
    }

    /// Holds the run to a plan: a call of a tool that the plan does not list, or beyond its bound, stops the run before it
    /// is made, with the code `PlanExceeded`, which the program cannot catch. Calls that the plan lists as
    /// [unknown](Plan::unknown) are not part of it. A run that is [resumed](crate::Session::resume) has the calls left that
    /// it has not made, if it is held to the plan again.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Call, Engine, NoArguments, Outcome, Tools, World};
    ///
    /// let mut tools = Tools::new();
    /// tools.tool("mail/send", |_: NoArguments, _: &Call| Ok(1));
    /// let world = World::new(tools);
    /// let mut session = Engine::builder().build().unwrap().session();
    /// let plan = session.run("(mail/send)").plan(&world).unwrap();
    /// let Outcome::Failed(failure) =
    ///     session.run("[(mail/send) (mail/send)]").within(&plan).eval::<Vec<i64>>(&world).unwrap()
    /// else {
    ///     panic!("it leaves its plan")
    /// };
    /// assert_eq!(failure.error, "PlanExceeded");
    /// ```
    pub fn within(self, plan: &Plan) -> Run<'s, 'd> {
        Run { plan: Some(plan.clone()), ..self }
    }

    /// Runs the program on this thread, which it blocks, and converts the value of its last form. The definitions of
    /// each form are kept, up to the first form that fails. The session's [`report`](Session::report) has the rest.
    ///
    /// # Errors
    /// Returns an error if the input or the result cannot be converted.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Engine, Outcome, World};
    ///
    /// let mut session = Engine::builder().build().unwrap().session();
    /// match session.run("(+ 1 2)").eval::<i64>(&World::default()).unwrap() {
    ///     Outcome::Done(sum) => assert_eq!(sum, 3),
    ///     Outcome::Failed(failure) | Outcome::Limited(failure) => panic!("{}", failure.rendered),
    ///     other => panic!("{other:?}"),
    /// }
    /// ```
    pub fn eval<T: DeserializeOwned>(self, world: &World<'_>) -> Result<Outcome<T>, EvalError> {
        let (mut result, is_unfit) = (None, Cell::new(false));
        let mut finish = |machine: &mut Machine, value: &Value| {
            match convert::take_out(machine, value) {
                Ok(value) => result = Some(Ok(value)),
                Err(error) => match error.into_signal() {
                    Ok(signal) => return Err(signal),
                    Err(error) => {
                        is_unfit.set(true);
                        result = Some(meter::outside(|| Err(error)));
                    }
                },
            }
            Ok(())
        };
        let (reply, suspended) = self.run(world, Some((&mut finish, &is_unfit)))?;
        let Reply { status, failure, .. } = reply;
        let failure = || Box::new(failure.unwrap_or_default());
        match (status, result) {
            (Status::Ok, Some(result)) => result.map(Outcome::Done).map_err(EvalError::Result),
            (Status::Limit, _) => {
                let mut failure = failure();
                failure.suggest("`Run::limits` allows more".to_owned());
                Ok(Outcome::Limited(failure))
            }
            (Status::Cancelled, _) => Ok(Outcome::Cancelled),
            (Status::Suspended, _) if let Some(suspended) = suspended => Ok(Outcome::Suspended(suspended)),
            (Status::Suspended | Status::Running | Status::Error | Status::Ok, _) => Ok(Outcome::Failed(failure())),
        }
    }

    /// Runs the program, and renders the result for a model; see [`Reply::text`]. The text of a run that waits names its
    /// questions.
    ///
    /// # Errors
    /// Returns an error if the input cannot be converted.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Engine, World};
    ///
    /// let mut session = Engine::builder().build().unwrap().session();
    /// let reply = session.run("(println \"two\") (+ 1 1)").reply(&World::default()).unwrap();
    /// assert_eq!(reply.text(1_000), "2\nprinted:\ntwo");
    /// ```
    pub fn reply(self, world: &World<'_>) -> Result<Reply, EvalError> {
        let Run { session, program, inputs, limits, name, resumed, earlier, is_retryable, checkpoint, plan } = self;
        let session = &mut *session;
        let run = Run {
            session: &mut *session,
            program,
            inputs,
            limits,
            name,
            resumed,
            earlier,
            is_retryable,
            checkpoint,
            plan,
        };
        let (mut reply, suspended) = run.run(world, None)?;
        if let (Some(failure), Some(run)) = (&mut reply.failure, &suspended) {
            failure.rendered = run.explained();
        }
        if suspended.is_some() {
            session.report.suspended = suspended;
        }
        Ok(reply)
    }

    fn run(
        self,
        world: &World<'_>,
        finish: Option<(&mut Finish<'_>, &Cell<bool>)>,
    ) -> Result<(Reply, Option<Box<Suspended>>), EvalError> {
        let Run { session, program, inputs, limits, name, resumed, earlier, is_retryable, checkpoint, plan } = self;
        for (name, _) in &inputs {
            check_name(name).map_err(EvalError::Name)?;
        }
        check(session, world, resumed.as_ref())?;
        if resumed.is_none() {
            world.begins(program.text(), !inputs.is_empty());
        }
        let is_rendered = finish.is_none();
        let (finish, is_unfit) = finish.unzip();
        let unstored = Mutex::new(None);
        let mut unfit = None;
        let mut bind = |machine: &mut Machine| -> Result<(), Signal> {
            // A short program ends before the evaluator looks.
            if world.is_cancelled() {
                return Err(Halt::Cancelled.into());
            }
            let before = meter::live();
            for (name, input) in &inputs {
                match input(machine) {
                    Ok(value) => machine.core.lend(name, value),
                    Err(error) => {
                        let error = match error.into_signal() {
                            Ok(signal) => return Err(signal),
                            Err(error) => error,
                        };
                        unfit = Some(meter::outside(|| EvalError::Input(name.clone(), error)));
                        return Err(crate::error::Error::new("InputError", "the input cannot be converted").into());
                    }
                }
            }
            machine.core.lent_bytes = meter::live().saturating_sub(before);
            Ok(())
        };
        let span = RunSpan::open(name.as_deref());
        let waiting = resumed.clone();
        let (from, logged) = match resumed {
            Some(Suspended { mark, log, .. }) => (Some(mark), log),
            None => (None, earlier),
        };
        let names: Vec<String> = inputs.iter().map(|(name, _)| name.clone()).collect();
        let keep = if checkpoint.is_some() || is_retryable { Keep::Run } else { Keep::Form };
        let log = Arc::new(RunLog::new(logged, keep, MOST_LOGGED).without_insisting());
        let mut visit = Visit::new(world, span.clone()).within(plan.as_ref());
        if checkpoint.is_some() || is_retryable {
            let store = checkpoint.as_deref();
            let start = from.clone().unwrap_or_else(|| session.start());
            let run = Suspended::new(program.text(), name.clone(), limits.clone(), start, Logged::default());
            visit = visit.checkpointed(Checkpoints { log: Arc::clone(&log), run, store, unstored: &unstored });
        }
        let bounds = plan.as_ref().map(Plan::bounds);
        let bounds =
            bounds.map(|bounds: PlanBounds| Arc::new(bounds.after(from.as_ref().map_or(&[], |mark| &mark.calls))));
        let is_bounded = bounds.is_some();
        let recorder = Recorder::new(&visit, Arc::clone(&log)).within(bounds).asking_about_unknown();
        let is_logged = world.can_ask() || from.is_some() || checkpoint.is_some() || is_retryable || is_bounded;
        let host: &dyn Host = if is_logged { &recorder } else { &visit };
        // A run whose call was refused has its answer, and one that can be attempted again goes on that way.
        let is_again = Cell::new(false);
        let waits_again = |reply: &Reply| {
            let is_denied = reply.failure.as_ref().is_some_and(|failure| failure.code() == ErrorCode::ToolDenied);
            let failed = is_retryable.then(|| FailedRun::of(reply.status, program.text(), &limits, &log)).flatten();
            is_again.set(failed.is_none() && !is_denied && !visit.has_calls());
            is_again.get()
        };
        let planned = Planned {
            text: program.text(),
            forms: program.forms.as_deref(),
            limits: &limits,
            name: name.as_deref(),
            from: from.as_ref(),
            inputs: &names,
            is_counted: true,
            waits_again: &waits_again,
        };
        let mut reply = session.evaluate_with(&planned, host, &mut bind, finish);
        let suspended = reply
            .mark
            .take()
            .map(|mark| Box::new(Suspended::new(program.text(), name.clone(), limits.clone(), *mark, log.logged())));
        let Reply { prints, defined, spent, status, .. } = &reply;
        span.ended(*status, spent);
        let end = if is_unfit.is_some_and(Cell::get) { Status::Error } else { *status };
        session.report = Report {
            prints: prints.clone(),
            defined: defined.clone(),
            calls: visit.into_calls(),
            spent: *spent,
            suspended: waiting.filter(|_| is_again.get()).map(Box::new),
            failed: is_retryable.then(|| FailedRun::of(end, program.text(), &limits, &log)).flatten(),
            unstored: unstored.lock().unwrap_or_else(PoisonError::into_inner).take(),
        };
        world.ended(program.text(), is_rendered.then_some(&reply));
        reply.attempt = Attempt::of(&log, reply.status);
        if let Some(failed) = &session.report.failed {
            reply.made = failed.made();
        }
        unfit.map_or(Ok((reply, suspended)), Err)
    }
}

/// Checks that a run may begin.
fn check(session: &Session, world: &World<'_>, resumed: Option<&Suspended>) -> Result<(), EvalError> {
    if let Some(Suspended { mark, .. }) = resumed
        && !session.may_resume(mark)
    {
        return Err(EvalError::AlreadyResumed(mark.program));
    }
    if let Some(name) = world.conflict(|name| session.has_function(name)) {
        return Err(EvalError::Conflict(name));
    }
    #[cfg(feature = "tokio")]
    if world.would_block_runtime() {
        return Err(EvalError::OnRuntime);
    }
    Ok(())
}
