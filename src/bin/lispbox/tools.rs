//! `lispbox tools`: what programs can call.

use std::process::ExitCode;

use clap::Args;
use lispbox::lang::{Catalogue, Tool};
use lispbox::server::Connections;

use crate::places::Places;

/// Lists the servers of a configuration and their tools.
#[derive(Args)]
pub struct Tools {
    #[command(flatten)]
    places: Places,
    /// Only tools with this word in their name or description.
    word: Option<String>,
}

impl Tools {
    /// Prints the list; fails when a server did not answer.
    pub fn run(self) -> ExitCode {
        let configuration = match self.places.read() {
            Ok(configuration) => configuration,
            Err(message) => {
                eprintln!("lispbox: {message}");
                return ExitCode::from(2);
            }
        };
        if configuration.servers.is_empty() {
            eprintln!("lispbox: no servers are configured; give a file with `mcpServers` by `--config FILE`");
            return ExitCode::SUCCESS;
        }
        let connections = match Connections::open(configuration) {
            Ok(connections) => connections,
            Err(problem) => {
                eprintln!("lispbox: {problem}");
                return ExitCode::FAILURE;
            }
        };
        let catalogue = connections.catalogue();
        connections.close();
        print!("{}", listing(&catalogue, self.word.as_deref()));
        for (server, reason) in &catalogue.missing {
            eprintln!("{server}: {reason}");
        }
        if catalogue.missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// One line for each tool that has the word.
fn listing(catalogue: &Catalogue, word: Option<&str>) -> String {
    let word = word.unwrap_or_default().to_lowercase();
    let wanted =
        |tool: &Tool| format!("{}/{} {}", tool.server, tool.name, tool.description).to_lowercase().contains(&word);
    let tools = catalogue.tools.iter().filter(|tool| wanted(tool));
    tools.map(|tool| tool.signature() + "\n").collect()
}
