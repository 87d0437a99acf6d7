//! Progress of the soak: one line that is redrawn on a terminal, or a new line every ten seconds elsewhere. It is
//! written to standard error, so that standard output contains only the summary.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// The interval between updates on a terminal, and elsewhere.
const DRAWN: Duration = Duration::from_millis(200);
const WRITTEN: Duration = Duration::from_secs(10);

/// The progress line.
pub struct Progress {
    is_terminal: bool,
    last: Instant,
}

impl Progress {
    /// Creates a line that has not been shown yet.
    pub fn new() -> Progress {
        Progress { is_terminal: stderr().is_terminal(), last: Instant::now() }
    }

    /// Shows the line if the interval has elapsed.
    pub fn show(&mut self, text: impl FnOnce() -> String) {
        if self.last.elapsed() < if self.is_terminal { DRAWN } else { WRITTEN } {
            return;
        }
        self.last = Instant::now();
        // A failure to write the progress must not end the soak.
        let _ = match self.is_terminal {
            // Without automatic wrap, a line wider than the terminal is cut; a wrapped line could not be redrawn.
            true => write!(stderr(), "\r\u{1b}[K\u{1b}[?7l{}\u{1b}[?7h", text()).and_then(|()| stderr().flush()),
            false => writeln!(stderr(), "{}", text()),
        };
    }

    /// Erases the line.
    pub fn clear(&self) {
        if self.is_terminal {
            let _ = write!(stderr(), "\r\u{1b}[K").and_then(|()| stderr().flush());
        }
    }
}
