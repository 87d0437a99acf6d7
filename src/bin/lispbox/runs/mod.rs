//! `lispbox runs`: shows the runs of a store, and replays those that were recorded.

mod html;
mod replay;
mod show;
mod tree;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use lispbox::server::{StoredRun, StoredRuns};
use lispbox::store::open_existing;
use serde_json::json;

use crate::context::{Problem, Settings, seconds, store_problem, store_url};
use crate::output::{errln, outln};
use crate::terminal::for_stdout;

use tree::{outcome_of, time_of};

/// Lists, shows and replays the runs of a store. `lispbox serve --record` records all of them.
#[derive(Args)]
pub struct Runs {
    /// The store of the server, such as `sqlite:sessions.db` or `postgres://USER:PASSWORD@HOST/DATABASE`.
    #[arg(long, value_name = "URL", env = "LISPBOX_STORE", hide_env_values = true, global = true)]
    store: Option<String>,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Lists the runs, one per line, the most recently changed first.
    List {
        /// Print one JSON object per line instead.
        #[arg(long)]
        json: bool,
    },
    /// Shows a run as a tree of forms and calls, with times, sizes and outcomes.
    Show {
        /// The run, or an unambiguous prefix of it.
        run: String,
        /// Write a page with a timeline to this file instead.
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
    /// Evaluates a recorded run again without calling any tool, and compares the outcome.
    Replay {
        /// The run, or an unambiguous prefix of it.
        run: String,
        #[command(flatten)]
        options: Box<ReplayOptions>,
    },
}

/// Variants of a replay.
#[derive(Args)]
struct ReplayOptions {
    /// Stop after this form, such as `form:2`, with a REPL in the session as it is then.
    #[arg(long, value_name = "form:N", value_parser = form_number, conflicts_with = "with")]
    until: Option<u32>,
    /// Run the program in this file instead; a call with the server, tool and arguments of a recorded one gets its reply.
    #[arg(long, value_name = "FILE")]
    with: Option<PathBuf>,
    /// Make the calls that are not recorded, with the servers of `--config` and their policy.
    #[arg(long)]
    live: bool,
    #[command(flatten)]
    settings: Settings,
}

fn form_number(text: &str) -> Result<u32, String> {
    let number = text.strip_prefix("form:").and_then(|number| number.parse().ok()).filter(|number| *number > 0);
    number.ok_or_else(|| "expected a form by its number, from 1, such as `form:2`".to_owned())
}

impl Runs {
    /// Runs the subcommand.
    pub fn run(self) -> ExitCode {
        self.act().unwrap_or_else(Problem::report)
    }

    fn act(self) -> Result<ExitCode, Problem> {
        let url = store_url(self.store)?;
        let store = open_existing(&url).map_err(|message| store_problem(&url, message))?;
        let runs = StoredRuns::new(store);
        match self.action {
            Action::List { json } => list(&runs, json).map(|()| ExitCode::SUCCESS),
            Action::Show { run, html: file } => {
                let (identity, run) = find(&runs, &run)?;
                match file {
                    None => show::print(&identity, &run),
                    Some(file) => {
                        let page = html::page(&identity, &run);
                        std::fs::write(&file, page)
                            .map_err(|problem| Problem::Failed(format!("{}: {problem}", file.display())))?;
                        outln!("{} shows run {identity}", file.display());
                    }
                }
                Ok(ExitCode::SUCCESS)
            }
            Action::Replay { run, options } => {
                let (identity, run) = find(&runs, &run)?;
                replay::replay(&identity, &run, *options)
            }
        }
    }
}

/// Finds the run with this identity or this unambiguous prefix, and returns it with its identity.
fn find(runs: &StoredRuns, beginning: &str) -> Result<(String, StoredRun), Problem> {
    let (key, run) = crate::approvals::find(runs, beginning, "lispbox runs list")?;
    Ok((key.handle, run.map_err(Problem::Failed)?))
}

fn list(runs: &StoredRuns, as_json: bool) -> Result<(), Problem> {
    let listed = runs.all().map_err(|problem| Problem::Failed(problem.to_string()))?;
    if listed.is_empty() && !as_json {
        errln!("there are no runs; `lispbox serve --store URL --record` records them");
    }
    for (key, run) in listed {
        let run = match run {
            Ok(run) => run,
            Err(problem) => {
                errln!("lispbox: {} of {}: {problem}", key.handle, key.principal);
                continue;
            }
        };
        let principal = run.principal().unwrap_or(&key.principal);
        let (outcome, calls) = (outcome_of(&run), calls(&run));
        if as_json {
            let record = json!({
                "run": key.handle, "principal": principal, "state": run.state().word(), "outcome": outcome,
                "since": seconds(run.since()), "expires": seconds(run.expires()), "calls": calls,
                "recorded": run.recorded().is_some(), "program": run.run().program(),
            });
            outln!("{record}");
            continue;
        }
        let first = run.run().program().trim().lines().next().unwrap_or_default().to_owned();
        let end = first.floor_char_boundary(60);
        let is_cut = end < first.len() || run.run().program().trim().contains('\n');
        let program = for_stdout(&first[..end]).into_owned();
        let recorded = if run.recorded().is_some() { "recorded" } else { "" };
        outln!(
            "{}  {principal:<10}  {}  {outcome:<9}  {calls:>4} {}  {recorded:<8}  {program}{}",
            key.handle,
            time_of(run.since()),
            if calls == 1 { "call " } else { "calls" },
            if is_cut { " …" } else { "" }
        );
    }
    Ok(())
}

/// The number of calls of a run.
fn calls(run: &StoredRun) -> usize {
    let replied = run.reply().map_or(0, |reply| reply.calls.len());
    replied.max(run.run().log().calls.len())
}
