//! The second line of defence: evaluation in worker processes that the kernel confines.
//!
//! The language enforces its limits itself; workers contain the damage if it fails to. Each live session has a
//! dedicated worker process, which is confined by the kernel before it reads a byte (`confine`). The server holds the
//! session's text as of its last evaluation. A worker that aborts, is killed, takes too much memory or hangs costs
//! only the evaluation that ran in it, and earlier changes that could not be serialized: the next evaluation goes to a
//! fresh worker, which restores the session from its text.
//!
//! - `wire`: messages and frames. `inside`: the worker side. `process`: one worker as seen by the server.
//! - `pool`: spare workers and limits on their number. `session`: [`WorkerSession`], which is used like a
//!   [`Session`](crate::lang::Session) and answers the worker's questions to its host.
//!
//! No async runtime is needed: an evaluation blocks the calling thread. A worker that has run a program is never given
//! to another session.
//!
//! ```no_run
//! use lispbox::lang::Environment;
//! use lispbox::worker::{Program, WorkerOptions, Workers};
//! # fn host() -> std::sync::Arc<dyn lispbox::lang::Host> { unimplemented!() }
//!
//! // The same program, started with this argument, calls `lispbox::worker::run`.
//! let workers = Workers::start(WorkerOptions::new(Program::this(&["worker"]).unwrap())).unwrap();
//! let mut session = workers.session();
//! let reply = session.eval(lispbox::lang::Request::new("(+ 1 2)"), host());
//! assert_eq!(reply.value.as_deref(), Some("3"));
//! ```

mod confine;
mod failure;
mod inside;
mod pool;
mod process;
mod processor;
mod session;
mod wire;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use inside::run;
pub use pool::{WorkerOptions, Workers};
pub use process::Program;
pub use processor::processor_time;
pub use session::WorkerSession;

/// The version on which both ends of a pipe must agree.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Locks a mutex and ignores poisoning: no data under our locks is left inconsistent by a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
