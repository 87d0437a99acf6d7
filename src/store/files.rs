//! Detects that the files of an open SQLite database were replaced, removed or truncated.
//!
//! A process that has a file open continues to write to it after its name was removed or refers to another file, and
//! after a part of it was cut off: later readers cannot see what it acknowledges then. Therefore the names are checked
//! before each transaction, and after one that has to be durable.

use super::Problem;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The files of an open database.
pub(super) struct Files {
    /// The database, its write-ahead log and the index of the log, each with its identity when it was opened.
    files: Vec<(PathBuf, Identity)>,
    /// The greatest length of the database seen, in bytes.
    longest: AtomicU64,
}

/// The device and inode numbers of a file.
type Identity = (u64, u64);

impl Files {
    /// Records the files of a database in WAL mode that has just been opened and used.
    ///
    /// # Errors
    /// Returns [`Problem::Unavailable`] if they cannot be examined.
    pub(super) fn of(path: &Path) -> Result<Files, Problem> {
        let path = path.canonicalize().map_err(|problem| Problem::Unavailable(problem.to_string()))?;
        let mut files = Vec::new();
        let mut longest = 0;
        for suffix in ["", "-wal", "-shm"] {
            let mut name = OsString::from(&path);
            name.push(suffix);
            let file = PathBuf::from(name);
            // A system without file identities has nothing to compare.
            if let Some((identity, length)) = look(&file)? {
                longest = longest.max(if suffix.is_empty() { length } else { 0 });
                files.push((file, identity));
            }
        }
        Ok(Files { files, longest: AtomicU64::new(longest) })
    }

    /// Checks that the files are the same and that the database was not truncated. If it has become shorter, `is_whole`
    /// reads it to decide, because compaction shortens a database as well.
    ///
    /// # Errors
    /// Returns [`Problem::Unusable`] if a file is missing, replaced or truncated, and [`Problem::Unavailable`] if it
    /// cannot be examined.
    pub(super) fn check(&self, is_whole: impl Fn() -> bool) -> Result<(), Problem> {
        for (at, (file, identity)) in self.files.iter().enumerate() {
            let found = look(file)?;
            let Some((_, length)) = found.filter(|(found, _)| found == identity) else {
                let what = if found.is_none() { "was removed" } else { "was replaced" };
                return Err(damaged(format!(
                    "`{}` {what} after it was opened, and writes would be lost: restore it, or restart lispbox",
                    file.display()
                )));
            };
            if at == 0 && self.longest.fetch_max(length, Ordering::Relaxed) > length {
                if !is_whole() {
                    return Err(damaged(format!("`{}` is truncated", file.display())));
                }
                self.longest.store(length, Ordering::Relaxed);
            }
        }
        Ok(())
    }
}

/// Returns the identity and the length of a file, if it exists and the system has file identities.
#[cfg(unix)]
fn look(file: &Path) -> Result<Option<(Identity, u64)>, Problem> {
    use std::os::unix::fs::MetadataExt;
    match std::fs::metadata(file) {
        Ok(found) => Ok(Some(((found.dev(), found.ino()), found.len()))),
        Err(problem) if problem.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(problem) => Err(Problem::Unavailable(problem.to_string())),
    }
}

#[cfg(not(unix))]
fn look(_: &Path) -> Result<Option<(Identity, u64)>, Problem> {
    Ok(None)
}

/// Creates the problem of a damaged store.
pub(super) fn damaged(what: String) -> Problem {
    Problem::Unusable(format!("its file is damaged: {what}"))
}
