//! The machine, the date and the versions of a measurement.

use crate::options::Options;
use crate::peer::Peer;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// The circumstances of a table.
pub struct Machine {
    /// The date, in UTC.
    pub date: String,
    /// The number of cores and the processor model; never the name of the machine.
    pub class: String,
    /// The compiler of all Rust code.
    pub compiler: String,
    /// The version of each peer.
    pub versions: Vec<(Peer, String)>,
}

impl Machine {
    /// Collects the circumstances of this run.
    pub fn here(options: &Options) -> Machine {
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let known = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = known.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        let model = model.map_or("processor unknown", |(_, model)| model.trim());
        let versions = options.peers.iter().map(|peer| (*peer, version(*peer, options))).collect();
        let compiler = said_by(Command::new("rustc").arg("--version"));
        let compiler = compiler.unwrap_or_else(|| "compiler unknown".to_string());
        Machine { date: today(), class: format!("{cores} cores, {model}"), compiler, versions }
    }
}

fn version(peer: Peer, options: &Options) -> String {
    let unknown = || "version unknown".to_string();
    match peer {
        Peer::Cpython => said_by(Command::new(&options.python).arg("--version")).unwrap_or_else(unknown),
        Peer::Lispbox | Peer::ByHand => {
            let locked = locked("lispbox").unwrap_or_else(unknown);
            let here = Path::new(env!("CARGO_MANIFEST_DIR"));
            let commit = said_by(Command::new("git").arg("-C").arg(here).args([
                "describe",
                "--always",
                "--dirty",
                "--exclude",
                "*",
            ]));
            commit.map_or_else(|| locked.clone(), |commit| format!("{locked} at {commit}"))
        }
        _ => locked(peer.name()).unwrap_or_else(unknown),
    }
}

fn said_by(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

/// The version of a crate in the lock file of this package.
fn locked(name: &str) -> Option<String> {
    let mut lines = include_str!("../../../Cargo.lock").lines();
    lines.find(|line| *line == format!("name = {name:?}"))?;
    Some(lines.next()?.strip_prefix("version = ")?.trim_matches('"').to_string())
}

/// The current date as `2026-11-22`.
fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let mut days = seconds / 86_400;
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let mut month = 0;
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    format!("{year}-{:02}-{:02}", month + 1, days + 1)
}
