//! Recordings of whole runs, from which they are replayed.
//!
//! [`Recorded`] is the part of a record in the store, beside the log of the run. [`run`] makes it while a run is evaluated, which [`observed`] ties to it.

mod observed;
mod run;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::lang::{Observed, Reply};
use crate::server::identity::sha256;

pub(in crate::server) use run::{FinishedRecording, RecordedRun};

/// The options for recording runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordOptions {
    /// The time for which a run is kept after it began.
    pub keep: Duration,
    /// Maximum size of the text of a recorded run, in bytes. Of a larger one, only the reply is kept.
    pub largest: usize,
}

impl Default for RecordOptions {
    /// Seven days, and 16 MiB.
    fn default() -> RecordOptions {
        RecordOptions { keep: Duration::from_secs(7 * 24 * 60 * 60), largest: 16 << 20 }
    }
}

/// The record of a whole run, without its log.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Recorded {
    /// The text of its session before it began; absent if nothing was defined in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The text of its data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// What it learned about servers and tools.
    pub observed: Observed,
    /// Its reply before the server added anything; absent until it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<Box<Reply>>,
    /// The SHA-256 of the text of its session afterwards, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// Returns the SHA-256 of a text in hexadecimal: that of a session as [`Recorded::after`] has it, or that of a program as
/// plans have it.
pub fn fingerprint(text: &str) -> String {
    sha256(text.as_bytes())
}
