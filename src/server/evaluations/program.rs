//! One program in its session: the part of an evaluation that blocks.

use std::sync::Arc;

use crate::lang::{Environment, Host, Keep, Logged, Mark, Recorder, Reply, Request, RunLog, Sandbox, Status};
use crate::server::admission::request::Refused;
use crate::server::admission::shutdown::Shutdown;
use crate::server::audit::{AuditLog, Record};
use crate::server::runs::MOST_LOGGED;
use crate::server::secrets::Secrets;
use crate::server::sessions::handles::Handles;
use crate::server::sessions::persistence::{Persistence, SessionLease, failed, unwritable};
use crate::server::sessions::requests::SessionRequests;
use crate::server::sessions::{Entry, SessionState};

use super::{unbound, unwritten};

/// A program with everything that its thread needs.
pub(super) struct ProgramRun {
    pub(super) program: Request,
    /// The log of the run that is resumed, or an empty one.
    pub(super) log: Logged,
    /// The extent to which the log is kept.
    pub(super) keep: Keep,
    /// Its session.
    pub(super) entry: Arc<Entry>,
    /// True if the session is that of the caller's connection.
    pub(super) is_own: bool,
    pub(super) persistence: Option<Arc<Persistence>>,
    pub(super) sandbox: Arc<dyn Sandbox>,
    pub(super) shutdown: Arc<Shutdown>,
    /// The requests of the program for its session.
    pub(super) requests: Arc<SessionRequests>,
    /// The handles that the caller's connection knows, if the protocol revision tracks them.
    pub(super) handles: Option<Arc<Handles>>,
    /// The audit log, if there is one, with the record that announces the program.
    pub(super) audit: Option<(Arc<AuditLog>, Secrets, Record)>,
}

/// A program that has ended.
pub(super) struct Finished {
    pub(super) reply: Reply,
    pub(super) state: SessionState,
    /// The copies of its session that it requested, to be kept in memory.
    pub(super) copies: Vec<Arc<Entry>>,
    /// The handle of a stored session that defines the name because of which the program failed.
    pub(super) definer: Option<String>,
    /// The place at which the run is resumed, and its log, if it is suspended.
    pub(super) suspended: Option<(Box<Mark>, Logged)>,
}

impl ProgramRun {
    /// Announces the program in the audit log, loads its session, evaluates it, and writes the session.
    ///
    /// # Errors
    /// Refuses if the announcement cannot be written, or if the session cannot be loaded or leased; nothing was
    /// evaluated then.
    pub(super) fn run(self, session: &mut Box<dyn Environment>, host: Arc<dyn Host>) -> Result<Finished, Refused> {
        if let Some((audit, secrets, announced)) = self.audit {
            audit.write_program(announced, &self.program.program, &secrets).map_err(unwritten)?;
        }
        let persistence = self.persistence.as_deref();
        let lease = persistence
            .map(|persistence| persistence.begin(&self.entry, &mut **session, &host, &self.requests))
            .transpose()?;
        let log = Arc::new(RunLog::new(self.log, self.keep, MOST_LOGGED));
        let mut reply = session.eval(self.program, Arc::new(Recorder::new(host, Arc::clone(&log))));
        let suspended = reply.mark.take().map(|mark| (mark, log.logged()));
        let copies = self.requests.copies(&self.entry, &mut **session, &self.sandbox, persistence);
        let copies = copies.unwrap_or_else(|problem| {
            failed(&mut reply, "SessionNotForked", &format!("the session could not be copied: {problem}"));
            Vec::new()
        });
        // A program that waits has not ended.
        let closes = self.requests.closes() && suspended.is_none();
        let closed = closes.then(|| lease.as_ref().map_or(Ok(()), SessionLease::close));
        let state = if let Some(Ok(())) = closed {
            *session = self.sandbox.environment();
            self.entry.close(self.is_own);
            // The reply lists only names that still exist.
            reply.defined.clear();
            SessionState::Closed
        } else {
            let state = self.entry.used(&**session, &reply.defined);
            let is_stored = lease.is_some();
            match (lease, closed) {
                (Some(lease), Some(Err(problem))) => lease.goes_on(&self.entry, &problem, &mut reply),
                (Some(lease), _) => lease.end(&self.entry, &mut **session, &mut reply),
                (None, _) => match session.unkept() {
                    Some(problem) => unwritable(&mut reply, &self.entry, &problem),
                    None => self.entry.kept(),
                },
            }
            self.shutdown.explain(&mut reply, is_stored);
            state
        };
        let definer = self.handles.and_then(|handles| {
            persistence?.definer(&self.entry, unbound(&reply)?).filter(|handle| handles.has(handle))
        });
        // A run whose session was not kept cannot be resumed; the reply says so.
        let suspended = suspended.filter(|_| reply.status == Status::Suspended);
        Ok(Finished { reply, state, copies, definer, suspended })
    }
}
