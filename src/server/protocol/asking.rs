//! Chooses the door through which the user of a client is asked.

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::service::RequestContext;

use crate::server::policy::{Approver, NoApprover};

use super::doors::Door;
use super::elicitation::AskingClient;
use super::front::{Front, is_stateless};
use super::rounds::{self, NextRound};

/// The reason why the user of a client cannot be asked, as a clause.
const NO_ELICITATION: &str = "this client cannot ask for approval (it does not support elicitation)";

impl Front {
    /// Returns the approver that asks the person using the client, and how. From 2026-07-28 on a server sends no requests,
    /// but asks in its reply to the call.
    pub(super) fn approver(
        &self,
        principal: &str,
        stateless: bool,
        is_resumed: bool,
        context: &RequestContext<RoleServer>,
    ) -> (Arc<dyn Approver>, Door) {
        let runs = self.evaluations.runs();
        let waits = || NextRound::new(runs, principal, is_resumed);
        let can_wait = runs.are_stored();
        let shows_none = can_wait && self.doors.hides_forms();
        if !stateless && !shows_none {
            let otherwise = can_wait.then(|| (waits(), Arc::clone(&self.doors)));
            if let Some((client, questions)) = AskingClient::of(&context.peer, otherwise) {
                return (Arc::new(client), Door::Elicitation { questions, can_wait });
            }
        }
        let door = match stateless && rounds::shows_forms(context.client_capabilities()) {
            true => Door::NextRound,
            false if can_wait => Door::Operator,
            false => return (Arc::new(NoApprover(NO_ELICITATION.to_owned())), Door::None),
        };
        (Arc::new(waits()), door)
    }

    /// True if the client has the tool `lisp_approve`: it is switched on, runs can wait, and the client declares no forms.
    pub(super) fn offered(&self, context: &RequestContext<RoleServer>) -> bool {
        if !self.settings.approve_tool || self.over_http || !self.evaluations.runs().are_stored() {
            return false;
        }
        match is_stateless(context) {
            true => !rounds::shows_forms(context.client_capabilities()),
            false => !AskingClient::is_declared(&context.peer),
        }
    }
}
