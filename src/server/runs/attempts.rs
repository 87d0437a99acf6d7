//! The attempts of a run that did not end well, in its record.

use serde::{Deserialize, Serialize};

use crate::lang::{CallState, Limits, Logged, MadeCalls, Mark, Reply, Status, Suspended};
use crate::server::text::cut;

use super::stored::{Start, StoredRun};
use super::summary::{RunState, now};

/// A further attempt of a run that did not end well.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::server) struct Retry {
    /// The corrected program; `None` for the same one.
    pub(in crate::server) program: Option<String>,
    /// Other data than that of the attempt before.
    pub(in crate::server) data: Option<String>,
    /// The limits; `None` for the same ones.
    pub(in crate::server) limits: Option<Limits>,
    /// True if reads are answered by those of the attempts so far too.
    pub(in crate::server) repeats_reads: bool,
    /// True if calls whose outcome is unknown are made again.
    pub(in crate::server) repeats_unknown: bool,
}

/// Maximum number of attempts that are remembered, and maximum length of the program of each, in characters.
const REMEMBERED: usize = 20;
const PROGRAM: usize = 16_000;

/// Maximum size of the text of a session that is kept to begin again in it, in bytes.
pub(in crate::server) const LARGEST_SESSION: usize = 1 << 20;

/// An attempt of a run that has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndedAttempt {
    /// Its program.
    pub program: String,
    /// The time at which it ended, in seconds since 1970.
    pub at: u64,
    /// The status at its end.
    pub status: Status,
    /// The error, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The calls that have changed something, or may have, of this attempt and of those before, by tool.
    pub made: Vec<MadeCalls>,
    /// The number of calls that were answered by those of earlier attempts.
    #[serde(default)]
    pub answered: u64,
}

/// The session as it was before an attempt, in which the next one begins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::server) enum SessionBefore {
    /// It is not known: the next attempt begins in the session as it is.
    #[default]
    Unknown,
    /// It had no definitions.
    Empty,
    /// It had this text.
    Text(String),
}

/// An attempt that did not end well, with the changes that it has made.
pub(in crate::server) struct FailedAttempt {
    /// The log of the attempt.
    pub(in crate::server) log: Logged,
    /// True if the next attempt has other times and random numbers.
    pub(in crate::server) has_unkept_draws: bool,
    /// The session before it.
    pub(in crate::server) before: SessionBefore,
    /// The state of the session after it: its version in the store, or else the number of its changes.
    pub(in crate::server) after: u64,
    /// True if its program had data.
    pub(in crate::server) had_data: bool,
}

/// The attempts of a run, in its record.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Attempts {
    /// True if the latest attempt did not end well, and may be followed by another one.
    pub(super) is_failed: bool,
    /// True if an attempt is about to begin.
    pub(super) is_new: bool,
    /// The session before the latest attempt, and its state after it.
    session: Option<(SessionBefore, u64)>,
    /// True if the program had data that is not kept.
    lacks_data: bool,
    /// True if a client was told to ask for its reply.
    is_promised: bool,
    /// The data of the program, for a run that was suspended and no longer has its start.
    pub(super) data: Option<String>,
    /// The attempts that have ended, in order.
    ended: Vec<EndedAttempt>,
}

impl StoredRun {
    /// Returns the record of a run that has ended with this reply after it has made changes: it may be attempted again.
    pub(super) fn failed_with(mut self, reply: &Reply, failed: FailedAttempt) -> StoredRun {
        let FailedAttempt { mut log, has_unkept_draws: _, before, after, had_data } = failed;
        log.cut_off();
        // Nobody is asked any longer about a call that was not made.
        log.calls.iter_mut().filter(|call| call.state == CallState::Open).for_each(|call| call.question = None);
        let (limits, ..) = self.run.clone().into_parts();
        let program = self.run.program().to_owned();
        let attempts = &mut self.head.attempts;
        (attempts.is_failed, attempts.is_new, attempts.session) = (true, false, Some((before, after)));
        attempts.ended.push(EndedAttempt {
            program: cut(&program, PROGRAM),
            at: now(),
            status: reply.status,
            error: reply.failure.as_ref().map(|failure| cut(&format!("{}: {}", failure.error, failure.message), 300)),
            made: MadeCalls::of(log.changes()),
            answered: log.taken().count() as u64,
        });
        let surplus = attempts.ended.len().saturating_sub(REMEMBERED);
        attempts.ended.drain(..surplus);
        let start = || Start { data: attempts.data.take(), session_version: 0 };
        let has_data = self.head.terms.start.get_or_insert_with(start).data.is_some();
        self.head.attempts.lacks_data = had_data && !has_data;
        StoredRun { run: Suspended::of(&program, limits, Mark::default(), log), ..self }
    }

    /// Returns the attempts that have ended, in order; those before the last twenty are forgotten.
    pub fn attempts(&self) -> &[EndedAttempt] {
        &self.head.attempts.ended
    }

    /// Returns true if its latest attempt did not end well after it has made changes, or was cut off by the death of its
    /// process, so that it may be attempted again.
    pub(super) fn may_be_retried(&self) -> bool {
        matches!(self.state(), RunState::Failed | RunState::Begun)
    }

    /// Returns true if its program had data that is not kept, so that a further attempt has to bring it.
    pub(super) fn lacks_data(&self) -> bool {
        self.head.attempts.lacks_data
    }

    /// Returns true if whoever asks for the run alone gets the reply that is kept: it was promised to a client, which may
    /// not have received it.
    pub(super) fn keeps_reply(&self) -> bool {
        self.arguments().is_some() || self.round() > 0 || self.head.attempts.is_promised
    }

    /// Returns the record of a run whose reply a client was told to ask for.
    pub(super) fn promised(mut self) -> StoredRun {
        self.head.attempts.is_promised = true;
        self
    }

    /// Returns the record of a further attempt, before it begins.
    pub(super) fn retried(&self, retry: &Retry) -> StoredRun {
        let mut head = self.head.clone();
        let (limits, _, log) = self.run.clone().into_parts();
        let mut log = log.next_attempt();
        (log.repeats_reads, log.repeats_unknown) = (retry.repeats_reads, retry.repeats_unknown);
        // A plan was approved for the program as it was.
        (head.ended, head.resumed_at, head.terms.rehearsed, head.terms.plan) = (None, None, None, None);
        head.is_cut_off = false;
        (head.attempts.is_failed, head.attempts.is_new) = (false, true);
        let data = head.terms.start.take().and_then(|start| start.data);
        head.terms.start = Some(Start { data: retry.data.clone().or(data), session_version: 0 });
        let limits = retry.limits.clone().unwrap_or(limits);
        let program = retry.program.as_deref().unwrap_or(self.run.program());
        let run = Suspended::of(program, limits, Mark::default(), log);
        StoredRun { head, run, recorded: None, is_running: false }
    }

    /// Returns the session before the latest attempt, and its state after it, if this is a further attempt that begins.
    pub(super) fn session_before(&self) -> Option<&(SessionBefore, u64)> {
        self.head.attempts.session.as_ref().filter(|_| self.head.attempts.is_new)
    }

    /// Returns its approximate size in memory, in bytes.
    pub(super) fn weight(&self) -> u64 {
        let start = self.head.terms.start.as_ref().and_then(|start| start.data.as_ref()).map_or(0, String::len);
        let session = match &self.head.attempts.session {
            Some((SessionBefore::Text(text), _)) => text.len(),
            _ => 0,
        };
        let programs: usize = self.attempts().iter().map(|attempt| attempt.program.len()).sum();
        self.run.log().bytes() + (self.run.program().len() + start + session + programs) as u64
    }
}
