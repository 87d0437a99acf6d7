//! `lispbox approvals`: decides on the calls of programs that wait in a store.

use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use lispbox::lang::internal::foreign_text::printable;
use lispbox::server::{
    Grant, GrantTerms, ListedRun, OpenCall, RunState, StoredGrants, StoredRun, StoredRuns, serve_approvals,
};
use lispbox::store::{Key, Store, open_existing};
use serde_json::json;

use crate::context::{Problem, seconds, store_problem, store_url};
use crate::grants::{self, GrantOptions};
use crate::output::{errln, outln};

/// The time after which a page that is not used ends.
const UNUSED: Duration = Duration::from_secs(600);

/// Lists the programs that wait for approval, and decides on their calls.
#[derive(Args)]
pub struct Approvals {
    /// The store of the server, such as `sqlite:sessions.db` or `postgres://USER:PASSWORD@HOST/DATABASE`.
    #[arg(long, value_name = "URL", env = "LISPBOX_STORE", hide_env_values = true, global = true)]
    store: Option<String>,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Lists the programs that wait, one per line, the most recently changed first.
    List {
        /// Print one JSON object per line instead.
        #[arg(long)]
        json: bool,
        /// Also list programs that are running, that have ended or failed, or whose process died.
        #[arg(long)]
        all: bool,
    },
    /// Serves a page on this machine on which you look at the programs that wait, and decide, and opens it in your
    /// browser. It ends after ten minutes without use.
    Open {
        /// The run to show first.
        run: Option<String>,
        /// Print the address only.
        #[arg(long)]
        no_browser: bool,
    },
    /// Shows a program, its open calls with all their arguments, and the decisions so far.
    Show {
        /// The run, or an unambiguous prefix of it.
        run: String,
    },
    /// Lets calls be made, each once and with the arguments shown.
    Approve {
        /// The run, or an unambiguous prefix of it.
        run: String,
        /// The number of a call, as `show` prints it, for each of several calls. Without it, all calls that wait for a
        /// decision.
        #[arg(long = "call", value_name = "N")]
        calls: Vec<String>,
        #[command(flatten)]
        grant: GrantOptions,
    },
    /// Refuses calls: the program receives the error `ToolDenied`, which it can catch.
    Deny {
        /// The run, or an unambiguous prefix of it.
        run: String,
        /// The number of a call, as `show` prints it, for each of several calls. Without it, all calls that wait for a
        /// decision, and those that a grant covers.
        #[arg(long = "call", value_name = "N")]
        calls: Vec<String>,
        /// The reason, which the program is told.
        #[arg(long, default_value = "a person was asked and said no")]
        reason: String,
    },
    /// Records whether a call happened that was being sent when its process died.
    Settle {
        /// The run, or an unambiguous prefix of it.
        run: String,
        /// The number of the call, as `show` prints it.
        #[arg(long, value_name = "N")]
        call: String,
        /// The call happened, with this result: the text of a JSON value.
        #[arg(long, value_name = "JSON", required_unless_present = "did_not_happen")]
        happened: Option<String>,
        /// The call did not happen: it is made when the program continues.
        #[arg(long, conflicts_with = "happened")]
        did_not_happen: bool,
    },
    /// Ends a program that waits: its open calls are never made.
    Cancel {
        /// The run, or an unambiguous prefix of it.
        run: String,
    },
    /// Lists the grants: decisions that cover later calls, which `approve --for`, `--count` or `--session` gives.
    Grants {
        /// Print one JSON object per line instead.
        #[arg(long)]
        json: bool,
    },
    /// Ends grants at once, for all processes.
    Revoke {
        /// The grants, or unambiguous prefixes of them.
        #[arg(required_unless_present = "all")]
        grants: Vec<String>,
        /// All grants.
        #[arg(long, conflicts_with = "grants")]
        all: bool,
    },
}

impl Approvals {
    /// Runs the subcommand.
    pub fn run(self) -> ExitCode {
        self.act().map_or_else(Problem::report, |()| ExitCode::SUCCESS)
    }

    fn act(self) -> Result<(), Problem> {
        let url = store_url(self.store)?;
        let store = open_existing(&url).map_err(|message| store_problem(&url, message))?;
        let (runs, grants) = (StoredRuns::new(store.clone()), StoredGrants::new(store.clone()));
        match self.action {
            Action::Open { run, no_browser } => {
                let run = run.map(|run| find(&runs, &run, LISTS)).transpose()?.map(|(key, _)| key.handle);
                open(store, run.as_deref(), no_browser)
            }
            Action::List { json, all } => list(&runs, json, all),
            Action::Show { run } => {
                let (key, run) = find(&runs, &run, LISTS)?;
                show(&key, &run.map_err(Problem::Failed)?);
                Ok(())
            }
            Action::Approve { run, calls, grant } => approve(&runs, &grants, &run, &calls, grant.terms()?),
            Action::Deny { run, calls, reason } => decide(&runs, &run, |run| {
                // Who refuses everything also refuses the calls that a grant covers.
                let chosen = chosen(run, &calls, run.covered())?;
                chosen.iter().map(|call| Ok((run.decide(call, Some(&reason), &person())?, "denied"))).collect()
            })
            .map(|_| ()),
            Action::Settle { run, call, happened, .. } => decide(&runs, &run, |run| {
                let said = if happened.is_some() { "happened" } else { "did not happen" };
                Ok(vec![(run.settle(&call, happened.as_deref(), &person())?, said)])
            })
            .map(|_| ()),
            Action::Cancel { run } => {
                let (key, _) = find(&runs, &run, LISTS)?;
                runs.cancel(&key, &person()).map_err(Problem::Failed)?;
                outln!("{} is cancelled: its open calls are not made", key.handle);
                Ok(())
            }
            Action::Grants { json } => grants::list(&grants, json),
            Action::Revoke { grants: chosen, all } => grants::revoke(&grants, &chosen, all),
        }
    }
}

/// Returns the numbers of the calls that a command is about: those that it names, or all that wait for a decision, and
/// `others`.
fn chosen(run: &StoredRun, calls: &[String], others: Vec<OpenCall>) -> Result<Vec<String>, String> {
    if !calls.is_empty() {
        return Ok(calls.to_vec());
    }
    let open = run.open().into_iter().filter(|call| !call.is_unknown);
    let open: Vec<String> = open.chain(others).map(|call| call.number).collect();
    if open.is_empty() { Err("no call of the run waits for a decision".to_owned()) } else { Ok(open) }
}

/// Approves calls, and gives the grants that come with that.
fn approve(
    runs: &StoredRuns,
    grants: &StoredGrants,
    run: &str,
    calls: &[String],
    terms: Option<GrantTerms>,
) -> Result<(), Problem> {
    let mut given: Vec<Grant> = Vec::new();
    let Key { principal, .. } = decide(runs, run, |run| {
        let mut changed = Vec::new();
        for call in chosen(run, calls, Vec::new())? {
            let open = run.decide(&call, None, &person())?;
            if let Some(terms) = terms {
                let grant = Grant::new(run, &open, terms, &person())?;
                let covered = |grant: &Grant| (grant.server.clone(), grant.tool.clone(), grant.call.clone());
                if !given.iter().any(|other| covered(other) == covered(&grant)) {
                    given.push(grant);
                }
            }
            changed.push((open, "approved"));
        }
        Ok(changed)
    })?;
    for grant in given {
        let key = grants.give(&principal, &grant);
        let key = key.map_err(|problem| Problem::Failed(format!("the grant may not have been stored: {problem}")))?;
        outln!("grant {}: {}", key.handle, printable(&grants::words(&grant)));
    }
    Ok(())
}

/// The size in bytes from which on arguments may be cut in the text of a question.
const CUT: usize = 7_000;

/// The command that lists all runs.
const LISTS: &str = "lispbox approvals list";

/// The way in which a decision was made, for its record.
fn person() -> String {
    format!("`lispbox approvals`, by {}", user())
}

/// The name of the user of this machine.
fn user() -> String {
    let user = ["USER", "LOGNAME", "USERNAME"].iter().find_map(|name| std::env::var(name).ok());
    user.filter(|user| !user.is_empty()).unwrap_or_else(|| "an unknown user".to_owned())
}

/// Serves the page, and opens it.
fn open(store: Arc<dyn Store>, run: Option<&str>, no_browser: bool) -> Result<(), Problem> {
    let served = serve_approvals(store, &user(), run, UNUSED, |address| {
        outln!("{address}");
        errln!("lispbox: this address opens the page once, in a browser on this machine");
        errln!("lispbox: the page ends with Ctrl-C, or after ten minutes without use");
        if !no_browser {
            browse(address);
        }
    });
    served.map_err(|problem| Problem::Failed(problem.to_string()))
}

/// Opens an address in the browser, if there is a program for that; the address has been printed.
fn browse(address: &str) {
    let (program, before): (&str, &[&str]) = match std::env::consts::OS {
        "windows" => ("rundll32", &["url.dll,FileProtocolHandler"]),
        "macos" => ("open", &[]),
        _ => ("xdg-open", &[]),
    };
    let mut command = std::process::Command::new(program);
    command.args(before).arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Not waited for: it may become the browser itself.
    let _ = command.spawn();
}

/// Finds the run with this identity or this unambiguous prefix.
///
/// # Errors
/// Returns an error if there is none, which names the command that `lists` them, or if there are several.
pub fn find(runs: &StoredRuns, beginning: &str, lists: &str) -> Result<ListedRun, Problem> {
    let mut fitting = runs.beginning_with(beginning).map_err(|problem| Problem::Failed(problem.to_string()))?;
    match fitting.len() {
        1 => Ok(fitting.remove(0)),
        0 => Err(Problem::Failed(format!("there is no run `{beginning}`; `{lists}` lists them"))),
        count => Err(Problem::Usage(format!("`{beginning}` is ambiguous: {count} runs match; give more of the run"))),
    }
}

fn list(runs: &StoredRuns, as_json: bool, all: bool) -> Result<(), Problem> {
    let listed = runs.list().map_err(|problem| Problem::Failed(problem.to_string()))?;
    let mut count = 0;
    for (Key { principal, handle }, run) in listed {
        let run = match run {
            Ok(run) => run,
            Err(problem) => {
                errln!("lispbox: {handle} of {principal}: {problem}");
                continue;
            }
        };
        let (state, open) = (run.state(), run.open());
        let is_settled = match state {
            RunState::Ended | RunState::Running | RunState::Begun => true,
            RunState::Failed => open.is_empty(),
            RunState::Waiting | RunState::Decided => false,
        };
        if is_settled && !all {
            continue;
        }
        count += 1;
        if as_json {
            let calls: Vec<_> = open.iter().map(described).collect();
            outln!(
                "{}",
                json!({
                    "run": handle, "principal": principal, "state": state.word(), "open": calls,
                    "covered": run.covered().iter().map(described).collect::<Vec<_>>(),
                    "since": seconds(run.since()), "expires": seconds(run.expires()),
                })
            );
            continue;
        }
        let tools: Vec<String> = open
            .iter()
            .map(|call| format!("{} {}/{}", call.number, call.question.server, call.question.tool))
            .collect();
        let tools = printable(&tools.join(", ")).into_owned();
        outln!("{handle}  {principal:<10}  {:<8}  {:<18}  {tools}", state.word(), left(&run));
    }
    if count == 0 && !as_json {
        errln!("no program waits for approval");
    }
    Ok(())
}

fn show(key: &Key, run: &StoredRun) {
    outln!("run {} of {}: {}", key.handle, key.principal, run.state().word());
    outln!("{}", left(run));
    let (what, program) = match run.rehearsed() {
        None if run.is_planned() => ("program, which has not begun, and is held to its plan", run.run().program()),
        Some(program) => ("program, which was rehearsed: the calls below are all that it would change", program),
        None => ("program", run.run().program()),
    };
    // Indented, since a program can have lines like those below.
    outln!("\n{what}:\n  {}", printable(program.trim_end()).replace('\n', "\n  "));
    for call in run.open().into_iter().chain(run.covered()) {
        let what = if call.question.planned.is_some() { "plan" } else { "call" };
        let note = match (&call.covered, call.is_unknown) {
            (Some(by), _) => {
                format!(": no decision is needed, {by}; the grant is looked up again when the call is made")
            }
            (None, true) => ": it is not known whether it happened".to_owned(),
            (None, false) => String::new(),
        };
        outln!("\n{what} {}{}", call.number, printable(&note));
        outln!("{}", printable(&call.question.to_string()));
        let whole = format!("{:#}", call.question.arguments);
        if whole.len() > CUT && call.question.planned.is_none() {
            outln!("\nAll arguments:\n{}", printable(&whole));
        }
    }
    if !run.decisions().is_empty() {
        outln!("\ndecisions:");
    }
    for record in run.decisions() {
        outln!("{}", printable(&format!("{}: {} ({})", record.tool, record.decision, record.by)));
    }
    let has_unknown = run.open().iter().any(|call| call.is_unknown);
    match run.state() {
        RunState::Waiting | RunState::Failed if has_unknown => outln!(
            "\nFind out at the server of the tool whether the call happened, then: \
             lispbox approvals settle {} --call N --happened JSON | --did-not-happen",
            key.handle
        ),
        RunState::Waiting => outln!("\nlispbox approvals approve|deny {} [--call N]", key.handle),
        RunState::Decided => outln!("\nThe program goes on when its client resumes it."),
        RunState::Running => outln!("\nA server process evaluates the program."),
        RunState::Begun => {
            outln!("\nIts process died. The program goes on with the next call that names the run or has its run key.")
        }
        RunState::Failed => {
            outln!(
                "\nThe program failed after it has made changes. A corrected one that names the run repeats none of them."
            )
        }
        RunState::Ended => {}
    }
}

fn decide(
    runs: &StoredRuns,
    run: &str,
    change: impl FnOnce(&mut StoredRun) -> Result<Vec<(OpenCall, &'static str)>, String>,
) -> Result<Key, Problem> {
    let (key, _) = find(runs, run, LISTS)?;
    let (changed, left) = runs
        .change(&key, |run| {
            let changed = change(run)?;
            Ok((changed, run.open().len()))
        })
        .map_err(|problem| Problem::Failed(format!("nothing was changed: {problem}")))?;
    for (call, said) in changed {
        let tool = format!("{}/{}", call.question.server, call.question.tool);
        outln!("call {} of {}: {said}", call.number, printable(&tool));
    }
    match left {
        0 => outln!("nothing is open; the program goes on when its client resumes it"),
        1 => outln!("1 call is open"),
        left => outln!("{left} calls are open"),
    }
    Ok(key)
}

fn described(call: &OpenCall) -> serde_json::Value {
    let question = &call.question;
    json!({
        "call": call.number, "server": question.server, "tool": question.tool, "arguments": question.arguments,
        "rule": question.rule, "unknown": call.is_unknown, "planned": question.planned, "covered": call.covered,
    })
}

/// `expires in 6 days`
fn left(run: &StoredRun) -> String {
    let left = grants::until(run.expires());
    match run.state() {
        RunState::Ended => format!("kept for {left}"),
        _ => format!("expires in {left}"),
    }
}
