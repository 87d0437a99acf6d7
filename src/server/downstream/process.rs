//! A server that runs as a child process: its streams, its last output, its termination.

use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::process::ChildStdin;
use tokio::sync::watch;

use crate::server::config::{Endpoint, ServerConfig, Taken};
use crate::server::secrets::Secrets;
use crate::server::system::platform::{self, Lifeline, ProcessGroup, Started};

use super::overheard::{Ear, Overheard, Said, drain, is_about_listening, words};

/// Grace period for a process to exit once its input is closed, and again once it is asked to terminate.
const PATIENCE: Duration = Duration::from_millis(500);
/// Maximum time that the children of a process may hold its streams open after it has exited.
const AFTERMATH: Duration = Duration::from_secs(1);

/// The process of a server; the process and its children are killed when this is dropped.
pub(super) struct ServerProcess {
    group: Arc<ProcessGroup>,
    said: Arc<Mutex<Said>>,
    /// The lines of its standard output that are no messages.
    printed: Arc<Mutex<Said>>,
    /// The exit status of the process, once it has exited.
    exit: watch::Receiver<Option<Option<ExitStatus>>>,
    /// False once its standard error has been read to its end.
    talking: watch::Receiver<bool>,
    /// False once its standard output has been read to its end, or as far as it is looked at.
    printing: watch::Receiver<bool>,
}

impl ServerProcess {
    /// Starts the process of a configuration, whose command was taken from where it was found.
    ///
    /// # Errors
    /// Returns the reason if it cannot be started.
    pub(super) fn start(
        config: &ServerConfig,
        taken: &Taken,
        lifeline: &Arc<Lifeline>,
        secrets: &Secrets,
    ) -> Result<(ServerProcess, Overheard, ChildStdin), String> {
        let Ok(Endpoint::Process { command: program, arguments, environment, folder }) = &config.endpoint else {
            return Err("it is not a process".into());
        };
        let mut command = tokio::process::Command::new(&taken.program);
        command.args(arguments).env_clear().envs(config.inherit.of(std::env::vars_os()));
        command.envs(taken.path.iter().map(|path| ("PATH", path))).envs(environment);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(folder) = folder {
            if !folder.is_dir() {
                let is_home = folder.starts_with("~");
                let advice = if is_home { "; `~` is not expanded in `cwd`; `${HOME}` is" } else { "" };
                let name = folder.file_name().unwrap_or_default().to_string_lossy();
                return Err(format!("its `cwd` is not a folder that exists: `{name}`{advice}"));
            }
            command.current_dir(folder);
        }
        let Started { mut child, group } = lifeline
            .start(&mut command)
            .map_err(|problem| taken.why_not(platform::start_problem(program, &problem)))?;
        let (Some(input), Some(output), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err("its streams could not be opened".into());
        };
        let group = Arc::new(group);
        let (said, printed) = (Arc::<Mutex<Said>>::default(), Arc::<Mutex<Said>>::default());
        let ((talk, talking), (print, printing)) = (watch::channel(true), watch::channel(true));
        let lines = Arc::clone(&said);
        let (name, secrets) = (config.name.clone(), secrets.clone());
        let output = Overheard::of(output, Ear::new(&name, &printed, &secrets, print));
        tokio::spawn(async move {
            drain(errors, &name, &lines, &secrets).await;
            talk.send_replace(false);
        });

        let (report, exit) = watch::channel(None);
        let leftover = Arc::downgrade(&group);
        tokio::spawn(async move {
            let status = child.wait().await.ok();
            report.send_replace(Some(status));
            tokio::time::sleep(AFTERMATH).await;
            if let Some(group) = leftover.upgrade() {
                group.kill();
            }
        });
        Ok((ServerProcess { group, said, printed, exit, talking, printing }, output, input))
    }

    /// Returns the exit status of the process and its last output, for an error message. Waits up to 200 ms for both,
    /// since the exit and the end of the streams come in no fixed order.
    pub(super) async fn last_words(&self) -> Option<String> {
        let (mut exit, mut talking, mut printing) = (self.exit.clone(), self.talking.clone(), self.printing.clone());
        let _ = tokio::time::timeout(Duration::from_millis(200), async {
            let _ = exit.wait_for(Option::is_some).await;
            let _ = talking.wait_for(|talking| !talking).await;
            let _ = printing.wait_for(|printing| !printing).await;
        })
        .await;
        let ended = match exit.borrow().as_ref() {
            Some(Some(status)) => Some(format!("it ended with {status}")),
            Some(None) => Some("it ended".to_owned()),
            None => None,
        };
        let (said, printed) = (words(&self.said), words(&self.printed));
        let listens = [&said, &printed].into_iter().flatten().any(|words| is_about_listening(words));
        let hint = listens.then(|| "a server that listens at an address is configured by its `url`".to_owned());
        let said = said.map(|said| format!("it said: \"{said}\""));
        let printed = printed
            .map(|printed| format!("its standard output, which is for messages of MCP alone, was: \"{printed}\""));
        let words: Vec<String> = [ended, said, printed, hint].into_iter().flatten().collect();
        (!words.is_empty()).then(|| words.join("; "))
    }

    /// Returns whether the process runs and has printed nothing so far.
    pub(super) fn is_silent(&self) -> bool {
        self.runs() && words(&self.printed).is_none() && words(&self.said).is_none()
    }

    /// Returns whether its output names the headers by which the Language Server Protocol separates messages.
    pub(super) fn names_frames(&self) -> bool {
        let names = |said: &Mutex<Said>| words(said).is_some_and(|said| said.to_lowercase().contains("content-length"));
        names(&self.said) || names(&self.printed)
    }

    /// True while the process runs; false once it has exited or is stopped by a signal.
    pub(super) fn runs(&self) -> bool {
        self.exit.borrow().is_none() && !self.group.is_stopped()
    }

    /// Waits for the process to exit, then asks it to terminate, then kills it.
    pub(super) async fn end(&self) {
        let mut exit = self.exit.clone();
        for ask in [false, true] {
            if ask {
                self.group.terminate();
            }
            if tokio::time::timeout(PATIENCE, exit.wait_for(Option::is_some)).await.is_ok() {
                break;
            }
        }
        self.group.kill();
    }
}
