//! Programs with a run key at a terminal: evaluated once, with their runs in a store.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::lang::{Host, Keep, Reply, Request, Sandbox};
use crate::server::admission::allowances::Allowances;
use crate::server::admission::request::Refused;
use crate::server::admission::shutdown::Shutdown;
use crate::server::calls::Features;
use crate::server::guards::KnownTexts;
use crate::server::identity::{LOCAL, sha256_of_json};
use crate::server::runs::{FoundRun, Free, Resumption, RunKey, RunSession, Runs, not_resumed};
use crate::server::sessions::persistence::Persistence;
use crate::server::sessions::requests::SessionRequests;
use crate::server::sessions::{Entry, SessionBounds};
use crate::store::{LOOK, Store};

use super::dry_run::DryRun;
use super::program::{Client, Finished, Place, ProgramRun, Ran, Services, WantedRun};
use super::waits::LONGEST_LEASE;

/// Runs with a key in a store, for programs that are not served to a client. They belong to the principal `local`.
pub struct KeyedRuns {
    runs: Arc<Runs>,
    persistence: Arc<Persistence>,
    sandbox: Arc<dyn Sandbox>,
}

/// The connection between a host and the record of a run: a call that may change something is recorded before it is made.
#[derive(Clone)]
pub struct RunCalls {
    pub(in crate::server) requests: Arc<SessionRequests>,
    dry_run: Option<Arc<dyn DryRun>>,
}

impl RunCalls {
    /// Switches on what the calls of the program need.
    pub(in crate::server) fn prepare(&self, features: &mut Features) {
        self.dry_run.iter().for_each(|dry_run| dry_run.prepare(features));
    }
}

/// The outcome of a program with a run key.
pub struct KeyedReply {
    /// The reply, which may be that of an earlier evaluation.
    pub reply: Reply,
    /// The number of calls on which a person has to decide, or about which a person has to find out whether they happened.
    pub open: usize,
}

/// What has to be evaluated for a key.
enum Wanted {
    /// A program in this session, which begins or resumes a run.
    Evaluation(Arc<Entry>, Option<Box<Resumption>>, Option<RunKey>),
    /// Nothing: this is the reply.
    Nothing(Box<KeyedReply>),
}

impl KeyedRuns {
    /// Creates the view of a store. Programs are evaluated in environments of `sandbox`.
    ///
    /// # Errors
    /// Returns a message if the store cannot be used.
    pub fn new(store: Arc<dyn Store>, sandbox: Arc<dyn Sandbox>) -> Result<KeyedRuns, String> {
        // What is in the store expires by the settings of the server that uses it.
        let bounds = SessionBounds { kept: Duration::MAX, ..SessionBounds::default() };
        let persistence = Persistence::new(store, &bounds, Arc::new(Allowances::default()));
        let runs = Arc::new(Runs::new(Some(persistence), None));
        let persistence = runs.persistence().cloned().ok_or("the store cannot be used")?;
        Ok(KeyedRuns { runs, persistence, sandbox })
    }

    /// Evaluates a program, unless there is a run with that key: a run that has ended answers with its reply, and one that
    /// waits for a person is continued once that person has decided. `host` creates the host of the evaluation.
    ///
    /// # Errors
    /// Returns a reply that says why nothing was evaluated.
    pub fn evaluate(
        &self,
        key: &str,
        request: Request,
        host: impl FnOnce(&RunCalls) -> Arc<dyn Host>,
    ) -> Result<KeyedReply, Box<Reply>> {
        self.try_to_evaluate(key, request, host, None).map_err(|refused| Box::new(refused.reply()))
    }

    /// Like [`KeyedRuns::evaluate`], but the program is answered by a dry run.
    ///
    /// # Errors
    /// Returns a reply that says why nothing was evaluated.
    pub(in crate::server) fn dry_run(
        &self,
        key: &str,
        request: Request,
        host: impl FnOnce(&RunCalls) -> Arc<dyn Host>,
        dry_run: Arc<dyn DryRun>,
    ) -> Result<KeyedReply, Box<Reply>> {
        self.try_to_evaluate(key, request, host, Some(dry_run)).map_err(|refused| Box::new(refused.reply()))
    }

    /// Finds a run. Waits while another process evaluates it.
    fn find(&self, identity: &str) -> Result<Option<FoundRun>, Refused> {
        let begun = Instant::now();
        loop {
            match self.runs.find(identity, LOCAL)? {
                Free::Now(found) => return Ok(found),
                Free::Later(_, patience) if begun.elapsed() >= patience => {
                    return Err(not_resumed("another process evaluates it"));
                }
                Free::Later(..) => std::thread::park_timeout(LOOK),
            }
        }
    }

    /// Finds out what has to be evaluated for a key, with which `request` is completed.
    fn wanted(&self, key: RunKey, request: &mut Request) -> Result<Wanted, Refused> {
        let environment = || Arc::clone(&self.sandbox).environment();
        let nothing = |reply, open| Ok(Wanted::Nothing(Box::new(KeyedReply { reply, open })));
        match self.find(&key.identity)? {
            None => {
                let entry = Entry::new(LOCAL, environment());
                Ok(Wanted::Evaluation(
                    entry.map_err(|message| Refused::new("InternalError", message))?,
                    None,
                    Some(key),
                ))
            }
            Some(FoundRun { arguments, .. }) if arguments.as_ref() != Some(&key.arguments) => {
                let message = "a program with this run key had another text or other data; nothing was evaluated";
                Err(Refused::new("RunKeyReused", message))
            }
            Some(FoundRun { ended: Some(reply), .. }) => nothing(*reply, 0),
            Some(FoundRun { asked, .. }) if !asked.is_decided() => {
                let open = asked.calls.len() + asked.unknown.len();
                let status = crate::lang::Status::Suspended;
                nothing(Reply { status, run: Some(asked.identity), ..Reply::default() }, open)
            }
            Some(FoundRun { session, program, asked, .. }) => {
                let entry = match session {
                    RunSession::Here(entry) => entry,
                    RunSession::Stored(handle) => Entry::in_store(LOCAL, &handle, environment()),
                    RunSession::Begun(handle) => Entry::perhaps_in_store(LOCAL, &handle, environment()),
                };
                (request.program, request.data) = (program, None);
                let resumption = Resumption { run: asked.identity, answers: None, retry: None };
                Ok(Wanted::Evaluation(entry, Some(Box::new(resumption)), None))
            }
        }
    }

    fn try_to_evaluate(
        &self,
        key: &str,
        mut request: Request,
        host: impl FnOnce(&RunCalls) -> Arc<dyn Host>,
        dry_run: Option<Arc<dyn DryRun>>,
    ) -> Result<KeyedReply, Refused> {
        let digest = match &dry_run {
            Some(dry_run) => sha256_of_json(&(&request.program, &request.data, dry_run.name())),
            None => sha256_of_json(&(&request.program, &request.data)),
        };
        let digest = digest.map_err(|problem| Refused::new("InternalError", problem.to_string()))?;
        let key = RunKey::new(LOCAL, key, digest);
        let (entry, resumption, key) = match self.wanted(key, &mut request)? {
            Wanted::Evaluation(entry, resumption, key) => (entry, resumption.map(|resumption| *resumption), key),
            Wanted::Nothing(reply) => return Ok(*reply),
        };
        let patience = request.limits.total.max(LONGEST_LEASE);
        let requests = Arc::<SessionRequests>::default();
        // A run that is resumed makes its calls.
        let dry_run = dry_run.filter(|_| resumption.is_none());
        let host = host(&RunCalls { requests: Arc::clone(&requests), dry_run: dry_run.clone() });
        let place = Place {
            entry: Arc::clone(&entry),
            is_own: false,
            persistence: Some(Arc::clone(&self.persistence)),
            without: None,
            sandbox: Arc::clone(&self.sandbox),
            handles: None,
        };
        let run = Box::new(ProgramRun {
            program: request,
            dry_run,
            run: WantedRun { resumption, key, keep: Keep::Form },
            place,
            known: KnownTexts::of_person(),
            client: Client::default(),
            services: Services { runs: Arc::clone(&self.runs), shutdown: Shutdown::new(Duration::ZERO) },
            requests,
            // At a terminal the user is asked about the calls.
            consent: None,
            audit: None,
            patience,
        });
        let Ran::Finished(finished) = run.run(&mut entry.session.blocking_lock(), host)? else {
            return Err(not_resumed("another process evaluates it"));
        };
        let Finished { mut reply, asked, .. } = *finished;
        let open = asked.as_ref().map_or(0, |asked| asked.calls.len() + asked.unknown.len());
        reply.run = asked.map(|asked| asked.identity).or(reply.run);
        Ok(KeyedReply { reply: *reply, open })
    }
}
