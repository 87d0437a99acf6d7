//! `--isolate`, which runs programs in worker processes, and `lispbox worker`, which is such a process.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use lispbox::lang::{Engine, Sandbox};

use crate::context::Problem;

/// Selects whether programs run in this process or in an isolated worker process.
#[derive(Args)]
pub struct Isolation {
    /// Run programs in a worker process without access to files, network or privileges (on Linux).
    #[arg(long)]
    isolate: bool,
}

impl Isolation {
    /// Returns the sandbox that creates environments: the engine, or isolated workers if requested.
    ///
    /// # Errors
    /// Returns an error if this system cannot confine a process or start one.
    pub fn sandbox(&self, engine: Arc<Engine>) -> Result<Arc<dyn Sandbox>, Problem> {
        if self.isolate { isolated() } else { Ok(engine) }
    }
}

#[cfg(target_os = "linux")]
fn isolated() -> Result<Arc<dyn Sandbox>, Problem> {
    use lispbox::worker::{Program, WorkerOptions, Workers};
    let workers = Program::this(&["worker"]).and_then(|program| Workers::start(WorkerOptions::new(program)));
    let workers = workers.map_err(|problem| Problem::Failed(format!("`--isolate`: {problem}")))?;
    let walls = workers.walls().join(", ");
    if workers.walls().iter().any(|wall| wall == "seccomp") {
        tracing::info!(walls, "programs run in worker processes");
    } else {
        tracing::warn!(walls, "programs run in worker processes without seccomp: UDP sockets and fork are not blocked");
    }
    Ok(workers)
}

#[cfg(not(target_os = "linux"))]
fn isolated() -> Result<Arc<dyn Sandbox>, Problem> {
    Err(Problem::Failed(
        "`--isolate`: worker processes are confined by seccomp and landlock, which only Linux has".to_owned(),
    ))
}

/// Runs a worker process: its standard input is a pipe from the process that started it.
#[derive(Args)]
pub struct Worker {}

impl Worker {
    /// Runs the worker; the exit code is 1 if the process cannot be confined or has no pipe.
    #[cfg(target_os = "linux")]
    pub fn run(self) -> ExitCode {
        match lispbox::worker::run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(problem) => Problem::Failed(format!("worker: {problem}")).report(),
        }
    }

    /// Exits with 1: processes cannot be confined on this system.
    #[cfg(not(target_os = "linux"))]
    pub fn run(self) -> ExitCode {
        Problem::Failed("worker: this system cannot confine processes".to_owned()).report()
    }
}
