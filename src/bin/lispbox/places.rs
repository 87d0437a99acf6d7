//! `--config`: where the configuration is.

use std::path::PathBuf;

use clap::Args;
use lispbox::server::{Configuration, Sources};

/// The variable with the paths that are read where `--config` is not given.
pub const VARIABLE: &str = "LISPBOX_CONFIG";

/// The files and folders of the configuration, as the command line or the environment names them.
#[derive(Args)]
pub struct Places {
    /// Servers whose tools programs may call, and rules for them: a file as clients have it (`mcpServers`, `servers`), or
    /// in YAML or TOML, or a folder of such files. Several may be given, the later before the earlier. Without it
    /// LISPBOX_CONFIG, or else the user's own: `config.yaml` and the folder `config.d` where settings of lispbox are.
    #[arg(long = "config", value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Read no configuration.
    #[arg(long, conflicts_with = "paths")]
    no_config: bool,
}

impl Places {
    /// Where to read.
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

    /// Reads the configuration.
    ///
    /// # Errors
    /// When a file cannot be read or has the wrong shape.
    pub fn read(&self) -> Result<Configuration, String> {
        self.sources().read().map_err(|error| error.to_string())
    }
}
