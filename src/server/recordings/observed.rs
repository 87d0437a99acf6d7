//! A run that is observed: recorded, if runs are.

use std::sync::Arc;

use crate::lang::{Environment, Host, Logged, Reply};
use crate::server::runs::{ResumedRun, Runs};

use super::RecordedRun;

impl ResumedRun {
    /// Begins to record what the run is given beside its calls, if runs are recorded. Returns the host of the evaluation.
    pub(in crate::server) fn observed_by(
        &self,
        runs: &Runs,
        session: &mut dyn Environment,
        data: Option<&String>,
        host: Arc<dyn Host>,
    ) -> Arc<dyn Host> {
        let Some(recording) = self.recording() else { return host };
        let so_far = self.recorded();
        // A run that was not recorded from its beginning is not recorded at all.
        let is_resumed = self.start().is_none();
        match runs.record().filter(|_| so_far.is_some() || !is_resumed) {
            Some(options) => recording.begin(options, so_far.cloned(), session, data, host),
            None => host,
        }
    }

    /// True if the run is recorded.
    pub(in crate::server) fn is_observed(&self) -> bool {
        self.recording().is_some_and(RecordedRun::is_on)
    }

    /// Ends the recording of the evaluation with the reply, the session and the log as that left them.
    pub(in crate::server) fn observes_end(
        &self,
        reply: &Reply,
        session: &mut dyn Environment,
        log: impl FnOnce() -> Logged,
    ) {
        if let Some(recording) = self.recording() {
            recording.end(reply, session, log);
        }
    }
}
