//! Runs a workload once in this process and reports the result to the runner.

use crate::clock::{Stopwatch, Taken};
use crate::inputs::{LINES, MAILS};
use crate::workload::{Language, Workload};
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// The number of environments for `W5b`, after a tenth as many for warm-up.
const ENVIRONMENTS: u32 = 2_000;

/// Maximum duration of a workload, for peers with a time limit.
pub const LONGEST: Duration = Duration::from_secs(120);

/// The interpretation of a text by a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// JSON, to be parsed by [`Session::parse`].
    Json,
    /// Words, which the program sees as `text`.
    Words,
}

/// A peer, with the state that many environments can share.
pub trait Peer {
    /// The language of its programs.
    fn language(&self) -> Language;

    /// Creates an environment with limits on, passes it to `work`, and drops it.
    ///
    /// # Errors
    /// Returns the error of `work`, or the reason why the environment cannot be created.
    fn in_session(&self, work: &mut dyn FnMut(&mut dyn Session) -> Result<(), String>) -> Result<(), String>;
}

/// An environment in which programs run one after the other.
pub trait Session {
    /// Passes a text to the environment.
    ///
    /// # Errors
    /// Returns the reason why it is not accepted.
    fn give(&mut self, text: String, meaning: Meaning) -> Result<(), String>;

    /// Parses the JSON text passed before; programs see it as `data`.
    ///
    /// # Errors
    /// Returns the reason why it is not JSON.
    fn parse(&mut self) -> Result<(), String>;

    /// Compiles and runs a program; returns its last value as text.
    ///
    /// # Errors
    /// Returns the error that the peer reports.
    fn run(&mut self, program: &str) -> Result<String, String>;
}

/// Runs a workload and prints the result as one line of JSON; returns the exit code of the child.
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

/// The mean time to create an environment and run one small program in it.
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

/// Peak memory of this process, in KiB, if the system provides it.
fn peak_kib() -> Option<u64> {
    status_kib("VmHWM:")
}

/// Resident memory of this process, in KiB, if the system provides it.
pub fn resident_kib() -> Option<u64> {
    status_kib("VmRSS:")
}

fn status_kib(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}
