//! The layers of a call that belong to no feature: those that surround it, find its server, and send it.

pub(in crate::server::calls) mod arguments;
pub(in crate::server::calls) mod audit;
pub(in crate::server::calls) mod connection;
pub(in crate::server::calls) mod lease;
pub(in crate::server::calls) mod progress;
pub(in crate::server::calls) mod repeats;
pub(in crate::server::calls) mod retries;
pub(in crate::server::calls) mod run_log;
pub(in crate::server::calls) mod server;
pub(in crate::server::calls) mod slots;
pub(in crate::server::calls) mod telemetry;
pub(in crate::server::calls) mod transport;
