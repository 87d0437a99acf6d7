//! The records of the audit log.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::lang::Reply;
use crate::server::identity::Identity;

/// The event that a record describes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The process began to write.
    Begin,
    /// A tool is about to be called; written before anything is sent.
    Intent,
    /// A tool was called, or the call was refused.
    #[default]
    Call,
    /// A program is about to run; written before it does, with its text if texts are recorded.
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

/// One line of the audit log. Empty fields are omitted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// The index in the chain, from 0.
    pub number: u64,
    /// The time of writing, in UTC with milliseconds (RFC 3339).
    pub time: String,
    /// The event that the record describes.
    pub kind: Kind,
    /// Ordinal of the evaluation in its process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<u64>,
    /// The principal of the evaluation.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub principal: String,
    /// A prefix of the hash of the session handle.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub session: String,
    /// The SHA-256 of the program text, in hexadecimal.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub program: String,
    /// The program text with secrets redacted; only in records of [`Kind::Program`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The name of the server.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub server: String,
    /// The exact name of the tool.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tool: String,
    /// The arguments of the call, redacted by the rules; for `lisp_env` its query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// A prefix of the SHA-256 of the resource reference.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource: String,
    /// The policy rule that decided on the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The number of the [`Kind::Intent`] record in this chain to which this outcome belongs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intent: Option<u64>,
    /// `ok`, or the stable code of the error.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub outcome: String,
    /// The size in bytes of the result, or of the reply to the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The duration in milliseconds; for a call it includes the wait for its turn and for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
    /// The number of tool calls that the program made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// The identity of the run, if the program waits or did not end well, or goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The number of the attempt, from 2, if the program is a further attempt of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The quarantine rules that matched in the reply.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub quarantine: Vec<String>,
    /// The number of dropped records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// The version of lispbox, in the first record of a chain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The SHA-256 of the previous line; empty in the first record.
    pub previous: String,
}

impl Record {
    /// Creates a record about an evaluation, or about an event in one.
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

    /// Creates the record of an evaluation with this reply.
    pub(in crate::server) fn of_evaluation(identity: &Identity, reply: &Reply) -> Record {
        let (ms, calls) = (Some(reply.spent.total_ms), Some(reply.calls.len() as u64));
        Record { ms, calls, ..Record::of(Kind::Evaluation, identity).with_outcome(reply) }
    }

    /// Returns the record with the outcome of a reply.
    pub(in crate::server) fn with_outcome(self, reply: &Reply) -> Record {
        let outcome = reply.failure.as_ref().map_or("ok", |failure| failure.error.as_str()).to_owned();
        let attempt = reply.attempt.as_ref().map(|attempt| attempt.number);
        Record { outcome, run: reply.run.clone(), attempt, ..self }
    }
}
