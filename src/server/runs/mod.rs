//! Runs that wait for the decision of a person: in the memory of this process, or in the [store](stored) of the sessions.
//!
//! A run in memory is found by its identity, which cannot be guessed and changes each time it is suspended. It is taken
//! out when it is resumed: of two requests that resume it, one does. A run in a store keeps its identity, and an answer
//! names the round of questions that it answers; the process that resumes it holds its lease, and stores each call that
//! may change something before it is sent.

mod asked;
pub(in crate::server) mod grants;
mod kept;
pub(in crate::server) mod listing;
pub(in crate::server) mod planned;
pub(in crate::server) mod recorded;
pub(in crate::server) mod rehearsal;
mod resumed;
pub(in crate::server) mod stored;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::lang::{self, Decision, Limits, Logged, Mark, Reply, Request, Suspended};
use crate::server::admission::request::Refused;
use crate::server::identity::sha256;
use crate::server::sessions::Entry;
use crate::server::sessions::persistence::Persistence;
use crate::store::{self, Key, Problem};

pub(in crate::server) use asked::{AskedCall, AskedRun};
use asked::{WAITING, asked_calls};
use listing::{RECORDS, RUN, StoredRuns, missing};
use recorded::{FinishedRecording, RecordOptions};
use resumed::HeldRecord;
pub(in crate::server) use resumed::ResumedRun;
use stored::{RunState, Start, StoredRun};

/// Most runs of one principal that wait at a time.
const MOST: usize = 20;

/// Most bytes of arguments and replies that a run holds.
pub(in crate::server) const MOST_LOGGED: u64 = 16 << 20;

/// Most bytes of arguments and replies that all waiting runs in memory hold.
const MOST_LOGGED_IN_ALL: u64 = 512 << 20;

/// The interval at which expired runs are removed, if runs are recorded.
const PURGE: Duration = Duration::from_secs(60 * 60);

/// The time after the start of a process at which runs that were cut off are reported.
const REPORT: Duration = Duration::from_secs(3);

/// Returns the decision on a question of a run; `None` leaves it open.
pub(in crate::server) type Decide = Box<dyn Fn(&AskedCall) -> Option<Decision> + Send>;

/// Maximum size of a run key, in bytes.
pub const LONGEST_RUN_KEY: usize = 200;

/// The key of a run: a request with the same key and the same arguments gets the reply of that run.
pub(in crate::server) struct RunKey {
    /// The identity of the run.
    pub(in crate::server) identity: String,
    /// The SHA-256 of the arguments of the call.
    pub(in crate::server) arguments: String,
}

impl RunKey {
    /// Returns the key of a call that its client named `name`.
    pub(in crate::server) fn new(principal: &str, name: &str, arguments: String) -> RunKey {
        RunKey { identity: sha256(format!("{principal}\n{name}").as_bytes())[..32].to_owned(), arguments }
    }
}

/// A request to resume a run.
pub(in crate::server) struct Resumption {
    /// The time for which another process that evaluates the run is awaited.
    pub(in crate::server) patience: Duration,
    /// The identity of the run.
    pub(in crate::server) run: String,
    /// The round of questions that is answered, and the answers.
    pub(in crate::server) answers: Option<(u32, Decide)>,
}

/// What is known of a run before it is resumed.
pub(in crate::server) struct FoundRun {
    pub(in crate::server) session: RunSession,
    pub(in crate::server) program: String,
    pub(in crate::server) limits: Limits,
    pub(in crate::server) asked: AskedRun,
    /// The SHA-256 of the arguments of its call, if it has a key.
    pub(in crate::server) arguments: Option<String>,
    /// The reply, if it has ended.
    pub(in crate::server) ended: Option<Box<Reply>>,
}

/// The session of a run.
pub(in crate::server) enum RunSession {
    Here(Arc<Entry>),
    /// By its handle.
    Stored(String),
    /// By its handle; it may not be in the store yet, since the run was not suspended.
    Begun(String),
}

/// A run that waits in memory.
#[derive(Clone)]
struct WaitingRun {
    principal: String,
    entry: Arc<Entry>,
    run: Suspended,
    since: Instant,
}

impl WaitingRun {
    /// True if the principal may resume it, and it has not expired.
    fn is_of(&self, principal: &str) -> bool {
        self.principal == principal && self.since.elapsed() < WAITING
    }

    fn bytes(&self) -> u64 {
        self.run.log().calls.iter().map(lang::Entry::bytes).sum()
    }

    fn asked(&self, identity: &str) -> AskedRun {
        let program = sha256(self.run.program().as_bytes());
        AskedRun {
            identity: identity.to_owned(),
            round: 0,
            calls: asked_calls(self.run.log(), &program).map(|(_, asked)| asked).collect(),
            expires: WAITING.saturating_sub(self.since.elapsed()),
            is_stored: false,
            unknown: 0,
        }
    }

    /// Returns the run with the decisions on its open questions.
    fn decided(&self, decide: &Decide) -> Suspended {
        let program = sha256(self.run.program().as_bytes());
        let mut run = self.run.clone();
        for (call, asked) in asked_calls(self.run.log(), &program) {
            if let Some(decided) = run.log_mut().calls.iter_mut().find(|decided| decided.id == call.id) {
                decided.decision = decide(&asked);
            }
        }
        run
    }
}

/// The waiting runs.
pub(in crate::server) struct Runs {
    waiting: Mutex<HashMap<String, WaitingRun>>,
    /// The runs that this process has put into the store, each with its principal and the time.
    put: Mutex<HashMap<String, (String, Instant)>>,
    /// The store, if sessions have one.
    persistence: Option<Arc<Persistence>>,
    /// The options for recording whole runs, if they are recorded.
    record: Option<RecordOptions>,
    /// The time at which expired runs were removed last.
    purged: Mutex<Option<Instant>>,
}

impl Runs {
    pub(in crate::server) fn new(persistence: Option<Persistence>, record: Option<RecordOptions>) -> Runs {
        let persistence = persistence.map(Arc::new);
        // Without a store there is no place for records.
        let record = record.filter(|_| persistence.is_some());
        Runs { waiting: Mutex::default(), put: Mutex::default(), persistence, record, purged: Mutex::default() }
    }

    /// Reports in the log, in the background, the runs whose processes died while they were evaluated.
    pub(in crate::server) fn report_cut_off(&self) {
        let Some(persistence) = &self.persistence else { return };
        let runs = StoredRuns::new(Arc::clone(persistence.store()));
        let work = move || {
            // The first programs need the store more.
            std::thread::park_timeout(REPORT);
            for (Key { principal, handle }, run) in runs.list().unwrap_or_default() {
                let unknown = run.as_ref().map_or(0, |run| run.asked(&handle).unknown);
                if unknown > 0 {
                    tracing::warn!(
                        run = handle,
                        principal,
                        calls = unknown,
                        "it is not known whether calls of a program happened, because its process died: see \
                         `lispbox approvals show`"
                    );
                }
            }
        };
        // Without the thread, `lispbox approvals list` shows them all the same.
        let _ = std::thread::Builder::new().name("runs".to_owned()).spawn(work);
    }

    /// Returns the store of the sessions, if there is one.
    pub(in crate::server) fn persistence(&self) -> Option<&Arc<Persistence>> {
        self.persistence.as_ref()
    }

    /// Returns the options for recording whole runs, if they are recorded.
    pub(in crate::server) fn record(&self) -> Option<RecordOptions> {
        self.record
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<String, WaitingRun>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self) -> MutexGuard<'_, HashMap<String, (String, Instant)>> {
        self.put.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if runs wait in a store, where a person can decide whatever the client is capable of.
    pub(in crate::server) fn are_stored(&self) -> bool {
        self.persistence.is_some()
    }

    /// Returns why no further run of a principal can wait, as a clause; `None` if one can.
    pub(in crate::server) fn crowded(&self, principal: &str) -> Option<String> {
        let (mut waiting, mut put) = (self.waiting(), self.put());
        waiting.retain(|_, run| run.since.elapsed() < WAITING);
        put.retain(|_, (_, since)| since.elapsed() < WAITING);
        let here = waiting.values().filter(|run| run.principal == principal).count();
        let stored = put.values().filter(|(owner, _)| owner == principal).count();
        if here + stored >= MOST {
            return Some(format!("{MOST} programs wait for approval already, and no further one can"));
        }
        let bytes: u64 = waiting.values().map(WaitingRun::bytes).sum();
        (bytes + MOST_LOGGED > MOST_LOGGED_IN_ALL)
            .then(|| "the programs that wait for approval take all the memory that they may take".to_owned())
    }

    /// Finds a run; `None` if there is none of that identity. Blocks if it is in a store.
    ///
    /// # Errors
    /// Refuses if it cannot be read.
    pub(in crate::server) fn find(&self, identity: &str, principal: &str) -> Result<Option<FoundRun>, Refused> {
        if let Some(waiting) = self.waiting().get(identity).filter(|run| run.is_of(principal)) {
            return Ok(Some(FoundRun {
                session: RunSession::Here(Arc::clone(&waiting.entry)),
                program: waiting.run.program().to_owned(),
                limits: waiting.run.limits().clone(),
                asked: waiting.asked(identity),
                arguments: None,
                ended: None,
            }));
        }
        let Some(persistence) = &self.persistence else { return Ok(None) };
        let key = Key { principal: principal.to_owned(), handle: identity.to_owned() };
        let read = match persistence.store().read(&key, 0) {
            Err(Problem::Unknown) => return Ok(None),
            read => read.map_err(|problem| not_resumed(&missing(&problem)))?,
        };
        let text = read.map(|read| read.text).unwrap_or_default();
        let stored = StoredRun::decode(&text).map_err(|problem| not_resumed(&problem.to_string()))?;
        if stored.is_expired() {
            if stored.reply().is_none() {
                return Err(gone());
            }
            // Otherwise it goes with the sessions that are no longer used.
            let _ = persistence.store().remove(&key, None);
            return Ok(None);
        }
        // Another process may be making these calls at this moment. If so, its end is awaited.
        let stored = match stored.open().iter().any(|open| open.is_unknown) {
            true => HeldRecord::take(persistence, key, CancellationToken::new(), stored.run().limits().total)?.1,
            false => stored,
        };
        let session = stored.session().to_owned();
        Ok(Some(FoundRun {
            session: if stored.start().is_some() { RunSession::Begun(session) } else { RunSession::Stored(session) },
            program: stored.run().program().to_owned(),
            limits: stored.run().limits().clone(),
            asked: stored.asked(identity),
            arguments: stored.arguments().map(str::to_owned),
            ended: stored.reply().cloned().map(Box::new),
        }))
    }

    /// Stores a run with a key that is about to be evaluated in that session for the first time, and takes it.
    ///
    /// # Errors
    /// Refuses if a run with that key has begun meanwhile, or if the store cannot be used.
    pub(in crate::server) fn begin(
        &self,
        key: RunKey,
        entry: &Entry,
        request: &Request,
        session_version: u64,
        stop: CancellationToken,
    ) -> Result<ResumedRun, Refused> {
        let needs_store = || Refused::new("InvalidArguments", "a run key needs a server with `--store`");
        let persistence = self.persistence.as_ref().ok_or_else(needs_store)?;
        let run = Suspended::of(&request.program, request.limits.clone(), Mark::default(), Logged::default());
        let start = Start { data: request.data.clone(), session_version };
        let stored = StoredRun::begun(&entry.handle, run, Some(key.arguments), start);
        let place = entry.key_of(key.identity);
        let no_room = |problem| Refused::new("RunNotKept", format!("{problem}; nothing was evaluated"));
        persistence.room(entry.caller()).map_err(no_room)?;
        let is_new = match persistence.store().create(&place, &stored.encode(), &[RUN.to_owned()]) {
            Ok(()) => true,
            Err(Problem::Changed) => false,
            Err(problem) => return Err(not_resumed(&missing(&problem))),
        };
        // Another request with the same key may take it first: its reply is awaited.
        let (record, found) = HeldRecord::take(persistence, place, stop, request.limits.total)?;
        let is_ours = is_new && found.start().is_some() && found.run().log().calls.is_empty();
        if found.arguments() != stored.arguments() || !is_ours && found.reply().is_none() {
            return Err(not_resumed("another request with this run key has begun meanwhile: call again"));
        }
        Ok(ResumedRun::stored(found, record))
    }

    /// Describes the runs of a principal that have not ended, or one run: the text of a JSON array or object. Blocks.
    ///
    /// # Errors
    /// Returns why it cannot, as a clause.
    pub(in crate::server) fn status(&self, principal: &str, run: Option<&str>) -> Result<String, String> {
        let described = |identity: &str, asked: &AskedRun, state: &str| {
            let tool = |call: &AskedCall| format!("{}/{}", call.question.server, call.question.tool);
            let calls: Vec<String> = asked.calls.iter().map(tool).collect();
            json!({
                "run": identity, "state": state, "calls": calls, "unknown": asked.unknown,
                "expires_in_seconds": asked.expires.as_secs(),
            })
        };
        let here =
            |(identity, waiting): (&String, &WaitingRun)| described(identity, &waiting.asked(identity), "waiting");
        if let Some(identity) = run {
            if let Some(waiting) = self.waiting().get(identity).filter(|run| run.is_of(principal)) {
                return Ok(here((&identity.to_owned(), waiting)).to_string());
            }
            let none = || format!("there is no run `{identity}`: it has expired, or never existed");
            let persistence = self.persistence.as_ref().ok_or_else(none)?;
            let key = Key { principal: principal.to_owned(), handle: identity.to_owned() };
            let stored = StoredRuns::new(Arc::clone(persistence.store())).read(&key).map_err(|_| none())?;
            return Ok(described(identity, &stored.asked(identity), stored.state().word()).to_string());
        }
        let waiting = self.waiting();
        let mut all: Vec<_> = waiting.iter().filter(|(_, run)| run.is_of(principal)).map(here).collect();
        drop(waiting);
        if let Some(persistence) = &self.persistence {
            let listed = StoredRuns::new(Arc::clone(persistence.store())).of(principal);
            for (Key { handle, .. }, run) in listed.map_err(|problem| problem.to_string())? {
                match run {
                    Ok(run) if run.state() != RunState::Ended => {
                        all.push(described(&handle, &run.asked(&handle), run.state().word()));
                    }
                    _ => {}
                }
            }
        }
        Ok(serde_json::Value::Array(all).to_string())
    }

    /// Returns a run without a key that is about to be evaluated for the first time; `None` if there is no store. Nothing
    /// is stored yet.
    ///
    /// # Errors
    /// Refuses if the system has no randomness.
    pub(in crate::server) fn first(
        &self,
        entry: &Entry,
        request: &Request,
        session_version: u64,
        stop: CancellationToken,
    ) -> Result<Option<ResumedRun>, Refused> {
        let Some(persistence) = &self.persistence else { return Ok(None) };
        let identity = store::handle().map_err(|message| Refused::new("InternalError", message))?;
        let run = Suspended::of(&request.program, request.limits.clone(), Mark::default(), Logged::default());
        let start = Start { data: request.data.clone(), session_version };
        let stored = StoredRun::begun(&entry.handle, run, None, start);
        let record = HeldRecord::new(persistence, entry.key_of(identity), stop);
        Ok(Some(ResumedRun::first(stored, record)))
    }

    /// Takes a run to resume it, with the answers of the request. Blocks if it is in a store; `stop` is cancelled if
    /// another process takes the run.
    ///
    /// # Errors
    /// Refuses if it does not wait, or no longer; nothing was changed then.
    pub(in crate::server) fn take(
        &self,
        Resumption { run: identity, answers, patience }: Resumption,
        principal: &str,
        stop: CancellationToken,
    ) -> Result<ResumedRun, Refused> {
        {
            let mut waiting = self.waiting();
            if waiting.get(&identity).is_some_and(|run| run.is_of(principal)) {
                let before = waiting.remove(&identity).ok_or_else(gone)?;
                let run = match &answers {
                    Some((_, decide)) => before.decided(decide),
                    None => before.run.clone(),
                };
                return Ok(ResumedRun::here(identity, run, before));
            }
        }
        let Some(persistence) = &self.persistence else { return Err(gone()) };
        let key = Key { principal: principal.to_owned(), handle: identity };
        let (record, mut stored) = HeldRecord::take(persistence, key, stop, patience)?;
        if stored.is_expired() {
            return Err(gone());
        }
        let open = stored.open();
        if open.iter().any(|open| open.is_unknown) {
            return Err(not_resumed(
                "a person has to say first whether calls of it happened (`lispbox approvals show`)",
            ));
        }
        if let Some((round, answers)) = answers.filter(|_| stored.reply().is_none()) {
            if round != stored.round() {
                return Err(not_resumed("it asks other questions by now"));
            }
            for open in open {
                let decided = match answers(&open.asked()) {
                    Some(Decision::Approved) => stored.decide(&open.number, None, "the user of the client"),
                    Some(Decision::Denied(reason)) => {
                        stored.decide(&open.number, Some(&reason), "the user of the client")
                    }
                    _ => continue,
                };
                decided.map_err(|problem| not_resumed(&problem))?;
            }
        }
        Ok(ResumedRun::stored(stored, record))
    }

    /// Keeps a run that is to be resumed no more than it was: nothing was evaluated.
    pub(in crate::server) fn put_back(&self, run: ResumedRun) {
        if let Some((identity, before)) = run.into_waiting() {
            self.waiting().insert(identity, before);
        }
    }

    /// Keeps a run that was suspended, for the first time or after it was resumed. Its session is kept already. Blocks
    /// if there is a store.
    ///
    /// # Errors
    /// Returns why it is not kept, as a clause.
    pub(in crate::server) fn keep(
        &self,
        entry: &Arc<Entry>,
        run: Suspended,
        resumed: Option<&ResumedRun>,
        recording: Option<FinishedRecording>,
    ) -> Result<AskedRun, String> {
        let principal = entry.caller();
        if let Some((before, record)) = resumed.and_then(ResumedRun::record) {
            let mut stored = before.suspended_again(run);
            if let Some(recording) = recording {
                stored = stored.with_record(recording);
            }
            if let (false, Some(persistence)) = (record.is_stored(), &self.persistence) {
                persistence.room(principal)?;
            }
            record.close_with(&stored)?;
            self.put().insert(record.identity().to_owned(), (principal.to_owned(), Instant::now()));
            return Ok(stored.asked(record.identity()));
        }
        let identity = store::handle()?;
        let waiting =
            WaitingRun { principal: principal.to_owned(), entry: Arc::clone(entry), run, since: Instant::now() };
        let asked = waiting.asked(&identity);
        self.waiting().insert(identity, waiting);
        Ok(asked)
    }

    /// Stores a run that waits for a person before anything was called. Blocks.
    ///
    /// # Errors
    /// Returns why it is not kept, as a clause.
    fn put_waiting(&self, entry: &Entry, identity: &str, run: &StoredRun) -> Result<(), String> {
        let persistence = self.persistence.as_ref().ok_or("the server has no `--store`")?;
        let principal = entry.caller();
        if let Some(problem) = self.crowded(principal) {
            return Err(problem);
        }
        persistence.room(principal)?;
        let created = persistence.store().create(&entry.key_of(identity.to_owned()), &run.encode(), &[RUN.to_owned()]);
        created.map_err(|problem| match problem {
            Problem::Changed => "another request with this run key has begun meanwhile".to_owned(),
            problem => missing(&problem),
        })?;
        self.put().insert(identity.to_owned(), (principal.to_owned(), Instant::now()));
        Ok(())
    }

    /// Records that a run has ended with a reply. Returns why that is not recorded, as a clause.
    pub(in crate::server) fn ended(
        &self,
        resumed: &ResumedRun,
        reply: &Reply,
        principal: &str,
        recording: Option<FinishedRecording>,
    ) -> Option<String> {
        let (before, record) = resumed.record()?;
        self.put().remove(record.identity());
        let is_recorded = recording.is_some();
        let mut ended = before.ended_with(reply);
        if let Some(recording) = recording {
            ended = ended.recorded_as(recording, principal);
            self.purge();
        }
        if resumed.outlives_request() {
            return record.close_with(&ended).err();
        }
        // No one can ask for its reply.
        let removed = record.remove();
        if !is_recorded {
            return removed.err();
        }
        let key = Key { principal: RECORDS.to_owned(), handle: record.identity().to_owned() };
        let store = self.persistence.as_ref()?.store();
        store.create(&key, &ended.encode(), &[RUN.to_owned()]).err().map(|problem| missing(&problem))
    }

    /// Removes expired runs in the background, from time to time.
    fn purge(&self) {
        let Some(persistence) = &self.persistence else { return };
        let mut purged = self.purged.lock().unwrap_or_else(PoisonError::into_inner);
        if purged.is_some_and(|purged| purged.elapsed() < PURGE) {
            return;
        }
        *purged = Some(Instant::now());
        let runs = StoredRuns::new(Arc::clone(persistence.store()));
        let work = move || {
            if let Err(problem) = runs.purge() {
                tracing::warn!(%problem, "expired runs could not be removed");
            }
        };
        if let Err(problem) = std::thread::Builder::new().name("purge".to_owned()).spawn(work) {
            tracing::warn!(%problem, "expired runs could not be removed");
        }
    }
}

/// The refusal to resume a run that does not wait.
pub(in crate::server) fn gone() -> Refused {
    not_resumed("there is no such run: it was continued before, was cancelled, has waited too long, or never existed")
}

pub(in crate::server) fn not_resumed(why: &str) -> Refused {
    Refused::new("RunNotResumed", format!("{why}; nothing was evaluated"))
}
