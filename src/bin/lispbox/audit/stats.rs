//! `lispbox audit stats`: the number of calls and evaluations, and their outcomes.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;
use lispbox::lang::internal::foreign_text;
use lispbox::server::{Chain, Kind, Record};

use super::since::Since;
use super::{ASKED, UNKNOWN, records, table};
use crate::context::Problem;
use crate::output::outln;

/// Counts calls by tool and evaluations by outcome.
#[derive(Args)]
pub struct Stats {
    /// Only records since this time, as for `audit show`: `1h`, `yesterday`, `2026-11-23T10:30`.
    #[arg(long, value_name = "TIME")]
    since: Option<Since>,
}

/// The counts of a tool.
#[derive(Default)]
struct Count {
    well: usize,
    refused: usize,
    failed: usize,
    unknown: usize,
    bytes: u64,
    ms: Vec<u64>,
}

impl Stats {
    pub(super) fn run(self, chains: &[Chain]) -> Result<ExitCode, Problem> {
        let mut records = records(chains)?;
        records.retain(|record| self.since.is_none_or(|since| since.has(&record.time)));
        let mut tools: BTreeMap<String, Count> = BTreeMap::new();
        let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
        for record in &records {
            match record.kind {
                // The call is recorded again when it is made or refused.
                Kind::Call if record.outcome == ASKED => {}
                Kind::Intent | Kind::Call => {
                    tools.entry(foreign_text::qualified(&record.server, &record.tool)).or_default().take(record)
                }
                Kind::Evaluation => *outcomes.entry(&record.outcome).or_default() += 1,
                // A program whose start was recorded and whose end was not.
                Kind::Program if record.outcome == UNKNOWN => *outcomes.entry(UNKNOWN).or_default() += 1,
                Kind::Begin | Kind::Program | Kind::Env | Kind::Resource | Kind::Lost | Kind::End => {}
            }
        }
        let head = ["tool", "calls", "ok", "refused", "failed", "unknown", "bytes", "median ms", "p95 ms", "max ms"];
        let mut calls = table(&head, 1..head.len());
        for (tool, mut count) in tools {
            count.ms.sort_unstable();
            let at = |part: f64| {
                let place = ((count.ms.len() as f64 * part).ceil() as usize).clamp(1, count.ms.len().max(1)) - 1;
                count.ms.get(place).copied().unwrap_or_default().to_string()
            };
            let sum = count.well + count.refused + count.failed + count.unknown;
            calls.add_row(vec![
                tool,
                sum.to_string(),
                count.well.to_string(),
                count.refused.to_string(),
                count.failed.to_string(),
                count.unknown.to_string(),
                count.bytes.to_string(),
                at(0.5),
                at(0.95),
                at(1.0),
            ]);
        }
        outln!("{calls}");
        let mut evaluations = table(&["evaluations", "count"], 1..2);
        for (outcome, count) in outcomes {
            evaluations.add_row(vec![outcome.to_owned(), count.to_string()]);
        }
        outln!("{evaluations}");
        Ok(ExitCode::SUCCESS)
    }
}

impl Count {
    fn take(&mut self, record: &Record) {
        match record.outcome.as_str() {
            "ok" => self.well += 1,
            "ToolDenied" | "ToolNeedsApproval" => self.refused += 1,
            UNKNOWN => self.unknown += 1,
            _ => self.failed += 1,
        }
        self.bytes += record.bytes.unwrap_or_default();
        self.ms.extend(record.ms);
    }
}
