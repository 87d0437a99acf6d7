//! Runs the child processes in pairs and compares their answers.

use crate::options::Options;
use crate::peer::Peer;
use lispbox_peers::inputs::Inputs;
use lispbox_peers::workload::Workload;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// The number of processes whose median is one measurement of `W5a`.
const STARTS: usize = 9;

/// The result of one child process.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Seconds of the measured part.
    pub seconds: f64,
    /// Peak memory of the process, if it reported it.
    pub peak_kib: Option<u64>,
}

/// The measurements of a peer in a workload.
pub struct Measured {
    /// The workload.
    pub workload: Workload,
    /// The peer.
    pub peer: Peer,
    /// Its runs.
    pub samples: Vec<Sample>,
    /// Its time relative to CPython in each pair; empty for CPython itself, and if CPython is absent.
    pub ratios: Vec<f64>,
}

/// Measures everything that was requested.
///
/// # Errors
/// Returns an error if a child process cannot be built or run, or if two peers give different answers.
pub fn all(options: &Options) -> Result<Vec<Measured>, String> {
    build_lispbox_child()?;
    let mut peers = options.peers.clone();
    if peers.contains(&Peer::Cpython) && !options.python.exists() {
        let python = options.python.display();
        eprintln!("{python} is missing: CPython is skipped, and there are times instead of ratios (see --python)");
        peers.retain(|peer| *peer != Peer::Cpython);
    }
    eprintln!("writing the inputs");
    let inputs = Inputs::write().map_err(|error| format!("the inputs cannot be written: {error}"))?;
    let mut results = Vec::new();
    for workload in &options.workloads {
        let peers: Vec<Peer> = peers.iter().copied().filter(|peer| peer.does(*workload)).collect();
        results.extend(pairs(*workload, &peers, inputs.folder(), options)?);
    }
    Ok(results)
}

/// Builds the child process of lispbox, which is a separate binary because of its allocator; `cargo run` builds only
/// the runner.
///
/// # Errors
/// Returns an error if it cannot be built, or if the runner is not an optimised build.
pub fn build_lispbox_child() -> Result<(), String> {
    if cfg!(debug_assertions) {
        return Err("this build is not optimised, so its figures mean nothing; run with --release".to_string());
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--release", "--quiet", "--bin", "lispbox-child", "--manifest-path"]);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"));
    if cfg!(feature = "monty") {
        // With the features of the runner, so that common dependencies are built only once.
        command.args(["--features", "monty"]);
    }
    let runner = std::env::current_exe().map_err(|error| format!("the runner does not find itself: {error}"))?;
    if let Some(target) = runner.parent().and_then(Path::parent) {
        // In the target folder of the runner.
        command.arg("--target-dir").arg(target);
    }
    let status = command.status().map_err(|error| format!("cargo cannot be started: {error}"))?;
    match status.success() && runner.with_file_name("lispbox-child").exists() {
        true => Ok(()),
        false => Err("lispbox-child cannot be built beside the runner; cargo says why above".to_string()),
    }
}

/// Runs each peer next to CPython, alternately before and after it.
fn pairs(workload: Workload, peers: &[Peer], inputs: &Path, options: &Options) -> Result<Vec<Measured>, String> {
    let compared: Vec<Peer> = peers.iter().copied().filter(|peer| *peer != Peer::Cpython).collect();
    let with_cpython = compared.len() < peers.len();
    let measured = |peer: &Peer| Measured { workload, peer: *peer, samples: Vec::new(), ratios: Vec::new() };
    let mut others: Vec<Measured> = compared.iter().map(measured).collect();
    let mut cpython = measured(&Peer::Cpython);
    let mut runner = Runner { workload, inputs, options, answer: None };
    // The first start of a program reads it from disk, so it is not measured.
    for peer in peers {
        runner.run(*peer)?;
    }
    for pair in 0..options.pairs {
        for other in &mut others {
            eprintln!("{} {}, pair {} of {}", workload.name(), other.peer.name(), pair + 1, options.pairs);
            let before = if pair % 2 == 1 && with_cpython { Some(runner.run(Peer::Cpython)?) } else { None };
            let sample = runner.run(other.peer)?;
            let beside = match before {
                Some(before) => Some(before),
                None if with_cpython => Some(runner.run(Peer::Cpython)?),
                None => None,
            };
            if let Some(beside) = beside {
                other.ratios.push(sample.seconds / beside.seconds);
                cpython.samples.push(beside);
            }
            other.samples.push(sample);
        }
        if others.is_empty() {
            cpython.samples.push(runner.run(Peer::Cpython)?);
        }
    }
    if with_cpython {
        others.push(cpython);
    }
    Ok(others)
}

/// Runs child processes of one workload, which must all give the same answer.
struct Runner<'a> {
    workload: Workload,
    inputs: &'a Path,
    options: &'a Options,
    /// The first answer and its peer.
    answer: Option<(Peer, String)>,
}

impl Runner<'_> {
    fn run(&mut self, peer: Peer) -> Result<Sample, String> {
        let command = || peer.command(self.workload, self.inputs, self.options);
        let (sample, answer) = if self.workload == Workload::Process {
            let mut starts = (0..STARTS).map(|_| start(command()?)).collect::<Result<Vec<_>, String>>();
            if let Ok(starts) = &mut starts {
                starts.sort_by(|(one, _), (other, _)| one.seconds.total_cmp(&other.seconds));
            }
            starts.map(|mut starts| starts.swap_remove(STARTS / 2))
        } else {
            finish(command()?, self.options)
        }
        .map_err(|problem| format!("{} of {}: {problem}", self.workload.name(), peer.name()))?;
        let answer = canonical(&answer);
        match &self.answer {
            Some((first, expected)) if *expected != answer => {
                let (workload, name, first) = (self.workload.name(), peer.name(), first.name());
                return Err(format!("{workload}: {name} answers\n{answer}\nwhere {first} answers\n{expected}"));
            }
            Some(_) => (),
            None => self.answer = Some((peer, answer)),
        }
        Ok(sample)
    }
}

/// Waits for a child that measures its own time.
fn finish(command: Command, options: &Options) -> Result<(Sample, String), String> {
    let record = record_of(command)?;
    let seconds = options.seconds(&record)?;
    let answer = record["answer"].as_str().ok_or("the record has no answer")?.to_string();
    Ok((Sample { seconds, peak_kib: record["peak_kib"].as_u64() }, answer))
}

/// Waits for a child and parses the one line of JSON that it prints.
///
/// # Errors
/// Returns an error if it cannot be started, fails, or prints anything else.
pub fn record_of(mut command: Command) -> Result<Value, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("cannot be started: {error}"))?;
    if !output.status.success() {
        return Err(format!("{}\n{}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("no record came: {error}"))
}

/// Measures the time from the start of a process to its first line.
fn start(mut command: Command) -> Result<(Sample, String), String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let started = Instant::now();
    let mut child = command.spawn().map_err(|error| format!("cannot be started: {error}"))?;
    let mut output = BufReader::new(child.stdout.take().ok_or("its output is lost")?);
    let mut line = String::new();
    output.read_line(&mut line).map_err(|error| format!("its output cannot be read: {error}"))?;
    let seconds = started.elapsed().as_secs_f64();
    let mut rest = Vec::new();
    output.read_to_end(&mut rest).map_err(|error| format!("its output cannot be read: {error}"))?;
    let status = child.wait().map_err(|error| format!("it is lost: {error}"))?;
    if !status.success() {
        return Err(status.to_string());
    }
    let answer = match serde_json::from_str::<Value>(&line) {
        Ok(Value::Object(record)) => record.get("answer").and_then(Value::as_str).unwrap_or_default().to_string(),
        _ => line.trim().to_string(),
    };
    Ok((Sample { seconds, peak_kib: None }, answer))
}

/// The canonical form of an answer: sorted keys, fractions rounded to six digits.
fn canonical(answer: &str) -> String {
    fn write(value: &Value) -> String {
        match value {
            Value::Object(entries) => {
                let mut written: Vec<String> =
                    entries.iter().map(|(key, value)| format!("{key:?}: {}", write(value))).collect();
                written.sort();
                format!("{{{}}}", written.join(", "))
            }
            Value::Array(items) => format!("[{}]", items.iter().map(write).collect::<Vec<_>>().join(", ")),
            Value::Number(number) if number.is_f64() => format!("{:.6}", number.as_f64().unwrap_or(f64::NAN)),
            other => other.to_string(),
        }
    }
    serde_json::from_str::<Value>(answer).map_or_else(|_| answer.to_string(), |value| write(&value))
}
