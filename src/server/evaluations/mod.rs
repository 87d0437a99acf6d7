//! Runs programs for a caller: admission, session selection, cancellation and the log.
//!
//! # The way of an evaluation
//! Each step has a type, which the next one consumes. The first three run on the runtime, the others on a blocking thread,
//! which has the session.
//!
//! | step | type | module |
//! |---|---|---|
//! | admission, and the session of the call | `EvalRequest`, `Caller`, `Entry` | here |
//! | the turn: the lock of the session, and room to run | `Turn` | here |
//! | everything that the program's thread needs | `ProgramRun` | `in_session`, `program` |
//! | the lease of the session, and the run: resumed, begun, or none | `Leased` | `leased` |
//! | guards, the log of the run, and what is recorded | `Prepared` | `prepared` |
//! | the reply, before anything is kept | `Evaluated` | `evaluated` |
//! | what was kept: the session, its copies, the run | `Finished` | `program` |
//! | the reply for the client | `Reply` | `in_session` |
//!
//! A step that finds the session or the run in use elsewhere gives the `ProgramRun` back (`Ran::Busy`), and nothing was
//! done. Keeping all of it in one structure of options was simpler to extend, and left open which of them hold when.

mod attempts;
mod describe;
pub(in crate::server) mod dry_run;
mod evaluated;
mod hints;
pub(in crate::server) mod host;
mod in_session;
pub(in crate::server) mod keyed;
mod leased;
mod prepared;
mod program;
mod waits;
pub(in crate::server) mod withdrawn;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(in crate::server) use describe::Described;
use dry_run::DryRun;
use host::{EvaluationHost, RunStatus};
use tokio::runtime::Handle;
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;
pub(in crate::server) use waits::Found;
use waits::Waits;
use withdrawn::{ClientRequest, UnorderedPrograms};

use crate::lang::Reply;
use crate::lang::{Environment, Host, Sandbox};
use crate::server::admission::request::{EvalRequest, Refused};
use crate::server::admission::shutdown::Shutdown;
use crate::server::admission::{AdmissionSlot, Gate, RunPermit};
use crate::server::approvals::asked::AskedRun;
use crate::server::approvals::{Approver, Grants};
use crate::server::audit::{AuditLog, Record};
use crate::server::calls::Features;
use crate::server::calls::activity::Activity;
use crate::server::downstream::Downstreams;
use crate::server::identity::{Identity, sha256};
use crate::server::runs::{Resumption, RunKey, RunSession, Runs};
use crate::server::secrets::Secrets;
use crate::server::sessions::handles::Handles;
use crate::server::sessions::persistence::Persistence;
use crate::server::sessions::requests::SessionRequests;
use crate::server::sessions::{Ended, Entry, Sessions};
use crate::server::system::random;
use crate::server::telemetry::log;
use crate::server::telemetry::metrics::Now;

/// The caller of an evaluation, with the session that a call without a handle uses.
pub(in crate::server) struct Caller {
    /// The principal whose sessions it may use.
    pub(in crate::server) name: String,
    /// The session of the connection, if the protocol revision has one.
    pub(in crate::server) own: Option<Arc<Entry>>,
    /// The handles that its connection knows, if the protocol revision tracks them; no other handle is suggested.
    pub(in crate::server) handles: Option<Arc<Handles>>,
    /// Cancelled when the client withdraws the call or disconnects, unless the run outlives its request, or when it ends a
    /// program that goes on.
    pub(in crate::server) withdrawn: CancellationToken,
    /// Cancelled likewise; the call of a run that is stored is not withdrawn, but it waits no longer.
    pub(in crate::server) left: CancellationToken,
    /// The request for the evaluation.
    pub(in crate::server) request: Arc<ClientRequest>,
    /// Records the current activity of the call.
    pub(in crate::server) activity: Arc<Activity>,
    /// Asks a person to approve tool calls.
    pub(in crate::server) approver: Arc<dyn Approver>,
    /// True if a program can wait until a person has been asked after the call.
    pub(in crate::server) can_wait: bool,
    /// The words of the user, if the client passes them.
    pub(in crate::server) words: Option<String>,
}

impl Caller {
    /// True for the session of the connection.
    fn owns(&self, entry: &Arc<Entry>) -> bool {
        self.own.as_ref().is_some_and(|own| Arc::ptr_eq(own, entry))
    }

    /// Records that its connection has read what was read in a session.
    fn has_read(&self, entry: &Entry) {
        if let Some(own) = self.own.as_ref().filter(|_| entry.origins().is_read()) {
            own.origins().read_elsewhere();
        }
    }

    /// Returns the refusal of a call in that session. A connection whose own session is gone receives this once, and
    /// then starts another.
    fn refused(&self, entry: &Arc<Entry>, is_named: bool, mut refused: Refused) -> Refused {
        if !refused.is_session_lost()
            && let Some(unkept) = entry.unkept()
        {
            refused.message.push_str(&format!("; SessionNotKept: {unkept}"));
        }
        if !self.owns(entry) || !refused.is_session_lost() {
            return refused;
        }
        entry.lose(&refused);
        if is_named { refused } else { refused.of_connection() }
    }
}

/// A program, as a call asks for it.
pub(in crate::server) struct CalledProgram {
    pub(in crate::server) request: EvalRequest,
    /// The run that is resumed, and its session.
    pub(in crate::server) resumed: Option<(Resumption, RunSession)>,
    /// The key of a run that has not begun.
    pub(in crate::server) key: Option<RunKey>,
    /// The way to answer the program in place of running it, unless it is resumed.
    pub(in crate::server) dry_run: Option<Arc<dyn DryRun>>,
}

/// State shared by all evaluations.
pub(in crate::server) struct Evaluations {
    sandbox: Arc<dyn Sandbox>,
    downstreams: Arc<Downstreams>,
    sessions: Sessions,
    persistence: Option<Arc<Persistence>>,
    runs: Arc<Runs>,
    runtime: Handle,
    gate: Gate,
    shutdown: Arc<Shutdown>,
    waits: Waits,
    unordered: UnorderedPrograms,
    count: AtomicU64,
}

/// The parts of an evaluation's host.
#[derive(Clone, Default)]
struct Hosted {
    /// The number of tool calls that may be under way at once.
    slots: u32,
    identity: Arc<Identity>,
    requests: Arc<SessionRequests>,
    grants: Option<Arc<dyn Grants>>,
    run_status: Option<RunStatus>,
    features: Features,
}

/// The lock of a session, with the admission to run its program.
struct Turn {
    session: OwnedMutexGuard<Box<dyn Environment>>,
    _room: RunPermit,
}

/// What has become of a program.
pub(in crate::server) enum Conclusion {
    /// It has ended, well or not.
    Ended,
    /// It waits for a person.
    Waits(AskedRun),
    /// It was not evaluated.
    Refused,
}

impl Evaluations {
    pub(in crate::server) fn new(
        sandbox: Arc<dyn Sandbox>,
        downstreams: Arc<Downstreams>,
        sessions: Sessions,
        runs: Runs,
        runtime: Handle,
        gate: Gate,
        shutdown: Arc<Shutdown>,
    ) -> Evaluations {
        Evaluations {
            sandbox,
            downstreams,
            sessions,
            persistence: runs.persistence().cloned(),
            runs: Arc::new(runs),
            runtime,
            gate,
            shutdown,
            waits: Waits::default(),
            unordered: UnorderedPrograms::default(),
            count: AtomicU64::new(0),
        }
    }

    pub(in crate::server) fn downstreams(&self) -> &Arc<Downstreams> {
        &self.downstreams
    }

    /// Creates a session for a caller; it is not kept yet.
    ///
    /// # Errors
    /// Refuses if the system has no randomness for the handle.
    pub(in crate::server) fn new_session(&self, caller: &str) -> Result<Arc<Entry>, Refused> {
        Entry::new(caller, Arc::clone(&self.sandbox).environment())
            .map_err(|message| Refused::new("InternalError", message))
    }

    /// Returns the current problem of the audit log or the session store, if any. May block for as long as they do.
    pub(in crate::server) fn trouble(&self) -> Option<String> {
        let audit = self.downstreams.audit().and_then(|audit| audit.trouble());
        audit.or_else(|| self.persistence.as_ref()?.trouble())
    }

    /// Returns the key that seals the states of calls: that of the store, or one that lasts as long as this process.
    ///
    /// # Errors
    /// Returns a message if there is none.
    pub(in crate::server) async fn sealing_key(&self) -> Result<[u8; 32], String> {
        let Some(persistence) = self.persistence.clone() else { return random::key() };
        let key = self.runtime.spawn_blocking(move || persistence.sealing_key()).await;
        key.unwrap_or_else(|problem| Err(problem.to_string()))
    }

    /// The state of the server's shutdown.
    pub(in crate::server) fn shutdown(&self) -> &Arc<Shutdown> {
        &self.shutdown
    }

    /// True if sessions are about to be lost because the server is shutting down.
    pub(in crate::server) fn loses_sessions(&self) -> bool {
        self.persistence.is_none() && self.shutdown.is_closing()
    }

    /// Drops the session of a connection that has ended; its copy in a store remains.
    pub(in crate::server) fn discard(&self, entry: &Entry) {
        self.sessions.discard(&entry.handle);
    }

    /// The runs that wait for a person.
    pub(in crate::server) fn runs(&self) -> &Arc<Runs> {
        &self.runs
    }

    /// Runs a program, or resumes a run of it, and waits for its reply. Also returns the identity of the evaluation, and what
    /// has become of the program.
    pub(in crate::server) async fn evaluate(
        &self,
        called: Box<CalledProgram>,
        mut caller: Box<Caller>,
    ) -> (Box<Reply>, Identity, Conclusion) {
        caller.can_wait |= self.outlives_request(called.key.is_some(), called.resumed.is_some());
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let program = log::kept(&self.downstreams.secrets().redact(&called.request.program));
        let mut identity = Identity {
            evaluation: number,
            principal: caller.name.clone(),
            session: None,
            program: sha256(called.request.program.as_bytes()),
            span: log::evaluation_span(number, &caller.name),
        };
        let span = identity.span.clone();
        let outcome = match self.downstreams.audit().and_then(|audit| audit.is_full()) {
            None => tokio::select! {
                biased;
                outcome = Box::pin(self.evaluate_in_turn(called, &caller, &mut identity)).instrument(span) => outcome,
                () = self.shutdown.over().cancelled() => Err(self.shutdown.given_up()),
            },
            Some(problem) => Err(Refused::new("AuditUnavailable", problem)),
        };
        let (reply, conclusion) = match outcome {
            Ok((reply, asked)) => (reply, asked.map_or(Conclusion::Ended, Conclusion::Waits)),
            Err(refused) => (Box::new(refused.reply()), Conclusion::Refused),
        };
        log::evaluation(&identity, &program, &reply);
        self.downstreams.metrics().evaluation(&reply);
        self.downstreams.report_redaction();
        (reply, identity, conclusion)
    }

    /// Returns whether a run outlives the request that evaluates it: it is stored, and a client that has gone can call again
    /// for the reply.
    pub(in crate::server) fn outlives_request(&self, has_key: bool, is_resumed: bool) -> bool {
        has_key || is_resumed && self.runs.are_stored()
    }

    /// Admits a call that waits for an evaluation that is admitted.
    ///
    /// # Errors
    /// Refuses if the principal, or all together, have too many calls.
    pub(in crate::server) fn admit(&self, principal: &str) -> Result<AdmissionSlot<'_>, Refused> {
        self.gate.admit(principal, 0)
    }

    /// True if nothing may be done for that principal without an audit record.
    pub(in crate::server) fn fails_closed(&self, principal: &str) -> bool {
        self.downstreams.audit().is_some_and(|audit| audit.fails_closed(principal))
    }

    /// Returns why nothing may be done for that principal, if audit records are required and cannot be written.
    fn unrecorded(&self, principal: &str) -> Option<String> {
        self.downstreams.audit().filter(|audit| audit.fails_closed(principal)).and_then(|audit| audit.trouble())
    }

    /// Writes a record of an event that has happened, if there is an audit log.
    ///
    /// # Errors
    /// Returns why the record is still waiting to be written, as a clause.
    pub(in crate::server) fn recorded(&self, record: Record) -> impl Future<Output = Result<(), String>> + use<> {
        self.with_audit(record, AuditLog::write)
    }

    /// Writes a record of an event that is about to happen, if there is an audit log.
    ///
    /// # Errors
    /// Returns why the record was not written, as a clause; the event must not happen then.
    pub(in crate::server) fn recorded_first(&self, record: Record) -> impl Future<Output = Result<(), String>> + use<> {
        self.with_audit(record, |audit, record, secrets| match audit.write_first(record, secrets) {
            Ok(_) => Ok(()),
            Err(unwritten) => Err(unwritten.problem),
        })
    }

    /// Writes a record off the threads of the runtime, if there is an audit log. It is on its way when this returns: the
    /// future only waits, so that callers do not hold the record.
    fn with_audit(
        &self,
        record: Record,
        write: fn(&AuditLog, Record, &Secrets) -> Result<(), String>,
    ) -> impl Future<Output = Result<(), String>> + use<> {
        let writing = self.downstreams.audit().cloned().map(|audit| {
            let secrets = self.downstreams.secrets().clone();
            self.runtime.spawn_blocking(move || write(&audit, record, &secrets))
        });
        async move {
            let Some(writing) = writing else { return Ok(()) };
            writing.await.unwrap_or_else(|problem| {
                tracing::error!(%problem, "a record of the audit log was not written");
                Err("a record of the audit log was not written".to_owned())
            })
        }
    }

    /// Renders the counters and current gauges in the text format of [`metrics`](crate::server::telemetry::metrics).
    pub(in crate::server) async fn metrics(&self) -> String {
        let (running, waiting) = self.gate.load();
        let servers = self.downstreams.connected().await;
        self.downstreams.metrics().text(&Now { running, waiting, sessions: self.sessions.load(), servers })
    }

    async fn evaluate_in_turn(
        &self,
        called: Box<CalledProgram>,
        caller: &Caller,
        identity: &mut Identity,
    ) -> Result<(Box<Reply>, Option<AskedRun>), Refused> {
        let CalledProgram { request, resumed, key, .. } = &*called;
        let texts = request.program.len() + request.data.as_ref().map_or(0, String::len);
        let _slot = self.gate.admit(&caller.name, texts as u64)?;
        let are_withdrawn_over = self.unordered.until_withdrawn_end(&caller.name, withdrawn::PATIENCE).await;
        // One with a key, or that is resumed, goes on when its client has gone.
        let is_unordered = caller.own.is_none() && request.session.is_none() && key.is_none() && resumed.is_none();
        let _entered = is_unordered.then(|| self.unordered.enter(&caller.name, &caller.request));
        let known = resumed.as_ref().map(|(run, _)| &run.run).or(key.as_ref().map(|key| &key.identity));
        known.iter().for_each(|run| caller.activity.is_run(run));
        let entry = match resumed.as_ref().map(|(_, session)| session) {
            Some(RunSession::Here(entry)) => Arc::clone(entry),
            Some(RunSession::Stored(handle)) => self.entry(Some(handle), caller)?,
            Some(RunSession::Begun(handle)) if caller.own.as_ref().is_some_and(|own| own.handle == *handle) => {
                self.entry(None, caller)?
            }
            Some(RunSession::Begun(handle)) => match self.sessions.find(&caller.name, handle) {
                Ok(Some(entry)) => entry,
                _ if self.persistence.is_none() => self.new_session(&caller.name)?,
                _ => Entry::perhaps_in_store(&caller.name, handle, Arc::clone(&self.sandbox).environment()),
            },
            None => self.entry(request.session.as_deref(), caller)?,
        };
        let is_named = request.session.is_some();
        let outcome = self.evaluate_in(called, caller, &entry, identity).await;
        let (mut reply, asked) = outcome.map_err(|refused| caller.refused(&entry, is_named, refused))?;
        if !are_withdrawn_over {
            reply.notes.push(withdrawn::NOT_ENDED.to_owned());
        }
        Ok((reply, asked))
    }

    /// Checks, once the session is locked, that it is still usable.
    ///
    /// # Errors
    /// Refuses if the session was closed or has exceeded its lifetime.
    fn is_usable(&self, entry: &Arc<Entry>, caller: &Caller, is_named: bool) -> Result<(), Refused> {
        let is_own = caller.owns(entry);
        if is_own && self.sessions.is_old(entry) {
            return Err(self.sessions.refused(Ended::Old));
        }
        match entry.why_gone().filter(|_| is_own) {
            Some(gone) => Err(gone),
            None if is_named && entry.is_closed() => Err(unknown_session()),
            None => Ok(()),
        }
    }

    /// Resolves the session of a call: the named one, the connection's, or a new one.
    fn entry(&self, handle: Option<&str>, caller: &Caller) -> Result<Arc<Entry>, Refused> {
        match (handle, &caller.own) {
            (Some(handle), Some(own)) if own.handle == handle => Ok(Arc::clone(own)),
            (Some(handle), _) => match (self.sessions.find(&caller.name, handle), &self.persistence) {
                (Ok(Some(entry)), _) => Ok(entry),
                (Err(why @ Ended::Old), _) | (Err(why), None) => Err(self.sessions.refused(why)),
                (_, Some(_)) => Ok(Entry::in_store(&caller.name, handle, Arc::clone(&self.sandbox).environment())),
                (Ok(None), None) => Err(unknown_session()),
            },
            (None, Some(own)) => Ok(Arc::clone(own)),
            (None, None) => self.new_session(&caller.name),
        }
    }

    /// Waits until the session is free and there is room to run. Calls of one session run in order, and take up no room
    /// while they wait for each other.
    async fn turn(&self, entry: &Entry, caller: &Caller, memory: u64) -> Result<Turn, Refused> {
        let turn = async {
            let session = Arc::clone(&entry.session).lock_owned().await;
            Turn { session, _room: self.gate.room(&caller.name, memory).await }
        };
        tokio::select! {
            // A call that was withdrawn before its turn must not begin: a later call may have seen the session already.
            biased;
            () = caller.left.cancelled() => Err(Refused::new("Cancelled", "the call was cancelled before it started")),
            () = self.shutdown.cancelling().cancelled() => Err(self.shutdown.too_late()),
            turn = turn => Ok(turn),
        }
    }

    /// Runs blocking work in a session to its end, and cancels the host if the call is withdrawn.
    async fn blocking<T: Send + 'static>(
        &self,
        mut turn: Turn,
        caller: &Caller,
        hosted: Hosted,
        work: impl FnOnce(&mut Box<dyn Environment>, Arc<dyn Host>) -> T + Send + 'static,
    ) -> Result<T, Refused> {
        let Hosted { slots, identity, requests, grants, run_status, features } = hosted;
        let cancel = self.shutdown.cancelling().child_token();
        caller.activity.begins();
        let downstreams = Arc::clone(&self.downstreams);
        let number = identity.evaluation;
        let host = EvaluationHost::new(downstreams, self.runtime.clone(), cancel.clone(), slots, number);
        let host = host.with_features(|of_host| *of_host = features);
        let host = host.known_as(identity, Arc::clone(&caller.approver), grants).with_runs(run_status);
        let host: Arc<dyn Host> = Arc::new(host.observed(Arc::clone(&caller.activity), requests));
        let mut working = self.runtime.spawn_blocking(move || work(&mut turn.session, host));
        let outcome = tokio::select! {
            outcome = &mut working => outcome,
            () = caller.withdrawn.cancelled() => {
                cancel.cancel();
                working.await
            }
        };
        outcome.map_err(|problem| {
            tracing::error!(evaluation = number, %problem, "an evaluation panicked");
            Refused::new(
                "InternalError",
                "the evaluation panicked; this is a bug in lispbox, not an error in the program",
            )
        })
    }
}

/// The refusal of an action that requires an audit record which could not be written.
pub(in crate::server) fn unwritten(problem: String) -> Refused {
    Refused::new("AuditUnavailable", format!("{problem}; nothing was evaluated (`serve --audit-failure`)"))
}

fn unknown_session() -> Refused {
    Refused::session_lost("UnknownSession", "there is no session with this handle: it was closed or never existed")
}

#[cfg(test)]
mod tests;
