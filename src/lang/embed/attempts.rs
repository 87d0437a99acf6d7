//! Runs that did not end well after they have made changes, and their further attempts.

use super::program::Program;
use super::run::Run;
use super::suspended::{RunError, SettleError, Suspended};
use crate::Limits;
use crate::effects::MadeCalls;
use crate::host::{CallId, Happened};
use crate::reply::{Mark, Status};
use crate::runs::{CallState, Entry, RunLog};
use crate::session::Session;
use serde::Serialize;

/// A run that did not end well after it has made changes: a [further attempt](Session::retry) makes none of them again.
///
/// It is text, as a suspended run is, so that another process can go on with it.
#[derive(Clone, Debug, PartialEq)]
pub struct FailedRun(Suspended);

impl FailedRun {
    /// Returns the run, if a program that ended with that status has made changes.
    pub(super) fn of(status: Status, program: &str, limits: &Limits, log: &RunLog) -> Option<Box<FailedRun>> {
        let is_bad = matches!(status, Status::Error | Status::Limit | Status::Cancelled);
        if !is_bad || !log.has_changes() {
            return None;
        }
        let mut log = log.logged();
        log.cut_off();
        // What became of a call that was not answered in time is found out as of one that was cut off.
        let is_unknown = |call: &&mut Entry| call.happened() == Happened::Unknown;
        log.calls.iter_mut().filter(is_unknown).for_each(|call| call.state = CallState::Unknown);
        // Nobody is asked any longer about a call that was not made.
        log.calls.iter_mut().filter(|call| call.state == CallState::Open).for_each(|call| call.question = None);
        Some(Box::new(FailedRun(Suspended::of(program, limits.clone(), Mark::default(), log))))
    }

    /// Returns the text of the program.
    pub fn program(&self) -> &str {
        self.0.program()
    }

    /// Returns the calls of all attempts that have changed something, or may have, by tool.
    pub fn made(&self) -> Vec<MadeCalls> {
        MadeCalls::of(self.0.log().changes())
    }

    /// Returns the calls that were sent and of which it is not known whether they were carried out. A further attempt is
    /// stopped before such a call (`EffectRepeated`), unless somebody has recorded what became of it.
    pub fn unknown(&self) -> impl Iterator<Item = &CallId> {
        self.0.unknown()
    }

    /// Records that an unknown call happened, with its result.
    ///
    /// # Errors
    /// Returns an error if the call is not unknown, or the result is not data.
    pub fn happened<T: Serialize + ?Sized>(&mut self, call: &CallId, result: &T) -> Result<(), SettleError> {
        self.0.happened(call, result)
    }

    /// Records that an unknown call did not happen: a further attempt makes it.
    ///
    /// # Errors
    /// Returns an error if the call is not unknown.
    pub fn did_not_happen(&mut self, call: &CallId) -> Result<(), SettleError> {
        self.0.did_not_happen(call)
    }

    /// Returns the run as text.
    pub fn encode(&self) -> String {
        self.0.encode()
    }

    /// Reads the text of [`FailedRun::encode`].
    ///
    /// # Errors
    /// Returns an error if the text is not that of a run, or if this version of lispbox cannot go on with it.
    pub fn decode(text: &str) -> Result<FailedRun, RunError> {
        Suspended::decode(text).map(FailedRun)
    }
}

impl From<Box<FailedRun>> for FailedRun {
    fn from(run: Box<FailedRun>) -> FailedRun {
        *run
    }
}

impl Session {
    /// Prepares a further attempt of a run that did not end well, usually of a corrected program. It is evaluated from its
    /// beginning, in the session as it is; a call that may change something and was made by an earlier attempt, with the
    /// same tool and the same arguments, is answered by its reply, as often as it was made. Everything else is made.
    ///
    /// The limits are those of the run unless others are given, and data has to be given again. If the attempt fails too,
    /// [`Report::failed`](crate::Report::failed) has the calls of all attempts.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Call, Engine, FailedRun, NoArguments, Tools, World};
    /// use std::sync::atomic::{AtomicU32, Ordering};
    ///
    /// let sent = AtomicU32::new(0);
    /// let mut tools = Tools::new();
    /// tools.tool("mail/send", |_: NoArguments, _: &Call| Ok(sent.fetch_add(1, Ordering::Relaxed)));
    /// let world = World::new(tools);
    /// let mut session = Engine::builder().build().unwrap().session();
    /// assert!(session.run("(mail/send) (/ 1 0)").retryable().eval::<i64>(&world).unwrap().done().is_none());
    /// let failed = session.report().failed.clone().unwrap();
    /// assert_eq!(failed.made()[0].to_string(), "mail/send once");
    ///
    /// let failed = FailedRun::decode(&failed.encode()).unwrap(); // from your database
    /// let done = session.retry(failed, "(mail/send) :done").eval::<String>(&world).unwrap().done();
    /// assert_eq!((done.as_deref(), sent.load(Ordering::Relaxed)), (Some("done"), 1));
    /// ```
    pub fn retry<'d>(&mut self, run: impl Into<FailedRun>, program: impl Into<Program>) -> Run<'_, 'd> {
        let (limits, _, log) = run.into().0.into_parts();
        Run::further(self, program.into(), limits, log.next_attempt())
    }
}
