//! Plans as replies show them, with what the policy decides on their calls.

use crate::foreign_text;
use crate::plan::UnknownCall;
use crate::runs::at_most;
use serde::{Deserialize, Serialize};

/// A plan with the decisions on its calls: the reply about a program that was not run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DecidedPlan {
    /// The tools that the program can call.
    pub calls: Vec<DecidedCall>,
    /// The places at which the program may call any tool any number of times.
    pub unknown: Vec<UnknownCall>,
    /// A sentence on how the plan is approved.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub next: String,
}

/// A tool that a program can call, with the decision on it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DecidedCall {
    /// The exact name of the server.
    pub server: String,
    /// The exact name of the tool.
    pub tool: String,
    /// The effect that the server declares, such as `read_only`.
    pub effect: String,
    /// The most calls that a run makes; `None` if there is no evident bound.
    pub most: Option<u64>,
    /// The decision: `allow`, `ask` or `deny`; `None` if the server no longer answers.
    pub decision: Option<String>,
    /// The rule that decides, as a clause.
    pub rule: Option<String>,
    /// The guards on the arguments, a sentence each.
    pub guards: Vec<String>,
}

impl std::fmt::Display for DecidedPlan {
    /// Writes a line for each tool, the guards on its arguments, and how the plan is approved.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut lines = Vec::new();
        for DecidedCall { server, tool, effect, most, decision, rule, guards } in &self.calls {
            let name = foreign_text::qualified(server, tool);
            let decision = match (decision, rule) {
                (Some(decision), Some(rule)) => format!("{decision}: {rule}"),
                (Some(decision), None) => decision.clone(),
                (None, _) => "undecided: the server does not answer".to_owned(),
            };
            lines.push(format!("{name}  {effect}  {}  {decision}", at_most(*most)));
            lines.extend(guards.iter().map(|guard| format!("    {guard}")));
        }
        for UnknownCall { reason, source, line, column } in &self.unknown {
            let (source, reason) = (foreign_text::line(source), foreign_text::line(reason));
            lines.push(format!("any tool  any number of calls  {source}:{line}:{column}: {reason}"));
        }
        if lines.is_empty() {
            lines.push("no tools".to_owned());
        }
        if !self.next.is_empty() {
            lines.push(format!("\n{}", self.next));
        }
        f.write_str(&lines.join("\n"))
    }
}
