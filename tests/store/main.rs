//! The session stores, with real databases, and the commands on stored sessions.
#![cfg(feature = "sqlite")]

#[cfg(unix)]
#[path = "../databases/mod.rs"]
mod databases;
#[path = "../peers/mod.rs"]
mod peers;
#[cfg(unix)]
#[path = "../relay/mod.rs"]
mod relay;

mod contract;
#[cfg(feature = "cli")]
mod sessions_command;
#[cfg(feature = "cli")]
mod troubles;
