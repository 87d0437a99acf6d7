//! `lispbox tools`: lists the tools that programs can call.

use std::process::ExitCode;

use clap::Args;
use lispbox::lang::internal::closest;
use lispbox::lang::internal::foreign_text;
use lispbox::lang::{Catalogue, Tool};
use lispbox::server::{Connections, DownstreamOptions};

use crate::config_paths::ConfigPaths;
use crate::context::{Problem, WITH_ALL_STARTS};
use crate::output::{errln, outln};
use crate::permissions::Permissions;

/// Lists the servers of a configuration and their tools.
#[derive(Args)]
pub struct Tools {
    #[command(flatten)]
    config: ConfigPaths,
    #[command(flatten)]
    permissions: Permissions,
    /// Only tools with this word in their name or description.
    word: Option<String>,
}

impl Tools {
    /// Prints the list. Fails if no tool contains the word; without a word, if a server did not answer.
    pub fn run(self) -> ExitCode {
        self.list().unwrap_or_else(Problem::report)
    }

    fn list(self) -> Result<ExitCode, Problem> {
        let configuration = self.config.read().map_err(Problem::Usage)?;
        configuration.warnings.iter().for_each(|warning| errln!("lispbox: {warning}"));
        if configuration.servers.is_empty() {
            errln!("lispbox: no servers are configured; give a file with `mcpServers` by `--config FILE`");
            return Ok(if self.word.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS });
        }
        let mut servers: Vec<String> = configuration.servers.iter().map(|server| server.name.clone()).collect();
        let policy = self.permissions.policy()?;
        let options = DownstreamOptions { policy, listing: WITH_ALL_STARTS, ..DownstreamOptions::default() };
        let connections =
            Connections::open_with(configuration, options).map_err(|problem| Problem::Failed(problem.to_string()))?;
        let catalogue = connections.catalogue();
        connections.close();
        let shown = fitting(&catalogue, self.word.as_deref());
        for tool in &shown {
            outln!("{}", tool.signature());
        }
        for (server, reason) in &catalogue.missing {
            errln!("lispbox: {}: {}", foreign_text::name(server), foreign_text::line(reason));
        }
        match &self.word {
            None if catalogue.missing.is_empty() => Ok(ExitCode::SUCCESS),
            None => Ok(ExitCode::FAILURE),
            Some(_) if !shown.is_empty() => Ok(ExitCode::SUCCESS),
            Some(word) => {
                if let Some((server, _)) = catalogue.missing.iter().find(|(server, _)| server.contains(word.as_str())) {
                    return Err(Problem::Failed(format!("no tool has `{word}`; server `{server}` could not be asked")));
                }
                servers.extend(catalogue.tools.iter().map(|tool| tool.name.clone()));
                servers.extend(catalogue.tools.iter().map(|tool| format!("{}/{}", tool.server, tool.name)));
                let parts: Vec<String> =
                    servers.iter().flat_map(|name| name.split(['/', '-', '_'])).map(str::to_owned).collect();
                servers.extend(parts);
                let nearest = closest(word, servers.iter().map(String::as_str));
                let nearest = nearest.map_or_else(String::new, |name| format!("; did you mean `{name}`?"));
                Err(Problem::Failed(format!("no tool has `{word}` in its name or description{nearest}")))
            }
        }
    }
}

/// The tools whose name or description contains the word.
fn fitting<'c>(catalogue: &'c Catalogue, word: Option<&str>) -> Vec<&'c Tool> {
    let word = word.unwrap_or_default().to_lowercase();
    let has_word =
        |tool: &&Tool| format!("{}/{} {}", tool.server, tool.name, tool.description).to_lowercase().contains(&word);
    catalogue.tools.iter().map(AsRef::as_ref).filter(has_word).collect()
}
