//! The actual memory of the process. The balance counts live bytes only. Memory lost to fragmentation, such as the
//! holes left by every other text of many sizes, is part of no balance, but the process still holds it.
//!
//! Only the embedding program can measure it, through [`Residence`]. A long evaluation checks periodically how much
//! the process has grown since it began. Growth beyond the allowance of the evaluation is attributed to it, unless
//! the unused allowances of concurrent evaluations can account for it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{bytes, limit};
use crate::error::Halt;

/// Minimum time between two checks of an evaluation. Growth within this time is covered by the margin of the
/// allowance.
const INTERVAL: Duration = Duration::from_millis(10);

/// The memory of the process, measured by the program that embeds lispbox; see
/// [`EngineBuilder::residence`](crate::EngineBuilder::residence).
pub trait Residence: Send + Sync {
    /// Returns the number of bytes that the process has in memory now; `None` if the system does not report it.
    /// Called at most every 10 ms during an evaluation.
    fn resident(&self) -> Option<u64>;

    /// Returns the number of bytes that the embedding program may allocate while programs run, such as for messages
    /// that it decodes concurrently. Growth of this size is attributed to no evaluation.
    fn beside(&self) -> u64 {
        0
    }

    /// Returns freed memory from the allocator to the system. Called on the thread of an evaluation that is about to
    /// be ended for the memory of the process.
    fn give_back(&self) {}
}

/// Bound on the factor by which fragmentation can multiply freed memory. An allocator has about this many size
/// classes, and a hole of one class is of no use to another. An evaluation whose peak was less than
/// `1 / SIZES` of the growth cannot have caused it.
const SIZES: u64 = 64;

/// The allowance of an evaluation: its memory limit plus one half, plus 16 MiB.
fn promised(memory: u64) -> u64 {
    memory.saturating_add(memory / 2).saturating_add(16 << 20)
}

/// The evaluations of an engine that have run long enough to be monitored.
pub(crate) struct Watch {
    residence: Box<dyn Residence>,
    books: Mutex<Books>,
}

#[derive(Default)]
struct Books {
    /// The number of monitored evaluations.
    running: u32,
    /// The memory of the process before the first of them, plus what evaluations that have ended left behind.
    floor: u64,
    /// The sum of their allowances.
    promised: u64,
}

impl Watch {
    pub(crate) fn new(residence: Box<dyn Residence>) -> Watch {
        Watch { residence, books: Mutex::default() }
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The registration of an evaluation in a [`Watch`].
pub(super) struct Watched {
    watch: Arc<Watch>,
    /// Bytes held by its account at the start.
    held: i64,
    /// The memory of the process at the start; `None` before the first check.
    began: Option<u64>,
    /// Its allowance; 0 before the first check.
    promised: u64,
    /// The time of the next check.
    next: Duration,
}

impl Watched {
    pub(super) fn new(watch: Arc<Watch>, held: i64, now: Duration) -> Watched {
        Watched { watch, held, began: None, promised: 0, next: now + INTERVAL }
    }

    /// Checks the growth of the process if a check is due.
    pub(super) fn look(&mut self, now: Duration, live: i64, peak: u64, memory: u64) -> Result<(), Halt> {
        if now < self.next {
            return Ok(());
        }
        self.next = now + INTERVAL;
        let Some(resident) = self.watch.residence.resident() else { return Ok(()) };
        let Some(began) = self.began else {
            // The allocations so far are taken from the balance, so that short evaluations never query the system.
            let began = resident.saturating_sub_signed(live.saturating_sub(self.held).max(0));
            self.began = Some(began);
            self.promised = promised(memory);
            let mut books = self.watch.books();
            if books.running == 0 {
                *books = Books { floor: began, ..Books::default() };
            }
            books.running += 1;
            books.promised = books.promised.saturating_add(self.promised);
            return Ok(());
        };
        if !self.is_too_much(resident, began, peak) {
            return Ok(());
        }
        self.watch.residence.give_back();
        let resident = self.watch.residence.resident().unwrap_or(0);
        if !self.is_too_much(resident, began, peak) {
            return Ok(());
        }
        // A caller that can release memory may check again at once.
        self.next = now;
        let spent = format!(
            "{} of the process for {} of values, because freed memory is fragmented",
            bytes(resident - began),
            bytes(u64::try_from(live).unwrap_or(0)),
        );
        Err(limit("memory", bytes(self.promised), spent))
    }

    /// Returns whether the growth of the process exceeds both the allowance of this evaluation, whose balance peaked
    /// at `peak` bytes, and the allowances of all running evaluations together.
    fn is_too_much(&self, resident: u64, began: u64, peak: u64) -> bool {
        let beside = self.watch.residence.beside();
        let grown = resident.saturating_sub(began).saturating_sub(beside);
        grown > self.promised && grown / SIZES <= peak && {
            let mut books = self.watch.books();
            books.floor = books.floor.min(resident);
            (resident - books.floor).saturating_sub(beside) > books.promised
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if self.began.is_none() {
            return;
        }
        let resident = self.watch.residence.resident().unwrap_or(0);
        let mut books = self.watch.books();
        books.running -= 1;
        books.promised -= self.promised;
        // Memory that the other evaluations cannot have taken belongs to the session of this one.
        books.floor = books.floor.max(resident.saturating_sub(books.promised));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    const MIB: u64 = 1 << 20;

    /// A simulated process; its memory in MiB.
    #[derive(Clone, Default)]
    struct Process(Arc<AtomicU64>);

    impl Residence for Process {
        fn resident(&self) -> Option<u64> {
            Some(self.0.load(Ordering::Relaxed) * MIB)
        }
    }

    fn look(watched: &mut Watched, milliseconds: u64) -> bool {
        watched.look(Duration::from_millis(milliseconds), 0, 60 * MIB, 64 * MIB).is_ok()
    }

    #[test]
    fn what_one_promised_is_not_the_others_to_take() {
        let process = Process::default();
        let watch = Arc::new(Watch::new(Box::new(process.clone())));
        let begin = || Watched::new(watch.clone(), 0, Duration::ZERO);
        process.0.store(1_000, Ordering::Relaxed);
        let mut alone = begin();
        assert!(look(&mut alone, 10));
        process.0.store(1_112, Ordering::Relaxed);
        assert!(look(&mut alone, 20), "112 MiB are promised");
        process.0.store(1_113, Ordering::Relaxed);
        assert!(look(&mut alone, 21), "it is not time to look");
        assert!(!look(&mut alone, 30), "113 MiB are too much");
        assert!(!look(&mut alone, 30), "and still are when asked again at once");
        let held_little = alone.look(Duration::from_millis(40), 0, MIB, 64 * MIB);
        assert!(held_little.is_ok(), "who has held 1 MiB has not lost 113");
        let mut beside = begin();
        assert!(look(&mut beside, 50));
        assert!(look(&mut alone, 50), "the other one may have taken them");
        process.0.store(1_225, Ordering::Relaxed);
        assert!(!look(&mut alone, 60), "both together may not");
        assert!(look(&mut beside, 60), "this one has grown by what is promised");
        drop(alone);
        process.0.store(1_226, Ordering::Relaxed);
        assert!(!look(&mut beside, 70), "what the first has left is not for the second to take");
        drop(beside);
        let mut next = begin();
        assert!(look(&mut next, 80) && look(&mut next, 90), "what was there before is nobody's");
    }
}
