//! Kills a worker or a server behind the server, every so often. Only what our own server has started is touched.

use std::time::{Duration, Instant};

use super::field::Field;
use super::processes::{Process, Role, below};
use crate::chance::Chance;

/// The time from one kill to the next, in milliseconds: at least this, and up to so much more.
const PAUSE: (u64, u64) = (300, 1_200);

/// How often in a row a server may die and is started again at once; after more it is left alone for a while, in which
/// its tools cannot be tried.
const AT_ONCE: usize = 2;

/// Kills until the field is stopped.
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
            // Noted before it happens, so that nobody sees what comes of it first.
            field.killing(victim.role);
            victim.kill();
        }
    }
}

/// One of that kind, or of the other where there is none; one that computes, where that is asked for and there is one.
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
