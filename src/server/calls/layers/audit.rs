//! Writes the two audit records of a call: its intent before anything is sent, and its outcome.

use std::sync::Arc;
use std::time::Instant;

use crate::lang::ToolReply;
use crate::server::audit::{AuditLog, AuditedCall, Outcome};
use crate::server::identity::Identity;
use crate::server::secrets::Secrets;

use crate::server::calls::layer::{Answer, Call, Layer, Next};
use crate::server::calls::parts::Parts;

/// Writes the outcome. A call is refused while an earlier record waits to be written.
pub(in crate::server::calls) struct Recorded {
    audit: Arc<AuditLog>,
    secrets: Secrets,
    identity: Arc<Identity>,
}

impl Recorded {
    pub(in crate::server::calls) fn new(audit: &Arc<AuditLog>, parts: &Parts) -> Recorded {
        let (secrets, identity) = (parts.downstreams.secrets().clone(), Arc::clone(&parts.identity));
        Recorded { audit: Arc::clone(audit), secrets, identity }
    }
}

impl Layer for Recorded {
    fn call(&self, call: &mut Call<'_>, next: Next<'_>) -> Answer {
        let given = call.given;
        // A call that was asked about goes on with its record.
        call.audited.get_or_insert_with(|| AuditedCall::new(&self.audit, &self.secrets, &self.identity, given));
        // No person is asked about a call that could not be made.
        if let Some(problem) = self.audit.trouble() {
            let reply = ToolReply::Denied(problem.clone());
            // The outcome waits with the others.
            let _ =
                call.audited.take().map(|audited| audited.end(Outcome { reply: &reply, rule: Some(problem), ms: 0 }));
            return Ok(reply);
        }
        let reply = next.reply(call);
        // The record of a question is completed when it is answered.
        if !matches!(reply, ToolReply::Ask(_))
            && let Some(unwritten) = unwritten_outcome(call.audited.take(), &reply, call.rule.clone(), call.times.made)
        {
            call.add_note(unwritten);
        }
        Ok(reply)
    }
}

/// Writes the outcome of a call, if it is recorded; returns why that failed, as a clause.
pub(in crate::server::calls) fn unwritten_outcome(
    audited: Option<AuditedCall>,
    reply: &ToolReply,
    rule: Option<String>,
    since: Instant,
) -> Option<String> {
    let ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
    let problem = audited?.end(Outcome { reply, rule, ms }).err()?;
    Some(format!("the outcome is not recorded, and no further call is made until it is: {problem}"))
}

/// Writes the intent, once for all attempts.
pub(in crate::server::calls) struct Intended;

impl Layer for Intended {
    fn call(&self, call: &mut Call<'_>, next: Next<'_>) -> Answer {
        let rule = call.rule.clone();
        let audited = call.audited.as_mut().expect("the record is made before this layer");
        match audited.intend(rule) {
            Ok(()) => next.call(call),
            Err(problem) => {
                call.rule = Some(problem.clone());
                Ok(ToolReply::Denied(problem))
            }
        }
    }
}
