//! Asking the user of the client, through MCP elicitation (revision 2025-11-25, `elicitation/create`).

use std::time::Duration;

use futures::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{ElicitRequestParams, ElicitationAction, ElicitationSchema};
use rmcp::service::{ElicitationMode, Peer};

use crate::server::policy::{Answer, Approver, Question};

/// The form field that must be set to true.
pub(super) const FIELD: &str = "allow";

/// A client that can show a form to a person.
pub(in crate::server) struct AskingClient(Peer<RoleServer>);

impl AskingClient {
    /// Returns the client, if it has declared support for forms.
    pub(in crate::server) fn of(peer: &Peer<RoleServer>) -> Option<AskingClient> {
        let can = peer.supported_elicitation_modes().contains(&ElicitationMode::Form);
        can.then(|| AskingClient(peer.clone()))
    }
}

impl Approver for AskingClient {
    fn ask(&self, question: Question, patience: Duration) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            let requested_schema = ElicitationSchema::builder().required_bool(FIELD).build();
            let requested_schema = match requested_schema {
                Ok(schema) => schema,
                Err(problem) => return Answer::Unavailable(format!("the form cannot be made: {problem}")),
            };
            let form = ElicitRequestParams::FormElicitationParams {
                meta: None,
                message: question.to_string(),
                requested_schema,
            };
            match self.0.create_elicitation_with_timeout(form, Some(patience)).await {
                Ok(answer) if answer.action == ElicitationAction::Accept => {
                    let is_set = answer.content.as_ref().and_then(|content| content.get(FIELD)) == Some(&true.into());
                    if is_set { Answer::Yes } else { Answer::No }
                }
                Ok(_) => Answer::No,
                Err(problem) => Answer::Unavailable(format!("the client did not ask: {problem}")),
            }
        })
    }
}
