//! The files and folders of a configuration.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::server::system::folders::usual_folder;

use super::{Configuration, ConfigurationError};

/// The extensions of files that are read in a folder.
const ENDINGS: &[&str] = &["json", "yaml", "yml", "toml"];

/// Files and drop-in folders, read in order: later ones take precedence over earlier ones.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    paths: Vec<PathBuf>,
    /// True for the default locations of a user's configuration, which need not exist.
    are_usual: bool,
}

/// The modification times and sizes of files when they were read.
type Stamp = Vec<(PathBuf, Option<Looks>)>;

/// The modification time and the size of a file.
type Looks = (SystemTime, u64);

/// A file of a configuration.
struct FoundFile {
    file: PathBuf,
    /// True if it was found in a folder.
    was_dropped: bool,
    /// Absent if the file cannot be looked at.
    looks: Option<Looks>,
}

fn looks(metadata: &Metadata) -> Option<Looks> {
    Some((metadata.modified().ok()?, metadata.len()))
}

/// The sources of a configuration and their state when it was read.
#[derive(Clone, Debug)]
pub struct Origin {
    sources: Sources,
    stamp: Stamp,
}

impl Origin {
    /// Reads the configuration again if its files have changed since the last attempt, even if that attempt failed.
    ///
    /// # Errors
    /// As for [`Sources::read`].
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
    /// Creates sources of these files and folders, all of which must exist.
    pub fn new(paths: Vec<PathBuf>) -> Sources {
        Sources { paths, are_usual: false }
    }

    /// Returns the sources of a user's own configuration: `config.yaml`, `config.yml`, `config.toml` or `config.json`
    /// in the settings folder of lispbox on this system, and all files in its folder `config.d`.
    pub fn usual() -> Sources {
        let Some(folder) = usual_folder() else { return Sources::default() };
        let files = ["config.yaml", "config.yml", "config.toml", "config.json", "config.d"];
        Sources { paths: files.iter().map(|file| folder.join(file)).collect(), are_usual: true }
    }

    /// Returns the paths of the files and folders.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Returns the files that exist now, in the order in which they are read.
    pub fn files(&self) -> Vec<PathBuf> {
        self.found().into_iter().map(|found| found.file).collect()
    }

    /// Returns the files that exist now. This is done before each evaluation, so each path is looked at once, and none of a
    /// settings folder that does not exist.
    fn found(&self) -> Vec<FoundFile> {
        let mut files = Vec::new();
        let usual = self.paths.first().and_then(|path| path.parent()).filter(|_| self.are_usual);
        if usual.is_some_and(|folder| !folder.exists()) {
            return files;
        }
        for path in &self.paths {
            match std::fs::metadata(path) {
                Ok(metadata) if metadata.is_dir() => files.extend(dropped_into(path)),
                Ok(metadata) => {
                    files.push(FoundFile { file: path.clone(), was_dropped: false, looks: looks(&metadata) });
                }
                Err(_) if self.are_usual => {}
                Err(_) => files.push(FoundFile { file: path.clone(), was_dropped: false, looks: None }),
            }
        }
        files
    }

    /// Returns the current modification times and sizes of the files.
    fn stamp(&self) -> Stamp {
        self.found().into_iter().map(|FoundFile { file, looks, .. }| (file, looks)).collect()
    }

    /// Reads the configuration. An invalid file in a folder is skipped with a warning.
    ///
    /// # Errors
    /// Returns an error if a file that was named explicitly cannot be read or has the wrong shape.
    pub fn read(&self) -> Result<Configuration, ConfigurationError> {
        // Take the stamp first, so that a change during reading causes a reload.
        let origin = Origin { sources: self.clone(), stamp: self.stamp() };
        let mut configuration = Configuration { origin: Some(origin), ..Configuration::default() };
        for FoundFile { file, was_dropped, .. } in self.found() {
            match read(&file) {
                Ok(more) => configuration.merge(more),
                Err(error) if was_dropped => {
                    configuration.warnings.push(format!("ignored {error}"));
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

/// Returns the configuration files of a folder, recognized and sorted by name.
fn dropped_into(folder: &Path) -> Vec<FoundFile> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let found = entries.filter_map(|entry| {
        let file = entry.path();
        let metadata = if is_configuration(&file) { std::fs::metadata(&file).ok()? } else { return None };
        let looks = looks(&metadata);
        metadata.is_file().then_some(FoundFile { file, was_dropped: true, looks })
    });
    let mut files: Vec<FoundFile> = found.collect();
    files.sort_by(|one, other| one.file.cmp(&other.file));
    files
}

/// True for the name of a configuration file.
fn is_configuration(file: &Path) -> bool {
    let is_hidden = file.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    let ending = file.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    !is_hidden && ENDINGS.contains(&ending.as_str())
}
