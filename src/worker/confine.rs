//! What takes a worker's powers away, before it has read a byte of any program.
//!
//! Two walls of the kernel, each enough against files and network: *landlock* takes all files, TCP,
//! and signals to others; *seccomp* leaves the few system calls that computing, threads and the one
//! pipe take. Whatever else is asked for fails with `EPERM`. A kernel that has one of them is enough;
//! where neither is had, the worker says so and does not run.

use std::io;

use landlock::{ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetStatus, Scope};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

/// The newest landlock that we know of; what a kernel lacks of it is left out.
const LANDLOCK: ABI = ABI::V6;

/// Takes the process's powers away, for good. Gives the names of the walls that stand.
///
/// # Errors
/// When no wall could be built: what each of them said.
pub(super) fn confine() -> Result<Vec<String>, String> {
    give_up_privileges().map_err(|problem| format!("the process could not give up its privileges: {problem}"))?;
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
        return Err(format!("this system confines no process ({})", problems.join("; ")));
    }
    Ok(walls)
}

/// Closes every descriptor but the three standard ones: what an embedder's process passed on by
/// mistake. It comes before anything of ours is opened.
pub(super) fn close_descriptors() {
    // SAFETY: a plain system call on integers; nothing of ours has a descriptor yet. A kernel that does
    // not know it leaves open what only a process can use that may make system calls of other kinds.
    unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32) };
}

/// No privileges through programs, no core dumps, and nobody of the same user who looks into the memory.
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
        Ok(_) => Err("the kernel does not have it".to_string()),
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

/// System calls that computing, memory, threads and the pipe take.
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
            // Memory that is never run.
            (libc::SYS_mmap, vec![masked(2, libc::PROT_EXEC, 0)?]),
            (libc::SYS_mprotect, vec![masked(2, libc::PROT_EXEC, 0)?]),
            // Names of threads and of their memory.
            (libc::SYS_prctl, vec![equal(0, libc::PR_SET_NAME as u32)?, equal(0, libc::PR_SET_VMA as u32)?]),
            // The end of a process that aborts, which is a signal to itself.
            (libc::SYS_tgkill, vec![equal(0, std::process::id())?]),
        ]);
        let refused = SeccompAction::Errno(libc::EPERM as u32);
        filter(rules, refused, SeccompAction::Allow)
    };
    build().map_err(|problem| problem.to_string())
}

/// The flags of `clone3` stand in memory, where no filter looks: it is said to be missing, and the C
/// library takes `clone` instead.
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
#[path = "confine_tests.rs"]
mod tests;
