//! The processes below the server, as `/proc` shows them. Where there is no `/proc`, there is nothing to see.

use std::collections::HashSet;

/// A process.
#[derive(Clone, Debug)]
pub struct Process {
    /// Its number.
    pub id: u32,
    /// When it was started, in ticks since the system was: with the number it is nobody else.
    pub started: u64,
    /// What it is.
    pub role: Role,
    /// True if it computes right now.
    pub runs: bool,
    /// True if it has ended and nobody has taken note of it.
    pub is_zombie: bool,
    /// Its threads.
    pub threads: u64,
    /// Bytes that it has in memory.
    pub resident: u64,
    parent: u32,
}

/// What a process below the server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It runs programs.
    Worker,
    /// It is a server behind the server.
    Downstream,
    /// Something else: the server itself, or the shell that watches over its children.
    Other,
}

/// The process of that number, if there is one.
pub fn process(id: u32) -> Option<Process> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name stands in brackets and may have any characters in it.
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
    // SAFETY: a plain question to the system.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).unwrap_or(4096)
}

#[cfg(not(unix))]
fn page() -> u64 {
    4096
}

/// All below a process: its children, theirs, and so on.
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

/// How many file descriptors a process has open, where the system tells.
pub fn descriptors(id: u32) -> Option<u64> {
    Some(std::fs::read_dir(format!("/proc/{id}/fd")).ok()?.count() as u64)
}

impl Process {
    /// True while it lives and its number is nobody else's.
    pub fn lives(&self) -> bool {
        process(self.id).is_some_and(|process| process.started == self.started && !process.is_zombie)
    }

    /// Kills it, if it is still what it was when it was looked at. False if it is not.
    #[cfg(unix)]
    pub fn kill(&self) -> bool {
        let same = process(self.id).is_some_and(|now| now.started == self.started && now.parent == self.parent);
        let Ok(id) = libc::pid_t::try_from(self.id) else { return false };
        // SAFETY: a plain system call on integers. The process was seen a moment ago.
        same && unsafe { libc::kill(id, libc::SIGKILL) } == 0
    }

    /// There is no such thing on this system.
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
