//! Measures lispbox against its peers and prints the table; README.md explains how to read it.

mod growth;
mod machine;
mod measure;
#[cfg(feature = "monty")]
mod monty;
mod options;
mod peer;
mod rhai;
mod starlark;
mod table;

use lispbox_peers::growth::Growth;
use machine::Machine;
use options::{Asked, Options};
use serde_json::Value;
use std::process::ExitCode;

/// The allocator of all Rust peers; lispbox, which also meters memory, runs in a separate process.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match options::read(&arguments) {
        Ok(Asked::Help) => {
            print!("{}", options::HELP);
            return ExitCode::SUCCESS;
        }
        Ok(Asked::Child { workload, peer, inputs }) => return peer.be(workload, &inputs),
        Ok(Asked::Table(options)) => compare(&options),
        Ok(Asked::Growth(growths, options)) => grow(&growths, &options),
        Err(problem) => Err(problem),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn compare(options: &Options) -> Result<(), String> {
    let results = measure::all(options)?;
    let machine = Machine::here(options);
    print!("{}", table::markdown(&results, &machine, options));
    keep(options, || table::json(&results, &machine))
}

fn grow(growths: &[Growth], options: &Options) -> Result<(), String> {
    let results = growth::all(growths, options)?;
    let machine = Machine::here(options);
    print!("{}", growth::markdown(&results, &machine, options));
    keep(options, || growth::json(&results, &machine))
}

/// Writes the measurements to the file named on the command line, if any.
fn keep(options: &Options, results: impl FnOnce() -> Value) -> Result<(), String> {
    let Some(path) = &options.json else { return Ok(()) };
    let text = format!("{:#}\n", results());
    std::fs::write(path, text).map_err(|error| format!("{} cannot be written: {error}", path.display()))
}
