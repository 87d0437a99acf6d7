//! The results as Markdown and as JSON.

use crate::machine::Machine;
use crate::measure::Measured;
use crate::options::Options;
use crate::peer::Peer;
use lispbox_peers::workload::{ALL, Workload};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// Formats the table and its explanation.
pub fn markdown(results: &[Measured], machine: &Machine, options: &Options) -> String {
    let peers: Vec<Peer> =
        Peer::ALL.into_iter().filter(|peer| results.iter().any(|measured| measured.peer == *peer)).collect();
    let workloads: Vec<Workload> =
        ALL.into_iter().filter(|workload| results.iter().any(|measured| measured.workload == *workload)).collect();
    let find = |workload: Workload, peer: Peer| {
        results.iter().find(|measured| measured.workload == workload && measured.peer == peer)
    };
    let mut text = String::from("| workload |");
    for peer in &peers {
        let _ = write!(text, " {} |", peer.name());
    }
    let _ = writeln!(text, "\n|---|{}", "---|".repeat(peers.len()));
    for workload in &workloads {
        let _ = write!(text, "| {} {} |", workload.name(), workload.title());
        for peer in &peers {
            let cell = find(*workload, *peer).map_or_else(|| "–".to_string(), cell);
            let _ = write!(text, " {cell} |");
        }
        text.push('\n');
    }
    if workloads.contains(&Workload::MailsFromText) {
        text.push_str("| W3a peak memory, MiB |");
        for peer in &peers {
            let most = find(Workload::MailsFromText, *peer)
                .and_then(|measured| measured.samples.iter().filter_map(|sample| sample.peak_kib).max());
            let _ = write!(text, " {} |", most.map_or_else(|| "–".to_string(), |kib| (kib / 1024).to_string()));
        }
        text.push('\n');
    }
    let pairs = results.iter().map(|measured| measured.ratios.len()).max().unwrap_or(0);
    let _ = writeln!(
        text,
        "\n{}{}. Time to CPython's: the median of {pairs} pairs (least–most); for CPython the median time itself.\n",
        options.clock(),
        if options.cpu { ", but the clock's for W5a" } else { "" }
    );
    if workloads.contains(&Workload::Process) && peers.contains(&Peer::Lispbox) {
        text.push_str(match options.binary {
            Some(_) => "W5a starts lispbox's own binary: `lispbox eval`.\n\n",
            None => "W5a starts a small process of the crate for lispbox, not its binary (`--binary PATH`).\n\n",
        });
    }
    let _ = writeln!(text, "Measured on {}: {}; {}.\n", machine.date, machine.class, machine.compiler);
    for (peer, version) in &machine.versions {
        let _ = writeln!(text, "- {} {version}; limits: {}", peer.name(), peer.limits());
    }
    text
}

fn cell(measured: &Measured) -> String {
    if measured.ratios.is_empty() {
        let seconds: Vec<f64> = measured.samples.iter().map(|sample| sample.seconds).collect();
        return median(&seconds).map_or_else(|| "–".to_string(), time);
    }
    ratios(&measured.ratios)
}

/// Formats the median of ratios, with the minimum and the maximum if there are several.
pub fn ratios(ratios: &[f64]) -> String {
    let middle = median(ratios).map_or_else(|| "–".to_string(), ratio);
    if ratios.len() < 2 {
        return middle;
    }
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let most = ratios.iter().copied().fold(0.0, f64::max);
    format!("{middle} ({}–{})", ratio(least), ratio(most))
}

/// Formats a ratio with three significant digits.
fn ratio(ratio: f64) -> String {
    match ratio {
        10.0.. => format!("{ratio:.1}"),
        0.1.. => format!("{ratio:.2}"),
        _ => format!("{ratio:.3}"),
    }
}

/// Formats a time with three significant digits.
pub fn time(seconds: f64) -> String {
    let (amount, unit) = match seconds {
        1.0.. => (seconds, "s"),
        1e-3.. => (seconds * 1e3, "ms"),
        1e-6.. => (seconds * 1e6, "µs"),
        _ => (seconds * 1e9, "ns"),
    };
    format!("{} {unit}", digits(amount))
}

/// Formats a number of bytes with three significant digits.
pub fn bytes(bytes: u64) -> String {
    match bytes as f64 {
        amount @ 1_048_576.0.. => format!("{} MiB", digits(amount / 1_048_576.0)),
        amount @ 1_024.0.. => format!("{} KiB", digits(amount / 1_024.0)),
        _ => format!("{bytes} B"),
    }
}

fn digits(amount: f64) -> String {
    match amount {
        100.0.. => format!("{amount:.0}"),
        10.0.. => format!("{amount:.1}"),
        _ => format!("{amount:.2}"),
    }
}

/// The median: the middle number, or the mean of the two in the middle.
pub fn median(numbers: &[f64]) -> Option<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        even if even % 2 == 0 => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
        _ => Some(sorted[middle]),
    }
}

/// Serializes all measurements.
pub fn json(results: &[Measured], machine: &Machine) -> Value {
    let versions: Map<String, Value> =
        machine.versions.iter().map(|(peer, version)| (peer.name().to_string(), json!(version))).collect();
    let limits: Map<String, Value> =
        machine.versions.iter().map(|(peer, _)| (peer.name().to_string(), json!(peer.limits()))).collect();
    let measurements: Vec<Value> = results
        .iter()
        .map(|measured| {
            json!({
                "workload": measured.workload.name(),
                "peer": measured.peer.name(),
                "ratio": median(&measured.ratios),
                "ratios": measured.ratios,
                "seconds": measured.samples.iter().map(|sample| sample.seconds).collect::<Vec<_>>(),
                "peak_kib": measured.samples.iter().filter_map(|sample| sample.peak_kib).max(),
            })
        })
        .collect();
    json!({
        "date": machine.date,
        "machine": machine.class,
        "compiler": machine.compiler,
        "versions": versions,
        "limits": limits,
        "measurements": measurements,
    })
}
