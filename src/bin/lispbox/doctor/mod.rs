//! `lispbox doctor`: whether lispbox is attached and works, and the command that mends what does not.

mod attachment;
mod client_files;
mod records;
mod store;

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use lispbox::lang::internal::foreign_text;
use lispbox::server::{CheckProgress, Checked, Configuration, Connections, DownstreamOptions};

use crate::config::counted;
use crate::config_paths::ConfigPaths;
use crate::context::Problem;
use crate::output::outln;

/// The interval of reports about servers that are still starting.
const STILL: Duration = Duration::from_secs(5);

/// Says which clients lispbox is attached to, starts each server, looks at the store and at what waits for you, and names
/// the command that mends what does not work. Changes nothing. Fails if something does not work.
#[derive(Args)]
pub struct Doctor {
    #[command(flatten)]
    config: ConfigPaths,
}

impl Doctor {
    /// Runs the command; the exit code is 1 if something does not work.
    pub fn run(self) -> ExitCode {
        let examined = self.examine();
        examined.map_or_else(Problem::report, |is_well| if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn examine(&self) -> Result<bool, Problem> {
        let files = client_files::all();
        let clients = client_files::examine(&files);
        let configuration = self.config.read().map_err(Problem::Usage)?;
        let moved = records::examine(&files, &configuration);
        let servers = servers(configuration)?;
        let store = store::examine();
        let is_well = clients && moved && servers && store;
        if is_well {
            outln!("all is well");
        }
        Ok(is_well)
    }
}

/// Starts each server; returns false if one does not work.
fn servers(configuration: Configuration) -> Result<bool, Problem> {
    configuration.warnings.iter().for_each(|warning| outln!("warning {}", foreign_text::line(warning)));
    if configuration.servers.is_empty() {
        outln!("        servers: none; `lispbox config import` imports those of your clients");
        return Ok(true);
    }
    let connections = Connections::open_with(configuration, DownstreamOptions::default());
    let connections = connections.map_err(|problem| Problem::Failed(problem.to_string()))?;
    let mut is_well = true;
    connections.check_each(STILL, |progress| match progress {
        CheckProgress::Starting(names) => outln!("        still starting: {}", names.join(", ")),
        CheckProgress::Done(Checked { server, tools, unusable, .. }) => {
            let name = foreign_text::name(&server);
            match tools {
                Ok(_) if !unusable.is_empty() => {
                    is_well = false;
                    outln!("broken  server {name}: {}", unusable.join("; "));
                }
                Ok(tools) => outln!("ok      server {name}: {}", counted(tools.len(), "tool")),
                Err(problem) => {
                    is_well = false;
                    outln!("broken  {}", foreign_text::line(&problem.message));
                }
            }
        }
    });
    connections.close();
    Ok(is_well)
}
