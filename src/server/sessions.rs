//! Sessions between calls: who may use which, how long they last, how many there may be.
//!
//! They live in this process. A session is found again by its handle, which cannot be guessed; it gets
//! one when it is made and is kept here from its first definition on.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::lang::{Environment, foreign_text};
use crate::store::Key;

use super::allowances::Allowances;
use super::request::Refused;

/// How many handles of sessions that have ended are remembered for each principal, to say why they are of no use.
const REMEMBERED: usize = 1_000;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How many sessions there may be, how large in all, and for how long.
#[derive(Clone, Debug)]
pub struct SessionBounds {
    /// A session that was not used for this long leaves memory: it ends, or is left to its store.
    pub idle: Duration,
    /// A session that was made so long ago ends, also if it is used; with [`Duration::MAX`] none does.
    pub lifetime: Duration,
    /// The most sessions that are held in memory. Beyond it the one longest unused goes, of the principal that has the
    /// most: nobody loses one to another who has more.
    pub count: usize,
    /// The most bytes that they may hold in all; beyond it alike.
    pub bytes: u64,
    /// How long a session that nobody uses is kept in a store.
    pub kept: Duration,
    /// The most sessions that one principal may have in a store. A further one is not kept there, and its caller is
    /// told.
    pub stored: u64,
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
        }
    }
}

/// Why a session is not there any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// It was not used for too long.
    Unused,
    /// It was made too long ago.
    Old,
    /// Newer ones needed its room.
    Crowded,
}

/// A session with what the server knows of it. Its evaluations take turns at the lock, in order.
pub(super) struct Entry {
    /// The secret that gives it back to its caller.
    pub(super) handle: String,
    caller: String,
    /// The session; held while a program runs in it.
    pub(super) session: Arc<tokio::sync::Mutex<Box<dyn Environment>>>,
    facts: Mutex<Facts>,
    /// What the store has of it; looked at by whoever holds the session.
    pub(super) stored: Mutex<Stored>,
}

/// What the store of the sessions has of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stored {
    /// Nothing.
    Nothing,
    /// Nothing, or what there is here: nobody knows whether it was written.
    Perhaps,
    /// Something else than there is here: it has to be read.
    Other,
    /// That version, which is what the session was when it had changed so often.
    Version { version: u64, changes: u64 },
}

struct Facts {
    /// When it was made, if it was made here.
    made: Option<Instant>,
    used: Instant,
    names: HashSet<String>,
    bytes: u64,
    announced: bool,
    fate: Fate,
    unkept: Option<Unkept>,
}

/// Changes of a session that could not be kept.
struct Unkept {
    /// When the first of them was made.
    since: Timestamp,
    /// What programs have defined since.
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
        write!(formatter, "all that was changed since {} is there for now, and not kept", shown(*since))
    }
}

/// A time in a message.
fn shown(time: Timestamp) -> impl fmt::Display {
    time.strftime("%Y-%m-%d %H:%M:%S UTC")
}

/// What has become of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    /// It is there.
    Open,
    /// It was closed, and is open again once something is defined in it: the session of a connection goes on.
    Closed,
    /// It was closed by another connection than its own, which does not know that yet.
    ClosedElsewhere,
    /// It is gone, as its connection was told: with that code and reason.
    Lost(&'static str, String),
}

impl Facts {
    /// Of a session in which nothing is known to be.
    fn new(announced: bool) -> Facts {
        let now = Instant::now();
        Facts { made: Some(now), used: now, names: HashSet::new(), bytes: 0, announced, fate: Fate::Open, unkept: None }
    }
}

impl Entry {
    /// A session for `caller` that is not kept yet.
    ///
    /// # Errors
    /// When the system has no randomness for a handle.
    pub(super) fn new(caller: &str, session: Box<dyn Environment>) -> Result<Arc<Entry>, String> {
        let handle = crate::store::handle()?;
        Ok(Arc::new(Entry::with(caller, handle, session, Stored::Nothing)))
    }

    /// A session that is in the store, if it is anywhere; `session` is to take it up.
    pub(super) fn in_store(caller: &str, handle: &str, session: Box<dyn Environment>) -> Arc<Entry> {
        let entry = Entry::with(caller, handle.to_owned(), session, Stored::Other);
        entry.facts().made = None;
        Arc::new(entry)
    }

    fn with(caller: &str, handle: String, session: Box<dyn Environment>, stored: Stored) -> Entry {
        let facts = Facts::new(stored != Stored::Nothing);
        Entry {
            handle,
            caller: caller.to_owned(),
            session: Arc::new(tokio::sync::Mutex::new(session)),
            facts: Mutex::new(facts),
            stored: Mutex::new(stored),
        }
    }

    /// Whose it is.
    pub(super) fn caller(&self) -> &str {
        &self.caller
    }

    /// What a store finds it by.
    pub(super) fn key(&self) -> Key {
        self.key_of(self.handle.clone())
    }

    /// What a store finds another session of the same caller by.
    pub(super) fn key_of(&self, handle: String) -> Key {
        Key { principal: self.caller.clone(), handle }
    }

    /// A session of the same caller, of which it has been told, with what is in `session`.
    pub(super) fn copied(&self, handle: String, session: Box<dyn Environment>) -> Arc<Entry> {
        let (names, bytes) = (session.names().into_iter().collect(), session.live_bytes());
        let entry = Entry::with(&self.caller, handle, session, Stored::Nothing);
        *entry.facts() = Facts { names, bytes, ..Facts::new(true) };
        Arc::new(entry)
    }

    /// Takes down that nothing is left of it; `by_its_own` is true where the connection closed it whose session it is.
    pub(super) fn close(&self, by_its_own: bool) {
        let fate = if by_its_own { Fate::Closed } else { Fate::ClosedElsewhere };
        *self.facts() = Facts { fate, ..Facts::new(false) };
        *self.stored.lock().unwrap_or_else(PoisonError::into_inner) = Stored::Nothing;
    }

    /// True once it was closed, until something is defined in it again: the session of a connection goes on.
    pub(super) fn is_closed(&self) -> bool {
        self.facts().fate != Fate::Open
    }

    /// Why its connection cannot use it any more, if it cannot.
    pub(super) fn why_gone(&self) -> Option<Refused> {
        match &self.facts().fate {
            Fate::Open | Fate::Closed => None,
            Fate::ClosedElsewhere => {
                Some(Refused::session_lost("UnknownSession", "it was closed by another connection"))
            }
            Fate::Lost(code, why) => Some(Refused::session_lost(code, why.as_str())),
        }
    }

    /// Takes down that it is gone, and that its connection is told. One that its connection has closed goes on.
    pub(super) fn lose(&self, why: &Refused) {
        let mut facts = self.facts();
        if facts.fate != Fate::Closed {
            facts.fate = Fate::Lost(why.code, why.message.clone());
        }
    }

    /// True once its connection was told that it is gone.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self.facts().fate, Fate::Lost(..))
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes down that what a program changed could not be kept, and what it defined; gives what is not kept and why, as a
    /// clause.
    pub(super) fn not_kept(&self, problem: &str, defined: &[String]) -> String {
        let mut facts = self.facts();
        let new = || Unkept { since: Timestamp::now(), names: Vec::new(), problem: String::new() };
        let unkept = facts.unkept.get_or_insert_with(new);
        problem.clone_into(&mut unkept.problem);
        for name in defined.iter().filter(|name| !unkept.names.contains(name)).cloned().collect::<Vec<_>>() {
            unkept.names.push(name);
        }
        unkept.to_string()
    }

    /// Takes down that all of it is kept.
    pub(super) fn kept(&self) {
        self.facts().unkept = None;
    }

    /// Takes down that what was not kept is lost; says since when that was changed, if anything was.
    pub(super) fn lose_unkept(&self) -> Option<String> {
        self.facts().unkept.take().map(|unkept| shown(unkept.since).to_string())
    }

    /// What of it is not kept and why, as a clause.
    pub(super) fn unkept(&self) -> Option<String> {
        self.facts().unkept.as_ref().map(Unkept::to_string)
    }

    /// Takes down what an evaluation left, and says what to do about the session.
    pub(super) fn used(&self, session: &dyn Environment, defined: &[String]) -> Left {
        let mut facts = self.facts();
        facts.used = Instant::now();
        facts.bytes = session.live_bytes();
        facts.names.extend(defined.iter().cloned());
        // Names that were forgotten since must not be suggested.
        facts.names.retain(|name| session.defines(name));
        if session.bindings() == 0 {
            return Left::Nothing;
        }
        facts.fate = Fate::Open;
        if std::mem::replace(&mut facts.announced, true) { Left::More } else { Left::First }
    }
}

/// What an evaluation left in its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// Nothing to come back to.
    Nothing,
    /// The first definition: the caller is told the handle.
    First,
    /// Definitions, in a session of which the caller has been told.
    More,
    /// The end of the session.
    Closed,
}

/// The sessions that can be come back to.
pub(super) struct Sessions {
    bounds: SessionBounds,
    allowances: Arc<Allowances>,
    held: Mutex<Held>,
}

/// The sessions in memory.
#[derive(Default)]
struct Held {
    places: HashMap<String, Place>,
    by_principal: HashMap<String, Own>,
    bytes: u64,
    /// Grows with every use of a session.
    turn: u64,
}

/// Where a session stands.
struct Place {
    entry: Arc<Entry>,
    /// When it was last used, as [`Held::turn`] counts.
    turn: u64,
    bytes: u64,
}

/// The sessions of one principal.
#[derive(Default)]
struct Own {
    by_turn: BTreeMap<u64, Arc<Entry>>,
    bytes: u64,
    /// Those that have ended, the latest last.
    ended: VecDeque<(String, Ended)>,
}

impl Own {
    /// The one longest unused but for that one.
    fn oldest(&self, but: &Entry) -> Option<&Arc<Entry>> {
        self.by_turn.values().find(|entry| entry.handle != but.handle)
    }
}

impl Held {
    fn own(&mut self, principal: &str) -> &mut Own {
        if !self.by_principal.contains_key(principal) {
            self.by_principal.insert(principal.to_owned(), Own::default());
        }
        self.by_principal.get_mut(principal).expect("it was inserted if it was not there")
    }

    fn insert(&mut self, entry: &Arc<Entry>) {
        self.remove(&entry.handle);
        self.turn += 1;
        let place = Place { entry: Arc::clone(entry), turn: self.turn, bytes: entry.facts().bytes };
        self.bytes += place.bytes;
        let own = self.own(&entry.caller);
        own.bytes += place.bytes;
        own.by_turn.insert(place.turn, Arc::clone(entry));
        self.places.insert(entry.handle.clone(), place);
    }

    fn remove(&mut self, handle: &str) {
        let Some(Place { entry, turn, bytes }) = self.places.remove(handle) else { return };
        self.bytes -= bytes;
        let own = self.own(&entry.caller);
        own.bytes -= bytes;
        own.by_turn.remove(&turn);
    }

    /// Removes a session, and remembers why. One that is in use right now is held by its evaluation and goes when that
    /// ends.
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
    pub(super) fn new(bounds: SessionBounds, allowances: Arc<Allowances>) -> Sessions {
        Sessions { bounds, allowances, held: Mutex::default() }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session of a handle, if it is there and belongs to the caller.
    ///
    /// # Errors
    /// Why it is there no more.
    pub(super) fn find(&self, caller: &str, handle: &str) -> Result<Option<Arc<Entry>>, Ended> {
        let mut held = self.held();
        let entry = held.places.get(handle).map(|place| &place.entry).filter(|entry| entry.caller == caller);
        if let Some(entry) = entry.cloned() {
            let unused = entry.facts().used.elapsed() > self.bounds.idle;
            let why = match (self.is_old(&entry), unused) {
                (true, _) => Ended::Old,
                (false, true) => Ended::Unused,
                (false, false) => return Ok(Some(entry)),
            };
            held.end(&entry, why);
            return Err(why);
        }
        let own = held.by_principal.get(caller);
        let ended = own.and_then(|own| own.ended.iter().rev().find(|(ended, _)| ended == handle));
        ended.map_or(Ok(None), |(_, why)| Err(*why))
    }

    /// True if a session was made so long ago that it is to end.
    pub(super) fn is_old(&self, entry: &Entry) -> bool {
        entry.facts().made.is_some_and(|made| made.elapsed() > self.bounds.lifetime)
    }

    /// What a call is told that names a session which has ended.
    pub(super) fn refused(&self, why: Ended) -> Refused {
        let shown = |time: Duration| format!("{:#}", jiff::SignedDuration::try_from(time).unwrap_or_default());
        let why = match why {
            Ended::Unused => format!("it was not used for {}", shown(self.bounds.idle)),
            Ended::Old => format!("it was made more than {} ago", shown(self.bounds.lifetime)),
            Ended::Crowded => "it was the one longest unused when newer ones needed its room".to_owned(),
        };
        Refused::session_lost("SessionExpired", format!("the session has expired: {why}"))
    }

    /// Keeps a session that was just used, and drops others as the bounds ask for.
    pub(super) fn keep(&self, entry: &Arc<Entry>) {
        let mut held = self.held();
        held.insert(entry);
        self.drop_unused(&mut held, entry);
        let most = self.allowances.of(&entry.caller).sessions.unwrap_or(usize::MAX);
        while let Some(own) = held.by_principal.get(&entry.caller).filter(|own| own.by_turn.len() > most) {
            let Some(oldest) = own.oldest(entry).cloned() else { break };
            held.end(&oldest, Ended::Crowded);
        }
        while held.places.len() > self.bounds.count || held.bytes > self.bounds.bytes {
            let too_many = held.places.len() > self.bounds.count;
            let measure = |own: &Own| if too_many { own.by_turn.len() as u64 } else { own.bytes };
            let going = held.by_principal.values().filter_map(|own| Some((measure(own), own.oldest(entry)?)));
            let Some((_, oldest)) = going.max_by_key(|(measure, _)| *measure) else { break };
            let oldest = Arc::clone(oldest);
            held.end(&oldest, Ended::Crowded);
        }
    }

    /// Drops the sessions that nobody has used for too long.
    fn drop_unused(&self, held: &mut Held, but: &Entry) {
        // Whatever was not used for a lifetime was made before that.
        let idle = self.bounds.idle.min(self.bounds.lifetime);
        let is_unused = |entry: &&Arc<Entry>| entry.facts().used.elapsed() > idle;
        while let Some(entry) =
            held.by_principal.values().find_map(|own| own.oldest(but).filter(is_unused)).map(Arc::clone)
        {
            let why = if self.bounds.idle <= self.bounds.lifetime { Ended::Unused } else { Ended::Old };
            held.end(&entry, why);
        }
    }

    /// How many sessions there are in memory, and what they hold in bytes.
    pub(super) fn load(&self) -> (usize, u64) {
        let held = self.held();
        (held.places.len(), held.bytes)
    }

    /// Drops a session.
    pub(super) fn discard(&self, handle: &str) {
        self.held().remove(handle);
    }

    /// The handle of the caller's most recently used session that defines `name`, among those that `may_be` it.
    pub(super) fn definer(&self, caller: &str, name: &str, may_be: impl Fn(&str) -> bool) -> Option<String> {
        let held = self.held();
        let mut latest_first = held.by_principal.get(caller)?.by_turn.values().rev();
        let defining = latest_first.find(|entry| may_be(&entry.handle) && entry.facts().names.contains(name));
        defining.map(|entry| entry.handle.clone())
    }
}

#[cfg(test)]
#[path = "sessions_tests.rs"]
mod tests;
