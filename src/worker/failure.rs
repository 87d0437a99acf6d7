//! The reasons for which a worker cannot continue.

use std::io;
use std::time::Duration;

use jiff::Timestamp;

use crate::lang::internal::{bytes, time};

/// Changes of a session that exist only in its worker.
pub(super) struct Unwritten {
    /// When the first of the changes was made.
    pub(super) since: Timestamp,
    /// Why they could not be serialized.
    pub(super) problem: String,
}

impl std::fmt::Display for Unwritten {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let since = self.since.strftime("%Y-%m-%d %H:%M:%S UTC");
        write!(f, "all changes to the session since {since} are lost, because they could not be kept: {}", self.problem)
    }
}

/// The reason why a worker cannot continue.
pub(super) enum WorkerFailure {
    /// No worker could be started.
    Unavailable(io::Error),
    /// The pipe broke, or the worker violated the protocol.
    Broken(io::Error),
    /// The worker ended between two instructions, with changes that were not serialized.
    Between(Unwritten),
    /// The worker could not deserialize the session.
    Unreadable(String),
    /// The worker exceeded a time limit.
    Late { limit: &'static str, allowed: Duration },
    /// The worker exceeded its memory limit.
    Large { resident: u64, allowed: u64 },
    /// The worker exceeded its limit of tool calls.
    Calls(u32),
}

/// Returns the failure of a worker that sent an invalid message.
pub(super) fn nonsense() -> WorkerFailure {
    WorkerFailure::Broken(io::Error::other("it sent an invalid message"))
}

impl std::fmt::Display for WorkerFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            WorkerFailure::Unavailable(problem) => write!(f, "no worker process is available: {problem}; try again"),
            WorkerFailure::Broken(problem) => write!(f, "the worker process that ran this was lost: {problem}"),
            WorkerFailure::Between(unwritten) => {
                write!(f, "the worker process of this session is gone, and {unwritten}")
            }
            WorkerFailure::Unreadable(problem) => {
                write!(f, "a worker process could not load the session: {problem}")
            }
            WorkerFailure::Late { limit: "cancellation", .. } => {
                f.write_str("the worker process was terminated, because it did not stop when it was cancelled")
            }
            WorkerFailure::Late { limit, allowed } => {
                let allowed = time(*allowed);
                write!(
                    f,
                    "the worker process was terminated, because it did not stop at its limit `{limit}` of {allowed}"
                )
            }
            WorkerFailure::Large { resident, allowed } => {
                let (resident, allowed) = (bytes(*resident), bytes(*allowed));
                write!(
                    f,
                    "the worker process was terminated, because it had {resident} of memory; at most {allowed} are \
                     allowed"
                )
            }
            WorkerFailure::Calls(most) => {
                write!(f, "the worker process was terminated, because it made more than the allowed {most} tool calls")
            }
        }
    }
}
