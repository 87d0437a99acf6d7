//! The PATH of the person's login shell.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::server::config::inherit::Inherit;
use crate::server::system::platform;

/// Maximum time for the answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Separates the answer from what the person's own files print.
const MARK: &str = "lispbox-path-7f1c";

/// The login shell, and its PATH if it has said it.
#[derive(Debug)]
pub(super) struct Shell {
    /// The name of its program; empty if there is none.
    pub name: String,
    pub path: Option<OsString>,
}

impl Shell {
    /// Asks the login shell, as a terminal would start it, for its PATH. Never fails: without an answer in time, there
    /// is no path.
    pub(super) async fn ask(variable: &(dyn Fn(&str) -> Option<OsString> + Send + Sync)) -> Shell {
        let Some(program) = login_shell(variable) else { return Shell { name: String::new(), path: None } };
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut command = tokio::process::Command::new(&program);
        // Interactive, since many put what changes PATH into a file that is read only then.
        command.args(["-l", "-i", "-c", &format!("echo {MARK}; printenv PATH; echo {MARK}")]).env_clear();
        command.envs(Inherit::default().of(std::env::vars_os())).env("TERM", "dumb");
        command.envs(["HOME", "PATH"].into_iter().filter_map(|name| Some((name, variable(name)?))));
        let answer = platform::answer_within(&mut command, PATIENCE, |said| answer_in(said).is_some()).await;
        let path = answer.and_then(|said| answer_in(&said).map(OsString::from));
        if path.is_none() {
            tracing::warn!(shell = name, "the login shell did not say its PATH");
        }
        Shell { name, path }
    }

    /// Returns the clause about it in an error message.
    pub(super) fn said(&self) -> String {
        match (&self.path, self.name.as_str()) {
            (Some(_), name) => format!(", on the PATH of the login shell `{name}`,"),
            (None, "") => String::new(),
            (None, name) => {
                format!(" (the login shell `{name}` did not say its own within {} s)", PATIENCE.as_secs())
            }
        }
    }
}

/// Returns `$SHELL`, or else the usual shell of this system; `None` where there is no login shell.
fn login_shell(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    if !cfg!(unix) {
        return None;
    }
    let usual = if cfg!(target_os = "macos") { "/bin/zsh" } else { "/bin/bash" };
    let named = variable("SHELL").map(PathBuf::from).filter(|shell| shell.is_absolute());
    let shells = named.into_iter().chain([usual, "/bin/sh"].map(PathBuf::from));
    shells.into_iter().find(|shell| shell.is_file())
}

/// Returns the line between the marks, once both have been printed.
fn answer_in(said: &[u8]) -> Option<String> {
    let said = String::from_utf8_lossy(said);
    let mut parts = said.split(MARK);
    let answer = parts.nth(1)?.trim();
    parts.next()?;
    let is_path =
        |path: &str| std::env::split_paths(OsStr::new(path)).any(|folder: PathBuf| Path::is_absolute(&folder));
    is_path(answer).then(|| answer.to_owned())
}

#[cfg(test)]
mod tests {
    use super::answer_in;

    #[test]
    fn the_answer_is_told_from_what_else_is_printed() {
        let said = |text: &str| answer_in(text.replace('M', super::MARK).as_bytes());
        assert_eq!(said("welcome\nM\n/a:/b\nM\n").as_deref(), Some("/a:/b"));
        for incomplete in ["", "welcome", "M\n/a:/b\n", "M\nM\n", "M\nno path\nM\n"] {
            assert_eq!(said(incomplete), None, "{incomplete}");
        }
    }
}
