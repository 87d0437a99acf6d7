//! Where this system keeps what is a user's.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The folder that a variable of the environment names.
fn named(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// `$LISPBOX_CACHE`, else a folder where this system keeps what can be made again.
pub(super) fn cache() -> Option<PathBuf> {
    if let Some(folder) = named("LISPBOX_CACHE") {
        return Some(folder);
    }
    let parent = if cfg!(windows) {
        named("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        named("HOME").map(|home| home.join("Library/Caches"))
    } else {
        named("XDG_CACHE_HOME").or_else(|| named("HOME").map(|home| home.join(".cache")))
    };
    parent.map(|parent| parent.join("lispbox"))
}

/// The folder for lispbox where this system keeps a user's settings.
pub fn usual_folder() -> Option<PathBuf> {
    let parent = if cfg!(windows) {
        named("APPDATA")
    } else {
        named("XDG_CONFIG_HOME").or_else(|| named("HOME").map(|home| home.join(".config")))
    };
    parent.map(|parent| parent.join("lispbox"))
}

/// Who may read a file that is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Readers {
    /// Whoever this system lets read a new file.
    Usual,
    /// Its owner alone, where the system knows that.
    Owner,
}

/// Replaces a file as a whole, so that another process never reads half of it; makes its folder.
pub(super) fn replace(file: &Path, content: &[u8], readers: Readers) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let draft = file.with_extension(format!("{}.draft", std::process::id()));
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    if readers == Readers::Owner {
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    let written = options.open(&draft).and_then(|mut file| file.write_all(content));
    written.and_then(|()| fs::rename(&draft, file)).inspect_err(|_| {
        let _ = fs::remove_file(&draft);
    })
}
