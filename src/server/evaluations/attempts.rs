//! Further attempts of programs that did not end well: the session in which they begin, and what is kept of those that fail.

use std::sync::Arc;

use crate::lang::{Environment, Reply, RunLog, Sandbox, Status};
use crate::server::runs::ResumedRun;
use crate::server::runs::attempts::{FailedAttempt, LARGEST_SESSION, SessionBefore};
use crate::server::sessions::Entry;
use crate::server::sessions::persistence::Persistence;

/// The facts about a program before it is evaluated that are needed if it fails.
pub(super) struct Beginning {
    /// True if its session had no definitions.
    pub(super) was_empty: bool,
    /// True if the program has data.
    pub(super) has_data: bool,
    /// A note on the session in which a further attempt begins.
    pub(super) note: Option<&'static str>,
}

impl Beginning {
    /// Prepares the session of a program. A further attempt begins in the session as it was before the failed one, if
    /// nothing else has changed it since.
    pub(super) fn of(
        resumed: Option<&ResumedRun>,
        entry: &Entry,
        session: &mut Box<dyn Environment>,
        sandbox: &Arc<dyn Sandbox>,
        has_data: bool,
    ) -> Beginning {
        let before = resumed.and_then(ResumedRun::session_before);
        let note = before.and_then(|(before, after)| restore(before, *after, entry, session, sandbox));
        Beginning { was_empty: session.bindings() == 0, has_data, note }
    }

    /// Returns what is to be kept of a program that did not end well after it has made changes or after its client was told
    /// of its run, or whose reply its client will not receive, before its session is stored; `None` if nothing is.
    pub(super) fn failed(
        &self,
        reply: &Reply,
        (is_told_of, is_lost): (bool, bool),
        log: &RunLog,
        entry: &Entry,
        persistence: Option<&Persistence>,
    ) -> Option<FailedAttempt> {
        let is_bad = match reply.status {
            Status::Error | Status::Limit | Status::Cancelled => true,
            Status::Ok => is_lost,
            Status::Suspended | Status::Running => false,
        };
        // A client that was told to go on with a run can do so, also if nothing was changed.
        if !is_bad || !(log.has_changes() || is_told_of) {
            return None;
        }
        let before = match persistence {
            _ if self.was_empty => SessionBefore::Empty,
            None => SessionBefore::Unknown,
            Some(persistence) => stored(entry, persistence),
        };
        Some(FailedAttempt {
            log: log.logged(),
            has_unkept_draws: log.has_unkept_draws(),
            before,
            after: 0,
            had_data: self.has_data,
        })
    }
}

/// Returns the session as the store still has it.
fn stored(entry: &Entry, persistence: &Persistence) -> SessionBefore {
    let version = entry.version();
    match persistence.store().read(&entry.key(), 0) {
        Ok(Some(read)) if version > 0 && read.version == version && read.text.len() <= LARGEST_SESSION => {
            SessionBefore::Text(read.text)
        }
        _ => SessionBefore::Unknown,
    }
}

/// Returns a number that differs after each change of a session: its version in the store, if it has one.
pub(super) fn session_state(entry: &Entry, session: &dyn Environment) -> u64 {
    match entry.version() {
        0 => entry.changes(session),
        version => version,
    }
}

/// Makes the session what it was before the failed attempt. Returns a note if it cannot.
fn restore(
    before: &SessionBefore,
    after: u64,
    entry: &Entry,
    session: &mut Box<dyn Environment>,
    sandbox: &Arc<dyn Sandbox>,
) -> Option<&'static str> {
    if session.bindings() == 0 && *before == SessionBefore::Empty {
        return None;
    }
    if session_state(entry, &**session) != after {
        return Some("it began in the session as it is now, which has changed since the failed attempt");
    }
    match before {
        SessionBefore::Empty => *session = Arc::clone(sandbox).environment(),
        SessionBefore::Text(text) if entry.decode_values(text, &mut **session).is_ok() => {}
        SessionBefore::Text(_) | SessionBefore::Unknown => {
            return Some("it began in the session as the failed attempt left it");
        }
    }
    entry.restored();
    None
}
