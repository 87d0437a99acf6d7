//! Suspended runs as values of a Rust program: their questions, the decisions on them, and their text.

use crate::convert::{self, Unwritten};
use crate::foreign_text;
use crate::host::{CallId, Decision, Question, ToolReply};
use crate::meter::Limits;
use crate::reply::Mark;
use crate::runs::{CallState, Entry, Logged};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The version of the text of a run. It changes whenever a run of an earlier version cannot be resumed: with the fields,
/// and with anything that changes the course of an evaluation.
const VERSION: u32 = 1;

/// A run that waits for the decisions of a person. It is resumed in its session, or in one that was restored from that
/// session's text after the run was suspended: days later, in another process, or on another machine.
///
/// ```
/// # #[global_allocator]
/// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
/// use lispbox::lang::{Call, Engine, Outcome, Suspended, Tools, World};
/// use serde::Deserialize;
///
/// #[derive(Deserialize)]
/// struct Mail {
///     to: String,
/// }
///
/// let mut tools = Tools::new();
/// tools.tool("mail/send", |mail: Mail, _: &Call| Ok(format!("sent to {}", mail.to))).needs_approval();
/// let world = World::new(tools);
/// let engine = Engine::builder().build().unwrap();
/// let mut session = engine.session();
///
/// let program = "(def to \"ann@example.org\") (mail/send {:to to})";
/// let Outcome::Suspended(run) = session.run(program).eval::<String>(&world).unwrap() else { panic!() };
/// let (kept_run, kept_session) = (run.encode(), session.encode().unwrap());
///
/// let mut run = Suspended::decode(&kept_run).unwrap();
/// let question = run.questions().next().unwrap();
/// assert_eq!(question.arguments, r#"{"to":"ann@example.org"}"#);
/// run.approve(&question.id.clone()).unwrap();
/// let mut session = engine.restore(&kept_session).unwrap();
/// let outcome = session.resume(run).eval::<String>(&world).unwrap();
/// assert_eq!(outcome.done().as_deref(), Some("sent to ann@example.org"));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Suspended {
    #[serde(rename = "lispbox-run")]
    version: u32,
    pub(super) program: String,
    pub(super) name: Option<String>,
    pub(super) limits: Limits,
    pub(super) mark: Mark,
    pub(super) log: Logged,
}

/// The reason why a decision was not recorded: the run asks no question about that call, or it has been decided on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoQuestion(CallId);

impl fmt::Display for NoQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CallId { form, branch, ordinal } = &self.0;
        write!(f, "the run has no open question about call {ordinal} of form {form}")?;
        if branch.is_empty() { Ok(()) } else { write!(f, " in branch {branch:?}") }
    }
}

impl std::error::Error for NoQuestion {}

/// The reason why the outcome of a call was not recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettleError {
    /// The run has no call of that identity whose outcome is unknown.
    Known(CallId),
    /// The result is not data, for this reason.
    Result(String),
}

impl fmt::Display for SettleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettleError::Known(CallId { form, ordinal, .. }) => {
                write!(f, "the outcome of call {ordinal} of form {form} is not unknown")
            }
            SettleError::Result(why) => write!(f, "the result of the call is not data: {why}"),
        }
    }
}

impl std::error::Error for SettleError {}

/// The reason why a text is not that of a suspended run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunError {
    /// The text is not that of a run, or is damaged; the message says where.
    NotARun(String),
    /// The run was suspended by a version of lispbox that takes another course: the version of its text.
    Version(u32),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::NotARun(message) => write!(f, "expected the text of a suspended run: {message}"),
            RunError::Version(version) => write!(
                f,
                "the run was suspended by another version of lispbox, which wrote version {version} of runs; this one \
                 resumes version {VERSION}"
            ),
        }
    }
}

impl std::error::Error for RunError {}

impl Suspended {
    pub(super) fn new(program: &str, name: Option<String>, limits: Limits, mark: Mark, log: Logged) -> Suspended {
        Suspended { version: VERSION, program: program.to_owned(), name, limits, mark, log }
    }

    /// Creates the run of a host that keeps its own log.
    #[doc(hidden)]
    pub fn of(program: &str, limits: Limits, mark: Mark, log: Logged) -> Suspended {
        Suspended::new(program, None, limits, mark, log)
    }

    /// Returns the limits, the place at which it is resumed, and the log.
    #[doc(hidden)]
    pub fn into_parts(self) -> (Limits, Mark, Logged) {
        (self.limits, self.mark, self.log)
    }

    /// Returns the log.
    #[doc(hidden)]
    pub fn log(&self) -> &Logged {
        &self.log
    }

    /// Returns the log, to record decisions in it.
    #[doc(hidden)]
    pub fn log_mut(&mut self) -> &mut Logged {
        &mut self.log
    }

    /// Returns the limits.
    #[doc(hidden)]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the number of the run, which identifies it in its session: that of its program, from 1.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Call, Engine, EvalError, NoArguments, Outcome, Tools, World};
    ///
    /// let mut tools = Tools::new();
    /// tools.tool("disk/format", |_: NoArguments, _: &Call| Ok(())).needs_approval();
    /// let world = World::new(tools);
    /// let mut session = Engine::builder().build().unwrap().session();
    /// let Outcome::Suspended(run) = session.run("(disk/format)").eval::<()>(&world).unwrap() else { panic!() };
    /// let copy = run.clone();
    /// session.discard(run);
    /// let number = copy.number();
    /// let again = session.resume(copy).eval::<()>(&world);
    /// assert!(matches!(again, Err(EvalError::AlreadyResumed(resumed)) if resumed == number));
    /// ```
    pub fn number(&self) -> u32 {
        self.mark.program
    }

    /// Returns the questions without a decision, in the order in which the program made the calls. Those about
    /// [unknown](Suspended::unknown) calls are among them; the other ones are decided on by [`approve`](Suspended::approve)
    /// and [`deny`](Suspended::deny).
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Call, Engine, NoArguments, Outcome, Tools, World};
    ///
    /// let mut tools = Tools::new();
    /// tools.tool("disk/format", |_: NoArguments, _: &Call| Ok(())).needs_approval();
    /// let mut session = Engine::builder().build().unwrap().session();
    /// let outcome = session.run("(disk/format)").eval::<()>(&World::new(tools)).unwrap();
    /// let Outcome::Suspended(run) = outcome else { panic!() };
    /// let question = run.questions().next().unwrap();
    /// assert_eq!(question.to_string(), "disk/format {}, because this tool needs the approval of a person");
    /// ```
    pub fn questions(&self) -> impl Iterator<Item = &Question> {
        let waits = |entry: &&Entry| is_open(entry) || entry.state == CallState::Unknown;
        self.log.calls.iter().filter(waits).filter_map(|entry| entry.question.as_deref())
    }

    /// Lets a call be made, once, with the arguments of its question.
    ///
    /// # Errors
    /// Returns an error if the run has no open question about that call, or if its outcome is unknown.
    pub fn approve(&mut self, call: &CallId) -> Result<(), NoQuestion> {
        self.decide(call, Decision::Approved)
    }

    /// Refuses a call: the program receives an error `ToolDenied` with the reason, which it can catch.
    ///
    /// # Errors
    /// As [`approve`](Suspended::approve).
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
    /// let Outcome::Suspended(mut run) = session.run("(disk/format)").eval::<()>(&world).unwrap() else { panic!() };
    /// let call = run.questions().next().unwrap().id.clone();
    /// run.deny(&call, "there is no backup").unwrap();
    /// let denied = session.resume(run).eval::<()>(&world).unwrap().into_result().unwrap_err();
    /// assert_eq!(denied.to_string(), "ToolDenied: `disk/format` may not be called: there is no backup");
    /// ```
    pub fn deny(&mut self, call: &CallId, reason: &str) -> Result<(), NoQuestion> {
        self.decide(call, Decision::Denied(reason.to_owned()))
    }

    fn decide(&mut self, call: &CallId, decision: Decision) -> Result<(), NoQuestion> {
        let entry = self.log.calls.iter_mut().find(|entry| entry.id == *call && is_open(entry));
        entry.ok_or_else(|| NoQuestion(call.clone()))?.decision = Some(decision);
        Ok(())
    }

    /// Returns the calls of a [checkpoint](crate::Run::checkpoint) of which nobody knows whether they happened: they were
    /// about to be made when the process died. Find out, and record it; until then the run is suspended again when it
    /// reaches them, and nothing is sent.
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
    /// let database = Mutex::new(Vec::new());
    /// let store = |run: &Suspended| Ok(database.lock().unwrap().push(run.encode()));
    /// session.run("(mail/send)").checkpoint(store).eval::<String>(&world).unwrap().done().unwrap();
    ///
    /// let mut run = Suspended::decode(&database.lock().unwrap()[0]).unwrap();
    /// assert_eq!(run.unknown().count(), 1);
    /// ```
    pub fn unknown(&self) -> impl Iterator<Item = &CallId> {
        self.log.unknown().map(|entry| &entry.id)
    }

    /// Returns the arguments of a call of the log: the text of a JSON object.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Call, Engine, NoArguments, Outcome, Tools, World};
    ///
    /// let mut tools = Tools::new();
    /// tools.tool("disk/format", |_: NoArguments, _: &Call| Ok(())).needs_approval();
    /// let mut session = Engine::builder().build().unwrap().session();
    /// let outcome = session.run("(disk/format)").eval::<()>(&World::new(tools)).unwrap();
    /// let Outcome::Suspended(run) = outcome else { panic!() };
    /// let call = &run.questions().next().unwrap().id;
    /// assert_eq!(run.arguments(call), Some("{}"));
    /// ```
    pub fn arguments(&self, call: &CallId) -> Option<&str> {
        self.log.calls.iter().find(|entry| entry.id == *call).map(Entry::shown_arguments)
    }

    /// Records that an unknown call happened, with its result.
    ///
    /// # Errors
    /// Returns an error if the call is not unknown, or the result is not data.
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
    /// let database = Mutex::new(Vec::new());
    /// let store = |run: &Suspended| Ok(database.lock().unwrap().push(run.encode()));
    /// session.run("(mail/send)").checkpoint(store).eval::<String>(&world).unwrap().done().unwrap();
    ///
    /// let mut run = Suspended::decode(&database.lock().unwrap()[0]).unwrap();
    /// let call = run.unknown().next().unwrap().clone();
    /// run.happened(&call, &"sent").unwrap();
    /// assert!(run.happened(&call, &"sent").is_err(), "it is known now");
    /// ```
    pub fn happened<R: Serialize + ?Sized>(&mut self, call: &CallId, result: &R) -> Result<(), SettleError> {
        let reply = match convert::to_text(result, u64::MAX) {
            Ok(reply) => reply,
            Err(Unwritten::Unfit(error)) => return Err(SettleError::Result(error.to_string())),
            Err(Unwritten::TooLarge) => return Err(SettleError::Result("it is too large".to_owned())),
        };
        self.settle(call, Some(reply))
    }

    /// Records that an unknown call did not happen: it is made when the run is resumed.
    ///
    /// # Errors
    /// Returns an error if the call is not unknown.
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
    /// let database = Mutex::new(Vec::new());
    /// let store = |run: &Suspended| Ok(database.lock().unwrap().push(run.encode()));
    /// session.run("(mail/send)").checkpoint(store).eval::<String>(&world).unwrap().done().unwrap();
    ///
    /// let mut run = Suspended::decode(&database.lock().unwrap()[0]).unwrap();
    /// let call = run.unknown().next().unwrap().clone();
    /// run.did_not_happen(&call).unwrap();
    /// assert_eq!(run.unknown().count(), 0);
    /// ```
    pub fn did_not_happen(&mut self, call: &CallId) -> Result<(), SettleError> {
        self.settle(call, None)
    }

    fn settle(&mut self, call: &CallId, happened: Option<ToolReply>) -> Result<(), SettleError> {
        if self.log.settle(call, happened) { Ok(()) } else { Err(SettleError::Known(call.clone())) }
    }

    /// Explains to the model that has sent the program why there is no value yet.
    pub(super) fn explained(&self) -> String {
        const SHOWN: usize = 10;
        let mut lines = vec!["Suspended: a person has to decide first on:".to_owned()];
        lines.extend(
            self.questions().take(SHOWN).map(|question| format!("- {}", foreign_text::line(&question.to_string()))),
        );
        let more = self.questions().count().saturating_sub(SHOWN);
        lines.extend((more > 0).then(|| format!("- and {more} more")));
        lines.push("The run goes on from here once the decision is there: do not send the program again.".to_owned());
        lines.join("\n")
    }

    /// Returns the run with another log.
    pub(super) fn with_log(&self, log: Logged) -> Suspended {
        Suspended { log, ..self.clone() }
    }

    /// Returns the program.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Call, Engine, NoArguments, Outcome, Tools, World};
    ///
    /// let mut tools = Tools::new();
    /// tools.tool("disk/format", |_: NoArguments, _: &Call| Ok(())).needs_approval();
    /// let mut session = Engine::builder().build().unwrap().session();
    /// let outcome = session.run("(disk/format)").eval::<()>(&World::new(tools)).unwrap();
    /// let Outcome::Suspended(run) = outcome else { panic!() };
    /// assert_eq!(run.program(), "(disk/format)");
    /// ```
    pub fn program(&self) -> &str {
        &self.program
    }

    /// Serializes the run as text that [`Suspended::decode`] reads. It contains the arguments and results of the calls of
    /// the running form. The session has to be stored as well: it holds the definitions and the data of the run.
    pub fn encode(&self) -> String {
        serde_json::to_string(self).expect("a run has only text keys")
    }

    /// Reads the text of [`Suspended::encode`].
    ///
    /// # Errors
    /// Returns an error if the text is not that of a run, or if this version of lispbox cannot resume it.
    ///
    /// ```
    /// use lispbox::lang::{RunError, Suspended};
    ///
    /// assert!(matches!(Suspended::decode("{}"), Err(RunError::NotARun(_))));
    /// assert_eq!(Suspended::decode(r#"{"lispbox-run":900}"#), Err(RunError::Version(900)));
    /// ```
    pub fn decode(text: &str) -> Result<Suspended, RunError> {
        #[derive(Deserialize)]
        struct Head {
            #[serde(rename = "lispbox-run")]
            version: u32,
        }
        let no_run = |error: serde_json::Error| RunError::NotARun(error.to_string());
        let Head { version } = serde_json::from_str(text).map_err(no_run)?;
        if version != VERSION {
            return Err(RunError::Version(version));
        }
        let mut run: Suspended = serde_json::from_str(text).map_err(no_run)?;
        // The process that made these calls has stored no reply. Harmless calls are not stored as started.
        run.log.recover(|_| false);
        for entry in run.log.calls.iter_mut().filter(|entry| entry.state == CallState::Unknown) {
            entry.question = Some(Box::new(entry.unknown_question()));
        }
        Ok(run)
    }
}

impl From<Box<Suspended>> for Suspended {
    fn from(run: Box<Suspended>) -> Suspended {
        *run
    }
}

/// True for a call on which a person must still decide.
fn is_open(entry: &Entry) -> bool {
    entry.question.is_some() && entry.decision.is_none() && entry.state != CallState::Unknown
}
