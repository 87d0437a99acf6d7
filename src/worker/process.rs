//! One worker process as its starter sees it: orders in, reports out, and an end that it does not
//! choose.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::lock;
use super::wire::{Order, Report, Reports, send};

/// How long a worker may take until it is ready.
const READY: Duration = Duration::from_secs(20);

/// The largest message of a worker that has not been given anything to do.
const SMALL: u64 = 1 << 20;

/// How a worker is started.
#[derive(Clone, Debug)]
pub struct Program {
    file: PathBuf,
    arguments: Vec<String>,
}

impl Program {
    /// The program that runs now, with these arguments; on Linux this very file even if another one has
    /// taken its place since.
    ///
    /// # Errors
    /// When the system does not say which program this is.
    pub fn this(arguments: &[&str]) -> io::Result<Program> {
        let own = Path::new("/proc/self/exe");
        let file = if own.exists() { own.to_path_buf() } else { std::env::current_exe()? };
        Ok(Program::new(file, arguments))
    }

    /// A program that calls [`run`](super::run) when it is started with these arguments.
    pub fn new(file: impl Into<PathBuf>, arguments: &[&str]) -> Program {
        Program { file: file.into(), arguments: arguments.iter().map(ToString::to_string).collect() }
    }
}

/// The end of the pipe through which a worker is told things; several threads may hold it.
#[derive(Clone)]
pub(super) struct Orders(Arc<Mutex<UnixStream>>);

impl Orders {
    /// Tells the worker something. That it has gone shows in its reports.
    pub(super) fn give(&self, order: &Order) {
        let _ = send(&*lock(&self.0), order);
    }
}

/// A worker process; it ends when this is dropped.
pub(super) struct Worker {
    child: Child,
    pub(super) orders: Orders,
    pub(super) reports: Reports,
    /// By what it is confined.
    pub(super) walls: Vec<String>,
}

impl Worker {
    /// Starts a worker and waits until it is ready.
    ///
    /// # Errors
    /// When it cannot be started, is of another version, or cannot be confined.
    pub(super) fn start(program: &Program) -> io::Result<Worker> {
        let (ours, theirs) = UnixStream::pair()?;
        let child = Command::new(&program.file)
            .args(&program.arguments)
            .env_clear()
            // Room that is only set aside is not to count as used.
            .env("MIMALLOC_ARENA_EAGER_COMMIT", "0")
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let orders = Orders(Arc::new(Mutex::new(ours.try_clone()?)));
        let mut worker = Worker { child, orders, reports: Reports::new(ours), walls: Vec::new() };
        match worker.reports.next(READY, SMALL) {
            Ok(Some(Report::Ready { version, walls })) if version == super::VERSION => {
                worker.walls = walls;
                Ok(worker)
            }
            Ok(Some(Report::Ready { version, .. })) => {
                Err(io::Error::other(format!("the worker is of version {version}, and this is {}", super::VERSION)))
            }
            Ok(Some(Report::Unconfined(problem))) => Err(io::Error::new(io::ErrorKind::Unsupported, problem)),
            Ok(Some(_)) => Err(io::Error::other("the worker did not say that it is ready")),
            Ok(None) => Err(io::Error::other(format!("the worker was not ready after {} s", READY.as_secs()))),
            Err(_) => Err(io::Error::other(format!("the worker ended before it was ready: {}", worker.end()))),
        }
    }

    /// The worker, unless its process has ended.
    pub(super) fn if_alive(mut self) -> Option<Worker> {
        matches!(self.child.try_wait(), Ok(None)).then_some(self)
    }

    /// Bytes that the process has in memory, program and libraries included, where the system tells.
    pub(super) fn resident(&self) -> Option<u64> {
        const PAGE: u64 = 4_096;
        let counts = std::fs::read_to_string(format!("/proc/{}/statm", self.child.id())).ok()?;
        let pages: u64 = counts.split_ascii_whitespace().nth(1)?.parse().ok()?;
        Some(pages * PAGE)
    }

    /// Sets how many bytes of memory of its own the process may have at all: the kernel refuses more.
    pub(super) fn bound(&self, bytes: u64) {
        let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
        let id = libc::pid_t::try_from(self.child.id()).unwrap_or_default();
        // SAFETY: a plain system call on one live struct. The number is that of our unreaped child. If
        // it fails, because the process has just ended, there is nothing to bound.
        unsafe { libc::prlimit(id, libc::RLIMIT_DATA, &limit, std::ptr::null_mut()) };
    }

    /// Ends the process and says how it ended, or would have.
    pub(super) fn end(&mut self) -> String {
        // One that is dying by itself is given a moment, so that its own end is the one that is told.
        let patience = Instant::now() + Duration::from_millis(100);
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return ending(status),
                Ok(None) if Instant::now() < patience => std::thread::sleep(Duration::from_millis(1)),
                _ => break,
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        "it broke off the conversation".to_string()
    }
}

fn ending(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(libc::SIGABRT), _) => "it aborted, as it does when it gets no more memory".to_string(),
        (Some(libc::SIGKILL), _) => "it was killed from outside, perhaps for want of memory".to_string(),
        (Some(signal), _) => format!("it ended by signal {signal}"),
        (None, Some(code)) => format!("it ended with code {code}"),
        (None, None) => "it ended".to_string(),
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // A process that has ended cannot be killed; waiting for it leaves no zombie.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
