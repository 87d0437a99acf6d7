//! `lispbox audit stats`: how much of it, and how it went.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;
use lispbox::server::{Chain, Kind, Record};

use super::{records, table};
use crate::surroundings::Problem;

/// Counts calls by tool and evaluations by how they ended.
#[derive(Args)]
pub struct Stats {
    /// Only from this time on, as far as it is written: `2026-11-23` or `2026-11-23T10:30`.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
}

/// What is counted of a tool.
#[derive(Default)]
struct Count {
    well: usize,
    refused: usize,
    failed: usize,
    bytes: u64,
    ms: Vec<u64>,
}

impl Stats {
    pub(super) fn run(self, chains: &[Chain]) -> Result<ExitCode, Problem> {
        let mut records = records(chains)?;
        records.retain(|record| self.since.as_ref().is_none_or(|since| record.time.as_str() >= since.as_str()));
        let mut tools: BTreeMap<String, Count> = BTreeMap::new();
        let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
        for record in &records {
            match record.kind {
                Kind::Call => tools.entry(format!("{}/{}", record.server, record.tool)).or_default().take(record),
                Kind::Evaluation => *outcomes.entry(&record.outcome).or_default() += 1,
                Kind::Begin | Kind::End => {}
            }
        }
        let head = ["tool", "calls", "ok", "refused", "failed", "bytes", "median ms", "p95 ms", "most ms"];
        let mut calls = table(&head, 1..head.len());
        for (tool, mut count) in tools {
            count.ms.sort_unstable();
            let at = |part: f64| {
                let place = ((count.ms.len() as f64 * part).ceil() as usize).clamp(1, count.ms.len().max(1)) - 1;
                count.ms.get(place).copied().unwrap_or_default().to_string()
            };
            let sum = count.well + count.refused + count.failed;
            calls.add_row(vec![
                tool,
                sum.to_string(),
                count.well.to_string(),
                count.refused.to_string(),
                count.failed.to_string(),
                count.bytes.to_string(),
                at(0.5),
                at(0.95),
                at(1.0),
            ]);
        }
        println!("{calls}");
        let mut evaluations = table(&["evaluations that ended", "count"], 1..2);
        for (outcome, count) in outcomes {
            evaluations.add_row(vec![outcome.to_owned(), count.to_string()]);
        }
        println!("{evaluations}");
        Ok(ExitCode::SUCCESS)
    }
}

impl Count {
    fn take(&mut self, record: &Record) {
        match record.outcome.as_str() {
            "ok" => self.well += 1,
            "ToolDenied" | "ToolNeedsApproval" => self.refused += 1,
            _ => self.failed += 1,
        }
        self.bytes += record.bytes.unwrap_or_default();
        self.ms.extend(record.ms);
    }
}
