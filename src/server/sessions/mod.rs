//! Sessions between calls: ownership, lifetimes and limits.
//!
//! Sessions live in the memory of this process. A session is found by its handle, which cannot be guessed. It gets the
//! handle when it is created, and is kept here from its first definition on.

pub(in crate::server) mod handles;
pub(in crate::server) mod leases;
pub(in crate::server) mod persistence;
pub(in crate::server) mod requests;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::lang::Environment;
use crate::lang::internal::foreign_text;
use crate::server::admission::allowances::Allowances;
use crate::server::admission::request::Refused;
use crate::store::Key;
use lispbox_policy::internal::Origins;

/// The number of handles of ended sessions that are remembered for each principal, to report why they are invalid.
const REMEMBERED: usize = 1_000;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Limits on the number, total size and lifetime of sessions.
#[derive(Clone, Debug)]
pub struct SessionBounds {
    /// Maximum idle time of a session in memory. After it the session ends, or remains only in its store.
    pub idle: Duration,
    /// Maximum age of a session, even if it is in use; [`Duration::MAX`] means no limit.
    pub lifetime: Duration,
    /// Maximum number of sessions in memory. Beyond it the least recently used session of the principal that has the
    /// most is evicted: no principal loses a session to one that has more.
    pub count: usize,
    /// Maximum total size of the sessions in memory, in bytes. Beyond it sessions are evicted in the same way.
    pub bytes: u64,
    /// The time for which an unused session is kept in a store.
    pub kept: Duration,
    /// Maximum number of sessions of one principal in a store. A further session is not stored, and its caller receives
    /// a message to that effect.
    pub stored: u64,
    /// Size of the data in a store, in bytes, above which the sessions that were not used for the longest time expire
    /// earlier, as far as the store knows its size.
    pub stored_bytes: u64,
}

impl Default for SessionBounds {
    fn default() -> Self {
        SessionBounds {
            idle: DAY,
            lifetime: Duration::MAX,
            count: 10_000,
            bytes: 2 << 30,
            kept: 30 * DAY,
            stored: 10_000,
            stored_bytes: u64::MAX,
        }
    }
}

/// The reason for which a session has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum Ended {
    /// It was unused for too long.
    Unused,
    /// It was created too long ago.
    Old,
    /// It was evicted to make room for newer sessions.
    Crowded,
}

/// A session with its metadata. Evaluations in it take turns at the lock, in order.
pub(in crate::server) struct Entry {
    /// The secret by which its caller refers to it.
    pub(in crate::server) handle: String,
    caller: String,
    /// The session; locked while a program runs in it.
    pub(in crate::server) session: Arc<tokio::sync::Mutex<Box<dyn Environment>>>,
    facts: Mutex<Facts>,
    /// The state of the session in the store; read and changed only by the holder of the session's lock.
    pub(in crate::server) stored: Mutex<Stored>,
    /// The origins of its values, recorded if there are guards.
    origins: Arc<Origins>,
}

/// The state of a session in the store, relative to the session in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum Stored {
    /// The store has nothing of it.
    Nothing,
    /// Unknown: a write may or may not have taken effect.
    Perhaps,
    /// The store has different content, which has to be read.
    Other,
    /// The store has that version, which equals the session in memory at that change count.
    Version { version: u64, changes: u64 },
}

struct Facts {
    /// The time at which it was created, if that was in this process.
    made: Option<Instant>,
    used: Instant,
    names: HashSet<String>,
    bytes: u64,
    announced: bool,
    fate: Fate,
    unkept: Option<Unkept>,
}

/// Changes of a session that could not be stored.
struct Unkept {
    /// The time of the first of them.
    since: Timestamp,
    /// The names that programs have defined since.
    names: Vec<String>,
    problem: String,
}

impl fmt::Display for Unkept {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 8;
        let Unkept { since, names, problem } = self;
        write!(formatter, "{problem}; ")?;
        if !names.is_empty() {
            let shown: Vec<_> =
                names.iter().take(SHOWN).map(|name| format!("`{}`", foreign_text::symbol(name))).collect();
            let more = if names.len() > SHOWN { ", …" } else { "" };
            write!(formatter, "{}{more} and ", shown.join(", "))?;
        }
        write!(formatter, "all changes since {} are in memory, but not kept", shown(*since))
    }
}

/// Formats a time for a message.
fn shown(time: Timestamp) -> impl fmt::Display {
    time.strftime("%Y-%m-%d %H:%M:%S UTC")
}

/// The state of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    /// It is open.
    Open,
    /// It was closed by its own connection. It reopens once something is defined in it.
    Closed,
    /// It was closed by another connection, and its own connection has not been notified yet.
    ClosedElsewhere,
    /// It is gone, and its connection has been notified with this code and reason.
    Lost(&'static str, String),
}

impl Facts {
    /// Creates the facts of a session with no known content.
    fn new(announced: bool) -> Facts {
        let now = Instant::now();
        Facts { made: Some(now), used: now, names: HashSet::new(), bytes: 0, announced, fate: Fate::Open, unkept: None }
    }
}

impl Entry {
    /// Creates a session for `caller` that is not kept yet.
    ///
    /// # Errors
    /// Returns a message if the system has no randomness for a handle.
    pub(in crate::server) fn new(caller: &str, session: Box<dyn Environment>) -> Result<Arc<Entry>, String> {
        let handle = crate::store::handle()?;
        Ok(Arc::new(Entry::with(caller, handle, session, Stored::Nothing)))
    }

    /// Creates an entry for a session that, if it exists at all, is in the store; it is to be loaded into `session`.
    pub(in crate::server) fn in_store(caller: &str, handle: &str, session: Box<dyn Environment>) -> Arc<Entry> {
        let entry = Entry::with(caller, handle.to_owned(), session, Stored::Other);
        entry.facts().made = None;
        Arc::new(entry)
    }

    /// Creates an entry for a session that may be in the store, to be loaded into `session` then.
    pub(in crate::server) fn perhaps_in_store(caller: &str, handle: &str, session: Box<dyn Environment>) -> Arc<Entry> {
        Arc::new(Entry::with(caller, handle.to_owned(), session, Stored::Perhaps))
    }

    /// Records that the session in memory was emptied: the one in the store, if it is there, is loaded before it is used.
    pub(in crate::server) fn forget(&self) {
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        if *stored != Stored::Nothing {
            *stored = Stored::Other;
        }
    }

    /// Returns the version of the session in the store that equals the one in memory; 0 if the store has none.
    pub(in crate::server) fn version(&self) -> u64 {
        match *self.stored.lock().unwrap_or_else(PoisonError::into_inner) {
            Stored::Version { version, .. } => version,
            Stored::Nothing | Stored::Perhaps | Stored::Other => 0,
        }
    }

    fn with(caller: &str, handle: String, session: Box<dyn Environment>, stored: Stored) -> Entry {
        let facts = Facts::new(stored != Stored::Nothing);
        Entry {
            handle,
            caller: caller.to_owned(),
            session: Arc::new(tokio::sync::Mutex::new(session)),
            facts: Mutex::new(facts),
            stored: Mutex::new(stored),
            origins: Arc::new(Origins::default()),
        }
    }

    /// The origins of its values.
    pub(in crate::server) fn origins(&self) -> &Arc<Origins> {
        &self.origins
    }

    /// Returns a number that differs after each change of what is stored of the session.
    pub(in crate::server) fn changes(&self, session: &dyn Environment) -> u64 {
        session.changes().wrapping_add(self.origins.changes())
    }

    /// Serializes the session, with the origins of its values.
    ///
    /// # Errors
    /// Returns why the session cannot be written, as a clause.
    pub(in crate::server) fn encode(&self, session: &mut dyn Environment) -> Result<String, String> {
        session.encode().map(|text| self.with_origins(text))
    }

    /// Appends the origins of its values to the text of the session, if there are any.
    pub(in crate::server) fn with_origins(&self, mut text: String) -> String {
        if self.origins.has_replies() {
            self.origins.append_to(&mut text);
        }
        text
    }

    /// Returns whether its caller was told the handle because of the origins of its values.
    pub(in crate::server) fn is_kept_for_origins(&self) -> bool {
        self.origins.has_replies() && self.facts().announced
    }

    /// Replaces the session and the origins of its values by those of a text.
    ///
    /// # Errors
    /// Returns what is wrong with the text, as a clause.
    pub(in crate::server) fn decode(&self, text: &str, session: &mut dyn Environment) -> Result<(), String> {
        let (text, origins) = Origins::split(text)?;
        session.decode(text)?;
        let is_known = origins.is_some();
        self.origins.replace(origins.unwrap_or_default());
        if !is_known {
            self.origins.unwatched();
        }
        Ok(())
    }

    /// Replaces the session by that of a text. The origins of values stay known: what was read since was read.
    ///
    /// # Errors
    /// Returns what is wrong with the text, as a clause.
    pub(in crate::server) fn decode_values(&self, text: &str, session: &mut dyn Environment) -> Result<(), String> {
        session.decode(Origins::split(text)?.0)
    }

    /// Records that the session in memory was replaced, and differs from the one in the store.
    pub(in crate::server) fn restored(&self) {
        if let Stored::Version { changes, .. } = &mut *self.stored.lock().unwrap_or_else(PoisonError::into_inner) {
            *changes = u64::MAX;
        }
    }

    /// The principal that owns the session.
    pub(in crate::server) fn caller(&self) -> &str {
        &self.caller
    }

    /// The key of the session in a store.
    pub(in crate::server) fn key(&self) -> Key {
        self.key_of(self.handle.clone())
    }

    /// The key in a store of another session of the same caller.
    pub(in crate::server) fn key_of(&self, handle: String) -> Key {
        Key { principal: self.caller.clone(), handle }
    }

    /// Creates an entry with the content of `session`, for the same caller, which already knows the handle.
    pub(in crate::server) fn copied(&self, handle: String, session: Box<dyn Environment>) -> Arc<Entry> {
        let names = session.names().into_iter().collect();
        let bytes = session.live_bytes() + self.origins.bytes();
        let entry = Entry::with(&self.caller, handle, session, Stored::Nothing);
        entry.origins.replace(self.origins.copied());
        *entry.facts() = Facts { names, bytes, ..Facts::new(true) };
        Arc::new(entry)
    }

    /// Records that the session was closed and is now empty; `by_its_own` is true if its own connection closed it.
    pub(in crate::server) fn close(&self, by_its_own: bool) {
        let fate = if by_its_own { Fate::Closed } else { Fate::ClosedElsewhere };
        *self.facts() = Facts { fate, ..Facts::new(false) };
        *self.stored.lock().unwrap_or_else(PoisonError::into_inner) = Stored::Nothing;
    }

    /// True after the session was closed or lost, until something is defined in it again.
    pub(in crate::server) fn is_closed(&self) -> bool {
        self.facts().fate != Fate::Open
    }

    /// Returns why its connection can no longer use the session, if it cannot.
    pub(in crate::server) fn why_gone(&self) -> Option<Refused> {
        match &self.facts().fate {
            Fate::Open | Fate::Closed => None,
            Fate::ClosedElsewhere => {
                Some(Refused::session_lost("UnknownSession", "it was closed by another connection"))
            }
            Fate::Lost(code, why) => Some(Refused::session_lost(code, why.as_str())),
        }
    }

    /// Records that the session is gone and that its connection has been notified. A session that its own connection
    /// has closed remains usable.
    pub(in crate::server) fn lose(&self, why: &Refused) {
        let mut facts = self.facts();
        if facts.fate != Fate::Closed {
            facts.fate = Fate::Lost(why.code, why.message.clone());
        }
    }

    /// True once its connection has been notified that the session is gone.
    pub(in crate::server) fn is_lost(&self) -> bool {
        matches!(self.facts().fate, Fate::Lost(..))
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a program's changes could not be stored, and the names that it defined. Returns what is not stored
    /// and why, as a clause.
    pub(in crate::server) fn not_kept(&self, problem: &str, defined: &[String]) -> String {
        let mut facts = self.facts();
        let new = || Unkept { since: Timestamp::now(), names: Vec::new(), problem: String::new() };
        let unkept = facts.unkept.get_or_insert_with(new);
        problem.clone_into(&mut unkept.problem);
        for name in defined.iter().filter(|name| !unkept.names.contains(name)).cloned().collect::<Vec<_>>() {
            unkept.names.push(name);
        }
        unkept.to_string()
    }

    /// Records that the whole session is stored.
    pub(in crate::server) fn kept(&self) {
        self.facts().unkept = None;
    }

    /// Records that the changes that were not stored are lost. Returns the time of the first of them, if there were
    /// any.
    pub(in crate::server) fn lose_unkept(&self) -> Option<String> {
        self.facts().unkept.take().map(|unkept| shown(unkept.since).to_string())
    }

    /// Returns which changes are not stored and why, as a clause.
    pub(in crate::server) fn unkept(&self) -> Option<String> {
        self.facts().unkept.as_ref().map(Unkept::to_string)
    }

    /// Updates the facts after an evaluation and returns how to proceed with the session; `is_own` is true for that of
    /// the connection.
    pub(in crate::server) fn used(&self, session: &dyn Environment, defined: &[String], is_own: bool) -> SessionState {
        let mut facts = self.facts();
        facts.used = Instant::now();
        facts.bytes = session.live_bytes() + self.origins.bytes();
        facts.names.extend(defined.iter().cloned());
        // Names that are no longer defined must not be suggested.
        facts.names.retain(|name| session.defines(name));
        // A client without a connection needs the session for the origins of its next arguments.
        if session.bindings() == 0 && (is_own || !self.origins.has_replies()) {
            return SessionState::Empty;
        }
        facts.fate = Fate::Open;
        if std::mem::replace(&mut facts.announced, true) { SessionState::Known } else { SessionState::New }
    }
}

/// The state in which an evaluation left its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum SessionState {
    /// Empty: not worth keeping.
    Empty,
    /// It holds its first definition: the caller receives the handle.
    New,
    /// It holds definitions, and the caller already has the handle.
    Known,
    /// It was closed.
    Closed,
}

/// The sessions that a later call can use.
pub(in crate::server) struct Sessions {
    bounds: SessionBounds,
    allowances: Arc<Allowances>,
    cache: Mutex<Cache>,
}

/// The sessions in memory.
#[derive(Default)]
struct Cache {
    by_handle: HashMap<String, CachedSession>,
    by_principal: HashMap<String, PrincipalSessions>,
    bytes: u64,
    /// A counter that grows with every use of a session.
    turn: u64,
}

/// A session in memory, with its position in the least-recently-used order.
struct CachedSession {
    entry: Arc<Entry>,
    /// The value of [`Cache::turn`] at its last use.
    turn: u64,
    bytes: u64,
}

/// The sessions of one principal.
#[derive(Default)]
struct PrincipalSessions {
    by_turn: BTreeMap<u64, Arc<Entry>>,
    bytes: u64,
    /// The handles of sessions that have ended, the latest last.
    ended: VecDeque<(String, Ended)>,
}

impl PrincipalSessions {
    /// Returns the least recently used session other than `but`.
    fn oldest(&self, but: &Entry) -> Option<&Arc<Entry>> {
        self.by_turn.values().find(|entry| entry.handle != but.handle)
    }
}

impl Cache {
    fn own(&mut self, principal: &str) -> &mut PrincipalSessions {
        if !self.by_principal.contains_key(principal) {
            self.by_principal.insert(principal.to_owned(), PrincipalSessions::default());
        }
        self.by_principal.get_mut(principal).expect("it was inserted if it was not there")
    }

    fn insert(&mut self, entry: &Arc<Entry>) {
        self.remove(&entry.handle);
        self.turn += 1;
        let cached = CachedSession { entry: Arc::clone(entry), turn: self.turn, bytes: entry.facts().bytes };
        self.bytes += cached.bytes;
        let own = self.own(&entry.caller);
        own.bytes += cached.bytes;
        own.by_turn.insert(cached.turn, Arc::clone(entry));
        self.by_handle.insert(entry.handle.clone(), cached);
    }

    fn remove(&mut self, handle: &str) {
        let Some(CachedSession { entry, turn, bytes }) = self.by_handle.remove(handle) else { return };
        self.bytes -= bytes;
        let own = self.own(&entry.caller);
        own.bytes -= bytes;
        own.by_turn.remove(&turn);
    }

    /// Removes a session and remembers why. A session that is in use is kept alive by its evaluation until that ends.
    fn end(&mut self, entry: &Entry, why: Ended) {
        self.remove(&entry.handle);
        let ended = &mut self.own(&entry.caller).ended;
        ended.push_back((entry.handle.clone(), why));
        if ended.len() > REMEMBERED {
            ended.pop_front();
        }
    }
}

impl Sessions {
    pub(in crate::server) fn new(bounds: SessionBounds, allowances: Arc<Allowances>) -> Sessions {
        Sessions { bounds, allowances, cache: Mutex::default() }
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the session with a handle, if it is in memory and belongs to the caller.
    ///
    /// # Errors
    /// Returns the reason if the session has ended.
    pub(in crate::server) fn find(&self, caller: &str, handle: &str) -> Result<Option<Arc<Entry>>, Ended> {
        let mut cache = self.cache();
        let entry = cache.by_handle.get(handle).map(|cached| &cached.entry).filter(|entry| entry.caller == caller);
        if let Some(entry) = entry.cloned() {
            let unused = entry.facts().used.elapsed() > self.bounds.idle;
            let why = match (self.is_old(&entry), unused) {
                (true, _) => Ended::Old,
                (false, true) => Ended::Unused,
                (false, false) => return Ok(Some(entry)),
            };
            cache.end(&entry, why);
            return Err(why);
        }
        let own = cache.by_principal.get(caller);
        let ended = own.and_then(|own| own.ended.iter().rev().find(|(ended, _)| ended == handle));
        ended.map_or(Ok(None), |(_, why)| Err(*why))
    }

    /// True if a session has exceeded its lifetime.
    pub(in crate::server) fn is_old(&self, entry: &Entry) -> bool {
        entry.facts().made.is_some_and(|made| made.elapsed() > self.bounds.lifetime)
    }

    /// The refusal of a call that names a session which has ended.
    pub(in crate::server) fn refused(&self, why: Ended) -> Refused {
        let shown = |time: Duration| format!("{:#}", jiff::SignedDuration::try_from(time).unwrap_or_default());
        let why = match why {
            Ended::Unused => format!("it was not used for {}", shown(self.bounds.idle)),
            Ended::Old => format!("it was created more than {} ago", shown(self.bounds.lifetime)),
            Ended::Crowded => "it was evicted as the least recently used one".to_owned(),
        };
        Refused::session_lost("SessionExpired", format!("the session has expired: {why}"))
    }

    /// Keeps a session that was just used, and evicts others as the limits require.
    pub(in crate::server) fn keep(&self, entry: &Arc<Entry>) {
        let mut cache = self.cache();
        cache.insert(entry);
        self.drop_unused(&mut cache, entry);
        let most = self.allowances.of(&entry.caller).sessions.unwrap_or(usize::MAX);
        while let Some(own) = cache.by_principal.get(&entry.caller).filter(|own| own.by_turn.len() > most) {
            let Some(oldest) = own.oldest(entry).cloned() else { break };
            cache.end(&oldest, Ended::Crowded);
        }
        while cache.by_handle.len() > self.bounds.count || cache.bytes > self.bounds.bytes {
            let too_many = cache.by_handle.len() > self.bounds.count;
            let measure = |own: &PrincipalSessions| if too_many { own.by_turn.len() as u64 } else { own.bytes };
            let going = cache.by_principal.values().filter_map(|own| Some((measure(own), own.oldest(entry)?)));
            let Some((_, oldest)) = going.max_by_key(|(measure, _)| *measure) else { break };
            let oldest = Arc::clone(oldest);
            cache.end(&oldest, Ended::Crowded);
        }
    }

    /// Ends the sessions that have been unused for too long.
    fn drop_unused(&self, cache: &mut Cache, but: &Entry) {
        // A session that was not used for a lifetime was created before that.
        let idle = self.bounds.idle.min(self.bounds.lifetime);
        let is_unused = |entry: &&Arc<Entry>| entry.facts().used.elapsed() > idle;
        while let Some(entry) =
            cache.by_principal.values().find_map(|own| own.oldest(but).filter(is_unused)).map(Arc::clone)
        {
            let why = if self.bounds.idle <= self.bounds.lifetime { Ended::Unused } else { Ended::Old };
            cache.end(&entry, why);
        }
    }

    /// Returns the number of sessions in memory and their total size in bytes.
    pub(in crate::server) fn load(&self) -> (usize, u64) {
        let cache = self.cache();
        (cache.by_handle.len(), cache.bytes)
    }

    /// Removes a session without remembering why.
    pub(in crate::server) fn discard(&self, handle: &str) {
        self.cache().remove(handle);
    }

    /// Returns the handle of the caller's most recently used session that defines `name`, among those that `may_be`
    /// accepts.
    pub(in crate::server) fn definer(&self, caller: &str, name: &str, may_be: impl Fn(&str) -> bool) -> Option<String> {
        let cache = self.cache();
        let mut latest_first = cache.by_principal.get(caller)?.by_turn.values().rev();
        let defining = latest_first.find(|entry| may_be(&entry.handle) && entry.facts().names.contains(name));
        defining.map(|entry| entry.handle.clone())
    }
}

#[cfg(test)]
mod tests;
