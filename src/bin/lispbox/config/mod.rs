//! `lispbox config`: shows, checks and imports the configuration, and reviews changes of the tools in it.

mod check;
pub mod import;
pub mod imported;
mod placed;
mod review;
mod show;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::context::Problem;

pub use check::counted;

/// Shows, checks and imports the configuration: the downstream servers and the rules for them. Reviews how servers have
/// changed their tools.
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
    Review(Box<review::Review>),
}

impl Config {
    /// Runs the subcommand; `command_line` declares the settings of `serve`.
    pub fn run(self, command_line: &clap::Command) -> ExitCode {
        let outcome = match self.action {
            Action::Show(action) => action.run(command_line).map(|()| ExitCode::SUCCESS),
            Action::Check(action) => action.run(),
            Action::Import(action) => action.run(),
            Action::Review(action) => action.run(),
        };
        outcome.unwrap_or_else(Problem::report)
    }
}
