//! Growth of the cost of lispbox: each size is measured in a separate process, the sizes of a row alternately.

use crate::machine::Machine;
use crate::measure::{build_lispbox_child, record_of};
use crate::options::Options;
use crate::peer::Peer;
use crate::table::{bytes, median, ratios, time};
use lispbox_peers::growth::Growth;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::process::Command;

/// The measurements of one size.
pub struct Grown {
    growth: Growth,
    size: usize,
    /// Seconds of each run, and the number of units by which they are divided.
    seconds: Vec<f64>,
    units: u64,
    /// The cost of a unit relative to the first size in the same round: 1.0 is equal.
    ratios: Vec<f64>,
    /// Metered bytes and growth of the process, per holder.
    bytes: Option<u64>,
    resident: Option<u64>,
}

/// Measures everything that was requested.
///
/// # Errors
/// Returns an error if a child process cannot be built or run.
pub fn all(growths: &[Growth], options: &Options) -> Result<Vec<Grown>, String> {
    build_lispbox_child()?;
    let mut results = Vec::new();
    for growth in growths {
        results.extend(sizes(*growth, options)?);
    }
    Ok(results)
}

fn sizes(growth: Growth, options: &Options) -> Result<Vec<Grown>, String> {
    let mut rows: Vec<Grown> = Vec::new();
    for round in 0..options.pairs {
        let mut first = None;
        for (index, size) in growth.sizes().into_iter().enumerate() {
            eprintln!("{} {size}, round {} of {}", growth.name(), round + 1, options.pairs);
            let record = child(growth, size)?;
            let number = |name: &str| record[name].as_u64();
            let seconds = options.seconds(&record)?;
            let units = number("units").filter(|units| *units > 0).ok_or("the record has no units")?;
            let each = seconds / units as f64;
            if round == 0 {
                let (bytes, resident) = (number("bytes"), number("resident"));
                rows.push(Grown { growth, size, seconds: vec![], units, ratios: vec![], bytes, resident });
            }
            rows[index].seconds.push(seconds);
            rows[index].ratios.push(each / *first.get_or_insert(each));
        }
    }
    Ok(rows)
}

fn child(growth: Growth, size: usize) -> Result<Value, String> {
    let runner = std::env::current_exe().map_err(|error| format!("the runner does not find itself: {error}"))?;
    let mut command = Command::new(runner.with_file_name("lispbox-child"));
    command.args(["--growth", growth.name(), &size.to_string()]);
    record_of(command).map_err(|problem| format!("{} {size}: {problem}", growth.name()))
}

/// Formats the table and its explanation.
pub fn markdown(results: &[Grown], machine: &Machine, options: &Options) -> String {
    let mut text = String::from("| what grows | size | time | for each | to the first | memory for each |\n");
    text.push_str("|---|---|---|---|---|---|\n");
    for grown in results {
        let Some(seconds) = median(&grown.seconds) else { continue };
        let (growth, each) = (grown.growth, time(seconds / grown.units as f64));
        let compared = match median(&grown.ratios) {
            Some(_) if grown.size != growth.sizes()[0] => ratios(&grown.ratios),
            _ => "1".to_string(),
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {each} per {} | {compared} | {} |",
            growth.title(),
            grown.size,
            time(seconds),
            growth.unit(),
            memory(grown)
        );
    }
    let rounds = results.iter().map(|grown| grown.seconds.len()).max().unwrap_or(0);
    let _ = writeln!(
        text,
        "\n{}. Medians of {rounds} rounds; what one took to what one of the first size took in the same round \
        (least–most): 1 is linear.\nMemory: the most that was alive, the session's own included, as limits count it; \
        for sessions what each holds.\n",
        options.clock()
    );
    let _ = writeln!(text, "Measured on {}: {}; {}.\n", machine.date, machine.class, machine.compiler);
    if let Some((_, version)) = machine.versions.iter().find(|(peer, _)| *peer == Peer::Lispbox) {
        let _ = writeln!(text, "- lispbox {version}; limits: all on, raised beyond the largest size");
    }
    text
}

fn memory(grown: &Grown) -> String {
    let (Some(holder), Some(counted)) = (grown.growth.holder(), grown.bytes) else { return "–".to_string() };
    let resident = grown.resident.map(|resident| format!(" ({} of the process)", bytes(resident)));
    format!("{}{} per {holder}", bytes(counted), resident.unwrap_or_default())
}

/// Serializes all measurements.
pub fn json(results: &[Grown], machine: &Machine) -> Value {
    let measurements: Vec<Value> = results
        .iter()
        .map(|grown| {
            json!({
                "growth": grown.growth.name(),
                "size": grown.size,
                "unit": grown.growth.unit(),
                "units": grown.units,
                "seconds": grown.seconds,
                "ratios": grown.ratios,
                "bytes": grown.bytes,
                "resident": grown.resident,
            })
        })
        .collect();
    json!({
        "date": machine.date,
        "machine": machine.class,
        "compiler": machine.compiler,
        "measurements": measurements,
    })
}
