//! The history of entries, stored on disk between sessions.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustyline::Editor;
use rustyline::history::FileHistory;

use super::editor::Assistant;
use crate::context::folder_in;

/// Maximum number of entries.
pub const LONGEST: usize = 10_000;

/// The path of the history: the file given, or the default location of this system. `None` if the history is disabled,
/// or if there is no default location.
pub fn place(given: Option<OsString>) -> Option<PathBuf> {
    match given {
        Some(file) if file.is_empty() => None,
        Some(file) => Some(PathBuf::from(file)),
        None => folder().map(|folder| folder.join("lispbox").join("history")),
    }
}

/// The folder in which this system keeps the state of programs for a user.
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

/// The file of an editor's history.
pub struct Kept {
    file: Option<PathBuf>,
}

impl Kept {
    /// Loads the editor's history from the file, if any.
    pub fn load(file: Option<PathBuf>, editor: &mut Editor<Assistant, FileHistory>) -> Kept {
        if let Some(file) = &file {
            // If the file does not exist or cannot be read, the history is empty.
            let _ = editor.load_history(file);
        }
        Kept { file }
    }

    /// Adds an entry, also on disk. If that fails, the history is lost at the end of the session; the message that
    /// reports it is returned once.
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
