//! A server that runs as a child process: its streams, its last output, its termination.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::watch;

use crate::server::config::{Endpoint, ServerConfig, Taken};
use crate::server::secrets::Secrets;
use crate::server::system::platform::{self, Lifeline, ProcessGroup, Started};
use crate::server::text::cut;

/// Grace period for a process to exit once its input is closed, and again once it is asked to terminate.
const PATIENCE: Duration = Duration::from_millis(500);
/// Maximum time that the children of a process may hold its streams open after it has exited.
const AFTERMATH: Duration = Duration::from_secs(1);
const LINES_KEPT: usize = 4;
const LINE_KEPT: usize = 160;

/// Maximum number of bytes kept of a line before its secrets are redacted and it is cut.
const LINE_READ: usize = 8 << 10;

/// Number of bytes of the standard output in which lines are looked for that are no messages.
const OVERHEARD: usize = 16 << 10;

/// The process of a server; the process and its children are killed when this is dropped.
pub(super) struct ServerProcess {
    group: Arc<ProcessGroup>,
    said: Arc<Mutex<VecDeque<String>>>,
    /// The lines of its standard output that are no messages, from before it answered.
    printed: Arc<Mutex<VecDeque<String>>>,
    /// The exit status of the process, once it has exited.
    exit: watch::Receiver<Option<Option<ExitStatus>>>,
    /// False once its standard error has been read to its end.
    talking: watch::Receiver<bool>,
}

impl ServerProcess {
    /// Starts the process of a configuration, whose command was taken from where it was found.
    ///
    /// # Errors
    /// Returns the reason if it cannot be started.
    pub(super) fn start(
        config: &ServerConfig,
        taken: &Taken,
        lifeline: &Arc<Lifeline>,
        secrets: &Secrets,
    ) -> Result<(ServerProcess, Overheard, ChildStdin), String> {
        let Ok(Endpoint::Process { command: program, arguments, environment, folder }) = &config.endpoint else {
            return Err("it is not a process".into());
        };
        let mut command = tokio::process::Command::new(&taken.program);
        command.args(arguments).env_clear().envs(config.inherit.of(std::env::vars_os()));
        command.envs(taken.path.iter().map(|path| ("PATH", path))).envs(environment);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(folder) = folder {
            if !folder.is_dir() {
                return Err("its `cwd` is not a folder".into());
            }
            command.current_dir(folder);
        }
        let Started { mut child, group } = lifeline
            .start(&mut command)
            .map_err(|problem| taken.why_not(platform::start_problem(program, &problem)))?;
        let (Some(input), Some(output), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err("its streams could not be opened".into());
        };
        let group = Arc::new(group);
        let said = Arc::new(Mutex::new(VecDeque::new()));

        let (talk, talking) = watch::channel(true);
        let lines = Arc::clone(&said);
        let (name, secrets) = (config.name.clone(), secrets.clone());
        let printed = Arc::default();
        let output = Overheard {
            output,
            lines: Arc::clone(&printed),
            line: Vec::new(),
            left: OVERHEARD,
            name: name.clone(),
            secrets: secrets.clone(),
        };
        tokio::spawn(async move {
            drain(errors, &name, &lines, &secrets).await;
            talk.send_replace(false);
        });

        let (report, exit) = watch::channel(None);
        let leftover = Arc::downgrade(&group);
        tokio::spawn(async move {
            let status = child.wait().await.ok();
            report.send_replace(Some(status));
            tokio::time::sleep(AFTERMATH).await;
            if let Some(group) = leftover.upgrade() {
                group.kill();
            }
        });
        Ok((ServerProcess { group, said, printed, exit, talking }, output, input))
    }

    /// Returns the exit status of the process and its last output, for an error message. Waits up to 200 ms for both,
    /// since the exit and the end of the streams come in no fixed order.
    pub(super) async fn last_words(&self) -> Option<String> {
        let (mut exit, mut talking) = (self.exit.clone(), self.talking.clone());
        let _ = tokio::time::timeout(Duration::from_millis(200), async {
            let _ = exit.wait_for(Option::is_some).await;
            let _ = talking.wait_for(|talking| !talking).await;
        })
        .await;
        let ended = match exit.borrow().as_ref() {
            Some(Some(status)) => Some(format!("it ended with {status}")),
            Some(None) => Some("it ended".to_owned()),
            None => None,
        };
        let said = joined(&self.said).map(|said| format!("it said: {said}"));
        let printed = joined(&self.printed).map(|printed| {
            let is_address = printed.contains("http://") || printed.contains("https://");
            let hint = if is_address { "; a server that listens at an address is configured by its `url`" } else { "" };
            format!("its standard output, which is for messages of MCP alone, was: {printed}{hint}")
        });
        let words: Vec<String> = [ended, said, printed].into_iter().flatten().collect();
        (!words.is_empty()).then(|| words.join("; "))
    }

    /// True while the process runs; false once it has exited or is stopped by a signal.
    pub(super) fn runs(&self) -> bool {
        self.exit.borrow().is_none() && !self.group.is_stopped()
    }

    /// Waits for the process to exit, then asks it to terminate, then kills it.
    pub(super) async fn end(&self) {
        let mut exit = self.exit.clone();
        for ask in [false, true] {
            if ask {
                self.group.terminate();
            }
            if tokio::time::timeout(PATIENCE, exit.wait_for(Option::is_some)).await.is_ok() {
                break;
            }
        }
        self.group.kill();
    }
}

/// Returns the lines as one; `None` if there are none.
fn joined(lines: &Mutex<VecDeque<String>>) -> Option<String> {
    let lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
    let joined = Vec::from_iter(lines.iter().map(String::as_str)).join(" / ");
    (!joined.is_empty()).then_some(joined)
}

/// The standard output of a server, of whose beginning the lines are kept that are no messages: many servers report there
/// why they cannot start.
pub(super) struct Overheard {
    output: ChildStdout,
    lines: Arc<Mutex<VecDeque<String>>>,
    line: Vec<u8>,
    /// The number of bytes that are still looked at.
    left: usize,
    name: String,
    secrets: Secrets,
}

impl Overheard {
    fn hear(&mut self, bytes: &[u8]) {
        let bytes = &bytes[..bytes.len().min(self.left)];
        self.left -= bytes.len();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.left == 0 {
                let line = std::mem::take(&mut self.line);
                if !matches!(line.trim_ascii_start().first(), Some(b'{' | b'[')) {
                    keep(&line, &self.name, &self.lines, &self.secrets);
                }
            }
        }
    }
}

impl AsyncRead for Overheard {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.output).poll_read(context, buffer);
        if this.left > 0 {
            this.hear(&buffer.filled()[before..]);
        }
        read
    }
}

/// Reads a server's standard error to its end, so that the server never blocks on it, and keeps the last lines.
async fn drain(mut errors: impl AsyncRead + Unpin, server: &str, lines: &Mutex<VecDeque<String>>, secrets: &Secrets) {
    let mut buffer = vec![0; 8 << 10];
    let mut line: Vec<u8> = Vec::new();
    loop {
        let length = match errors.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(length) => length,
        };
        for piece in buffer[..length].split_inclusive(|byte| *byte == b'\n') {
            // Only the beginning of a very long line is kept; the rest is skipped.
            let room = LINE_READ.saturating_sub(line.len());
            line.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                keep(&line, server, lines, secrets);
                line.clear();
            }
        }
    }
    keep(&line, server, lines, secrets);
}

fn keep(line: &[u8], server: &str, lines: &Mutex<VecDeque<String>>, secrets: &Secrets) {
    let text = secrets.redact_cut(&String::from_utf8_lossy(line), false, line.len() >= LINE_READ);
    let text = text.trim();
    if text.is_empty() {
        return;
    }
    tracing::debug!(server, line = %cut(text, LINE_KEPT), "downstream server said");
    let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
    if lines.len() == LINES_KEPT {
        lines.pop_front();
    }
    lines.push_back(cut(text, LINE_KEPT));
}
