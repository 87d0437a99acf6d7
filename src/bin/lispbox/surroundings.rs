//! What `eval`, `run` and `repl` have in common: the limits, the tools of `--config`, the engine, and
//! Ctrl-C.

use std::future::{Future, poll_fn};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use clap::Args;
use lispbox::lang::builtin::Registry;
use lispbox::lang::{Engine, Limits, Sandbox, Session};
use lispbox::server::{CancellationToken, Configuration, Connections, DownstreamOptions, Secrets};

use crate::approval::Person;
use crate::output::errln;
use crate::permissions::Permissions;
use crate::places::Places;
use crate::process;
use crate::terminal::{Prints, Terminal};
use crate::worker::Isolation;

/// What the process says when it was ended by Ctrl-C, as shells expect it.
const INTERRUPTED: i32 = 130;

/// Limits and tools, as the command line gives them.
#[derive(Args)]
pub struct Settings {
    /// A limit, such as `memory=64MiB`, `compute=2s` or `fuel=1e7`; may be given several times. A variable holds several
    /// with blanks between them.
    #[arg(long = "limit", value_name = "NAME=VALUE", env = "LISPBOX_LIMIT", value_delimiter = ' ')]
    limits: Vec<String>,
    #[command(flatten)]
    permissions: Permissions,
    #[command(flatten)]
    places: Places,
}

/// Why a command ends without having run a program.
pub enum Problem {
    /// The command line is wrong.
    Usage(String),
    /// The system or a server does not do its part.
    Failed(String),
}

impl Problem {
    /// Says it, and gives the exit code: 2 for wrong usage.
    pub fn report(self) -> ExitCode {
        let (message, code) = match self {
            Problem::Usage(message) => (message, ExitCode::from(2)),
            Problem::Failed(message) => (message, ExitCode::FAILURE),
        };
        errln!("lispbox: {message}");
        code
    }
}

impl Settings {
    /// The limits.
    ///
    /// # Errors
    /// For a name that is no limit, or a value that it does not take.
    fn limits(&self, configuration: &Configuration) -> Result<Limits, Problem> {
        let mut limits = Limits::default();
        for (name, value) in &configuration.limits {
            limits.set(name, value).map_err(Problem::Usage)?;
        }
        for limit in &self.limits {
            let (name, value) = limit.split_once('=').ok_or_else(|| {
                Problem::Usage(format!("expected a limit as `NAME=VALUE`, such as `memory=64MiB`, got `{limit}`"))
            })?;
            limits.set(name.trim(), value).map_err(Problem::Usage)?;
        }
        Ok(limits)
    }

    /// The engine and the tools.
    ///
    /// # Errors
    /// For wrong limits, and for a configuration that cannot be used.
    pub fn open(&self) -> Result<Surroundings, Problem> {
        let configuration = self.places.read().map_err(Problem::Usage)?;
        configuration.warnings.iter().for_each(|warning| errln!("lispbox: {warning}"));
        let limits = self.limits(&configuration)?;
        let secrets = Secrets::of_environment();
        let policy = self.permissions.policy()?;
        let connections = match configuration.servers.is_empty() {
            true => None,
            false => {
                let options = DownstreamOptions { policy, secrets: secrets.clone(), ..DownstreamOptions::default() };
                let connections = Connections::open_with(configuration, options);
                Some(connections.map_err(|problem| Problem::Failed(problem.to_string()))?)
            }
        };
        let engine = process::engine(if connections.is_some() { process::CONNECTIONS } else { 0 })?;
        let (interrupt, lost_input) = (Interrupt::default(), Arc::default());
        Ok(Surroundings { limits, engine, connections, secrets, interrupt, lost_input })
    }
}

/// What programs run in.
pub struct Surroundings {
    /// The limits of each of them.
    pub limits: Limits,
    engine: Arc<Engine>,
    connections: Option<Connections>,
    secrets: Secrets,
    interrupt: Interrupt,
    /// Set when a question to the person discarded what had been typed ahead.
    lost_input: Arc<AtomicBool>,
}

impl Surroundings {
    /// What makes environments, behind a second wall if that is asked for.
    ///
    /// # Errors
    /// When the system has no such wall.
    pub fn sandbox(&self, isolation: &Isolation) -> Result<Arc<dyn Sandbox>, Problem> {
        isolation.sandbox(self.engine.clone())
    }

    /// A fresh environment of this process.
    pub fn session(&self) -> Session {
        self.engine.session()
    }

    /// The host of one program. Ctrl-C cancels the latest. The person at the terminal is asked about tool calls of which
    /// the policy wants one asked.
    pub fn host(&self, prints: Prints, limits: &Limits, program: &str) -> Arc<Terminal> {
        let cancel = CancellationToken::new();
        let person = Arc::new(Person { stop: cancel.clone(), lost_input: self.lost_input.clone() });
        let tools = self.connections.as_ref();
        let tools = tools.map(|connections| connections.host_asking(cancel.clone(), limits, program, person));
        self.interrupt.set(Some(cancel.clone()));
        Arc::new(Terminal::new(prints, cancel, tools, self.secrets.clone()))
    }

    /// True if a question has discarded what was typed ahead, since this was last asked.
    pub fn has_lost_input(&self) -> bool {
        self.lost_input.swap(false, Ordering::Relaxed)
    }

    /// Says that no program runs now: Ctrl-C ends the process.
    pub fn at_rest(&self) {
        self.interrupt.set(None);
    }

    /// Lets Ctrl-C, and being told to end, stop the program that runs; the second time, or when none
    /// runs, they end the process. Without this they end it at once.
    pub fn stop_on_interrupt(&self) {
        let interrupt = self.interrupt.clone();
        // Where the system has no such signals there is nothing to stop on.
        let _ = ctrlc::set_handler(move || match interrupt.take() {
            Some(cancel) => cancel.cancel(),
            None => std::process::exit(INTERRUPTED),
        });
    }

    /// Lets Ctrl-C stop the program that runs, and nothing but that.
    ///
    /// # Errors
    /// When the system has no thread for it.
    pub fn outlive_interrupts(&self) -> Result<(), Problem> {
        let interrupt = self.interrupt.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|problem| Problem::Failed(problem.to_string()))?;
        let (ready, registered) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            runtime.block_on(async move {
                loop {
                    let mut next = pin!(tokio::signal::ctrl_c());
                    let outcome = poll_fn(|context| {
                        let polled = next.as_mut().poll(context);
                        // Only the first one is waited for.
                        let _ = ready.send(());
                        polled
                    });
                    // Where the system has no such signal there is nothing to outlive.
                    if outcome.await.is_err() {
                        return;
                    }
                    if let Some(cancel) = interrupt.take() {
                        cancel.cancel();
                    }
                }
            });
        });
        // A signal that comes before the first poll has registered the handler would end the process.
        registered.recv().map_err(|_| Problem::Failed("Ctrl-C cannot be handled".to_owned()))?;
        Ok(())
    }

    /// The functions of the language.
    pub fn registry(&self) -> &Registry {
        self.engine.registry()
    }

    /// A host for questions: nothing is printed, and nothing interrupts it.
    pub fn observer(&self) -> Arc<Terminal> {
        let cancel = CancellationToken::new();
        let tools = self.connections.as_ref().map(|connections| connections.host(cancel.clone(), &self.limits));
        Arc::new(Terminal::new(Prints::Keep, cancel, tools, self.secrets.clone()))
    }

    /// True when there are servers that have to be closed at the end.
    pub fn has_tools(&self) -> bool {
        self.connections.is_some()
    }
}

/// What Ctrl-C stops.
#[derive(Clone, Default)]
struct Interrupt(Arc<Mutex<Option<CancellationToken>>>);

impl Interrupt {
    fn set(&self, running: Option<CancellationToken>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = running;
    }

    fn take(&self) -> Option<CancellationToken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Reads all of standard input as text.
///
/// # Errors
/// When it cannot be read or is no UTF-8.
pub fn read_input() -> Result<String, Problem> {
    let text = std::io::read_to_string(std::io::stdin());
    text.map_err(|problem| Problem::Usage(format!("standard input: {problem}")))
}

/// Reads a file as text; `-` is standard input.
///
/// # Errors
/// When it cannot be read or is no UTF-8.
pub fn read_file(file: &Path) -> Result<String, Problem> {
    if file.as_os_str() == "-" {
        return read_input();
    }
    std::fs::read_to_string(file).map_err(|problem| Problem::Usage(format!("{}: {problem}", file.display())))
}

/// The problem with a file or folder that a setting names: the setting is wrong where there is no such thing or it cannot
/// be used, otherwise the system failed.
pub fn named_problem(problem: &io::Error, message: String) -> Problem {
    use io::ErrorKind::{
        AlreadyExists, InvalidFilename, InvalidInput, IsADirectory, NotADirectory, NotFound, PermissionDenied,
        ReadOnlyFilesystem,
    };
    match problem.kind() {
        AlreadyExists | InvalidFilename | InvalidInput | IsADirectory | NotADirectory | NotFound | PermissionDenied
        | ReadOnlyFilesystem => Problem::Usage(message),
        _ => Problem::Failed(message),
    }
}

/// The problem with a store: the URL, or the file that it names, is wrong, or the server behind it cannot be used.
pub fn store_problem(url: &str, message: String) -> Problem {
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
    let is_server = ["redis", "rediss", "postgres", "postgresql"].contains(&scheme);
    if is_server { Problem::Failed(message) } else { Problem::Usage(message) }
}

/// The folder that a variable of the environment names.
pub fn folder_in(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}
