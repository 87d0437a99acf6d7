//! The world as a program at a terminal sees it: standard output, the clock, randomness, and the tools
//! of a configuration where there is one.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lispbox::lang::{CallId, Catalogue, Failure, Found, Host, Reply, Server, Tool, ToolCall, ToolError, ToolReply};
use lispbox::server::CancellationToken;

use crate::paint::Paint;

/// What becomes of what a program prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prints {
    /// It goes to standard output as it comes.
    Stream,
    /// It stays in the reply.
    Keep,
}

/// The host of one program.
pub struct Terminal {
    prints: Prints,
    /// True behind a print that did not end its line.
    inside_line: AtomicBool,
    /// True once nobody reads standard output any more, as in `lispbox eval … | head`.
    unread: AtomicBool,
    cancel: CancellationToken,
    tools: Option<Arc<dyn Host>>,
    begun: Instant,
}

impl Terminal {
    /// A host that stops when `cancel` is cancelled.
    pub fn new(prints: Prints, cancel: CancellationToken, tools: Option<Arc<dyn Host>>) -> Terminal {
        Terminal {
            prints,
            inside_line: AtomicBool::new(false),
            unread: AtomicBool::new(false),
            cancel,
            tools,
            begun: Instant::now(),
        }
    }

    /// True once nobody reads standard output any more.
    pub fn is_unread(&self) -> bool {
        self.unread.load(Ordering::Relaxed)
    }

    /// Writes one line to standard output, and takes note if nobody reads it.
    fn line(&self, text: &str) {
        if !(write(text) && write("\n")) {
            self.unread.store(true, Ordering::Relaxed);
        }
    }

    /// Ends a line that a print left open, so that what follows stands on its own.
    pub fn end_line(&self) {
        if self.inside_line.swap(false, Ordering::Relaxed) {
            line("");
        }
    }
}

impl Host for Terminal {
    fn servers(&self) -> Vec<Server> {
        self.tools.as_ref().map(|tools| tools.servers()).unwrap_or_default()
    }

    fn tools(&self, server: &str) -> Result<Vec<Arc<Tool>>, ToolError> {
        match &self.tools {
            Some(tools) => tools.tools(server),
            None => Err(no_server(server)),
        }
    }

    fn denied(&self, server: &str) -> Vec<(String, String)> {
        self.tools.as_ref().map(|tools| tools.denied(server)).unwrap_or_default()
    }

    fn catalogue(&self) -> Catalogue {
        self.tools.as_ref().map(|tools| tools.catalogue()).unwrap_or_default()
    }

    fn search(&self, query: &str, most: usize) -> Found {
        self.tools.as_ref().map(|tools| tools.search(query, most)).unwrap_or_default()
    }

    fn call(&self, call: ToolCall) -> ToolReply {
        match &self.tools {
            Some(tools) => tools.call(call),
            None => ToolReply::Error(no_server(&call.server)),
        }
    }

    fn note(&self, call: &CallId) -> Option<String> {
        self.tools.as_ref().and_then(|tools| tools.note(call))
    }

    fn give_up(&self, call: &CallId) {
        if let Some(tools) = &self.tools {
            tools.give_up(call);
        }
    }

    fn print(&self, text: &str) {
        if self.prints == Prints::Keep || text.is_empty() {
            return;
        }
        self.inside_line.store(!text.ends_with('\n'), Ordering::Relaxed);
        if !write(text) {
            self.unread.store(true, Ordering::Relaxed);
            self.cancel.cancel();
        }
    }

    fn now_millis(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }

    fn random(&self) -> u64 {
        // A system that has no randomness to give still has a clock.
        getrandom::u64().unwrap_or_else(|_| self.begun.elapsed().as_nanos() as u64)
    }

    fn monotonic(&self) -> Duration {
        self.begun.elapsed()
    }

    fn cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }
}

fn no_server(server: &str) -> ToolError {
    ToolError::unavailable(format!("there is no server `{server}`; `--config FILE` names a file with `mcpServers`"))
}

/// Shows a reply as a person reads it: the value on standard output, or what went wrong on standard
/// error. A nil is shown only `with_nil`.
pub fn show(reply: &Reply, host: &Terminal, with_nil: bool) -> ExitCode {
    if host.is_unread() {
        return ExitCode::FAILURE;
    }
    host.end_line();
    if let Some(failure) = &reply.failure {
        complain(failure);
        return ExitCode::FAILURE;
    }
    match reply.value.as_deref() {
        Some("nil") | None if !with_nil => {}
        Some(value) => host.line(value),
        None => {}
    }
    if let Some(truncated) = &reply.truncated {
        eprintln!("[truncated: {truncated}; `--limit output=1MiB` shows more]");
    }
    ExitCode::SUCCESS
}

/// Shows a failure on standard error, in colour on a terminal.
pub fn complain(failure: &Failure) {
    let paint = Paint::for_stderr();
    let text = paint.failure(&failure.rendered);
    // An error that nobody can read is no reason for another.
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Writes one line to standard output.
pub fn line(text: &str) {
    // When nobody reads any more the command just comes to its end.
    let _ = write(text) && write("\n");
}

/// Writes to standard output; false when nobody reads it.
fn write(text: &str) -> bool {
    let mut output = std::io::stdout().lock();
    let written = output.write_all(text.as_bytes());
    let written = if output.is_terminal() { written.and_then(|()| output.flush()) } else { written };
    written.is_ok()
}
