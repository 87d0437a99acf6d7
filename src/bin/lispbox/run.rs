//! `lispbox run`: runs a program in a file.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use lispbox::lang::Request;

use crate::context::{Problem, Settings, read_file};
use crate::plan::PlanOption;
use crate::rehearsal::RehearsalOptions;
use crate::terminal::{Prints, advise_on_limit, show};
use crate::worker::Isolation;

/// Runs a program from a file and prints the value of its last expression unless it is nil.
#[derive(Args)]
pub struct Run {
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    isolation: Isolation,
    #[command(flatten)]
    rehearsal: RehearsalOptions,
    #[command(flatten)]
    plan: PlanOption,
    /// The file; `-` reads standard input.
    file: PathBuf,
    /// The strings that the program sees as the vector `args`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

impl Run {
    /// Runs the command; the exit code is 0 on success, 1 if the program fails, 2 for wrong usage.
    pub fn run(self) -> ExitCode {
        self.evaluate().unwrap_or_else(Problem::report)
    }

    fn evaluate(self) -> Result<ExitCode, Problem> {
        let context = self.settings.open()?;
        let program = read_file(&self.file)?;
        if context.has_tools() {
            context.stop_on_interrupt();
        }
        let limits = context.limits.clone();
        let rehearsal = Arc::default();
        let host = match self.rehearsal.rehearse {
            true => context.host_rehearsing(Prints::Stream, &limits, &rehearsal),
            false => context.host(Prints::Stream, &limits, &program),
        };
        let sandbox = context.sandbox(&self.isolation)?;
        let mut session = Arc::clone(&sandbox).environment();
        let args = serde_json::Value::from(self.args).to_string();
        for name in ["args", "*command-line-args*"] {
            session.bind(name, &args, host.clone()).map_err(Problem::Failed)?;
        }
        let name = Some(self.file.display().to_string());
        let request = Request { limits, name, ..Request::new(program.clone()) };
        let held = self.plan.hold(&program, host.clone())?;
        let mut reply = host.redacted(session.eval(request, held));
        advise_on_limit(&mut reply, false);
        if self.rehearsal.rehearse {
            return self.rehearsal.finish(&context, &sandbox, &host, (&program, reply), &rehearsal);
        }
        Ok(show(&reply, &host, false))
    }
}
