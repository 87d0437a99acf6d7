//! The PATH of the person's login shell.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::server::config::inherit::Inherit;
use crate::server::system::platform::{self, Unanswered};

/// Maximum time for the answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Separates the answer from what the person's own files print.
const MARK: &str = "lispbox-path-7f1c";

/// The login shell, and its PATH if it has said it.
#[derive(Debug)]
pub(super) struct Shell {
    /// The name of its program; empty if there is none.
    pub name: String,
    /// Its PATH, or why that is not known.
    pub path: Result<OsString, Unanswered>,
}

impl Shell {
    /// Where there is no login shell.
    pub(super) fn unknown() -> Shell {
        Shell { name: String::new(), path: Err(Unanswered::NotStarted) }
    }

    /// Asks the login shell, as a terminal would start it, for its PATH. Never fails: without an answer in time, there
    /// is no path.
    pub(super) async fn ask(variable: &(dyn Fn(&str) -> Option<OsString> + Send + Sync)) -> Shell {
        let Some(program) = login_shell(variable) else {
            return Shell::unknown();
        };
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut command = tokio::process::Command::new(&program);
        // Interactive, since many put what changes PATH into a file that is read only then.
        if is_of_c(&name) {
            // These take `-l` only if it is alone. They are login shells by their name.
            #[cfg(unix)]
            command.arg0(format!("-{name}"));
        } else {
            command.arg("-l");
        }
        command.args(["-i", "-c", &question()]).env_clear();
        command.envs(Inherit::default().of(std::env::vars_os())).env("TERM", "dumb");
        command.envs(["HOME", "PATH"].into_iter().filter_map(|name| Some((name, variable(name)?))));
        let answer = platform::answer_within(&mut command, PATIENCE, |said| answer_in(said).is_some()).await;
        let path = answer.and_then(|said| answer_in(&said).map(OsString::from).ok_or(Unanswered::Ended));
        let shell = Shell { name, path };
        if let Err(why) = shell.path {
            tracing::warn!(shell = shell.name, "its PATH is not known: the login shell {}", clause(why));
        }
        shell
    }

    /// Returns the clause about it in an error message.
    pub(super) fn said(&self) -> String {
        match (&self.path, self.name.as_str()) {
            (Ok(_), name) => format!(", on the PATH of the login shell `{name}`,"),
            (Err(_), "") => String::new(),
            (Err(why), name) => format!(" (the login shell `{name}` {})", clause(*why)),
        }
    }
}

/// Says of a login shell why its PATH is not known.
fn clause(why: Unanswered) -> String {
    match why {
        Unanswered::NotStarted => "could not be started".to_owned(),
        Unanswered::Ended => "ended without saying its own".to_owned(),
        Unanswered::Late => format!("did not say its own within {} s", PATIENCE.as_secs()),
    }
}

/// True for a shell with the syntax of C.
fn is_of_c(name: &str) -> bool {
    matches!(name, "csh" | "tcsh" | "bsd-csh")
}

/// The program for the shell. Shells differ in how they separate commands and print variables, but all of them start a
/// program with words in single quotes.
fn question() -> String {
    format!("/bin/sh -c 'echo {MARK}; printenv PATH; echo {MARK}'")
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
