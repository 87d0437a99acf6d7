//! A program whose session and run are held by this process.

use std::sync::Arc;

use crate::lang::{Environment, Host};
use crate::server::admission::request::Refused;
use crate::server::guards::received;
use crate::server::runs::{Free, ResumedRun};
use crate::server::sessions::persistence::{Begin, SessionLease, refused};

use super::program::{Finished, ProgramRun, Ran};
use super::waits::LONGEST_LEASE;

/// The run of an evaluation.
pub(super) enum HeldRun<'r> {
    /// None: it is made when the program has to be kept.
    None,
    /// One that this evaluation has begun.
    Begun(Box<ResumedRun>),
    /// One that another evaluation has begun.
    Resumed(&'r ResumedRun),
}

impl HeldRun<'_> {
    pub(super) fn get(&self) -> Option<&ResumedRun> {
        match self {
            HeldRun::None => None,
            HeldRun::Begun(run) => Some(run),
            HeldRun::Resumed(run) => Some(run),
        }
    }

    /// True if no evaluation has begun the program before.
    pub(super) fn is_new(&self) -> bool {
        !matches!(self, HeldRun::Resumed(_))
    }

    /// True for a further attempt of a program that failed.
    pub(super) fn is_retry(&self) -> bool {
        matches!(self, HeldRun::Resumed(run) if run.is_retry())
    }
}

/// A program whose session and run are held by this process, and by no other evaluation.
pub(super) struct Leased<'r> {
    pub(super) program: Box<ProgramRun>,
    pub(super) run: HeldRun<'r>,
    /// The lease of the session, if there is a store.
    pub(super) lease: Option<SessionLease>,
    /// The version of the session in the store.
    pub(super) version: u64,
}

impl ProgramRun {
    /// Takes the lease of the session, loads it, and begins a run if the program needs one. Returns the outcome
    /// [`Ran::Busy`] if another evaluation has one of them.
    ///
    /// # Errors
    /// Refuses if the session or the run cannot be loaded or stored.
    pub(super) fn lease<'r>(
        mut self: Box<Self>,
        resumed: Option<&'r ResumedRun>,
        session: &mut Box<dyn Environment>,
        host: &Arc<dyn Host>,
    ) -> Result<Result<Leased<'r>, Ran>, Refused> {
        let entry = &self.place.entry;
        let begun = self.place.persistence.as_ref();
        let begun = begun.map(|store| store.begin(entry, &mut **session, host, &self.requests, self.patience));
        let lease = match begun.transpose()? {
            None => None,
            Some(Begin::Leased(lease)) => Some(lease),
            Some(Begin::Busy(key)) => return Ok(Err(Ran::Busy(self, key, LONGEST_LEASE))),
            Some(Begin::InMemory(problem)) if resumed.is_none() && self.run.key.is_none() => {
                (self.place.persistence, self.place.without) = (None, Some(problem));
                return Ok(Ok(Leased { program: self, run: HeldRun::None, lease: None, version: 0 }));
            }
            Some(Begin::InMemory(problem)) => return Err(refused(&problem)),
        };
        let version = entry.version();
        let (runs, stop) = (&self.services.runs, self.requests.stop());
        let run = match (resumed, &self.run.key) {
            (Some(resumed), _) => HeldRun::Resumed(resumed),
            (None, Some(key)) => match runs.begin(key, entry, (&self.program, version), stop, self.patience)? {
                Free::Now(begun) => HeldRun::Begun(Box::new(begun)),
                Free::Later(key, patience) => {
                    drop(lease);
                    return Ok(Err(Ran::Busy(self, key, patience)));
                }
            },
            (None, None) => {
                let identity = || self.client.activity.run();
                let first = runs.first(entry, &self.program, version, identity, stop)?;
                first.map_or(HeldRun::None, |run| HeldRun::Begun(Box::new(run)))
            }
        };
        run.get().into_iter().for_each(|run| self.client.activity.is_run(run.identity()));
        Ok(Ok(Leased { program: self, run, lease, version }))
    }
}

impl Leased<'_> {
    /// Returns the outcome of a run that has ended already.
    pub(super) fn answered(&self, session: &mut Box<dyn Environment>) -> Option<Finished> {
        let reply = self.run.get()?.reply()?;
        let ProgramRun { place, program, .. } = &*self.program;
        received(place.entry.origins(), &program.program, reply);
        Some(Finished::with(Box::new(reply.clone()), place.entry.used(&**session, &[], place.is_own)))
    }
}
