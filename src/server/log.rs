//! What is logged: one event per evaluation and one per tool call in it.
//!
//! Events go through `tracing`; the binary writes them to stderr as lines of JSON. Handles of sessions
//! are secrets and appear only as the beginning of a hash, arguments and results of tools not at all.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use crate::lang::ToolReply;
use crate::lang::reply::Reply;

use super::config::cut;

/// How much of a program is logged, in characters.
const PROGRAM_KEPT: usize = 2000;

/// Logs an evaluation that has ended.
pub(super) fn evaluation(evaluation: u64, handle: Option<&str>, program: &str, reply: &Reply) {
    let code = reply.failure.as_ref().map_or("ok", |failure| failure.error.as_str());
    tracing::info!(
        target: "lispbox::evaluation",
        evaluation,
        session = handle.map(hashed),
        program = %cut(program, PROGRAM_KEPT),
        outcome = code,
        total_ms = reply.spent.total_ms,
        compute_ms = reply.spent.compute_ms,
        fuel = reply.spent.fuel,
        memory_bytes = reply.spent.memory_bytes,
        depth = reply.spent.depth,
        calls = reply.calls.len(),
        "evaluated"
    );
}

/// Logs a tool call that has ended.
pub(super) fn tool_call(evaluation: u64, server: &str, tool: &str, took: Duration, reply: &ToolReply) {
    let outcome = match reply {
        ToolReply::Json(_) | ToolReply::Text(_) => "ok",
        ToolReply::Error(error) => error.kind.code(),
        ToolReply::Denied(_) => "denied",
        ToolReply::Ask(_) => "ask",
        ToolReply::Stopped => "stopped",
    };
    let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    tracing::info!(target: "lispbox::call", evaluation, server, tool, ms, outcome, "called");
}

/// The beginning of the hash of a handle: enough to follow a session through a log.
pub(super) fn hashed(handle: &str) -> String {
    let mut hasher = DefaultHasher::new();
    handle.hash(&mut hasher);
    format!("{:08x}", hasher.finish() >> 32)
}
