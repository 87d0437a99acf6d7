//! The two records of a call: the intent before it is sent, and the outcome.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::{AuditLog, Kind, Record};
use crate::lang::{ToolCall, ToolReply};
use crate::server::identity::Identity;
use crate::server::secrets::Secrets;

/// A call of a tool that the audit log is to know of.
#[derive(Clone)]
pub(in crate::server) struct AuditedCall {
    audit: Arc<AuditLog>,
    secrets: Secrets,
    /// The record without an outcome.
    record: Record,
    intent: Option<u64>,
    is_announced: bool,
}

/// How a call ended.
pub(in crate::server) struct Outcome<'r> {
    pub(in crate::server) reply: &'r ToolReply,
    pub(in crate::server) rule: Option<String>,
    /// How long it took, in milliseconds.
    pub(in crate::server) ms: u64,
}

impl AuditedCall {
    /// A call in that evaluation, of which nothing is written yet.
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
    /// Why it cannot be written, as a clause. Nothing may be sent then.
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
    /// Why it waits, as a clause. No call is made before it is written.
    pub(in crate::server) fn end(self, Outcome { reply, rule, ms }: Outcome<'_>) -> Result<(), String> {
        let (outcome, bytes) = (reply.outcome().to_owned(), Some(reply.bytes()));
        // A call that was stopped does not come back with the rule that allowed it.
        let rule = rule.or_else(|| self.record.rule.clone());
        let record = Record { outcome, rule, bytes, ms: Some(ms), intent: self.intent, ..self.record };
        self.audit.write(record, &self.secrets)
    }
}

/// Has intents written by whoever waits for the call, whose thread may block.
pub(in crate::server) struct Announcer(Box<dyn Fn(Announcement) + Send + Sync>);

/// That a call is about to be sent.
pub(in crate::server) struct Announcement {
    rule: Option<String>,
    answer: oneshot::Sender<Result<(), String>>,
}

impl Announcer {
    /// One that passes announcements on there.
    pub(in crate::server) fn new(pass_on: impl Fn(Announcement) + Send + Sync + 'static) -> Announcer {
        Announcer(Box::new(pass_on))
    }

    /// Waits until the intent of the call is written, which that rule allows.
    ///
    /// # Errors
    /// Why it is not, as a clause.
    pub(in crate::server) async fn announce(&self, rule: Option<String>) -> Result<(), String> {
        let (answer, answered) = oneshot::channel();
        (self.0)(Announcement { rule, answer });
        answered.await.unwrap_or_else(|_| Err("the call was given up before it was written down".to_owned()))
    }
}

impl Announcement {
    /// Lets a call be sent that is not written down.
    pub(in crate::server) fn pass(self) {
        // Who does not wait any more sends nothing.
        let _ = self.answer.send(Ok(()));
    }

    /// Writes the intent of that call, if it is waited for still.
    pub(in crate::server) fn write(self, call: &mut AuditedCall) {
        if !self.answer.is_closed() {
            let written = call.intend(self.rule);
            // Who does not wait any more sends nothing.
            let _ = self.answer.send(written);
        }
    }
}
