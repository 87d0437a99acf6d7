//! Confirmation of tool calls by the user at the terminal.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use lispbox::server::{Answer, Approver, CancellationToken, LaterCalls, Question};

use crate::input::{self, InputMode};

/// The user at the controlling terminal of this process, regardless of redirected streams.
pub struct Person {
    /// Cancelled when the program that asks must stop.
    pub stop: CancellationToken,
    /// Set when input typed before a question has been discarded.
    pub lost_input: Arc<AtomicBool>,
    /// True if a program can wait for a person when there is no terminal.
    pub can_wait: bool,
}

impl Approver for Person {
    fn ask(&self, question: Question, patience: Duration) -> BoxFuture<'_, Answer> {
        let (stop, lost_input, can_wait) = (self.stop.clone(), self.lost_input.clone(), self.can_wait);
        Box::pin(async move {
            let asking = tokio::task::spawn_blocking(move || ask(&question, patience, &stop, &lost_input));
            let unavailable = |problem: io::Error| match can_wait {
                true => Answer::Later,
                false => Answer::Unavailable(format!("no terminal to ask on: {problem}")),
            };
            match asking.await {
                Ok(answer) => answer.unwrap_or_else(unavailable),
                Err(_) => Answer::Unavailable("the process is ending".to_owned()),
            }
        })
    }
}

fn ask(
    question: &Question,
    patience: Duration,
    stop: &CancellationToken,
    lost_input: &AtomicBool,
) -> io::Result<Answer> {
    let (mut screen, keys) = terminal()?;
    let deadline = Instant::now() + patience;
    // Only input typed after the question may answer it.
    let is_lost = input::discard(&keys)?;
    let _lines = InputMode::lines(&keys)?;
    write!(screen, "\n{question}\n")?;
    if is_lost {
        lost_input.store(true, Ordering::Relaxed);
        writeln!(screen, "(discarded: the input that was typed before this question)")?;
    }
    for later in &question.later {
        let (key, words) = choice(*later);
        writeln!(screen, "  {key}: yes, and {words}, for this session")?;
    }
    let keys_of_later: String = question.later.iter().map(|later| format!("/{}", choice(*later).0)).collect();
    write!(screen, "Allow this call? [y/N{keys_of_later}] ")?;
    screen.flush()?;
    while !has_line(&keys)? {
        if stop.is_cancelled() || Instant::now() >= deadline {
            writeln!(screen, "\nno one answered")?;
            return Ok(Answer::Unavailable("no one answered in time".to_owned()));
        }
    }
    let mut line = String::new();
    BufReader::new(keys).read_line(&mut line)?;
    let line = line.trim().to_lowercase();
    Ok(match question.later.iter().find(|later| choice(**later).0 == line) {
        Some(later) => Answer::YesAnd(*later),
        None if line == "y" || line == "yes" => Answer::Yes,
        None => Answer::No,
    })
}

/// Returns the key and the words for later calls.
fn choice(later: LaterCalls) -> (&'static str, &'static str) {
    match later {
        LaterCalls::SameArguments => ("a", "this tool with these arguments"),
        LaterCalls::SameTool => ("t", "this tool with any arguments"),
    }
}

/// Opens the screen and the keyboard.
#[cfg(unix)]
fn terminal() -> io::Result<(File, File)> {
    let open = || OpenOptions::new().read(true).write(true).open("/dev/tty");
    Ok((open()?, open()?))
}

/// Opens the screen and the keyboard.
#[cfg(windows)]
fn terminal() -> io::Result<(File, File)> {
    let open = |name| OpenOptions::new().read(true).write(true).open(name);
    Ok((open("CONOUT$")?, open("CONIN$")?))
}

/// Waits briefly for a typed line.
#[cfg(unix)]
fn has_line(keys: &File) -> io::Result<bool> {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use std::os::fd::AsFd;
    let mut waited = [PollFd::new(keys.as_fd(), PollFlags::POLLIN)];
    match poll(&mut waited, PollTimeout::from(100u16)) {
        Ok(ready) => Ok(ready > 0),
        Err(nix::Error::EINTR) => Ok(false),
        Err(problem) => Err(problem.into()),
    }
}

/// On other systems, the read itself blocks.
#[cfg(not(unix))]
fn has_line(_keys: &File) -> io::Result<bool> {
    Ok(true)
}
