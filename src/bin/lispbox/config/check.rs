//! `lispbox config check`: does it work?

use std::process::ExitCode;

use clap::Args;
use lispbox::server::{Checked, Connections};

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
                    println!("ok      {name}: {} tools{denied}", tools.len());
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
        println!("{broken} of {} servers cannot be used; programs can use the others", checked.len());
        Ok(ExitCode::FAILURE)
    }
}

/// The first few names.
fn names<'n>(names: impl ExactSizeIterator<Item = &'n String>) -> String {
    const SHOWN: usize = 8;
    let count = names.len();
    let shown = names.take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if count > SHOWN { format!("{shown}, …") } else { shown }
}
