//! The person at a terminal is asked about a tool call.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use lispbox::server::{Answer, Approver, CancellationToken, Question};

/// Whoever sits at the terminal that this process was started from, whatever its streams are.
pub struct Person {
    /// Cancelled when the program that asks is to stop.
    pub stop: CancellationToken,
}

impl Approver for Person {
    fn ask(&self, question: Question, patience: Duration) -> BoxFuture<'_, Answer> {
        let stop = self.stop.clone();
        Box::pin(async move {
            let asking = tokio::task::spawn_blocking(move || ask(&question, patience, &stop));
            let nobody = |problem: io::Error| Answer::Nobody(format!("no terminal to ask at: {problem}"));
            match asking.await {
                Ok(answer) => answer.unwrap_or_else(nobody),
                Err(_) => Answer::Nobody("the process is ending".to_owned()),
            }
        })
    }
}

fn ask(question: &Question, patience: Duration, stop: &CancellationToken) -> io::Result<Answer> {
    let (mut screen, keys) = terminal()?;
    let deadline = Instant::now() + patience;
    write!(screen, "\n{question}\nAllow this call? [y/N] ")?;
    screen.flush()?;
    while !has_line(&keys)? {
        if stop.is_cancelled() || Instant::now() >= deadline {
            writeln!(screen, "\nnobody answered")?;
            return Ok(Answer::Nobody("nobody answered in time".to_owned()));
        }
    }
    let mut line = String::new();
    BufReader::new(keys).read_line(&mut line)?;
    Ok(match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Answer::Yes,
        _ => Answer::No,
    })
}

/// The screen and the keyboard.
#[cfg(unix)]
fn terminal() -> io::Result<(File, File)> {
    let open = || OpenOptions::new().read(true).write(true).open("/dev/tty");
    Ok((open()?, open()?))
}

/// The screen and the keyboard.
#[cfg(windows)]
fn terminal() -> io::Result<(File, File)> {
    let open = |name| OpenOptions::new().read(true).write(true).open(name);
    Ok((open("CONOUT$")?, open("CONIN$")?))
}

/// Waits a moment for a line to be typed.
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

/// Elsewhere reading itself waits.
#[cfg(not(unix))]
fn has_line(_keys: &File) -> io::Result<bool> {
    Ok(true)
}
