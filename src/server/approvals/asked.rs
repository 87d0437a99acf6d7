//! The calls of a run on which a person has to decide.

use std::time::Duration;

use super::{Answer, Question};
use crate::lang::{self, Decision, Logged};

/// The time for which a run waits.
pub(in crate::server) const WAITING: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// A call on which a person has to decide.
#[derive(Clone)]
pub(in crate::server) struct AskedCall {
    /// Its ordinal among the calls of the round that were asked about, whether or not they are decided on: an answer to
    /// one question is never taken for one to another.
    pub(in crate::server) place: usize,
    pub(in crate::server) question: Question,
    /// The arguments as the program gave them: a program does not see what is added to them.
    pub(in crate::server) given: String,
}

impl AskedCall {
    /// Returns the decision that an answer to the question is; `None` leaves it open.
    pub(in crate::server) fn decision(&self, answer: &Answer) -> Option<Decision> {
        match answer {
            Answer::Yes | Answer::YesAnd(_) => Some(Decision::Approved),
            Answer::No => Some(Decision::Denied(format!("a person was asked and said no ({})", self.question.rule))),
            Answer::Unavailable(_) | Answer::Later => None,
        }
    }
}

/// Returns the open questions of a log.
pub(in crate::server) fn asked_calls<'l>(
    log: &'l Logged,
    program: &'l str,
) -> impl Iterator<Item = (&'l lang::Entry, AskedCall)> {
    undecided_calls(log, program).filter(|(call, _)| call.is_open())
}

/// Returns the questions of a log without a decision: those that are open, and those of calls that a grant covered.
pub(in crate::server) fn undecided_calls<'l>(
    log: &'l Logged,
    program: &'l str,
) -> impl Iterator<Item = (&'l lang::Entry, AskedCall)> {
    let asked = log.calls.iter().filter_map(|call| Some((call, call.question.as_deref()?)));
    asked.enumerate().filter(|(_, (call, _))| call.is_asked()).map(move |(place, (call, question))| {
        (call, AskedCall { place, question: Question::of(question, program), given: call.arguments.clone() })
    })
}

/// A run that was suspended, with its questions.
#[derive(Clone)]
pub(in crate::server) struct AskedRun {
    pub(in crate::server) identity: String,
    pub(in crate::server) round: u32,
    pub(in crate::server) calls: Vec<AskedCall>,
    /// The time in which it expires.
    pub(in crate::server) expires: Duration,
    /// True if it is in a store, where a person can decide on it.
    pub(in crate::server) is_stored: bool,
    /// The calls of which it is unknown whether they happened, each on a line.
    pub(in crate::server) unknown: Vec<String>,
}

impl AskedRun {
    /// True if no person has to decide on anything.
    pub(in crate::server) fn is_decided(&self) -> bool {
        self.calls.is_empty() && self.unknown.is_empty()
    }
}
