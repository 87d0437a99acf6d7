//! Learned result shapes on disk, one file for each server and principal.
//!
//! A shape is valid for one version of the server (the name and version that it reports) and for one schema of the
//! tool; a file of another version is ignored and then replaced. The principal enters the name of the file only as a
//! SHA-256, and a principal's file is read only for that principal.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use indexmap::IndexSet;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::server::config::ServerConfig;
use crate::server::identity::sha256;

use super::arguments::{CheckedTool, PRINCIPALS};
use super::cache::Cache;
use super::learned_shape::LearnedShape;

/// Maximum size of a file, in bytes; the shapes of further tools are not stored.
const LARGEST: usize = 1 << 20;

/// Maximum number of files; the oldest are removed.
const FILES: usize = 2_000;

/// Minimum interval between two writes of the shapes of a server.
const INTERVAL: Duration = Duration::from_secs(10);

/// The learned shapes of one server on disk.
pub(super) struct Shapes {
    cache: Arc<Cache>,
    server: String,
    /// The beginning of the files' paths; `None` if nothing is stored.
    place: Option<PathBuf>,
    state: Mutex<State>,
    writing: Mutex<()>,
}

#[derive(Default)]
struct State {
    /// The principals whose files have been read, least recently used first.
    read: IndexSet<String>,
    /// The principals with shapes that have not been written.
    changed: BTreeSet<String>,
    written: Option<Instant>,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    version: String,
    tools: BTreeMap<String, KeptShape>,
}

#[derive(Serialize, Deserialize)]
struct KeptShape {
    /// The digest of the tool's schemas.
    schema: String,
    shape: Value,
}

impl Shapes {
    pub(super) fn new(cache: &Arc<Cache>, config: &ServerConfig) -> Shapes {
        Shapes {
            place: cache.place("shapes", config),
            cache: Arc::clone(cache),
            server: config.name.clone(),
            state: Mutex::default(),
            writing: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self, principal: &str) -> Option<PathBuf> {
        let mut name = self.place.as_ref()?.file_name()?.to_owned();
        name.push(format!("-{}.json", sha256(principal.as_bytes())));
        Some(self.place.as_ref()?.with_file_name(name))
    }

    /// Returns true if the shapes of a principal are yet to be read, and counts them as read from now on.
    pub(super) fn claim(&self, principal: &str) -> bool {
        if self.place.is_none() {
            return false;
        }
        let mut state = self.state();
        let was_read = state.read.shift_remove(principal);
        state.read.insert(principal.to_owned());
        if state.read.len() > PRINCIPALS {
            state.read.shift_remove_index(0);
        }
        !was_read
    }

    /// Forgets which files have been read: the tools have been listed anew.
    pub(super) fn read_again(&self) {
        self.state().read.clear();
    }

    /// Gives the tools the shapes that a principal has learned earlier from this version of the server. `harmless`
    /// redacts the secrets in a shape.
    pub(super) fn give(
        &self,
        principal: &str,
        version: &str,
        tools: &[Arc<CheckedTool>],
        harmless: impl Fn(Value) -> Value,
    ) {
        let Some(file) = self.file(principal) else { return };
        let mut kept = self.read(&file, version);
        for checked in tools {
            if let Some(kept) = kept.remove(&checked.tool.name).filter(|kept| kept.schema == checked.digest()) {
                checked.take_up(principal, LearnedShape::of(&harmless(kept.shape)));
            }
        }
    }

    fn read(&self, file: &Path, version: &str) -> BTreeMap<String, KeptShape> {
        let kept: Option<Kept> = self.cache.read(file, LARGEST as u64, &self.server);
        kept.filter(|kept| kept.version == version).map(|kept| kept.tools).unwrap_or_default()
    }

    /// Records that a principal has learned something.
    pub(super) fn learned(&self, principal: &str) {
        if self.place.is_some() {
            self.state().changed.insert(principal.to_owned());
        }
    }

    /// Returns the principals whose shapes are to be written now: none if that was done less than [`INTERVAL`] ago,
    /// unless it must be `at_once`.
    pub(super) fn due(&self, at_once: bool) -> BTreeSet<String> {
        let mut state = self.state();
        let is_due = at_once || state.written.is_none_or(|when| when.elapsed() > INTERVAL);
        if !is_due || state.changed.is_empty() {
            return BTreeSet::new();
        }
        state.written = Some(Instant::now());
        std::mem::take(&mut state.changed)
    }

    /// Writes the shapes that a principal has learned from this version of the server. Those that another process has
    /// stored meanwhile are merged.
    pub(super) fn write(&self, principal: &str, version: &str, tools: &[Arc<CheckedTool>]) {
        let Some(file) = self.file(principal) else { return };
        let _turn = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.read(&file, version);
        let mut kept = Kept { version: version.to_owned(), tools: BTreeMap::new() };
        let mut size = 0;
        for checked in tools {
            let name = &checked.tool.name;
            let stored = before.get(name).filter(|stored| stored.schema == checked.digest());
            let mut seen = checked.seen_by(principal).unwrap_or_default();
            stored.into_iter().for_each(|stored| seen.join(LearnedShape::of(&stored.shape)));
            let Some(shape) = seen.schema() else { continue };
            let schema = checked.digest().to_owned();
            size += name.len() + schema.len() + shape.to_string().len();
            if size > LARGEST / 2 {
                tracing::debug!(server = self.server, "not all result shapes are stored: they are too large");
                break;
            }
            kept.tools.insert(name.clone(), KeptShape { schema, shape });
        }
        if !file.exists() {
            make_room(&file, FILES);
        }
        self.cache.write(&file, &kept);
    }
}

/// Removes the oldest files of a folder until another one may be created.
fn make_room(file: &Path, most: usize) {
    let Some(entries) = file.parent().and_then(|folder| fs::read_dir(folder).ok()) else { return };
    let age =
        |entry: &fs::DirEntry| entry.metadata().and_then(|about| about.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let mut files: Vec<(SystemTime, PathBuf)> =
        entries.flatten().map(|entry| (age(&entry), entry.path())).filter(|(_, path)| path.is_file()).collect();
    files.sort();
    let excess = (files.len() + 1).saturating_sub(most);
    for (_, file) in files.iter().take(excess) {
        if let Err(problem) = fs::remove_file(file) {
            tracing::debug!(%problem, file = %file.display(), "an old file of result shapes was not removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_files_make_room() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |at: u64| folder.path().join(format!("{at}.json"));
        for at in 0..5 {
            let file = fs::File::create(path(at)).expect("created");
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000 + at)).expect("dated");
        }
        make_room(&path(9), 4);
        let left: Vec<bool> = (0..5).map(|at| path(at).exists()).collect();
        assert_eq!(left, [false, false, true, true, true]);
        make_room(&path(9), 4);
        assert!(path(2).exists());
    }
}
