//! Platform-specific code that keeps child processes from outliving us, however we end.
//!
//! On Unix every downstream server leads its own process group, and the group is killed when its [`ProcessGroup`] is
//! dropped. In case none of our code can run any more (we are killed with SIGKILL), a [`Lifeline`] is ready: one small
//! shell that reads the group numbers from a pipe and kills the remaining groups when the pipe closes, which the kernel
//! does for us. A child writes its own number between fork and exec, so it is never running unregistered. A shell is
//! used rather than our own binary, because an embedder's binary is not ours to run again. On Linux the child also asks
//! to be killed when the thread that started it ends (`PR_SET_PDEATHSIG`): it is therefore started from a worker thread
//! of the runtime, which lives as long as we do.
//!
//! A process that moves to a new session leaves the group and is not tracked.
//!
//! Elsewhere (Windows) the child is killed on drop; its own children have to notice that their pipes have closed.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};

#[cfg(unix)]
pub(in crate::server) use unix::{Lifeline, ProcessGroup};

#[cfg(not(unix))]
pub(in crate::server) use elsewhere::{Lifeline, ProcessGroup};

/// A child that was started in a new process group.
pub(in crate::server) struct Started {
    /// The child; its owner reaps it by waiting for it.
    pub child: Child,
    /// The group that it leads, killed on drop.
    pub group: ProcessGroup,
}

/// The size of what a process has written above which [`answer_within`] forgets the first half of it, in bytes.
const LARGEST_ANSWER: usize = 1 << 19;
/// Time for a process to exit by itself after its answer.
const AFTER_ANSWER: Duration = Duration::from_millis(200);

/// Why a process has not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum Unanswered {
    /// It could not be started.
    NotStarted,
    /// It has ended, or closed its standard output.
    Ended,
    /// The time was over.
    Late,
}

/// A process that leads its session. Its group is killed when this is dropped.
struct Leader(Child);

impl Drop for Leader {
    fn drop(&mut self) {
        #[cfg(unix)]
        unix::kill_session(&self.0);
    }
}

/// Starts a process without input and without a terminal, and returns what it has last written to standard output once
/// that `is_complete`. The process is killed if it does not exit.
///
/// # Errors
/// Returns why there is no such output within `time`.
pub(in crate::server) async fn answer_within(
    command: &mut Command,
    time: Duration,
    is_complete: impl Fn(&[u8]) -> bool,
) -> Result<Vec<u8>, Unanswered> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    #[cfg(unix)]
    unix::without_terminal(command);
    let mut leader = Leader(command.spawn().map_err(|_| Unanswered::NotStarted)?);
    let mut output = leader.0.stdout.take().ok_or(Unanswered::NotStarted)?;
    let answer = tokio::time::timeout(time, async {
        let mut said = Vec::new();
        while output.read_buf(&mut said).await.is_ok_and(|length| length > 0) {
            if is_complete(&said) {
                return Ok(said);
            }
            if said.len() > LARGEST_ANSWER {
                said.drain(..LARGEST_ANSWER / 2);
            }
        }
        Err(Unanswered::Ended)
    });
    let answer = answer.await.unwrap_or(Err(Unanswered::Late))?;
    let _ = tokio::time::timeout(AFTER_ANSWER, leader.0.wait()).await;
    Ok(answer)
}

#[cfg(unix)]
mod unix {
    use std::io::{self, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::process::CommandExt;
    use std::process::{ChildStdin, Stdio};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex, PoisonError};

    use super::{Command, Started};

    /// Reads `+ GROUP` and `- GROUP`, and kills the remaining groups at the end of its input.
    const SCRIPT: &str = r#"trap '' HUP INT TERM PIPE
groups=
while read -r sign group; do
  case $sign in
    +) groups="$groups $group" ;;
    -) kept=
       for each in $groups; do [ "$each" = "$group" ] || kept="$kept $each"; done
       groups=$kept ;;
  esac
done
for each in $groups; do kill -s KILL -- "-$each" 2>/dev/null; done"#;

    /// The process that briefly outlives us to kill the processes that we started.
    pub(in crate::server) struct Lifeline {
        pipe: Mutex<Option<Watcher>>,
    }

    struct Watcher {
        process: std::process::Child,
        input: ChildStdin,
    }

    impl Lifeline {
        /// Creates a lifeline that starts its process together with the first server.
        pub(in crate::server) fn new() -> Arc<Lifeline> {
            Arc::new(Lifeline { pipe: Mutex::new(None) })
        }

        /// Starts a child in a new process group that dies with us.
        pub(in crate::server) fn start(self: &Arc<Lifeline>, command: &mut Command) -> io::Result<Started> {
            let mut pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
            if pipe.is_none() {
                *pipe =
                    watcher().inspect_err(|problem| tracing::warn!(%problem, "no lifeline for child processes")).ok();
            }
            let descriptor = pipe.as_ref().map(|watcher| watcher.input.as_raw_fd());
            let parent = std::process::id();
            command.process_group(0);
            // SAFETY: between fork and exec only async-signal-safe calls are made (write, prctl,
            // getppid, getpid), and nothing is allocated. `descriptor` is open: the lock is held until
            // the child has been started, and the lifeline closes it only when it is dropped.
            unsafe {
                command.pre_exec(move || announce(descriptor, parent));
            }
            let child = command.spawn()?;
            drop(pipe);
            let number = child.id().and_then(|id| i32::try_from(id).ok());
            let group = ProcessGroup { number, finished: AtomicBool::new(false), lifeline: Arc::clone(self) };
            Ok(Started { child, group })
        }

        fn release(&self, number: i32) {
            let mut pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(watcher) = pipe.as_mut() {
                // If the watcher has ended, there is no process to notify.
                let _ = writeln!(watcher.input, "- {number}");
            }
        }
    }

    impl Drop for Lifeline {
        fn drop(&mut self) {
            let pipe = self.pipe.get_mut().unwrap_or_else(PoisonError::into_inner);
            if let Some(Watcher { mut process, input }) = pipe.take() {
                drop(input);
                // It ends at once; without this it would remain a zombie in an embedder.
                let _ = process.wait();
            }
        }
    }

    fn watcher() -> io::Result<Watcher> {
        let mut process = std::process::Command::new("/bin/sh")
            .arg("-c")
            .arg(SCRIPT)
            .current_dir("/")
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let input = process.stdin.take().ok_or_else(|| io::Error::other("the lifeline has no input"))?;
        Ok(Watcher { process, input })
    }

    /// Lets a command start in a session of its own: a shell in it finds no terminal to take over. It dies with us.
    pub(super) fn without_terminal(command: &mut Command) {
        let parent = std::process::id();
        // SAFETY: as in `Lifeline::start`; `setsid` is async-signal-safe too.
        unsafe {
            command.pre_exec(move || {
                libc::setsid();
                announce(None, parent)
            });
        }
    }

    /// Kills a child that leads its session, and the processes of its group, unless it has been reaped.
    pub(super) fn kill_session(child: &super::Child) {
        if let Some(number) = child.id().and_then(|id| i32::try_from(id).ok()) {
            // SAFETY: a plain system call on integers. The child has not been reaped, so its number is still its own.
            unsafe { libc::killpg(number, libc::SIGKILL) };
        }
    }

    /// Runs in the child, between fork and exec.
    fn announce(descriptor: Option<i32>, parent: u32) -> io::Result<()> {
        if let Some(descriptor) = descriptor {
            let mut line = [0u8; 16];
            let length = number_line(std::process::id(), &mut line);
            // SAFETY: `line` is a live buffer of at least `length` bytes. If the write fails, the child still relies on
            // `PR_SET_PDEATHSIG`.
            unsafe { libc::write(descriptor, line.as_ptr().cast(), length) };
        }
        #[cfg(target_os = "linux")]
        {
            // SAFETY: plain system calls on integers. If the parent died before the request, the signal would never
            // arrive, hence the check.
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                // Our own setting must not be inherited by the child.
                libc::prctl(libc::PR_SET_THP_DISABLE, 0, 0, 0, 0);
                if u32::try_from(libc::getppid()) != Ok(parent) {
                    return Err(io::Error::from_raw_os_error(libc::ESRCH));
                }
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = parent;
        Ok(())
    }

    /// Writes `+ NUMBER` and a newline without allocating, and returns the length.
    fn number_line(number: u32, line: &mut [u8; 16]) -> usize {
        line[0] = b'+';
        line[1] = b' ';
        let digits = number.checked_ilog10().unwrap_or(0) as usize + 1;
        let mut rest = number;
        for place in (2..2 + digits).rev() {
            line[place] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        line[2 + digits] = b'\n';
        3 + digits
    }

    /// A process group, killed when it is dropped.
    pub(in crate::server) struct ProcessGroup {
        number: Option<i32>,
        finished: AtomicBool,
        lifeline: Arc<Lifeline>,
    }

    impl ProcessGroup {
        /// Asks the processes to terminate (SIGTERM).
        pub(in crate::server) fn terminate(&self) {
            if !self.finished.load(Ordering::Acquire) {
                self.signal(libc::SIGTERM);
            }
        }

        /// Kills the processes. Only the first call has an effect: afterwards the number may belong to another group.
        pub(in crate::server) fn kill(&self) {
            if !self.finished.swap(true, Ordering::AcqRel) {
                self.signal(libc::SIGKILL);
                if let Some(number) = self.number {
                    self.lifeline.release(number);
                }
            }
        }

        /// True if its first process is stopped by a signal, as far as the system shows that.
        pub(in crate::server) fn is_stopped(&self) -> bool {
            let Some(number) = self.number.filter(|_| cfg!(target_os = "linux")) else { return false };
            let state = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
            // The name of the program, which may contain anything, stands in parentheses.
            let state = state.rsplit_once(')').map_or("", |(_, state)| state.trim_start());
            state.starts_with(['T', 't'])
        }

        fn signal(&self, signal: i32) {
            if let Some(number) = self.number {
                // SAFETY: a plain system call on integers. The group is ours: we created it, and its number is not
                // reused while one of its processes, or its unreaped leader, exists.
                unsafe { libc::killpg(number, signal) };
            }
        }
    }

    impl Drop for ProcessGroup {
        fn drop(&mut self) {
            self.kill();
        }
    }

    #[cfg(test)]
    mod tests {
        #[test]
        fn numbers_are_written_without_allocating() {
            for number in [1, 9, 10, 4_194_304, u32::MAX] {
                let mut line = [0u8; 16];
                let length = super::number_line(number, &mut line);
                assert_eq!(std::str::from_utf8(&line[..length]), Ok(format!("+ {number}\n").as_str()));
            }
        }
    }
}

#[cfg(not(unix))]
mod elsewhere {
    use std::io;
    use std::sync::Arc;

    use super::{Command, Started};

    /// A lifeline without function on this system.
    pub(in crate::server) struct Lifeline;

    impl Lifeline {
        /// Creates a lifeline.
        pub(in crate::server) fn new() -> Arc<Lifeline> {
            Arc::new(Lifeline)
        }

        /// Starts a child that is killed when it is dropped.
        pub(in crate::server) fn start(self: &Arc<Lifeline>, command: &mut Command) -> io::Result<Started> {
            let child = command.kill_on_drop(true).spawn()?;
            Ok(Started { child, group: ProcessGroup })
        }
    }

    /// A placeholder: process groups do not exist here, and the owner of the child kills it.
    pub(in crate::server) struct ProcessGroup;

    impl ProcessGroup {
        /// Does nothing: the only request to terminate is closing the child's input.
        pub(in crate::server) fn terminate(&self) {}

        /// Does nothing: the child's owner kills it.
        pub(in crate::server) fn kill(&self) {}

        /// Always false: this system does not show it.
        pub(in crate::server) fn is_stopped(&self) -> bool {
            false
        }
    }
}

/// Returns whether the writer of our standard input has closed it, even while unread data remains in it.
#[cfg(unix)]
pub(in crate::server) fn input_hung_up() -> bool {
    #[cfg(target_os = "linux")]
    const CLOSED: libc::c_short = libc::POLLRDHUP;
    #[cfg(not(target_os = "linux"))]
    const CLOSED: libc::c_short = 0;
    let mut input = libc::pollfd { fd: libc::STDIN_FILENO, events: CLOSED, revents: 0 };
    // SAFETY: one entry, which lives through the call; with a timeout of zero the call returns at once.
    let ready = unsafe { libc::poll(&mut input, 1, 0) };
    ready == 1 && input.revents & (CLOSED | libc::POLLHUP | libc::POLLERR) != 0
}

/// Always false: on this system a closed input is detected only after all data has been read.
#[cfg(not(unix))]
pub(in crate::server) fn input_hung_up() -> bool {
    false
}

/// Returns whether our standard output can no longer be read.
#[cfg(unix)]
pub(in crate::server) fn output_is_closed() -> bool {
    let mut output = libc::pollfd { fd: libc::STDOUT_FILENO, events: 0, revents: 0 };
    // SAFETY: one entry, which lives through the call; with a timeout of zero the call returns at once.
    let ready = unsafe { libc::poll(&mut output, 1, 0) };
    ready == 1 && output.revents & (libc::POLLHUP | libc::POLLERR) != 0
}

/// Always false: on this system a closed output is detected only by writing.
#[cfg(not(unix))]
pub(in crate::server) fn output_is_closed() -> bool {
    false
}

/// Returns why a program did not start, without the paths of this machine.
pub(in crate::server) fn start_problem(program: &str, problem: &io::Error) -> String {
    let (path, name) = (std::path::Path::new(program), shown(program));
    match problem.kind() {
        io::ErrorKind::NotFound if let Some(interpreter) = interpreter(path) => match interpreter.strip_suffix('\r') {
            Some(_) => format!(
                "the command `{name}` cannot be run: its first line ends as on Windows; save it with the line ends of Unix"
            ),
            None => format!(
                "the command `{name}` cannot be run: its interpreter `{interpreter}`, which its first line names, was not \
                 found; install it, or name another one there"
            ),
        },
        io::ErrorKind::NotFound => format!("the command `{name}` was not found{}", hint(program)),
        io::ErrorKind::PermissionDenied if path.is_dir() => format!("the command `{name}` is a folder"),
        io::ErrorKind::PermissionDenied => format!("the command `{name}` is not executable"),
        _ => format!("the command `{name}` could not be run: {problem}"),
    }
}

/// Returns the interpreter that the first line of a script names, with the carriage return that belongs to it if the line
/// ends in one.
fn interpreter(script: &std::path::Path) -> Option<String> {
    const LONGEST: u64 = 256;
    let mut line = Vec::new();
    std::io::Read::read_to_end(&mut std::io::Read::take(std::fs::File::open(script).ok()?, LONGEST), &mut line).ok()?;
    let line = String::from_utf8_lossy(&line).into_owned();
    let named = line.strip_prefix("#!")?.split('\n').next()?.trim_start();
    let named = named.split([' ', '\t']).next()?;
    Some(named.chars().filter(|c| *c == '\r' || !c.is_control()).take(80).collect())
}

/// Returns the first word of a program that is a whole command line.
fn first_of_line(program: &str) -> Option<&str> {
    let (first, _) = program.trim().split_once(char::is_whitespace)?;
    // A path may contain blanks.
    let is_path = first.contains(['/', '\\']) && !first.starts_with('~');
    (!is_path || std::path::Path::new(first).is_file()).then_some(first)
}

/// Returns a program as messages name it: without its folder, and without the arguments and values of a command line.
fn shown(program: &str) -> String {
    let without_folder = |path: &str| {
        let name = std::path::Path::new(path).file_name();
        name.map_or_else(|| path.to_owned(), |name| name.to_string_lossy().into_owned())
    };
    match first_of_line(program) {
        Some(first) if let Some((variable, _)) = first.split_once('=') => format!("{variable}=…"),
        Some(first) => format!("{} …", without_folder(first)),
        None => without_folder(program),
    }
}

/// Returns what may be wrong with a command that was not found.
fn hint(program: &str) -> &'static str {
    match first_of_line(program) {
        _ if program.starts_with('~') => ": `~` is not expanded in `command`; `${HOME}` is",
        Some(first) if first.contains('=') => {
            ": `command` is one program; its arguments go into `args`, and variables into `env`"
        }
        Some(_) => ": `command` is one program; its arguments go into `args`",
        None => "",
    }
}
