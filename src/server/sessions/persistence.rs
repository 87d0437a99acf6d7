//! Sessions in a store: loaded before a program runs in them, written after it has changed them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::lang::{Environment, Host};
use crate::lang::{Failure, Reply, Status};
use crate::server::admission::allowances::Allowances;
use crate::server::admission::request::Refused;
use crate::server::identity::hexadecimal;
use crate::server::system::random;
use crate::store::{Key, LEASE, OWN, Problem, Store, make_room, probe, wait_for_lease};

use super::leases::{HeldLease, Leases};
use super::requests::SessionRequests;
use super::{Entry, SessionBounds, Stored};

/// Timeout of an evaluation that waits for a session in use by another process. It exceeds the duration of a lease, so
/// that it outlasts the lease of a dead holder.
pub(in crate::server) const PATIENCE: Duration = Duration::from_secs(15);

/// Maximum number of sealing keys, one after the other.
const MOST_KEYS: u32 = 1_000;

/// Maximum interval between expiry runs, and the delay of the first run; shorter if sessions live for a shorter time.
const EXPIRY: Duration = Duration::from_secs(600);
const FIRST_EXPIRY: Duration = Duration::from_secs(3);

/// Keeps sessions in a store.
pub(in crate::server) struct Persistence {
    store: Arc<dyn Store>,
    /// Maximum number of sessions of one principal, and the allowances that may lower it.
    most: u64,
    allowances: Arc<Allowances>,
    /// The number of sessions that each principal may still create before the store is asked for its count.
    spare: Mutex<HashMap<String, u64>>,
    leases: Leases,
    /// True if programs run without the store while it cannot be used: nobody has asked for it.
    is_optional: bool,
    /// True if the store could be used when it was tried last. An optional one is tried before the first program.
    is_proven: AtomicBool,
    /// True once the log says that the store cannot be used.
    is_reported: AtomicBool,
    /// Dropped with the keeper, which ends the expiry thread.
    _end: Sender<()>,
}

/// The right to evaluate in a session; ends when it is dropped.
pub(in crate::server) struct SessionLease {
    persistence: Arc<Persistence>,
    key: Key,
    /// The lease, if the session is in the store.
    held: Option<Arc<HeldLease>>,
}

/// The outcome of an attempt to acquire a session.
pub(in crate::server) enum Begin {
    Leased(SessionLease),
    /// Another process has it.
    Busy(Key),
    /// The store cannot be used, and need not be: the session as it is in memory is used.
    InMemory(Problem),
}

impl Persistence {
    /// Creates a keeper for a store. It expires sessions that were unused for too long or created too long ago.
    pub(in crate::server) fn new(
        store: Arc<dyn Store>,
        bounds: &SessionBounds,
        allowances: Arc<Allowances>,
    ) -> Persistence {
        let SessionBounds { kept, lifetime, stored: most, stored_bytes, .. } = *bounds;
        let often = EXPIRY.min(kept.min(lifetime) / 10).max(FIRST_EXPIRY);
        let (end, ended) = channel::<()>();
        let kept_in = Arc::clone(&store);
        let expire = move || {
            let mut pause = FIRST_EXPIRY;
            while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                pause = often;
                let old = if lifetime == Duration::MAX { Ok(0) } else { kept_in.expire_old(lifetime) };
                let unused = |old| Ok(old + if kept == Duration::MAX { 0 } else { kept_in.expire(kept)? });
                let crowded = |ended| Ok(ended + make_room(&*kept_in, kept, stored_bytes)?);
                match old.and_then(unused).and_then(crowded) {
                    Ok(0) => {}
                    Ok(count) => tracing::info!(count, "sessions have expired"),
                    Err(problem) => tracing::warn!(%problem, "sessions could not be expired"),
                }
            }
        };
        // Without the thread nothing expires.
        if let Err(problem) = std::thread::Builder::new().name("expiry".to_string()).spawn(expire) {
            tracing::error!(%problem, "sessions cannot expire");
        }
        let leases = Leases::new(Arc::clone(&store));
        let (spare, is_optional, is_reported) = Default::default();
        let is_proven = AtomicBool::new(true);
        Persistence { store, most, allowances, spare, leases, is_optional, is_proven, is_reported, _end: end }
    }

    /// Returns the keeper of a store that is used as long as it can be, and that programs do without otherwise.
    pub(in crate::server) fn optional(self) -> Persistence {
        Persistence { is_optional: true, is_proven: AtomicBool::new(false), ..self }
    }

    /// True if a program does without the store because of that problem: the store is optional, and the session is in
    /// memory.
    fn does_without(&self, entry: &Entry, problem: &Problem) -> bool {
        if !(self.is_optional && matches!(problem, Problem::Unusable(_))) || *lock(&entry.stored) == Stored::Other {
            return false;
        }
        self.is_proven.store(false, Ordering::Relaxed);
        if !self.is_reported.swap(true, Ordering::Relaxed) {
            let while_so = "sessions and waiting programs end with this process while the usual store cannot be used";
            tracing::warn!(%problem, "{while_so}");
        }
        true
    }

    /// Checks that an optional store which could not be used, or has not been used yet, takes writes: a full disk shows
    /// only then.
    fn probe(&self) -> Result<(), Problem> {
        if self.is_proven.load(Ordering::Relaxed) {
            return Ok(());
        }
        probe(&*self.store)?;
        self.is_proven.store(true, Ordering::Relaxed);
        self.is_reported.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Acquires the right to evaluate in a session, and loads the session from the store if it differs. Waits for
    /// `patience` while another process has it.
    ///
    /// # Errors
    /// Refuses if no such session exists, if another process does not release it in time, if a store that is not optional
    /// cannot be used, or if the stored content cannot be read.
    pub(in crate::server) fn begin(
        self: &Arc<Self>,
        entry: &Entry,
        session: &mut dyn Environment,
        host: &Arc<dyn Host>,
        session_requests: &SessionRequests,
        patience: Duration,
    ) -> Result<Begin, Refused> {
        let key = entry.key();
        let is_known = *lock(&entry.stored) != Stored::Nothing;
        match self.probe() {
            Err(problem) if self.does_without(entry, &problem) => return Ok(Begin::InMemory(problem)),
            // A session that is not there needs no store yet.
            Err(problem) if is_known => return Err(refused(&problem)),
            _ => {}
        }
        if !is_known {
            // No other process knows it yet.
            return Ok(Begin::Leased(SessionLease { persistence: Arc::clone(self), key, held: None }));
        }
        let held = match wait_for_lease(&*self.store, &key, patience.min(PATIENCE), || host.cancelled()) {
            Ok(taken) => self.hold(HeldLease::new(key.clone(), taken, session_requests.stop())),
            Err(Problem::Unknown) if *lock(&entry.stored) == Stored::Perhaps => {
                *lock(&entry.stored) = Stored::Nothing;
                return Ok(Begin::Leased(SessionLease { persistence: Arc::clone(self), key, held: None }));
            }
            Err(Problem::Leased) if host.cancelled() => {
                return Err(Refused::new("Cancelled", "the call was cancelled before it started"));
            }
            Err(Problem::Leased) if patience.is_zero() => return Ok(Begin::Busy(key)),
            Err(problem) if self.does_without(entry, &problem) => return Ok(Begin::InMemory(problem)),
            Err(problem) => return Err(refused(&problem)),
        };
        if *lock(&entry.stored) == Stored::Perhaps {
            *lock(&entry.stored) = Stored::Other;
        }
        session_requests.run_under(Arc::clone(&held));
        let lease = SessionLease { persistence: Arc::clone(self), key, held: Some(held) };
        self.refresh(entry, session)?;
        Ok(Begin::Leased(lease))
    }

    /// Returns whether no evaluation uses a record. A problem of the store is for those who use the record.
    pub(in crate::server) fn is_free(&self, key: &Key) -> bool {
        let Ok(holder) = crate::store::handle() else { return true };
        match self.store.lease(key, &holder) {
            // Without this the lease expires.
            Ok(lease) => _ = self.store.release(key, &lease),
            Err(Problem::Leased) => return false,
            Err(_) => {}
        }
        true
    }

    /// Loads the session from the store if it differs.
    ///
    /// # Errors
    /// Fails like [`Persistence::begin`], except that it does not wait for another process.
    pub(in crate::server) fn refresh(&self, entry: &Entry, session: &mut dyn Environment) -> Result<(), Refused> {
        let known = match *lock(&entry.stored) {
            Stored::Nothing | Stored::Perhaps => return Ok(()),
            Stored::Other => 0,
            Stored::Version { version, .. } => version,
        };
        let Some(read) = self.store.read(&entry.key(), known).map_err(|problem| refused(&problem))? else {
            return Ok(());
        };
        // A write of ours that was not confirmed is not a change by another process.
        let is_kept = entry.unkept().is_none() || entry.encode(session).is_ok_and(|text| text == read.text);
        let shown = "`lispbox sessions export` shows it";
        entry.decode(&read.text, session).map_err(|problem| damaged(&format!("{problem}; {shown}")))?;
        *lock(&entry.stored) = Stored::Version { version: read.version, changes: entry.changes(session) };
        match entry.lose_unkept().filter(|_| !is_kept) {
            None => Ok(()),
            Some(since) => Err(Refused::new(
                "SessionNotKept",
                format!(
                    "{} could not be kept and are lost: another process has changed the session; nothing was \
                     evaluated; the session is as that process left it",
                    changed_since(since)
                ),
            )),
        }
    }

    /// Returns the store.
    pub(in crate::server) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Returns the key with which all instances on this store seal the states of calls; creates it first. It is stored
    /// as the sessions are: who can write there can change what a run waits for anyway.
    ///
    /// # Errors
    /// Returns a message if the store cannot be used, or if the system has no randomness.
    pub(in crate::server) fn sealing_key(&self) -> Result<[u8; 32], String> {
        // A key that has expired is followed by the next one. No principal has the empty name.
        for number in 1..=MOST_KEYS {
            let key = Key { principal: String::new(), handle: format!("sealing-key-{number}") };
            let new = random::key()?;
            match self.store.create(&key, &hexadecimal(&new), &[format!("{OWN}sealing-key")]) {
                Ok(()) => return Ok(new),
                Err(Problem::Changed | Problem::Expired) => {}
                Err(problem) => return Err(problem.to_string()),
            }
            let stored = match self.store.read(&key, 0) {
                Ok(stored) => stored.map(|stored| stored.text).unwrap_or_default(),
                Err(Problem::Expired) => continue,
                Err(problem) => return Err(problem.to_string()),
            };
            // This counts as a use of it.
            if let Ok(lease) = self.store.lease(&key, &crate::store::handle()?) {
                self.store.release(&key, &lease).map_err(|problem| problem.to_string())?;
            }
            return parse_key(&stored).ok_or_else(|| "the sealing key in the store is damaged".to_owned());
        }
        Err("the sealing keys in the store have expired".to_owned())
    }

    /// Renews a lease until it is let go.
    pub(in crate::server) fn hold(&self, held: HeldLease) -> Arc<HeldLease> {
        let held = Arc::new(held);
        self.leases.add(&held);
        held
    }

    /// Releases a lease.
    pub(in crate::server) fn let_go(&self, held: &HeldLease) {
        self.leases.remove(held);
        if let Err(problem) = self.store.release(&held.key, &held.lease) {
            tracing::warn!(%problem, "a lease could not be released, and will expire");
        }
    }

    /// Returns the current problem of the store, if any.
    pub(in crate::server) fn trouble(&self) -> Option<String> {
        self.store.check().err().map(|problem| problem.to_string())
    }

    /// Creates a session in the store, unless an earlier attempt has created it.
    ///
    /// # Errors
    /// Returns a message if the principal has too many sessions, or the store's problem.
    pub(in crate::server) fn make(&self, key: &Key, text: &str, names: &[String]) -> Result<(), String> {
        self.room(&key.principal)?;
        match self.store.create(key, text, names) {
            // Its handle is random, and known to the run alone.
            Ok(()) | Err(Problem::Changed) => Ok(()),
            Err(problem) => Err(problem.to_string()),
        }
    }

    /// Checks that a principal may have one more session, or other record, in the store. If the store cannot be asked,
    /// writing it reports the problem.
    ///
    /// # Errors
    /// Returns a message if there are too many.
    pub(in crate::server) fn room(&self, principal: &str) -> Result<(), String> {
        let own = self.allowances.of(principal).sessions;
        let most = own.map_or(self.most, |own| self.most.min(own as u64));
        if let Some(spare @ 1..) = lock(&self.spare).get_mut(principal) {
            *spare -= 1;
            return Ok(());
        }
        let spare = most / 10;
        match self.store.has_many(principal, most - spare) {
            Ok(true) if self.store.has_many(principal, most) == Ok(true) => {}
            Ok(false) => {
                lock(&self.spare).insert(principal.to_owned(), spare);
                return Ok(());
            }
            _ => return Ok(()),
        }
        let setting = if own.is_some() { "`sessions` in the tokens file" } else { "`serve --stored-sessions`" };
        Err(format!(
            "`{principal}` has the maximum number of sessions in the store: {most} ({setting}); \
             `(session/close)` closes one that is no longer needed"
        ))
    }

    /// Returns the handle of another session of the same caller that defines a name.
    pub(in crate::server) fn definer(&self, entry: &Entry, name: &str) -> Option<String> {
        let Key { principal, handle } = entry.key();
        self.store.definer(&principal, name, &handle).ok().flatten()
    }
}

impl SessionLease {
    /// Writes the program's changes; if that fails, the reply reports it.
    pub(in crate::server) fn end(self, entry: &Entry, session: &mut dyn Environment, reply: &mut Reply) {
        let changes = entry.changes(session);
        let stored = *lock(&entry.stored);
        let is_changed = match stored {
            Stored::Version { changes: stored, .. } => stored != changes,
            _ => session.bindings() > 0 || entry.is_kept_for_origins(),
        };
        if let Some(why) = self.held.as_ref().and_then(|held| held.lost())
            && (is_changed || reply.status != Status::Ok)
        {
            *lock(&entry.stored) = Stored::Other;
            reply.defined.clear();
            let earlier = entry.lose_unkept().map(|since| format!("; {} is lost too", changed_since(since)));
            return failed(reply, "LeaseLost", &format!("{}{}", lost(why), earlier.unwrap_or_default()));
        }
        // A program that waits finds its session in whatever process it is resumed.
        if !is_changed && reply.status != Status::Suspended {
            return entry.kept();
        }
        let text = match entry.encode(session) {
            Ok(text) => text,
            Err(problem) => return unwritable(reply, entry, &problem),
        };
        if stored == Stored::Nothing
            && let Err(problem) = self.persistence.room(&self.key.principal)
        {
            let unkept = entry.not_kept(&problem, &reply.defined);
            let message = format!("the session could not be kept: {unkept}; it will be kept once there is room");
            return failed(reply, "SessionNotKept", &message);
        }
        let (store, names) = (&self.persistence.store, session.names());
        let written = match (&self.held, stored) {
            (Some(held), Stored::Version { version, .. }) => {
                store.write(&self.key, &held.lease, version, &text, &names)
            }
            _ => store.create(&self.key, &text, &names).map(|()| 1),
        };
        match written {
            Ok(version) => {
                *lock(&entry.stored) = Stored::Version { version, changes };
                entry.kept();
            }
            Err(problem) => self.not_written(entry, stored, &problem, reply),
        }
    }

    /// Reports that the changes of a program could not be written. They stay in memory if the store is out of reach, and are
    /// lost if another process has changed the session.
    fn not_written(&self, entry: &Entry, stored: Stored, problem: &Problem, reply: &mut Reply) {
        if let Problem::Unavailable(_) | Problem::Unusable(_) = problem {
            if stored == Stored::Nothing {
                *lock(&entry.stored) = Stored::Perhaps;
            }
            let unkept = entry.not_kept(&problem.to_string(), &reply.defined);
            if self.persistence.does_without(entry, problem) {
                return reply.notes.push(only_in_memory(problem));
            }
            let again = "the next program in this session retries, unless another process takes the session first";
            return failed(reply, "SessionNotKept", &format!("the session may not have been kept: {unkept}; {again}"));
        }
        *lock(&entry.stored) = Stored::Other;
        reply.defined.clear();
        let lost = entry.lose_unkept().map_or("what it defined".to_owned(), changed_since);
        let message = format!(
            "the session could not be kept: {problem}; {lost} is lost; the session is as other processes left it"
        );
        failed(reply, "SessionNotKept", &message);
    }

    /// Removes the session from the store, if it is there, while no other process can have it.
    ///
    /// # Errors
    /// Returns why the session still exists, or may exist: the caller has to report it with [`Lease::goes_on`].
    pub(in crate::server) fn close(&self) -> Result<(), Problem> {
        let Some(held) = &self.held else { return Ok(()) };
        if held.lost().is_some() {
            return Err(Problem::Lost);
        }
        match self.persistence.store.remove(&self.key, Some(&held.lease)) {
            Err(Problem::Unknown | Problem::Expired) => Ok(()),
            removed => removed,
        }
    }

    /// Reports in the reply that a session to be closed remains. Nothing is written: if its removal is uncertain, it
    /// may still happen until the next lease is taken.
    pub(in crate::server) fn goes_on(self, entry: &Entry, problem: &Problem, reply: &mut Reply) {
        let message = match problem {
            Problem::Unavailable(_) | Problem::Unusable(_) => format!(
                "it is unknown whether the session was closed: {}; the next program in this session keeps it or \
                 closes it",
                entry.not_kept(&problem.to_string(), &reply.defined)
            ),
            _ => {
                *lock(&entry.stored) = Stored::Other;
                reply.defined.clear();
                let lost = entry.lose_unkept().map_or("what the program defined".to_owned(), changed_since);
                format!("the session was not closed: {problem}; {lost} is lost")
            }
        };
        failed(reply, "SessionNotClosed", &message);
    }
}

impl Drop for SessionLease {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            self.persistence.let_go(&held);
        }
    }
}

fn parse_key(text: &str) -> Option<[u8; 32]> {
    let byte = |at: usize| u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok();
    let bytes: Vec<u8> = (0..32).map(byte).collect::<Option<_>>()?;
    bytes.try_into().ok().filter(|_| text.len() == 64)
}

/// The note on a reply whose session is not in the store.
pub(in crate::server) fn only_in_memory(problem: &Problem) -> String {
    format!("what the session defines ends with lispbox: {problem}")
}

/// The message for a program that was stopped because another process may have its session.
fn lost(why: &str) -> String {
    format!(
        "the lease of the session was lost while the program ran: {why}; it was stopped before its next tool call, \
         and none of its definitions are kept: the session is as the store has it; earlier calls are not undone"
    )
}

fn changed_since(since: String) -> String {
    format!("all changes since {since}")
}

/// Reports in a reply that its session cannot be serialized, so that its changes are not stored.
pub(in crate::server) fn unwritable(reply: &mut Reply, entry: &Entry, problem: &str) {
    let unkept = entry.not_kept(problem, &reply.defined);
    let advice = "make smaller or `session/forget` what is too large or cannot be written: each program in this \
                  session retries";
    failed(reply, "SessionNotKept", &format!("the session could not be kept: {unkept}; {advice}"));
}

/// Marks a reply as failed after the program ran, whatever its result.
pub(in crate::server) fn failed(reply: &mut Reply, error: &str, problem: &str) {
    let came_to = match (&reply.value, &reply.failure) {
        (Some(value), None) => format!("; the program ran and returned {}", shortened(value)),
        _ => String::new(),
    };
    let message = format!("{problem}{came_to}");
    let rendered = match &reply.failure {
        Some(failure) => format!("{}\n{error}: {message}", failure.rendered.trim_end()),
        None => format!("{error}: {message}"),
    };
    let failure = Failure { error: error.to_string(), message, rendered, ..Failure::default() };
    reply.status = Status::Error;
    reply.failure = Some(failure);
}

/// Shortens a value to fit into a message.
fn shortened(value: &str) -> String {
    const MOST: usize = 2_000;
    if value.len() <= MOST {
        return value.to_string();
    }
    format!("{} … ({} bytes in all)", &value[..value.floor_char_boundary(MOST)], value.len())
}

/// The refusal of a session whose text cannot be read.
fn damaged(problem: &str) -> Refused {
    Refused::session_lost("SessionDamaged", format!("{problem}; it is kept as it is"))
}

/// The refusal of a call whose session could not be acquired.
pub(in crate::server) fn refused(problem: &Problem) -> Refused {
    match problem {
        Problem::Unknown => {
            Refused::session_lost("UnknownSession", format!("{problem}: it was closed or never existed"))
        }
        Problem::Expired => Refused::session_lost("SessionExpired", problem.to_string()),
        Problem::Leased | Problem::Lost | Problem::Changed => Refused::new(
            "SessionBusy",
            format!("{problem}; nothing was evaluated; try again when the other process has finished"),
        ),
        Problem::Damaged(_) => damaged(&problem.to_string()),
        Problem::Unavailable(_) => {
            Refused::new("StoreUnavailable", format!("{problem}; nothing was evaluated; try again in a moment"))
        }
        Problem::Unusable(_) => Refused::new("StoreUnavailable", format!("{problem}; nothing was evaluated")),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const _: () = assert!(LEASE.as_millis() < PATIENCE.as_millis());
