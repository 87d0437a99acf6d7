//! A run that is held to its plan.

use std::sync::Arc;

use crate::lang::{CallRecord, PlanBounds};
use crate::server::runs::ResumedRun;

impl ResumedRun {
    /// Returns the bounds to which the run is held, of which it has made these calls; `None` for a run without a plan.
    pub(in crate::server) fn bounds(&self, made: &[CallRecord]) -> Option<Arc<PlanBounds>> {
        self.plan().map(|plan| Arc::new(plan.bounds(made)))
    }

    /// Returns whether the model had read no text that is not trusted when it wrote the program, if the run begins with the
    /// approval of a plan; `None` for any other.
    pub(in crate::server) fn begins_unread(&self) -> Option<bool> {
        self.start().and_then(|_| self.plan()).map(|plan| plan.is_unread)
    }
}
