//! One measurement of lispbox, in a process with the allocator of the lispbox binary.
//!
//! Arguments: the workload and the folder of the inputs, with `--by-hand` for the variant without an interpreter; or
//! `--growth`, the kind of growth, and its size.

mod by_hand;
mod growth;
mod peer;
mod tools;

use lispbox::lang::Metered;
use lispbox_peers::child;
use lispbox_peers::growth::Growth;
use lispbox_peers::workload::Workload;
use mimalloc::MiMalloc;
use peer::Lispbox;
use std::path::Path;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: Metered<MiMalloc> = Metered::new(MiMalloc);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let problem = match arguments.as_slice() {
        ["--growth", growth, size] => match (Growth::named(growth), size.parse()) {
            (Some(growth), Ok(size)) => return growth::report(growth, size),
            _ => format!("there is no growth `{growth}` of size `{size}`"),
        },
        [workload, inputs, by_hand @ ..] if matches!(by_hand, [] | ["--by-hand"]) => match Workload::named(workload) {
            Some(workload) => match Lispbox::for_workload(workload, !by_hand.is_empty()) {
                Ok(peer) => return child::report(&peer, workload, Path::new(inputs)),
                Err(problem) => problem,
            },
            None => format!("there is no workload `{workload}`"),
        },
        _ => "usage: lispbox-child WORKLOAD INPUTS [--by-hand]; the runner `peers` is what you want".to_string(),
    };
    eprintln!("{problem}");
    ExitCode::FAILURE
}
