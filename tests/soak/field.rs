//! State shared by all sessions of the soak.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::client::{Client, lock};
use super::processes::Role;
use super::tally::{Mistake, Tally};
use crate::mailbox::Mailbox;

/// Time after a kill in which it may still affect a request: until the broken pipe is noticed, on a busy machine.
const AFTERMATH: Duration = Duration::from_secs(1);

/// Time after which the server starts a downstream server again that was killed before it had started.
const PAUSE: Duration = Duration::from_secs(1);

/// The server considers a downstream server stable after it has run for a minute; this adds a margin for its start.
const SOUND: Duration = Duration::from_secs(65);

/// The connection, the tally and the kills.
pub struct Field {
    /// The connection to the server.
    pub client: Client,
    /// A mailbox equal to those of the downstream servers, to compute the expected answers of their tools.
    pub mailbox: Mailbox,
    tally: Mutex<Tally>,
    kills: Mutex<Vec<(Role, Instant)>>,
    stopped: AtomicBool,
}

impl Field {
    /// Creates a field with an empty tally and no kills.
    pub fn new(client: Client) -> Field {
        Field {
            client,
            mailbox: Mailbox::new(),
            tally: Mutex::default(),
            kills: Mutex::default(),
            stopped: AtomicBool::new(false),
        }
    }

    /// Updates the tally.
    pub fn tally(&self, write: impl FnOnce(&mut Tally)) {
        write(&mut lock(&self.tally));
    }

    /// A copy of the tally so far.
    pub fn sums(&self) -> Tally {
        lock(&self.tally).clone()
    }

    /// Records a wrong answer.
    pub fn mistake(&self, program: &str, expected: impl Into<String>, got: impl Into<String>) {
        let mistake = Mistake { program: program.to_owned(), expected: expected.into(), got: got.into() };
        self.tally(|tally| tally.mistake(mistake));
    }

    /// Records a kill that is about to happen.
    pub fn killing(&self, role: Role) {
        lock(&self.kills).push((role, Instant::now()));
    }

    /// True if a kill of a process with this role may have affected a request made at `since`.
    pub fn was_killed(&self, role: Role, since: Instant) -> bool {
        let aftermath = if role == Role::Downstream { AFTERMATH + PAUSE } else { AFTERMATH };
        lock(&self.kills).iter().rev().any(|(killed, when)| *killed == role && *when + aftermath >= since)
    }

    /// The number of kills of downstream servers since the last period long enough for a server to be considered
    /// stable.
    pub fn servers_killed_in_a_row(&self) -> usize {
        let (mut count, mut until) = (0, Instant::now());
        for (_, when) in lock(&self.kills).iter().rev().filter(|(killed, _)| *killed == Role::Downstream) {
            if until.duration_since(*when) >= SOUND {
                break;
            }
            (count, until) = (count + 1, *when);
        }
        count
    }

    /// The number of kills of processes with this role.
    pub fn kills(&self, role: Role) -> u64 {
        lock(&self.kills).iter().filter(|(killed, _)| *killed == role).count() as u64
    }

    /// Tells all sessions and the killer to stop.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// True after [`Field::stop`].
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}
