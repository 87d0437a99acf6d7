//! Workers that stand ready, and how many there are in all.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, Weak};

use super::lock;
use super::process::{Program, Worker};
use super::session::WorkerSession;

/// How many workers there are, and how they are started.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// What is started.
    pub program: Program,
    /// How many stand ready for sessions to come.
    pub spare: usize,
    /// The most sessions that keep their worker while nothing runs in them; beyond it the one longest
    /// unused gives its up, and takes a fresh one when it is used again.
    pub idle: usize,
}

impl WorkerOptions {
    /// The defaults: two spare workers, thirty-two idle ones.
    pub fn new(program: Program) -> WorkerOptions {
        WorkerOptions { program, spare: 2, idle: 32 }
    }
}

/// The place of a session's worker, empty while it is in use or has none.
pub(super) type Seat = Mutex<Option<Worker>>;

/// The seat of a session that nothing runs in.
struct Idle {
    seat: Weak<Seat>,
    /// True where the worker has what would be lost with it.
    is_unwritten: bool,
}

/// A pool of worker processes. They end when it and its sessions are dropped, and when this process
/// ends, however that happens.
pub struct Workers {
    options: WorkerOptions,
    spare: Arc<Mutex<Vec<Worker>>>,
    /// Tells the thread that starts workers that one is missing.
    missing: Sender<()>,
    /// Seats of sessions that nothing runs in, the longest unused first.
    idle: Mutex<VecDeque<Idle>>,
    walls: Vec<String>,
}

impl Workers {
    /// Starts the pool, and waits for its first worker.
    ///
    /// # Errors
    /// When that cannot be started, or the system offers nothing that confines it
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
                    // One that cannot be started now is started, or complained of, when it is needed.
                    let Ok(worker) = Worker::start(&program) else { break };
                    lock(&stock).push(worker);
                }
            }
        })?;
        // The thread is there to hear it.
        let _ = missing.send(());
        Ok(Arc::new(Workers { options, spare, missing, idle: Mutex::default(), walls }))
    }

    /// By what the workers are confined: `landlock`, `seccomp`.
    pub fn walls(&self) -> &[String] {
        &self.walls
    }

    /// A session with nothing defined.
    pub fn session(self: &Arc<Self>) -> WorkerSession {
        WorkerSession::new(Arc::clone(self))
    }

    /// A worker that nobody has used.
    pub(super) fn take(&self) -> io::Result<Worker> {
        let spare = std::iter::from_fn(|| lock(&self.spare).pop()).find_map(Worker::if_alive);
        let _ = self.missing.send(());
        match spare {
            Some(worker) => Ok(worker),
            None => Worker::start(&self.options.program),
        }
    }

    /// Takes note that a session's worker has nothing to do, and ends those longest unused if there are too many: first
    /// those with which nothing is lost.
    pub(super) fn rests(&self, seat: &Arc<Seat>, is_unwritten: bool) {
        let mut idle = lock(&self.idle);
        idle.retain(|other| other.seat.strong_count() > 0 && !std::ptr::eq(other.seat.as_ptr(), Arc::as_ptr(seat)));
        idle.push_back(Idle { seat: Arc::downgrade(seat), is_unwritten });
        let mut leaving = Vec::new();
        while idle.len() > self.options.idle {
            let place = idle.iter().position(|idle| !idle.is_unwritten).unwrap_or_default();
            let seat = idle.remove(place).and_then(|idle| idle.seat.upgrade());
            leaving.extend(seat.and_then(|seat| lock(&seat).take()));
        }
        drop(idle);
        drop(leaving);
    }
}
