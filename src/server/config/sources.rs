//! The files and folders that a configuration comes from.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{Configuration, ConfigurationError};
use crate::server::folders::usual_folder;

/// The endings of files that are read in a folder.
const ENDINGS: &[&str] = &["json", "yaml", "yml", "toml"];

/// Files and drop-in folders, read one after another: what comes later goes before what came earlier.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    paths: Vec<PathBuf>,
    /// True for the places where a user's configuration usually is: they need not be there.
    are_usual: bool,
}

/// What files looked like when they were read.
type Stamp = Vec<(PathBuf, Option<(SystemTime, u64)>)>;

/// Where a configuration was read, and what was there then.
#[derive(Clone, Debug)]
pub struct Origin {
    sources: Sources,
    stamp: Stamp,
}

impl Origin {
    /// Reads the configuration again if something has changed since it was last read, or last could not be.
    ///
    /// # Errors
    /// As [`Sources::read`].
    pub fn reread(&mut self) -> Result<Option<Configuration>, ConfigurationError> {
        let stamp = self.sources.stamp();
        if stamp == self.stamp {
            return Ok(None);
        }
        self.stamp = stamp;
        self.sources.read().map(Some)
    }
}

impl Sources {
    /// These files and folders; all of them have to be there.
    pub fn new(paths: Vec<PathBuf>) -> Sources {
        Sources { paths, are_usual: false }
    }

    /// A user's own configuration: `config.yaml`, `config.toml` or `config.json` in the folder for lispbox where this
    /// system keeps settings, and all files in its folder `config.d`.
    pub fn usual() -> Sources {
        let Some(folder) = usual_folder() else { return Sources::default() };
        let files = ["config.yaml", "config.yml", "config.toml", "config.json", "config.d"];
        Sources { paths: files.iter().map(|file| folder.join(file)).collect(), are_usual: true }
    }

    /// Where they are.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// The files that there are now, in the order in which they are read.
    pub fn files(&self) -> Vec<PathBuf> {
        self.found().into_iter().map(|(file, _)| file).collect()
    }

    /// The files that there are now, and whether each was found in a folder.
    fn found(&self) -> Vec<(PathBuf, bool)> {
        let mut files = Vec::new();
        for path in &self.paths {
            if path.is_dir() {
                files.extend(dropped_into(path).into_iter().map(|file| (file, true)));
            } else if !self.are_usual || path.exists() {
                files.push((path.clone(), false));
            }
        }
        files
    }

    /// What the files look like now.
    fn stamp(&self) -> Stamp {
        let look = |file: PathBuf| {
            let metadata = std::fs::metadata(&file).ok();
            let looks = metadata.and_then(|metadata| Some((metadata.modified().ok()?, metadata.len())));
            (file, looks)
        };
        self.files().into_iter().map(look).collect()
    }

    /// Reads them. A file in a folder that cannot be used is passed over with a warning.
    ///
    /// # Errors
    /// When a file that was named cannot be read or has the wrong shape.
    pub fn read(&self) -> Result<Configuration, ConfigurationError> {
        // What changes while it is read is read again.
        let origin = Origin { sources: self.clone(), stamp: self.stamp() };
        let mut configuration = Configuration { origin: Some(origin), ..Configuration::default() };
        for (file, was_dropped) in self.found() {
            match read(&file) {
                Ok(more) => configuration.merge(more),
                Err(error) if was_dropped => {
                    configuration.warnings.push(format!("passed over {error}"));
                    configuration.unusable.push(error.file);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(configuration)
    }
}

fn read(file: &Path) -> Result<Configuration, ConfigurationError> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|problem| ConfigurationError {
        file: name.clone(),
        path: String::new(),
        message: problem.to_string(),
    })?;
    Configuration::parse(&text, &name, &|variable| std::env::var(variable).ok())
}

/// The files of a folder that are configurations by their names, in the order of these.
fn dropped_into(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|file| is_configuration(file)).collect();
    files.sort();
    files
}

fn is_configuration(file: &Path) -> bool {
    let is_hidden = file.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    let ending = file.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    !is_hidden && ENDINGS.contains(&ending.as_str()) && file.is_file()
}
