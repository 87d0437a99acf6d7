//! What all sessions share while the soak lasts.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::client::{Client, lock};
use super::processes::Role;
use super::tally::{Mistake, Tally};
use crate::sample_mailbox::Mailbox;

/// How long after a kill something may still come of it: until the pipe is seen to be broken, on a busy machine.
const AFTERMATH: Duration = Duration::from_secs(1);

/// A server that has run for a minute is sound; it takes some time to be started.
const SOUND: Duration = Duration::from_secs(65);

/// The connection, the sums, the kills.
pub struct Field {
    /// The connection to the server.
    pub client: Client,
    /// A mailbox like those behind the server, for what its tools must answer.
    pub mailbox: Mailbox,
    tally: Mutex<Tally>,
    kills: Mutex<Vec<(Role, Instant)>>,
    stopped: AtomicBool,
}

impl Field {
    /// A field on which nothing has happened.
    pub fn new(client: Client) -> Field {
        Field {
            client,
            mailbox: Mailbox::new(),
            tally: Mutex::default(),
            kills: Mutex::default(),
            stopped: AtomicBool::new(false),
        }
    }

    /// Writes into the sums.
    pub fn tally(&self, write: impl FnOnce(&mut Tally)) {
        write(&mut lock(&self.tally));
    }

    /// The sums so far.
    pub fn sums(&self) -> Tally {
        lock(&self.tally).clone()
    }

    /// Takes note of a wrong answer.
    pub fn mistake(&self, program: &str, expected: impl Into<String>, got: impl Into<String>) {
        let mistake = Mistake { program: program.to_owned(), expected: expected.into(), got: got.into() };
        self.tally(|tally| tally.mistake(mistake));
    }

    /// Takes note of a kill that is about to be.
    pub fn killing(&self, role: Role) {
        lock(&self.kills).push((role, Instant::now()));
    }

    /// True if a kill of that kind may have done something to a request that was made then.
    pub fn was_killed(&self, role: Role, since: Instant) -> bool {
        lock(&self.kills).iter().rev().any(|(killed, when)| *killed == role && *when + AFTERMATH >= since)
    }

    /// How often servers behind have been killed since they last were left in peace for long enough to be sound.
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

    /// How many of that kind were killed.
    pub fn kills(&self, role: Role) -> u64 {
        lock(&self.kills).iter().filter(|(killed, _)| *killed == role).count() as u64
    }

    /// Tells everybody to come to an end.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// True when the end has come.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}
