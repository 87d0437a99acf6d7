//! Where the commands of servers and of local tools are found.
//!
//! The person who configures a command has typed it in a terminal. A program with a window has a shorter PATH than that
//! terminal, without the folders of Node, uv or Homebrew. A command that is not on PATH is therefore looked for on the
//! PATH of the login [`shell`], and then in the usual [`places`] of programs that install commands. If it is in none of
//! them, the error names them, and the command that [installs](install) it.

mod install;
mod places;
mod shell;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::watch;

use places::Place;
use shell::Shell;

/// The time that the login shell has before the usual places are searched. It has more time for a command that is in none
/// of them.
const SOON: Duration = Duration::from_secs(2);

/// The PATH of a process without one, on Unix.
const WITHOUT_PATH: &str = if cfg!(windows) { "" } else { "/usr/bin:/bin" };

/// Programs that start others by name, which the search cannot see: their children look further as well.
const LAUNCHERS: &[&str] = &["sh", "bash", "dash", "zsh", "fish", "env", "cmd", "cmd.exe"];

/// Looks up an environment variable.
type Variable = Arc<dyn Fn(&str) -> Option<OsString> + Send + Sync>;

/// Finds commands, and remembers the PATH of the login shell.
pub(in crate::server) struct Commands {
    variable: Variable,
    /// What the login shell has said so far, once it has been asked.
    shell: OnceLock<watch::Receiver<Option<Arc<Shell>>>>,
}

/// A command that may have been found, and how it is started.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::server) struct Taken {
    /// The program to start.
    pub program: OsString,
    /// The PATH of its process, if it is not the inherited one.
    pub path: Option<OsString>,
    place: Where,
}

/// The place of a command.
#[derive(Debug, PartialEq, Eq)]
enum Where {
    /// The configuration names a file; it has not been looked for.
    Given,
    OnPath(PathBuf),
    OnOwnPath(PathBuf),
    OfShell(PathBuf, String),
    Usual(PathBuf, &'static str),
    /// A file or folder of that name exists but cannot be run.
    Unrunnable(PathBuf),
    /// It is in none of the places, which the text names.
    Nowhere(String),
}

impl Taken {
    /// Returns the file that is started and why it is that one, unless the configuration names the file; `None` also if
    /// there is none.
    pub(in crate::server) fn line(&self) -> Option<String> {
        let (file, from) = match &self.place {
            Where::OnPath(file) => (file, "on PATH".to_owned()),
            Where::OnOwnPath(file) => (file, "on the PATH of its `env`".to_owned()),
            Where::OfShell(file, shell) => (file, format!("on the PATH of the login shell `{shell}`")),
            Where::Usual(file, owner) => (file, format!("in the usual folder of {owner}")),
            Where::Given | Where::Unrunnable(_) | Where::Nowhere(_) => return None,
        };
        Some(format!("{}, {from}", file.display()))
    }

    /// Returns where the command was looked for without success, and the command that installs it if it is known.
    pub(super) fn missing(&self) -> Option<&str> {
        match &self.place {
            Where::Nowhere(places) => Some(places),
            _ => None,
        }
    }

    /// Adds where the command was looked for to the reason why it did not start.
    pub(in crate::server) fn why_not(&self, reason: String) -> String {
        match self.missing() {
            Some(places) => format!("{reason}; {places}"),
            None => reason,
        }
    }

    /// Returns the file of that name that cannot be run.
    pub(super) fn unrunnable(&self) -> Option<&Path> {
        match &self.place {
            Where::Unrunnable(file) => Some(file),
            _ => None,
        }
    }
}

impl fmt::Debug for Commands {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Commands").field("shell", &self.shell).finish_non_exhaustive()
    }
}

impl Commands {
    /// Creates the search of this process, in its environment.
    pub(in crate::server) fn of_environment() -> Commands {
        Commands::in_environment(|name| std::env::var_os(name))
    }

    fn in_environment(variable: impl Fn(&str) -> Option<OsString> + Send + Sync + 'static) -> Commands {
        let variable = move |name: &str| variable(name).filter(|value| !value.is_empty());
        Commands { variable: Arc::new(variable), shell: OnceLock::new() }
    }

    /// Finds a command that is configured with these variables. Scripts for the shell of Windows (`npx.cmd`) are found
    /// only if `takes_scripts`, since that shell interprets their arguments.
    ///
    /// If the login shell has to be asked, this takes as long as that takes to answer: 2 s at most for a command that is in
    /// a usual place, and 10 s for one that is in none.
    pub(in crate::server) async fn find(
        &self,
        program: &str,
        environment: &BTreeMap<String, String>,
        takes_scripts: bool,
    ) -> Taken {
        let own = environment.iter().find(|(name, _)| is_path(name)).map(|(_, path)| OsStr::new(path));
        if has_folder(program) {
            let path = if own.is_some() { None } else { self.with_folder_of(program) };
            return Taken { program: program.into(), path, place: Where::Given };
        }
        let mut unrunnable = None;
        let mut on = |path: &OsStr| {
            let files = std::env::split_paths(path).map(|folder| folder.join(program));
            runnable(files, takes_scripts, &mut unrunnable)
        };
        // On Unix the system finds it again; on Windows it would not find a script.
        let to_start = |file: &Path| if cfg!(windows) { file.as_os_str().to_owned() } else { OsString::from(program) };
        if let Some(own) = own {
            let place = on(own).map(Where::OnOwnPath);
            let program = place.as_ref().map_or_else(|| program.into(), |place| to_start(place.file()));
            let advice = match own.to_string_lossy() {
                path if path.contains("$PATH") => "`$PATH` is not expanded there; `${PATH}` is",
                _ => "add the folder of the command there, or `${PATH}`, the PATH of lispbox",
            };
            let looked = format!("it was looked for on the PATH that its `env` sets; {advice}");
            let nowhere = || nowhere(unrunnable, looked);
            return Taken { program, path: None, place: place.unwrap_or_else(nowhere) };
        }
        let inherited = self.inherited();
        if let Some(file) = on(&inherited) {
            let path = LAUNCHERS.contains(&program).then(|| self.joined(&[&inherited], None));
            return Taken { program: to_start(&file), path, place: Where::OnPath(file) };
        }
        let mut said = self.asked();
        let soon = tokio::time::timeout(SOON, answer(&mut said)).await.ok();
        if let Some(taken) = soon.as_deref().and_then(|shell| self.of_shell(shell, &mut on)) {
            return taken;
        }
        for Place { owner, folder } in places::usual(&*self.variable) {
            if let Some(file) = on(folder.as_os_str()) {
                let path = self.joined(&[&inherited], Some(&folder));
                return Taken { program: file.clone().into(), path: Some(path), place: Where::Usual(file, owner) };
            }
        }
        let shell = match soon {
            Some(shell) => shell,
            None => {
                let shell = answer(&mut said).await;
                if let Some(taken) = self.of_shell(&shell, &mut on) {
                    return taken;
                }
                shell
            }
        };
        let looked =
            format!("it was looked for on PATH{} and in the usual folders of {}", shell.said(), places::OWNERS);
        let has = |manager: &str| runnable_on(&inherited, manager);
        let installed = install::command(program, &has);
        let advice = installed.map_or_else(
            || "give its whole path, or a `PATH` in `env`".to_owned(),
            |command| format!("`{command}` installs it"),
        );
        let looked = format!("{looked}; {advice}");
        Taken { program: program.into(), path: None, place: nowhere(unrunnable, looked) }
    }

    /// Returns the command if it is on the PATH of the login shell; `on` finds it on a PATH.
    fn of_shell(&self, shell: &Shell, on: &mut dyn FnMut(&OsStr) -> Option<PathBuf>) -> Option<Taken> {
        let path = shell.path.as_ref().ok()?;
        let file = on(path)?;
        let path = self.joined(&[path, &self.inherited()], None);
        let place = Where::OfShell(file.clone(), shell.name.clone());
        Some(Taken { program: file.into(), path: Some(path), place })
    }

    /// Asks the login shell, unless it has been asked, and returns where its answer will be.
    fn asked(&self) -> watch::Receiver<Option<Arc<Shell>>> {
        let ask = || {
            let (say, said) = watch::channel(None);
            let variable = Arc::clone(&self.variable);
            tokio::spawn(async move {
                let shell = Shell::ask(&*variable).await;
                say.send_replace(Some(Arc::new(shell)));
            });
            said
        };
        self.shell.get_or_init(ask).clone()
    }

    fn inherited(&self) -> OsString {
        (self.variable)("PATH").unwrap_or_else(|| WITHOUT_PATH.into())
    }

    /// Returns the inherited PATH with the folder of a program at its end, where its interpreter may be: Node is beside
    /// `npx`. Returns `None` if nothing has to be added.
    fn with_folder_of(&self, program: &str) -> Option<OsString> {
        let folder = Path::new(program).parent().filter(|folder| folder.is_absolute())?;
        let inherited = self.inherited();
        let is_known = std::env::split_paths(&inherited).any(|known| known == folder);
        let folders = std::env::split_paths(&inherited).chain([folder.to_owned()]);
        if is_known { None } else { std::env::join_paths(folders).ok() }
    }

    /// Returns a PATH with a first folder, these paths, that of the login shell if it has been asked, and the usual
    /// folders that exist.
    fn joined(&self, paths: &[&OsStr], first: Option<&Path>) -> OsString {
        let shell = self.shell.get().and_then(|said| said.borrow().clone());
        let of_shell = shell.as_ref().and_then(|shell| shell.path.as_deref().ok());
        let mut folders: Vec<PathBuf> = first.map(Path::to_owned).into_iter().collect();
        let known = paths.iter().copied().chain(of_shell).flat_map(std::env::split_paths);
        let usual =
            places::usual(&*self.variable).into_iter().map(|place| place.folder).filter(|folder| folder.is_dir());
        for folder in known.chain(usual) {
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
        std::env::join_paths(folders).unwrap_or_else(|_| paths.first().map(OsString::from).unwrap_or_default())
    }
}

impl Where {
    fn file(&self) -> &Path {
        match self {
            Where::OnPath(file)
            | Where::OnOwnPath(file)
            | Where::OfShell(file, _)
            | Where::Usual(file, _)
            | Where::Unrunnable(file) => file,
            Where::Given | Where::Nowhere(_) => Path::new(""),
        }
    }
}

/// Waits for what the login shell says.
async fn answer(said: &mut watch::Receiver<Option<Arc<Shell>>>) -> Arc<Shell> {
    let shell = said.wait_for(Option::is_some).await.ok().and_then(|shell| shell.clone());
    // The runtime that asked it is ending.
    shell.unwrap_or_else(|| Arc::new(Shell::unknown()))
}

fn nowhere(unrunnable: Option<PathBuf>, looked: String) -> Where {
    unrunnable.map_or(Where::Nowhere(looked), Where::Unrunnable)
}

/// True for the name of the variable PATH; Windows ignores the case of names.
fn is_path(name: &str) -> bool {
    if cfg!(windows) { name.eq_ignore_ascii_case("PATH") } else { name == "PATH" }
}

/// True for a command that is given with its folder, and not looked up in PATH.
pub(super) fn has_folder(program: &str) -> bool {
    program.contains('/') || (cfg!(windows) && program.contains('\\'))
}

/// Returns true if this file can be run, and false if it exists and cannot; `None` if there is none.
fn is_runnable(file: &Path) -> Option<bool> {
    let metadata = std::fs::metadata(file).ok()?;
    Some(metadata.is_file() && is_executable(&metadata))
}

/// Returns the first of these files that can be run, and keeps the first that exists and cannot.
pub(super) fn runnable(
    files: impl Iterator<Item = PathBuf>,
    takes_scripts: bool,
    unrunnable: &mut Option<PathBuf>,
) -> Option<PathBuf> {
    for file in files.flat_map(|file| spellings(file, takes_scripts, cfg!(windows))) {
        match is_runnable(&file) {
            Some(true) => return Some(file),
            Some(false) if unrunnable.is_none() => *unrunnable = Some(file),
            _ => {}
        }
    }
    None
}

fn runnable_on(path: &OsStr, program: &str) -> bool {
    file_on(path, program).is_some()
}

fn file_on(path: &OsStr, program: &str) -> Option<PathBuf> {
    runnable(std::env::split_paths(path).map(|folder| folder.join(program)), true, &mut None)
}

/// Returns the file that a command starts, if it can be run: that of its path, or else one on this PATH or in the usual
/// folders of programs that install commands, in an environment with these variables. Asks no shell.
pub fn find_command(program: &str, path: &OsStr, environment: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    if has_folder(program) {
        return runnable([PathBuf::from(program)].into_iter(), true, &mut None);
    }
    let variable = |name: &str| environment(name).filter(|value| !value.is_empty());
    let usual = || places::usual(&variable).into_iter().find_map(|place| file_on(place.folder.as_os_str(), program));
    file_on(path, program).or_else(usual)
}

/// Returns the file names that a command may have on disk. A name without an ending is a script for another system if a
/// file with an ending is beside it, as `npx` is beside `npx.cmd`.
fn spellings(file: PathBuf, takes_scripts: bool, is_windows: bool) -> Vec<PathBuf> {
    if !is_windows || file.extension().is_some() {
        return vec![file];
    }
    let endings: &[&str] = if takes_scripts { &[".exe", ".com", ".cmd", ".bat"] } else { &[".exe", ".com"] };
    let with = |ending: &&str| {
        let mut name = file.clone().into_os_string();
        name.push(ending);
        PathBuf::from(name)
    };
    endings.iter().map(with).collect()
}

#[cfg(unix)]
fn is_executable(metadata: &std::fs::Metadata) -> bool {
    std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(_metadata: &std::fs::Metadata) -> bool {
    true
}

#[cfg(all(test, unix))]
mod tests;
