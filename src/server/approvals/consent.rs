//! Applies a policy to the calls of one evaluation: decides, counts and asks, call by call.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use serde_json::{Map, Value};

use lispbox_policy::internal::{Approval, Caller, JudgedCall, Judgement, Origins, name_of};

use crate::lang::{self, CallId, SystemClock, Tool, ToolCall, ToolReply};
use crate::server::identity::Identity;

use crate::server::policy::{Counts, Policy, ToolName};

use super::{LaterCalls, Question};

/// Maximum time for a person to answer. The evaluation may end earlier because of its limit `total`.
const PATIENCE: Duration = Duration::from_secs(600);
/// Time reserved for the answer to be delivered before the evaluation ends.
const MARGIN: Duration = Duration::from_secs(2);
/// Maximum time for another process that counts a call of a grant; it outlasts the lease of a process that has died.
const COUNTING: Duration = Duration::from_secs(12);
/// Interval between two attempts to count a call of a grant.
const LOOK: Duration = Duration::from_millis(20);

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
    /// The call may be made, and so may these later ones, of those that the question offers.
    YesAnd(LaterCalls),
    /// The call must not be made.
    No,
    /// No answer was given; the reason, as a clause.
    Unavailable(String),
    /// The person is asked later: the run waits.
    Later,
}

/// Decisions that people have made about calls beforehand. All functions block while a store is read or written, but do
/// not wait for other processes.
pub(in crate::server) trait Grants: Send + Sync {
    /// Returns for each call the grant that covers it now, as a clause, if all of them are made; nothing is counted.
    ///
    /// # Errors
    /// Returns why that cannot be found out, as a clause.
    fn covering(&self, asked: &[lang::Question]) -> Result<Vec<Option<String>>, String>;

    /// Takes one call, which is about to be sent, from a grant that covers it.
    ///
    /// # Errors
    /// Returns why that cannot be done, as a clause.
    fn take(&self, asked: &lang::Question) -> Result<Take, String>;

    /// Records that a person has allowed later calls together with a call.
    ///
    /// # Errors
    /// Returns why that cannot be done, as a clause.
    fn give(&self, asked: &lang::Question, later: LaterCalls) -> Result<(), String>;
}

/// The outcome of taking a call from a grant.
pub(in crate::server) enum Take {
    /// No grant covers the call.
    Uncovered,
    /// Another process counts a call of the grant at this moment.
    Busy,
    /// The call is counted.
    Taken(TakenCall),
}

/// A call that a grant has counted.
#[derive(Clone)]
pub(in crate::server) struct TakenCall {
    /// The grant, as a clause.
    pub(in crate::server) by: String,
    /// Finds out whether the grant has not been revoked and has not expired since. Blocks.
    pub(in crate::server) holds: Arc<dyn Fn() -> Result<bool, String> + Send + Sync>,
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
    /// The calls that a grant covered when they were decided on, and that have not been sent.
    covered: Mutex<HashSet<CallId>>,
    /// The calls that a grant has counted, each with the question that it answers.
    taken: Mutex<HashMap<CallId, (lang::Question, TakenCall)>>,
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
            covered: Mutex::default(),
            taken: Mutex::default(),
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

    /// Decides on a call of a tool that is about to be sent; `counts` holds the calls of all principals. The reply to a call
    /// on which a person must decide is a question; see [`Consent::decide`]. A call that a grant covered then is counted by
    /// the grant now, or asked about again.
    pub(in crate::server) async fn to(&self, call: &IntendedCall<'_>, policy: &Policy, counts: &Counts) -> Ruling {
        let mut ruling = self.by_policy(call, policy, counts);
        let was_covered = self.covered().remove(&call.given.id);
        if let Some(ToolReply::Ask(asked)) = &ruling.refused
            && was_covered
            && let Some(taken) = self.take(asked).await
        {
            self.asked().remove(&asked.id);
            let rule = format!("{}; {}", ruling.rule, taken.by);
            self.taken().insert(asked.id.clone(), ((**asked).clone(), taken));
            ruling = self.allowed(rule, call);
        }
        ruling
    }

    /// Decides as [`Consent::to`] does, without grants.
    pub(super) fn by_policy(&self, call: &IntendedCall<'_>, policy: &Policy, counts: &Counts) -> Ruling {
        let IntendedCall { given, tool, name, .. } = *call;
        let arguments = || Value::Object(call.arguments.clone()).to_string();
        let judged = JudgedCall {
            name,
            hints: &tool.hints,
            schema: &tool.input_schema,
            arguments: call.arguments,
            is_checked: call.is_checked,
            approval: match &given.approved {
                None => Approval::None,
                Some(approved) if approved.as_bytes() == arguments().as_bytes() => Approval::These,
                Some(_) => Approval::Others,
            },
        };
        let count = || {
            // A covered call was counted when it was asked about.
            if self.covered().contains(&given.id) {
                return Ok(());
            }
            let caller = Caller { tool: name, principal: &self.identity.principal };
            let now = SystemClock.monotonic();
            self.counts.take(policy, true, caller, now)?;
            counts.take(policy, false, caller, now)
        };
        let (rule, is_guarded) = match policy.judge(&judged, self.origins.as_deref(), count) {
            Judgement::Denied(rule) => return Ruling::denied(rule),
            Judgement::Allowed(rule) => return self.allowed(rule, call),
            Judgement::Asked { rule, is_guarded } => (rule, is_guarded),
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
            arguments: arguments(),
            reason: rule.clone(),
            is_guarded,
        };
        let refused = match self.question(&asked).unshowable() {
            Some(why) => ToolReply::Unapproved(format!("{rule}; {why}; {advice}")),
            None => {
                let deadline = Instant::now() + call.remaining.saturating_sub(MARGIN).min(PATIENCE);
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

    /// Asks a person to decide on calls, one after the other. The answer to each applies to that call, and to later ones
    /// if the person says so.
    pub(in crate::server) async fn decide(&self, questions: &[lang::Question]) -> Vec<lang::Decision> {
        let mut decisions = Vec::with_capacity(questions.len());
        let mut covering = self.covering(questions).await;
        for (at, question) in questions.iter().enumerate() {
            if let Some(by) = covering[at].take() {
                self.asked().remove(&question.id);
                self.covered().insert(question.id.clone());
                decisions.push(lang::Decision::Covered(by));
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
            if let Answer::YesAnd(later) = answer {
                self.give(question, later).await;
                covering = self.covering(questions).await;
            }
            decisions.push(match answer {
                Answer::Yes | Answer::YesAnd(_) => lang::Decision::Approved,
                Answer::No => lang::Decision::Denied(format!("a person was asked and said no ({rule})")),
                Answer::Unavailable(why) => lang::Decision::Unavailable(format!("{rule}; {why}; {advice}")),
                Answer::Later => lang::Decision::Pending,
            });
        }
        decisions
    }

    /// Returns for each call the grant that covers it now, as a clause. Without an answer of the store, a person is asked.
    async fn covering(&self, questions: &[lang::Question]) -> Vec<Option<String>> {
        let asked = questions.to_vec();
        let covering = self.of_grants(move |grants| grants.covering(&asked)).await;
        covering.unwrap_or_else(|| vec![None; questions.len()])
    }

    /// Records that a person has allowed later calls, if the question has offered that.
    async fn give(&self, question: &lang::Question, later: LaterCalls) {
        if self.question(question).later.contains(&later) {
            let asked = question.clone();
            self.of_grants(move |grants| grants.give(&asked, later)).await;
        }
    }

    /// Takes a call from a grant that covers it. Waits for another process that counts a call of the grant.
    async fn take(&self, question: &lang::Question) -> Option<TakenCall> {
        let begun = Instant::now();
        loop {
            let asked = question.clone();
            match self.of_grants(move |grants| grants.take(&asked)).await? {
                Take::Taken(taken) => return Some(taken),
                Take::Uncovered => return None,
                Take::Busy if begun.elapsed() >= COUNTING => return None,
                Take::Busy => tokio::time::sleep(LOOK).await,
            }
        }
    }

    /// Checks once more that the grant by which a call was allowed still holds, just before the call is sent. Returns the
    /// question that is to be asked if it does not.
    pub(in crate::server) async fn lapsed(&self, call: &CallId) -> Option<ToolReply> {
        let (question, taken) = self.taken().get(call).cloned()?;
        if self.of_grants(move |_| (taken.holds)()).await == Some(true) {
            return None;
        }
        self.taken().remove(call);
        Some(ToolReply::Ask(Box::new(question)))
    }

    /// Records that a call has ended.
    pub(in crate::server) fn ended(&self, call: &CallId) {
        self.taken().remove(call);
    }

    /// Does work with the grants that blocks; returns `None` if there are none, or if they cannot be read.
    async fn of_grants<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Grants) -> Result<T, String> + Send + 'static,
    ) -> Option<T> {
        let grants = Arc::clone(self.grants.as_ref()?);
        let done = tokio::task::spawn_blocking(move || work(&*grants)).await;
        match done.unwrap_or_else(|problem| Err(problem.to_string())) {
            Ok(done) => Some(done),
            Err(problem) => {
                tracing::warn!(problem, "the grants for a call could not be used, so a person is asked");
                None
            }
        }
    }

    fn covered(&self) -> MutexGuard<'_, HashSet<CallId>> {
        self.covered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<CallId, (lang::Question, TakenCall)>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the question as a person sees it.
    fn question(&self, asked: &lang::Question) -> Question {
        let question = Question::of(asked, &self.identity.program);
        if self.grants.is_some() { question.offering_later(asked.is_guarded) } else { question }
    }

    fn asked(&self) -> MutexGuard<'_, HashMap<CallId, Asked>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
