//! Input modes of the terminal while no line is being edited, and discarding of typed-ahead input.

use std::fs::File;
use std::io;

/// Time without input after which all pending input has been discarded: a paste arrives in several pieces.
#[cfg(unix)]
const SILENCE_MS: u16 = 50;
/// Maximum number of pieces that are discarded.
#[cfg(unix)]
const MOST_PIECES: usize = 100;

/// A mode of the terminal; the previous mode is restored when this is dropped.
pub struct InputMode {
    #[cfg(unix)]
    before: Option<(File, nix::sys::termios::Termios)>,
}

#[cfg(unix)]
impl InputMode {
    /// Holds input back, unechoed, until the line editor reads it. Ctrl-C remains a signal.
    ///
    /// In canonical mode the terminal would echo typed input into the output of a program, and would lose a Ctrl-D. If
    /// the mode cannot be set, the terminal stays unchanged.
    pub fn held() -> InputMode {
        use nix::sys::termios::LocalFlags;
        use std::os::fd::AsFd;
        let keys = io::stdin().as_fd().try_clone_to_owned().map(File::from);
        let held = keys.and_then(|keys| {
            InputMode::changed(&keys, |mode| mode.local_flags &= !(LocalFlags::ICANON | LocalFlags::ECHO))
        });
        held.unwrap_or(InputMode { before: None })
    }

    /// Canonical mode: line by line, with echo.
    ///
    /// # Errors
    /// Returns an error if `keys` is not a terminal.
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
            // A terminal that has been closed has no mode to restore.
            let _ = nix::sys::termios::tcsetattr(keys, nix::sys::termios::SetArg::TCSANOW, before);
        }
    }
}

/// On other systems, the mode of the terminal is not changed.
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

/// Discards input that was typed or is being pasted; returns true if there was any.
///
/// # Errors
/// Returns an error if `keys` is not a terminal.
#[cfg(unix)]
pub fn discard(keys: &File) -> io::Result<bool> {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use nix::sys::termios::{FlushArg, LocalFlags, tcflush};
    use std::os::fd::AsFd;
    // In canonical mode, `poll` would not report an unfinished line.
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

/// On other systems, pending input is not detected.
///
/// # Errors
/// Never returns an error.
#[cfg(not(unix))]
pub fn discard(_keys: &File) -> io::Result<bool> {
    Ok(false)
}
