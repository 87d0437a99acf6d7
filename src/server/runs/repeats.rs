//! Calls that repeat those of a program that did not end well.

use std::sync::Arc;

use crate::lang::{CutOff, Status, ToolCall, ToolReply};
use crate::server::sessions::Entry;

#[cfg(test)]
use super::failures::FailedRun;
use super::failures::{Failures, FollowingProgram};
use super::{Resumption, Runs};

/// The changes that programs before this one have made and that did not end well.
pub(in crate::server) struct Repeats {
    failures: Arc<Failures>,
    program: FollowingProgram,
}

impl Repeats {
    /// Returns the reply to the call of an earlier program that is repeated, as often as that was made.
    pub(in crate::server) fn kept(&self, call: &ToolCall) -> Option<ToolReply> {
        self.failures.reply(&self.program, (&call.server, &call.tool), &call.arguments)
    }

    /// Returns why a call is not made this time, as a sentence: an earlier program has made it. It is stopped once.
    pub(in crate::server) fn stop(&self, call: &ToolCall, is_declared: bool) -> Option<String> {
        self.failures.stop(&self.program, (&call.server, &call.tool), &call.arguments, is_declared)
    }
}

#[cfg(test)]
impl Repeats {
    /// Creates the changes of a program that has made one call.
    pub(in crate::server) fn of_one_call(server: &str, tool: &str, arguments: &str) -> Arc<Repeats> {
        let failures = Arc::<Failures>::default();
        failures.add(FailedRun::of_one_call(server, tool, arguments));
        let program = FollowingProgram::default();
        Arc::new(Repeats { failures, program })
    }
}

impl Runs {
    /// Returns the changes that a program with that digest should not repeat in that session; `None` if no program before
    /// it has failed. A run that is continued was compared with them when it began.
    pub(in crate::server) fn repeats(
        &self,
        entry: &Entry,
        digest: &str,
        resumed: Option<&Resumption>,
    ) -> Option<Arc<Repeats>> {
        if self.failures.is_empty() || resumed.is_some_and(|resumed| resumed.retry.is_none()) {
            return None;
        }
        let excused = resumed.map(|resumed| resumed.run.clone()).into_iter().collect();
        let (principal, session) = (entry.caller().to_owned(), entry.handle.clone());
        let program = FollowingProgram { principal, session, digest: digest.to_owned(), excused };
        let program = self.failures.followed_by(program)?;
        Some(Arc::new(Repeats { failures: Arc::clone(&self.failures), program }))
    }

    /// Records that a client receives the reply of a run that was cut off.
    pub(in crate::server) fn told(&self, run: &str) {
        self.failures.told(run);
    }

    /// Returns the last program before this one in that session that was cut off without a reply, once. Nothing is told in
    /// the reply of a program that was cut off itself, nor of the run that the client has named.
    pub(in crate::server) fn untold(&self, entry: &Entry, named: Option<&str>, status: Status) -> Option<Box<CutOff>> {
        if status == Status::Cancelled {
            return None;
        }
        self.failures.untold(entry.caller(), &entry.handle).filter(|cut_off| named != Some(&*cut_off.run)).map(Box::new)
    }
}
