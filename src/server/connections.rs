//! Tools for programs at a terminal: the servers of a configuration without the MCP front end.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::lang::{self, CallId, Catalogue, DecidedPlan, Host, Limits, Plan, Tool, ToolCall, ToolError, ToolReply};
use crate::server::approvals::{Approver, Grants, LaterCalls, Take, TakenCall};
use crate::server::config::Configuration;
use crate::server::downstream::{DownstreamOptions, Downstreams};
use crate::server::evaluations::host::EvaluationHost;
use crate::server::evaluations::keyed::RunCalls;
use crate::server::guards::Guarded;
use crate::server::system;
use lispbox_policy::internal::Origins;
use lispbox_policy::{Rehearsal, internal::ChangeSet};

/// A runtime and the servers that are reached through it. Dropping it closes them, which blocks: do not drop it on a
/// thread of another runtime.
pub struct Connections {
    runtime: Option<Runtime>,
    downstreams: Arc<Downstreams>,
    evaluations: AtomicU64,
}

/// The origins of the values of one session, by which guards decide, and the later calls that a person has allowed in it.
/// Programs of different sessions must not share it: what a tool has returned to one of them, and what a person has allowed
/// to it, would hold for the other.
#[derive(Clone)]
pub struct SessionOrigins {
    origins: Arc<Origins>,
    allowed: Arc<Remembered>,
}

impl Default for SessionOrigins {
    fn default() -> SessionOrigins {
        SessionOrigins { origins: Arc::new(Origins::default()), allowed: Arc::default() }
    }
}

/// The words for a call that was allowed together with an earlier one.
const ALLOWED: &str = "a person has allowed it for this session";

/// The later calls that a person has allowed in one session, in memory, for as long as it lasts.
#[derive(Default)]
struct Remembered(Mutex<lispbox_policy::internal::Grants>);

impl Remembered {
    /// No grant ends while the session lasts, so the time does not matter.
    const NOW: i64 = 0;

    fn grants(&self) -> MutexGuard<'_, lispbox_policy::internal::Grants> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Grants for Remembered {
    fn covering(&self, asked: &[lang::Question]) -> Result<Vec<Option<String>>, String> {
        let grants = self.grants();
        Ok(asked.iter().map(|asked| grants.covers(asked, Remembered::NOW).then(|| ALLOWED.to_owned())).collect())
    }

    fn take(&self, asked: &lang::Question) -> Result<Take, String> {
        Ok(match self.grants().take(asked, Remembered::NOW) {
            true => Take::Taken(TakenCall { by: ALLOWED.to_owned(), holds: Arc::new(|| Ok(true)) }),
            false => Take::Uncovered,
        })
    }

    fn give(&self, asked: &lang::Question, later: LaterCalls) -> Result<(), String> {
        let terms = (None, later == LaterCalls::SameArguments);
        let given = self.grants().give(asked, (Remembered::NOW, i64::MAX), terms, "");
        given.map(drop).map_err(|problem| problem.to_string())
    }
}

/// The result of starting a server.
pub struct Checked {
    /// The name of the server.
    pub server: String,
    /// Its tools that may be called, or why it cannot be used.
    pub tools: Result<Vec<Arc<Tool>>, ToolError>,
    /// The arguments that are not checked, a clause each, such as "the arguments of files/read are not checked: its
    /// schema expands to more parts than are supported".
    pub unchecked: Vec<String>,
    /// The arguments that guards name and that its tools do not have, a clause each.
    pub unguarded: Vec<String>,
    /// The file that is started and where it was found; see [`Downstreams::command_of`].
    pub command: Option<String>,
    /// Why tools without a server cannot work on this machine, a clause each.
    pub unusable: Vec<String>,
}

/// What is known of a check of several servers.
pub enum CheckProgress {
    /// One server has started, or failed.
    Done(Checked),
    /// These are still starting.
    Starting(Vec<String>),
}

/// Starts a server and looks at its tools.
async fn checked(downstreams: &Downstreams, server: String) -> Checked {
    let tools = downstreams.tools(&server).await;
    let unchecked = downstreams.unchecked(&server).await;
    let unguarded = downstreams.unguarded(&server, tools.as_deref().unwrap_or_default());
    let (command, unusable) = (downstreams.command_of(&server).await, downstreams.unusable(&server).await);
    Checked { server, tools, unchecked, unguarded, command, unusable }
}

/// The result of calling a tool once to learn the shape of its results.
pub struct Sampled {
    /// The tool, with the shape that is known now.
    pub tool: Arc<Tool>,
    /// Why there is no result, if the call failed or is not allowed.
    pub problem: Option<String>,
}

/// The timeout of a call that samples a tool, unless one is configured for the tool.
const SAMPLE: Duration = Duration::from_secs(30);

impl Connections {
    /// Prepares the connections to the servers of a configuration; none is started yet.
    ///
    /// # Errors
    /// Fails if the system has no threads left.
    pub fn open(configuration: Configuration) -> io::Result<Connections> {
        Connections::open_with(configuration, DownstreamOptions::default())
    }

    /// Like [`Connections::open`], with options.
    ///
    /// # Errors
    /// Fails like [`Connections::open`].
    pub fn open_with(configuration: Configuration, options: DownstreamOptions) -> io::Result<Connections> {
        Ok(Connections {
            runtime: Some(system::runtime()?),
            downstreams: Arc::new(Downstreams::new(configuration, options)),
            evaluations: AtomicU64::new(0),
        })
    }

    /// Creates a host for one evaluation. Its tool calls and its computation stop when `cancel` is cancelled. Where values
    /// come from is not known to it, so guards refuse what they guard, or ask.
    pub fn host(&self, cancel: CancellationToken, limits: &Limits) -> Arc<dyn Host> {
        self.evaluation(cancel, limits).into_host()
    }

    /// Like [`Connections::host`], for a program of a session, whose approver asks a person about calls for which the policy
    /// requires approval. The person can allow later calls of the session together with one.
    pub fn host_asking(
        &self,
        cancel: CancellationToken,
        limits: &Limits,
        program: &str,
        origins: &SessionOrigins,
        approver: Arc<dyn Approver>,
    ) -> Arc<dyn Host> {
        self.evaluation_of(program, origins, cancel, limits, approver).into_host()
    }

    /// Like [`Connections::host_asking`], for a program with a run key, which is suspended if the approver says so.
    pub fn host_of_run(
        &self,
        cancel: CancellationToken,
        limits: &Limits,
        program: &str,
        origins: &SessionOrigins,
        approver: Arc<dyn Approver>,
        calls: &RunCalls,
    ) -> Arc<dyn Host> {
        let host = self.evaluation_of(program, origins, cancel, limits, approver);
        let host = host.with_features(|features| calls.prepare(features));
        Arc::new(host.observed(Arc::default(), Arc::clone(&calls.requests)))
    }

    /// Like [`Connections::host`], for a rehearsal: calls that may change something are not made, but collected.
    pub fn host_rehearsing(
        &self,
        cancel: CancellationToken,
        limits: &Limits,
        rehearsal: &Arc<Rehearsal>,
    ) -> Arc<dyn Host> {
        let rehearsal = Some(Arc::clone(rehearsal));
        self.evaluation(cancel, limits).with_features(|features| features.rehearsal = rehearsal).into_host()
    }

    /// Like [`Connections::host_asking`], for the program of a change set: the approver is asked about each call.
    pub fn host_committing(
        &self,
        cancel: CancellationToken,
        limits: &Limits,
        changes: &ChangeSet,
        approver: Arc<dyn Approver>,
    ) -> Arc<dyn Host> {
        self.evaluation(cancel, limits).asking(&changes.program, approver).committing(changes)
    }

    /// Creates the host of a program that a person has written.
    fn evaluation_of(
        &self,
        program: &str,
        origins: &SessionOrigins,
        cancel: CancellationToken,
        limits: &Limits,
        approver: Arc<dyn Approver>,
    ) -> EvaluationHost {
        let host = self.evaluation(cancel, limits);
        let guarded = Guarded::new(&self.downstreams, &origins.origins);
        guarded.iter().for_each(|guarded| guarded.begin(program, None, true));
        let allowed: Arc<dyn Grants> = Arc::<Remembered>::clone(&origins.allowed);
        host.with_features(|features| features.guarded = guarded).asking_in(program, approver, Some(allowed))
    }

    fn evaluation(&self, cancel: CancellationToken, limits: &Limits) -> EvaluationHost {
        let runtime = self.runtime.as_ref().expect("the runtime is there until the drop").handle().clone();
        let inside = runtime.enter();
        self.downstreams.refresh();
        drop(inside);
        let evaluation = self.evaluations.fetch_add(1, Ordering::Relaxed);
        EvaluationHost::new(Arc::clone(&self.downstreams), runtime, cancel, limits.parallel, evaluation)
    }

    /// Returns the tools of all servers, and lists those of servers about which nothing is known.
    pub fn catalogue(&self) -> Catalogue {
        let runtime = self.runtime.as_ref().expect("the runtime is there until the drop");
        let downstreams = Arc::clone(&self.downstreams);
        let listing = runtime.spawn(async move { downstreams.catalogue().await });
        runtime.block_on(listing).unwrap_or_default()
    }

    /// Returns a plan with what the policy decides on its calls; `host` lists the tools.
    pub fn decided(&self, plan: &Plan, host: &dyn Host) -> DecidedPlan {
        self.downstreams.decided(plan, host)
    }

    /// Starts all servers concurrently. Returns the tools of each that may be called, or why it cannot be used.
    pub fn check(&self) -> Vec<Checked> {
        let mut checked = Vec::new();
        self.check_each(Duration::MAX, |progress| {
            if let CheckProgress::Done(server) = progress {
                checked.push(server);
            }
        });
        let names = self.downstreams.names();
        checked.sort_by_key(|checked| names.iter().position(|name| *name == checked.server));
        checked
    }

    /// Like [`Connections::check`], with each result as soon as it is there. While there is none for `period`, the
    /// servers are reported that are still starting.
    pub fn check_each(&self, period: Duration, mut report: impl FnMut(CheckProgress)) {
        let runtime = self.runtime.as_ref().expect("the runtime is there until the drop");
        let mut waiting = self.downstreams.names();
        let (sender, mut results) = tokio::sync::mpsc::unbounded_channel();
        for name in waiting.clone() {
            let (downstreams, sender) = (Arc::clone(&self.downstreams), sender.clone());
            // The receiver outlives the tasks, unless the process is ending.
            runtime.spawn(async move { drop(sender.send(checked(&downstreams, name).await)) });
        }
        drop(sender);
        runtime.block_on(async {
            loop {
                match tokio::time::timeout(period, results.recv()).await {
                    Ok(None) => return,
                    Ok(Some(checked)) => {
                        waiting.retain(|name| *name != checked.server);
                        report(CheckProgress::Done(checked));
                    }
                    Err(_) => report(CheckProgress::Starting(waiting.clone())),
                }
            }
        });
    }

    /// Calls those of a server's tools that only read and need no arguments once each, one after the other, as far as the
    /// policy allows that without asking a person. Returns the tools that were to be called. What was learned of their
    /// results is shown to programs of the local user from then on.
    pub fn sample(&self, tools: &[Arc<Tool>]) -> Vec<Sampled> {
        let is_harmless = |tool: &&Arc<Tool>| {
            tool.hints.read_only == Some(true) && tool.parameters().iter().all(|(_, is_required)| !is_required)
        };
        let harmless: Vec<Arc<Tool>> = tools.iter().filter(is_harmless).cloned().collect();
        let host = self.evaluation(CancellationToken::new(), &Limits::default());
        let mut sampled = Vec::new();
        for (tool, ordinal) in harmless.into_iter().zip(0..) {
            let call = ToolCall {
                id: CallId { ordinal, ..CallId::default() },
                server: tool.server.as_str().into(),
                tool: tool.name.as_str().into(),
                arguments: "{}".to_owned(),
                // The server may have to start.
                remaining: 10 * SAMPLE,
                timeout: SAMPLE,
                fuel: 0,
                memory: 0,
                approved: None,
                values: None,
                room: u64::MAX,
            };
            let problem = match host.call_unasked(&call) {
                ToolReply::Json(_) | ToolReply::Text(_) => None,
                ToolReply::Error(error) => Some(error.message),
                ToolReply::Denied(rule) => Some(format!("denied by {rule}")),
                ToolReply::Unapproved(reason) => Some(reason),
                other => Some(other.outcome().to_owned()),
            };
            let now = host.tools(&tool.server).unwrap_or_default();
            let now = now.into_iter().find(|now| now.name == tool.name);
            sampled.push(Sampled { tool: now.unwrap_or(tool), problem });
        }
        sampled
    }

    /// Logs a person in to a server that requires it; see [`Downstreams::log_in`].
    ///
    /// # Errors
    /// Returns why the login failed.
    pub fn log_in(&self, server: &str, show: impl FnOnce(&str)) -> Result<(), String> {
        let runtime = self.runtime.as_ref().expect("the runtime is there until the drop");
        runtime.block_on(self.downstreams.log_in(server, show))
    }

    /// The servers.
    pub fn downstreams(&self) -> &Downstreams {
        &self.downstreams
    }

    /// Closes the connections and ends the servers' processes, within about two seconds.
    pub fn close(self) {
        drop(self);
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.block_on(self.downstreams.close());
            runtime.shutdown_timeout(Duration::from_millis(500));
        }
    }
}
