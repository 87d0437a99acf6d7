//! Runs that wait for the decision of a person, in the memory of this process.
//!
//! A run is found by its identity, which cannot be guessed and changes each time it is suspended, so that an answer to an
//! earlier question is not taken for one to a later question. A run is taken out when it is resumed: of two requests
//! that resume it, one does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::lang::{self, Decision, Logged, Mark};
use crate::server::policy::Question;
use crate::server::sessions::Entry;
use crate::store;

/// The time for which a run waits.
pub(in crate::server) const WAITING: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Most runs of one principal that wait at a time.
const MOST: usize = 20;

/// Most bytes of arguments and replies that a run holds.
pub(in crate::server) const MOST_LOGGED: u64 = 16 << 20;

/// Most bytes of arguments and replies that all waiting runs hold.
const MOST_LOGGED_IN_ALL: u64 = 512 << 20;

/// The answers to the questions of a run, which resume it.
pub(in crate::server) struct Resumption {
    /// The identity of the run.
    pub(in crate::server) run: String,
    /// The decisions on its open questions, in their order; `None` leaves a question open.
    pub(in crate::server) decisions: Vec<Option<Decision>>,
}

/// A run that waits.
#[derive(Clone)]
pub(in crate::server) struct WaitingRun {
    /// The principal that may resume it.
    pub(in crate::server) principal: String,
    /// Its session.
    pub(in crate::server) entry: Arc<Entry>,
    /// The SHA-256 of the program, in hexadecimal.
    pub(in crate::server) program: String,
    /// The place at which it is resumed.
    pub(in crate::server) mark: Box<Mark>,
    /// The calls of the running form.
    pub(in crate::server) log: Logged,
    since: Instant,
}

impl WaitingRun {
    pub(in crate::server) fn new(
        principal: &str,
        entry: Arc<Entry>,
        program: &str,
        mark: Box<Mark>,
        log: Logged,
    ) -> WaitingRun {
        let (principal, program) = (principal.to_owned(), program.to_owned());
        WaitingRun { principal, entry, program, mark, log, since: Instant::now() }
    }

    fn open(&self) -> impl Iterator<Item = &lang::Entry> {
        self.log.calls.iter().filter(|call| call.question.is_some() && call.decision.is_none())
    }

    /// Returns the open questions, in order.
    pub(in crate::server) fn questions(&self) -> Vec<Question> {
        self.open().filter_map(|call| Some(Question::of(call.question.as_deref()?, &self.program))).collect()
    }

    /// Records the decisions on the open questions.
    pub(in crate::server) fn decide(&mut self, decisions: impl IntoIterator<Item = Option<Decision>>) {
        let open = self.log.calls.iter_mut().filter(|call| call.question.is_some() && call.decision.is_none());
        for (call, decision) in open.zip(decisions) {
            call.decision = decision;
        }
    }

    /// True if the principal may resume it, and it has not expired.
    fn is_of(&self, principal: &str) -> bool {
        self.principal == principal && self.since.elapsed() < WAITING
    }

    fn bytes(&self) -> u64 {
        self.log.calls.iter().map(lang::Entry::bytes).sum()
    }
}

/// The waiting runs of this process.
#[derive(Default)]
pub(in crate::server) struct Runs(Mutex<HashMap<String, WaitingRun>>);

impl Runs {
    fn waiting(&self) -> MutexGuard<'_, HashMap<String, WaitingRun>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns why no further run of a principal can wait, as a clause; `None` if one can.
    pub(in crate::server) fn crowded(&self, principal: &str) -> Option<String> {
        let mut waiting = self.waiting();
        waiting.retain(|_, run| run.since.elapsed() < WAITING);
        if waiting.values().filter(|run| run.principal == principal).count() >= MOST {
            return Some(format!("{MOST} programs wait for approval already, and no further one can"));
        }
        let bytes: u64 = waiting.values().map(WaitingRun::bytes).sum();
        (bytes + MOST_LOGGED > MOST_LOGGED_IN_ALL)
            .then(|| "the programs that wait for approval take all the memory that they may take".to_owned())
    }

    /// Keeps a run, and returns its identity.
    ///
    /// # Errors
    /// Returns a message if the system has no randomness.
    pub(in crate::server) fn keep(&self, run: WaitingRun) -> Result<String, String> {
        let identity = store::handle()?;
        self.waiting().insert(identity.clone(), run);
        Ok(identity)
    }

    /// Keeps a run again that was taken out and has not been resumed.
    pub(in crate::server) fn put_back(&self, identity: &str, run: WaitingRun) {
        self.waiting().insert(identity.to_owned(), run);
    }

    /// Takes a run out; `None` if it does not wait, or no longer.
    pub(in crate::server) fn take(&self, identity: &str, principal: &str) -> Option<WaitingRun> {
        let mut waiting = self.waiting();
        waiting.get(identity).filter(|run| run.is_of(principal))?;
        waiting.remove(identity)
    }

    /// Returns what `see` sees in a run that waits; `None` if it does not wait, or no longer.
    pub(in crate::server) fn look<R>(
        &self,
        identity: &str,
        principal: &str,
        see: impl FnOnce(&WaitingRun) -> R,
    ) -> Option<R> {
        self.waiting().get(identity).filter(|run| run.is_of(principal)).map(see)
    }
}
