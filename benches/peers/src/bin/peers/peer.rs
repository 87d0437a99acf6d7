//! The peers, and how the process of each is started.

use crate::options::Options;
use crate::rhai::{self, Rhai};
use crate::starlark::{self, Starlark};
use lispbox_peers::child;
use lispbox_peers::workload::Workload;
use std::path::Path;
use std::process::{Command, ExitCode};

/// A measured implementation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// lispbox, the crate.
    Lispbox,
    /// Rust over the values of lispbox, without an interpreter.
    ByHand,
    /// Debian's CPython, the reference of every ratio.
    Cpython,
    /// rhai.
    Rhai,
    /// starlark-rust.
    Starlark,
    /// monty.
    Monty,
}

impl Peer {
    /// All peers, in the order of the table.
    pub const ALL: [Peer; 6] = [Peer::Lispbox, Peer::ByHand, Peer::Cpython, Peer::Rhai, Peer::Starlark, Peer::Monty];

    /// The name of the peer.
    pub fn name(self) -> &'static str {
        match self {
            Peer::Lispbox => "lispbox",
            Peer::ByHand => "by-hand",
            Peer::Cpython => "cpython",
            Peer::Rhai => "rhai",
            Peer::Starlark => "starlark",
            Peer::Monty => "monty",
        }
    }

    /// The limits that are on.
    pub fn limits(self) -> &'static str {
        match self {
            Peer::Lispbox | Peer::ByHand => {
                "all at their defaults, but compute 120 s, session 256 MiB (W3), fuel 1e9 and calls 1e6 (W6)"
            }
            Peer::Cpython => "none",
            Peer::Rhai => rhai::LIMITS,
            Peer::Starlark => starlark::LIMITS,
            Peer::Monty => "time, recursion, suspensions; not memory, which needs an allocator of its own",
        }
    }

    /// False for a peer that needs a feature which is not enabled.
    pub fn is_built(self) -> bool {
        self != Peer::Monty || cfg!(feature = "monty")
    }

    /// False for a peer that is measured only if it is named.
    pub fn is_usual(self) -> bool {
        self.is_built() && self != Peer::ByHand
    }

    /// True if the peer implements this workload.
    pub fn does(self, workload: Workload) -> bool {
        self != Peer::ByHand || workload.is_done_by_hand()
    }

    /// Runs a workload in this process.
    pub fn be(self, workload: Workload, inputs: &Path) -> ExitCode {
        match self {
            Peer::Rhai => child::report(&Rhai::new(), workload, inputs),
            Peer::Starlark => child::report(&Starlark::new(), workload, inputs),
            #[cfg(feature = "monty")]
            Peer::Monty => child::report(&crate::monty::Monty, workload, inputs),
            _ => {
                eprintln!("error: {} does not run in this process", self.name());
                ExitCode::FAILURE
            }
        }
    }

    /// Creates the command that runs a workload.
    ///
    /// # Errors
    /// Returns an error if the path of the runner is unknown.
    pub fn command(self, workload: Workload, inputs: &Path, options: &Options) -> Result<Command, String> {
        let runner = std::env::current_exe().map_err(|error| format!("the runner does not find itself: {error}"))?;
        let only_starts = workload == Workload::Process;
        let mut command = match (self, &options.binary) {
            (Peer::Lispbox, Some(binary)) if only_starts => {
                let mut command = Command::new(binary);
                command.args(["eval", "(+ 1 1)"]);
                return Ok(command);
            }
            (Peer::Lispbox | Peer::ByHand, _) => Command::new(runner.with_file_name("lispbox-child")),
            (Peer::Cpython, _) => Command::new(&options.python),
            _ => Command::new(runner),
        };
        match self {
            Peer::Lispbox => command.arg(workload.name()).arg(inputs),
            Peer::ByHand => command.arg(workload.name()).arg(inputs).arg("--by-hand"),
            Peer::Cpython if only_starts => command.args(["-c", "print(1 + 1)"]),
            Peer::Cpython => command.arg(inputs.join("harness.py")).arg(workload.name()).arg(inputs),
            _ => command.args(["--child", workload.name(), self.name()]).arg(inputs),
        };
        Ok(command)
    }
}
