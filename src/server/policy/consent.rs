//! Applies a policy to the calls of one evaluation: decides, counts and asks, call by call.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use crate::lang::{Tool, ToolReply};
use crate::server::identity::Identity;

use super::quotas::Caller;
use super::{Counts, Decision, Policy, Question, ToolName, Verdict, name_of};

/// Maximum time for a person to answer. The evaluation may end earlier because of its limit `total`.
const PATIENCE: Duration = Duration::from_secs(600);
/// Time reserved for the answer to be delivered before the evaluation ends.
const MARGIN: Duration = Duration::from_secs(2);

/// A channel to a person who decides whether a call may be made.
pub trait Approver: Send + Sync {
    /// Asks a person, waiting at most `patience`. One evaluation asks only one question at a time. The answer applies
    /// to this call only.
    fn ask(&self, question: Question, patience: Duration) -> BoxFuture<'_, Answer>;
}

/// The answer of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The call may be made.
    Yes,
    /// The call must not be made.
    No,
    /// No answer was given; the reason, as a clause.
    Unavailable(String),
}

/// An approver without a person to ask; holds the reason, as a clause.
pub struct NoApprover(pub String);

impl Approver for NoApprover {
    fn ask(&self, _question: Question, _patience: Duration) -> BoxFuture<'_, Answer> {
        Box::pin(std::future::ready(Answer::Unavailable(self.0.clone())))
    }
}

/// Returns the approver for when there is neither a client nor a terminal.
pub(in crate::server) fn no_approver() -> NoApprover {
    NoApprover("no one can be asked for approval here".to_owned())
}

/// The state of one evaluation: the calls allowed so far, and the approver to ask about further ones.
pub(in crate::server) struct Consent {
    identity: Arc<Identity>,
    approver: Arc<dyn Approver>,
    /// The calls that this evaluation has made.
    counts: Counts,
    /// Held while a person is being asked.
    asking: Mutex<()>,
}

/// The decision on one call.
pub(in crate::server) struct Ruling {
    /// The rule that decided, in words.
    pub(in crate::server) rule: String,
    /// The reply to the program, if the call is not made.
    pub(in crate::server) refused: Option<ToolReply>,
}

impl Ruling {
    /// Creates the refusal of a call by that rule.
    pub(in crate::server) fn denied(rule: String) -> Ruling {
        Ruling { refused: Some(ToolReply::Denied(rule.clone())), rule }
    }
}

impl Consent {
    /// Creates the state for one evaluation.
    pub(in crate::server) fn new(identity: Arc<Identity>, approver: Arc<dyn Approver>) -> Consent {
        Consent { identity, approver, counts: Counts::default(), asking: Mutex::default() }
    }

    /// Returns the principal of the evaluation.
    pub(in crate::server) fn principal(&self) -> &str {
        &self.identity.principal
    }

    /// Decides on a call of a tool, waiting for a person if one must be asked. `name` is the name of the tool among the
    /// others, `is_checked` is false if the arguments could not be checked against the schema of the tool, `file` is
    /// the configuration file to which the operator can add a rule, and `counts` holds the calls of all principals.
    #[expect(clippy::too_many_arguments, reason = "a call, what decides on it, and what bounds it")]
    pub(in crate::server) async fn to(
        &self,
        tool: &Tool,
        name: &ToolName<'_>,
        arguments: &Map<String, Value>,
        is_checked: bool,
        policy: &Policy,
        counts: &Counts,
        file: &str,
        remaining: Duration,
    ) -> Ruling {
        let Decision { verdict, rule } = match is_checked {
            true => policy.decide_on(name, &tool.hints),
            false => policy.decide_unchecked(name, &tool.hints),
        };
        if verdict == Verdict::Deny {
            return Ruling::denied(rule);
        }
        let caller = Caller { tool: name, principal: &self.identity.principal };
        let now = Instant::now();
        let room = self.counts.take(policy, true, caller, now).and_then(|()| counts.take(policy, false, caller, now));
        if let Err(used_up) = room {
            return Ruling::denied(used_up);
        }
        if verdict == Verdict::Allow {
            return Ruling { rule, refused: None };
        }
        let deadline = now + remaining.saturating_sub(MARGIN).min(PATIENCE);
        let question = Question {
            server: tool.server.clone(),
            tool: tool.name.clone(),
            arguments: Value::Object(arguments.clone()),
            program: self.identity.program.clone(),
            rule: rule.clone(),
        };
        let answer = match question.unshowable() {
            Some(why) => Answer::Unavailable(why),
            None => self.ask(question, deadline).await,
        };
        let refused = match answer {
            Answer::Yes => return Ruling { rule: format!("{rule}; a person said yes"), refused: None },
            Answer::No => ToolReply::Denied(format!("a person was asked and said no ({rule})")),
            Answer::Unavailable(why) => {
                let name = format!("{}/{}", tool.server, tool.name);
                let place = if file.is_empty() { "the configuration" } else { name_of(file) };
                ToolReply::Unapproved(format!(
                    "{rule}; {why}; an operator allows it by `policy: {{allow: [{name}]}}` in {place}"
                ))
            }
        };
        Ruling { rule, refused: Some(refused) }
    }

    /// Asks a person, after earlier questions of this evaluation have been answered.
    async fn ask(&self, question: Question, deadline: Instant) -> Answer {
        let answered = async {
            let _turn = self.asking.lock().await;
            self.approver.ask(question, deadline.saturating_duration_since(Instant::now())).await
        };
        let answer = tokio::time::timeout_at(deadline.into(), answered).await;
        answer.unwrap_or_else(|_| Answer::Unavailable("no one answered in time".to_owned()))
    }
}
