//! The memory of this process, and its allocator.

use std::sync::Arc;

use lispbox::lang::Engine;
use lispbox::lang::{Metered, Residence};
use mimalloc::MiMalloc;

use crate::context::Problem;

/// Counts the memory that evaluations hold, to enforce their memory limits.
#[global_allocator]
static ALLOCATOR: Metered<MiMalloc> = Metered::new(MiMalloc);

/// Memory that connections to clients and servers may use in addition to programs, in bytes; it is bounded by the
/// messages they accept (`docs/security.md`).
pub const CONNECTIONS: u64 = 384 << 20;

/// Creates the engine of this process. It enforces memory limits by the allocator's count and by the resident memory of
/// the process, of which up to `beside` bytes are not attributed to programs.
///
/// # Errors
/// As for [`EngineBuilder::build`](lispbox::lang::EngineBuilder::build).
pub fn engine(beside: u64) -> Result<Arc<Engine>, Problem> {
    let engine = Engine::builder().residence(Memory::of_this_process(beside)).build();
    engine.map_err(|problem| Problem::Failed(problem.to_string()))
}

/// Disables transparent huge pages for this process. A long-lived process that uses little memory most of the time
/// would keep most of its huge pages for a few values each: a server with sixteen busy sessions used 170 MiB instead of
/// 64.
pub fn without_huge_pages() {
    // SAFETY: a system call without pointers. If it is refused, everything still works.
    #[cfg(target_os = "linux")]
    unsafe {
        libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0);
    }
}

/// Makes a write beyond the maximum file size of this process (`ulimit -f`) fail like on a full disk, instead of ending
/// the process. This installs an empty handler and not `SIG_IGN`, which child processes would inherit.
pub fn outlives_large_files() {
    #[cfg(unix)]
    {
        extern "C" fn nothing(_signal: libc::c_int) {}
        let handler = nothing as extern "C" fn(libc::c_int);
        // SAFETY: the handler does nothing, so it may interrupt the process at any point.
        unsafe { libc::signal(libc::SIGXFSZ, handler as libc::sighandler_t) };
    }
}

/// The memory usage of the process, as reported by Linux.
struct Memory {
    beside: u64,
    #[cfg(target_os = "linux")]
    counts: Option<std::fs::File>,
}

impl Memory {
    /// Opens the kernel's counters; without them, the resident memory is unknown.
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
        // SAFETY: a system call without pointers.
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
        // SAFETY: mimalloc is the allocator of the process, and this function may be called at any time on any thread.
        unsafe { libmimalloc_sys::mi_collect(true) };
    }
}
