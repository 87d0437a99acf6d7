//! One evaluation's way through a policy: what is decided, counted and asked, call by call.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use super::quotas::Caller;
use super::{Counts, Decision, Policy, Question, ToolName, Verdict, name_of};
use crate::lang::{Tool, ToolReply};
use crate::server::identity::Identity;

/// How long a person has at most. The evaluation may end before, by its limit `total`.
const PATIENCE: Duration = Duration::from_secs(600);
/// What is left for the answer to come back before the evaluation ends.
const MARGIN: Duration = Duration::from_secs(2);

/// Someone who can ask a person whether a call may be made.
pub trait Approver: Send + Sync {
    /// Asks, for at most `patience`. Only one question is asked at a time for one evaluation. The answer holds for this
    /// call and for no other.
    fn ask(&self, question: Question, patience: Duration) -> BoxFuture<'_, Answer>;
}

/// What a person said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The call may be made.
    Yes,
    /// It may not.
    No,
    /// Nobody said anything; why, as a clause.
    Nobody(String),
}

/// An approver without a person; says why, as a clause.
pub struct Nobody(pub String);

impl Approver for Nobody {
    fn ask(&self, _question: Question, _patience: Duration) -> BoxFuture<'_, Answer> {
        Box::pin(std::future::ready(Answer::Nobody(self.0.clone())))
    }
}

/// Where no client and no terminal is there.
pub(in crate::server) fn nobody() -> Nobody {
    Nobody("nobody can be asked here".to_owned())
}

/// What one evaluation has been allowed so far, and who is asked about the rest.
pub(in crate::server) struct Consent {
    identity: Arc<Identity>,
    approver: Arc<dyn Approver>,
    /// The calls that this evaluation has made.
    counts: Counts,
    /// Held while a person is asked.
    asking: Mutex<()>,
}

/// What is decided on one call.
pub(in crate::server) struct Ruling {
    /// The rule that decided, in words.
    pub(in crate::server) rule: String,
    /// The reply to the program, if the call is not made.
    pub(in crate::server) refused: Option<ToolReply>,
}

impl Ruling {
    /// The call is refused by that rule.
    pub(in crate::server) fn denied(rule: String) -> Ruling {
        Ruling { refused: Some(ToolReply::Denied(rule.clone())), rule }
    }
}

impl Consent {
    /// For one evaluation.
    pub(in crate::server) fn new(identity: Arc<Identity>, approver: Arc<dyn Approver>) -> Consent {
        Consent { identity, approver, counts: Counts::default(), asking: Mutex::default() }
    }

    /// Whose evaluation it is.
    pub(in crate::server) fn principal(&self) -> &str {
        &self.identity.principal
    }

    /// Decides on a call of a tool, which waits for a person where one is asked. `name` is the tool's name among the others,
    /// `is_checked` is false where the arguments could not be checked against the tool's schema, `file` is where a rule of
    /// one's own would stand, `counts` are the calls of all principals.
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
            Some(why) => Answer::Nobody(why),
            None => self.ask(question, deadline).await,
        };
        let refused = match answer {
            Answer::Yes => return Ruling { rule: format!("{rule}; a person said yes"), refused: None },
            Answer::No => ToolReply::Denied(format!("a person was asked and said no ({rule})")),
            Answer::Nobody(why) => {
                let name = format!("{}/{}", tool.server, tool.name);
                let place = if file.is_empty() { "the configuration" } else { name_of(file) };
                ToolReply::Ask(format!(
                    "{rule}; {why}; an operator allows it by `policy: {{allow: [{name}]}}` in {place}"
                ))
            }
        };
        Ruling { rule, refused: Some(refused) }
    }

    /// Asks a person, once those who are asked before this one have answered.
    async fn ask(&self, question: Question, deadline: Instant) -> Answer {
        let answered = async {
            let _turn = self.asking.lock().await;
            self.approver.ask(question, deadline.saturating_duration_since(Instant::now())).await
        };
        let answer = tokio::time::timeout_at(deadline.into(), answered).await;
        answer.unwrap_or_else(|_| Answer::Nobody("nobody answered in time".to_owned()))
    }
}
