//! The state in which a run is stored, found without reading its text.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::lang::MadeCalls;
use crate::server::approvals::asked::WAITING;
use crate::store::Summary;

/// The name by which the record of a run is told from those of sessions. No session defines it: it is qualified.
pub(crate) const RUN: &str = "lispbox/run";

/// The beginning of the name that says in which state a run is stored, with a [`RunSummary`] after it.
const STATE: &str = "lispbox/run/state ";

/// The state of a run that no process evaluates, as it is found without its text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RunSummary {
    pub(super) state: RunState,
    /// The tools of the calls on which a person has to decide.
    pub(super) calls: Vec<String>,
    /// The number of calls of which it is unknown whether they happened.
    pub(super) unknown: usize,
    /// The time at which it expires, in seconds since 1970.
    pub(super) expires: u64,
    /// The status at the end of its latest attempt, if that did not end well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ended: Option<String>,
    /// The calls that its attempts have made and that have changed something, or may have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) made: Vec<MadeCalls>,
}

impl RunSummary {
    /// Returns the names of the record of a run in this state.
    pub(super) fn names(&self) -> [String; 2] {
        [RUN.to_owned(), format!("{STATE}{}", serde_json::to_string(self).expect("it is data"))]
    }

    /// Reads the state of a record; `None` if the run was last stored while it was evaluated.
    pub(super) fn of(summary: &Summary) -> Option<RunSummary> {
        let state = summary.names.iter().find_map(|name| name.strip_prefix(STATE))?;
        serde_json::from_str(state).ok()
    }

    /// Returns the summary of a run that is being evaluated.
    pub(super) fn running(created: SystemTime) -> RunSummary {
        let expires = created + WAITING;
        let expires = expires.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        RunSummary { expires, ..RunSummary::of_state(RunState::Running) }
    }

    /// Returns the summary of a run in that state of which nothing else is to be told.
    pub(super) fn of_state(state: RunState) -> RunSummary {
        RunSummary { state, calls: Vec::new(), unknown: 0, expires: 0, ended: None, made: Vec::new() }
    }

    /// Returns the time in seconds after which it expires.
    pub(super) fn expires_in(&self) -> u64 {
        self.expires.saturating_sub(now())
    }
}

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// Calls wait for a decision, or for a person who says whether they happened.
    Waiting,
    /// All decisions are made: the run can be resumed.
    Decided,
    /// A process is evaluating it, or was a moment ago.
    Running,
    /// Its process died while it was evaluated for the first time: the next call with its key continues it.
    Begun,
    /// It did not end well after it has made changes: it may be attempted again, with a corrected program.
    Failed,
    /// It has ended.
    Ended,
}

impl RunState {
    /// Returns the word for the state: `waiting`, `decided`, `running`, `begun`, `failed` or `ended`.
    pub fn word(self) -> &'static str {
        match self {
            RunState::Waiting => "waiting",
            RunState::Decided => "decided",
            RunState::Running => "running",
            RunState::Begun => "begun",
            RunState::Failed => "failed",
            RunState::Ended => "ended",
        }
    }
}

/// Returns the time in seconds since 1970.
pub(in crate::server) fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
