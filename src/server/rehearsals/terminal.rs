//! Rehearsals at a terminal.

use std::sync::Arc;

use crate::lang::{Host, Keep, Recorder, Reply, Request, RunLog};
use crate::server::evaluations::host::EvaluationHost;
use crate::server::evaluations::keyed::{KeyedReply, KeyedRuns, RunCalls};
use crate::server::runs::MOST_LOGGED;
use lispbox_policy::internal::ChangeSet;

use super::dry_run::Rehearsing;

impl EvaluationHost {
    /// Returns the host of a program that makes the calls of a change set, each once a person has approved it.
    pub(in crate::server) fn committing(self, changes: &ChangeSet) -> Arc<dyn Host> {
        let log = RunLog::new(changes.log.clone(), Keep::Form, MOST_LOGGED);
        Arc::new(Recorder::new(Arc::new(self), Arc::new(log)))
    }
}

impl KeyedRuns {
    /// Like [`KeyedRuns::evaluate`], but calls that may change something are not made: they are kept as the calls of a run
    /// with that key, which makes them once a person has decided on each.
    ///
    /// # Errors
    /// Returns a reply that says why nothing was evaluated.
    pub fn rehearse(
        &self,
        key: &str,
        request: Request,
        host: impl FnOnce(&RunCalls) -> Arc<dyn Host>,
    ) -> Result<KeyedReply, Box<Reply>> {
        self.dry_run(key, request, host, Arc::<Rehearsing>::default())
    }
}
