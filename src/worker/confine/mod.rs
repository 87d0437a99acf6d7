//! Drops a worker's privileges before it has read a byte of any program.
//!
//! Two kernel mechanisms: *landlock* denies files, TCP, abstract Unix sockets, and signals to other processes, as far
//! as the kernel supports each; *seccomp* allows only the few system calls that computation, threads and the pipe
//! need. Any other call fails with `EPERM`. One of them suffices to run; if a kernel has neither, the worker reports
//! so and does not run.

use std::io;

use landlock::{ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetStatus, Scope};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

/// The newest landlock ABI that is known here; features that the kernel lacks are left out.
const LANDLOCK: ABI = ABI::V6;

/// Drops the privileges of the process irrevocably. Returns the names of the mechanisms that are in force.
///
/// # Errors
/// Returns the error of each mechanism if none could be enabled.
pub(super) fn confine() -> Result<Vec<String>, String> {
    give_up_privileges().map_err(|problem| format!("the process could not drop its privileges: {problem}"))?;
    let mut walls = Vec::new();
    let mut problems = Vec::new();
    match landlock() {
        Ok(()) => walls.push("landlock".to_string()),
        Err(problem) => problems.push(format!("landlock: {problem}")),
    }
    match seccomp() {
        Ok(()) => walls.push("seccomp".to_string()),
        Err(problem) => problems.push(format!("seccomp: {problem}")),
    }
    if walls.is_empty() {
        return Err(format!("this system cannot confine processes ({})", problems.join("; ")));
    }
    Ok(walls)
}

/// Closes all descriptors except the three standard ones, which the embedding process may have passed on by mistake.
/// Called before we open anything.
pub(super) fn close_descriptors() {
    // SAFETY: a plain system call on integers; none of our code owns a descriptor yet. On a kernel without
    // `close_range` inherited descriptors stay open, and seccomp still allows `read` and `write` on them.
    unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32) };
}

/// Disables privilege gain through `execve`, core dumps, file writes, and access to the memory by processes of the
/// same user.
fn give_up_privileges() -> io::Result<()> {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: plain system calls on integers and on one live struct.
    let done = unsafe {
        [
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
            libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0),
            libc::setrlimit(libc::RLIMIT_CORE, &none),
            libc::setrlimit(libc::RLIMIT_FSIZE, &none),
        ]
    };
    if done.iter().all(|result| *result == 0) { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn landlock() -> Result<(), String> {
    let build = || {
        Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(LANDLOCK))?
            .handle_access(AccessNet::from_all(LANDLOCK))?
            .scope(Scope::from_all(LANDLOCK))?
            .create()?
            .restrict_self()
    };
    match build() {
        Ok(status) if status.ruleset != RulesetStatus::NotEnforced => Ok(()),
        Ok(_) => Err("the kernel does not support it".to_string()),
        Err(problem) => Err(problem.to_string()),
    }
}

fn seccomp() -> Result<(), String> {
    let filters = [threads_only().map_err(|problem| problem.to_string())?, computing_only()?];
    for filter in filters {
        seccompiler::apply_filter(&filter).map_err(|problem| problem.to_string())?;
    }
    Ok(())
}

/// The system calls that computation, memory, threads and the pipe need.
const COMPUTING: &[i64] = &[
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_clone3,
    libc::SYS_close,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_futex,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_madvise,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_read,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_set_robust_list,
    libc::SYS_sigaltstack,
    libc::SYS_write,
];

fn computing_only() -> Result<BpfProgram, String> {
    let build = || -> Result<BpfProgram, seccompiler::BackendError> {
        use SeccompCmpArgLen::{Dword, Qword};
        let masked = |argument, mask: i32, value: i32| {
            let (mask, value) = (mask as u64, value as u64);
            SeccompRule::new(vec![SeccompCondition::new(argument, Qword, SeccompCmpOp::MaskedEq(mask), value)?])
        };
        let equal = |argument, value: u32| {
            SeccompRule::new(vec![SeccompCondition::new(argument, Dword, SeccompCmpOp::Eq, u64::from(value))?])
        };
        let mut rules: Vec<(i64, Vec<SeccompRule>)> = COMPUTING.iter().map(|call| (*call, Vec::new())).collect();
        rules.extend([
            // Threads, but no processes.
            (libc::SYS_clone, vec![masked(0, libc::CLONE_THREAD, libc::CLONE_THREAD)?]),
            // Memory that is never executable.
            (libc::SYS_mmap, vec![masked(2, libc::PROT_EXEC, 0)?]),
            (libc::SYS_mprotect, vec![masked(2, libc::PROT_EXEC, 0)?]),
            // Names of threads and of their memory.
            (libc::SYS_prctl, vec![equal(0, libc::PR_SET_NAME as u32)?, equal(0, libc::PR_SET_VMA as u32)?]),
            // `abort`, which sends a signal to the process itself.
            (libc::SYS_tgkill, vec![equal(0, std::process::id())?]),
        ]);
        let refused = SeccompAction::Errno(libc::EPERM as u32);
        filter(rules, refused, SeccompAction::Allow)
    };
    build().map_err(|problem| problem.to_string())
}

/// The flags of `clone3` are in memory, which no filter can read. It is reported as missing, and the C library falls
/// back to `clone`.
fn threads_only() -> Result<BpfProgram, seccompiler::BackendError> {
    let missing = SeccompAction::Errno(libc::ENOSYS as u32);
    filter(vec![(libc::SYS_clone3, Vec::new())], SeccompAction::Allow, missing)
}

fn filter(
    rules: Vec<(i64, Vec<SeccompRule>)>,
    otherwise: SeccompAction,
    matched: SeccompAction,
) -> Result<BpfProgram, seccompiler::BackendError> {
    let architecture = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules.into_iter().collect(), otherwise, matched, architecture)?.try_into()
}

#[cfg(test)]
mod tests;
