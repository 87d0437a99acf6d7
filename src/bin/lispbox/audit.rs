//! `lispbox audit`: what was called, and whether the log of it is whole.

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

use crate::surroundings::{Problem, named_problem};

/// Reads the audit log that `serve --audit` writes.
#[derive(Args)]
pub struct Audit {
    /// The folder of the log.
    #[arg(long = "audit", value_name = "FOLDER", env = "LISPBOX_AUDIT", global = true)]
    folder: Option<PathBuf>,
    /// The folder of the heads, if it is another one.
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
    /// Does what is asked for; `verify` fails if something is missing or changed.
    pub fn run(self) -> ExitCode {
        self.act().unwrap_or_else(Problem::report)
    }

    fn act(self) -> Result<ExitCode, Problem> {
        let Some(folder) = &self.folder else {
            let message = "which log? say `--audit FOLDER`, or set LISPBOX_AUDIT, to what `serve` was given";
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

/// The outcome that is shown of a call whose intent has none.
const UNKNOWN: &str = "unknown";

/// The records of all chains by their time. An intent whose call or evaluation has ended is left out, as the other record
/// says all of it, but for the text of a program; any other has the outcome [`UNKNOWN`].
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

/// One line, under the head.
const LINED_HEAD: TableStyle = TableStyle::new()
    .header_lines(ContentLineStyle::none().junction(' '))
    .header_separator(LineStyle::none().fill('─').junction('─'))
    .content_lines(ContentLineStyle::none().junction(' '));

/// An empty table with that head; its columns from `numbers` on hold numbers.
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
