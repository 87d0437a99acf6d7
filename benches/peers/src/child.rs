//! A workload run once in this process, and what the child tells the runner of it.

use crate::clock::{Stopwatch, Taken};
use crate::inputs::{LINES, MAILS};
use crate::workload::{Language, Workload};
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// How many environments `W5b` makes, after a tenth as many to warm up.
const ENVIRONMENTS: u32 = 2_000;

/// How long one of the workloads may take at most, for the peers whose limit is a time.
pub const LONGEST: Duration = Duration::from_secs(120);

/// What a text is to a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// JSON, which [`Session::parse`] will be asked for.
    Json,
    /// Words, which the program sees as `text`.
    Words,
}

/// A peer: what may be made once for many environments.
pub trait Peer {
    /// The language of its programs.
    fn language(&self) -> Language;

    /// Makes an environment with its limits on, lets `work` use it, and ends it.
    ///
    /// # Errors
    /// What `work` failed with, or why there is no environment.
    fn in_session(&self, work: &mut dyn FnMut(&mut dyn Session) -> Result<(), String>) -> Result<(), String>;
}

/// An environment that programs run in one after the other.
pub trait Session {
    /// Hands in a text.
    ///
    /// # Errors
    /// Why it cannot be taken.
    fn give(&mut self, text: String, meaning: Meaning) -> Result<(), String>;

    /// Parses the JSON text that was given; programs see it as `data`.
    ///
    /// # Errors
    /// Why it is no JSON.
    fn parse(&mut self) -> Result<(), String>;

    /// Compiles and runs a program; its last value as text.
    ///
    /// # Errors
    /// What the peer says is wrong with it.
    fn run(&mut self, program: &str) -> Result<String, String>;
}

/// Runs a workload, prints what came of it as one line of JSON, and is what the child ends with.
pub fn report(peer: &dyn Peer, workload: Workload, inputs: &Path) -> ExitCode {
    match perform(peer, workload, inputs) {
        Ok((taken, answer)) => {
            let mut record = taken.record();
            record.insert("answer".to_string(), json!(answer));
            record.insert("peak_kib".to_string(), json!(peak_kib()));
            println!("{}", Value::Object(record));
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

fn perform(peer: &dyn Peer, workload: Workload, inputs: &Path) -> Result<(Taken, String), String> {
    let program = peer.language().program(workload);
    if workload == Workload::Environment {
        return environments(peer, program);
    }
    let mut outcome = None;
    peer.in_session(&mut |session| {
        match workload {
            Workload::MailsFromText => session.give(read(inputs, MAILS)?, Meaning::Json)?,
            Workload::MailsFromValues => {
                session.give(read(inputs, MAILS)?, Meaning::Json)?;
                session.parse()?;
            }
            Workload::Words => session.give(read(inputs, LINES)?, Meaning::Words)?,
            _ => (),
        }
        let watch = Stopwatch::start();
        if workload == Workload::MailsFromText {
            session.parse()?;
        }
        let answer = session.run(program)?;
        outcome = Some((watch.taken(), answer));
        Ok(())
    })?;
    outcome.ok_or_else(|| "the peer made no environment".to_string())
}

/// The mean time of an environment of its own for one small program.
fn environments(peer: &dyn Peer, program: &str) -> Result<(Taken, String), String> {
    let mut answer = String::new();
    let mut several = |count: u32| {
        for _ in 0..count {
            peer.in_session(&mut |session| session.run(program).map(|value| answer = value))?;
        }
        Ok::<(), String>(())
    };
    several(ENVIRONMENTS / 10)?;
    let watch = Stopwatch::start();
    several(ENVIRONMENTS)?;
    Ok((watch.taken().each(ENVIRONMENTS), answer))
}

fn read(inputs: &Path, name: &str) -> Result<String, String> {
    let path = inputs.join(name);
    std::fs::read_to_string(&path).map_err(|error| format!("{} cannot be read: {error}", path.display()))
}

/// The most memory that this process ever had, in KiB, where the system tells.
fn peak_kib() -> Option<u64> {
    status_kib("VmHWM:")
}

/// The memory that this process has, in KiB, where the system tells.
pub fn resident_kib() -> Option<u64> {
    status_kib("VmRSS:")
}

fn status_kib(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}
