//! The pool of spare and idle workers.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, Weak};

use super::lock;
use super::process::{Program, Worker};
use super::session::WorkerSession;

/// Options of the pool.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// The program to start as a worker.
    pub program: Program,
    /// The number of spare workers for new sessions.
    pub spare: usize,
    /// Maximum number of idle sessions that keep their worker. Beyond it the worker of the least recently used session
    /// is ended; the session gets a fresh one when it is used again.
    pub idle: usize,
}

impl WorkerOptions {
    /// Returns the defaults: two spare workers, thirty-two idle ones.
    pub fn new(program: Program) -> WorkerOptions {
        WorkerOptions { program, spare: 2, idle: 32 }
    }
}

/// The slot of a session's worker; empty while the worker is in use or if there is none.
pub(super) type WorkerSlot = Mutex<Option<Worker>>;

/// The slot of an idle session.
struct Idle {
    slot: Weak<WorkerSlot>,
    /// True if the worker has changes that would be lost with it.
    is_unwritten: bool,
}

/// A pool of worker processes. They end when the pool and its sessions are dropped, and when this process ends for any
/// reason.
pub struct Workers {
    options: WorkerOptions,
    spare: Arc<Mutex<Vec<Worker>>>,
    /// Wakes the thread that starts workers.
    missing: Sender<()>,
    /// Seats of idle sessions, least recently used first.
    idle: Mutex<VecDeque<Idle>>,
    walls: Vec<String>,
}

impl Workers {
    /// Starts the pool and waits for its first worker.
    ///
    /// # Errors
    /// Returns an error if the worker cannot be started, or if the system has no means to confine it
    /// ([`Unsupported`](io::ErrorKind::Unsupported)).
    pub fn start(options: WorkerOptions) -> io::Result<Arc<Workers>> {
        let first = Worker::start(&options.program)?;
        let walls = first.walls.clone();
        let spare = Arc::new(Mutex::new(vec![first]));
        let (missing, asked) = channel();
        let (stock, program) = (Arc::clone(&spare), options.program.clone());
        let wanted = options.spare;
        std::thread::Builder::new().name("workers".to_string()).spawn(move || {
            while asked.recv().is_ok() {
                while lock(&stock).len() < wanted {
                    // A worker that cannot be started now is started on demand, which also reports the error.
                    let Ok(worker) = Worker::start(&program) else { break };
                    lock(&stock).push(worker);
                }
            }
        })?;
        // The receiver is owned by the running thread.
        let _ = missing.send(());
        Ok(Arc::new(Workers { options, spare, missing, idle: Mutex::default(), walls }))
    }

    /// The mechanisms that confine the workers: `landlock`, `seccomp`.
    pub fn walls(&self) -> &[String] {
        &self.walls
    }

    /// Creates a session with nothing defined.
    pub fn session(self: &Arc<Self>) -> WorkerSession {
        WorkerSession::new(Arc::clone(self))
    }

    /// Returns a worker that no session has used.
    pub(super) fn take(&self) -> io::Result<Worker> {
        let spare = std::iter::from_fn(|| lock(&self.spare).pop()).find_map(Worker::if_alive);
        let _ = self.missing.send(());
        match spare {
            Some(worker) => Ok(worker),
            None => Worker::start(&self.options.program),
        }
    }

    /// Records that a session's worker is idle. If too many are, ends the least recently used, preferring those
    /// without unsaved changes.
    pub(super) fn rests(&self, slot: &Arc<WorkerSlot>, is_unwritten: bool) {
        let mut idle = lock(&self.idle);
        idle.retain(|other| other.slot.strong_count() > 0 && !std::ptr::eq(other.slot.as_ptr(), Arc::as_ptr(slot)));
        idle.push_back(Idle { slot: Arc::downgrade(slot), is_unwritten });
        let mut leaving = Vec::new();
        while idle.len() > self.options.idle {
            let place = idle.iter().position(|idle| !idle.is_unwritten).unwrap_or_default();
            let slot = idle.remove(place).and_then(|idle| idle.slot.upgrade());
            leaving.extend(slot.and_then(|slot| lock(&slot).take()));
        }
        drop(idle);
        drop(leaving);
    }
}
