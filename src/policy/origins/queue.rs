//! The texts that are still to be added to the indices. Large ones are added by a thread of their own, so that the
//! program that receives them goes on; who asks for an origin waits for them.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Texts of more bytes are added by a thread of their own.
const LARGE: usize = 64 << 10;
/// Most bytes that wait; who adds more waits too.
const MOST_WAITING: usize = 64 << 20;

/// Work that is done in order, by one thread at a time.
pub(super) struct Queue<J> {
    state: Mutex<State<J>>,
    changed: Condvar,
}

struct State<J> {
    jobs: VecDeque<(J, usize)>,
    bytes: usize,
    is_worked: bool,
}

impl<J> Default for Queue<J> {
    fn default() -> Self {
        let state = State { jobs: VecDeque::new(), bytes: 0, is_worked: false };
        Queue { state: Mutex::new(state), changed: Condvar::new() }
    }
}

/// Ends the work of a thread, also if it panics: who waits must not wait for ever.
struct Working<'q, J>(&'q Queue<J>);

impl<J> Drop for Working<'_, J> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        (state.is_worked, state.bytes) = (false, 0);
        state.jobs.clear();
        self.0.changed.notify_all();
    }
}

impl<J> Queue<J> {
    fn lock(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a job of that size. Returns whether the caller has to [work](Queue::work), or to let a thread do it if the
    /// second result is true.
    pub(super) fn add(&self, job: J, bytes: usize) -> (bool, bool) {
        let mut state = self.lock();
        while state.is_worked && state.bytes > MOST_WAITING {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.jobs.push_back((job, bytes));
        state.bytes += bytes;
        (!std::mem::replace(&mut state.is_worked, true), bytes > LARGE)
    }

    /// Does the jobs until there are none.
    pub(super) fn work(&self, mut each: impl FnMut(J)) {
        let working = Working(self);
        loop {
            let mut state = self.lock();
            let Some((job, bytes)) = state.jobs.pop_front() else {
                // Within the lock, so that no job is added that is not done.
                state.is_worked = false;
                self.changed.notify_all();
                drop(state);
                std::mem::forget(working);
                return;
            };
            drop(state);
            each(job);
            self.lock().bytes -= bytes;
            self.changed.notify_all();
        }
    }

    /// Waits until all jobs are done.
    pub(super) fn wait(&self) {
        let mut state = self.lock();
        while state.is_worked {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Lets a thread do the work, or does it if there is none.
pub(super) fn in_background<T: Send + Sync + 'static>(on: &Arc<T>, work: impl FnOnce(&T) + Send + Copy + 'static) {
    let taken = Arc::clone(on);
    let spawned = std::thread::Builder::new().name("origins".to_owned()).spawn(move || work(&taken));
    if spawned.is_err() {
        work(on);
    }
}
