//! `lispbox login`: logs in at a downstream server.

use std::process::ExitCode;

use clap::Args;
use lispbox::lang::internal::closest;
use lispbox::server::Connections;

use crate::config_paths::ConfigPaths;
use crate::context::Problem;
use crate::output::outln;

/// Logs in at a downstream server that requires OAuth: prints an address to open in a browser, waits for the login, and
/// stores the tokens in the settings folder of lispbox, in a file that only you can read.
#[derive(Args)]
pub struct Login {
    #[command(flatten)]
    config: ConfigPaths,
    /// The name of the server in the configuration.
    server: String,
}

impl Login {
    /// Runs the command.
    pub fn run(self) -> ExitCode {
        self.log_in().map_or_else(Problem::report, |()| ExitCode::SUCCESS)
    }

    fn log_in(self) -> Result<(), Problem> {
        let configuration = self.config.read().map_err(Problem::Usage)?;
        let mut names = configuration.servers.iter().map(|server| server.name.as_str());
        if !names.clone().any(|name| name == self.server) {
            let nearest = closest(&self.server, &mut names).map(|name| format!("; did you mean `{name}`?"));
            let message = format!("there is no server `{}`{}", self.server, nearest.unwrap_or_default());
            return Err(Problem::Usage(message));
        }
        let connections = Connections::open(configuration).map_err(|problem| Problem::Failed(problem.to_string()))?;
        let show = |address: &str| outln!("Open this address in a browser, and log in there:\n\n{address}\n");
        let outcome = connections.log_in(&self.server, show);
        connections.close();
        outcome.map_err(Problem::Failed)?;
        outln!("You are logged in at `{}`.", self.server);
        Ok(())
    }
}
