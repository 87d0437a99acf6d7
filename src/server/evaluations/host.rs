//! Implements the language's [`Host`] over the downstream servers, for one evaluation.
//!
//! The language blocks; the connections do not. A call is spawned on the runtime as a task, and the evaluation's thread
//! waits for its answer on a channel. The task ends as soon as the evaluation is cancelled or its time has run out,
//! which cancels the call at the server.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::task::Poll;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::lang::{
    Audience, CallId, Catalogue, Decision, Found, Host, Keep, Question, Recorder, RunLog, Server, Tool, ToolCall,
    ToolError, ToolReply,
};
use crate::lang::{NO_HANDLES, NO_RUNS};
use crate::server::audit::{Announcement, Announcer, AuditedCall, Kind, Outcome, Record};
use crate::server::downstream::{Answered, Downstreams};
use crate::server::evaluations::activity::Activity;
use crate::server::evaluations::guarded::Guarded;
use crate::server::identity::LOCAL;
use crate::server::identity::{Identity, sha256};
use crate::server::policy::{Approver, Consent, Grants, no_approver};
use crate::server::runs::MOST_LOGGED;
use crate::server::runs::rehearsal::{ChangeSet, Rehearsal};
use crate::server::sessions::requests::SessionRequests;
use crate::server::telemetry::log;

/// Describes all runs of a principal that have not ended, or one of them, as JSON text.
pub(in crate::server) type RunStatus = Arc<dyn Fn(Option<&str>) -> Result<String, String> + Send + Sync>;

/// The host of one evaluation. [`EvaluationHost::into_host`] completes it.
pub struct EvaluationHost {
    downstreams: Arc<Downstreams>,
    runtime: Handle,
    slots: Arc<Semaphore>,
    cancel: CancellationToken,
    begun: Instant,
    /// The calls that are under way or abandoned, each with the token that cancels it.
    calls: Mutex<HashMap<CallId, CancellationToken>>,
    /// Notes on calls that were answered.
    notes: Mutex<HashMap<CallId, String>>,
    identity: Arc<Identity>,
    activity: Arc<Activity>,
    /// Records the program's requests for its session, if it has one.
    session_requests: Option<Arc<SessionRequests>>,
    /// Describes the runs of the principal.
    run_status: Option<RunStatus>,
    /// Records the origins of values, if there are guards.
    guarded: Option<Guarded>,
    /// The permissions of the evaluation.
    consent: Arc<Consent>,
    /// The calls on which a person must decide, with their audit records.
    asked: Mutex<HashMap<CallId, AskedCall>>,
    /// The denied tools that the program has named, as server and tool.
    refused: Mutex<HashSet<(String, String)>>,
    /// Collects the calls that may change something, if they are not made.
    rehearsal: Option<Arc<Rehearsal>>,
}

impl EvaluationHost {
    /// Creates a host whose tool calls, at most `slots` at once, run on `runtime` until `cancel` is cancelled. It must
    /// not be used from the runtime's async threads, which it would block.
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
            consent: Arc::new(Consent::new(Arc::clone(&identity), Arc::new(no_approver()))),
            identity,
            activity: Arc::default(),
            session_requests: None,
            run_status: None,
            guarded: None,
            asked: Mutex::default(),
            refused: Mutex::default(),
            rehearsal: None,
        }
    }

    /// Sets the program, and the approver that asks a person about calls for which the policy requires approval.
    pub fn asking(self, program: &str, approver: Arc<dyn Approver>) -> EvaluationHost {
        let identity = Identity { program: sha256(program.as_bytes()), ..Identity::clone(&self.identity) };
        self.known_as(Arc::new(identity), approver, None)
    }

    /// Returns the host of a run that is not suspended: a person decides at once, or not at all.
    pub fn into_host(self) -> Arc<dyn Host> {
        let log = RunLog::unkept();
        Arc::new(Recorder::new(Arc::new(self), Arc::new(log)))
    }

    /// Sets the identity of the evaluation, its approver, and the grants that apply to its calls.
    pub(in crate::server) fn known_as(
        self,
        identity: Arc<Identity>,
        approver: Arc<dyn Approver>,
        grants: Option<Arc<dyn Grants>>,
    ) -> EvaluationHost {
        let origins = self.guarded.as_ref().map(|guarded| Arc::clone(guarded.origins()));
        let consent = Consent::new(Arc::clone(&identity), approver).with_grants(grants).with_origins(origins);
        EvaluationHost { identity, consent: Arc::new(consent), ..self }
    }

    /// Sets where the origins of values are recorded. Must be called before [`EvaluationHost::known_as`].
    pub(in crate::server) fn guarded(self, guarded: Option<Guarded>) -> EvaluationHost {
        EvaluationHost { guarded, ..self }
    }

    /// Sets where the calls are collected that a rehearsal does not make.
    pub(in crate::server) fn rehearsing(self, rehearsal: Option<Arc<Rehearsal>>) -> EvaluationHost {
        EvaluationHost { rehearsal, ..self }
    }

    /// Returns the host of a program that makes the calls of a change set, each once a person has approved it.
    pub(in crate::server) fn committing(self, changes: &ChangeSet) -> Arc<dyn Host> {
        let log = RunLog::new(changes.log.clone(), Keep::Form, MOST_LOGGED);
        Arc::new(Recorder::new(Arc::new(self), Arc::new(log)))
    }

    /// Sets what describes the runs of the principal.
    pub(in crate::server) fn with_runs(self, run_status: Option<RunStatus>) -> EvaluationHost {
        EvaluationHost { run_status, ..self }
    }

    /// Sets where the activity of the evaluation and its requests for its session are recorded.
    pub(in crate::server) fn observed(
        self,
        activity: Arc<Activity>,
        session_requests: Arc<SessionRequests>,
    ) -> EvaluationHost {
        session_requests.stop_by(self.cancel.clone());
        EvaluationHost { activity, session_requests: Some(session_requests), ..self }
    }

    fn asked(&self) -> MutexGuard<'_, HashMap<CallId, AskedCall>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True once another process may have the session: nothing more may be done in it.
    fn has_lost_session(&self) -> bool {
        self.session_requests.as_ref().is_some_and(|session_requests| session_requests.is_lost())
    }

    /// Stores that a call is about to be sent, if its run is stored and a second call would do harm.
    fn starting(&self, call: &CallId, announced: &Announcement) -> Result<(), String> {
        match &self.session_requests {
            Some(session_requests) if announced.changes() => session_requests.starting(call),
            _ => Ok(()),
        }
    }

    /// Lists all servers, with the reason why nothing is known about them.
    fn missing(&self, interrupted: &Interrupted) -> Vec<(String, String)> {
        let names = self.downstreams.names().into_iter();
        names.map(|name| (name.clone(), interrupted.error(&name).message)).collect()
    }

    /// Returns the token that cancels this call.
    fn end_of(&self, call: &CallId) -> CancellationToken {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.entry(call.clone()).or_insert_with(|| self.cancel.child_token()).clone()
    }

    /// Runs a future on the runtime and waits for it until `cancel` is cancelled or the time has run out, which returns
    /// [`Interrupted`].
    fn wait<T: Send + 'static>(
        &self,
        cancel: CancellationToken,
        bound: Option<Duration>,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Interrupted> {
        let (answer, answered) = mpsc::sync_channel(1);
        self.spawn(cancel, bound, work, move |outcome| _ = answer.send(outcome));
        answered.recv().unwrap_or(Err(Interrupted::Lost))
    }

    /// Runs a future on the runtime until `cancel` is cancelled or the time has run out. `finish` receives the outcome,
    /// and is dropped if there is none; the evaluation's thread may have gone by then.
    fn spawn<T: Send + 'static>(
        &self,
        cancel: CancellationToken,
        bound: Option<Duration>,
        work: impl Future<Output = T> + Send + 'static,
        finish: impl FnOnce(Result<T, Interrupted>) + Send + 'static,
    ) {
        let session_requests = self.session_requests.clone();
        self.runtime.spawn(async move {
            // A suspended process resumes in the middle of its work: the lease is checked before each poll of it.
            let lost = std::future::poll_fn(|_| match &session_requests {
                Some(session_requests) if session_requests.is_lost() => Poll::Ready(()),
                _ => Poll::Pending,
            });
            let over = async {
                match bound {
                    Some(bound) => tokio::time::sleep(bound).await,
                    None => std::future::pending().await,
                }
            };
            finish(tokio::select! {
                biased;
                () = cancel.cancelled() => Err(Interrupted::Stopped),
                () = lost => Err(Interrupted::Stopped),
                outcome = work => Ok(outcome),
                () = over => Err(Interrupted::Stopped),
            });
        });
    }
}

/// A call on which a person must decide.
struct AskedCall {
    audited: Option<AuditedCall>,
    since: Instant,
}

/// A message to an evaluation's thread about a call that it waits for.
enum Step {
    /// The call is about to be sent.
    Announced(Announcement),
    /// The call has ended, with the time that it took.
    Ended(Result<(Answered, Duration), Interrupted>),
}

/// The reason for which there is no answer.
enum Interrupted {
    /// The evaluation was cancelled or its time has run out.
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

/// Writes the outcome of a call to the audit log, if there is one; returns why that failed, as a clause.
fn unwritten_outcome(
    audited: Option<AuditedCall>,
    reply: &ToolReply,
    rule: Option<String>,
    since: Instant,
) -> Option<String> {
    let ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
    let problem = audited?.end(Outcome { reply, rule, ms }).err()?;
    Some(format!("the outcome is not recorded, and no further call is made until it is: {problem}"))
}

impl Host for EvaluationHost {
    fn audience(&self) -> Audience {
        Audience::User
    }

    fn servers(&self) -> Vec<Server> {
        self.downstreams.servers()
    }

    fn tools(&self, server: &str) -> Result<Vec<Arc<Tool>>, ToolError> {
        let downstreams = Arc::clone(&self.downstreams);
        let (name, identity) = (server.to_owned(), Arc::clone(&self.identity));
        self.wait(self.cancel.clone(), None, async move { downstreams.tools_for(&identity.principal, &name).await })
            .unwrap_or_else(|interrupted| Err(interrupted.error(server)))
    }

    fn denied(&self, server: &str) -> Vec<(String, String)> {
        self.downstreams.denied(server)
    }

    fn refused(&self, server: &str, tool: &str) {
        let Some(audit) = self.downstreams.audit() else { return };
        // Only we decide on the rule, and that the tool is denied: a worker may claim anything.
        let denied = self.downstreams.denied(server);
        let Some((tool, rule)) = denied.into_iter().find(|(denied, _)| denied == tool) else { return };
        let is_new = {
            let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
            refused.insert((server.to_owned(), tool.clone()))
        };
        // One record per tool, however often the program tries: an attempt does not count towards the limit of calls.
        if is_new {
            let outcome = ToolReply::Denied(String::new()).outcome().to_owned();
            let (server, rule) = (server.to_owned(), Some(rule));
            let record = Record { server, tool, rule, outcome, ..Record::of(Kind::Call, &self.identity) };
            // A record that cannot be written waits, and is in the log of the process.
            let _ = audit.write(record, self.downstreams.secrets());
        }
    }

    fn catalogue(&self) -> Catalogue {
        let (downstreams, identity) = (Arc::clone(&self.downstreams), Arc::clone(&self.identity));
        self.wait(self.cancel.clone(), None, async move { downstreams.catalogue_for(&identity.principal).await })
            .unwrap_or_else(|interrupted| Catalogue { missing: self.missing(&interrupted), ..Catalogue::default() })
    }

    fn search(&self, query: &str, most: usize) -> Found {
        let (downstreams, identity) = (Arc::clone(&self.downstreams), Arc::clone(&self.identity));
        let wanted = query.to_owned();
        let search = async move { downstreams.search_for(&identity.principal, &wanted, most).await };
        let found = self.wait(self.cancel.clone(), None, search);
        found.unwrap_or_else(|interrupted| Found { missing: self.missing(&interrupted), ..Found::default() })
    }

    fn call(&self, call: ToolCall) -> ToolReply {
        if self.has_lost_session() {
            return ToolReply::Stopped;
        }
        let (server, tool) = (call.server.clone(), call.tool.clone());
        let downstreams = Arc::clone(&self.downstreams);
        let (slots, consent) = (Arc::clone(&self.slots), Arc::clone(&self.consent));
        let secrets = self.downstreams.secrets();
        let asked_before = self.asked().remove(&call.id);
        let (mut audited, asked) = match asked_before {
            Some(AskedCall { audited, since }) => (audited, since),
            None => {
                let audit = self.downstreams.audit();
                (audit.map(|audit| AuditedCall::new(audit, secrets, &self.identity, &call)), Instant::now())
            }
        };
        // No person is asked about a call that could not be made.
        if let Some(problem) = self.downstreams.audit().and_then(|audit| audit.trouble()) {
            let reply = ToolReply::Denied(problem.clone());
            // The outcome waits with the others.
            let _ = audited.map(|audited| audited.end(Outcome { reply: &reply, rule: Some(problem), ms: 0 }));
            return reply;
        }
        self.activity.calls(&server, &tool);
        let span = log::call_span(&self.identity, &server, &tool);
        let bound = call.remaining;
        let (id, end) = (call.id.clone(), self.end_of(&call.id));
        let rehearsed = self.rehearsal.as_ref().map(|rehearsal| (rehearsal, call.clone()));
        let (steps, heard) = mpsc::channel();
        // Approval by a person may take time: the lease is checked again before anything is sent.
        let is_held = |requests: &Arc<SessionRequests>| requests.has_lease() || requests.has_log();
        let is_announced = audited.is_some() || self.session_requests.as_ref().is_some_and(is_held);
        let announcer = (is_announced || rehearsed.is_some()).then(|| {
            let steps = steps.clone();
            // An announcement that is not received is answered by its drop.
            let announcer = Announcer::new(move |announced| _ = steps.send(Step::Announced(announced)));
            announcer.rehearsing(rehearsed.is_some())
        });
        let work = async move {
            let _slot = slots.acquire().await.expect("the slots are never closed");
            let begun = Instant::now();
            let answered = downstreams.call_as_decided(&call, &consent, announcer.as_ref()).await;
            (answered, begun.elapsed())
        };
        let ended = move |outcome| _ = steps.send(Step::Ended(outcome));
        self.spawn(end.clone(), Some(bound), work.instrument(span.clone()), ended);
        let mut withheld = None;
        let answered = loop {
            match (heard.recv(), &mut audited) {
                (Ok(Step::Announced(announced)), _) if announced.is_withheld() => withheld = Some(announced.withhold()),
                // This stops the task before it learns that there is no answer.
                (Ok(Step::Announced(_)), _) if self.has_lost_session() => {}
                (Ok(Step::Announced(announced)), audited) => match (self.starting(&id, &announced), audited) {
                    (Err(problem), _) => announced.refuse(problem),
                    (Ok(()), Some(audited)) => announced.write(audited),
                    (Ok(()), None) => announced.pass(),
                },
                (Ok(Step::Ended(outcome)), _) => break outcome,
                (Err(_), _) => break Err(Interrupted::Lost),
            }
        };
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        let (Answered { mut reply, mut rule, mut note }, took) = answered.unwrap_or_else(|interrupted| {
            let reply = match interrupted {
                Interrupted::Lost if !end.is_cancelled() => ToolReply::Error(interrupted.error(&server)),
                Interrupted::Stopped | Interrupted::Lost => ToolReply::Stopped,
            };
            (Answered { reply, rule: None, note: None }, asked.elapsed())
        });
        if let Some((rehearsal, call)) = rehearsed {
            let mut objection = None;
            if let ToolReply::Ask(question) = &reply {
                withheld = Some((question.arguments.clone(), question.reason.clone()));
                objection = question.is_guarded.then(|| question.reason.clone());
            }
            if let Some((arguments, allowed)) = withheld {
                rehearsal.withhold(call, arguments, objection);
                (reply, rule) = (ToolReply::Rehearsed, Some(allowed));
            }
        }
        if matches!(reply, ToolReply::Ask(_)) {
            self.asked().insert(id, AskedCall { audited, since: asked });
            return reply;
        }
        if let Some(guarded) = &self.guarded {
            guarded.returned(&server, &tool, &reply);
        }
        log::tool_call(&self.identity, &span, &server, &tool, took, &reply);
        self.downstreams.counted(&server, took, &reply);
        if let Some(unwritten) = unwritten_outcome(audited, &reply, rule, asked) {
            note = Some(note.map_or(unwritten.clone(), |note| format!("{unwritten}; {note}")));
        }
        if let Some(note) = note {
            self.notes.lock().unwrap_or_else(PoisonError::into_inner).insert(id, note);
        }
        reply
    }

    fn decide(&self, questions: &[Question]) -> Vec<Decision> {
        let (consent, asked) = (Arc::clone(&self.consent), questions.to_vec());
        let deciding = async move { consent.decide(&asked).await };
        let decisions = self.wait(self.cancel.clone(), None, deciding).unwrap_or_default();
        for (question, decision) in questions.iter().zip(&decisions) {
            let reply = match decision {
                Decision::Approved | Decision::Covered(_) => continue,
                Decision::Denied(rule) => ToolReply::Denied(rule.clone()),
                Decision::Unavailable(why) => ToolReply::Unapproved(why.clone()),
                Decision::Pending => ToolReply::Ask(Box::new(question.clone())),
            };
            let Some(AskedCall { audited, since }) = self.asked().remove(&question.id) else { continue };
            let span = log::call_span(&self.identity, &question.server, &question.tool);
            log::tool_call(&self.identity, &span, &question.server, &question.tool, since.elapsed(), &reply);
            self.downstreams.counted(&question.server, since.elapsed(), &reply);
            if let Some(unwritten) = unwritten_outcome(audited, &reply, Some(question.reason.clone()), since) {
                self.notes.lock().unwrap_or_else(PoisonError::into_inner).insert(question.id.clone(), unwritten);
            }
        }
        decisions
    }

    fn note(&self, call: &CallId) -> Option<String> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).remove(call)
    }

    fn give_up(&self, call: &CallId) {
        let Some(AskedCall { audited, since }) = self.asked().remove(call) else { return self.end_of(call).cancel() };
        // A record that cannot be written waits, and is in the log of the process.
        let _ = unwritten_outcome(audited, &ToolReply::Unapproved(String::new()), None, since);
    }

    fn fork_session(&self) -> Result<String, String> {
        if self.rehearsal.is_some() {
            return Err("a rehearsal makes no sessions".to_owned());
        }
        self.session_requests.as_ref().ok_or(NO_HANDLES)?.fork()
    }

    fn runs(&self, run: Option<&str>) -> Result<String, String> {
        self.run_status.as_ref().ok_or(NO_RUNS)?(run)
    }

    fn close_session(&self) -> Result<(), String> {
        if self.rehearsal.is_some() {
            return Err("a rehearsal closes no session".to_owned());
        }
        self.session_requests.as_ref().ok_or(NO_HANDLES)?.close();
        Ok(())
    }

    fn now_millis(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }

    fn random(&self) -> u64 {
        crate::server::system::random::bits()
    }

    fn monotonic(&self) -> Duration {
        self.begun.elapsed()
    }

    fn cancelled(&self) -> bool {
        self.cancel.is_cancelled() || self.has_lost_session()
    }
}
