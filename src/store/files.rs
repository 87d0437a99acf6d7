//! Whether the files of a SQLite database are still those that were opened.
//!
//! A process that has a file open goes on writing to it when its name is gone or means another file, and when a part of
//! it was cut off: what it acknowledges then can be read by nobody who comes after it. So the names are looked up before
//! each transaction, and after one that has to last.

use super::Problem;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The files of an open database.
pub(super) struct Files {
    /// The database, its log, and the index of the log, each with what it was when it was opened.
    files: Vec<(PathBuf, Identity)>,
    /// How long the database has been seen to be, in bytes.
    longest: AtomicU64,
}

/// What tells one file of a machine from another.
type Identity = (u64, u64);

impl Files {
    /// The files of a database in WAL mode that has just been opened and used.
    ///
    /// # Errors
    /// [`Problem::Unavailable`] if they cannot be looked at.
    pub(super) fn of(path: &Path) -> Result<Files, Problem> {
        let path = path.canonicalize().map_err(|problem| Problem::Unavailable(problem.to_string()))?;
        let mut files = Vec::new();
        let mut longest = 0;
        for suffix in ["", "-wal", "-shm"] {
            let mut name = OsString::from(&path);
            name.push(suffix);
            let file = PathBuf::from(name);
            // A system without identities of files has nothing to compare.
            if let Some((identity, length)) = look(&file)? {
                longest = longest.max(if suffix.is_empty() { length } else { 0 });
                files.push((file, identity));
            }
        }
        Ok(Files { files, longest: AtomicU64::new(longest) })
    }

    /// Looks whether they are the same files, and whether the database has lost its end; `is_whole` reads it then, as
    /// one that was compacted has become shorter as well.
    ///
    /// # Errors
    /// [`Problem::Unusable`].
    pub(super) fn check(&self, is_whole: impl Fn() -> bool) -> Result<(), Problem> {
        for (at, (file, identity)) in self.files.iter().enumerate() {
            let found = look(file)?;
            let Some((_, length)) = found.filter(|(found, _)| found == identity) else {
                let what = if found.is_none() { "is gone" } else { "is another file" };
                return Err(damaged(format!(
                    "`{}` {what} since it was opened, and what is written now would be lost: put it back, or restart \
                     lispbox",
                    file.display()
                )));
            };
            if at == 0 && self.longest.fetch_max(length, Ordering::Relaxed) > length {
                if !is_whole() {
                    return Err(damaged(format!("`{}` has lost its end", file.display())));
                }
                self.longest.store(length, Ordering::Relaxed);
            }
        }
        Ok(())
    }
}

/// The identity and the length of a file, if it is there and the system has such a thing.
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

/// That the store itself is not what it was.
pub(super) fn damaged(what: String) -> Problem {
    Problem::Unusable(format!("its file is damaged: {what}"))
}
