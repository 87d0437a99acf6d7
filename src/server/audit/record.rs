//! One record of the audit log.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::lang::reply::Reply;
use crate::server::identity::Identity;

/// What a record is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The process began to write.
    Begin,
    /// A tool is about to be called: written before anything is sent.
    Intent,
    /// A tool was called, or refused.
    #[default]
    Call,
    /// A program is about to run: written before it does, with its text where texts are written.
    Program,
    /// A program ended, or was refused.
    Evaluation,
    /// `lisp_env` was called.
    Env,
    /// A resource was read by its reference.
    Resource,
    /// Records were dropped while the log could not be written.
    Lost,
    /// The process ended in order.
    End,
}

/// One line of the audit log. Fields that have nothing to say are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// Its place in its chain, from 0.
    pub number: u64,
    /// When it was written, in UTC, to the millisecond (RFC 3339).
    pub time: String,
    /// What it is about.
    pub kind: Kind,
    /// Ordinal of the evaluation in its process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<u64>,
    /// Whose it was.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub principal: String,
    /// The beginning of the hash of the session's handle.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub session: String,
    /// The SHA-256 of the program's text, in hexadecimal.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub program: String,
    /// The program's text, without secrets; only of [`Kind::Program`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The server's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub server: String,
    /// The tool's exact name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tool: String,
    /// The arguments as the program gave them, redacted by rule; of `lisp_env` its query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// The beginning of the SHA-256 of the reference of a resource.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource: String,
    /// The rule of the policy that decided on the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The number of the [`Kind::Intent`] in this chain whose outcome this is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intent: Option<u64>,
    /// `ok`, or the stable code of the error.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub outcome: String,
    /// How large the result, or the reply to the client, was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// How long it took, in milliseconds; a call with the waiting for its turn and for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
    /// How many tools the program called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// The rules of the quarantine that found something in the reply.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub quarantine: Vec<String>,
    /// How many records were dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// The version of lispbox, where the chain begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The SHA-256 of the line before this one; empty in the first.
    pub previous: String,
}

impl Record {
    /// A record about an evaluation, or about something in it.
    pub(in crate::server) fn of(kind: Kind, identity: &Identity) -> Record {
        Record {
            kind,
            evaluation: Some(identity.evaluation),
            principal: identity.principal.clone(),
            session: identity.session.clone().unwrap_or_default(),
            program: identity.program.clone(),
            ..Record::default()
        }
    }

    /// A record about an evaluation that came to that.
    pub(in crate::server) fn of_evaluation(identity: &Identity, reply: &Reply) -> Record {
        let (ms, calls) = (Some(reply.spent.total_ms), Some(reply.calls.len() as u64));
        Record { ms, calls, ..Record::of(Kind::Evaluation, identity).with_outcome(reply) }
    }

    /// The same with the outcome that a reply says.
    pub(in crate::server) fn with_outcome(self, reply: &Reply) -> Record {
        let outcome = reply.failure.as_ref().map_or("ok", |failure| failure.error.as_str()).to_owned();
        Record { outcome, ..self }
    }
}
