//! Runs that wait for the decision of a person: in the memory of this process, or in the [store](stored) of the sessions.
//!
//! A run in memory is found by its identity, which cannot be guessed and changes each time it is suspended. It is taken
//! out when it is resumed: of two requests that resume it, one does. A run in a store keeps its identity, and an answer
//! names the round of questions that it answers; the process that resumes it holds its lease, and stores each call that
//! may change something before it is sent.
//!
//! # Runs that fail
//! A run that did not end well after it has made changes is kept with its log: in its [record](attempts), or in
//! [memory](failures). A further attempt is evaluated from its beginning, and the log answers the changes that earlier
//! attempts have made (`lang::runs` compares two designs of that).
//!
//! Two designs were considered for what the further attempt sees of the session. In the other one it runs in the session
//! as the failed program left it. Then a program that counts, or that collects into an atom, does so twice, although its
//! effects happen once. So the session is put back, where its state before is known at no cost to programs that end well:
//! if it was empty, or if the store has it. Otherwise, and if anything else has changed it since, it stays as it is, and
//! the reply says so.
//!
//! - *A program that means to send the same mail twice* makes the call as often as it is written, less the times that it
//!   was made before: calls are matched by tool, arguments and occurrence.
//! - *A change that a corrected program no longer asks for* is reported in its reply; nothing undoes it.
//! - *Times and random numbers in arguments*: the further attempt draws the logged ones again, by form and position. What
//!   differs all the same is another call.
//! - *`pmap`*: equal calls of several branches take the earlier replies in the order in which they come; since they are
//!   equal, it makes no difference which one gets which.
//! - *Further failures* add their changes; the log has those of all attempts.
//! - *Two attempts at once*: the second is refused. The lease of the record decides, or a claim in memory.
//! - *A call whose outcome is unknown* waits for a person if there is a store. Without one nobody could settle it, so the
//!   attempt is stopped before the call, and the client may insist.
//! - *The same program again without its run* is stopped once, before the first call that it repeats. Answering it from
//!   the log instead would be wrong for whoever means to repeat, and could not be seen; an operator can choose it.

pub(in crate::server) mod attempts;
mod earlier;
pub(in crate::server) mod ended;
mod failures;
pub(in crate::server) mod listing;
mod repeats;
mod resumed;
mod running;
mod status;
pub(in crate::server) mod stored;
pub(in crate::server) mod summary;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::lang::{self, Limits, Logged, Mark, Reply, Request, Suspended};
use crate::server::admission::request::Refused;
use crate::server::approvals::answers::{self, Answers};
use crate::server::approvals::asked::{AskedRun, WAITING, asked_calls};
use crate::server::approvals::grants::StoredGrants;
use crate::server::identity::sha256;
use crate::server::recordings::RecordOptions;
use crate::server::sessions::Entry;
use crate::server::sessions::persistence::Persistence;
use crate::store::{self, Key, Problem};

pub(in crate::server) use attempts::Retry;
use failures::Failures;
use listing::{PATIENCE, StoredRuns, missing};
pub(in crate::server) use repeats::Repeats;
use resumed::HeldRecord;
pub(in crate::server) use resumed::{Promise, ResumedRun};
use running::{Listed, Made, Running};
use stored::{Start, StoredRun};
use summary::{RUN, RunState, RunSummary, now};

/// Most runs of one principal that wait at a time.
const MOST: usize = 20;

/// Most bytes of arguments and replies that a run holds.
pub(in crate::server) const MOST_LOGGED: u64 = 16 << 20;

/// Returns the most bytes that the log of a run with those limits holds: it counts towards `memory`, and leaves most of it
/// to the program.
pub(in crate::server) fn most_logged(limits: &Limits) -> u64 {
    MOST_LOGGED.min(limits.memory / 4)
}

/// Most bytes of arguments and replies that all waiting runs in memory hold.
const MOST_LOGGED_IN_ALL: u64 = 512 << 20;

/// Maximum length of the identity of a run, in bytes.
const LONGEST_IDENTITY: usize = 100;

/// The interval at which expired runs are removed, if runs are recorded.
const PURGE: Duration = Duration::from_secs(60 * 60);

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
#[derive(Clone)]
pub(in crate::server) struct Resumption {
    /// The identity of the run.
    pub(in crate::server) run: String,
    /// The round of questions that is answered, and the answers.
    pub(in crate::server) answers: Option<(u32, Answers)>,
    /// The attempt, if the run did not end well.
    pub(in crate::server) retry: Option<Retry>,
}

/// A record that is free, or that another evaluation uses, here or in another process.
pub(in crate::server) enum Free<T> {
    Now(T),
    /// The record that has to be free first, and the time for which it is awaited.
    Later(Key, Duration),
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
    /// True if it did not end well, so that it may be attempted again.
    pub(in crate::server) may_be_retried: bool,
    /// True if whoever asks for the run alone gets its reply.
    pub(in crate::server) keeps_reply: bool,
    /// True if a further attempt has to bring the data of its program.
    pub(in crate::server) lacks_data: bool,
}

/// The session of a run.
pub(in crate::server) enum RunSession {
    Here(Arc<Entry>),
    /// By its handle.
    Stored(String),
    /// By its handle; it may not be in the store yet, since the run was not suspended.
    Begun(String),
}

impl RunSession {
    /// Returns the handle of the session.
    pub(in crate::server) fn handle(&self) -> &str {
        match self {
            RunSession::Here(entry) => &entry.handle,
            RunSession::Stored(handle) | RunSession::Begun(handle) => handle,
        }
    }
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
            unknown: Vec::new(),
        }
    }

    fn summary(&self, identity: &str) -> RunSummary {
        let AskedRun { calls, expires, .. } = self.asked(identity);
        let calls = calls.iter().map(|call| format!("{}/{}", call.question.server, call.question.tool)).collect();
        RunSummary { calls, expires: now() + expires.as_secs(), ..RunSummary::of_state(RunState::Waiting) }
    }

    /// Returns the run with the decisions on its open questions.
    fn decided(&self, answers: &Answers) -> Suspended {
        let program = sha256(self.run.program().as_bytes());
        let mut run = self.run.clone();
        for (call, asked) in asked_calls(self.run.log(), &program) {
            if let Some(decided) = run.log_mut().calls.iter_mut().find(|decided| decided.id == call.id) {
                decided.decision = answers(&asked).and_then(|answer| asked.decision(&answer));
            }
        }
        run
    }
}

/// The waiting runs.
pub(in crate::server) struct Runs {
    waiting: Mutex<HashMap<String, WaitingRun>>,
    /// The runs that did not end well.
    failures: Arc<Failures>,
    /// The programs that go on after their call was answered.
    running: Arc<Running>,
    /// Held while the texts of runs are read for a program.
    reading: Mutex<()>,
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
        let (waiting, failures, running, reading) = Default::default();
        Runs { waiting, failures, running, reading, persistence, record, purged: Mutex::default() }
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

    /// True if runs wait in a store, where a person can decide whatever the client is capable of.
    pub(in crate::server) fn are_stored(&self) -> bool {
        self.persistence.is_some()
    }

    /// Returns why no further run of a principal can wait, as a clause; `None` if one can. Counts the runs that wait in the
    /// store, whichever process has suspended them. Blocks.
    pub(in crate::server) fn crowded(&self, principal: &str) -> Option<String> {
        let stored = match self.summaries(principal) {
            Ok(stored) => stored.iter().filter(|(_, run)| run.state == RunState::Waiting).count(),
            Err(problem) => return Some(format!("the programs that wait for approval cannot be counted: {problem}")),
        };
        let mut waiting = self.waiting();
        waiting.retain(|_, run| run.since.elapsed() < WAITING);
        let here = waiting.values().filter(|run| run.principal == principal).count();
        if here + stored >= MOST {
            return Some(format!("{MOST} programs wait for approval already, and no further one can"));
        }
        let bytes: u64 = waiting.values().map(WaitingRun::bytes).sum();
        (bytes + MOST_LOGGED > MOST_LOGGED_IN_ALL)
            .then(|| "the programs that wait for approval take all the memory that they may take".to_owned())
    }

    /// Returns the runs of a principal in the store that have not ended. One thread at a time reads them, so that no more
    /// than one text is in memory.
    fn summaries(&self, principal: &str) -> Result<Vec<(String, RunSummary)>, Problem> {
        let Some(persistence) = &self.persistence else { return Ok(Vec::new()) };
        let _reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        StoredRuns::new(Arc::clone(persistence.store())).summaries(principal)
    }

    /// Finds a run; `None` if there is none of that identity. Blocks if it is in a store, but does not wait for another
    /// process that evaluates the run.
    ///
    /// # Errors
    /// Refuses if it cannot be read.
    pub(in crate::server) fn find(&self, identity: &str, principal: &str) -> Result<Free<Option<FoundRun>>, Refused> {
        if let Some(waiting) = self.waiting().get(identity).filter(|run| run.is_of(principal)) {
            return Ok(Free::Now(Some(FoundRun {
                session: RunSession::Here(Arc::clone(&waiting.entry)),
                program: waiting.run.program().to_owned(),
                limits: waiting.run.limits().clone(),
                asked: waiting.asked(identity),
                arguments: None,
                ended: None,
                may_be_retried: false,
                keeps_reply: false,
                lacks_data: false,
            })));
        }
        if let Some(kept) = self.failures.kept(identity, principal) {
            // No person can settle a call of a run that is in memory: the attempt is stopped before it.
            let found = found(&kept, identity);
            let asked = AskedRun { calls: Vec::new(), unknown: Vec::new(), is_stored: false, ..found.asked };
            return Ok(Free::Now(Some(FoundRun { asked, ..found })));
        }
        let Some(persistence) = &self.persistence else { return Ok(Free::Now(None)) };
        let key = Key { principal: principal.to_owned(), handle: identity.to_owned() };
        let read = match persistence.store().read(&key, 0) {
            Err(Problem::Unknown) => return Ok(Free::Now(None)),
            read => read.map_err(|problem| not_resumed(&missing(&problem)))?,
        };
        let text = read.map(|read| read.text).unwrap_or_default();
        let mut stored = StoredRun::decode(&text).map_err(|problem| not_resumed(&problem.to_string()))?;
        if stored.is_expired() {
            if stored.reply().is_none() {
                return Err(gone());
            }
            // Otherwise it goes with the sessions that are no longer used.
            let _ = persistence.store().remove(&key, None);
            return Ok(Free::Now(None));
        }
        // Another evaluation may be under way, here or in another process. If so, its end is awaited.
        if stored.is_under_way() {
            let patience = stored.run().limits().total;
            match HeldRecord::take(persistence, key, CancellationToken::new(), Duration::ZERO)? {
                Free::Now((_, now)) => stored = now,
                Free::Later(key, _) => return Ok(Free::Later(key, patience.max(PATIENCE))),
            }
        }
        Ok(Free::Now(Some(found(&stored, identity))))
    }

    /// Stores a run with a key that is about to be evaluated in that session for the first time, and takes it. Waits for
    /// `patience` while another evaluation has it.
    ///
    /// # Errors
    /// Refuses if a run with that key has begun meanwhile, or if the store cannot be used.
    pub(in crate::server) fn begin(
        &self,
        key: &RunKey,
        entry: &Entry,
        (request, session_version): (&Request, u64),
        stop: CancellationToken,
        patience: Duration,
    ) -> Result<Free<ResumedRun>, Refused> {
        let needs_store = || Refused::new("InvalidArguments", "a run key needs a server with `--store`");
        let persistence = self.persistence.as_ref().ok_or_else(needs_store)?;
        let run = Suspended::of(&request.program, request.limits.clone(), Mark::default(), Logged::default());
        let start = Start { data: request.data.clone(), session_version };
        let stored = StoredRun::begun(&entry.handle, run, Some(key.arguments.clone()), start);
        let place = entry.key_of(key.identity.clone());
        let no_room = |problem| Refused::new("RunNotKept", format!("{problem}; nothing was evaluated"));
        persistence.room(entry.caller()).map_err(no_room)?;
        let is_new = match persistence.store().create(&place, &stored.encode(), &[RUN.to_owned()]) {
            Ok(()) => true,
            Err(Problem::Changed) => false,
            Err(problem) => return Err(not_resumed(&missing(&problem))),
        };
        // Another request with the same key may take it first: its reply is awaited.
        let (record, found) = match HeldRecord::take(persistence, place, stop, patience)? {
            Free::Now(taken) => taken,
            Free::Later(key, _) => return Ok(Free::Later(key, request.limits.total.max(PATIENCE))),
        };
        let is_ours = is_new && found.start().is_some() && found.run().log().calls.is_empty();
        if found.arguments() != stored.arguments() || !is_ours && found.reply().is_none() {
            return Err(not_resumed("another request with this run key has begun meanwhile: call again"));
        }
        Ok(Free::Now(ResumedRun::stored(found, record)))
    }

    /// Lists a program among the runs of a principal while it goes on.
    pub(in crate::server) fn goes_on(&self, identity: &str, principal: &str, made: Made) -> Listed {
        Listed::new(&self.running, identity, principal, made)
    }

    /// Returns a run without a key that is about to be evaluated for the first time, under an identity that was drawn for
    /// it; `None` if there is no store. Nothing is stored yet.
    ///
    /// # Errors
    /// Refuses if there is no `identity`.
    pub(in crate::server) fn first(
        &self,
        entry: &Entry,
        request: &Request,
        session_version: u64,
        identity: impl FnOnce() -> Result<String, String>,
        stop: CancellationToken,
    ) -> Result<Option<ResumedRun>, Refused> {
        let Some(persistence) = &self.persistence else { return Ok(None) };
        let identity = identity().map_err(|message| Refused::new("InternalError", message))?;
        let run = Suspended::of(&request.program, request.limits.clone(), Mark::default(), Logged::default());
        let start = Start { data: request.data.clone(), session_version };
        let stored = StoredRun::begun(&entry.handle, run, None, start);
        let record = HeldRecord::new(persistence, entry.key_of(identity), stop);
        Ok(Some(ResumedRun::first(stored, record)))
    }

    /// Takes a run to resume it, with the answers of the request. Blocks if it is in a store, and waits for `patience` while
    /// another evaluation has it; `stop` is cancelled if another process takes the run.
    ///
    /// # Errors
    /// Refuses if it does not wait, or no longer; nothing was changed then.
    pub(in crate::server) fn take(
        &self,
        Resumption { run: identity, answers, retry }: Resumption,
        principal: &str,
        stop: CancellationToken,
        patience: Duration,
    ) -> Result<Free<ResumedRun>, Refused> {
        {
            let mut waiting = self.waiting();
            if waiting.get(&identity).is_some_and(|run| run.is_of(principal)) {
                let before = waiting.remove(&identity).ok_or_else(gone)?;
                let run = match &answers {
                    Some((_, answers)) => before.decided(answers),
                    None => before.run.clone(),
                };
                return Ok(Free::Now(ResumedRun::here(identity, run, before)));
            }
        }
        if let Some(claimed) = self.failures.claim(&identity, principal) {
            let (kept, claim) = claimed.map_err(|()| under_way())?;
            let retried = kept.retried(&retry.unwrap_or_default());
            return Ok(Free::Now(ResumedRun::kept_here(identity, retried, claim)));
        }
        let Some(persistence) = &self.persistence else { return Err(gone()) };
        let key = Key { principal: principal.to_owned(), handle: identity };
        let patience = if retry.is_some() { Duration::ZERO } else { patience };
        let (record, mut stored) = match HeldRecord::take(persistence, key, stop, patience)? {
            Free::Now(taken) => taken,
            Free::Later(..) if retry.is_some() => return Err(under_way()),
            Free::Later(key, patience) => return Ok(Free::Later(key, patience)),
        };
        if stored.is_expired() {
            return Err(gone());
        }
        let open = stored.open();
        if open.iter().any(|open| open.is_unknown) {
            return Err(not_resumed(
                "a person has to say first whether calls of it happened (`lispbox approvals show`)",
            ));
        }
        if let Some(retry) = retry {
            return match stored.may_be_retried() {
                true => Ok(Free::Now(ResumedRun::retried(stored.retried(&retry), record))),
                false => Err(not_resumed("another attempt of it has ended meanwhile")),
            };
        }
        if let Some((round, answers)) = answers.filter(|_| stored.reply().is_none()) {
            if round != stored.round() {
                return Err(not_resumed("it asks other questions by now"));
            }
            let grants = answers::record(&mut stored, open, &answers).map_err(|problem| not_resumed(&problem))?;
            let given = StoredGrants::new(Arc::clone(persistence.store()));
            for problem in grants.iter().filter_map(|grant| given.give(principal, grant).err()) {
                tracing::warn!(problem, "later calls were allowed, which cannot be stored: a person is asked again");
            }
        }
        Ok(Free::Now(ResumedRun::stored(stored, record)))
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
    ) -> Result<AskedRun, String> {
        let principal = entry.caller();
        if let Some((before, record)) = resumed.and_then(ResumedRun::record) {
            let mut stored = before.suspended_again(run);
            if let Some(recording) = resumed.and_then(ResumedRun::finished_recording) {
                stored = stored.with_record(recording);
            }
            if let (false, Some(persistence)) = (record.is_stored(), &self.persistence) {
                persistence.room(principal)?;
            }
            record.close_with(&stored)?;
            return Ok(stored.asked(record.identity()));
        }
        // A further attempt waits as a run of its own.
        resumed.iter().for_each(|resumed| self.failures.remove(resumed.identity()));
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
    pub(in crate::server) fn put_waiting(&self, entry: &Entry, identity: &str, run: &StoredRun) -> Result<(), String> {
        let persistence = self.persistence.as_ref().ok_or("the server has no `--store`")?;
        let principal = entry.caller();
        if let Some(problem) = self.crowded(principal) {
            return Err(problem);
        }
        persistence.room(principal)?;
        let created =
            persistence.store().create(&entry.key_of(identity.to_owned()), &run.encode(), &run.summary().names());
        created.map_err(|problem| match problem {
            Problem::Changed => "another request with this run key has begun meanwhile".to_owned(),
            problem => missing(&problem),
        })
    }
}

/// Returns what is known of a run by its record.
fn found(stored: &StoredRun, identity: &str) -> FoundRun {
    let session = stored.session().to_owned();
    FoundRun {
        session: if stored.start().is_some() { RunSession::Begun(session) } else { RunSession::Stored(session) },
        program: stored.run().program().to_owned(),
        limits: stored.run().limits().clone(),
        asked: stored.asked(identity),
        arguments: stored.arguments().map(str::to_owned),
        ended: stored.reply().cloned().map(Box::new),
        may_be_retried: stored.may_be_retried(),
        keeps_reply: stored.keeps_reply(),
        lacks_data: stored.lacks_data(),
    }
}

/// The refusal of a second attempt at the same time.
fn under_way() -> Refused {
    not_resumed("another attempt of it is being evaluated")
}

/// The refusal to resume a run that does not wait.
pub(in crate::server) fn gone() -> Refused {
    not_resumed(
        "there is no such run: it was continued before, was cancelled, has waited too long, or never existed; \
         `(run/status)` lists those that there are",
    )
}

pub(in crate::server) fn not_resumed(why: &str) -> Refused {
    Refused::new("RunNotResumed", format!("{why}; nothing was evaluated"))
}
