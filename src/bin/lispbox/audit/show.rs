//! `lispbox audit show`: what was called.

use std::process::ExitCode;

use clap::Args;
use comfy_table::Cell;
use lispbox::server::{Chain, Kind, Record};

use super::{records, table};
use crate::surroundings::Problem;

/// How much of the arguments is shown, in characters.
const ARGUMENTS_SHOWN: usize = 120;

/// Shows the latest records, the newest last.
#[derive(Args)]
pub struct Show {
    /// How many.
    #[arg(long, value_name = "COUNT", default_value_t = 40)]
    last: usize,
    /// Only calls of this server.
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// Only calls of this tool.
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Only what this principal did.
    #[arg(long, value_name = "NAME")]
    principal: Option<String>,
    /// Only what ended so: `ok`, or an error code such as `ToolDenied`.
    #[arg(long, value_name = "CODE")]
    outcome: Option<String>,
    /// Only from this time on, as far as it is written: `2026-11-23` or `2026-11-23T10:30`.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Evaluations too.
    #[arg(long)]
    evaluations: bool,
    /// Whole records, a line of JSON each.
    #[arg(long)]
    json: bool,
}

impl Show {
    pub(super) fn run(self, chains: &[Chain]) -> Result<ExitCode, Problem> {
        let mut records = records(chains)?;
        records.retain(|record| self.wants(record));
        let older = records.len().saturating_sub(self.last);
        if self.json {
            for record in &records[older..] {
                println!("{}", serde_json::to_string(record).map_err(|problem| Problem::Failed(problem.to_string()))?);
            }
            return Ok(ExitCode::SUCCESS);
        }
        let mut shown = table(&["time", "who", "what", "arguments", "outcome", "bytes", "ms"], 5..7);
        for record in &records[older..] {
            let what = match record.kind {
                Kind::Evaluation => format!("program {}", record.program.get(..8).unwrap_or_default()),
                _ => format!("{}/{}", record.server, record.tool),
            };
            let arguments = record.arguments.as_ref().map(ToString::to_string).unwrap_or_default();
            let mut outcome = record.outcome.clone();
            if !record.quarantine.is_empty() {
                outcome.push_str(&format!(", quarantine: {}", record.quarantine.join(", ")));
            }
            shown.add_row(vec![
                Cell::new(record.time.get(..19).unwrap_or(&record.time).replace('T', " ")),
                Cell::new(&record.principal),
                Cell::new(plain(&what)),
                Cell::new(plain(&arguments)),
                Cell::new(plain(&outcome)),
                Cell::new(number(record.bytes)),
                Cell::new(number(record.ms)),
            ]);
        }
        println!("{shown}");
        if older > 0 {
            println!("{older} older ones are not shown; see --last, --since and --json");
        }
        Ok(ExitCode::SUCCESS)
    }

    fn wants(&self, record: &Record) -> bool {
        let is = |wanted: &Option<String>, came: &str| wanted.as_deref().is_none_or(|wanted| wanted == came);
        let kind = match record.kind {
            Kind::Call => true,
            Kind::Evaluation => self.evaluations && self.server.is_none() && self.tool.is_none(),
            Kind::Begin | Kind::End => false,
        };
        kind && is(&self.server, &record.server)
            && is(&self.tool, &record.tool)
            && is(&self.principal, &record.principal)
            && is(&self.outcome, &record.outcome)
            && self.since.as_ref().is_none_or(|since| record.time.as_str() >= since.as_str())
    }
}

/// A text in one line that steers no terminal.
fn plain(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match text.char_indices().nth(ARGUMENTS_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn number(number: Option<u64>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}
