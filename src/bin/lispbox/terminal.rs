//! The host of a program at a terminal: standard output, the clock, randomness, and the tools of a configuration, if
//! any.

use std::borrow::Cow;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lispbox::lang::internal::foreign_text::printable;
use lispbox::lang::{
    Audience, CallId, Catalogue, Decision, EarlierValue, Failure, Found, Host, Question, Reply, Server, Tool, ToolCall,
    ToolError, ToolReply,
};
use lispbox::server::{CancellationToken, Secrets};

use crate::output::{self, errln, outln};
use crate::paint::Paint;

/// The destination of printed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prints {
    /// Printed text is written to standard output immediately.
    Stream,
    /// Printed text is returned in the reply.
    Keep,
}

/// The host of one program.
pub struct Terminal {
    prints: Prints,
    /// True after a print that did not end its line.
    inside_line: AtomicBool,
    /// True once the reader of standard output has gone, as in `lispbox eval … | head`.
    unread: AtomicBool,
    cancel: CancellationToken,
    tools: Option<Arc<dyn Host>>,
    /// The secrets that are redacted in all output.
    secrets: Secrets,
    /// The end of the printed text that may be the beginning of a secret.
    held: Mutex<String>,
    begun: Instant,
}

impl Terminal {
    /// Creates a host that stops when `cancel` is cancelled and redacts `secrets`.
    pub fn new(prints: Prints, cancel: CancellationToken, tools: Option<Arc<dyn Host>>, secrets: Secrets) -> Terminal {
        Terminal {
            prints,
            inside_line: AtomicBool::new(false),
            unread: AtomicBool::new(false),
            cancel,
            tools,
            secrets,
            held: Mutex::default(),
            begun: Instant::now(),
        }
    }

    /// True once the reader of standard output has gone.
    pub fn is_unread(&self) -> bool {
        self.unread.load(Ordering::Relaxed)
    }

    /// Writes one line to standard output, and records if the reader has gone.
    fn line(&self, text: &str) {
        if !(write(text) && write("\n")) {
            self.unread.store(true, Ordering::Relaxed);
        }
    }

    /// Redacts the secrets in a reply.
    pub fn redacted(&self, mut reply: Reply) -> Reply {
        self.secrets.redact_record(&mut reply);
        reply
    }

    /// Writes printed text; if the reader has gone, cancels the program.
    fn write_printed(&self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.inside_line.store(!text.ends_with('\n'), Ordering::Relaxed);
        if !write(&for_stdout(text)) {
            self.unread.store(true, Ordering::Relaxed);
            self.cancel.cancel();
        }
    }

    /// Flushes text that was held back, and ends a line that a print left open, so that further output begins on a new
    /// line.
    pub fn end_line(&self) {
        let held = std::mem::take(&mut *self.held.lock().unwrap_or_else(PoisonError::into_inner));
        self.write_printed(&held);
        if self.inside_line.swap(false, Ordering::Relaxed) {
            line("");
        }
    }
}

impl Host for Terminal {
    fn audience(&self) -> Audience {
        Audience::User
    }

    fn servers(&self) -> Vec<Server> {
        self.tools.as_ref().map(|tools| tools.servers()).unwrap_or_default()
    }

    fn tools(&self, server: &str) -> Result<Vec<Arc<Tool>>, ToolError> {
        match &self.tools {
            Some(tools) => tools.tools(server),
            None => Err(no_server(server)),
        }
    }

    fn tools_anew(&self, server: &str) -> Option<Vec<Arc<Tool>>> {
        self.tools.as_ref().and_then(|tools| tools.tools_anew(server))
    }

    fn instructions(&self, server: &str) -> Option<String> {
        self.tools.as_ref().and_then(|tools| tools.instructions(server))
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

    fn decide(&self, questions: &[Question]) -> Vec<Decision> {
        self.tools.as_ref().map_or_else(Vec::new, |tools| tools.decide(questions))
    }

    fn begin_form(&self, form: u32) {
        if let Some(tools) = &self.tools {
            tools.begin_form(form);
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
        // A secret may be printed in several pieces.
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.push_str(text);
        let mut ready = self.secrets.redact(&held).into_owned();
        *held = ready.split_off(ready.len() - self.secrets.begun(&ready));
        self.write_printed(&ready);
    }

    fn now_millis(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }

    fn random(&self) -> u64 {
        // If the system has no randomness, the clock is used instead.
        getrandom::u64().unwrap_or_else(|_| self.begun.elapsed().as_nanos() as u64)
    }

    fn monotonic(&self) -> Duration {
        self.begun.elapsed()
    }

    #[cfg(target_os = "linux")]
    fn processor_time(&self) -> Option<Duration> {
        lispbox::worker::processor_time()
    }

    fn cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }
}

fn no_server(server: &str) -> ToolError {
    ToolError::unavailable(format!("there is no server `{server}`; `--config FILE` names a file with `mcpServers`"))
}

/// Shows a reply: the value on standard output, or the failure on standard error. A nil and the values of the top-level
/// forms before the last are shown only if `as_repl` is true. A program that was stopped because the reader of its output has gone is not a failure.
pub fn show(reply: &Reply, host: &Terminal, as_repl: bool) -> ExitCode {
    if host.is_unread() {
        return ExitCode::SUCCESS;
    }
    host.end_line();
    for note in &reply.notes {
        errln!("[note: {}]", printable(note));
    }
    if as_repl {
        show_earlier(reply, host);
    }
    if let Some(failure) = &reply.failure {
        complain(failure);
        return ExitCode::FAILURE;
    }
    match reply.value.as_deref() {
        Some("nil") | None if !as_repl => {}
        Some(value) => host.line(&for_stdout(value)),
        None => {}
    }
    if let Some(truncated) = &reply.truncated {
        errln!("[elided: {truncated}; `--limit output=1MiB` shows more]");
    }
    ExitCode::SUCCESS
}

/// Shows the values of the top-level forms before the last.
fn show_earlier(reply: &Reply, host: &Terminal) {
    for EarlierValue { value, truncated } in &reply.earlier {
        host.line(&for_stdout(value));
        if let Some(extent) = truncated {
            errln!("[elided: {extent}]");
        }
    }
    if reply.earlier_omitted > 0 {
        errln!("[elided: {} more values]", reply.earlier_omitted);
    }
}

/// Adds the flag that raises an exceeded limit, or the field of a batch request that does, to the error.
pub fn advise_on_limit(reply: &mut Reply, is_batch: bool) {
    let Some(failure) = reply.failure.as_mut() else { return };
    let Some(limit) = failure.limit.clone() else { return };
    let request = if is_batch { format!(", or `\"limits\": {{\"{limit}\": …}}` in the line") } else { String::new() };
    failure.suggest(format!("`--limit {limit}=VALUE` allows more{request}"));
}

/// Shows a failure on standard error, in colour on a terminal.
pub fn complain(failure: &Failure) {
    let paint = Paint::for_stderr();
    let text = paint.failure(&printable(&failure.rendered));
    errln!("{text}");
}

/// Prepares the output of a program for standard output: if that is a terminal, control sequences are sanitized.
pub fn for_stdout(text: &str) -> Cow<'_, str> {
    if std::io::stdout().is_terminal() { printable(text) } else { Cow::Borrowed(text) }
}

/// Writes one line to standard output.
pub fn line(text: &str) {
    outln!("{text}");
}

/// Writes to standard output; returns false if it cannot be written to.
fn write(text: &str) -> bool {
    output::write_out(format_args!("{text}"))
}
