//! The memory of this process, and the allocator that has it.

use std::sync::Arc;

use lispbox::lang::Engine;
use lispbox::lang::meter::{Metered, Residence};
use mimalloc::MiMalloc;

use crate::surroundings::Problem;

/// Counts what evaluations hold, so that their memory limits are kept.
#[global_allocator]
static ALLOCATOR: Metered<MiMalloc> = Metered::new(MiMalloc);

/// What connections to clients and servers may come to take beside the programs, which is bounded by what they
/// take in (`docs/security.md`).
pub const CONNECTIONS: u64 = 384 << 20;

/// The engine of this process, which keeps its limits of memory by both counts and takes up to so many bytes
/// itself.
///
/// # Errors
/// As [`EngineBuilder::build`](lispbox::lang::EngineBuilder::build).
pub fn engine(beside: u64) -> Result<Arc<Engine>, Problem> {
    let engine = Engine::builder().residence(Memory::of_this_process(beside)).build();
    engine.map_err(|problem| Problem::Failed(problem.to_string()))
}

/// From now on memory comes in small pages. A process that lives long and takes little most of the time would
/// have most of its huge pages for a few values each: a server of sixteen busy sessions took 170 MiB instead of 64.
pub fn without_huge_pages() {
    // SAFETY: a plain system call without pointers. Where it is refused everything works all the same.
    #[cfg(target_os = "linux")]
    unsafe {
        libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0);
    }
}

/// From now on a write beyond the largest file that this process may have (`ulimit -f`) fails, as on a full disk, and
/// does not end the process. A handler that does nothing, and not `SIG_IGN`: processes that we start do not inherit it.
pub fn outlives_large_files() {
    #[cfg(unix)]
    {
        extern "C" fn nothing(_signal: libc::c_int) {}
        let handler = nothing as extern "C" fn(libc::c_int);
        // SAFETY: the handler does nothing, so it may interrupt whatever the process does.
        unsafe { libc::signal(libc::SIGXFSZ, handler as libc::sighandler_t) };
    }
}

/// What the process takes, as Linux tells it.
struct Memory {
    beside: u64,
    #[cfg(target_os = "linux")]
    counts: Option<std::fs::File>,
}

impl Memory {
    /// Opens the kernel's counts; where there are none, nothing is known.
    fn of_this_process(beside: u64) -> Memory {
        Memory {
            beside,
            #[cfg(target_os = "linux")]
            counts: std::fs::File::open("/proc/self/statm").ok(),
        }
    }
}

impl Residence for Memory {
    #[cfg(target_os = "linux")]
    fn resident(&self) -> Option<u64> {
        use std::os::unix::fs::FileExt;
        // SAFETY: a plain system call without pointers.
        let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()?;
        let mut text = [0; 128];
        let length = self.counts.as_ref()?.read_at(&mut text, 0).ok()?;
        let pages: u64 = std::str::from_utf8(&text[..length]).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()?;
        Some(pages * page)
    }

    #[cfg(not(target_os = "linux"))]
    fn resident(&self) -> Option<u64> {
        None
    }

    fn beside(&self) -> u64 {
        self.beside
    }

    fn give_back(&self) {
        // SAFETY: the process's allocator is mimalloc, and this may be called at any time on any thread.
        unsafe { libmimalloc_sys::mi_collect(true) };
    }
}
