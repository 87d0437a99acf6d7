//! One program in its session: the part of an evaluation that blocks.
//!
//! Each step consumes the one before: a [`ProgramRun`] is [`Leased`](super::leased::Leased) when its session and its run
//! are held here, then [`Prepared`](super::prepared::Prepared) and [`Evaluated`](super::evaluated::Evaluated), and last
//! [`Finished`]. Those that a [dry run](super::dry_run) answers hold nothing.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::lang::{Environment, Host, Keep, Reply, Request, Sandbox};
use crate::server::admission::request::Refused;
use crate::server::admission::shutdown::Shutdown;
use crate::server::approvals::asked::AskedRun;
use crate::server::approvals::run_grants::RunGrants;
use crate::server::audit::{AuditLog, Record};
use crate::server::calls::activity::Activity;
use crate::server::guards::KnownTexts;
use crate::server::runs::{Free, ResumedRun, Resumption, RunKey, Runs};
use crate::server::secrets::Secrets;
use crate::server::sessions::handles::Handles;
use crate::server::sessions::persistence::Persistence;
use crate::server::sessions::requests::SessionRequests;
use crate::server::sessions::{Entry, SessionState};
use crate::store::{Key, Problem};

use super::dry_run::{DryProgram, DryRun};
use super::unwritten;
use super::waits::LONGEST_LEASE;
use super::withdrawn::ClientRequest;

/// A program with everything that its thread needs.
pub(super) struct ProgramRun {
    pub(super) program: Request,
    /// The way to answer the program in place of running it.
    pub(super) dry_run: Option<Arc<dyn DryRun>>,
    pub(super) run: WantedRun,
    pub(super) place: Place,
    pub(super) known: KnownTexts,
    pub(super) client: Client,
    pub(super) services: Services,
    /// The requests of the program for its session.
    pub(super) requests: Arc<SessionRequests>,
    /// Receives the consent to the calls of the run.
    pub(super) consent: Option<Arc<RunGrants>>,
    /// The audit log, if there is one, with the record that announces the program.
    pub(super) audit: Option<(Arc<AuditLog>, Secrets, Record)>,
    /// The time for which this thread waits while another evaluation uses the run or the session.
    pub(super) patience: Duration,
}

/// The run to which an evaluation belongs.
pub(super) struct WantedRun {
    /// The run that is resumed.
    pub(super) resumption: Option<Resumption>,
    /// The key of a run that has not begun.
    pub(super) key: Option<RunKey>,
    /// The extent to which the log is kept.
    pub(super) keep: Keep,
}

/// The session of a program.
pub(super) struct Place {
    pub(super) entry: Arc<Entry>,
    /// True if the session is that of the caller's connection.
    pub(super) is_own: bool,
    pub(super) persistence: Option<Arc<Persistence>>,
    /// Why the store is not used, if there is one.
    pub(super) without: Option<Problem>,
    pub(super) sandbox: Arc<dyn Sandbox>,
    /// The handles that the caller's connection knows, if the protocol revision tracks them.
    pub(super) handles: Option<Arc<Handles>>,
}

/// The client of an evaluation.
#[derive(Default)]
pub(super) struct Client {
    /// The activity of the program, as others see it.
    pub(super) activity: Arc<Activity>,
    /// Its request.
    pub(super) request: Arc<ClientRequest>,
    /// Cancelled if the client ends the program.
    pub(super) withdrawn: CancellationToken,
}

/// The parts of the server that evaluations share.
pub(super) struct Services {
    pub(super) runs: Arc<Runs>,
    pub(super) shutdown: Arc<Shutdown>,
}

/// The outcome of an attempt to run a program.
pub(super) enum Ran {
    Finished(Box<Finished>),
    /// Nothing was done: another evaluation uses this record, which is awaited for that time.
    Busy(Box<ProgramRun>, Key, Duration),
}

impl From<Finished> for Ran {
    fn from(finished: Finished) -> Ran {
        Ran::Finished(Box::new(finished))
    }
}

/// A program that has ended.
pub(super) struct Finished {
    pub(super) reply: Box<Reply>,
    pub(super) state: SessionState,
    /// The copies of its session that it requested, to be kept in memory.
    pub(super) copies: Vec<Arc<Entry>>,
    /// The stored session that defines the name because of which the program failed.
    pub(super) definer: Option<Definer>,
    /// The run, if it is suspended.
    pub(super) asked: Option<AskedRun>,
}

/// A session that defines a name which a program misses.
pub(super) enum Definer {
    /// The one of this handle.
    Known(String),
    /// One whose handle the caller's connection does not know.
    Unknown,
}

impl Finished {
    /// Creates the outcome of a program that requested nothing for its session and does not wait.
    pub(super) fn with(reply: Box<Reply>, state: SessionState) -> Finished {
        Finished { reply, state, copies: Vec::new(), definer: None, asked: None }
    }
}

impl ProgramRun {
    /// Announces the program in the audit log, loads its session, evaluates it, and writes the session.
    ///
    /// # Errors
    /// Refuses if the announcement cannot be written, or if the session cannot be loaded or leased; nothing was
    /// evaluated then.
    pub(super) fn run(
        mut self: Box<Self>,
        session: &mut Box<dyn Environment>,
        host: Arc<dyn Host>,
    ) -> Result<Ran, Refused> {
        if let Some(dry_run) = self.dry_run.take() {
            return self.answer(&*dry_run, session, host).map(Ran::from);
        }
        // Requests that resume the same run take turns at it: the first takes it.
        let runs = Arc::clone(&self.services.runs);
        let (caller, stop) = (self.place.entry.caller().to_owned(), self.requests.stop());
        let resumption = self.run.resumption.clone();
        let taken = resumption.map(|run| runs.take(run, &caller, stop, self.patience)).transpose()?;
        let resumed = match taken {
            None => None,
            Some(Free::Now(resumed)) => Some(resumed),
            Some(Free::Later(key, _)) => {
                let patience = self.program.limits.total.max(LONGEST_LEASE);
                return Ok(Ran::Busy(self, key, patience));
            }
        };
        let ran = self.resume(resumed.as_ref(), session, host);
        if let (Err(_) | Ok(Ran::Busy(..)), Some(resumed)) = (&ran, resumed) {
            // Nothing was evaluated.
            runs.put_back(resumed);
        }
        ran
    }

    /// Answers the program by a dry run.
    ///
    /// # Errors
    /// Refuses if the audit record cannot be written, if the session cannot be read, or as the dry run does.
    fn answer(
        mut self: Box<Self>,
        dry_run: &dyn DryRun,
        session: &mut Box<dyn Environment>,
        host: Arc<dyn Host>,
    ) -> Result<Finished, Refused> {
        self.look_at(&mut **session)?;
        let ProgramRun { program: request, place, run, known, services, .. } = *self;
        let (entry, runs) = (Arc::clone(&place.entry), Arc::clone(&services.runs));
        let program = DryProgram { request, entry, sandbox: place.sandbox, known, runs, key: run.key };
        let reply = dry_run.reply(program, &mut **session, host)?;
        let state = place.entry.used(&**session, &[], place.is_own);
        Ok(Finished::with(Box::new(reply), state))
    }

    fn resume(
        mut self: Box<Self>,
        resumed: Option<&ResumedRun>,
        session: &mut Box<dyn Environment>,
        host: Arc<dyn Host>,
    ) -> Result<Ran, Refused> {
        self.announce()?;
        let leased = match self.lease(resumed, session, &host)? {
            Ok(leased) => leased,
            Err(busy) => return Ok(busy),
        };
        if let Some(finished) = leased.answered(session) {
            return Ok(finished.into());
        }
        let prepared = leased.prepare(session, host)?;
        Ok(prepared.evaluate(session).conclude(session).into())
    }

    /// Writes the record that announces the program, if there is an audit log.
    ///
    /// # Errors
    /// Refuses if it cannot be written.
    fn announce(&mut self) -> Result<(), Refused> {
        let Some((audit, secrets, announced)) = self.audit.take() else { return Ok(()) };
        audit.write_program(announced, &self.program.program, &secrets).map_err(unwritten)?;
        Ok(())
    }

    /// Announces a program that changes nothing, and reads its session as it is in the store.
    ///
    /// # Errors
    /// Refuses if the announcement cannot be written, or if the session cannot be read.
    pub(super) fn look_at(&mut self, session: &mut dyn Environment) -> Result<(), Refused> {
        self.announce()?;
        let Place { persistence, entry, .. } = &self.place;
        persistence.as_ref().map_or(Ok(()), |persistence| persistence.refresh(entry, session))
    }
}
