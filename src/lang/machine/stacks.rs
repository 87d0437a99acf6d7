//! Stacks sized for deep evaluation, and threads with such stacks.
//!
//! An engine owns a pool of them. An evaluation runs on the calling thread, but on a stack from the pool: a hand-over
//! to another thread and back would cost more than most programs. The branches of `pmap` run on separate threads,
//! which have such stacks anyway and wait for more work when they are done.
//!
//! # Invariant
//! The pool never has more threads than were busy at the same time at some moment. A worker process depends on it: its
//! server bounds its memory by the stacks that its programs may have needed ([`Stacks::bytes_for`]). Therefore a thread
//! is listed as idle before it announces that its job is done, and a thread that ends is joined before another starts.

use corosensei::stack::DefaultStack;
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The last step of a job, after which another job may be sent to its thread.
type Last = Box<dyn FnOnce() + Send>;

type Job = Box<dyn FnOnce() -> Last + Send>;

/// A pool of stacks and threads.
pub struct Stacks {
    size: usize,
    patience: Duration,
    free: Mutex<Vec<DefaultStack>>,
    threads: Arc<Mutex<Threads>>,
}

/// The threads of a pool.
#[derive(Default)]
struct Threads {
    /// The number of threads that were started so far.
    started: u64,
    /// The threads that wait for work, by number, the last one to be used next.
    idle: Vec<(u64, Sender<Job>)>,
    /// The handles of all threads that have not begun to end, by number.
    handles: HashMap<u64, JoinHandle<()>>,
    /// The threads that have begun to end. Their stacks are in use until they are joined.
    ending: Vec<JoinHandle<()>>,
}

impl Threads {
    /// Moves a thread from those in use to those that end.
    fn end(&mut self, number: u64) {
        self.ending.extend(self.handles.remove(&number));
    }
}

/// Most branches of an evaluation that wait for a person's decision at a time, unless more may run in parallel: each
/// keeps a thread.
pub(super) const MOST_PARKED: usize = 64;

/// Maximum number of idle stacks, and of idle threads, that are kept.
const KEPT: usize = 32;

/// Stacks that an evaluation needs besides those of its branches: its own, one on which the released values of the
/// evaluation before it are dropped, and as many in reserve.
const BESIDE_BRANCHES: u64 = 4;

/// Idle timeout of a thread. The stack memory that a deep evaluation has touched stays committed until the thread
/// ends.
const PATIENCE: Duration = Duration::from_secs(5);

impl Default for Stacks {
    /// Creates a pool of stacks that hold 5,000 nested calls in any build. Only the touched part of a stack takes
    /// memory.
    fn default() -> Self {
        Stacks::with_size((256 << 20) + RESERVE)
    }
}

impl Stacks {
    /// Creates a pool of stacks of `size` bytes each.
    pub fn with_size(size: usize) -> Stacks {
        Stacks { size, patience: PATIENCE, free: Mutex::default(), threads: Arc::default() }
    }

    /// The size of each stack in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The largest total size, in bytes, of the stacks of a pool that has run programs one after the other, each of
    /// them with at most that limit `parallel`. Hardly any of it is committed memory.
    pub fn bytes_for(&self, parallel: u32) -> u64 {
        let branches = u64::from(parallel).max(MOST_PARKED as u64);
        branches.saturating_add(BESIDE_BRANCHES).saturating_mul(self.size as u64)
    }

    /// Runs `work` on the calling thread, on a stack of the pool. The second part of its result tells whether the
    /// stack may be reused: memory that deep work has touched stays committed until the stack is freed. Returns
    /// `None` if the system cannot provide a stack.
    pub fn switch<R>(&self, work: impl FnOnce() -> (R, bool)) -> Option<R> {
        let free = || self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = free().pop();
        let mut stack = match kept {
            Some(stack) => stack,
            None => DefaultStack::new(self.size).ok()?,
        };
        let (result, is_shallow) = corosensei::on_stack(&mut stack, work);
        if is_shallow {
            let mut free = free();
            if free.len() < KEPT {
                free.push(stack);
            }
        }
        Some(result)
    }

    /// Runs a job on a thread of the pool. Returns false if the system cannot provide a thread. The job returns its
    /// last step, which does not block: it is run once the thread can be used for another job, so that a caller who
    /// waits for that step and then runs another job needs no second thread.
    pub fn run<L: FnOnce() + Send + 'static>(&self, job: impl FnOnce() -> L + Send + 'static) -> bool {
        let mut job: Job = Box::new(move || Box::new(job()));
        loop {
            let idle = lock(&self.threads).idle.pop();
            let Some((_, jobs)) = idle else { break };
            match jobs.send(job) {
                Ok(()) => return true,
                Err(returned) => job = returned.0,
            }
        }
        let ending = std::mem::take(&mut lock(&self.threads).ending);
        for thread in ending {
            // A thread that has panicked has ended too.
            let _ = thread.join();
        }
        let (sender, receiver) = channel();
        // The lock is held until the handle is in its place, so that the thread finds it.
        let mut threads = lock(&self.threads);
        threads.started += 1;
        let own = Own { number: threads.started, jobs: sender.clone(), patience: self.patience };
        let pool = self.threads.clone();
        let number = own.number;
        let thread = std::thread::Builder::new()
            .name("evaluation".to_string())
            .stack_size(self.size)
            .spawn(move || own.work(&receiver, &pool));
        let Ok(thread) = thread else { return false };
        threads.handles.insert(number, thread);
        // The thread keeps its receiver until it has run this job.
        sender.send(job).is_ok()
    }
}

/// A thread's own part of the pool.
struct Own {
    number: u64,
    jobs: Sender<Job>,
    patience: Duration,
}

impl Own {
    fn work(self, jobs: &Receiver<Job>, threads: &Mutex<Threads>) {
        loop {
            match jobs.recv_timeout(self.patience) {
                Ok(job) => {
                    let last = job();
                    let is_kept = self.rest(&mut lock(threads));
                    last();
                    if !is_kept {
                        return;
                    }
                }
                Err(_) => {
                    let mut threads = lock(threads);
                    // If the thread is no longer listed, a caller has taken it and is about to send a job.
                    if let Some(place) = threads.idle.iter().position(|(other, _)| *other == self.number) {
                        threads.idle.remove(place);
                        threads.end(self.number);
                        return;
                    }
                }
            }
        }
    }

    /// Lists the thread as idle; if enough threads are idle, ends it and returns false.
    fn rest(&self, threads: &mut Threads) -> bool {
        let is_kept = threads.idle.len() < KEPT;
        if is_kept {
            threads.idle.push((self.number, self.jobs.clone()));
        } else {
            threads.end(self.number);
        }
        is_kept
    }
}

fn lock(threads: &Mutex<Threads>) -> MutexGuard<'_, Threads> {
    threads.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The stack reserve, in bytes, below the last check: code of the maximum nesting may be walked, expanded or resolved
/// between two checks, at up to 16 KiB per level in an unoptimised build.
const RESERVE: usize = 16 << 20;

/// The lowest address that the stack may reach on a thread with `size` bytes available from here, less a reserve for
/// work after the last check.
pub(crate) fn floor(size: usize) -> usize {
    here().saturating_sub(size - RESERVE.min(size / 2))
}

/// The approximate current stack pointer of the calling thread.
#[inline(always)]
pub(crate) fn here() -> usize {
    let marker = 0_u8;
    std::ptr::from_ref(&marker).addr()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// The number of threads that exist while it is held.
    struct Alive(Arc<AtomicUsize>);

    impl Drop for Alive {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }

    fn with_patience(patience: Duration) -> Stacks {
        Stacks { patience, ..Stacks::with_size(1 << 20) }
    }

    /// The number of threads of the pool: those that can be used, and those whose stack is not free yet.
    fn count(stacks: &Stacks) -> usize {
        let threads = lock(&stacks.threads);
        threads.handles.len() + threads.ending.len()
    }

    /// Runs that many jobs at the same time, and waits until each has announced its end.
    fn run_together(stacks: &Stacks, width: usize) {
        let (done, announced) = channel();
        let gates: Vec<Sender<()>> = (0..width)
            .map(|_| {
                let (gate, opened) = channel::<()>();
                let done = done.clone();
                let job = move || {
                    let _ = opened.recv();
                    move || done.send(()).expect("the test waits for it")
                };
                assert!(stacks.run(job));
                gate
            })
            .collect();
        gates.into_iter().for_each(|gate| gate.send(()).expect("the job waits for it"));
        (0..width).for_each(|_| announced.recv().expect("each job ends"));
    }

    proptest! {
        #[test]
        fn there_are_never_more_threads_than_were_busy_together(
            widths in proptest::collection::vec((1..80_usize, 0..3_u64), 1..20),
        ) {
            // Threads end between some of the steps, and during others.
            let stacks = with_patience(Duration::from_millis(1));
            let mut most = 0;
            for (width, pause) in widths {
                run_together(&stacks, width);
                most = most.max(width);
                prop_assert!(count(&stacks) <= most, "{} threads, at most {most} were busy", count(&stacks));
                let (_silent, receiver) = channel::<()>();
                let _ = receiver.recv_timeout(Duration::from_millis(pause));
            }
        }
    }

    #[test]
    fn a_job_that_was_announced_as_done_leaves_its_thread_to_the_next() {
        let stacks = with_patience(PATIENCE);
        (0..1_000).for_each(|_| run_together(&stacks, 1));
        assert_eq!(count(&stacks), 1);
    }

    #[test]
    fn a_pool_that_is_dropped_ends_its_threads() {
        let alive = Arc::new(AtomicUsize::new(1));
        let stacks = with_patience(Duration::from_millis(1));
        let held = Alive(alive.clone());
        assert!(stacks.run(move || move || drop(held)));
        let threads = stacks.threads.clone();
        drop(stacks);
        while !lock(&threads).handles.is_empty() {
            std::thread::yield_now();
        }
        assert_eq!(alive.load(Ordering::SeqCst), 0);
    }
}
