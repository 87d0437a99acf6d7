//! A run while it is recorded.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::lang::{Environment, Host, Logged, Observed, Reply, Witness};

use super::{RecordOptions, Recorded, fingerprint};

/// The recording of a run, with the run.
#[derive(Default)]
pub(in crate::server) struct RecordedRun(Mutex<State>);

#[derive(Default)]
enum State {
    /// The run is not recorded.
    #[default]
    Off,
    UnderWay(Recording),
    Finished(FinishedRecording),
}

impl RecordedRun {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to record an evaluation in that session, if it can be. Returns the host of the evaluation.
    pub(super) fn begin(
        &self,
        options: RecordOptions,
        so_far: Option<Recorded>,
        session: &mut dyn Environment,
        data: Option<&String>,
        host: Arc<dyn Host>,
    ) -> Arc<dyn Host> {
        let Some(begun) = Recording::begin(options, so_far, session, data, Arc::clone(&host)) else { return host };
        let host = begun.host();
        *self.state() = State::UnderWay(begun);
        host
    }

    /// True if the evaluation is recorded.
    pub(super) fn is_on(&self) -> bool {
        !matches!(*self.state(), State::Off)
    }

    /// Ends the recording, if it is on, with the reply, the session and the log as the evaluation left them.
    pub(super) fn end(&self, reply: &Reply, session: &mut dyn Environment, log: impl FnOnce() -> Logged) {
        let mut state = self.state();
        if let State::UnderWay(begun) = std::mem::take(&mut *state) {
            *state = State::Finished(begun.end(reply, session, log()));
        }
    }

    /// Returns what was recorded, once the evaluation has ended.
    pub(in crate::server) fn take(&self) -> Option<FinishedRecording> {
        match std::mem::take(&mut *self.state()) {
            State::Finished(finished) => Some(finished),
            State::Off | State::UnderWay(_) => None,
        }
    }
}

/// An evaluation that is recorded.
struct Recording {
    options: RecordOptions,
    /// The record of earlier evaluations of a run that was suspended, or that of the beginning.
    before: Recorded,
    witness: Arc<Witness<Arc<dyn Host>>>,
}

/// A recorded evaluation that has ended, for good or because the run is suspended.
pub(in crate::server) struct FinishedRecording {
    pub(in crate::server) options: RecordOptions,
    pub(in crate::server) recorded: Recorded,
    /// The log of the whole run.
    pub(in crate::server) log: Logged,
}

impl Recording {
    /// Begins to record an evaluation in that session, which continues a run with that record, if any; `None` if the
    /// session cannot be written.
    fn begin(
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
    fn host(&self) -> Arc<dyn Host> {
        Arc::clone(&self.witness) as _
    }

    /// Ends the recording with the reply, the session and the log as the evaluation left them.
    fn end(self, reply: &Reply, session: &mut dyn Environment, log: Logged) -> FinishedRecording {
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
