//! The words of a process: the end of its standard error, and the beginning of its standard output as far as that is no
//! message.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use tokio::process::ChildStdout;
use tokio::sync::watch;

use crate::lang::internal::foreign_text;
use crate::server::secrets::Secrets;
use crate::server::text::cut_bytes;

use super::problems::WORDS;

/// Number of lines of its output that are kept: the last ones, and of those before them the first that name an error.
const LINES_KEPT: usize = 4;
const ERRORS_KEPT: usize = 2;
/// Maximum length of a line that is kept, in bytes.
const LINE_KEPT: usize = WORDS;

/// Maximum number of bytes kept of a line before its secrets are redacted and it is cut.
const LINE_READ: usize = 8 << 10;

/// Number of bytes of the standard output in which lines are looked for that are no messages.
const OVERHEARD: usize = 16 << 10;

/// The output of a process that is no message.
#[derive(Default)]
pub(super) struct Said {
    /// The first lines that name an error, and are not among the last.
    errors: Vec<String>,
    last: VecDeque<String>,
}

impl Said {
    /// Adds a line, unless it is a frame of a stack: such lines would take the room of those that say what went wrong.
    fn add(&mut self, line: String) {
        if line.starts_with("at ") {
            return;
        }
        if self.last.len() == LINES_KEPT
            && let Some(earlier) = self.last.pop_front()
            && self.errors.len() < ERRORS_KEPT
            && is_about_error(&earlier)
        {
            self.errors.push(earlier);
        }
        self.last.push_back(line);
    }
}

/// Returns the words of a process on one line, of bounded length; `None` if there are none.
pub(super) fn words(said: &Mutex<Said>) -> Option<String> {
    let said = said.lock().unwrap_or_else(PoisonError::into_inner);
    let errors = said.errors.join(" / ");
    let errors = cut_bytes(&errors, WORDS / 2);
    let mut room = WORDS - errors.len().min(WORDS / 2);
    let mut last = Vec::new();
    for line in said.last.iter().rev() {
        let needed = line.len() + 3;
        if needed > room && !last.is_empty() {
            break;
        }
        last.push(cut_bytes(line, room));
        room = room.saturating_sub(needed);
    }
    last.reverse();
    match (errors.is_empty(), last.is_empty()) {
        (_, true) => None,
        (true, false) => Some(last.join(" / ")),
        (false, false) => Some(format!("{errors} / … / {}", last.join(" / "))),
    }
}

/// Returns whether a line of output says what went wrong, rather than where.
fn is_about_error(line: &str) -> bool {
    const ERRORS: [&str; 13] = [
        "error",
        "missing",
        "required",
        "cannot",
        "can't",
        "not found",
        "not set",
        "denied",
        "invalid",
        "failed",
        "usage",
        "no such",
        "unable",
    ];
    let line = line.to_lowercase();
    ERRORS.iter().any(|word| line.contains(word))
}

/// Returns whether a server says that it listens at an address.
pub(super) fn is_about_listening(words: &str) -> bool {
    const LISTENS: [&str; 8] =
        ["listening", "running on", "running at", "serving", "started on", "started at", "available at", "ready at"];
    const PLACES: [&str; 6] = ["http://", "https://", "localhost", "127.0.0.1", "0.0.0.0", "port "];
    let words = words.to_lowercase();
    LISTENS.iter().any(|word| words.contains(word)) && PLACES.iter().any(|place| words.contains(place))
}

/// The standard output of a server, of whose beginning the lines are kept that are no messages: many servers report there
/// why they cannot start.
pub(super) struct Overheard {
    /// `None` once it has ended.
    output: Option<ChildStdout>,
    /// `None` once nothing more is looked at.
    ear: Option<Ear>,
}

/// Listens to the beginning of an output.
pub(super) struct Ear {
    lines: Arc<Mutex<Said>>,
    line: Vec<u8>,
    /// The number of bytes that are still looked at.
    left: usize,
    name: String,
    secrets: Secrets,
    printing: watch::Sender<bool>,
}

impl Ear {
    /// Creates the ear for the server of that name; `printing` becomes false when it hears no more.
    pub(super) fn new(name: &str, lines: &Arc<Mutex<Said>>, secrets: &Secrets, printing: watch::Sender<bool>) -> Ear {
        let (lines, secrets) = (Arc::clone(lines), secrets.clone());
        Ear { lines, line: Vec::new(), left: OVERHEARD, name: name.to_owned(), secrets, printing }
    }

    fn hear(&mut self, bytes: &[u8]) {
        let bytes = &bytes[..bytes.len().min(self.left)];
        self.left -= bytes.len();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.keep();
            }
        }
    }

    fn keep(&mut self) {
        let line = std::mem::take(&mut self.line);
        // The last line that is heard may lack its end, and so the end of a secret, or what shows that it is a message.
        let is_cut = self.left == 0 && !line.ends_with(b"\n");
        let is_message = is_of_message(&line) || is_cut && line.trim_ascii_start().starts_with(b"{");
        if !is_message {
            keep(&line, is_cut, &self.name, &self.lines, &self.secrets);
        }
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.keep();
        self.printing.send_replace(false);
    }
}

/// Returns whether a line is a message, or a part of one that is printed over several lines.
fn is_of_message(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.starts_with(b"\"")
        || line.iter().all(|byte| b"{}[],".contains(byte))
        || memchr::memmem::find(line, b"\"jsonrpc\"").is_some()
}

impl Overheard {
    pub(super) fn of(output: ChildStdout, ear: Ear) -> Overheard {
        Overheard { output: Some(output), ear: Some(ear) }
    }
}

impl AsyncRead for Overheard {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let Some(output) = &mut this.output else { return Poll::Ready(Ok(())) };
        let before = buffer.filled().len();
        let read = Pin::new(output).poll_read(context, buffer);
        let come = &buffer.filled()[before..];
        if let Some(ear) = &mut this.ear {
            ear.hear(come);
        }
        let has_ended = read.is_ready() && come.is_empty();
        drop(this.ear.take_if(|ear| has_ended || ear.left == 0));
        read
    }
}

/// A server may end before anything of its output is read, for example because nothing can be written to it: the rest is
/// read then.
impl Drop for Overheard {
    fn drop(&mut self) {
        if let (Some(mut output), Some(mut ear)) = (self.output.take(), self.ear.take())
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(async move {
                let mut buffer = vec![0; 4 << 10];
                while ear.left > 0
                    && let Ok(length @ 1..) = output.read(&mut buffer).await
                {
                    ear.hear(&buffer[..length]);
                }
            });
        }
    }
}

/// Reads a server's standard error to its end, so that the server never blocks on it, and keeps the last lines.
pub(super) async fn drain(mut errors: impl AsyncRead + Unpin, server: &str, lines: &Mutex<Said>, secrets: &Secrets) {
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
                keep(&line, false, server, lines, secrets);
                line.clear();
            }
        }
    }
    keep(&line, false, server, lines, secrets);
}

fn keep(line: &[u8], is_cut: bool, server: &str, lines: &Mutex<Said>, secrets: &Secrets) {
    let text = secrets.redact_cut(&String::from_utf8_lossy(line), false, is_cut || line.len() >= LINE_READ);
    let text = foreign_text::line(&text);
    if text.is_empty() {
        return;
    }
    let text = cut_bytes(&text, LINE_KEPT).into_owned();
    tracing::debug!(server, line = text, "downstream server said");
    lines.lock().unwrap_or_else(PoisonError::into_inner).add(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[&str]) -> String {
        let said = Mutex::<Said>::default();
        lines.iter().for_each(|line| keep(line.as_bytes(), false, "s", &said, &Secrets::default()));
        words(&said).unwrap_or_default()
    }

    #[test]
    fn the_line_with_the_error_is_kept_wherever_it_stands() {
        assert_eq!(of(&["one", "", "two"]), "one / two");
        let node = [
            "node:internal/modules/cjs/loader:1228",
            "  throw err;",
            "Error: Cannot find module '/srv.js'",
            "    at Module._resolveFilename (node:internal/modules/cjs/loader:1225:15)",
            "    at Error.handler (x.js:1)",
            "  code: 'MODULE_NOT_FOUND',",
            "  requireStack: []",
            "}",
            "Node.js v20.20.2",
        ];
        let expected = "Error: Cannot find module '/srv.js' / … / code: 'MODULE_NOT_FOUND', / requireStack: [] / } / Node.js v20.20.2";
        assert_eq!(of(&node), expected);
    }

    #[test]
    fn words_have_a_bounded_number_of_bytes() {
        let long = "é".repeat(1_000);
        for lines in [vec![long.as_str()], vec![long.as_str(); 9], vec!["an error", &long, &long, &long, &long, &long]]
        {
            let words = of(&lines);
            assert!(words.len() <= WORDS + 20, "{} bytes: {words}", words.len());
        }
    }

    #[test]
    fn lines_of_messages_are_told_from_others() {
        for line in ["{", "  },", "\"jsonrpc\": \"2.0\",", "{\"jsonrpc\":\"2.0\",\"id\":1}", "[{\"jsonrpc\":\"2.0\"}]"]
        {
            assert!(is_of_message(line.as_bytes()), "{line}");
        }
        for line in ["[INFO] missing key", "{\"level\":50,\"msg\":\"missing key\"}", "missing key"] {
            assert!(!is_of_message(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn a_server_that_listens_is_told_from_one_that_names_an_address() {
        assert!(is_about_listening("INFO: Uvicorn running on http://127.0.0.1:8000"));
        assert!(is_about_listening("Server listening on port 3000"));
        assert!(!is_about_listening("no API key: get one at https://example.org/keys"));
    }
}
