//! How far the soak is: one line that is drawn anew on a terminal, a line every ten seconds elsewhere. It goes to
//! standard error, so that standard output has the summary alone.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// How often the line is drawn on a terminal, and written elsewhere.
const DRAWN: Duration = Duration::from_millis(200);
const WRITTEN: Duration = Duration::from_secs(10);

/// The line.
pub struct Progress {
    is_terminal: bool,
    last: Instant,
}

impl Progress {
    /// A line that has not been shown.
    pub fn new() -> Progress {
        Progress { is_terminal: stderr().is_terminal(), last: Instant::now() }
    }

    /// Shows the line, if it is time to.
    pub fn show(&mut self, text: impl FnOnce() -> String) {
        if self.last.elapsed() < if self.is_terminal { DRAWN } else { WRITTEN } {
            return;
        }
        self.last = Instant::now();
        // A line that nobody can read is no reason to end.
        let _ = match self.is_terminal {
            // What is wider than the terminal is cut, or the line could not be drawn anew.
            true => write!(stderr(), "\r\u{1b}[K\u{1b}[?7l{}\u{1b}[?7h", text()).and_then(|()| stderr().flush()),
            false => writeln!(stderr(), "{}", text()),
        };
    }

    /// Takes the line away.
    pub fn clear(&self) {
        if self.is_terminal {
            let _ = write!(stderr(), "\r\u{1b}[K").and_then(|()| stderr().flush());
        }
    }
}
