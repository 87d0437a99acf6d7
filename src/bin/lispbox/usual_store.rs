//! The store of a server on standard input and output for which none is named: a SQLite file among the user's data.
//!
//! Nobody has asked for it, so trouble with it is never a reason not to start: sessions then stay in memory.

use std::path::PathBuf;
use std::sync::Arc;

use lispbox::server::{data_folder, make_private};
use lispbox::store::{Store, open, probe};

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
    probe(&*store).map_err(|problem| problem.to_string())?;
    Ok(store)
}
