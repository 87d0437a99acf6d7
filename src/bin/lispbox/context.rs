//! State shared by `eval`, `run`, `plan` and `repl`: the limits, the tools of `--config`, the engine, and the handling of
//! Ctrl-C.

use std::future::{Future, poll_fn};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
use lispbox::lang::internal::Registry;
use lispbox::lang::{DecidedPlan, Engine, Host, Limits, Plan, Sandbox, Session};
use lispbox::server::{
    CancellationToken, ChangeSet, Configuration, Connections, DownstreamOptions, Rehearsal, RunCalls, Secrets,
    SessionOrigins,
};

use crate::approval::Person;
use crate::config_paths::ConfigPaths;
use crate::output::errln;
use crate::permissions::Permissions;
use crate::process;
use crate::terminal::{Prints, Terminal};
use crate::usual_store::{self, MEMORY};
use crate::worker::Isolation;

/// The exit code after Ctrl-C, by the convention of shells.
const INTERRUPTED: i32 = 130;

/// Limits and tools from the command line.
#[derive(Args)]
pub struct Settings {
    /// A limit, such as `memory=64MiB`, `compute=2s` or `fuel=1e7`; may be given several times. A variable contains
    /// several limits separated by blanks.
    #[arg(long = "limit", value_name = "NAME=VALUE", env = "LISPBOX_LIMIT", value_delimiter = ' ')]
    limits: Vec<String>,
    #[command(flatten)]
    permissions: Permissions,
    #[command(flatten)]
    config: ConfigPaths,
}

/// The reason why a command ends without having run a program.
pub enum Problem {
    /// The command line is wrong.
    Usage(String),
    /// The system or a server fails.
    Failed(String),
}

impl Problem {
    /// Prints the message and returns the exit code: 2 for wrong usage, 1 otherwise.
    pub fn report(self) -> ExitCode {
        let (message, code) = match self {
            Problem::Usage(message) => (message, ExitCode::from(2)),
            Problem::Failed(message) => (message, ExitCode::FAILURE),
        };
        errln!("lispbox: {message}");
        code
    }
}

/// The time for which a listing waits for servers in a process that ends with its answer, and all starts with it: until
/// they have started or failed.
pub const WITH_ALL_STARTS: Duration = Duration::MAX;

impl Settings {
    /// Parses the limits.
    ///
    /// # Errors
    /// Returns a usage error for an unknown name or an invalid value.
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

    /// Creates the engine and connects to the tools.
    ///
    /// # Errors
    /// Returns an error for invalid limits or permissions, and for a configuration that cannot be used.
    pub fn open(&self) -> Result<EvaluationContext, Problem> {
        self.open_with(self.config.read().map_err(Problem::Usage)?, WITH_ALL_STARTS)
    }

    /// Like [`Settings::open`], for a process that outlives its first programs: servers may start meanwhile.
    ///
    /// # Errors
    /// As for [`Settings::open`].
    pub fn open_to_stay(&self) -> Result<EvaluationContext, Problem> {
        self.open_with(self.config.read().map_err(Problem::Usage)?, DownstreamOptions::default().listing)
    }

    /// Creates the engine for programs without tools; reads no configuration.
    ///
    /// # Errors
    /// Returns an error for invalid limits, and if the command line names a configuration.
    pub fn open_without_tools(&self) -> Result<EvaluationContext, Problem> {
        if self.config.is_given() {
            return Err(Problem::Usage("`--config` is for calls of tools, which only `--live` makes".to_owned()));
        }
        self.open_with(Configuration::default(), WITH_ALL_STARTS)
    }

    fn open_with(&self, configuration: Configuration, listing: Duration) -> Result<EvaluationContext, Problem> {
        configuration.warnings.iter().for_each(|warning| errln!("lispbox: {warning}"));
        let limits = self.limits(&configuration)?;
        let secrets = Secrets::of_environment();
        let policy = self.permissions.policy()?;
        let connections = match configuration.servers.is_empty() {
            true => None,
            false => {
                let secrets = secrets.clone();
                let options = DownstreamOptions { policy, secrets, listing, ..DownstreamOptions::default() };
                let connections = Connections::open_with(configuration, options);
                Some(connections.map_err(|problem| Problem::Failed(problem.to_string()))?)
            }
        };
        let engine = process::engine(if connections.is_some() { process::CONNECTIONS } else { 0 })?;
        let (interrupt, lost_input) = (Interrupt::default(), Arc::default());
        let origins = SessionOrigins::default();
        Ok(EvaluationContext { limits, engine, connections, origins, secrets, interrupt, lost_input })
    }
}

/// The state in which programs run.
pub struct EvaluationContext {
    /// The limits of each program.
    pub limits: Limits,
    engine: Arc<Engine>,
    connections: Option<Connections>,
    /// The origins of the values of the session at this terminal.
    origins: SessionOrigins,
    secrets: Secrets,
    interrupt: Interrupt,
    /// Set when a question to the user has discarded typed-ahead input.
    lost_input: Arc<AtomicBool>,
}

impl EvaluationContext {
    /// Returns the sandbox that creates environments: in this process, or in isolated workers if requested.
    ///
    /// # Errors
    /// Returns an error if isolation is requested and the system cannot provide it.
    pub fn sandbox(&self, isolation: &Isolation) -> Result<Arc<dyn Sandbox>, Problem> {
        isolation.sandbox(self.engine.clone())
    }

    /// Creates an environment in this process.
    pub fn session(&self) -> Session {
        self.engine.session()
    }

    /// Creates the host of one program. Ctrl-C cancels the program of the latest host. The user at the terminal is
    /// asked to confirm the tool calls for which the policy requires it.
    pub fn host(&self, prints: Prints, limits: &Limits, program: &str) -> Arc<Terminal> {
        self.host_of(prints, limits, program, None)
    }

    /// Like [`EvaluationContext::host`], for a program with a run key: it waits if there is no terminal to ask on.
    pub fn host_of_run(&self, prints: Prints, limits: &Limits, program: &str, calls: &RunCalls) -> Arc<Terminal> {
        self.host_of(prints, limits, program, Some(calls))
    }

    /// Like [`EvaluationContext::host`], for a rehearsal: no person is asked, and calls that may change something are
    /// collected.
    pub fn host_rehearsing(&self, prints: Prints, limits: &Limits, rehearsal: &Arc<Rehearsal>) -> Arc<Terminal> {
        let cancel = CancellationToken::new();
        let host = |connections: &Connections| connections.host_rehearsing(cancel.clone(), limits, rehearsal);
        let tools = self.connections.as_ref().map(host);
        self.interrupt.set(Some(cancel.clone()));
        Arc::new(Terminal::new(prints, cancel, tools, self.secrets.clone()))
    }

    /// Like [`EvaluationContext::host`], for the calls of a rehearsal: the user is asked about each.
    pub fn host_committing(&self, limits: &Limits, changes: &ChangeSet) -> Arc<Terminal> {
        let cancel = CancellationToken::new();
        let lost_input = self.lost_input.clone();
        let person = Arc::new(Person { stop: cancel.clone(), lost_input, can_wait: false });
        let host =
            |connections: &Connections| connections.host_committing(cancel.clone(), limits, changes, person.clone());
        let tools = self.connections.as_ref().map(host);
        self.interrupt.set(Some(cancel.clone()));
        Arc::new(Terminal::new(Prints::Stream, cancel, tools, self.secrets.clone()))
    }

    fn host_of(&self, prints: Prints, limits: &Limits, program: &str, calls: Option<&RunCalls>) -> Arc<Terminal> {
        let cancel = CancellationToken::new();
        let lost_input = self.lost_input.clone();
        let person = Arc::new(Person { stop: cancel.clone(), lost_input, can_wait: calls.is_some() });
        let tools = self.connections.as_ref().map(|connections| match calls {
            Some(calls) => connections.host_of_run(cancel.clone(), limits, program, &self.origins, person, calls),
            None => connections.host_asking(cancel.clone(), limits, program, &self.origins, person),
        });
        self.interrupt.set(Some(cancel.clone()));
        Arc::new(Terminal::new(prints, cancel, tools, self.secrets.clone()))
    }

    /// True if a question has discarded typed-ahead input since the last call of this function.
    pub fn has_lost_input(&self) -> bool {
        self.lost_input.swap(false, Ordering::Relaxed)
    }

    /// Records that no program is running, so that Ctrl-C ends the process.
    pub fn at_rest(&self) {
        self.interrupt.set(None);
    }

    /// Lets Ctrl-C and termination signals cancel the running program. A second signal, or one while no program is
    /// running, ends the process. Without this, the first signal ends it.
    pub fn stop_on_interrupt(&self) {
        let interrupt = self.interrupt.clone();
        // On a system without such signals, no handler is needed.
        let _ = ctrlc::set_handler(move || match interrupt.take() {
            Some(cancel) => cancel.cancel(),
            None => std::process::exit(INTERRUPTED),
        });
    }

    /// Lets Ctrl-C cancel the running program and never end the process.
    ///
    /// # Errors
    /// Returns an error if the asynchronous runtime cannot be created or the handler cannot be registered.
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
                        // Only the first notification is received; later ones fail.
                        let _ = ready.send(());
                        polled
                    });
                    // On a system without such a signal, no handler is needed.
                    if outcome.await.is_err() {
                        return;
                    }
                    if let Some(cancel) = interrupt.take() {
                        cancel.cancel();
                    }
                }
            });
        });
        // A signal that arrives before the first poll has registered the handler would end the process.
        registered.recv().map_err(|_| Problem::Failed("Ctrl-C cannot be handled".to_owned()))?;
        Ok(())
    }

    /// The registry of the functions of the language.
    pub fn registry(&self) -> &Registry {
        self.engine.registry()
    }

    /// Creates a host for queries: it prints nothing and cannot be interrupted.
    pub fn observer(&self) -> Arc<Terminal> {
        let cancel = CancellationToken::new();
        let tools = self.connections.as_ref().map(|connections| connections.host(cancel.clone(), &self.limits));
        Arc::new(Terminal::new(Prints::Keep, cancel, tools, self.secrets.clone()))
    }

    /// Returns a plan with what the policy decides on its calls.
    pub fn decided(&self, plan: &Plan, host: &dyn Host) -> DecidedPlan {
        self.connections.as_ref().map_or_else(DecidedPlan::default, |connections| connections.decided(plan, host))
    }

    /// True if downstream servers are connected, which must be closed at the end.
    pub fn has_tools(&self) -> bool {
        self.connections.is_some()
    }
}

/// The program that Ctrl-C cancels.
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
/// Returns a usage error if it cannot be read or is not UTF-8.
pub fn read_input() -> Result<String, Problem> {
    let text = std::io::read_to_string(std::io::stdin());
    text.map_err(|problem| Problem::Usage(format!("standard input: {problem}")))
}

/// Reads a file as text; `-` is standard input.
///
/// # Errors
/// Returns a usage error if it cannot be read or is not UTF-8.
pub fn read_file(file: &Path) -> Result<String, Problem> {
    if file.as_os_str() == "-" {
        return read_input();
    }
    std::fs::read_to_string(file).map_err(|problem| Problem::Usage(format!("{}: {problem}", file.display())))
}

/// Classifies an error on a file or folder that a setting names: wrong usage if it does not exist or cannot be used,
/// otherwise a failure of the system.
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

/// Returns the URL of the store that a command was given, or else of the one that a server uses for which none is named.
///
/// # Errors
/// Returns what was expected if there is neither.
pub fn store_url(given: Option<String>) -> Result<String, Problem> {
    given.filter(|url| url != MEMORY).or_else(usual_store::url).ok_or_else(|| {
        Problem::Usage("expected `--store sqlite:PATH` or LISPBOX_STORE, as given to `serve`".to_owned())
    })
}

/// Returns a time in seconds since 1970, as JSON output has it.
pub fn seconds(time: std::time::SystemTime) -> u64 {
    time.duration_since(std::time::SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Classifies an error of a store: wrong usage if the store is a file, a failure if it is a server.
pub fn store_problem(url: &str, message: String) -> Problem {
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
    let is_server = ["redis", "rediss", "postgres", "postgresql"].contains(&scheme);
    if is_server { Problem::Failed(message) } else { Problem::Usage(message) }
}

/// The folder named by an environment variable, unless it is unset or empty.
pub fn folder_in(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}
