//! Standard output and standard error of a command, written without panics.
//!
//! `println!` panics when the reader of a pipe has gone, as in `lispbox config show | head`. Everything in this binary
//! writes through this module instead, which `deny(clippy::print_stdout, clippy::print_stderr)` in `main.rs` enforces:
//! the first error is remembered, later writes are dropped, and [`finish`] decides the exit status. SIGPIPE itself stays
//! ignored, since the pipes to downstream servers must not end the process.

use std::fmt::Arguments;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The first error of a write to standard output.
static BROKEN: Mutex<Option<io::Error>> = Mutex::new(None);

/// True once a command has written to standard output. Otherwise `finish` must not flush it: the protocol writer of a
/// server keeps it locked for as long as a client does not read.
static WRITTEN: AtomicBool = AtomicBool::new(false);

/// Writes to standard output, as `print!` does.
macro_rules! out {
    ($($part:tt)*) => {{ $crate::output::write_out(format_args!($($part)*)); }};
}

/// Writes a line to standard output, as `println!` does.
macro_rules! outln {
    ($($part:tt)*) => {{ $crate::output::write_out(format_args!("{}\n", format_args!($($part)*))); }};
}

/// Writes a line to standard error, as `eprintln!` does; an error that cannot be shown is dropped.
macro_rules! errln {
    ($($part:tt)*) => {{ $crate::output::write_error(format_args!("{}\n", format_args!($($part)*))); }};
}

pub(crate) use {errln, out, outln};

/// Writes to standard output; returns false once standard output cannot be written to.
pub fn write_out(text: Arguments<'_>) -> bool {
    if is_broken() {
        return false;
    }
    WRITTEN.store(true, Ordering::Relaxed);
    let mut output = io::stdout().lock();
    let written = output.write_fmt(text);
    note(if output.is_terminal() { written.and_then(|()| output.flush()) } else { written })
}

/// Writes a line to standard output at once. [`finish`] does not flush it: it would wait for the log that follows on the
/// same stream, which keeps it locked for as long as a parent process does not read.
pub fn announce(line: &str) {
    let mut output = io::stdout().lock();
    note(writeln!(output, "{line}").and_then(|()| output.flush()));
}

/// Records an error of a write to standard output; returns false if there is one.
pub fn note(written: io::Result<()>) -> bool {
    match written {
        Ok(()) => true,
        Err(problem) => {
            BROKEN.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(problem);
            false
        }
    }
}

/// Writes to standard error. Errors are ignored: a process continues even if its errors cannot be shown.
pub fn write_error(text: Arguments<'_>) {
    let _ = io::stderr().lock().write_fmt(text);
}

/// True once standard output cannot be written to.
pub fn is_broken() -> bool {
    BROKEN.lock().unwrap_or_else(PoisonError::into_inner).is_some()
}

/// The exit status of a command that ended with `code`: 1 with a message if its output could not be written, for
/// instance on a full disk. A pipe closed by its reader is not a failure.
pub fn finish(code: ExitCode) -> ExitCode {
    if WRITTEN.load(Ordering::Relaxed) {
        note(io::stdout().lock().flush());
    }
    match &*BROKEN.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(problem) if problem.kind() != io::ErrorKind::BrokenPipe => {
            errln!("lispbox: standard output could not be written: {problem}");
            ExitCode::FAILURE
        }
        _ => code,
    }
}
