//! `lispbox eval`: evaluates one program, or a batch from standard input.

mod batch;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use lispbox::lang::{Reply, Request};

use crate::context::{Problem, Settings, read_file, read_input};
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
    #[arg(long, conflicts_with_all = ["program", "data"])]
    batch: bool,
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    isolation: Isolation,
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
        let host = context.host(if self.json { Prints::Keep } else { Prints::Stream }, &limits, &program);
        let request = Request { data, limits, ..Request::new(program) };
        let mut reply = host.redacted(sandbox.environment().eval(request, host.clone()));
        advise_on_limit(&mut reply, false);
        Ok(if self.json { print_record(reply) } else { show(&reply, &host, true) })
    }
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
