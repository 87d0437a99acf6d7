//! `lispbox plan`: shows which tools a program can call, without running it; and runs that are held to such a plan.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use lispbox::lang::{DecidedPlan, Host, PlanBounds, Recorder, Request, RunLog};
use lispbox::server::fingerprint;
use serde::{Deserialize, Serialize};

use crate::context::{Problem, Settings, read_file};
use crate::terminal::{complain, line};

/// Shows which tools a program can call and how often at most, and what the policy decides on them. The program does
/// not run; `data` and `args` may have any value in it.
#[derive(Args)]
pub struct Plan {
    #[command(flatten)]
    settings: Settings,
    /// The file with the program; `-` reads standard input.
    #[arg(required_unless_present = "text")]
    program: Option<PathBuf>,
    /// The text of the program.
    #[arg(short = 'e', long = "eval", value_name = "TEXT", conflicts_with = "program", allow_hyphen_values = true)]
    text: Option<String>,
    /// Print the plan as JSON, as `--plan` of `lispbox eval` and `lispbox run` takes it.
    #[arg(long)]
    json: bool,
}

/// The names that `lispbox eval --data` and `lispbox run` bind.
const INPUTS: [&str; 3] = ["data", "args", "*command-line-args*"];

/// A plan as JSON, with the program for which it holds.
#[derive(Serialize, Deserialize)]
struct PlanFile {
    /// The SHA-256 of the text of the program, in hexadecimal.
    program: String,
    #[serde(flatten)]
    plan: DecidedPlan,
}

impl Plan {
    /// Runs the command; the exit code is 0 on success, 1 if the program cannot be read or resolved, 2 for wrong usage.
    pub fn run(self) -> ExitCode {
        self.plan().unwrap_or_else(Problem::report)
    }

    fn plan(self) -> Result<ExitCode, Problem> {
        let context = self.settings.open()?;
        let (program, name) = match (self.text, &self.program) {
            (Some(text), _) => (text, None),
            (None, Some(file)) => (read_file(file)?, Some(file.display().to_string())),
            (None, None) => return Err(Problem::Usage("expected a file with a program, or `-e TEXT`".to_owned())),
        };
        let host = context.observer();
        let digest = fingerprint(&program);
        let request = Request { limits: context.limits.clone(), name, ..Request::new(program) };
        let inputs = INPUTS.map(str::to_owned);
        let plan = match context.session().plan(&request, &inputs, host.clone()) {
            Ok(plan) => context.decided(&plan, &*host),
            Err(failure) => {
                complain(&failure);
                return Ok(ExitCode::FAILURE);
            }
        };
        if self.json {
            let text = serde_json::to_string(&PlanFile { program: digest, plan });
            line(&text.map_err(|problem| Problem::Failed(problem.to_string()))?);
        } else {
            plan.to_string().lines().for_each(line);
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The plan to which a run is held.
#[derive(Args)]
pub struct PlanOption {
    /// Stop the program before a call that is not in this plan, which `lispbox plan --json` has printed for it.
    #[arg(long, value_name = "FILE", conflicts_with = "rehearse")]
    plan: Option<PathBuf>,
}

impl PlanOption {
    /// Returns the host of a program, held to the plan if there is one.
    ///
    /// # Errors
    /// Returns an error if the file has no plan, or that of another program.
    pub fn hold(&self, program: &str, host: Arc<dyn Host>) -> Result<Arc<dyn Host>, Problem> {
        let Some(file) = &self.plan else { return Ok(host) };
        let shown = file.display();
        let usage = |message: String| Problem::Usage(message);
        let planned: PlanFile = serde_json::from_str(&read_file(file)?).map_err(|problem| {
            usage(format!("{shown}: expected a plan as `lispbox plan --json` prints it: {problem}"))
        })?;
        if planned.program != fingerprint(program) {
            return Err(usage(format!("{shown} is the plan of another program, or of another version of it")));
        }
        if let Some(unknown) = planned.plan.unknown.first() {
            let (line, column) = (unknown.line, unknown.column);
            return Err(usage(format!("{shown} has no bounds: at {line}:{column}, {}", unknown.reason)));
        }
        let calls = planned.plan.calls.into_iter().map(|call| (call.server, call.tool, call.most));
        let log = Arc::new(RunLog::unkept());
        Ok(Arc::new(Recorder::new(host, log).within(Some(Arc::new(PlanBounds::new(calls))))))
    }
}
