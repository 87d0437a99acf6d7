//! The second wall: evaluation in worker processes that have no network, no files and no privileges.
//!
//! The language keeps its limits by itself; this is for the day on which it does not. Each live session
//! has a worker process of its own, which is confined by the kernel before it reads a byte
//! (`confine`). The server holds the session's text as of its last evaluation. A worker that aborts,
//! is killed, takes too much memory or does not come back costs the one evaluation that ran in it:
//! the next one goes to a fresh worker, which takes the session up from its text.
//!
//! - `wire`: messages and frames. `inside`: the worker's own side. `process`: one worker from outside.
//! - `pool`: workers that stand ready, and how many there are. `session`: [`WorkerSession`], which is used
//!   like a [`Session`](crate::lang::Session) and carries out what a worker asks of its host.
//!
//! Nothing here needs a runtime: whoever evaluates waits on their own thread. A worker that was in the
//! hands of a program is never given to another session.
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
mod inside;
mod pool;
mod process;
mod session;
mod wire;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use inside::run;
pub use pool::{WorkerOptions, Workers};
pub use process::Program;
pub use session::WorkerSession;

/// What both ends of a pipe must agree on.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What is behind a lock, also if whoever held it panicked: nothing is left half done behind ours.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
