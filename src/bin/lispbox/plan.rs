//! `lispbox plan`: shows which tools a program can call, without running it.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use lispbox::lang::internal::foreign_text;
use lispbox::lang::{Host, PlannedCall, Request};
use lispbox::server::{Decision, Effect};
use serde_json::{Value, json};

use crate::context::{EvaluationContext, Problem, Settings, read_file};
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
    /// Print the plan as JSON.
    #[arg(long)]
    json: bool,
}

/// The names that `lispbox eval --data` and `lispbox run` bind.
const INPUTS: [&str; 3] = ["data", "args", "*command-line-args*"];

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
        let request = Request { limits: context.limits.clone(), name, ..Request::new(program) };
        let inputs = INPUTS.map(str::to_owned);
        let plan = match context.session().plan(&request, &inputs, host.clone()) {
            Ok(plan) => plan,
            Err(failure) => {
                complain(&failure);
                return Ok(ExitCode::FAILURE);
            }
        };
        let decided: Vec<Decided<'_>> = plan.calls.iter().map(|call| decide(&context, &*host, call)).collect();
        if self.json {
            let calls: Vec<Value> = decided.iter().map(record).collect();
            let unknown = plan.unknown.iter().map(|unknown| {
                let (reason, source) = (&unknown.reason, &unknown.source);
                json!({"reason": reason, "source": source, "line": unknown.line, "column": unknown.column})
            });
            line(&json!({"calls": calls, "unknown": unknown.collect::<Vec<_>>()}).to_string());
            return Ok(ExitCode::SUCCESS);
        }
        for decided in &decided {
            line(&described(decided));
            decided.guards.iter().for_each(|guard| line(&format!("    {guard}")));
        }
        for unknown in &plan.unknown {
            let place = format!("{}:{}:{}", unknown.source, unknown.line, unknown.column);
            line(&format!("any tool  any number of calls  {place}: {}", foreign_text::line(&unknown.reason)));
        }
        if plan.calls.is_empty() && plan.unknown.is_empty() {
            line("no tools");
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// A planned call with what the policy says about it.
struct Decided<'p> {
    call: &'p PlannedCall,
    /// The decision on the tool; `None` if its server no longer answers.
    decision: Option<Decision>,
    /// The guards on the arguments, a sentence each.
    guards: Vec<String>,
}

fn decide<'p>(context: &EvaluationContext, host: &dyn Host, call: &'p PlannedCall) -> Decided<'p> {
    let tools = host.tools(&call.server).unwrap_or_default();
    let tool = tools.iter().find(|tool| tool.name == call.tool);
    let guards = tool.map_or_else(Vec::new, |tool| context.guards(tool));
    Decided { call, decision: tool.and_then(|tool| context.decide(tool)), guards }
}

fn described(Decided { call, decision, .. }: &Decided<'_>) -> String {
    let name = foreign_text::qualified(&call.server, &call.tool);
    let effect = Effect::of(&call.hints).key();
    let most = match call.most {
        Some(1) => "at most 1 call".to_owned(),
        Some(most) => format!("at most {most} calls"),
        None => "any number of calls".to_owned(),
    };
    let decision = match decision {
        Some(Decision { verdict, rule }) => format!("{}: {rule}", verdict.key()),
        None => "undecided: the server does not answer".to_owned(),
    };
    format!("{name}  {effect}  {most}  {decision}")
}

fn record(Decided { call, decision, guards }: &Decided<'_>) -> Value {
    json!({
        "server": call.server,
        "tool": call.tool,
        "effect": Effect::of(&call.hints).key(),
        "most": call.most,
        "decision": decision.as_ref().map(|decision| decision.verdict.key()),
        "rule": decision.as_ref().map(|decision| &decision.rule),
        "guards": guards,
    })
}
