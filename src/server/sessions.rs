//! Sessions between calls: who may use which, how long they last, how many there may be.
//!
//! They live in this process. A session is found again by its handle, which cannot be guessed; it gets
//! one when it is made and is kept here from its first definition on.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::lang::Environment;
use crate::store::Key;

/// How many sessions there may be, how large in all, and for how long.
#[derive(Clone, Debug)]
pub struct SessionBounds {
    /// A session that was not used for this long is dropped.
    pub idle: Duration,
    /// The most sessions that are kept; beyond it the one longest unused goes.
    pub count: usize,
    /// The most bytes that they may hold in all; beyond it the one longest unused goes.
    pub bytes: u64,
}

impl Default for SessionBounds {
    fn default() -> Self {
        SessionBounds { idle: Duration::from_secs(24 * 60 * 60), count: 1000, bytes: 2 << 30 }
    }
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
    used: Instant,
    names: HashSet<String>,
    bytes: u64,
    announced: bool,
    closed: bool,
}

impl Facts {
    /// Of a session in which nothing is known to be.
    fn new(announced: bool) -> Facts {
        Facts { used: Instant::now(), names: HashSet::new(), bytes: 0, announced, closed: false }
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
        Arc::new(Entry::with(caller, handle.to_owned(), session, Stored::Other))
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

    /// Takes down that nothing is left of it.
    pub(super) fn close(&self) {
        *self.facts() = Facts { closed: true, ..Facts::new(false) };
        *self.stored.lock().unwrap_or_else(PoisonError::into_inner) = Stored::Nothing;
    }

    /// True once it was closed, until something is defined in it again: the session of a connection goes on.
    pub(super) fn is_closed(&self) -> bool {
        self.facts().closed
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
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
        facts.closed = false;
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
    entries: Mutex<HashMap<String, Arc<Entry>>>,
}

impl Sessions {
    pub(super) fn new(bounds: SessionBounds) -> Sessions {
        Sessions { bounds, entries: Mutex::default() }
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<String, Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session of a handle, if it is there and belongs to the caller.
    pub(super) fn find(&self, caller: &str, handle: &str) -> Option<Arc<Entry>> {
        let mut entries = self.entries();
        let entry = entries.get(handle).filter(|entry| entry.caller == caller)?;
        if entry.facts().used.elapsed() > self.bounds.idle {
            entries.remove(handle);
            return None;
        }
        Some(Arc::clone(entry))
    }

    /// Keeps a session that was just used, and drops others as the bounds ask for.
    pub(super) fn keep(&self, entry: &Arc<Entry>) {
        let mut entries = self.entries();
        entries.insert(entry.handle.clone(), Arc::clone(entry));
        let mut held = 0;
        let mut stale = false;
        for entry in entries.values() {
            let facts = entry.facts();
            held += facts.bytes;
            stale |= facts.used.elapsed() > self.bounds.idle;
        }
        if !stale && entries.len() <= self.bounds.count && held <= self.bounds.bytes {
            return;
        }
        let mut by_age: Vec<(Instant, u64, String)> = entries
            .values()
            .map(|entry| {
                let facts = entry.facts();
                (facts.used, facts.bytes, entry.handle.clone())
            })
            .collect();
        by_age.sort();
        for (used, bytes, handle) in by_age {
            let within = entries.len() <= self.bounds.count && held <= self.bounds.bytes;
            if handle == entry.handle || (within && used.elapsed() <= self.bounds.idle) {
                continue;
            }
            // One that is in use right now is held by its evaluation and goes when that ends.
            entries.remove(&handle);
            held -= bytes;
        }
    }

    /// Drops a session.
    pub(super) fn discard(&self, handle: &str) {
        self.entries().remove(handle);
    }

    /// The handle of the caller's most recently used session that defines `name`, other than `except`.
    pub(super) fn definer(&self, caller: &str, name: &str, except: &str) -> Option<String> {
        let entries = self.entries();
        let others = entries.values().filter(|entry| entry.caller == caller && entry.handle != except);
        let defining = others.filter_map(|entry| {
            let facts = entry.facts();
            facts.names.contains(name).then(|| (facts.used, entry.handle.clone()))
        });
        defining.max_by_key(|(used, _)| *used).map(|(_, handle)| handle)
    }
}

#[cfg(test)]
#[path = "sessions_tests.rs"]
mod tests;
