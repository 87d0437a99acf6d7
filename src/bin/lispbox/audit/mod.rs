//! `lispbox audit`: shows the audit log and verifies its integrity.

mod show;
mod since;
mod stats;
mod verify;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use comfy_table::{CellAlignment, ContentArrangement, ContentLineStyle, LineStyle, Table, TableStyle};
use lispbox::server::{Chain, Kind, OpenIntents, Record, chains};

use crate::context::{Problem, named_problem};

/// Reads the audit log that `serve --audit` writes.
#[derive(Args)]
pub struct Audit {
    /// The folder of the log.
    #[arg(long = "audit", value_name = "FOLDER", env = "LISPBOX_AUDIT", global = true)]
    folder: Option<PathBuf>,
    /// The folder of the chain heads, if it is a different one.
    #[arg(long = "audit-heads", value_name = "FOLDER", env = "LISPBOX_AUDIT_HEADS", global = true)]
    heads: Option<PathBuf>,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Show(show::Show),
    Verify(verify::Verify),
    Stats(stats::Stats),
}

impl Audit {
    /// Runs the subcommand; `verify` fails if records are missing or changed.
    pub fn run(self) -> ExitCode {
        self.act().unwrap_or_else(Problem::report)
    }

    fn act(self) -> Result<ExitCode, Problem> {
        let Some(folder) = &self.folder else {
            let message = "expected `--audit FOLDER` or LISPBOX_AUDIT, as given to `serve`";
            return Err(Problem::Usage(message.to_owned()));
        };
        let unreadable = |problem| named_problem(&problem, format!("the audit log in {}: {problem}", folder.display()));
        let chains = chains(folder, self.heads.as_deref()).map_err(unreadable)?;
        if chains.is_empty() {
            return Err(Problem::Usage(format!("there is no audit log in {}", folder.display())));
        }
        match self.action {
            Action::Show(show) => show.run(&chains),
            Action::Verify(verify) => verify.run(&chains),
            Action::Stats(stats) => stats.run(&chains),
        }
    }
}

/// The outcome shown for an intent without an outcome.
const UNKNOWN: &str = "unknown";

/// The outcome of a call about which a person is asked after its program was suspended.
const ASKED: &str = "asked";

/// The records of all chains, ordered by time. The intent of a call or evaluation that has ended is omitted, because
/// its final record contains the same data; a program record is kept if it has the program text. An intent without a
/// final record has the outcome [`UNKNOWN`].
fn records(chains: &[Chain]) -> Result<Vec<Record>, Problem> {
    let mut records = Vec::new();
    for chain in chains {
        let mut open = OpenIntents::default();
        let mut texts = BTreeMap::new();
        for record in chain.records() {
            let record = record.map_err(|problem| Problem::Failed(problem.to_string()))?;
            open.take(&record);
            match record.kind {
                Kind::Intent => {}
                Kind::Program if record.text.is_none() => {}
                Kind::Program => drop(texts.insert(record.number, record)),
                _ => records.push(record),
            }
        }
        for intent in open.into_records() {
            texts.remove(&intent.number);
            records.push(Record { outcome: UNKNOWN.to_owned(), ..intent });
        }
        records.extend(texts.into_values());
    }
    records.sort_by(|one, other| one.time.cmp(&other.time));
    Ok(records)
}

/// A table style with one line, below the header.
const LINED_HEAD: TableStyle = TableStyle::new()
    .header_lines(ContentLineStyle::none().junction(' '))
    .header_separator(LineStyle::none().fill('─').junction('─'))
    .content_lines(ContentLineStyle::none().junction(' '));

/// Creates an empty table with this header; the columns in `numbers` are right-aligned.
fn table(head: &[&str], numbers: std::ops::Range<usize>) -> Table {
    let mut table = Table::new();
    table.load_style(LINED_HEAD).set_content_arrangement(ContentArrangement::Dynamic);
    if let Some(width) = std::env::var("COLUMNS").ok().and_then(|width| width.parse().ok()) {
        table.set_width(width);
    }
    table.set_header(head);
    for column in numbers {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}
