//! `lispbox completions`: generates shell completions.

use std::process::ExitCode;

use clap::Args;
use clap_complete::Shell;

use crate::output::out;

/// Prints a script that lets your shell complete lispbox's commands and options.
#[derive(Args)]
pub struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    /// Prints the script for this command line.
    pub fn run(self, mut command_line: clap::Command) -> ExitCode {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command_line, "lispbox", &mut script);
        out!("{}", String::from_utf8_lossy(&script));
        ExitCode::SUCCESS
    }
}
