//! Periodically kills a worker or a downstream server. Only descendants of the server under test are killed.

use std::time::{Duration, Instant};

use super::field::Field;
use super::processes::{Process, Role, below};
use crate::mailbox::chance::Chance;

/// The time between kills, in milliseconds: the minimum, and the range of the random addition.
const PAUSE: (u64, u64) = (300, 1_200);

/// The number of consecutive deaths after which a downstream server is restarted immediately. After more, the server
/// waits before it restarts it, and its tools cannot be tested in the meantime.
const AT_ONCE: usize = 2;

/// Kills processes until the field is stopped.
pub fn rage(field: &Field, server: u32, mut chance: Chance) {
    loop {
        let until = Instant::now() + Duration::from_millis(PAUSE.0 + chance.below(PAUSE.1));
        while Instant::now() < until {
            if field.is_stopped() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let (role, busy) = (chance.of(&[Role::Worker, Role::Worker, Role::Downstream]), chance.below(3) > 0);
        let mut living = below(server);
        living.retain(|process| process.role != Role::Downstream || field.servers_killed_in_a_row() < AT_ONCE);
        if let Some(victim) = victim(living, role, busy, &mut chance) {
            // Recorded before the kill, so that no session observes the effect first.
            field.killing(victim.role);
            victim.kill();
        }
    }
}

/// Chooses a process with the role `role`, or with the other role if there is none. If `busy` is true, prefers one that
/// is running.
fn victim(living: Vec<Process>, role: Role, busy: bool, chance: &mut Chance) -> Option<Process> {
    let (mut wanted, others): (Vec<Process>, Vec<Process>) =
        living.into_iter().filter(may_be_killed).partition(|process| process.role == role);
    if wanted.is_empty() {
        wanted = others;
    }
    if busy && wanted.iter().any(|process| process.runs) {
        wanted.retain(|process| process.runs);
    }
    let index = chance.below(wanted.len() as u64) as usize;
    (index < wanted.len()).then(|| wanted.swap_remove(index))
}

fn may_be_killed(process: &Process) -> bool {
    process.role != Role::Other && !process.is_zombie
}
