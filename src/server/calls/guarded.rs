//! The origins of values in an evaluation, for the guards of the policy.

use std::sync::Arc;

use lispbox_policy::internal::{Origins, shown};

use crate::lang::{CallState, Logged, Reply, ToolReply};
use crate::server::downstream::Downstreams;
use crate::server::policy::Policy;

/// The origins of the values of a session, and the guards that ask for them.
#[derive(Clone)]
pub(in crate::server) struct Guarded {
    policy: Arc<Policy>,
    origins: Arc<Origins>,
}

impl Guarded {
    /// Returns the origins of a session, if there are guards; otherwise nothing is recorded.
    pub(in crate::server) fn new(downstreams: &Downstreams, origins: &Arc<Origins>) -> Option<Guarded> {
        downstreams.guarding().map(|policy| Guarded { policy, origins: Arc::clone(origins) })
    }

    pub(in crate::server) fn origins(&self) -> &Arc<Origins> {
        &self.origins
    }

    /// Begins a program with its data; see [`Origins::add_program`].
    pub(in crate::server) fn begin(&self, program: &str, data: Option<&str>, is_unread: bool) {
        self.origins.add_program(program, data, is_unread);
    }

    /// Adds what a tool has returned.
    pub(in crate::server) fn returned(&self, server: &Arc<str>, tool: &Arc<str>, reply: &ToolReply) {
        self.origins.add_reply(server, tool, reply, self.policy.standing(server, tool));
    }

    /// Adds what tools have returned earlier in a run that is continued.
    pub(in crate::server) fn returned_before(&self, log: &Logged) {
        for call in &log.calls {
            self.origins.add_sent(&call.arguments);
            if let CallState::Done(reply) = &call.state {
                self.returned(&call.server, &call.tool, reply);
            }
        }
    }

    /// Records that the model receives a reply to a program of the session.
    pub(in crate::server) fn replied(&self, program: &str, reply: &Reply) {
        let (program, shown) = shown(program, reply);
        self.origins.add_reading(program, &shown);
    }
}

/// Records that the model receives a reply to a program that was evaluated at another time, perhaps in another session.
pub(in crate::server) fn received(origins: &Origins, program: &str, reply: &Reply) {
    let (program, shown) = shown(program, reply);
    origins.add_other_reading(program, &shown);
}
