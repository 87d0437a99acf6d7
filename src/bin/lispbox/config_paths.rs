//! `--config`: the location of the configuration.

use std::path::PathBuf;

use clap::Args;
use lispbox::server::{Configuration, Sources};

/// The variable with the paths that are read if `--config` is not given.
pub const VARIABLE: &str = "LISPBOX_CONFIG";

/// The files and folders of the configuration, from the command line or the environment.
#[derive(Args)]
pub struct ConfigPaths {
    /// Servers whose tools programs may call, and rules for them: a file in the format of MCP clients (`mcpServers`,
    /// `servers`), a YAML or TOML file, or a folder of such files. If several are given, later ones take precedence.
    /// The default is LISPBOX_CONFIG, or else the user's own configuration: `config.yaml` and the folder `config.d` in
    /// the settings folder of lispbox.
    #[arg(long = "config", value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Read no configuration.
    #[arg(long, conflicts_with = "paths")]
    no_config: bool,
}

impl ConfigPaths {
    /// The sources to read.
    pub fn sources(&self) -> Sources {
        if self.no_config {
            return Sources::default();
        }
        if !self.paths.is_empty() {
            return Sources::new(self.paths.clone());
        }
        match std::env::var_os(VARIABLE).filter(|paths| !paths.is_empty()) {
            Some(paths) => Sources::new(std::env::split_paths(&paths).collect()),
            None => Sources::usual(),
        }
    }

    /// True if the command line names a configuration.
    pub fn is_given(&self) -> bool {
        !self.paths.is_empty()
    }

    /// Reads the configuration.
    ///
    /// # Errors
    /// Returns a message if a file cannot be read or is invalid.
    pub fn read(&self) -> Result<Configuration, String> {
        self.sources().read().map_err(|error| error.to_string())
    }
}
