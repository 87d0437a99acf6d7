//! The store of a server on standard input and output for which none is named: a SQLite file among the user's data.
//!
//! Nobody has asked for it, so trouble with it is never a reason not to start: sessions then stay in memory.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lispbox::server::{data_folder, make_private};
use lispbox::store::{Key, Lease, Problem, Store, Stored, Summary, open, probe};

/// The value of `--store` that keeps sessions in memory only.
pub const MEMORY: &str = "memory";

/// Size of its data above which the sessions that were not used for the longest time expire.
pub const MOST: u64 = 512 << 20;

/// Returns its file, which need not exist; `None` if the folder of the user's data is unknown.
pub fn file() -> Option<PathBuf> {
    data_folder().map(|folder| folder.join("sessions.db"))
}

/// Returns its URL.
pub fn url() -> Option<String> {
    file().map(|file| format!("sqlite:{}", file.display()))
}

/// Opens it, and creates it if it does not exist, in a folder that only its owner can read.
///
/// # Errors
/// Returns why it cannot be used, as a clause.
pub fn open_usual() -> Result<Arc<dyn Store>, String> {
    let (file, url) = file().zip(url()).ok_or("the folder of the user's data is unknown")?;
    let said = |problem: std::io::Error| format!("{}: {problem}", file.display());
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(said)?;
    }
    let store = open(&url)?;
    make_private(&file).map_err(said)?;
    probe(&*store).map_err(|problem| match problem {
        Problem::Unavailable(reason) | Problem::Unusable(reason) => reason,
        other => other.to_string(),
    })?;
    Ok(store)
}

/// Checks that it can be created, where there is none yet. Leaves nothing behind.
///
/// # Errors
/// Returns why its folder cannot be written to, as a clause.
pub fn check_folder(file: &Path) -> Result<(), String> {
    let is_there = |folder: &&Path| {
        let looked = std::fs::symlink_metadata(folder);
        !looked.is_err_and(|problem| matches!(problem.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory))
    };
    let folder = file.ancestors().skip(1).find(is_there).unwrap_or(Path::new("."));
    let written = tempfile::tempfile_in(folder);
    written.map(drop).map_err(|problem| format!("{} cannot be written to: {problem}", folder.display()))
}

/// Stands for the usual store where it cannot be used: programs do without it, and their replies say why.
pub struct Unusable(pub String);

impl Unusable {
    fn problem<T>(&self) -> Result<T, Problem> {
        Err(Problem::Unusable(self.0.clone()))
    }
}

impl Store for Unusable {
    fn lease(&self, _: &Key, _: &str) -> Result<Lease, Problem> {
        self.problem()
    }

    fn renew(&self, _: &Key, _: &Lease) -> Result<(), Problem> {
        self.problem()
    }

    fn release(&self, _: &Key, _: &Lease) -> Result<(), Problem> {
        self.problem()
    }

    fn read(&self, _: &Key, _: u64) -> Result<Option<Stored>, Problem> {
        self.problem()
    }

    fn create(&self, _: &Key, _: &str, _: &[String]) -> Result<(), Problem> {
        self.problem()
    }

    fn write(&self, _: &Key, _: &Lease, _: u64, _: &str, _: &[String]) -> Result<u64, Problem> {
        self.problem()
    }

    fn definer(&self, _: &str, _: &str, _: &str) -> Result<Option<String>, Problem> {
        self.problem()
    }

    fn list(&self) -> Result<Vec<Summary>, Problem> {
        self.problem()
    }

    fn remove(&self, _: &Key, _: Option<&Lease>) -> Result<(), Problem> {
        self.problem()
    }

    /// Nothing is in it that could expire.
    fn expire(&self, _: Duration) -> Result<u64, Problem> {
        Ok(0)
    }

    /// Nothing is in it that could expire.
    fn expire_old(&self, _: Duration) -> Result<u64, Problem> {
        Ok(0)
    }

    fn has_many(&self, _: &str, _: u64) -> Result<bool, Problem> {
        self.problem()
    }

    fn check(&self) -> Result<(), Problem> {
        self.problem()
    }
}
