//! Tools for programs at a terminal: the servers of a configuration without the MCP front.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::lang::{Catalogue, Host, Limits, Tool, ToolError};

use super::config::Configuration;
use super::downstream::{DownstreamOptions, Downstreams};
use super::host::EvaluationHost;
use super::policy::Approver;

/// A runtime and the servers that are reached through it. Dropping it closes them, which blocks: not a
/// thing to do on a thread of another runtime.
pub struct Connections {
    runtime: Option<Runtime>,
    downstreams: Arc<Downstreams>,
    evaluations: AtomicU64,
}

/// What became of starting a server.
pub struct Checked {
    /// The name of the server.
    pub server: String,
    /// Its tools that may be called, or why it cannot be used.
    pub tools: Result<Vec<Arc<Tool>>, ToolError>,
    /// What of their arguments is not checked, a clause each, such as "the arguments of files/read are not checked: its
    /// schema expands to more parts than are compiled".
    pub unchecked: Vec<String>,
}

/// A runtime of our own, on which connections live.
pub(super) fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).thread_name("lispbox-io").enable_all().build()
}

impl Connections {
    /// Makes ready to reach the servers of a configuration; none is started yet.
    ///
    /// # Errors
    /// When the system has no threads left.
    pub fn open(configuration: Configuration) -> io::Result<Connections> {
        Connections::open_with(configuration, DownstreamOptions::default())
    }

    /// As [`Connections::open`], with options.
    ///
    /// # Errors
    /// As [`Connections::open`].
    pub fn open_with(configuration: Configuration, options: DownstreamOptions) -> io::Result<Connections> {
        Ok(Connections {
            runtime: Some(runtime()?),
            downstreams: Arc::new(Downstreams::new(configuration, options)),
            evaluations: AtomicU64::new(0),
        })
    }

    /// A host for one evaluation. Its tool calls and its computing stop when `cancel` is cancelled.
    pub fn host(&self, cancel: CancellationToken, limits: &Limits) -> Arc<dyn Host> {
        Arc::new(self.evaluation(cancel, limits))
    }

    /// The same for that program, in which a person is asked there about the calls on which the policy wants one asked.
    pub fn host_asking(
        &self,
        cancel: CancellationToken,
        limits: &Limits,
        program: &str,
        approver: Arc<dyn Approver>,
    ) -> Arc<dyn Host> {
        Arc::new(self.evaluation(cancel, limits).asking(program, approver))
    }

    fn evaluation(&self, cancel: CancellationToken, limits: &Limits) -> EvaluationHost {
        let runtime = self.runtime.as_ref().expect("the runtime is there until the drop").handle().clone();
        let inside = runtime.enter();
        self.downstreams.refresh();
        drop(inside);
        let evaluation = self.evaluations.fetch_add(1, Ordering::Relaxed);
        EvaluationHost::new(Arc::clone(&self.downstreams), runtime, cancel, limits.parallel, evaluation)
    }

    /// The tools of all servers, listed anew where nothing is known of them.
    pub fn catalogue(&self) -> Catalogue {
        let runtime = self.runtime.as_ref().expect("the runtime is there until the drop");
        let downstreams = Arc::clone(&self.downstreams);
        let listing = runtime.spawn(async move { downstreams.catalogue().await });
        runtime.block_on(listing).unwrap_or_default()
    }

    /// Starts all servers, side by side, and lists the tools of each that may be called, or says why it cannot be used.
    pub fn check(&self) -> Vec<Checked> {
        let runtime = self.runtime.as_ref().expect("the runtime is there until the drop");
        let downstreams = Arc::clone(&self.downstreams);
        let checking = runtime.spawn(async move {
            let names = downstreams.names();
            let lists = futures::future::join_all(names.iter().map(|name| downstreams.tools(name))).await;
            let mut checked = Vec::new();
            for (server, tools) in names.into_iter().zip(lists) {
                let unchecked = downstreams.unchecked(&server).await;
                checked.push(Checked { server, tools, unchecked });
            }
            checked
        });
        runtime.block_on(checking).unwrap_or_default()
    }

    /// Has a person log in to a server that asks for it; see [`Downstreams::log_in`].
    ///
    /// # Errors
    /// Why there is no login.
    pub fn log_in(&self, server: &str, show: impl FnOnce(&str)) -> Result<(), String> {
        let runtime = self.runtime.as_ref().expect("the runtime is there until the drop");
        runtime.block_on(self.downstreams.log_in(server, show))
    }

    /// The servers.
    pub fn downstreams(&self) -> &Downstreams {
        &self.downstreams
    }

    /// Closes the connections and ends the servers' processes, within a couple of seconds.
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
