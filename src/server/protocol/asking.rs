//! Chooses the door through which the user of a client is asked.

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::service::RequestContext;

use crate::server::approvals::{Approver, NoApprover};

use super::card;
use super::doors::{Door, Offer};
use super::elicitation::AskingClient;
use super::front::{Front, is_stateless};
use super::multi_round::{self, NextRound};

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
        let is_hidden = can_wait && self.doors.hides_forms();
        if !stateless && !is_hidden {
            let otherwise = can_wait.then(|| (waits(), Arc::clone(&self.doors)));
            if let Some((client, questions)) = AskingClient::of(&context.peer, otherwise) {
                return (Arc::new(client), Door::Elicitation { questions, can_wait });
            }
        }
        let door = match stateless && multi_round::shows_forms(context.client_capabilities()) {
            true => Door::NextRound,
            false if can_wait => Door::Operator,
            false => return (Arc::new(NoApprover(NO_ELICITATION.to_owned())), Door::None),
        };
        (Arc::new(waits()), door)
    }

    /// Returns the way by which the tool `lisp_approve` asks the user of a client that declares no forms, if it has one: a
    /// card if it shows cards, or its prompt if that is switched on.
    pub(super) fn offered(&self, context: &RequestContext<RoleServer>) -> Option<Offer> {
        if !self.evaluations.runs().are_stored() {
            return None;
        }
        let able = context.client_capabilities();
        let is_card = card::is_shown(able.as_ref());
        let has_forms = match is_stateless(context) {
            true => multi_round::shows_forms(able),
            false => AskingClient::is_declared(&context.peer),
        };
        match has_forms {
            true => None,
            false if is_card => Some(Offer::Card),
            false => (self.settings.approve_tool && !self.over_http).then_some(Offer::Prompt),
        }
    }
}
