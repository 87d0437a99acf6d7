//! Asking the user of the client during a call, through MCP elicitation (revision 2025-11-25, `elicitation/create`).

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{ElicitRequestParams, ElicitationAction, ElicitationSchema, EnumSchema};
use rmcp::service::{ElicitationMode, Peer};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::server::approvals::{Answer, Approver, LaterCalls, Question};

use super::doors::Doors;
use super::form_text::form_text;
use super::multi_round::NextRound;

/// The form field that must be set to true.
const FIELD: &str = "allow";

/// The form field that says which later calls are allowed too, and its options.
const LATER: &str = "for";
const THIS_CALL: &str = "this call only";
const SAME_ARGUMENTS: &str = "this tool with these arguments, for this session";
const SAME_TOOL: &str = "this tool, for this session";

/// A question on its way to the client.
struct Asked {
    question: Question,
    patience: Duration,
    answer: oneshot::Sender<Heard>,
}

/// What was heard from a client that was to show a form.
enum Heard {
    /// A person has answered.
    Answer(Answer),
    /// The form was declined or cancelled before a person can have read it: some clients do so in place of showing it.
    RefusedAtOnce,
    /// Nothing in time, or an error; the reason, as a clause.
    Nothing(String),
    /// Nothing, since the call has ended.
    Over,
}

/// Time for the answer to a form of a client that has not shown one before, if the run can wait for another door.
const UNPROVEN: Duration = Duration::from_secs(20);

/// Time within which no person has read a form.
const AT_ONCE: Duration = Duration::from_secs(1);

/// A client that can show a form to a person. Its questions are passed on by [`Questions`].
pub(in crate::server) struct AskingClient {
    questions: mpsc::Sender<Asked>,
    /// How a run waits if the client does not show its form, and where that is remembered.
    otherwise: Option<(NextRound, Arc<Doors>)>,
}

/// The questions of one call. They are sent by the task that handles the call, because over HTTP they travel on the
/// stream of its response.
pub(in crate::server) struct Questions {
    peer: Peer<RoleServer>,
    asked: mpsc::Receiver<Asked>,
}

impl AskingClient {
    /// True if a client has declared support for forms.
    pub(super) fn is_declared(peer: &Peer<RoleServer>) -> bool {
        peer.supported_elicitation_modes().contains(&ElicitationMode::Form)
    }

    /// Returns the client, if it has declared support for forms. A run waits `otherwise`, if that is possible.
    pub(super) fn of(
        peer: &Peer<RoleServer>,
        otherwise: Option<(NextRound, Arc<Doors>)>,
    ) -> Option<(AskingClient, Questions)> {
        AskingClient::is_declared(peer).then(|| {
            let (questions, asked) = mpsc::channel(1);
            (AskingClient { questions, otherwise }, Questions { peer: peer.clone(), asked })
        })
    }

    /// Asks by a form.
    async fn heard(&self, question: Question, patience: Duration) -> Heard {
        let (answer, answered) = oneshot::channel();
        match self.questions.send(Asked { question, patience, answer }).await {
            Ok(()) => answered.await.unwrap_or(Heard::Over),
            Err(_) => Heard::Over,
        }
    }
}

impl Approver for AskingClient {
    fn ask(&self, question: Question, patience: Duration) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            let Some((next, doors)) = &self.otherwise else {
                return match self.heard(question, patience).await {
                    Heard::Answer(answer) => answer,
                    Heard::RefusedAtOnce => Answer::No,
                    Heard::Nothing(reason) => Answer::Unavailable(reason),
                    Heard::Over => Answer::Unavailable("the call has ended".to_owned()),
                };
            };
            let shorter = if doors.shows_forms() { patience } else { patience.min(UNPROVEN) };
            match self.heard(question.clone(), shorter).await {
                Heard::Answer(answer) => {
                    doors.shown();
                    answer
                }
                Heard::RefusedAtOnce if doors.shows_forms() => Answer::No,
                heard @ (Heard::RefusedAtOnce | Heard::Nothing(_)) => {
                    // Too short a time says nothing about the client.
                    if matches!(heard, Heard::RefusedAtOnce) || patience >= UNPROVEN {
                        doors.not_shown();
                    }
                    next.ask(question, patience).await
                }
                // The call was answered, and its program goes on.
                Heard::Over => next.ask(question, patience).await,
            }
        })
    }
}

impl Questions {
    /// Passes questions on while `work` goes on, or until `end`, but not while a person reads one. Returns `None` if the
    /// work has not ended.
    pub(super) async fn during<T>(mut self, work: impl Future<Output = T>, end: impl Future<Output = ()>) -> Option<T> {
        let (mut work, mut end) = (pin!(work), pin!(end));
        loop {
            tokio::select! {
                biased;
                outcome = &mut work => return Some(outcome),
                () = &mut end => return None,
                Some(Asked { question, patience, answer }) = self.asked.recv() => {
                    let asking = Box::pin(ask(&self.peer, &question, patience));
                    tokio::select! {
                        biased;
                        outcome = &mut work => return Some(outcome),
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

/// Returns the form for a question that offers later calls.
pub(super) fn form(later: &[LaterCalls]) -> Result<ElicitationSchema, String> {
    let mut form = ElicitationSchema::builder().required_bool(FIELD);
    if !later.is_empty() {
        let options = std::iter::once(THIS_CALL).chain(later.iter().map(|later| option(*later)));
        let options = EnumSchema::builder(options.map(str::to_owned).collect());
        form = form.optional_enum_schema(LATER, options.with_default(THIS_CALL)?.build());
    }
    form.build().map_err(str::to_owned)
}

fn option(later: LaterCalls) -> &'static str {
    match later {
        LaterCalls::SameArguments => SAME_ARGUMENTS,
        LaterCalls::SameTool => SAME_TOOL,
    }
}

/// Returns the later calls that an option stands for.
fn later_calls(given: &str) -> Option<LaterCalls> {
    [LaterCalls::SameArguments, LaterCalls::SameTool].into_iter().find(|later| option(*later) == given)
}

/// Returns the answer in a form that was sent back.
pub(super) fn answered(content: Option<&Value>) -> Answer {
    let field = |name: &str| content.and_then(|content| content.get(name));
    let later = field(LATER).and_then(|later| later_calls(later.as_str()?));
    match (field(FIELD) == Some(&Value::Bool(true)), later) {
        (true, Some(later)) => Answer::YesAnd(later),
        (true, None) => Answer::Yes,
        (false, _) => Answer::No,
    }
}

/// Shows a question to the person who uses the client.
async fn ask(peer: &Peer<RoleServer>, question: &Question, patience: Duration) -> Heard {
    let requested_schema = match form(&question.later) {
        Ok(schema) => schema,
        Err(problem) => return Heard::Nothing(format!("the form cannot be made: {problem}")),
    };
    let message = form_text(question);
    let form = ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema };
    let asked = Instant::now();
    match peer.create_elicitation_with_timeout(form, Some(patience)).await {
        Ok(answer) if answer.action == ElicitationAction::Accept => Heard::Answer(answered(answer.content.as_ref())),
        Ok(_) if asked.elapsed() < AT_ONCE => Heard::RefusedAtOnce,
        Ok(_) => Heard::Answer(Answer::No),
        Err(problem) => Heard::Nothing(format!("the client did not ask: {problem}")),
    }
}
