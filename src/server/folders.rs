//! Where this system keeps what is a user's.

use std::path::PathBuf;

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
