//! A run while it is resumed.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::lang::{CallState, Entry, Journal, Logged, Mark, Reply, RunLog, Suspended};
use crate::server::admission::request::Refused;
use crate::server::plans::terms::{PlanTerms, without_plan};
use crate::server::recordings::{FinishedRecording, Recorded, RecordedRun};
use crate::server::sessions::leases::HeldLease;
use crate::server::sessions::persistence::Persistence;
use crate::store::{Key, Problem, wait_for_lease};

use super::attempts::SessionBefore;
use super::failures::Claim;
use super::listing::{PATIENCE, missing};
use super::stored::{Start, StoredRun, push_change};
use super::summary::RUN;
use super::{Free, WaitingRun, not_resumed};

/// The time within which the outcome of a call is stored, unless the next call that may change something stores it before.
const OUTCOMES: Duration = Duration::from_millis(100);

/// The size of the changes of a log, in bytes, from which on its text is made anew once they are larger than the rest.
const CHANGES: usize = 1 << 20;

/// A run that is being evaluated, for the first time or again. In a store it is leased until this is dropped.
pub(in crate::server) struct ResumedRun(Source);

enum Source {
    Here {
        identity: String,
        run: Box<Suspended>,
        before: Box<WaitingRun>,
    },
    /// A further attempt of a run that is kept in memory.
    KeptHere {
        identity: String,
        run: Box<StoredRun>,
        _claim: Claim,
    },
    Stored {
        run: Box<StoredRun>,
        record: Leased,
        kind: Evaluation,
    },
}

/// The kind of an evaluation of a run in a store.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Evaluation {
    /// Of a run without a key, for the first time.
    First,
    /// A further attempt of a run that did not end well.
    Further,
    /// Of a run that has a key, was suspended, or was cut off.
    Continued,
}

/// The record of a run for as long as it is evaluated. A task that stores an outcome may have the record for longer, but
/// not its lease: whoever reads the reply finds the run at rest.
struct Leased(Arc<HeldRecord>);

impl Drop for Leased {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl ResumedRun {
    pub(super) fn here(identity: String, run: Suspended, before: WaitingRun) -> ResumedRun {
        ResumedRun(Source::Here { identity, run: Box::new(run), before: Box::new(before) })
    }

    pub(super) fn stored(run: StoredRun, record: HeldRecord) -> ResumedRun {
        ResumedRun(Source::Stored { run: Box::new(run), record: Leased(Arc::new(record)), kind: Evaluation::Continued })
    }

    /// A run without a key that is evaluated for the first time. It is not in the store until it makes a call that may
    /// change something, or is suspended.
    pub(super) fn first(run: StoredRun, record: HeldRecord) -> ResumedRun {
        ResumedRun(Source::Stored { run: Box::new(run), record: Leased(Arc::new(record)), kind: Evaluation::First })
    }

    /// A further attempt of a run in a store that did not end well.
    pub(super) fn retried(run: StoredRun, record: HeldRecord) -> ResumedRun {
        ResumedRun(Source::Stored { run: Box::new(run), record: Leased(Arc::new(record)), kind: Evaluation::Further })
    }

    /// A further attempt of a run that is kept in memory.
    pub(super) fn kept_here(identity: String, run: StoredRun, claim: Claim) -> ResumedRun {
        ResumedRun(Source::KeptHere { identity, run: Box::new(run), _claim: claim })
    }

    /// Returns the identity of the run.
    pub(in crate::server) fn identity(&self) -> &str {
        match &self.0 {
            Source::Here { identity, .. } | Source::KeptHere { identity, .. } => identity,
            Source::Stored { record, .. } => record.0.identity(),
        }
    }

    /// Returns the record of the run as it was before the evaluation; `None` for one that waited in memory.
    pub(super) fn attempted(&self) -> Option<&StoredRun> {
        match &self.0 {
            Source::Here { .. } => None,
            Source::KeptHere { run, .. } | Source::Stored { run, .. } => Some(run),
        }
    }

    /// Returns true if this is a further attempt that begins.
    pub(in crate::server) fn is_retry(&self) -> bool {
        matches!(self.0, Source::KeptHere { .. } | Source::Stored { kind: Evaluation::Further, .. })
    }

    /// Returns the session before the last attempt, and its state after it, if this is a further one that begins.
    pub(in crate::server) fn session_before(&self) -> Option<&(SessionBefore, u64)> {
        self.attempted().and_then(StoredRun::session_before)
    }

    /// Returns true if its client knows the run, and can ask for its reply.
    pub(in crate::server) fn is_known(&self) -> bool {
        !matches!(self.0, Source::Stored { kind: Evaluation::First, .. })
    }

    /// Returns what keeps the run, with its reply, for the other processes of a store.
    pub(in crate::server) fn promise(&self) -> Option<Promise> {
        self.record().map(|(_, record)| Promise(Arc::downgrade(record)))
    }

    /// Returns true if the run is in the store before it makes a call.
    pub(in crate::server) fn is_in_store(&self) -> bool {
        matches!(self.0, Source::Stored { kind: Evaluation::Further | Evaluation::Continued, .. })
    }

    /// Returns true if the run is continued whatever becomes of the request: it was suspended before, or has a key.
    pub(in crate::server) fn outlives_request(&self) -> bool {
        matches!(self.0, Source::Here { .. } | Source::Stored { kind: Evaluation::Continued, .. })
    }

    /// Returns the run, with the decisions on its calls.
    pub(in crate::server) fn run(&self) -> &Suspended {
        match &self.0 {
            Source::Here { run, .. } => run,
            Source::KeptHere { run, .. } | Source::Stored { run, .. } => run.run(),
        }
    }

    /// Returns where the run goes on, with the log of its calls.
    pub(in crate::server) fn begun(&self) -> (Mark, Logged) {
        let (_, mark, log) = self.run().clone().into_parts();
        (mark, without_plan(log))
    }

    /// Returns with what the run is evaluated from its beginning, if it was not suspended.
    pub(in crate::server) fn start(&self) -> Option<&Start> {
        self.attempted().and_then(StoredRun::start)
    }

    /// Returns the plan to which the run is held.
    pub(in crate::server) fn plan(&self) -> Option<PlanTerms> {
        self.record().and_then(|(run, _)| run.plan())
    }

    /// Returns the record of the run so far, if it was recorded.
    pub(in crate::server) fn recorded(&self) -> Option<&Recorded> {
        self.record().and_then(|(run, _)| run.recorded())
    }

    /// Returns the recording of the evaluation; `None` for a run that is not in a store.
    pub(in crate::server) fn recording(&self) -> Option<&RecordedRun> {
        self.record().map(|(_, record)| &record.recording)
    }

    /// Takes out what was recorded of the evaluation.
    pub(super) fn finished_recording(&self) -> Option<FinishedRecording> {
        self.recording()?.take()
    }

    /// Returns the reply of a run that has ended meanwhile.
    pub(in crate::server) fn reply(&self) -> Option<&Reply> {
        self.record().and_then(|(run, _)| run.reply())
    }

    /// Returns where the calls of the run are stored before they are sent. A task of the present runtime stores their
    /// outcomes; at a terminal there is none, and they are stored at once.
    pub(in crate::server) fn journal(&self) -> Option<Arc<dyn Journal>> {
        self.record().map(|(_, record)| Arc::new(RunJournal(Arc::clone(record), Handle::try_current().ok())) as _)
    }

    /// Stores that the run is resumed while its session has that version, with the decisions on its calls. What is
    /// journalled from now on is that log.
    ///
    /// # Errors
    /// Returns why the run cannot be resumed, as a clause.
    pub(in crate::server) fn begin(&self, version: u64, log: &Arc<RunLog>) -> Result<(), String> {
        let Some((run, record)) = self.record() else { return Ok(()) };
        let mut under_way = run.clone();
        if self.is_in_store() {
            under_way = run.resumed_at(version)?;
            record.write(&under_way)?;
        }
        // A run is taken for each evaluation anew.
        let _ = record.under_way.set((under_way, Arc::downgrade(log)));
        Ok(())
    }

    /// Returns the record of a run in a store, as it was before it was resumed, with the decisions.
    pub(super) fn record(&self) -> Option<(&StoredRun, &Arc<HeldRecord>)> {
        match &self.0 {
            Source::Here { .. } | Source::KeptHere { .. } => None,
            Source::Stored { run, record, .. } => Some((run, &record.0)),
        }
    }

    /// Returns the run in memory as it was, with its identity.
    pub(super) fn into_waiting(self) -> Option<(String, WaitingRun)> {
        match self.0 {
            Source::Here { identity, before, .. } => Some((identity, *before)),
            Source::KeptHere { .. } | Source::Stored { .. } => None,
        }
    }
}

/// The record of a run in a store, leased by this process once it is there.
pub(super) struct HeldRecord {
    persistence: Arc<Persistence>,
    key: Key,
    /// Cancelled if another process takes the run.
    stop: CancellationToken,
    place: Mutex<Place>,
    /// The evaluation that is under way: the run as it was resumed, and its log.
    under_way: OnceLock<(StoredRun, Weak<RunLog>)>,
    recording: RecordedRun,
}

/// The state of a record in the store.
#[derive(Default)]
struct Place {
    /// The lease; absent until the record is created.
    held: Option<Arc<HeldLease>>,
    /// True once the record may be in the store.
    is_created: bool,
    /// The version in the store.
    version: u64,
    /// The text of the evaluation that is under way, to which its changes are added.
    text: String,
    /// The size of the text when it was made as a whole.
    whole: usize,
    /// True if the text has changes that are not in the store.
    is_behind: bool,
    /// True if a task is to store them.
    is_due: bool,
    /// True if others are to find it, and its reply once it has ended.
    is_promised: bool,
    /// True once the run is no longer under way.
    is_closed: bool,
}

impl Place {
    /// Returns the text of a run that is under way.
    fn text_of(&self, run: &StoredRun) -> String {
        let run = run.cut_off();
        if self.is_promised { run.promised().encode() } else { run.encode() }
    }
}

impl HeldRecord {
    /// Creates the holder of a record that is not in the store yet.
    pub(super) fn new(persistence: &Arc<Persistence>, key: Key, stop: CancellationToken) -> HeldRecord {
        let persistence = Arc::clone(persistence);
        let (place, under_way, recording) = Default::default();
        HeldRecord { persistence, key, stop, place, under_way, recording }
    }

    /// Takes the lease of a run, and reads it. Waits for `patience` while another evaluation has the run; without patience
    /// it does not wait.
    ///
    /// # Errors
    /// Refuses if there is no such run, if another process goes on evaluating it, or if it cannot be read.
    pub(super) fn take(
        persistence: &Arc<Persistence>,
        key: Key,
        stop: CancellationToken,
        patience: Duration,
    ) -> Result<Free<(HeldRecord, StoredRun)>, Refused> {
        // From here on the lease is released on every path.
        let record = HeldRecord::new(persistence, key, stop);
        let mut place = record.place();
        let taken = record.lease(&mut place, patience);
        if taken == Err(Problem::Leased) && record.stop.is_cancelled() {
            return Err(Refused::new("Cancelled", "the call was cancelled before it started"));
        }
        if taken == Err(Problem::Leased) && patience.is_zero() {
            return Ok(Free::Later(record.key.clone(), PATIENCE));
        }
        taken.map_err(|problem| not_resumed(&missing(&problem)))?;
        let read = persistence.store().read(&record.key, 0).map_err(|problem| not_resumed(&missing(&problem)))?;
        let read = read.ok_or_else(|| not_resumed("the run cannot be read"))?;
        let stored = StoredRun::decode(&read.text).map_err(|problem| not_resumed(&problem.to_string()))?;
        place.version = read.version;
        drop(place);
        Ok(Free::Now((record, stored)))
    }

    fn lease(&self, place: &mut Place, patience: Duration) -> Result<(), Problem> {
        let stopped = || self.stop.is_cancelled();
        let taken = wait_for_lease(&**self.persistence.store(), &self.key, patience, stopped)?;
        place.held = Some(self.persistence.hold(HeldLease::new(self.key.clone(), taken, self.stop.clone())));
        Ok(())
    }

    pub(super) fn identity(&self) -> &str {
        &self.key.handle
    }

    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true once the record is in the store.
    pub(super) fn is_stored(&self) -> bool {
        self.place().held.is_some()
    }

    /// Writes the record before its run is evaluated.
    ///
    /// # Errors
    /// Returns why it was not written, as a clause.
    fn write(&self, run: &StoredRun) -> Result<(), String> {
        self.write_at(&mut self.place(), &run.encode(), &[RUN.to_owned()])
    }

    /// Writes the record after its run was evaluated.
    ///
    /// # Errors
    /// Returns why it was not written, as a clause.
    pub(super) fn close_with(&self, run: &StoredRun) -> Result<(), String> {
        self.close_at(&mut self.place(), run)
    }

    fn close_at(&self, place: &mut Place, run: &StoredRun) -> Result<(), String> {
        place.is_closed = true;
        let names = run.summary().names();
        let text = if place.is_promised { run.clone().promised().encode() } else { run.encode() };
        self.write_at(place, &text, &names)
    }

    /// Writes the record of a run that has ended if its reply was promised, or else removes it from the store. Returns
    /// whether it is kept.
    ///
    /// # Errors
    /// Returns why it was not written, or may still be there, as a clause.
    pub(super) fn end(&self, ended: &StoredRun) -> Result<bool, String> {
        let mut place = self.place();
        if place.is_promised {
            return self.close_at(&mut place, ended).map(|()| true);
        }
        place.is_closed = true;
        if !place.is_created {
            return Ok(false);
        }
        let lease = place.held.as_ref().map(|held| &held.lease);
        match self.persistence.store().remove(&self.key, lease) {
            Ok(()) | Err(Problem::Unknown | Problem::Expired) => Ok(false),
            Err(problem) => Err(missing(&problem)),
        }
    }

    /// Stores the run for others, who find that it goes on, and its reply once it has ended. Returns false if it is no
    /// longer under way. Blocks.
    fn promise(&self) -> bool {
        let mut place = self.place();
        let place = &mut *place;
        let Some((run, log)) = self.under_way(place) else { return false };
        if place.is_promised {
            return true;
        }
        // Without room, this process alone has its reply.
        if place.held.is_none()
            && let Err(problem) = self.persistence.room(&self.key.principal)
        {
            tracing::warn!(problem, "a program that goes on is known to this process alone");
            return true;
        }
        place.is_promised = true;
        // The whole log has them.
        drop(log.changes());
        let text = place.text_of(&run.with_log(log.logged()));
        place.whole = text.len();
        let written = self.write_at(place, &text, &[RUN.to_owned()]);
        (place.text, place.is_behind) = (text, written.is_err());
        if let Err(problem) = written {
            tracing::warn!(problem, "a program that goes on is not stored yet");
        }
        true
    }

    /// Releases the lease, if there is one. Nothing is written from then on.
    fn release(&self) {
        let mut place = self.place();
        place.is_closed = true;
        if let Some(held) = place.held.take() {
            self.persistence.let_go(&held);
        }
    }

    fn under_way(&self, place: &Place) -> Option<(&StoredRun, Arc<RunLog>)> {
        let (run, log) = self.under_way.get().filter(|_| !place.is_closed)?;
        Some((run, log.upgrade()?))
    }

    /// Stores what has changed in the run under way, unless another call has stored it already. Everything that the run
    /// has received is stored with a call, because the call may depend on it.
    ///
    /// # Errors
    /// Returns why it was not stored, as a clause.
    fn catch_up(&self, place: &mut Place) -> Result<(), String> {
        let (run, log) = self.under_way(place).ok_or_else(|| "the run is not under way".to_owned())?;
        let changes = log.changes();
        if changes.is_empty() && !place.is_behind {
            return Ok(());
        }
        let mut text = std::mem::take(&mut place.text);
        if text.is_empty() {
            text = place.text_of(run);
            place.whole = text.len();
        }
        changes.iter().for_each(|change| push_change(&mut text, change));
        if text.len() > 2 * place.whole + CHANGES {
            // Many changes are of calls that have changed again since.
            text = place.text_of(&run.with_log(log.logged()));
            place.whole = text.len();
        }
        let written = self.write_at(place, &text, &[RUN.to_owned()]);
        place.text = text;
        place.is_behind = written.is_err();
        written
    }

    /// Stores the outcomes of calls. A call whose outcome is not stored is found as started if the process dies.
    fn store_outcomes(&self) {
        let mut place = self.place();
        place.is_due = false;
        if self.under_way(&place).is_some()
            && let Err(problem) = self.catch_up(&mut place)
        {
            tracing::warn!(problem, "the outcome of a call was not stored with its run");
        }
    }

    fn write_at(&self, place: &mut Place, text: &str, names: &[String]) -> Result<(), String> {
        let store = self.persistence.store();
        if place.held.is_none() {
            place.is_created = true;
            let created = store.create(&self.key, text, names);
            // A record that exists is that of an earlier attempt, which the store did not confirm.
            created
                .clone()
                .or_else(|problem| if problem == Problem::Changed { Ok(()) } else { Err(missing(&problem)) })?;
            place.version = 1;
            self.lease(place, PATIENCE).map_err(|problem| missing(&problem))?;
            if created.is_ok() {
                return Ok(());
            }
        }
        let held = place.held.as_ref().filter(|held| held.lost().is_none());
        let held = held.ok_or_else(|| "another process may have taken the run".to_owned())?;
        let written = store.write(&self.key, &held.lease, place.version, text, names);
        place.version = written.map_err(|problem| missing(&problem))?;
        Ok(())
    }
}

/// Keeps a run that is evaluated for other processes than this one.
pub(in crate::server) struct Promise(Weak<HeldRecord>);

impl Promise {
    /// Stores the run, so that others find that it goes on, and its reply once it has ended. Returns false if it is no
    /// longer evaluated. Blocks.
    pub(in crate::server) fn keep(&self) -> bool {
        self.0.upgrade().is_some_and(|record| record.promise())
    }
}

/// Stores the calls of a run that is evaluated in its record.
struct RunJournal(Arc<HeldRecord>, Option<Handle>);

impl Journal for RunJournal {
    fn store(&self, entry: &Entry) -> Result<(), String> {
        let RunJournal(record, runtime) = self;
        let mut place = record.place();
        if entry.state == CallState::Started {
            return record.catch_up(&mut place).map_err(|problem| {
                format!("that the call begins cannot be stored with its run, so it is not made: {problem}")
            });
        }
        let Some(runtime) = runtime else {
            drop(place);
            record.store_outcomes();
            return Ok(());
        };
        // A write for each outcome would double the number of writes.
        if !std::mem::replace(&mut place.is_due, true) {
            let record = Arc::downgrade(record);
            runtime.spawn(async move {
                tokio::time::sleep(OUTCOMES).await;
                let store = move || record.upgrade().map(|record| record.store_outcomes());
                let _ = tokio::task::spawn_blocking(store).await;
            });
        }
        Ok(())
    }
}

impl Drop for HeldRecord {
    fn drop(&mut self) {
        self.release();
    }
}
