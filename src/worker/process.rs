//! One worker process as seen by the server: instructions in, reports out, and termination.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::lang::internal::bytes;

use super::lock;
use super::wire::{Instruction, Report, Reports, send};

/// Timeout for a worker to become ready.
const READY: Duration = Duration::from_secs(20);

/// Maximum size of a message of a worker that has no instruction yet, in bytes.
const SMALL: u64 = 1 << 20;

/// The program that is started as a worker.
#[derive(Clone, Debug)]
pub struct Program {
    file: PathBuf,
    arguments: Vec<String>,
}

impl Program {
    /// Returns the current program, with these arguments; on Linux this very executable, even if the file has been
    /// replaced since.
    ///
    /// # Errors
    /// Returns an error if the system does not report the path of the executable.
    pub fn this(arguments: &[&str]) -> io::Result<Program> {
        let own = Path::new("/proc/self/exe");
        let file = if own.exists() { own.to_path_buf() } else { std::env::current_exe()? };
        Ok(Program::new(file, arguments))
    }

    /// Returns a program that calls [`run`](super::run) when it is started with these arguments.
    pub fn new(file: impl Into<PathBuf>, arguments: &[&str]) -> Program {
        Program { file: file.into(), arguments: arguments.iter().map(ToString::to_string).collect() }
    }
}

/// The sending end of the pipe to a worker; shared between threads.
#[derive(Clone)]
pub(super) struct Instructions(Arc<Mutex<UnixStream>>);

impl Instructions {
    /// Sends an instruction to the worker. Errors are ignored: the loss of a worker shows when its reports are read.
    pub(super) fn give(&self, instruction: &Instruction) {
        let _ = send(&*lock(&self.0), instruction);
    }
}

/// A worker process, which is killed when this is dropped.
pub(super) struct Worker {
    child: Child,
    pub(super) instructions: Instructions,
    pub(super) reports: Reports,
    /// The mechanisms that confine it.
    pub(super) walls: Vec<String>,
    /// Its standard error, on which the standard library reports the allocation that failed before it aborts.
    errors: UnixStream,
    /// The bound on its private memory.
    bound: Bound,
}

/// The bound on the private memory of a worker, in bytes.
#[derive(Clone, Copy, Default)]
struct Bound {
    data: u64,
    /// The address space of the stacks that its programs so far may have left in its pool: hardly any of it is
    /// committed. It never shrinks, since threads that wait for more work are cheaper to keep than to start again; the
    /// resident memory, which is checked while a program runs, has no such allowance.
    stacks: u64,
}

impl Bound {
    fn total(self) -> u64 {
        self.data.saturating_add(self.stacks)
    }
}

impl Worker {
    /// Starts a worker and waits until it is ready.
    ///
    /// # Errors
    /// Returns an error if it cannot be started, has another version, or cannot be confined.
    pub(super) fn start(program: &Program) -> io::Result<Worker> {
        let (ours, theirs) = UnixStream::pair()?;
        let (errors, complaints) = UnixStream::pair()?;
        // Neither end ever waits for the other.
        errors.set_nonblocking(true)?;
        complaints.set_nonblocking(true)?;
        let child = Command::new(&program.file)
            .args(&program.arguments)
            .env_clear()
            // Memory that is only reserved must not count as used.
            .env("MIMALLOC_ARENA_EAGER_COMMIT", "0")
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::from(OwnedFd::from(complaints)))
            .spawn()?;
        let instructions = Instructions(Arc::new(Mutex::new(ours.try_clone()?)));
        let mut worker = Worker {
            child,
            instructions,
            reports: Reports::new(ours),
            walls: Vec::new(),
            errors,
            bound: Bound::default(),
        };
        match worker.reports.next(READY, SMALL) {
            Ok(Some(Report::Ready { version, walls })) if version == super::VERSION => {
                worker.walls = walls;
                Ok(worker)
            }
            Ok(Some(Report::Ready { version, .. })) => {
                Err(io::Error::other(format!("the worker has version {version}, expected {}", super::VERSION)))
            }
            Ok(Some(Report::Unconfined(problem))) => Err(io::Error::new(io::ErrorKind::Unsupported, problem)),
            Ok(Some(_)) => Err(io::Error::other("the worker did not report that it is ready")),
            Ok(None) => Err(io::Error::other(format!("the worker was not ready after {} s", READY.as_secs()))),
            Err(_) => Err(io::Error::other(format!("the worker ended before it was ready: {}", worker.end()))),
        }
    }

    /// Returns the worker, unless its process has ended.
    pub(super) fn if_alive(mut self) -> Option<Worker> {
        matches!(self.child.try_wait(), Ok(None)).then_some(self)
    }

    /// The resident memory of the process in bytes, program and libraries included, if the system reports it.
    pub(super) fn resident(&self) -> Option<u64> {
        const PAGE: u64 = 4_096;
        let counts = std::fs::read_to_string(format!("/proc/{}/statm", self.child.id())).ok()?;
        let pages: u64 = counts.split_ascii_whitespace().nth(1)?.parse().ok()?;
        Some(pages * PAGE)
    }

    /// The time for which the threads of the process had to wait for a processor, if the system reports it.
    pub(super) fn delay(&self) -> Option<Duration> {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).ok()?;
        // A thread that has ended meanwhile has no report.
        let reports =
            threads.flatten().filter_map(|thread| std::fs::read_to_string(thread.path().join("schedstat")).ok());
        // Its nanoseconds on a processor, those of waiting for one, and how often it ran.
        let delays =
            reports.map(|report| report.split_ascii_whitespace().nth(1).and_then(|waited| waited.parse::<u64>().ok()));
        delays.sum::<Option<u64>>().map(Duration::from_nanos)
    }

    /// Limits the private memory of the process (`RLIMIT_DATA`), in bytes: the kernel refuses more than `data` and the
    /// largest `stacks` of its programs so far.
    pub(super) fn bound(&mut self, data: u64, stacks: u64) {
        self.bound = Bound { data, stacks: stacks.max(self.bound.stacks) };
        let limit = libc::rlimit { rlim_cur: self.bound.total(), rlim_max: libc::RLIM_INFINITY };
        let id = libc::pid_t::try_from(self.child.id()).unwrap_or_default();
        // SAFETY: a plain system call on one live struct. The process ID is that of our unreaped child. If the call
        // fails because the process has just ended, there is nothing to limit.
        unsafe { libc::prlimit(id, libc::RLIMIT_DATA, &limit, std::ptr::null_mut()) };
    }

    /// Ends the process and describes how it ended.
    pub(super) fn end(&mut self) -> String {
        // A process that is exiting by itself is given a moment, so that its own exit status is reported.
        let patience = Instant::now() + Duration::from_millis(100);
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return self.ending(status),
                Ok(None) if Instant::now() < patience => std::thread::sleep(Duration::from_millis(1)),
                _ => break,
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        "it closed the connection".to_string()
    }

    fn ending(&mut self, status: ExitStatus) -> String {
        match (status.signal(), status.code()) {
            (Some(libc::SIGABRT), _) => self.abortion(),
            (Some(libc::SIGKILL), _) => "it was killed from outside, perhaps for lack of memory".to_string(),
            (Some(signal), _) => format!("it was terminated by signal {signal}"),
            (None, Some(code)) => format!("it ended with code {code}"),
            (None, None) => "it ended".to_string(),
        }
    }

    /// Describes why the process aborted.
    fn abortion(&mut self) -> String {
        let mut errors = Vec::new();
        // Everything that was written has been read when the stream reports that it is empty or closed.
        let _ = self.errors.read_to_end(&mut errors);
        let Some(size) = failed_allocation(&String::from_utf8_lossy(&errors)) else {
            return "it aborted for an unknown reason".to_string();
        };
        let Bound { data, stacks } = self.bound;
        format!(
            "it could not allocate {}: the system had no more memory, or its address space was at its bound of {} for \
             data and {} for stacks",
            bytes(size),
            bytes(data),
            bytes(stacks)
        )
    }
}

/// The size of the allocation that failed, from the message of the standard library.
fn failed_allocation(errors: &str) -> Option<u64> {
    let (_, rest) = errors.rsplit_once("memory allocation of ")?;
    rest.split_once(" bytes failed")?.0.parse().ok()
}

impl Drop for Worker {
    fn drop(&mut self) {
        // A process that has ended cannot be killed; waiting for it leaves no zombie.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
