//! The bounds of a plan, to which a run is held.

use crate::host::{CallId, CallRecord, ToolCall, ToolReply};
use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The calls that a run may make: at most so many of each tool, and none of any other.
#[derive(Debug, Default)]
pub struct PlanBounds(Mutex<BTreeMap<(String, String), Bound>>);

/// A bound on the calls of one tool.
#[derive(Debug, Default)]
struct Bound {
    /// The most calls; `None` for any number.
    most: Option<u64>,
    /// The reason for which a person has denied them, if so.
    denied: Option<String>,
    /// The number of calls before the run was suspended.
    before: u64,
    /// The calls since then. A call that is made again after a decision, or answered from a log, is the same call.
    made: HashSet<CallId>,
}

impl PlanBounds {
    /// Creates the bounds of a run that has made no call. Each is the server and the name of a tool, with the most calls;
    /// `None` for any number.
    pub fn new(calls: impl IntoIterator<Item = (String, String, Option<u64>)>) -> PlanBounds {
        let bound = |(server, tool, most)| ((server, tool), Bound { most, ..Bound::default() });
        PlanBounds(Mutex::new(calls.into_iter().map(bound).collect()))
    }

    /// Counts the calls of the forms before that at which a run was suspended.
    #[must_use]
    pub fn after(self, calls: &[CallRecord]) -> PlanBounds {
        let mut bounds = self.bounds();
        for call in calls {
            if let Some(bound) = bounds.get_mut(&(call.server.to_string(), call.tool.to_string())) {
                bound.before += 1;
            }
        }
        drop(bounds);
        self
    }

    /// Denies the calls of a tool, for that reason; the program can catch this.
    #[must_use]
    pub fn denying(self, server: &str, tool: &str, reason: &str) -> PlanBounds {
        if let Some(bound) = self.bounds().get_mut(&(server.to_owned(), tool.to_owned())) {
            bound.denied = Some(reason.to_owned());
        }
        self
    }

    fn bounds(&self) -> MutexGuard<'_, BTreeMap<(String, String), Bound>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call that is about to be made.
    ///
    /// # Errors
    /// Returns the reply to a call that must not be made: it leaves the plan, or a person has denied it.
    pub fn count(&self, call: &ToolCall) -> Result<(), ToolReply> {
        let unplanned = |how| ToolReply::Unplanned(format!("the run leaves its plan, so nothing was sent: {how}"));
        let mut bounds = self.bounds();
        let Some(bound) = bounds.get_mut(&(call.server.to_string(), call.tool.to_string())) else {
            let planned: Vec<String> = bounds.keys().map(|(server, tool)| format!("`{server}/{tool}`")).collect();
            let planned = if planned.is_empty() { "no tool".to_owned() } else { planned.join(", ") };
            return Err(unplanned(format!("the plan has {planned}, and not `{}/{}`", call.server, call.tool)));
        };
        if let Some(reason) = &bound.denied {
            return Err(ToolReply::Denied(reason.clone()));
        }
        let count = bound.before.saturating_add(bound.made.len() as u64);
        match bound.most {
            _ if bound.made.contains(&call.id) => {}
            Some(most) if count >= most => {
                let (most, server, tool) = (at_most(Some(most)), &call.server, &call.tool);
                return Err(unplanned(format!("the plan has {most} of `{server}/{tool}`, and this is one more")));
            }
            _ => _ = bound.made.insert(call.id.clone()),
        }
        Ok(())
    }
}

/// Describes a bound on calls: `at most 3 calls`.
pub fn at_most(most: Option<u64>) -> String {
    match most {
        Some(1) => "at most 1 call".to_owned(),
        Some(most) => format!("at most {most} calls"),
        None => "any number of calls".to_owned(),
    }
}
