//! The language's [`Host`] over the servers behind us, for one evaluation.
//!
//! The language blocks; the connections do not. A call is handed to the runtime as a task, and the
//! evaluation's thread waits for its answer on a channel. The task ends as soon as the evaluation is
//! cancelled or its time is over, which cancels the call at the server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::lang::host::NO_HANDLES;
use crate::lang::{CallId, Catalogue, Found, Host, Server, Tool, ToolCall, ToolError, ToolReply};

use super::audit::{AuditLog, Kind, Record};
use super::downstream::{Answered, Downstreams};
use super::http::LOCAL;
use super::identity::{Identity, sha256};
use super::log;
use super::policy::{Approver, Consent, nobody};
use super::progress::Activity;
use super::wishes::Wishes;

/// The world as one evaluation sees it.
pub struct EvaluationHost {
    downstreams: Arc<Downstreams>,
    runtime: Handle,
    slots: Arc<Semaphore>,
    cancel: CancellationToken,
    begun: Instant,
    /// The calls that are under way or given up, each with what ends it.
    calls: Mutex<HashMap<CallId, CancellationToken>>,
    /// What there is to say about calls that were answered.
    notes: Mutex<HashMap<CallId, String>>,
    identity: Arc<Identity>,
    activity: Arc<Activity>,
    /// Where what is to become of the session is taken down, if anything can.
    wishes: Option<Arc<Wishes>>,
    /// What it is allowed.
    consent: Arc<Consent>,
}

impl EvaluationHost {
    /// A host whose tool calls, at most `slots` at once, run on `runtime` until `cancel` is cancelled.
    /// It must not be used from the runtime's own threads, which it would block.
    pub fn new(
        downstreams: Arc<Downstreams>,
        runtime: Handle,
        cancel: CancellationToken,
        slots: u32,
        evaluation: u64,
    ) -> EvaluationHost {
        let identity = Identity { evaluation, principal: LOCAL.to_owned(), ..Identity::default() };
        let identity = Arc::new(identity);
        EvaluationHost {
            downstreams,
            runtime,
            slots: Arc::new(Semaphore::new((slots.max(1) as usize).min(Semaphore::MAX_PERMITS))),
            cancel,
            begun: Instant::now(),
            calls: Mutex::default(),
            notes: Mutex::default(),
            consent: Arc::new(Consent::new(Arc::clone(&identity), Arc::new(nobody()))),
            identity,
            activity: Arc::default(),
            wishes: None,
        }
    }

    /// The same for that program, in which a person is asked there about the calls on which the policy wants one asked.
    pub fn asking(self, program: &str, approver: Arc<dyn Approver>) -> EvaluationHost {
        let identity = Identity { program: sha256(program.as_bytes()), ..Identity::clone(&self.identity) };
        self.known_as(Arc::new(identity), approver)
    }

    /// The same, which is known as that and asks there.
    pub(super) fn known_as(self, identity: Arc<Identity>, approver: Arc<dyn Approver>) -> EvaluationHost {
        let consent = Arc::new(Consent::new(Arc::clone(&identity), approver));
        EvaluationHost { identity, consent, ..self }
    }

    /// The same, which takes down there what it is about, and what is to become of its session.
    pub(super) fn observed(self, activity: Arc<Activity>, wishes: Arc<Wishes>) -> EvaluationHost {
        EvaluationHost { activity, wishes: Some(wishes), ..self }
    }

    /// A record of a call, before it is made.
    fn record(&self, audit: &AuditLog, call: &ToolCall) -> Record {
        Record {
            server: call.server.to_string(),
            tool: call.tool.to_string(),
            arguments: Some(audit.redaction().apply(&call.server, &call.tool, &call.arguments)),
            ..Record::of(Kind::Call, &self.identity)
        }
    }

    /// All servers, with the reason why nothing is known of them.
    fn missing(&self, interrupted: &Interrupted) -> Vec<(String, String)> {
        let names = self.downstreams.names().into_iter();
        names.map(|name| (name.clone(), interrupted.error(&name).message)).collect()
    }

    /// What ends this call.
    fn end_of(&self, call: &CallId) -> CancellationToken {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.entry(call.clone()).or_insert_with(|| self.cancel.child_token()).clone()
    }

    /// Runs a future on the runtime and waits for it until `cancel` is cancelled or the time is over, which comes as
    /// [`Interrupted`].
    fn wait<T: Send + 'static>(
        &self,
        cancel: CancellationToken,
        bound: Option<Duration>,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Interrupted> {
        let (answer, answered) = mpsc::sync_channel(1);
        self.runtime.spawn(async move {
            let over = async {
                match bound {
                    Some(bound) => tokio::time::sleep(bound).await,
                    None => std::future::pending().await,
                }
            };
            let outcome = tokio::select! {
                biased;
                () = cancel.cancelled() => Err(Interrupted::Stopped),
                outcome = work => Ok(outcome),
                () = over => Err(Interrupted::Stopped),
            };
            // Nobody waits any more when the evaluation's thread has gone.
            let _ = answer.send(outcome);
        });
        answered.recv().unwrap_or(Err(Interrupted::Lost))
    }
}

/// Why there is no answer.
enum Interrupted {
    /// The evaluation was cancelled or its time is over.
    Stopped,
    /// The runtime dropped the task: it is shutting down, or the task panicked.
    Lost,
}

impl Interrupted {
    fn error(&self, server: &str) -> ToolError {
        ToolError::unavailable(match self {
            Interrupted::Stopped => format!("the evaluation was stopped while it waited for server `{server}`"),
            Interrupted::Lost => format!("the answer of server `{server}` was lost"),
        })
    }
}

impl Host for EvaluationHost {
    fn servers(&self) -> Vec<Server> {
        self.downstreams.servers()
    }

    fn tools(&self, server: &str) -> Result<Vec<Arc<Tool>>, ToolError> {
        let downstreams = Arc::clone(&self.downstreams);
        let name = server.to_owned();
        self.wait(self.cancel.clone(), None, async move { downstreams.tools(&name).await })
            .unwrap_or_else(|interrupted| Err(interrupted.error(server)))
    }

    fn denied(&self, server: &str) -> Vec<(String, String)> {
        self.downstreams.denied(server)
    }

    fn catalogue(&self) -> Catalogue {
        let downstreams = Arc::clone(&self.downstreams);
        self.wait(self.cancel.clone(), None, async move { downstreams.catalogue().await })
            .unwrap_or_else(|interrupted| Catalogue { missing: self.missing(&interrupted), ..Catalogue::default() })
    }

    fn search(&self, query: &str, most: usize) -> Found {
        let downstreams = Arc::clone(&self.downstreams);
        let wanted = query.to_owned();
        let found = self.wait(self.cancel.clone(), None, async move { downstreams.search(&wanted, most).await });
        found.unwrap_or_else(|interrupted| Found { missing: self.missing(&interrupted), ..Found::default() })
    }

    fn call(&self, call: ToolCall) -> ToolReply {
        let (server, tool) = (call.server.clone(), call.tool.clone());
        let downstreams = Arc::clone(&self.downstreams);
        let (slots, consent) = (Arc::clone(&self.slots), Arc::clone(&self.consent));
        let record = self.downstreams.audit().map(|audit| self.record(audit, &call));
        if let Some(problem) = self.downstreams.audit().and_then(|audit| audit.ready().err()) {
            return ToolReply::Denied(problem);
        }
        self.activity.calls(&server, &tool);
        let span = log::call_span(&self.identity, &server, &tool);
        let (asked, bound) = (Instant::now(), call.remaining);
        let (id, end) = (call.id.clone(), self.end_of(&call.id));
        let work = async move {
            let _slot = slots.acquire().await.expect("the slots are never closed");
            let begun = Instant::now();
            let answered = downstreams.call_as_decided(&call, &consent).await;
            (answered, begun.elapsed())
        };
        let answered = self.wait(end.clone(), Some(bound), work.instrument(span.clone()));
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        let (Answered { reply, rule, note }, took) = answered.unwrap_or_else(|interrupted| {
            let reply = match interrupted {
                Interrupted::Lost if !end.is_cancelled() => ToolReply::Error(interrupted.error(&server)),
                Interrupted::Stopped | Interrupted::Lost => ToolReply::Stopped,
            };
            (Answered { reply, rule: None, note: None }, asked.elapsed())
        });
        let reply = self.downstreams.secrets().redact_reply(reply);
        log::tool_call(&self.identity, &span, &server, &tool, took, &reply);
        self.downstreams.counted(&server, took, &reply);
        if let Some(note) = note {
            self.notes.lock().unwrap_or_else(PoisonError::into_inner).insert(id, note);
        }
        if let Some((audit, record)) = self.downstreams.audit().zip(record) {
            let (bytes, ms) = (reply.bytes(), u64::try_from(asked.elapsed().as_millis()).unwrap_or(u64::MAX));
            let outcome = reply.outcome().to_owned();
            let record = Record { outcome, rule, bytes: Some(bytes), ms: Some(ms), ..record };
            audit.write(record, self.downstreams.secrets());
        }
        reply
    }

    fn note(&self, call: &CallId) -> Option<String> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).remove(call)
    }

    fn give_up(&self, call: &CallId) {
        self.end_of(call).cancel();
    }

    fn fork_session(&self) -> Result<String, String> {
        self.wishes.as_ref().ok_or(NO_HANDLES)?.fork()
    }

    fn close_session(&self) -> Result<(), String> {
        self.wishes.as_ref().ok_or(NO_HANDLES)?.close();
        Ok(())
    }

    fn now_millis(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }

    fn random(&self) -> u64 {
        super::random::bits()
    }

    fn monotonic(&self) -> Duration {
        self.begun.elapsed()
    }

    fn cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }
}
