//! How the terminal takes input in while nobody edits a line, and discarding what was typed ahead.

use std::fs::File;
use std::io;

/// How long the terminal has to be silent before pending input counts as discarded: a paste comes in pieces.
#[cfg(unix)]
const SILENCE_MS: u16 = 50;
/// How many pieces are waited for.
#[cfg(unix)]
const MOST_PIECES: usize = 100;

/// A mode of the terminal; the one before it comes back when this is dropped.
pub struct InputMode {
    #[cfg(unix)]
    before: Option<(File, nix::sys::termios::Termios)>,
}

#[cfg(unix)]
impl InputMode {
    /// Input waits key by key for the line editor and shows only once the editor reads it. Ctrl-C is a signal.
    ///
    /// By lines the terminal would echo what is typed into the output of a program, and lose a Ctrl-D. Where the
    /// mode cannot be set the terminal stays as it is.
    pub fn held() -> InputMode {
        use nix::sys::termios::LocalFlags;
        use std::os::fd::AsFd;
        let keys = io::stdin().as_fd().try_clone_to_owned().map(File::from);
        let held = keys.and_then(|keys| {
            InputMode::changed(&keys, |mode| mode.local_flags &= !(LocalFlags::ICANON | LocalFlags::ECHO))
        });
        held.unwrap_or(InputMode { before: None })
    }

    /// Input comes by lines, with echo.
    ///
    /// # Errors
    /// When that is no terminal.
    pub fn lines(keys: &File) -> io::Result<InputMode> {
        use nix::sys::termios::{InputFlags, LocalFlags};
        InputMode::changed(keys, |mode| {
            mode.local_flags |= LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::ECHOE | LocalFlags::ISIG;
            mode.input_flags |= InputFlags::ICRNL;
        })
    }

    fn changed(keys: &File, change: impl FnOnce(&mut nix::sys::termios::Termios)) -> io::Result<InputMode> {
        use nix::sys::termios::{SetArg, tcgetattr, tcsetattr};
        let before = tcgetattr(keys)?;
        let mut mode = before.clone();
        change(&mut mode);
        tcsetattr(keys, SetArg::TCSANOW, &mode)?;
        Ok(InputMode { before: Some((keys.try_clone()?, before)) })
    }
}

#[cfg(unix)]
impl Drop for InputMode {
    fn drop(&mut self) {
        if let Some((keys, before)) = &self.before {
            // A terminal that has gone has no mode any more.
            let _ = nix::sys::termios::tcsetattr(keys, nix::sys::termios::SetArg::TCSANOW, before);
        }
    }
}

/// Elsewhere the terminal keeps its mode.
#[cfg(not(unix))]
impl InputMode {
    /// Does nothing.
    pub fn held() -> InputMode {
        InputMode {}
    }

    /// Does nothing.
    pub fn lines(_keys: &File) -> io::Result<InputMode> {
        Ok(InputMode {})
    }
}

/// Discards what was typed or is being pasted; true if there was anything.
///
/// # Errors
/// When that is no terminal.
#[cfg(unix)]
pub fn discard(keys: &File) -> io::Result<bool> {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use nix::sys::termios::{FlushArg, LocalFlags, tcflush};
    use std::os::fd::AsFd;
    // Key by key, since by lines a line that has not ended is not seen.
    let _keys = InputMode::changed(keys, |mode| mode.local_flags &= !(LocalFlags::ICANON | LocalFlags::ECHO))?;
    let mut is_lost = false;
    for _ in 0..MOST_PIECES {
        let mut waited = [PollFd::new(keys.as_fd(), PollFlags::POLLIN)];
        match poll(&mut waited, PollTimeout::from(SILENCE_MS)) {
            Ok(0) => break,
            Ok(_) => is_lost = true,
            Err(nix::Error::EINTR) => {}
            Err(problem) => return Err(problem.into()),
        }
        tcflush(keys, FlushArg::TCIFLUSH)?;
    }
    Ok(is_lost)
}

/// Elsewhere nothing is known of pending input.
///
/// # Errors
/// None.
#[cfg(not(unix))]
pub fn discard(_keys: &File) -> io::Result<bool> {
    Ok(false)
}
