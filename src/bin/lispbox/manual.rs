//! `lispbox manual`: writes the manual pages, for packages.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::context::Problem;

/// Writes a manual page for each command into a folder.
#[derive(Args)]
pub struct Manual {
    /// The folder, which is created if it does not exist.
    folder: PathBuf,
}

impl Manual {
    /// Writes the pages of this command line.
    pub fn run(self, command_line: clap::Command) -> ExitCode {
        let written = std::fs::create_dir_all(&self.folder)
            .and_then(|()| clap_mangen::generate_to(command_line, &self.folder))
            .map_err(|problem| Problem::Failed(format!("{}: {problem}", self.folder.display())));
        written.map_or_else(Problem::report, |()| ExitCode::SUCCESS)
    }
}
