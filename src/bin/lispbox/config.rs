//! `lispbox config`: looking after the configuration.

mod check;
mod import;
mod imported;
mod show;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::surroundings::Problem;

/// Shows, checks and imports the configuration: the servers behind lispbox and the rules for them.
#[derive(Args)]
pub struct Config {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Show(show::Show),
    Check(Box<check::Check>),
    Import(import::Import),
}

impl Config {
    /// Does it, for that command line.
    pub fn run(self, command_line: &clap::Command) -> ExitCode {
        let outcome = match self.action {
            Action::Show(action) => action.run(command_line).map(|()| ExitCode::SUCCESS),
            Action::Check(action) => action.run(),
            Action::Import(action) => action.run(),
        };
        outcome.unwrap_or_else(Problem::report)
    }
}
