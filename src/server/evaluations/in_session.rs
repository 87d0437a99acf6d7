//! The evaluation of a program in its session, from its turn to its reply.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::lang::{Environment, Keep, Reply, Request};
use crate::server::admission::request::{EvalRequest, Refused};
use crate::server::approvals::Grants;
use crate::server::approvals::asked::AskedRun;
use crate::server::approvals::grants::SessionGrants;
use crate::server::approvals::run_grants::RunGrants;
use crate::server::audit::{Kind, Record};
use crate::server::calls::Features;
use crate::server::guards::KnownTexts;
use crate::server::identity::Identity;
use crate::server::runs::not_resumed;
use crate::server::sessions::persistence;
use crate::server::sessions::requests::SessionRequests;
use crate::server::sessions::{Entry, SessionState};
use crate::server::telemetry::log;
use crate::store::Problem;

use super::program::{Client, Definer, Finished, Place, ProgramRun, Ran, Services, WantedRun};
use super::{CalledProgram, Caller, Evaluations, Hosted, Turn, hints};

/// A session as a call has it.
#[derive(Clone, Copy)]
struct CalledSession<'c> {
    caller: &'c Caller,
    entry: &'c Arc<Entry>,
    /// True if the request names it.
    is_named: bool,
}

/// Returns the request for the language. A run that is resumed has its data in its record.
fn program(request: EvalRequest, is_resumed: bool) -> Request {
    let data = request.data.filter(|_| !is_resumed);
    Request { program: request.program, data, limits: request.limits, name: None, from: None }
}

/// Returns the request of the client that a program is evaluated for.
fn client(caller: &Caller) -> Client {
    Client {
        activity: Arc::clone(&caller.activity),
        request: Arc::clone(&caller.request),
        withdrawn: caller.withdrawn.clone(),
    }
}

impl Evaluations {
    /// Waits for the turn of a program, evaluates it, and returns its reply and its run, if that is suspended.
    pub(super) async fn evaluate_in(
        &self,
        program: Box<CalledProgram>,
        caller: &Caller,
        entry: &Arc<Entry>,
        identity: &mut Identity,
    ) -> Result<(Box<Reply>, Option<AskedRun>), Refused> {
        let memory = program.request.limits.memory;
        let turn = self.turn(entry, caller, memory).await?;
        let session = CalledSession { caller, entry, is_named: program.request.session.is_some() };
        identity.session = Some(log::hashed(&entry.handle));
        self.is_usable(entry, caller, session.is_named)?;
        self.downstreams.refresh();
        let named = program.resumed.as_ref().map(|(resumption, _)| resumption.run.clone());
        let (run, hosted) = self.program_run(program, session, identity);
        let finished = self.until_finished((run, hosted), turn, session, memory).await;
        caller.has_read(entry);
        Ok(self.received(*finished?, session, named.as_deref()))
    }

    /// Returns a program with everything that its thread needs, and the parts of its host.
    fn program_run(
        &self,
        called: Box<CalledProgram>,
        session: CalledSession<'_>,
        identity: &Identity,
    ) -> (Box<ProgramRun>, Hosted) {
        let CalledProgram { request, resumed, key, dry_run } = *called;
        let resumption = resumed.map(|(resumption, _)| resumption);
        let CalledSession { caller, entry, .. } = session;
        let known = KnownTexts::new(&self.downstreams, caller.own.as_ref(), entry, caller.words.clone());
        // A run that is resumed makes its calls.
        let is_resumed = resumption.is_some();
        let dry_run = dry_run.filter(|_| !is_resumed);
        let repeats = self.runs.repeats(entry, &identity.program, resumption.as_ref());
        let repeats = repeats.filter(|_| !request.repeat && dry_run.is_none());
        let mut features = Features::new(&known, repeats);
        dry_run.iter().for_each(|dry_run| dry_run.prepare(&mut features));
        let consent = self.persistence.as_ref().map(|persistence| {
            let grants = SessionGrants::new(persistence.store(), &caller.name, &entry.handle);
            Arc::new(RunGrants::new(Some(Arc::new(grants))))
        });
        let (runs, principal) = (Arc::clone(&self.runs), caller.name.clone());
        let requests = Arc::<SessionRequests>::default();
        let hosted = Hosted {
            slots: request.limits.parallel,
            identity: Arc::new(identity.clone()),
            requests: Arc::clone(&requests),
            grants: consent.clone().map(|grants| grants as Arc<dyn Grants>),
            run_status: Some(Arc::new(move |run| runs.status(&principal, run))),
            features,
        };
        let audit = self
            .downstreams
            .audit()
            .map(|audit| (Arc::clone(audit), self.downstreams.secrets().clone(), Record::of(Kind::Program, identity)));
        let run = Box::new(ProgramRun {
            dry_run,
            run: WantedRun { resumption, key, keep: if caller.can_wait { Keep::Form } else { Keep::Nothing } },
            place: self.place(session),
            known,
            client: client(caller),
            services: Services { runs: Arc::clone(&self.runs), shutdown: Arc::clone(&self.shutdown) },
            program: program(request, is_resumed),
            requests,
            consent,
            audit,
            patience: Duration::ZERO,
        });
        (run, hosted)
    }

    /// Returns where a program is evaluated.
    fn place(&self, CalledSession { caller, entry, .. }: CalledSession<'_>) -> Place {
        Place {
            entry: Arc::clone(entry),
            is_own: caller.owns(entry),
            persistence: self.persistence.clone(),
            without: None,
            sandbox: Arc::clone(&self.sandbox),
            handles: caller.handles.clone(),
        }
    }

    /// Runs a program to its end. Waits while another evaluation has its session or its run.
    async fn until_finished(
        &self,
        (mut run, mut hosted): (Box<ProgramRun>, Hosted),
        mut turn: Turn,
        session: CalledSession<'_>,
        memory: u64,
    ) -> Result<Box<Finished>, Refused> {
        let CalledSession { caller, entry, is_named } = session;
        let begun = Instant::now();
        loop {
            let work = move |session: &mut Box<dyn Environment>, host| run.run(session, host);
            let (again, key, patience) = match self.blocking(turn, caller, hosted.clone(), work).await?? {
                Ran::Finished(finished) => return Ok(finished),
                Ran::Busy(again, key, patience) => (again, key, patience),
            };
            let patience = patience.saturating_sub(begun.elapsed());
            if !self.until_free(&key, patience, &caller.left).await? {
                let is_session = key == entry.key();
                let of_run = || not_resumed("the run is being resumed");
                return Err(if is_session { persistence::refused(&Problem::Leased) } else { of_run() });
            }
            // Requests of the attempt that was given up do not count.
            hosted.requests = Arc::default();
            run = again;
            run.requests = Arc::clone(&hosted.requests);
            turn = self.turn(entry, caller, memory).await?;
            self.is_usable(entry, caller, is_named)?;
        }
    }

    /// Keeps the session of a program that has ended in memory, and completes its reply for the client.
    fn received(
        &self,
        finished: Finished,
        session: CalledSession<'_>,
        named: Option<&str>,
    ) -> (Box<Reply>, Option<AskedRun>) {
        let CalledSession { caller, entry, is_named } = session;
        let Finished { mut reply, state, copies, definer, asked } = finished;
        if let Some(asked) = &asked {
            reply.run = Some(asked.identity.clone());
        }
        // A client that has gone would not receive what is told.
        if !caller.request.is_withdrawn() {
            reply.cut_off = self.runs.untold(entry, named, reply.status);
        }
        match state {
            SessionState::Empty => {}
            SessionState::New | SessionState::Known => self.sessions.keep(entry),
            SessionState::Closed => self.sessions.discard(&entry.handle),
        }
        for copy in &copies {
            self.sessions.keep(copy);
        }
        if let Some(handles) = &caller.handles {
            let is_known = is_named || state == SessionState::New;
            copies.iter().chain(is_known.then_some(entry)).for_each(|entry| handles.add(&entry.handle));
        }
        if state == SessionState::New {
            reply.session = Some(entry.handle.clone());
        }
        match (hints::unbound(&reply).map(str::to_owned), &caller.handles) {
            (Some(symbol), Some(handles)) => {
                let is_other = |handle: &str| handle != entry.handle && handles.has(handle);
                match self.sessions.definer(&caller.name, &symbol, is_other).map(Definer::Known).or(definer) {
                    Some(Definer::Known(handle)) => hints::defined_in(&mut reply, &symbol, &handle),
                    Some(Definer::Unknown) => hints::defined_earlier(&mut reply, &symbol),
                    None => {}
                }
            }
            // Only the client knows which sessions it has.
            (Some(symbol), None) if !is_named => {
                hints::starts_empty(&mut reply, &symbol);
            }
            _ => {}
        }
        (reply, asked)
    }
}
