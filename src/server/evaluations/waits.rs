//! Waiting for a run or a session that another evaluation uses, here or in another process.
//!
//! Such a wait takes no thread: it ends with the connection of its client, with the server, and after a time. It counts as
//! a call of its principal, like a call that waits for its turn.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::server::admission::request::{NamedRun, Refused};
use crate::server::runs::{FoundRun, Free, not_resumed};
use crate::server::sessions::persistence;
use crate::store::{Key, LOOK};

use super::Evaluations;

/// The time for which the lease of a process that has died may hold, and some more.
pub(super) const LONGEST_LEASE: Duration = persistence::PATIENCE;

/// The refusals of calls for a run that another call or process evaluates.
const RUNS_ELSEWHERE: &str = "the program is still running, in another call or in another process of the server: `run` \
                              alone waits for its reply";
const CANCEL_ELSEWHERE: &str = "the program is running in another call or in another process of the server, and cannot be \
                                ended from here: `run` alone waits for its reply";

/// The longest interval between two looks at a record.
const LONGEST_LOOK: Duration = Duration::from_millis(250);

/// The turns of the requests that wait for the same record: one of them looks at it, however many there are.
#[derive(Default)]
pub(super) struct Waits(Mutex<HashMap<Key, Weak<tokio::sync::Mutex<()>>>>);

impl Waits {
    fn turn(&self, key: &Key) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        turns.retain(|_, turn| turn.strong_count() > 0);
        if let Some(turn) = turns.get(key).and_then(Weak::upgrade) {
            return turn;
        }
        let turn = Arc::default();
        turns.insert(key.clone(), Arc::downgrade(&turn));
        turn
    }
}

/// What is found of a run.
pub(in crate::server) enum Found {
    Run(Option<Box<FoundRun>>),
    /// It is still being evaluated.
    Running,
}

impl Evaluations {
    /// Finds a run that a request resumes, if there is one of that identity. Waits while it is evaluated: for its reply as
    /// long as the run may take, but not beyond the `deadline`; with a further attempt, which is not begun before, until the
    /// lease of a process that has died is over.
    ///
    /// # Errors
    /// Refuses if it cannot be read, if it is evaluated for too long, if the client has `left`, or if the principal has too
    /// many calls under way.
    pub(in crate::server) async fn find_run(
        &self,
        identity: &str,
        principal: &str,
        named: Option<&NamedRun>,
        deadline: Option<tokio::time::Instant>,
        left: &CancellationToken,
    ) -> Result<Found, Refused> {
        let _slot = self.gate.admit(principal, 0)?;
        let begun = Instant::now();
        loop {
            let (runs, run, owner) = (Arc::clone(&self.runs), identity.to_owned(), principal.to_owned());
            let found = self.runtime.spawn_blocking(move || runs.find(&run, &owner)).await;
            match found.unwrap_or_else(|problem| Err(Refused::new("InternalError", problem.to_string())))? {
                Free::Now(found) => return Ok(Found::Run(found.map(Box::new))),
                Free::Later(key, patience) => {
                    let (patience, why) = match named {
                        Some(named) if named.cancel => (Duration::ZERO, CANCEL_ELSEWHERE),
                        Some(named) if named.further().is_some() => (LONGEST_LEASE, RUNS_ELSEWHERE),
                        _ => (patience, "the run is being resumed"),
                    };
                    let is_for_reply = named.is_none_or(|named| !named.cancel && named.further().is_none());
                    let left_of = |deadline: tokio::time::Instant| deadline - tokio::time::Instant::now();
                    let patience = patience.saturating_sub(begun.elapsed());
                    let most = deadline.filter(|_| is_for_reply).map(left_of).filter(|most| *most < patience);
                    if !self.until_free(&key, most.unwrap_or(patience), left).await? {
                        return if most.is_some() { Ok(Found::Running) } else { Err(not_resumed(why)) };
                    }
                }
            }
        }
    }

    /// Waits until no evaluation uses a record; returns false if one goes on for too long.
    ///
    /// # Errors
    /// Refuses if the client has `left`, or if the server is shutting down.
    pub(super) async fn until_free(
        &self,
        key: &Key,
        patience: Duration,
        left: &CancellationToken,
    ) -> Result<bool, Refused> {
        let Some(persistence) = self.persistence.clone() else { return Ok(true) };
        let free = async {
            let turn = self.waits.turn(key);
            let _turn = turn.lock().await;
            let mut pause = LOOK;
            loop {
                let (persistence, looked_at) = (Arc::clone(&persistence), key.clone());
                let looked = self.runtime.spawn_blocking(move || persistence.is_free(&looked_at)).await;
                if looked.unwrap_or(true) {
                    return;
                }
                tokio::time::sleep(pause).await;
                pause = (2 * pause).min(LONGEST_LOOK);
            }
        };
        tokio::select! {
            biased;
            () = left.cancelled() => Err(Refused::new("Cancelled", "the call was cancelled before it started")),
            () = self.shutdown.cancelling().cancelled() => Err(self.shutdown.too_late()),
            outcome = tokio::time::timeout(patience, free) => Ok(outcome.is_ok()),
        }
    }
}
