//! Stacks that are sized for deep evaluation, and threads that have such stacks.
//!
//! An engine is handed a pool of them. An evaluation runs on the thread that asks for it, but on a stack of
//! the pool: handing it to another thread and back would cost more than most programs. The branches of `pmap`
//! run on threads of their own, which have such stacks anyway and wait for more work when they are done.

use corosensei::stack::DefaultStack;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

type Job = Box<dyn FnOnce() + Send>;

/// A pool of stacks and of threads.
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

/// How many stacks, and how many threads, are kept when there is nothing to do.
const KEPT: usize = 32;

/// How long a thread waits for work before it ends: what a deep evaluation has used of a stack stays taken
/// until then.
const PATIENCE: Duration = Duration::from_secs(5);

impl Default for Stacks {
    /// Stacks that hold 5,000 nested calls in any build. Only the part that is used takes memory.
    fn default() -> Self {
        Stacks::with_size((256 << 20) + RESERVE)
    }
}

impl Stacks {
    /// A pool of stacks of that many bytes each.
    pub fn with_size(size: usize) -> Stacks {
        Stacks { size, free: Mutex::default(), idle: Arc::default(), started: AtomicU64::new(0) }
    }

    /// How many bytes each stack has.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Runs `work` here and now, on one of the stacks; what it says beside its result is whether the stack may be
    /// kept: what deep work has used of one stays taken until it is given back. `None` if the system has no
    /// stack to give.
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

    /// Runs a job on one of the threads. False if the system has no thread to give.
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
            // The thread holds its receiver until it has run this job.
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
                // Whoever has taken this thread from the list is about to give it a job.
                if let Some(place) = idle.iter().position(|other| other.number == own.number) {
                    idle.remove(place);
                    return;
                }
            }
        }
    }
}

/// What runs between two looks at the stack: code as deep as it may nest is walked through, expanded or resolved, at
/// up to 16 KiB for each level in an unoptimised build.
const RESERVE: usize = 16 << 20;

/// The lowest address that a thread which now stands here may let its stack reach, with a reserve for
/// what runs below the last check.
pub(super) fn floor(size: usize) -> usize {
    here().saturating_sub(size - RESERVE.min(size / 2))
}

/// About where the stack of the calling thread ends now.
#[inline(always)]
pub(super) fn here() -> usize {
    let marker = 0_u8;
    std::ptr::from_ref(&marker).addr()
}
