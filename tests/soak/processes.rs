//! The descendants of the server, read from `/proc`. Without `/proc`, no processes are reported.

use std::collections::HashSet;

/// A process.
#[derive(Clone, Debug)]
pub struct Process {
    /// The process id.
    pub id: u32,
    /// Start time in clock ticks since boot: together with the id, it identifies the process uniquely.
    pub started: u64,
    /// The role of the process.
    pub role: Role,
    /// True if it is running on a processor or ready to run.
    pub runs: bool,
    /// True if it has ended and has not been reaped.
    pub is_zombie: bool,
    /// The number of threads.
    pub threads: u64,
    /// Resident memory in bytes.
    pub resident: u64,
    parent: u32,
}

/// The role of a descendant of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Runs programs.
    Worker,
    /// A downstream server.
    Downstream,
    /// Anything else: the server itself, or the shell that supervises its child processes.
    Other,
}

/// Reads the process with this id, if it exists.
pub fn process(id: u32) -> Option<Process> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name is in parentheses and may contain any character.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let number = |place: usize| fields.get(place)?.parse::<u64>().ok();
    let state = *fields.first()?;
    let words = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    let role = match words.split(|byte| *byte == 0).nth(1) {
        Some(b"worker") => Role::Worker,
        Some(b"sample-mailbox") => Role::Downstream,
        _ => Role::Other,
    };
    Some(Process {
        id,
        started: number(19)?,
        role,
        runs: state == "R",
        is_zombie: matches!(state, "Z" | "X"),
        threads: number(17)?,
        resident: resident(id).unwrap_or(0),
        parent: u32::try_from(number(1)?).ok()?,
    })
}

fn resident(id: u32) -> Option<u64> {
    let counts = std::fs::read_to_string(format!("/proc/{id}/statm")).ok()?;
    let pages: u64 = counts.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages * page())
}

#[cfg(unix)]
fn page() -> u64 {
    // SAFETY: `sysconf` takes an integer and has no preconditions.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).unwrap_or(4096)
}

#[cfg(not(unix))]
fn page() -> u64 {
    4096
}

/// All descendants of a process.
pub fn below(ancestor: u32) -> Vec<Process> {
    let Ok(folder) = std::fs::read_dir("/proc") else { return Vec::new() };
    let numbers = folder.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut others: Vec<Process> = numbers.filter_map(process).collect();
    let mut known = HashSet::from([ancestor]);
    let mut found = Vec::new();
    loop {
        let (more, rest): (Vec<_>, Vec<_>) = others.into_iter().partition(|other| known.contains(&other.parent));
        if more.is_empty() {
            return found;
        }
        known.extend(more.iter().map(|process| process.id));
        found.extend(more);
        others = rest;
    }
}

/// The number of open file descriptors of a process, if the system provides it.
pub fn descriptors(id: u32) -> Option<u64> {
    Some(std::fs::read_dir(format!("/proc/{id}/fd")).ok()?.count() as u64)
}

impl Process {
    /// True while the process is alive and its id has not been reused.
    pub fn lives(&self) -> bool {
        process(self.id).is_some_and(|process| process.started == self.started && !process.is_zombie)
    }

    /// Kills the process if it still has the same start time and parent. Returns false if it has not, or if the kill
    /// fails.
    #[cfg(unix)]
    pub fn kill(&self) -> bool {
        let same = process(self.id).is_some_and(|now| now.started == self.started && now.parent == self.parent);
        let Ok(id) = libc::pid_t::try_from(self.id) else { return false };
        // SAFETY: a system call on integers. The identity of the process was verified just before.
        same && unsafe { libc::kill(id, libc::SIGKILL) } == 0
    }

    /// Not supported on this system.
    #[cfg(not(unix))]
    pub fn kill(&self) -> bool {
        false
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_found_and_killed() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep is there");
        let own = std::process::id();
        let found = below(own).into_iter().find(|process| process.id == child.id()).expect("it is below us");
        assert!(found.lives() && found.role == Role::Other && found.threads == 1);
        assert!(process(own).is_some_and(|own| own.resident > 100_000));
        assert!(descriptors(own).is_some_and(|count| count > 2));
        assert!(found.kill());
        child.wait().expect("it ended");
        assert!(!found.lives() && !found.kill());
    }
}
