//! Threads with stacks that are sized for deep evaluation.
//!
//! An engine is handed a pool of them; evaluations and the branches of `pmap` run there and nowhere
//! else. Idle threads wait for more work, so that an evaluation does not pay for a new stack.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

type Job = Box<dyn FnOnce() + Send>;

/// A pool of evaluation threads.
pub struct Stacks {
    size: usize,
    idle: Arc<Mutex<Vec<Idle>>>,
    started: AtomicU64,
}

/// A thread that waits for work.
#[derive(Clone)]
struct Idle {
    number: u64,
    jobs: Sender<Job>,
}

/// How many threads are kept when there is nothing to do.
const KEPT: usize = 32;

/// How long a thread waits for work before it ends: what a deep evaluation has used of a stack stays taken
/// until then.
const PATIENCE: Duration = Duration::from_secs(5);

impl Default for Stacks {
    /// Stacks that hold 5,000 nested calls in any build. Only the part that is used takes memory.
    fn default() -> Self {
        Stacks::with_size(256 << 20)
    }
}

impl Stacks {
    /// A pool of threads with that many bytes of stack each.
    pub fn with_size(size: usize) -> Stacks {
        Stacks { size, idle: Arc::default(), started: AtomicU64::new(0) }
    }

    /// How many bytes of stack each thread has.
    pub fn size(&self) -> usize {
        self.size
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

/// The lowest address that a thread which now stands here may let its stack reach, with a reserve for
/// what runs below the last check.
pub(super) fn floor(size: usize) -> usize {
    const RESERVE: usize = 256 << 10;
    here().saturating_sub(size.saturating_sub(RESERVE))
}

/// About where the stack of the calling thread ends now.
#[inline(always)]
pub(super) fn here() -> usize {
    let marker = 0_u8;
    std::ptr::from_ref(&marker).addr()
}
