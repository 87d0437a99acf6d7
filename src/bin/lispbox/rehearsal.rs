//! Rehearsals at a terminal: the calls that were not made, as text, JSON or a page, and making them.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use lispbox::lang::internal::foreign_text;
use lispbox::lang::{Rehearsed, RehearsedCall, Reply, Request, Sandbox, Status};
use lispbox::server::Rehearsal;
use maud::html;

use crate::context::{EvaluationContext, Problem, named_problem};
use crate::output::{errln, outln};
use crate::page::self_contained;
use crate::terminal::{Terminal, advise_on_limit, for_stdout, show};

/// The options of a rehearsal.
#[derive(Args)]
pub struct RehearsalOptions {
    /// Make only calls of read-only tools, and show the others with their exact arguments.
    #[arg(long)]
    pub rehearse: bool,
    /// Ask about each call that was not made, and make those that are approved.
    #[arg(long, requires = "rehearse")]
    commit: bool,
    /// Also write the calls that were not made to this file, as a page.
    #[arg(long, value_name = "FILE", requires = "rehearse")]
    pub html: Option<PathBuf>,
}

impl RehearsalOptions {
    /// Adds the calls that were not made to the reply of a program without a run key.
    pub fn describe(&self, reply: &mut Reply, rehearsal: &Rehearsal) {
        let calls = rehearsal.calls();
        let next = match reply.status {
            _ if self.commit || calls.is_empty() => "",
            Status::Ok => {
                "They are not kept: `--commit` asks about each after a rehearsal and makes it, `--run-key` with `--store` \
                 keeps them for `lispbox approvals`."
            }
            _ => "They cannot be made: the program did not come to its end.",
        };
        reply.rehearsed = Some(Rehearsed { calls, next: next.to_owned() });
    }

    /// Writes the page of a rehearsal, if one is wanted.
    pub fn write_page(&self, program: &str, rehearsed: &Rehearsed) -> Result<(), Problem> {
        self.html.as_deref().map_or(Ok(()), |file| write(file, &page(program, rehearsed)))
    }

    /// Makes the calls of a rehearsal that has ended well, each after a question at the terminal. Returns the reply with
    /// their outcomes; `None` if there is nothing to make.
    pub fn commit(
        &self,
        context: &EvaluationContext,
        sandbox: &Arc<dyn Sandbox>,
        reply: &Reply,
        rehearsal: &Rehearsal,
    ) -> Option<(Reply, Arc<Terminal>)> {
        let changes = rehearsal.changes().filter(|_| self.commit && reply.status == Status::Ok)?;
        let limits = context.limits.clone();
        let host = context.host_committing(&limits, &changes);
        let request = Request { data: Some(changes.data), limits, ..Request::new(changes.program) };
        let mut reply = host.redacted(Arc::clone(sandbox).environment().eval(request, host.clone()));
        advise_on_limit(&mut reply, false);
        Some((reply, host))
    }

    /// Shows the reply of a rehearsed program, and makes the calls if that is wanted.
    pub fn finish(
        &self,
        context: &EvaluationContext,
        sandbox: &Arc<dyn Sandbox>,
        host: &Terminal,
        (program, mut reply): (&str, Reply),
        rehearsal: &Rehearsal,
    ) -> Result<ExitCode, Problem> {
        self.describe(&mut reply, rehearsal);
        let reply = host.redacted(reply);
        let code = show(&reply, host, true);
        if let Some(rehearsed) = &reply.rehearsed {
            show_calls(rehearsed);
            self.write_page(program, rehearsed)?;
        }
        Ok(match self.commit(context, sandbox, &reply, rehearsal) {
            None => code,
            Some((reply, host)) => {
                outln!("");
                worse(show(&reply, &host, true), committed(&reply))
            }
        })
    }
}

/// Prints the calls that were not made.
pub fn show_calls(rehearsed: &Rehearsed) {
    outln!("{}", for_stdout(&rehearsed.to_string()));
}

/// Returns the exit code of a commit: a failure if a call that was approved did not succeed.
pub fn committed(reply: &Reply) -> ExitCode {
    let failed = reply.calls.iter().filter(|call| !["ok", "ToolDenied"].contains(&&*call.outcome)).count();
    if failed == 0 && reply.failure.is_none() {
        return ExitCode::SUCCESS;
    }
    errln!("lispbox: not all calls were made");
    ExitCode::FAILURE
}

/// Returns the code of a failure, if one of them is one.
fn worse(one: ExitCode, other: ExitCode) -> ExitCode {
    if one == ExitCode::SUCCESS { other } else { one }
}

fn write(file: &Path, page: &str) -> Result<(), Problem> {
    let written = std::fs::write(file, page);
    written.map_err(|problem| named_problem(&problem, format!("{}: {problem}", file.display())))
}

const STYLE: &str = "
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
h1 { font-size: 1.3rem; } h2 { font-size: 1rem; margin: 1.5rem 0 .3rem; }
pre { font: 13px/1.45 ui-monospace, monospace; padding: .6rem; border: 1px solid #8886; border-radius: .4rem; \
white-space: pre-wrap; overflow-wrap: anywhere; }
";

/// Returns the page of a rehearsal, in one file without scripts.
fn page(program: &str, rehearsed: &Rehearsed) -> String {
    let Rehearsed { calls, next } = rehearsed;
    let name = |call: &RehearsedCall| foreign_text::printable(&format!("{}/{}", call.server, call.tool)).into_owned();
    let arguments = |call: &RehearsedCall| foreign_text::printable(&format!("{:#}", call.arguments)).into_owned();
    let body = html! {
        h1 { "Rehearsal: calls that were not made" }
        p { (calls.len()) @if calls.len() == 1 { " call. " } @else { " calls. " } (next) }
        @for (at, call) in calls.iter().enumerate() {
            section {
                h2 { "Call " (at + 1) ": " (name(call)) }
                pre { (arguments(call)) }
            }
        }
        h2 { "Program" }
        pre { (program) }
    };
    self_contained(&format!("Rehearsal: {} calls", calls.len()), STYLE, &body)
}
