//! `lispbox completions`: what a shell needs to complete the command line.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use clap_complete::Shell;

/// Prints a script that lets your shell complete lispbox's commands and options.
#[derive(Args)]
pub struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    /// Prints the script for that command line.
    pub fn run(self, mut command_line: clap::Command) -> ExitCode {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command_line, "lispbox", &mut script);
        // Nobody is told that nobody reads any more.
        let _ = std::io::stdout().lock().write_all(&script);
        ExitCode::SUCCESS
    }
}
