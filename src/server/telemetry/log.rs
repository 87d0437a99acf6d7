//! Logging: one event per evaluation and one per tool call in it.
//!
//! Events go through `tracing`; the binary writes them as lines of JSON, each with the [`Identity`] of its evaluation.
//! Session handles are secrets and appear only as a prefix of their hash; arguments and results of tools are never
//! logged.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tracing::Span;
use tracing::field::Empty;

use crate::lang::Reply;
use crate::lang::ToolReply;
use crate::server::identity::Identity;
use crate::server::secrets::Secrets;
use crate::server::text::cut;

/// The target of the spans of programs and of calls in them, for trace collectors.
pub const SPANS: &str = "lispbox::trace";

/// Creates the span of an evaluation; it [`ends`](ended) with the reply.
pub(in crate::server) fn evaluation_span(evaluation: u64, principal: &str) -> Span {
    tracing::info_span!(target: SPANS, "evaluation", evaluation, principal, session = Empty, outcome = Empty, otel.status_code = Empty)
}

/// Creates the span of a tool call.
pub(in crate::server) fn call_span(identity: &Identity, server: &str, tool: &str) -> Span {
    let Identity { evaluation, principal, session, .. } = identity;
    let name = format!("{server}/{tool}");
    tracing::info_span!(
        target: SPANS, parent: &identity.span, "call", otel.name = name, evaluation, principal, session, server, tool,
        outcome = Empty, otel.status_code = Empty
    )
}

/// Records the outcome in a span.
pub(in crate::server) fn ended(span: &Span, outcome: &str) {
    span.record("outcome", outcome);
    if outcome != "ok" {
        span.record("otel.status_code", "ERROR");
    }
}

/// Maximum length of a logged program, in characters.
const PROGRAM_KEPT: usize = 2000;

/// Returns the part of a program that is logged.
pub(in crate::server) fn kept(program: &str) -> String {
    cut(program, PROGRAM_KEPT)
}

/// Logs an evaluation that has ended; `program` is the result of [`kept`].
pub(in crate::server) fn evaluation(identity: &Identity, program: &str, reply: &Reply) {
    let code = reply.failure.as_ref().map_or("ok", |failure| failure.error.as_str());
    identity.span.record("session", identity.session.as_deref());
    ended(&identity.span, code);
    tracing::info!(
        target: "lispbox::evaluation",
        evaluation = identity.evaluation,
        principal = identity.principal,
        session = identity.session,
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
pub(in crate::server) fn tool_call(
    identity: &Identity,
    span: &Span,
    server: &str,
    tool: &str,
    took: Duration,
    reply: &ToolReply,
) {
    ended(span, reply.outcome());
    let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    tracing::info!(
        target: "lispbox::call",
        evaluation = identity.evaluation,
        principal = identity.principal,
        session = identity.session,
        server,
        tool,
        ms,
        outcome = reply.outcome(),
        "called"
    );
}

/// Returns a prefix of the hash of a handle: enough to follow a session through a log.
pub(in crate::server) fn hashed(handle: &str) -> String {
    let mut hasher = DefaultHasher::new();
    handle.hash(&mut hasher);
    format!("{:08x}", hasher.finish() >> 32)
}

/// Capacity of the queue of log lines.
const LINES_WAITING: usize = 1024;

/// The time for which log lines gather before they are written together.
const GATHERING: Duration = Duration::from_millis(5);

/// The destination of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogStream {
    /// Standard output, for a server that writes nothing else there.
    Output,
    /// Standard error.
    Errors,
}

/// A writer of log lines that never blocks on its reader: a client that leaves our pipe unread must not stop us. Lines
/// are dropped when the queue is full; once the pipe is read again, a warning says how many.
#[derive(Clone)]
pub struct LogWriter {
    lines: SyncSender<Line>,
    /// The receiving end, until writing begins.
    held: Arc<Held>,
    /// The number of lines that were dropped since the last warning.
    dropped: Arc<AtomicU64>,
    /// The secrets to redact in all lines, once they are known.
    secrets: Arc<OnceLock<Secrets>>,
    /// True if the lines are JSON, in which a secret may be written with escapes.
    is_json: bool,
}

type Held = Mutex<Option<(Receiver<Line>, LogStream)>>;

enum Line {
    Text(Vec<u8>),
    /// All lines before this have been written.
    Written(SyncSender<()>),
}

impl LogWriter {
    /// Creates a writer of lines of JSON, which wait until [`LogWriter::begin`].
    pub fn new(stream: LogStream) -> LogWriter {
        let (lines, waiting) = sync_channel(LINES_WAITING);
        LogWriter {
            lines,
            held: Arc::new(Mutex::new(Some((waiting, stream)))),
            dropped: Arc::default(),
            secrets: Arc::default(),
            is_json: true,
        }
    }

    /// Like [`LogWriter::new`], for lines of plain text.
    pub fn of_text(stream: LogStream) -> LogWriter {
        LogWriter { is_json: false, ..LogWriter::new(stream) }
    }

    /// True if the lines are JSON.
    pub fn is_json(&self) -> bool {
        self.is_json
    }

    /// Redacts these secrets in all further lines. Only the first call has an effect.
    pub fn redact(&self, secrets: &Secrets) {
        self.secrets.get_or_init(|| secrets.clone());
    }

    /// Starts writing, from a dedicated thread.
    ///
    /// # Errors
    /// Fails if the system has no threads left.
    pub fn begin(&self) -> io::Result<()> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((waiting, stream)) = held else { return Ok(()) };
        let dropped = Arc::clone(&self.dropped);
        let write = move || write_lines(&waiting, stream, &dropped);
        std::thread::Builder::new().name("lispbox-log".into()).spawn(write)?;
        Ok(())
    }

    /// Waits until all lines so far have been written, at most for `bound`.
    pub fn flush_within(&self, bound: Duration) {
        let (written, done) = sync_channel(1);
        if self.begin().is_ok() && self.lines.try_send(Line::Written(written)).is_ok() {
            // On a timeout the pipe is not being read, and the lines are lost.
            let _ = done.recv_timeout(bound);
        }
    }
}

/// Writes the lines as they come. Then it does not wait for the next one but lets some gather: waking this thread for each
/// line would cost the thread that logs more than the line.
fn write_lines(waiting: &Receiver<Line>, stream: LogStream, dropped: &AtomicU64) {
    let mut gathered = Vec::new();
    let write = |text: &mut Vec<u8>| {
        // Nothing can be done about a closed stream.
        let _ = match stream {
            LogStream::Output => io::stdout().write_all(text),
            LogStream::Errors => io::stderr().write_all(text),
        };
        text.clear();
    };
    while let Ok(first) = waiting.recv() {
        for line in std::iter::once(first).chain(waiting.try_iter()) {
            match line {
                Line::Text(text) => gathered.extend(text),
                Line::Written(written) => {
                    write(&mut gathered);
                    // A caller that has stopped waiting needs no answer.
                    let _ = written.send(());
                }
            }
        }
        write(&mut gathered);
        let lines = dropped.swap(0, Ordering::Relaxed);
        if lines > 0 {
            tracing::warn!(lines, "lines of the log were dropped, since it was not read");
        }
        std::thread::sleep(GATHERING);
    }
}

impl Write for LogWriter {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let line = match (self.secrets.get(), std::str::from_utf8(text)) {
            (Some(secrets), Ok(line)) if self.is_json => secrets.redact_json(line).into_owned().into_bytes(),
            (Some(secrets), Ok(line)) => secrets.redact(line).into_owned().into_bytes(),
            _ => text.to_vec(),
        };
        // A full queue means that the stream is not being read.
        if let Err(TrySendError::Full(_)) = self.lines.try_send(Line::Text(line)) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
