//! The two audit records of a call: the intent, written before the call is sent, and the outcome.

use std::sync::Arc;

use crate::lang::{ToolCall, ToolReply};
use crate::server::identity::Identity;
use crate::server::secrets::Secrets;

use super::{AuditLog, Kind, Record};

/// A tool call that is recorded in the audit log.
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
    pub(in crate::server) fn intend(&mut self, rule: Option<String>) -> Result<(), String> {
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
