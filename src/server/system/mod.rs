//! Access to the operating system and the async runtime: files of the user, child processes, threads and
//! random numbers.

pub(in crate::server) mod blocking;
pub(in crate::server) mod folders;
pub(in crate::server) mod offload;
pub(in crate::server) mod platform;
pub(in crate::server) mod random;

use std::io;

use tokio::runtime::Runtime;

/// Creates the runtime on which connections live.
///
/// # Errors
/// Fails if the system has no threads left.
pub(in crate::server) fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).thread_name("lispbox-io").enable_all().build()
}
