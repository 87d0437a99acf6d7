//! Recordings of whole runs, from which they are replayed.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::lang::{Environment, Host, Logged, Observed, Reply, Witness};
use crate::server::identity::sha256;

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

/// A run while it is recorded.
pub(in crate::server) struct Recording {
    options: RecordOptions,
    /// The record of earlier evaluations of a run that was suspended, or that of the beginning.
    before: Recorded,
    witness: Arc<Witness<Arc<dyn Host>>>,
}

/// A recorded evaluation that has ended, for good or because the run is suspended.
pub(in crate::server) struct FinishedRecording {
    pub(super) options: RecordOptions,
    pub(super) recorded: Recorded,
    /// The log of the whole run.
    pub(super) log: Logged,
}

impl Recording {
    /// Begins to record an evaluation in that session, which continues a run with that record, if any; `None` if the
    /// session cannot be written.
    pub(in crate::server) fn begin(
        options: RecordOptions,
        before: Option<Recorded>,
        session: &mut dyn Environment,
        data: Option<&String>,
        host: Arc<dyn Host>,
    ) -> Option<Recording> {
        session.report_exactly();
        let new = || {
            let session = match session.encode() {
                Ok(text) => Some(text),
                Err(_) if session.bindings() == 0 => None,
                Err(problem) => {
                    tracing::warn!(problem, "a program is not recorded, because its session cannot be written");
                    return None;
                }
            };
            let observed = Observed::default();
            Some(Recorded { session, data: data.cloned(), observed, reply: None, after: None })
        };
        let before = before.or_else(new)?;
        Some(Recording { options, before, witness: Arc::new(Witness::new(host)) })
    }

    /// Returns the host of the evaluation.
    pub(in crate::server) fn host(&self) -> Arc<dyn Host> {
        Arc::clone(&self.witness) as _
    }

    /// Ends the recording with the reply, the session and the log as the evaluation left them.
    pub(in crate::server) fn end(self, reply: &Reply, session: &mut dyn Environment, log: Logged) -> FinishedRecording {
        let Recording { options, mut before, witness } = self;
        before.observed.extend(witness.observed());
        if reply.mark.is_none() {
            before.reply = Some(Box::new(reply.clone()));
            before.after = session.encode().ok().map(|text| fingerprint(&text));
        }
        // As of one that is too large, only the reply is kept.
        let largest = if witness.is_full() { 0 } else { options.largest };
        FinishedRecording { options: RecordOptions { largest, ..options }, recorded: before, log }
    }
}
