//! What the process really takes. The balance counts what is alive; memory that was freed in pieces which
//! nothing fits into (every other text of many sizes) is counted by nobody, but the process has it.
//!
//! Only the embedding program can know, through [`Residence`]. An evaluation that lasts looks now and then by
//! how much the process has grown since it began. More than what was promised for it is its doing, unless other
//! evaluations beside it may take what is missing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{bytes, limit};
use crate::lang::error::Halt;

/// How long an evaluation computes from one look to the next. What it takes meanwhile is within the margin of
/// the promise.
const INTERVAL: Duration = Duration::from_millis(10);

/// The process's memory, as the program that embeds lispbox knows it; see
/// [`EngineBuilder::residence`](crate::lang::EngineBuilder::residence).
pub trait Residence: Send + Sync {
    /// Bytes that the process has in memory now; `None` where the system does not tell. Asked every ten
    /// milliseconds of an evaluation.
    fn resident(&self) -> Option<u64>;

    /// Bytes that the embedding program itself may come to take while programs run, such as messages that it
    /// decodes beside them: what the process grows by so much is no evaluation's doing.
    fn beside(&self) -> u64 {
        0
    }

    /// Returns to the system what the allocator has of freed memory. Called on the thread of the evaluation that
    /// is about to be ended for what the process takes.
    fn give_back(&self) {}
}

/// How often over freed memory can lie about: an allocator keeps some such number of sizes apart, and a hole of
/// one size is of no use to another. Who has never held more than a small part of what is missing has not
/// lost it.
const SIZES: u64 = 64;

/// What is promised of an evaluation: the process takes at most half as much again as its limit, and 16 MiB.
fn promised(memory: u64) -> u64 {
    memory.saturating_add(memory / 2).saturating_add(16 << 20)
}

/// The evaluations of an engine that have lasted long enough to be looked at.
pub(crate) struct Watch {
    residence: Box<dyn Residence>,
    books: Mutex<Books>,
}

#[derive(Default)]
struct Books {
    /// How many evaluations there are.
    running: u32,
    /// What the process had before the first of them, and what those that have ended have left in it.
    floor: u64,
    /// What is promised of all of them.
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

/// An evaluation's part of a [`Watch`].
pub(super) struct Watched {
    watch: Arc<Watch>,
    /// What its account held when it began.
    held: i64,
    /// What the process had when it began, once that is known.
    began: Option<u64>,
    /// What is promised of it, as far as it has been told.
    promised: u64,
    /// When to look next.
    next: Duration,
}

impl Watched {
    pub(super) fn new(watch: Arc<Watch>, held: i64, now: Duration) -> Watched {
        Watched { watch, held, began: None, promised: 0, next: now + INTERVAL }
    }

    /// Looks if it is time to.
    pub(super) fn look(&mut self, now: Duration, live: i64, peak: u64, memory: u64) -> Result<(), Halt> {
        if now < self.next {
            return Ok(());
        }
        self.next = now + INTERVAL;
        let Some(resident) = self.watch.residence.resident() else { return Ok(()) };
        let Some(began) = self.began else {
            // What it has taken so far is what it counts: short evaluations never ask the system.
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
        // Whoever can let go of something may ask again at once.
        self.next = now;
        let spent = format!(
            "{} of the process for {} of values, since what was freed lies in pieces that nothing else fits into",
            bytes(resident - began),
            bytes(u64::try_from(live).unwrap_or(0)),
        );
        Err(limit("memory", bytes(self.promised), spent))
    }

    /// True if the process has grown by more than is promised of this evaluation, which held so much at most, and
    /// by more than is promised of all that run.
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
        // What the others cannot have taken is its session's.
        books.floor = books.floor.max(resident.saturating_sub(books.promised));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    const MIB: u64 = 1 << 20;

    /// A process of that many MiB.
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
