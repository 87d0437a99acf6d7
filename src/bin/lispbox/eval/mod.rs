//! `lispbox eval`: evaluates one program, or a batch from standard input.

mod batch;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use lispbox::lang::{Host, Reply, Request, Sandbox, Status};
use lispbox::server::{KeyedReply, KeyedRuns, LONGEST_RUN_KEY, RunCalls};

use crate::context::{EvaluationContext, Problem, Settings, read_file, read_input, store_problem};
use crate::output::{errln, out};
use crate::plan::PlanOption;
use crate::rehearsal::{RehearsalOptions, committed, show_calls};
use crate::terminal::{Prints, advise_on_limit, for_stdout, line, show};
use crate::worker::Isolation;

/// Evaluates a program and prints its value.
#[derive(Args)]
pub struct Eval {
    /// The program; `-` reads it from standard input.
    #[arg(required_unless_present = "batch", allow_negative_numbers = true)]
    program: Option<String>,
    /// JSON that the program sees as `data`; `-` reads it from standard input.
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Print the whole record as JSON, on success and on failure.
    #[arg(long)]
    json: bool,
    /// Evaluate each line of standard input separately, `{"program": …, "data": …, "limits": {…}}` or just a program as
    /// a JSON string, and print one record for each.
    #[arg(long, conflicts_with_all = ["program", "data", "rehearse", "plan"])]
    batch: bool,
    /// Evaluate the program once for this key: a later call with the same key, program and data prints the stored reply,
    /// or continues the program after a person has decided on its calls. Needs `--store`.
    #[arg(long, value_name = "KEY", requires = "store", conflicts_with_all = ["batch", "commit", "plan"], value_parser = run_key)]
    run_key: Option<String>,
    /// The store of the runs with `--run-key`, such as `sqlite:sessions.db`.
    #[arg(long, value_name = "URL", env = "LISPBOX_STORE", hide_env_values = true)]
    store: Option<String>,
    #[command(flatten)]
    rehearsal: RehearsalOptions,
    #[command(flatten)]
    plan: PlanOption,
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    isolation: Isolation,
}

fn run_key(text: &str) -> Result<String, String> {
    let is_usable = (1..=LONGEST_RUN_KEY).contains(&text.len());
    if is_usable { Ok(text.to_owned()) } else { Err(format!("expected a text of 1 to {LONGEST_RUN_KEY} bytes")) }
}

impl Eval {
    /// Runs the command; the exit code is 0 on success, 1 if a program fails, 2 for wrong usage.
    pub fn run(self) -> ExitCode {
        let outcome = if self.batch { batch::run(&self.settings, &self.isolation) } else { self.evaluate() };
        outcome.unwrap_or_else(Problem::report)
    }

    fn evaluate(self) -> Result<ExitCode, Problem> {
        let given = self.program.unwrap_or_default();
        let data_from_input = self.data.as_ref().is_some_and(|file| file.as_os_str() == "-");
        if given == "-" && data_from_input {
            return Err(Problem::Usage(
                "the program and its data cannot both come from standard input; give one of them as a file or an argument"
                    .to_owned(),
            ));
        }
        let context = self.settings.open()?;
        let sandbox = context.sandbox(&self.isolation)?;
        let program = if given == "-" { read_input()? } else { given };
        let data = self.data.as_deref().map(read_file).transpose()?;
        if context.has_tools() {
            context.stop_on_interrupt();
        }
        let limits = context.limits.clone();
        if let (Some(key), Some(url)) = (&self.run_key, &self.store) {
            let request = Request { data, limits, ..Request::new(program) };
            return once(&context, sandbox, (key, url), request, (self.json, &self.rehearsal));
        }
        if self.rehearsal.rehearse {
            let rehearsal = Arc::default();
            let prints = if self.json { Prints::Keep } else { Prints::Stream };
            let host = context.host_rehearsing(prints, &limits, &rehearsal);
            let request = Request { data, limits, ..Request::new(program.clone()) };
            let mut reply = Arc::clone(&sandbox).environment().eval(request, host.clone());
            advise_on_limit(&mut reply, false);
            if !self.json {
                return self.rehearsal.finish(&context, &sandbox, &host, (&program, reply), &rehearsal);
            }
            self.rehearsal.describe(&mut reply, &rehearsal);
            let reply = host.redacted(reply);
            if let Some(rehearsed) = &reply.rehearsed {
                self.rehearsal.write_page(&program, rehearsed)?;
            }
            let made = self.rehearsal.commit(&context, &sandbox, &reply, &rehearsal);
            let code = print_record(reply);
            return Ok(made.map_or(code, |(reply, _)| {
                let code = committed(&reply);
                print_record(reply);
                code
            }));
        }
        let host = context.host(if self.json { Prints::Keep } else { Prints::Stream }, &limits, &program);
        let held = self.plan.hold(&program, host.clone())?;
        let request = Request { data, limits, ..Request::new(program) };
        let mut reply = host.redacted(sandbox.environment().eval(request, held));
        advise_on_limit(&mut reply, false);
        Ok(if self.json { print_record(reply) } else { show(&reply, &host, true) })
    }
}

/// Evaluates a program with a run key.
fn once(
    context: &EvaluationContext,
    sandbox: Arc<dyn Sandbox>,
    (key, url): (&str, &str),
    request: Request,
    (as_json, rehearsal): (bool, &RehearsalOptions),
) -> Result<ExitCode, Problem> {
    let store = lispbox::store::open(url).map_err(|message| store_problem(url, message))?;
    let runs = KeyedRuns::new(store, sandbox).map_err(Problem::Failed)?;
    let (limits, program) = (request.limits.clone(), request.program.clone());
    // A stored reply has its prints, too.
    let shown = context.host(Prints::Keep, &limits, &program);
    let host = |calls: &RunCalls| context.host_of_run(Prints::Keep, &limits, &program, calls) as Arc<dyn Host>;
    let outcome =
        if rehearsal.rehearse { runs.rehearse(key, request, host) } else { runs.evaluate(key, request, host) };
    let KeyedReply { reply, open } = outcome.unwrap_or_else(|reply| KeyedReply { reply: *reply, open: 0 });
    let mut reply = shown.redacted(reply);
    advise_on_limit(&mut reply, false);
    if let (Some(rehearsed), Some(run)) = (&mut reply.rehearsed, &reply.run) {
        rehearsed.next = format!(
            "They are made once a person has decided on each (`lispbox approvals show {run}`); then repeat this command."
        );
    }
    if let Some(rehearsed) = &reply.rehearsed {
        rehearsal.write_page(&program, rehearsed)?;
    }
    if as_json {
        let code = if reply.status == Status::Suspended { ExitCode::FAILURE } else { ExitCode::SUCCESS };
        return Ok(if print_record(reply) == ExitCode::SUCCESS { code } else { ExitCode::FAILURE });
    }
    out!("{}", for_stdout(&reply.prints));
    if let (Status::Suspended, Some(run)) = (reply.status, &reply.run) {
        let calls = if open == 1 { "1 call".to_owned() } else { format!("{open} calls") };
        errln!(
            "lispbox: the program waits until a person has decided on {calls}: `lispbox approvals show {run}`; then \
             repeat this command"
        );
        return Ok(ExitCode::FAILURE);
    }
    let code = show(&reply, &shown, true);
    if let Some(rehearsed) = &reply.rehearsed {
        show_calls(rehearsed);
    }
    Ok(code)
}

/// Prints the record of an evaluation on one line.
fn print_record(mut reply: Reply) -> ExitCode {
    line(&for_stdout(&record(&mut reply)));
    if reply.failure.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Serializes a record as JSON.
fn record(reply: &mut Reply) -> String {
    reply.record().unwrap_or_else(|problem| {
        serde_json::json!({"status": "error", "error": "InternalError", "message": problem.to_string()}).to_string()
    })
}
