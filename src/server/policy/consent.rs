//! One evaluation's way through a policy: what is decided, counted and asked, call by call.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use super::quotas::Caller;
use super::{Counts, Decision, Policy, Verdict};
use crate::lang::{Tool, ToolReply};
use crate::server::identity::{Identity, sha256};

/// The most that a person is shown of the arguments, in characters.
const SHOWN: usize = 8_000;
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

/// A call that a person is to decide on. Its text shows it as a whole.
#[derive(Clone, Debug)]
pub struct Question {
    /// The server's name.
    pub server: String,
    /// The tool's exact name.
    pub tool: String,
    /// The arguments as they will be sent, an object.
    pub arguments: Value,
    /// The SHA-256 of the program's text, in hexadecimal.
    pub program: String,
    /// The rule by which a person is asked, as a clause.
    pub rule: String,
}

impl fmt::Display for Question {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Question { server, tool, arguments, program, rule } = self;
        let arguments = visible(&serde_json::to_string_pretty(arguments).unwrap_or_default());
        let program = program.get(..16).unwrap_or(program);
        let (server, tool, rule) = (visible(server), visible(tool), visible(rule));
        write!(
            formatter,
            "A program wants to call {server}/{tool} with\n{arguments}\n\nThe program's SHA-256 begins with {program}. You are asked because {rule}."
        )
    }
}

/// A text whose characters are all to be seen: others, such as those that turn the direction of writing, are written by
/// their numbers. What is too long keeps its beginning and its end.
fn visible(text: &str) -> String {
    let is_seen = |c: char| c == '\n' || !(c.is_control() || (!c.is_ascii() && is_unseen(c)));
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_seen(c) { shown.push(c) } else { shown.push_str(&format!("\\u{{{:x}}}", u32::from(c))) }
    }
    let count = shown.chars().count();
    if count <= SHOWN {
        return shown;
    }
    let (head, tail) = (SHOWN * 3 / 4, SHOWN / 4);
    let beginning: String = shown.chars().take(head).collect();
    let end: String = shown.chars().skip(count - tail).collect();
    let left = count - head - tail;
    let hash = sha256(text.as_bytes());
    format!("{beginning}\n… {left} characters are not shown here; SHA-256 of all {hash} …\n{end}")
}

fn is_unseen(c: char) -> bool {
    crate::server::quarantine::shows_nothing(c) || (c.is_whitespace() && c != ' ')
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

    /// Decides on a call of a tool with checked arguments, which waits for a person where one is asked. `file` is where
    /// a rule of one's own would stand, `counts` are the calls of all principals.
    pub(in crate::server) async fn to(
        &self,
        tool: &Tool,
        arguments: &Map<String, Value>,
        policy: &Policy,
        counts: &Counts,
        file: &str,
        remaining: Duration,
    ) -> Ruling {
        let Decision { verdict, rule } = policy.decide(&tool.server, &tool.name, &tool.hints);
        if verdict == Verdict::Deny {
            return Ruling::denied(rule);
        }
        let caller = Caller { server: &tool.server, tool: &tool.name, principal: &self.identity.principal };
        let now = Instant::now();
        let room = self.counts.take(policy, true, caller, now).and_then(|()| counts.take(policy, false, caller, now));
        if let Err(used_up) = room {
            return Ruling::denied(used_up);
        }
        if verdict == Verdict::Allow {
            return Ruling { rule, refused: None };
        }
        let deadline = now + remaining.saturating_sub(MARGIN).min(PATIENCE);
        let answer = match tokio::time::timeout_at(deadline.into(), self.asking.lock()).await {
            Ok(_turn) => {
                let question = Question {
                    server: tool.server.clone(),
                    tool: tool.name.clone(),
                    arguments: Value::Object(arguments.clone()),
                    program: self.identity.program.clone(),
                    rule: rule.clone(),
                };
                let patience = deadline.saturating_duration_since(Instant::now());
                let answer = tokio::time::timeout_at(deadline.into(), self.approver.ask(question, patience)).await;
                answer.unwrap_or_else(|_| Answer::Nobody("nobody answered in time".to_owned()))
            }
            Err(_) => Answer::Nobody("nobody answered in time".to_owned()),
        };
        let refused = match answer {
            Answer::Yes => return Ruling { rule: format!("{rule}; a person said yes"), refused: None },
            Answer::No => ToolReply::Denied(format!("a person was asked and said no ({rule})")),
            Answer::Nobody(why) => {
                let name = format!("{}/{}", tool.server, tool.name);
                let place = if file.is_empty() { "the configuration" } else { file };
                ToolReply::Ask(format!(
                    "{rule}; {why}; an operator allows it by `policy: {{allow: [{name}]}}` in {place}"
                ))
            }
        };
        Ruling { rule, refused: Some(refused) }
    }
}
