//! Logs, spans and metrics.

pub(in crate::server) mod log;
pub(in crate::server) mod metrics;
