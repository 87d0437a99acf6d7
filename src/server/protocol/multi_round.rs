//! Asking the user of the client by a call in several rounds (MCP 2026-07-28, multi round-trip requests): the reply to
//! the first round holds a form for each question and a sealed state, and the client repeats its call with the answers.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    InputRequest, InputRequests, InputRequiredResult, InputResponses, RequestStateCodec, RequestStateError,
    SealOptions,
};
use tokio::sync::OnceCell;

use crate::server::admission::request::Refused;
use crate::server::approvals::asked::{AskedCall, AskedRun};
use crate::server::approvals::{Answer, Approver, Question};
use crate::server::evaluations::Evaluations;
use crate::server::identity::sha256_of_json;
use crate::server::runs::Runs;

use super::elicitation::{answered, form};
use super::form_text::form_text;

/// An approver whose questions are asked after the call, while the run waits. A run that is resumed may wait again,
/// however many others do.
pub(in crate::server) struct NextRound {
    runs: Arc<Runs>,
    /// The principal of a run that has not waited before.
    principal: Option<String>,
    /// Why no further run of the principal can wait, once a question was asked.
    crowded: OnceCell<Option<String>>,
}

impl NextRound {
    pub(in crate::server) fn new(runs: &Arc<Runs>, principal: &str, is_resumed: bool) -> NextRound {
        let principal = (!is_resumed).then(|| principal.to_owned());
        NextRound { runs: Arc::clone(runs), principal, crowded: OnceCell::new() }
    }

    async fn crowded(&self) -> Option<String> {
        let principal = self.principal.clone()?;
        let runs = Arc::clone(&self.runs);
        let counted = tokio::task::spawn_blocking(move || runs.crowded(&principal)).await;
        counted.unwrap_or_else(|problem| Some(problem.to_string()))
    }
}

impl Approver for NextRound {
    fn ask(&self, _question: Question, _patience: Duration) -> BoxFuture<'_, Answer> {
        Box::pin(async {
            let crowded = self.crowded.get_or_init(|| self.crowded()).await;
            crowded.clone().map_or(Answer::Later, Answer::Unavailable)
        })
    }
}

/// True if a client can show a form to a person. A client that names no mode shows forms.
pub(in crate::server) fn shows_forms(capabilities: Option<ClientCapabilities>) -> bool {
    let elicitation = capabilities.and_then(|capabilities| capabilities.elicitation);
    elicitation.is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none())
}

/// The principal and the arguments of a call, to which its state is bound.
pub(in crate::server) struct Binding(Vec<u8>);

impl Binding {
    /// Returns the binding of a call whose program may wait, or is resumed.
    pub(in crate::server) fn of(
        principal: &str,
        call: &CallToolRequestParams,
        capabilities: Option<ClientCapabilities>,
    ) -> Option<Binding> {
        let is_needed = call.request_state.is_some() || shows_forms(capabilities);
        let digest = is_needed.then(|| sha256_of_json(&call.arguments).ok()).flatten()?;
        Some(Binding(format!("{digest}\n{principal}").into_bytes()))
    }
}

/// Seals and opens the states of calls, once there is a key.
#[derive(Default)]
pub(in crate::server) struct Rounds(OnceCell<RequestStateCodec>);

impl Rounds {
    async fn codec(&self, evaluations: &Evaluations) -> Result<&RequestStateCodec, String> {
        let made = self.0.get_or_try_init(|| async {
            let key = evaluations.sealing_key().await?;
            RequestStateCodec::try_new(key).map_err(|problem| problem.to_string())
        });
        made.await.map_err(|problem| format!("there is no key to seal the state of the call: {problem}"))
    }

    /// Returns the result of a round that ends with the questions of a run.
    pub(in crate::server) async fn ask(
        &self,
        evaluations: &Evaluations,
        asked: &AskedRun,
        binding: &Binding,
    ) -> Result<InputRequiredResult, String> {
        let mut requests = InputRequests::new();
        for AskedCall { place, question, .. } in &asked.calls {
            let requested_schema = form(&question.later)?;
            let message = form_text(question);
            let form = ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema };
            requests.insert(key(*place), InputRequest::Elicitation(ElicitRequest::new(form)));
        }
        let options = SealOptions::new().associated_data(&binding.0).ttl(asked.expires);
        let state = format!("{} {}", asked.identity, asked.round);
        let sealed = self.codec(evaluations).await?.seal_with(state.as_bytes(), &options);
        Ok(InputRequiredResult::new(Some(requests), Some(sealed)))
    }

    /// Returns the identity of the run that a repeated call resumes, and the round of questions that it answers; `None`
    /// for a first round.
    ///
    /// # Errors
    /// Refuses a state that is not ours, is tampered with, has expired, or belongs to another principal or other
    /// arguments, and answers without a state: the calls of the first round would be made again.
    pub(in crate::server) async fn resumed(
        &self,
        evaluations: &Evaluations,
        binding: Option<&Binding>,
        call: &CallToolRequestParams,
    ) -> Result<Option<(String, u32)>, Refused> {
        let Some(state) = &call.request_state else {
            return match &call.input_responses {
                Some(responses) if !responses.is_empty() => Err(Refused::of_client(
                    "InvalidArguments",
                    "the call has `inputResponses` without the `requestState` of the reply that asked for them; nothing \
                     was evaluated",
                )),
                _ => Ok(None),
            };
        };
        let bound_to = binding.map(|binding| &*binding.0).unwrap_or_default();
        let no_key = |problem| Refused::new("RunNotResumed", format!("{problem}; nothing was evaluated"));
        let codec = self.codec(evaluations).await.map_err(no_key)?;
        let opened = codec.open_with(state, bound_to);
        let opened = opened.map_err(|problem| {
            let why = match problem {
                RequestStateError::Expired => "it has expired".to_owned(),
                RequestStateError::IntegrityCheckFailed => {
                    "it was changed, is from a server that has ended, or belongs \
                    to a call with other arguments"
                        .to_owned()
                }
                other => other.to_string(),
            };
            refused(&why)
        })?;
        let state = String::from_utf8(opened).unwrap_or_default();
        let named = state.split_once(' ').and_then(|(run, round)| Some((run.to_owned(), round.parse().ok()?)));
        named.map(Some).ok_or_else(|| refused("it names no run"))
    }
}

/// Returns the refusal of a state, with the reason as a clause.
fn refused(why: &str) -> Refused {
    let message = format!(
        "the `requestState` of this call is not accepted: {why}; nothing was evaluated; to start over, call without it"
    );
    Refused::of_client("RunNotResumed", message)
}

/// The key of a question in the forms of a round.
fn key(place: usize) -> String {
    format!("call-{:03}", place + 1)
}

/// Returns the answer of a round to the question about a call; `None` if there is none, or one that is not an answer to a
/// form.
pub(in crate::server) fn answer(asked: &AskedCall, responses: Option<&InputResponses>) -> Option<Answer> {
    let answer = responses?.get(&key(asked.place))?;
    let answer = serde_json::from_value::<ElicitResult>(answer.clone()).ok()?;
    Some(match answer.action {
        ElicitationAction::Accept => answered(answer.content.as_ref()),
        _ => Answer::No,
    })
}
