//! Stacks sized for deep evaluation, and threads with such stacks.
//!
//! An engine owns a pool of them. An evaluation runs on the calling thread, but on a stack from the pool: a hand-over
//! to another thread and back would cost more than most programs. The branches of `pmap` run on separate threads,
//! which have such stacks anyway and wait for more work when they are done.

use corosensei::stack::DefaultStack;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

type Job = Box<dyn FnOnce() + Send>;

/// A pool of stacks and threads.
pub struct Stacks {
    size: usize,
    free: Mutex<Vec<DefaultStack>>,
    idle: Arc<Mutex<Vec<Idle>>>,
    started: AtomicU64,
}

/// A thread that waits for work.
#[derive(Clone)]
struct Idle {
    number: u64,
    jobs: Sender<Job>,
}

/// Maximum number of idle stacks, and of idle threads, that are kept.
const KEPT: usize = 32;

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
        Stacks { size, free: Mutex::default(), idle: Arc::default(), started: AtomicU64::new(0) }
    }

    /// The size of each stack in bytes.
    pub fn size(&self) -> usize {
        self.size
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

    /// Runs a job on a thread of the pool. Returns false if the system cannot provide a thread.
    pub fn run(&self, job: impl FnOnce() + Send + 'static) -> bool {
        let mut job: Job = Box::new(job);
        loop {
            let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some(worker) = idle else { break };
            match worker.jobs.send(job) {
                Ok(()) => return true,
                Err(returned) => job = returned.0,
            }
        }
        let (sender, receiver) = channel();
        let idle = self.idle.clone();
        let own = Idle { number: self.started.fetch_add(1, Ordering::Relaxed), jobs: sender.clone() };
        let thread = std::thread::Builder::new()
            .name("evaluation".to_string())
            .stack_size(self.size)
            .spawn(move || work(&receiver, &own, &idle));
        match thread {
            // The thread keeps its receiver until it has run this job.
            Ok(_) => sender.send(job).is_ok(),
            Err(_) => false,
        }
    }
}

fn work(jobs: &Receiver<Job>, own: &Idle, idle: &Mutex<Vec<Idle>>) {
    let idle = || idle.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        match jobs.recv_timeout(PATIENCE) {
            Ok(job) => {
                job();
                let mut idle = idle();
                if idle.len() >= KEPT {
                    return;
                }
                idle.push(own.clone());
            }
            Err(_) => {
                let mut idle = idle();
                // If the thread is no longer listed, a caller has taken it and is about to send a job.
                if let Some(place) = idle.iter().position(|other| other.number == own.number) {
                    idle.remove(place);
                    return;
                }
            }
        }
    }
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
