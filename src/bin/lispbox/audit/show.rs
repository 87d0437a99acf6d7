//! `lispbox audit show`: lists the recorded calls.

use std::collections::BTreeSet;
use std::process::ExitCode;

use clap::Args;
use comfy_table::Cell;
use lispbox::lang::ToolErrorKind;
use lispbox::lang::internal::closest;
use lispbox::lang::internal::foreign_text;
use lispbox::server::{Chain, Kind, Record, ToolPattern};

use super::since::Since;
use super::{ASKED, UNKNOWN, records, table};
use crate::context::Problem;
use crate::output::{errln, outln};

/// Outcomes of calls that `--outcome` accepts even if no call in the log has them. Evaluations may have any error code.
const OUTCOMES: [&str; 12] = [
    "ok",
    ASKED,
    "stopped",
    UNKNOWN,
    "ToolDenied",
    "ToolNeedsApproval",
    ToolErrorKind::Failed.code(),
    ToolErrorKind::Arguments.code(),
    ToolErrorKind::Timeout.code(),
    ToolErrorKind::Unavailable.code(),
    ToolErrorKind::TooLarge.code(),
    ToolErrorKind::Changed.code(),
];

/// Maximum characters of a cell, such as the arguments, that are shown.
const ARGUMENTS_SHOWN: usize = 120;

/// Shows the latest records, the newest last.
#[derive(Args)]
pub struct Show {
    /// The number of records.
    #[arg(long, value_name = "COUNT", default_value_t = 40)]
    last: usize,
    /// Only calls of this server, in any spelling, or of servers that match a pattern.
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// Only calls of this tool, in any spelling: `send_email`, `mail/send-email`, `mcp__mail__send_*`.
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Only records of this principal.
    #[arg(long, value_name = "NAME")]
    principal: Option<String>,
    /// Only records with this outcome: `ok`, an error code such as `ToolDenied`, or `unknown` for calls and programs
    /// without an outcome.
    #[arg(long, value_name = "CODE")]
    outcome: Option<String>,
    /// Only records since this time: an age (`30s`, `5m`, `1h`, `2d`, `1w`), a date (`2026-11-23`, `today`,
    /// `yesterday`) or a time (`2026-11-23T10:30`), in UTC unless it has an offset.
    #[arg(long, value_name = "TIME")]
    since: Option<Since>,
    /// Include evaluations, `lisp_env` queries and resources.
    #[arg(long)]
    evaluations: bool,
    /// Print complete records, one JSON object per line.
    #[arg(long)]
    json: bool,
}

impl Show {
    pub(super) fn run(self, chains: &[Chain]) -> Result<ExitCode, Problem> {
        let mut records = records(chains)?;
        let server = self.server.as_deref().map(|server| Wanted::new(&format!("{server}/*"), &records)).transpose()?;
        let tool = self.tool.as_deref().map(|tool| Wanted::new(tool, &records)).transpose()?;
        self.check(&records, &[&server, &tool])?;
        records.retain(|record| {
            let is_wanted = |wanted: &Option<Wanted>| wanted.as_ref().is_none_or(|wanted| wanted.fits(record));
            self.wants(record) && is_wanted(&server) && is_wanted(&tool)
        });
        let older = records.len().saturating_sub(self.last);
        if self.json {
            for record in &records[older..] {
                outln!("{}", serde_json::to_string(record).map_err(|problem| Problem::Failed(problem.to_string()))?);
            }
            return Ok(ExitCode::SUCCESS);
        }
        if records.is_empty() {
            errln!("no records match");
        }
        let mut shown = table(&["time", "who", "what", "arguments", "outcome", "bytes", "ms"], 5..7);
        for record in &records[older..] {
            let what = match record.kind {
                Kind::Evaluation | Kind::Program => {
                    format!("program {}", record.program.get(..8).unwrap_or_default())
                }
                Kind::Env => "lisp_env".to_owned(),
                Kind::Resource => format!("resource {}", record.resource.get(..8).unwrap_or_default()),
                Kind::Lost => format!("{} records lost", record.lost.unwrap_or_default()),
                _ => foreign_text::qualified(&record.server, &record.tool),
            };
            let arguments = record.arguments.as_ref().map(foreign_text::json).or(record.text.clone());
            let arguments = arguments.unwrap_or_default();
            let mut outcome = match record.kind {
                Kind::Intent | Kind::Program if record.outcome == UNKNOWN => "outcome unknown".to_owned(),
                _ => record.outcome.clone(),
            };
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
        outln!("{shown}");
        if older > 0 {
            outln!("{older} older ones are not shown; see --last, --since and --json");
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Checks that each name given on the command line occurs in the log; one that does not is most likely a typing
    /// error.
    fn check(&self, records: &[Record], [server, tool]: &[&Option<Wanted>; 2]) -> Result<(), Problem> {
        let with_tool = || records.iter().filter(|record| !record.tool.is_empty());
        let servers = || with_tool().map(|record| record.server.clone()).collect();
        let tools = |text: &str| {
            let name = |record: &Record| match text.contains('/') {
                true => format!("{}/{}", record.server, record.tool),
                false => record.tool.clone(),
            };
            with_tool().map(name).collect()
        };
        let fits = |wanted: &Option<Wanted>| {
            wanted.as_ref().is_none_or(|wanted| with_tool().any(|record| wanted.fits(record)))
        };
        if let Some(text) = self.server.as_deref().filter(|_| !fits(server)) {
            return Err(nothing("server", text, servers()));
        }
        if let Some(text) = self.tool.as_deref().filter(|_| !fits(tool)) {
            return Err(nothing("tool", text, tools(text)));
        }
        let column = |take: fn(&Record) -> &String| -> BTreeSet<String> {
            records.iter().map(take).filter(|text| !text.is_empty()).cloned().collect()
        };
        let principals = column(|record| &record.principal);
        if let Some(text) = self.principal.as_ref().filter(|text| !principals.contains(*text)) {
            return Err(nothing("principal", text, principals));
        }
        let outcomes = column(|record| &record.outcome);
        let is_known = |text: &String| {
            let mut known = OUTCOMES.iter().copied().chain(outcomes.iter().map(String::as_str));
            known.any(|outcome| outcome.eq_ignore_ascii_case(text))
        };
        match self.outcome.as_ref().filter(|text| !is_known(text)) {
            Some(text) => Err(nothing("outcome", text, outcomes)),
            None => Ok(()),
        }
    }

    fn wants(&self, record: &Record) -> bool {
        let is = |wanted: &Option<String>, came: &str| wanted.as_deref().is_none_or(|wanted| wanted == came);
        let kind = match record.kind {
            Kind::Intent | Kind::Call => true,
            Kind::Program | Kind::Evaluation | Kind::Env | Kind::Resource => {
                self.evaluations && self.server.is_none() && self.tool.is_none()
            }
            Kind::Lost => true,
            Kind::Begin | Kind::End => false,
        };
        kind && is(&self.principal, &record.principal)
            && self.outcome.as_ref().is_none_or(|outcome| outcome.eq_ignore_ascii_case(&record.outcome))
            && self.since.is_none_or(|since| since.has(&record.time))
    }
}

/// The error for a name that occurs in no record.
fn nothing(what: &str, text: &str, known: BTreeSet<String>) -> Problem {
    const SHOWN: usize = 12;
    let hint = match closest(text, known.iter().map(String::as_str)) {
        Some(nearest) => format!("; did you mean `{}`?", plain(nearest)),
        None if known.is_empty() => String::new(),
        None => {
            let shown: Vec<String> = known.iter().take(SHOWN).map(|name| format!("`{}`", plain(name))).collect();
            let more = if known.len() > SHOWN { ", …" } else { "" };
            format!("; there are {}{more}", shown.join(", "))
        }
    };
    Problem::Failed(format!("no record has the {what} `{text}`{hint}"))
}

/// A selection of calls by the name of their tool.
enum Wanted {
    /// A name that occurs in the log exactly as given: it does not select tools whose names differ in spelling.
    Exact(String),
    Fitting(ToolPattern),
}

impl Wanted {
    fn new(text: &str, records: &[Record]) -> Result<Wanted, Problem> {
        let exact = Wanted::Exact(text.to_owned());
        if records.iter().any(|record| exact.fits(record)) {
            return Ok(exact);
        }
        ToolPattern::new(text).map(Wanted::Fitting).map_err(Problem::Usage)
    }

    fn fits(&self, record: &Record) -> bool {
        match self {
            Wanted::Exact(text) => match text.split_once('/') {
                Some((server, tool)) => record.server == server && (tool == "*" || record.tool == tool),
                None => record.tool == *text,
            },
            Wanted::Fitting(pattern) => pattern.fits(&record.server, &record.tool),
        }
    }
}

/// Formats a text on one line without control characters, truncated.
pub(super) fn plain(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match text.char_indices().nth(ARGUMENTS_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn number(number: Option<u64>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}
