//! Sessions as values of a Rust program: their definitions, their text, and their forks.

use super::names::{NameError, check_name};
use super::program::Program;
use super::run::{Report, Run};
use super::spans::RunSpan;
use super::suspended::Suspended;
use super::world::{Visit, World};
use crate::convert::{self, ConvertError};
use crate::engine::Engine;
use crate::error::render::halt_message;
use crate::error::{Fault, Raised, Signal};
use crate::failure::Failure;
use crate::form::Form;
use crate::machine::Machine;
use crate::meter::Limits;
use crate::runs::Logged;
use crate::session::Session;
use crate::snapshot::{FORMAT_ERROR, MISSING_ERROR, VERSION_ERROR};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::sync::Arc;

/// The reason why a text is not restored to a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RestoreError {
    /// The text is not that of a session.
    NotASession(String),
    /// The text was written by a version of lispbox that this one does not read.
    Version(String),
    /// The text is damaged or cut off; the message says where.
    Damaged(String),
    /// The session uses functions that this engine lacks: their names.
    Missing(Vec<String>),
    /// Reading the text exceeded a limit.
    Limit(String),
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RestoreError::NotASession(message)
            | RestoreError::Version(message)
            | RestoreError::Damaged(message)
            | RestoreError::Limit(message) => f.write_str(message),
            RestoreError::Missing(names) => {
                write!(f, "the snapshot uses functions that this engine does not have: {}", names.join(", "))
            }
        }
    }
}

impl std::error::Error for RestoreError {}

impl RestoreError {
    /// Converts the signal that ended the reading of a text.
    pub(crate) fn of(machine: &Machine, signal: &Signal, text: &str) -> RestoreError {
        match signal.raised() {
            Raised::Halt(halt) => RestoreError::Limit(halt_message(halt)),
            Raised::Error(error) | Raised::Fault(Fault { error, .. }) => {
                let message = error.message.clone();
                match &*error.code {
                    FORMAT_ERROR => RestoreError::NotASession(message),
                    VERSION_ERROR => RestoreError::Version(message),
                    MISSING_ERROR => RestoreError::Missing(missing(machine, text)),
                    _ => RestoreError::Damaged(message),
                }
            }
        }
    }
}

/// Returns the functions that a snapshot uses and the engine lacks.
fn missing(machine: &Machine, text: &str) -> Vec<String> {
    let registry = &machine.core.registry;
    let forms = crate::snapshot::forms(text).unwrap_or_default();
    let mut open: Vec<&Form> = forms.iter().collect();
    let mut names = Vec::new();
    while let Some(form) = open.pop() {
        open.extend(form.children());
        let Some([head, name, ..]) = form.as_list() else { continue };
        let is_function = head.is_symbol("builtin") || head.is_symbol("bound");
        if let Some(name) = name.as_symbol().filter(|_| is_function)
            && registry.find_any(name).is_none()
            && registry.find_any_prelude(name).is_none()
            && !names.iter().any(|known| known == name)
        {
            names.push(name.to_owned());
        }
    }
    names.sort();
    names
}

/// The reason why a definition cannot be set or returned.
#[derive(Debug)]
#[non_exhaustive]
pub enum SessionError {
    /// The name cannot be defined.
    Name(NameError),
    /// The value cannot be converted.
    Convert(ConvertError),
    /// A limit was exceeded, or a lazy part of the value raised an error.
    Failed(Box<Failure>),
}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SessionError::Name(error) => error.fmt(f),
            SessionError::Convert(error) => error.fmt(f),
            SessionError::Failed(failure) => failure.fmt(f),
        }
    }
}

impl std::error::Error for SessionError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SessionError::Name(error) => Some(error),
            SessionError::Convert(error) => Some(error),
            SessionError::Failed(failure) => Some(failure),
        }
    }
}

impl Engine {
    /// Restores a session from the text of [`Session::encode`].
    ///
    /// # Errors
    /// Returns the reason why the text is not one of a session for this engine.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Engine, RestoreError, World};
    ///
    /// let engine = Engine::builder().build().unwrap();
    /// let mut session = engine.session();
    /// let _ = session.run("(defn twice [x] (* 2 x))").eval::<()>(&World::default());
    /// let text = session.encode().unwrap();
    /// let mut restored = engine.restore(&text).unwrap();
    /// assert_eq!(restored.run("(twice 21)").eval::<i64>(&World::default()).unwrap().done(), Some(42));
    /// assert!(matches!(engine.restore("{}"), Err(RestoreError::NotASession(_))));
    /// ```
    pub fn restore(self: &Arc<Self>, text: &str) -> Result<Session, RestoreError> {
        let mut session = self.session();
        session.decode(text)?;
        Ok(session)
    }
}

impl Session {
    /// Prepares a run of a program in this session.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Engine, World};
    ///
    /// let mut session = Engine::builder().build().unwrap().session();
    /// let run = session.run("(reduce + data)").data(&[1, 2, 3]);
    /// assert_eq!(run.eval::<i64>(&World::default()).unwrap().done(), Some(6));
    /// ```
    pub fn run<'d>(&mut self, program: impl Into<Program>) -> Run<'_, 'd> {
        Run::new(self, program.into())
    }

    /// Works with the session on a thread of the current tokio runtime that may block, so that runs with asynchronous tools
    /// wait there; returns the session with the result. If the future is dropped, as when a client disconnects, the
    /// [handle](World::cancelled_by) of the world is cancelled and the session is lost: it is restored from its text.
    ///
    /// A panic of the closure continues here.
    ///
    /// # Panics
    /// Panics outside of a tokio runtime.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Call, Engine, NoArguments, Session, Tools, World};
    ///
    /// let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build().unwrap();
    /// runtime.block_on(async {
    ///     let mut tools = Tools::new();
    ///     tools.async_tool("mail/unread", async |_: NoArguments, _: &Call| Ok(3));
    ///     let session = Engine::builder().build().unwrap().session();
    ///     let work = |session: &mut Session, world: &World<'_>| session.run("(mail/unread)").eval::<u64>(world);
    ///     let (_session, outcome) = session.run_async(World::new(tools), work).await;
    ///     assert_eq!(outcome.unwrap().done(), Some(3));
    /// });
    /// ```
    #[cfg(feature = "tokio")]
    pub async fn run_async<R: Send + 'static>(
        mut self,
        world: World<'static>,
        work: impl FnOnce(&mut Session, &World<'static>) -> R + Send + 'static,
    ) -> (Session, R) {
        let guard = world.cancel_on_drop();
        let worked = tokio::task::spawn_blocking(move || {
            let result = work(&mut self, &world);
            (self, result)
        });
        match worked.await {
            Ok(done) => {
                guard.disarm();
                done
            }
            Err(error) => match error.try_into_panic() {
                Ok(payload) => std::panic::resume_unwind(payload),
                // The runtime shuts down, and drops this future too.
                Err(_) => std::future::pending().await,
            },
        }
    }

    /// Prepares the continuation of a suspended run: the form that was running is evaluated again from its beginning, its
    /// calls up to now are answered from the record, and it goes on from there. If a question is still open, or the run
    /// asks another one, it is suspended again.
    ///
    /// A run is resumed once: a copy of it, or a resumption in a [fork](Session::fork), gets
    /// [`EvalError::AlreadyResumed`](crate::EvalError::AlreadyResumed). It goes on with the definitions of the session that
    /// it began with, even if other programs have replaced them meanwhile.
    ///
    /// If the program takes another course than before, for instance because an atom has changed, the run fails with the
    /// code `ReplayDiverged` before anything is called.
    ///
    /// A resumption that ends before it has called anything, because it was cancelled, has exceeded a limit or has failed
    /// otherwise than by a refusal, leaves the run waiting: [`Report::suspended`](crate::Report::suspended) has it, and it
    /// may be resumed again.
    pub fn resume<'d>(&mut self, run: impl Into<Suspended>) -> Run<'_, 'd> {
        Run::resumed(self, run.into())
    }

    /// Makes a program wait in this session before it has begun: the decisions on its calls are taken first. `log` has the
    /// questions.
    ///
    /// # Errors
    /// Returns an error if the session cannot hold it.
    #[doc(hidden)]
    pub fn propose(&mut self, program: &str, limits: Limits, log: Logged) -> Result<Suspended, SessionError> {
        let mark = self.start();
        self.on_machine(|machine| {
            machine.core.programs = mark.program;
            machine.core.wait_for(mark.program, mark.turn);
            Ok(())
        })?;
        Ok(Suspended::of(program, limits, mark, log))
    }

    /// Drops what the session keeps for a suspended run, which can then no longer be resumed.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Call, Engine, NoArguments, Outcome, Tools, World};
    ///
    /// let mut tools = Tools::new();
    /// tools.tool("disk/format", |_: NoArguments, _: &Call| Ok(())).needs_approval();
    /// let world = World::new(tools);
    /// let mut session = Engine::builder().build().unwrap().session();
    /// let run = session.run("(disk/format) data").data(&[1, 2]);
    /// let Outcome::Suspended(run) = run.eval::<()>(&world).unwrap() else { panic!() };
    /// session.discard(run);
    /// ```
    pub fn discard(&mut self, run: impl Into<Suspended>) {
        let run = run.into();
        let dropped = self.on_machine(|machine| {
            machine.core.drop_inputs(run.mark.program);
            Ok(())
        });
        // There is no stack for the work: the inputs stay until the session ends.
        let _ = dropped;
    }

    /// Describes the definitions of the session and the tools of a world, or with a query those that match it: text for
    /// the model that writes the programs.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Call, Engine, NoArguments, Tools, World};
    ///
    /// let mut tools = Tools::new();
    /// tools.tool("mail/unread", |_: NoArguments, _: &Call| Ok(3)).doc("Counts the unread mails.");
    /// let mut session = Engine::builder().build().unwrap().session();
    /// let text = session.overview(Some("unread mails"), &World::new(tools));
    /// assert!(text.contains("mail/unread"), "{text}");
    /// ```
    pub fn overview(&mut self, query: Option<&str>, world: &World<'_>) -> String {
        self.describe_for(query, &Visit::new(world, RunSpan::none()))
    }

    /// Returns the record of the last run.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Engine, World};
    ///
    /// let mut session = Engine::builder().build().unwrap().session();
    /// session.run("(def a 1) (println \"done\") a").eval::<i64>(&World::default()).unwrap().done().unwrap();
    /// let report = session.report();
    /// assert_eq!((report.prints.as_str(), &*report.defined), ("done\n", &["a".to_owned()][..]));
    /// assert!(report.spent.fuel > 0);
    /// ```
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Defines a name, by serde.
    ///
    /// # Errors
    /// Returns an error if the name cannot be defined, or the value has no counterpart or is too large.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::Engine;
    ///
    /// let mut session = Engine::builder().build().unwrap().session();
    /// session.set("limit", &10).unwrap();
    /// assert_eq!(session.get::<u32>("limit").unwrap(), Some(10));
    /// assert!(session.remove("limit"));
    /// assert_eq!(session.get::<u32>("limit").unwrap(), None);
    /// assert!(session.set("not a name", &10).is_err());
    /// ```
    pub fn set<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), SessionError> {
        check_name(name).map_err(SessionError::Name)?;
        self.on_machine(|machine| {
            let value = convert::take_in(machine, value)?;
            Ok(machine.core.define(name, Some(value)).map_err(Signal::from)?)
        })
    }

    /// Returns the value of a definition, by serde; `None` if the session does not define the name.
    ///
    /// # Errors
    /// Returns an error if the value does not fit the type, or if a lazy part of it cannot be computed.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::Engine;
    ///
    /// let mut session = Engine::builder().build().unwrap().session();
    /// session.set("sizes", &[1, 2]).unwrap();
    /// assert_eq!(session.get::<Vec<u64>>("sizes").unwrap(), Some(vec![1, 2]));
    /// assert_eq!(session.get::<Vec<String>>("sizes").unwrap_err().to_string().contains("[0]"), true);
    /// ```
    pub fn get<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, SessionError> {
        if !self.defines(name) {
            return Ok(None);
        }
        self.on_machine(|machine| {
            let Some(index) = machine.core.globals.find(name) else { return Ok(None) };
            let value = machine.core.globals.get(index).value.clone().unwrap_or_default();
            convert::take_out(machine, &value).map(Some)
        })
    }

    /// Removes a definition; returns false if the session does not define the name.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::Engine;
    ///
    /// let mut session = Engine::builder().build().unwrap().session();
    /// session.set("a", &1).unwrap();
    /// assert!(session.remove("a") && !session.remove("a"));
    /// ```
    pub fn remove(&mut self, name: &str) -> bool {
        if !self.defines(name) {
            return false;
        }
        let removed = self.on_machine(|machine| Ok(machine.core.define(name, None).map_err(Signal::from)?));
        removed.is_ok()
    }
}
