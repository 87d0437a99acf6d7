//! What is logged: one event per evaluation and one per tool call in it.
//!
//! Events go through `tracing`; the binary writes them to stderr as lines of JSON. Handles of sessions
//! are secrets and appear only as the beginning of a hash, arguments and results of tools not at all.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use crate::lang::ToolReply;
use crate::lang::reply::Reply;

use super::config::cut;

/// How much of a program is logged, in characters.
const PROGRAM_KEPT: usize = 2000;

/// What is logged of a program.
pub(super) fn kept(program: &str) -> String {
    cut(program, PROGRAM_KEPT)
}

/// Logs an evaluation of a program, as [`kept`], that has ended.
pub(super) fn evaluation(evaluation: u64, handle: Option<&str>, program: &str, reply: &Reply) {
    let code = reply.failure.as_ref().map_or("ok", |failure| failure.error.as_str());
    tracing::info!(
        target: "lispbox::evaluation",
        evaluation,
        session = handle.map(hashed),
        program,
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

/// How many log lines may wait for a reader of stderr.
const LINES_WAITING: usize = 1024;

/// Standard error for log lines, without ever waiting for whoever reads it: a client that leaves our
/// pipe unread must not stop us. Lines that find no room are dropped.
#[derive(Clone)]
pub struct LogWriter {
    lines: SyncSender<Line>,
}

enum Line {
    Text(Vec<u8>),
    /// Everything before this has been written.
    Written(SyncSender<()>),
}

impl LogWriter {
    /// A writer with a thread of its own behind it.
    ///
    /// # Errors
    /// When the system has no threads left.
    pub fn start() -> io::Result<LogWriter> {
        let (lines, waiting) = sync_channel(LINES_WAITING);
        std::thread::Builder::new().name("lispbox-log".into()).spawn(move || write_lines(&waiting))?;
        Ok(LogWriter { lines })
    }

    /// Waits until all lines so far have been written, but no longer than `bound`.
    pub fn flush_within(&self, bound: Duration) {
        let (written, done) = sync_channel(1);
        if self.lines.try_send(Line::Written(written)).is_ok() {
            // No answer in time: the pipe is not read, and the lines are lost.
            let _ = done.recv_timeout(bound);
        }
    }
}

fn write_lines(waiting: &Receiver<Line>) {
    for line in waiting {
        match line {
            // Nothing can be done about a stderr that is closed.
            Line::Text(text) => drop(io::stderr().write_all(&text)),
            Line::Written(written) => drop(written.send(())),
        }
    }
}

impl Write for LogWriter {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        // A full queue means that nobody reads.
        let _ = self.lines.try_send(Line::Text(text.to_vec()));
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
