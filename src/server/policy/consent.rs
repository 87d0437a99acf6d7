//! Applies a policy to the calls of one evaluation: decides, counts and asks, call by call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use serde_json::{Map, Value};

use crate::lang::{self, CallId, Tool, ToolCall, ToolReply};
use crate::server::identity::Identity;
use crate::server::origins::Origins;

use super::guards::Objection;
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
    /// The person is asked later: the run waits.
    Later,
}

/// Decisions that people have made about calls beforehand.
pub(in crate::server) trait Grants: Send + Sync {
    /// Takes one call from a grant that covers it, and returns the grant as a clause; `None` if there is none. Blocks.
    ///
    /// # Errors
    /// Returns why that cannot be found out, as a clause.
    fn take(&self, asked: &lang::Question) -> Result<Option<String>, String>;
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
    grants: Option<Arc<dyn Grants>>,
    /// The origins of the values of the session, if they are recorded.
    origins: Option<Arc<Origins>>,
    /// The calls that a grant covers, each with the grant as a clause.
    granted: Mutex<HashMap<CallId, String>>,
    /// The calls that this evaluation has made.
    counts: Counts,
    /// The calls on which a person must decide.
    asked: Mutex<HashMap<CallId, Asked>>,
}

/// A call on which a person must decide.
struct Asked {
    rule: String,
    /// The clause that tells the operator how to allow the call.
    advice: String,
    /// The time until which an answer is awaited.
    deadline: Instant,
}

/// A call that is about to be made.
pub(in crate::server) struct IntendedCall<'c> {
    /// The call as the program made it.
    pub(in crate::server) given: &'c ToolCall,
    pub(in crate::server) tool: &'c Tool,
    /// The name of the tool among the others.
    pub(in crate::server) name: &'c ToolName<'c>,
    /// The arguments as they will be sent.
    pub(in crate::server) arguments: &'c Map<String, Value>,
    /// False if the arguments could not be checked against the schema of the tool.
    pub(in crate::server) is_checked: bool,
    /// The configuration file to which the operator can add a rule.
    pub(in crate::server) file: &'c str,
    pub(in crate::server) remaining: Duration,
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
        Consent {
            identity,
            approver,
            grants: None,
            origins: None,
            granted: Mutex::default(),
            counts: Counts::default(),
            asked: Mutex::default(),
        }
    }

    /// Sets the grants that are consulted before a person is asked.
    pub(in crate::server) fn with_grants(self, grants: Option<Arc<dyn Grants>>) -> Consent {
        Consent { grants, ..self }
    }

    /// Sets the origins of the values of the session, for guards.
    pub(in crate::server) fn with_origins(self, origins: Option<Arc<Origins>>) -> Consent {
        Consent { origins, ..self }
    }

    /// Returns the principal of the evaluation.
    pub(in crate::server) fn principal(&self) -> &str {
        &self.identity.principal
    }

    /// Decides on a call of a tool; `counts` holds the calls of all principals. The reply to a call on which a person must
    /// decide is a question; see [`Consent::decide`].
    pub(in crate::server) fn to(&self, call: &IntendedCall<'_>, policy: &Policy, counts: &Counts) -> Ruling {
        let IntendedCall { given, tool, name, .. } = *call;
        let Decision { verdict, rule } = match call.is_checked {
            true => policy.decide_on(name, &tool.hints),
            false => policy.decide_unchecked(name, &tool.hints),
        };
        if verdict == Verdict::Deny {
            return Ruling::denied(rule);
        }
        let objection = policy.objection(name, call.arguments, self.origins.as_deref());
        let objection = match objection {
            Some(Objection { verdict: Verdict::Deny, rule }) => return Ruling::denied(rule),
            objection => objection,
        };
        let arguments = || Value::Object(call.arguments.clone());
        // The person has seen these arguments, and the call was counted when they were asked.
        if let Some(approved) = &given.approved
            && approved.as_bytes() == arguments().to_string().as_bytes()
        {
            let granted = self.granted().remove(&given.id);
            let why = granted.unwrap_or_else(|| "a person said yes".to_owned());
            return self.allowed(format!("{rule}; {why}"), call);
        }
        let caller = Caller { tool: name, principal: &self.identity.principal };
        let now = Instant::now();
        let room = self.counts.take(policy, true, caller, now).and_then(|()| counts.take(policy, false, caller, now));
        if let Err(used_up) = room {
            return Ruling::denied(used_up);
        }
        let is_guarded = objection.is_some();
        // What a person has approved are other arguments, as of a rehearsal: these are asked about, whatever the policy.
        if verdict == Verdict::Allow && !is_guarded && given.approved.is_none() {
            return self.allowed(rule, call);
        }
        let rule = match (objection, verdict) {
            (Some(objection), _) => objection.rule,
            (None, Verdict::Allow) => "the arguments are not those that a person has approved".to_owned(),
            (None, _) => rule,
        };
        let place = if call.file.is_empty() { "the configuration" } else { name_of(call.file) };
        let advice = match is_guarded {
            true => format!("an operator allows it by changing the guard in {place}"),
            false => {
                format!("an operator allows it by `policy: {{allow: [{}/{}]}}` in {place}", tool.server, tool.name)
            }
        };
        let asked = lang::Question {
            id: given.id.clone(),
            server: tool.server.as_str().into(),
            tool: tool.name.as_str().into(),
            arguments: arguments().to_string(),
            reason: rule.clone(),
            is_guarded,
        };
        let refused = match self.question(&asked).unshowable() {
            Some(why) => ToolReply::Unapproved(format!("{rule}; {why}; {advice}")),
            None => {
                let deadline = now + call.remaining.saturating_sub(MARGIN).min(PATIENCE);
                self.asked().insert(given.id.clone(), Asked { rule: rule.clone(), advice, deadline });
                ToolReply::Ask(Box::new(asked))
            }
        };
        Ruling { rule, refused: Some(refused) }
    }

    /// Allows a call. What is sent does not come from the tools that repeat it.
    fn allowed(&self, rule: String, call: &IntendedCall<'_>) -> Ruling {
        if let Some(origins) = &self.origins {
            origins.add_sent(&Value::Object(call.arguments.clone()).to_string());
        }
        Ruling { rule, refused: None }
    }

    /// Asks a person to decide on calls, one after the other. The answer to each applies to that call only.
    pub(in crate::server) async fn decide(&self, questions: &[lang::Question]) -> Vec<lang::Decision> {
        let mut decisions = Vec::with_capacity(questions.len());
        for question in questions {
            if let Some(granted) = self.grant(question).await {
                self.asked().remove(&question.id);
                self.granted().insert(question.id.clone(), granted);
                decisions.push(lang::Decision::Approved);
                continue;
            }
            // A question of a resumed run was asked in an earlier evaluation.
            let asked = self.asked().remove(&question.id).unwrap_or_else(|| Asked {
                rule: question.reason.clone(),
                advice: "the call was not made".to_owned(),
                deadline: Instant::now() + PATIENCE,
            });
            let Asked { rule, advice, deadline } = asked;
            let patience = deadline.saturating_duration_since(Instant::now());
            let answer = self.approver.ask(self.question(question), patience);
            let answer = tokio::time::timeout_at(deadline.into(), answer).await;
            let answer = answer.unwrap_or_else(|_| Answer::Unavailable("no one answered in time".to_owned()));
            decisions.push(match answer {
                Answer::Yes => lang::Decision::Approved,
                Answer::No => lang::Decision::Denied(format!("a person was asked and said no ({rule})")),
                Answer::Unavailable(why) => lang::Decision::Unavailable(format!("{rule}; {why}; {advice}")),
                Answer::Later => lang::Decision::Pending,
            });
        }
        decisions
    }

    /// Returns the grant that covers a call, as a clause. Without an answer of the store, a person is asked.
    async fn grant(&self, question: &lang::Question) -> Option<String> {
        let (grants, asked) = (Arc::clone(self.grants.as_ref()?), question.clone());
        let taken = tokio::task::spawn_blocking(move || grants.take(&asked)).await;
        match taken.unwrap_or_else(|problem| Err(problem.to_string())) {
            Ok(granted) => granted,
            Err(problem) => {
                tracing::warn!(problem, "the grants for a call could not be read, so a person is asked");
                None
            }
        }
    }

    fn granted(&self) -> MutexGuard<'_, HashMap<CallId, String>> {
        self.granted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the question as a person sees it.
    fn question(&self, asked: &lang::Question) -> Question {
        Question::of(asked, &self.identity.program)
    }

    fn asked(&self) -> MutexGuard<'_, HashMap<CallId, Asked>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
