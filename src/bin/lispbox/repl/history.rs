//! What was typed, kept on disk from one conversation to the next.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustyline::Editor;
use rustyline::history::FileHistory;

use super::editor::Assistant;
use crate::surroundings::folder_in;

/// How many entries are kept.
pub const LONGEST: usize = 10_000;

/// Where the history is: the file that was given, or the one that this system has a place for. None
/// when it is not to be kept, or there is no such place.
pub fn place(given: Option<OsString>) -> Option<PathBuf> {
    match given {
        Some(file) if file.is_empty() => None,
        Some(file) => Some(PathBuf::from(file)),
        None => folder().map(|folder| folder.join("lispbox").join("history")),
    }
}

/// Where this system keeps what programs remember for a user.
fn folder() -> Option<PathBuf> {
    if cfg!(windows) {
        folder_in("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        folder_in("HOME").map(|home| home.join("Library").join("Application Support"))
    } else {
        let state = folder_in("XDG_STATE_HOME").filter(|folder| folder.is_absolute());
        state.or_else(|| folder_in("HOME").map(|home| home.join(".local").join("state")))
    }
}

/// The file behind an editor's history.
pub struct Kept {
    file: Option<PathBuf>,
}

impl Kept {
    /// Fills the editor's history from the file, if there is one.
    pub fn load(file: Option<PathBuf>, editor: &mut Editor<Assistant, FileHistory>) -> Kept {
        if let Some(file) = &file {
            // A file that is not there yet, or cannot be read, is an empty history.
            let _ = editor.load_history(file);
        }
        Kept { file }
    }

    /// Adds an entry, on disk too. Where that fails the history lasts as long as the conversation; the
    /// sentence that says so is given once.
    pub fn add(&mut self, entry: &str, editor: &mut Editor<Assistant, FileHistory>) -> Option<String> {
        let added = editor.add_history_entry(entry);
        let file = self.file.as_ref()?;
        let written = added.and_then(|_| {
            make_folder(file)?;
            editor.append_history(file)
        });
        let problem = written.err()?;
        let notice = format!("history is not kept: {}: {problem}", file.display());
        self.file = None;
        Some(notice)
    }
}

fn make_folder(file: &Path) -> std::io::Result<()> {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => std::fs::create_dir_all(folder),
        _ => Ok(()),
    }
}
