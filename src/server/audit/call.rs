//! The two audit records of a call: the intent, written before the call is sent, and the outcome.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::lang::{ToolCall, ToolReply};
use crate::server::identity::Identity;
use crate::server::secrets::Secrets;

use super::{AuditLog, Kind, Record};

/// A tool call that is recorded in the audit log.
#[derive(Clone)]
pub(in crate::server) struct AuditedCall {
    audit: Arc<AuditLog>,
    secrets: Secrets,
    /// The record without an outcome.
    record: Record,
    intent: Option<u64>,
    is_announced: bool,
}

/// The outcome of a call.
pub(in crate::server) struct Outcome<'r> {
    pub(in crate::server) reply: &'r ToolReply,
    pub(in crate::server) rule: Option<String>,
    /// The duration of the call, in milliseconds.
    pub(in crate::server) ms: u64,
}

impl AuditedCall {
    /// Creates an audited call of that evaluation; writes nothing yet.
    pub(in crate::server) fn new(
        audit: &Arc<AuditLog>,
        secrets: &Secrets,
        identity: &Identity,
        call: &ToolCall,
    ) -> AuditedCall {
        let record = Record {
            server: call.server.to_string(),
            tool: call.tool.to_string(),
            arguments: Some(audit.redaction().apply(&call.server, &call.tool, &call.arguments, secrets)),
            ..Record::of(Kind::Call, identity)
        };
        AuditedCall { audit: Arc::clone(audit), secrets: secrets.clone(), record, intent: None, is_announced: false }
    }

    /// Writes the intent, once for all attempts at the call.
    ///
    /// # Errors
    /// Returns why it cannot be written, as a clause. The call must then not be sent.
    fn intend(&mut self, rule: Option<String>) -> Result<(), String> {
        if self.is_announced {
            return Ok(());
        }
        self.record.rule = rule;
        let record = Record { kind: Kind::Intent, ..self.record.clone() };
        match self.audit.write_first(record, &self.secrets) {
            Ok(number) => {
                (self.intent, self.is_announced) = (Some(number), true);
                Ok(())
            }
            Err(unwritten) => {
                self.intent = unwritten.number;
                Err(unwritten.problem)
            }
        }
    }

    /// Writes the outcome.
    ///
    /// # Errors
    /// Returns why the record is still buffered, as a clause. No call is made before it is written.
    pub(in crate::server) fn end(self, Outcome { reply, rule, ms }: Outcome<'_>) -> Result<(), String> {
        let (outcome, bytes) = (reply.outcome().to_owned(), Some(reply.bytes()));
        // The reply to an aborted call does not carry the rule that allowed it.
        let rule = rule.or_else(|| self.record.rule.clone());
        let record = Record { outcome, rule, bytes, ms: Some(ms), intent: self.intent, ..self.record };
        self.audit.write(record, &self.secrets)
    }
}

/// Passes intents to the caller that waits for the call, whose thread may block on writing.
pub(in crate::server) struct Announcer {
    pass_on: Box<dyn Fn(Announcement) + Send + Sync>,
    rehearses: bool,
}

/// An announcement that a call is about to be sent.
pub(in crate::server) struct Announcement {
    rule: Option<String>,
    /// False if the call can be made twice without harm.
    changes: bool,
    /// The arguments as they would be sent, if a rehearsal does not make the call.
    withheld: Option<String>,
    answer: oneshot::Sender<Result<(), String>>,
}

impl Announcer {
    /// Creates an announcer that hands announcements to `pass_on`.
    pub(in crate::server) fn new(pass_on: impl Fn(Announcement) + Send + Sync + 'static) -> Announcer {
        Announcer { pass_on: Box::new(pass_on), rehearses: false }
    }

    /// Sets whether calls that may change something are not made.
    pub(in crate::server) fn rehearsing(self, rehearses: bool) -> Announcer {
        Announcer { rehearses, ..self }
    }

    /// Returns true if calls that may change something are not made.
    pub(in crate::server) fn rehearses(&self) -> bool {
        self.rehearses
    }

    /// Waits until the intent of a call allowed by `rule` has been written. `changes` is false if the call can be made
    /// twice without harm; `withheld` has the arguments of a call that a rehearsal does not make.
    ///
    /// # Errors
    /// Returns why it has not been written, as a clause.
    pub(in crate::server) async fn announce(
        &self,
        rule: Option<String>,
        changes: bool,
        withheld: Option<String>,
    ) -> Result<(), String> {
        let (answer, answered) = oneshot::channel();
        (self.pass_on)(Announcement { rule, changes, withheld, answer });
        answered.await.unwrap_or_else(|_| Err("the call was abandoned before it was recorded".to_owned()))
    }
}

impl Announcement {
    /// Returns whether a second call would do harm.
    pub(in crate::server) fn changes(&self) -> bool {
        self.changes
    }

    /// Returns true if a rehearsal does not make the call.
    pub(in crate::server) fn is_withheld(&self) -> bool {
        self.withheld.is_some()
    }

    /// Refuses a call that a rehearsal does not make; returns its arguments and the rule that allows it.
    pub(in crate::server) fn withhold(mut self) -> (String, String) {
        let arguments = self.withheld.take().unwrap_or_default();
        let rule = self.rule.clone().unwrap_or_default();
        self.refuse("the program is rehearsed".to_owned());
        (arguments, rule)
    }

    /// Refuses the call, with the reason as a clause.
    pub(in crate::server) fn refuse(self, problem: String) {
        // A caller that has stopped waiting sends nothing.
        let _ = self.answer.send(Err(problem));
    }

    /// Lets the call be sent without a record.
    pub(in crate::server) fn pass(self) {
        // A caller that has stopped waiting sends nothing.
        let _ = self.answer.send(Ok(()));
    }

    /// Writes the intent of the call, if the caller is still waiting.
    pub(in crate::server) fn write(self, call: &mut AuditedCall) {
        if !self.answer.is_closed() {
            let written = call.intend(self.rule);
            // A caller that has stopped waiting sends nothing.
            let _ = self.answer.send(written);
        }
    }
}
