//! `lispbox config check`: does it work?

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use lispbox::lang::Tool;
use lispbox::server::{Checked, Connections, Downstreams, Effect, Verdict};

use crate::places::Places;
use crate::surroundings::Problem;

/// Starts each server, lists its tools, and says plainly what is wrong with the others. Fails if one does not work.
#[derive(Args)]
pub struct Check {
    #[command(flatten)]
    places: Places,
}

impl Check {
    /// Checks all servers side by side.
    pub(super) fn run(self) -> Result<ExitCode, Problem> {
        let configuration = self.places.read().map_err(Problem::Usage)?;
        for warning in &configuration.warnings {
            println!("warning: {warning}");
        }
        if configuration.servers.is_empty() {
            println!("no servers are configured; `lispbox config import` takes up those of other clients");
            return Ok(ExitCode::SUCCESS);
        }
        let connections = Connections::open(configuration).map_err(|problem| Problem::Failed(problem.to_string()))?;
        let checked = connections.check();
        let mut broken = 0;
        for Checked { server: name, tools } in &checked {
            match tools {
                Ok(tools) => {
                    let denied = connections.downstreams().denied(name);
                    let denied = match denied.len() {
                        0 => String::new(),
                        count => {
                            format!(", {count} more may not be called: {}", names(denied.iter().map(|(name, _)| name)))
                        }
                    };
                    let effects = effects(connections.downstreams(), tools);
                    println!("ok      {name}: {}{effects}{denied}", counted(tools.len(), "tool"));
                }
                Err(problem) => {
                    broken += 1;
                    println!("broken  {name}: {}", problem.message);
                }
            }
        }
        connections.close();
        if broken == 0 {
            return Ok(ExitCode::SUCCESS);
        }
        println!("{broken} of {} cannot be used; programs can use the others", counted(checked.len(), "server"));
        Ok(ExitCode::FAILURE)
    }
}

/// ` (5 read_only, 2 destructive: ask)`: how many tools do what, by their own account, and what becomes of a call where
/// it is not simply made.
fn effects(downstreams: &Downstreams, tools: &[Arc<Tool>]) -> String {
    let mut counts: BTreeMap<(Effect, Verdict), usize> = BTreeMap::new();
    for tool in tools {
        let verdict = downstreams.decide(tool).map_or(Verdict::Allow, |decision| decision.verdict);
        *counts.entry((Effect::of(&tool.hints), verdict)).or_default() += 1;
    }
    let each = counts.iter().map(|((effect, verdict), count)| match verdict {
        Verdict::Allow => format!("{count} {}", effect.key()),
        _ => format!("{count} {}: {}", effect.key(), verdict.key()),
    });
    let each: Vec<String> = each.collect();
    if each.is_empty() { String::new() } else { format!(" ({})", each.join(", ")) }
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// The first few names.
fn names<'n>(names: impl ExactSizeIterator<Item = &'n String>) -> String {
    const SHOWN: usize = 8;
    let count = names.len();
    let shown = names.take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if count > SHOWN { format!("{shown}, …") } else { shown }
}
