//! The folders in which this system keeps a user's files.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Returns the folder that an environment variable names.
fn named(variable: &str) -> Option<PathBuf> {
    named_in(&|name| std::env::var_os(name), variable)
}

/// Looks up a variable of an environment.
type Variable<'v> = &'v dyn Fn(&str) -> Option<OsString>;

/// Returns the folder that a variable of an environment names.
fn named_in(environment: Variable, variable: &str) -> Option<PathBuf> {
    environment(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Returns `$LISPBOX_CACHE`, or else the system's folder for data that can be recreated. Returns `None` if the variable
/// is `off`.
pub(in crate::server) fn cache() -> Option<PathBuf> {
    if let Some(folder) = named("LISPBOX_CACHE") {
        return (folder.as_os_str() != "off").then_some(folder);
    }
    local(&|name| std::env::var_os(name), "Library/Caches", ("XDG_CACHE_HOME", ".cache"))
}

/// Returns the folder for lispbox below one that is kept on this machine: on macOS below that folder of the home folder,
/// on other systems but Windows below the folder that the variable names, or else that folder of the home folder.
fn local(environment: Variable, on_macos: &str, (variable, folder): (&str, &str)) -> Option<PathBuf> {
    let named = |variable: &str| named_in(environment, variable);
    let at_home = |folder: &str| named("HOME").map(|home| home.join(folder));
    let parent = if cfg!(windows) {
        named("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        at_home(on_macos)
    } else {
        named(variable).or_else(|| at_home(folder))
    };
    parent.map(|parent| parent.join("lispbox"))
}

/// Returns the folder of the pins of tools: `$LISPBOX_PINS`, or else one beside the folder that `$LISPBOX_CACHE` names, or
/// else one among the user's settings. It is not in the cache, which may be deleted at any time.
pub(in crate::server) fn pins() -> Option<PathBuf> {
    if let Some(folder) = named("LISPBOX_PINS") {
        return Some(folder);
    }
    let cache = named("LISPBOX_CACHE").filter(|folder| folder.as_os_str() != "off");
    let beside = |cache: PathBuf| Some(cache.with_file_name(format!("{}-pins", cache.file_name()?.display())));
    cache.and_then(beside).or_else(|| Some(usual_folder()?.join("pins")))
}

/// Returns the beginning of the name of a file about something with that name.
pub(in crate::server) fn readable(name: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || *c == '-' || *c == '_';
    name.chars().filter(is_plain).take(40).collect()
}

/// Returns the folder for lispbox among the user's settings on this system.
pub fn usual_folder() -> Option<PathBuf> {
    usual_folder_in(&|name| std::env::var_os(name))
}

/// Returns the folder that [`usual_folder`] returns in a process with these variables.
pub fn usual_folder_in(environment: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let named = |variable: &str| named_in(environment, variable);
    let parent = if cfg!(windows) {
        named("APPDATA")
    } else {
        named("XDG_CONFIG_HOME").or_else(|| named("HOME").map(|home| home.join(".config")))
    };
    parent.map(|parent| parent.join("lispbox"))
}

/// Returns the folder for lispbox among the user's data on this system.
pub fn data_folder() -> Option<PathBuf> {
    data_folder_in(&|name| std::env::var_os(name))
}

/// Returns the folder that [`data_folder`] returns in a process with these variables.
pub fn data_folder_in(environment: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    local(environment, "Library/Application Support", ("XDG_DATA_HOME", ".local/share"))
}

/// Replaces a file atomically, so that another process never reads half of it, and creates its folder. Only their owner
/// can read the two, if the system has such permissions, whatever they were before and whatever the umask is.
pub(in crate::server) fn replace(file: &Path, content: &[u8]) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
        restrict(folder, 0o700)?;
    }
    let draft = file.with_extension(format!("{}.draft", std::process::id()));
    // A draft left by an earlier process with the same number may be readable by others.
    match fs::remove_file(&draft) {
        Err(problem) if problem.kind() != io::ErrorKind::NotFound => return Err(problem),
        _ => {}
    }
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&draft).and_then(|mut open| {
        restrict(&draft, 0o600)?;
        open.write_all(content)
    });
    written.and_then(|()| fs::rename(&draft, file)).inspect_err(|_| {
        let _ = fs::remove_file(&draft);
    })
}

/// Locks a file for all processes of the user, until the file that is returned is closed. Blocks for up to `patience`.
///
/// # Errors
/// Returns an error if another process holds the lock for longer, or the file cannot be created.
pub(in crate::server) fn lock(file: &Path, patience: Duration) -> io::Result<File> {
    /// The time between two attempts.
    const LOOK: Duration = Duration::from_millis(20);
    fs::create_dir_all(file.parent().unwrap_or(Path::new(".")))?;
    let lock_file = File::options().create(true).truncate(false).write(true).open(file)?;
    make_private(file)?;
    let begun = Instant::now();
    loop {
        match lock_file.try_lock() {
            Ok(()) => return Ok(lock_file),
            Err(TryLockError::WouldBlock) if begun.elapsed() < patience => std::thread::park_timeout(LOOK),
            Err(TryLockError::WouldBlock) => return Err(io::Error::other("another process holds the lock")),
            Err(TryLockError::Error(problem)) => return Err(problem),
        }
    }
}

/// Restricts a file and its folder to their owner, if the system has such permissions.
///
/// # Errors
/// Fails if that is not possible, for example because they belong to another user.
pub fn make_private(file: &Path) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        restrict(folder, 0o700)?;
    }
    restrict(file, 0o600)
}

/// Sets the permissions of a file or folder, unless it has them already.
#[cfg(unix)]
fn restrict(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    if fs::metadata(path)?.permissions().mode() & 0o777 == mode {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn restrict(_: &Path, _: u32) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_is_for_its_owner_is_so_whatever_it_was_before() {
        let folder = tempfile::tempdir().expect("a folder");
        let (inner, file) = (folder.path().join("tools"), folder.path().join("tools/list.json"));
        let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        let widen =
            |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
        replace(&file, b"first").expect("written");
        assert_eq!((mode(&inner), mode(&file)), (0o700, 0o600));
        widen(&inner, 0o755);
        widen(&file, 0o644);
        let draft = file.with_extension(format!("{}.draft", std::process::id()));
        fs::write(&draft, b"left behind").expect("written");
        widen(&draft, 0o666);
        replace(&file, b"second").expect("written");
        assert_eq!((mode(&inner), mode(&file)), (0o700, 0o600));
        assert_eq!(fs::read(&file).expect("it is there"), b"second");
        widen(&inner, 0o777);
        widen(&file, 0o666);
        make_private(&file).expect("it is ours");
        assert_eq!((mode(&inner), mode(&file)), (0o700, 0o600));
    }
}
