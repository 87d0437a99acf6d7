//! Asking the user of the client during a call, through MCP elicitation (revision 2025-11-25, `elicitation/create`).

use std::pin::pin;
use std::time::Duration;

use futures::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{ElicitRequestParams, ElicitationAction, ElicitationSchema};
use rmcp::service::{ElicitationMode, Peer};
use tokio::sync::{mpsc, oneshot};

use crate::server::policy::{Answer, Approver, Question};

/// The form field that must be set to true.
pub(super) const FIELD: &str = "allow";

/// A question on its way to the client.
struct Asked {
    question: Question,
    patience: Duration,
    answer: oneshot::Sender<Answer>,
}

/// A client that can show a form to a person. Its questions are passed on by [`Questions`].
pub(in crate::server) struct AskingClient(mpsc::Sender<Asked>);

/// The questions of one call. They are sent by the task that handles the call, because over HTTP they travel on the
/// stream of its response.
pub(in crate::server) struct Questions {
    peer: Peer<RoleServer>,
    asked: mpsc::Receiver<Asked>,
}

impl AskingClient {
    /// Returns the client, if it has declared support for forms.
    pub(in crate::server) fn of(peer: &Peer<RoleServer>) -> Option<(AskingClient, Questions)> {
        let can = peer.supported_elicitation_modes().contains(&ElicitationMode::Form);
        can.then(|| {
            let (sender, asked) = mpsc::channel(1);
            (AskingClient(sender), Questions { peer: peer.clone(), asked })
        })
    }
}

impl Approver for AskingClient {
    fn ask(&self, question: Question, patience: Duration) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let ended = || Answer::Unavailable("the call has ended".to_owned());
            match self.0.send(Asked { question, patience, answer }).await {
                Ok(()) => answered.await.unwrap_or_else(|_| ended()),
                Err(_) => ended(),
            }
        })
    }
}

impl Questions {
    /// Passes questions on while `work` goes on.
    pub(in crate::server) async fn during<T>(mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                outcome = &mut work => return outcome,
                Some(Asked { question, patience, answer }) = self.asked.recv() => {
                    let asking = ask(&self.peer, &question, patience);
                    tokio::select! {
                        biased;
                        outcome = &mut work => return outcome,
                        answered = asking => {
                            // The evaluation may have stopped waiting.
                            let _ = answer.send(answered);
                        }
                    }
                }
            }
        }
    }
}

/// Shows a question to the person who uses the client.
async fn ask(peer: &Peer<RoleServer>, question: &Question, patience: Duration) -> Answer {
    let requested_schema = ElicitationSchema::builder().required_bool(FIELD).build();
    let requested_schema = match requested_schema {
        Ok(schema) => schema,
        Err(problem) => return Answer::Unavailable(format!("the form cannot be made: {problem}")),
    };
    let message = question.to_string();
    let form = ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema };
    match peer.create_elicitation_with_timeout(form, Some(patience)).await {
        Ok(answer) if answer.action == ElicitationAction::Accept => {
            let is_set = answer.content.as_ref().and_then(|content| content.get(FIELD)) == Some(&true.into());
            if is_set { Answer::Yes } else { Answer::No }
        }
        Ok(_) => Answer::No,
        Err(problem) => Answer::Unavailable(format!("the client did not ask: {problem}")),
    }
}
