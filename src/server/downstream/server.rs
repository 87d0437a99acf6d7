//! One server over time: not yet started, connected, gone, connected again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tokio::sync::Mutex as AsyncMutex;

use crate::lang::error::suggest::closest;
use crate::lang::{Tool, ToolCall, ToolError, ToolErrorKind, ToolReply};
use crate::server::config::{ServerConfig, cut};
use crate::server::platform::Lifeline;
use crate::server::policy::{Consent, Counts, Decision, Policy};

use super::DownstreamOptions;
use super::arguments::{self, CheckedTool};
use super::connection::{Connection, Start};
use super::result;
use super::shelf::Shelf;

/// How long a failure to list the tools is remembered by the catalogue.
const FAILURE_KEPT: Duration = Duration::from_secs(60);

/// How long calls go on of a server that is not in the configuration any more.
const LAST_CALLS: Duration = Duration::from_secs(60);

/// One configured server.
pub(super) struct Downstream {
    start: Start,
    /// What may be done with its tools.
    policy: RwLock<Arc<Policy>>,
    shelf: Shelf,
    /// Held while the server is being started, so that it is started once.
    connection: AsyncMutex<Connecting>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Connecting {
    current: Option<Arc<Connection>>,
    /// The last failure to start: whoever was waiting for it shares it.
    failed: Option<(Instant, ToolError)>,
}

/// What is known of its tools.
#[derive(Default)]
struct Known {
    tools: Option<Vec<Arc<CheckedTool>>>,
    /// The connection from which they were listed; nothing for those from disk.
    listed_by: Option<Arc<Connection>>,
    /// Why the catalogue could not list them, and when.
    failed: Option<(Instant, String)>,
    shelf_was_read: bool,
}

impl Downstream {
    pub(super) fn new(config: ServerConfig, options: &DownstreamOptions, lifeline: Arc<Lifeline>) -> Downstream {
        Downstream {
            shelf: Shelf::new(options.cache.as_deref(), &config),
            policy: RwLock::default(),
            start: Start { config, lifeline, largest: options.largest_message },
            connection: AsyncMutex::default(),
            known: Mutex::default(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.start.config.name
    }

    /// How it is configured.
    pub(super) fn config(&self) -> &ServerConfig {
        &self.start.config
    }

    /// From now on that policy says what may be done with its tools.
    pub(super) fn set_policy(&self, policy: Policy) {
        *self.policy.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policy);
    }

    fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.policy.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// What is done with one of its tools.
    pub(super) fn decide(&self, tool: &Tool) -> Decision {
        self.policy().decide(self.name(), &tool.name, &tool.hints)
    }

    /// The tools that may be called.
    fn allowed(&self, tools: &[Arc<CheckedTool>]) -> Vec<Arc<Tool>> {
        let policy = self.policy();
        let tools = tools.iter().map(|checked| &checked.tool);
        tools.filter(|tool| policy.denies(self.name(), &tool.name, &tool.hints).is_none()).cloned().collect()
    }

    /// The known tools that may not be called, each with the rule that says so.
    pub(super) fn denied(&self) -> Vec<(String, String)> {
        let Some(tools) = self.known_anyhow() else { return Vec::new() };
        let policy = self.policy();
        let tools = tools.iter().map(|checked| &checked.tool);
        tools
            .filter_map(|tool| Some((tool.name.clone(), policy.denies(self.name(), &tool.name, &tool.hints)?)))
            .collect()
    }

    /// One line: what the configuration says, else the first tools that are known.
    pub(super) fn description(&self) -> String {
        let given = &self.start.config.description;
        if !given.is_empty() {
            return given.clone();
        }
        let Some(tools) = self.known_tools() else { return String::new() };
        let mut names: Vec<&str> = tools.iter().take(6).map(|tool| tool.name.as_str()).collect();
        if tools.len() > names.len() {
            names.push("…");
        }
        cut(&names.join(", "), 200)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tools as last listed, in this process or in an earlier one, that may be called.
    pub(super) fn known_tools(&self) -> Option<Vec<Arc<Tool>>> {
        self.known_anyhow().map(|tools| self.allowed(&tools))
    }

    fn known_anyhow(&self) -> Option<Vec<Arc<CheckedTool>>> {
        let mut known = self.known();
        if known.tools.is_none() && !known.shelf_was_read {
            known.shelf_was_read = true;
            known.tools = self.shelf.read(self.name()).map(arguments::checked);
        }
        known.tools.clone()
    }

    /// The tools that may be called, from the server itself.
    pub(super) async fn tools(&self) -> Result<Vec<Arc<Tool>>, ToolError> {
        let connection = self.connect().await?;
        Ok(self.allowed(&self.listed(&connection).await?))
    }

    /// The tools for the catalogue, or the reason why they are not to be had.
    pub(super) async fn list_within(&self, bound: Duration) -> Result<Vec<Arc<Tool>>, String> {
        if let Some((_, reason)) = self.known().failed.as_ref().filter(|(when, _)| when.elapsed() < FAILURE_KEPT) {
            return Err(reason.clone());
        }
        let listed = match tokio::time::timeout(bound, self.tools()).await {
            Ok(listed) => listed.map_err(|error| error.message),
            Err(_) => Err(format!("did not list its tools within {} s", bound.as_secs())),
        };
        listed.inspect_err(|reason| self.known().failed = Some((Instant::now(), reason.clone())))
    }

    /// Calls one tool, if it is decided so; see [`super::Downstreams::call`].
    pub(super) async fn call(
        &self,
        call: &ToolCall,
        consent: &Consent,
        counts: &Counts,
    ) -> (ToolReply, Option<String>) {
        let mut rule = None;
        let reply = self.call_by_rule(call, consent, counts, &mut rule).await;
        (reply.unwrap_or_else(ToolReply::Error), rule)
    }

    async fn call_by_rule(
        &self,
        call: &ToolCall,
        consent: &Consent,
        counts: &Counts,
        rule: &mut Option<String>,
    ) -> Result<ToolReply, ToolError> {
        let begun = Instant::now();
        let tool = &*call.tool;
        let policy = self.policy();
        // What is denied by its name does not start a server.
        if let Some(denied) = policy.decide_by_name(self.name(), tool).filter(Decision::denies) {
            *rule = Some(denied.rule.clone());
            return Ok(ToolReply::Denied(denied.rule));
        }
        let connection = self.connect().await?;
        let tools = self.listed(&connection).await?;
        let Some(checked) = tools.iter().find(|checked| checked.tool.name == tool) else {
            let names = tools.iter().map(|checked| checked.tool.name.as_str());
            return Err(ToolError {
                kind: ToolErrorKind::Arguments,
                message: format!("server `{}` has no tool `{tool}`", self.name()),
                suggestion: closest(tool, names).map(|name| format!("Did you mean {}/{name}?", self.name())),
            });
        };
        let arguments = checked.check(&call.arguments)?;
        let (config, remaining) = (&self.start.config, call.remaining.saturating_sub(begun.elapsed()));
        let ruling = consent.to(&checked.tool, &arguments, &policy, counts, &config.file, remaining).await;
        *rule = Some(ruling.rule);
        if let Some(refused) = ruling.refused {
            return Ok(refused);
        }
        let timeout = config.tool_timeouts.get(tool).copied().or(config.timeout).unwrap_or(call.timeout);
        let answer = connection.call(tool, arguments, timeout).await?;
        result::unwrap(answer, &checked.tool)
    }

    /// The connection, made now unless there is one that lives.
    async fn connect(&self) -> Result<Arc<Connection>, ToolError> {
        let asked = Instant::now();
        let mut connecting = self.connection.lock().await;
        if let Some(connection) = connecting.current.as_ref().filter(|connection| connection.lives()) {
            return Ok(Arc::clone(connection));
        }
        if let Some((_, error)) = connecting.failed.as_ref().filter(|(when, _)| *when >= asked) {
            return Err(error.clone());
        }
        if let Some(dead) = connecting.current.take() {
            dead.close().await;
        }
        match self.start.connect().await {
            Ok(connection) => {
                tracing::info!(server = self.name(), "downstream server started");
                let connection = Arc::new(connection);
                connecting.current = Some(Arc::clone(&connection));
                Ok(connection)
            }
            Err(reason) => {
                tracing::warn!(server = self.name(), %reason, "downstream server did not start");
                let error = ToolError {
                    kind: ToolErrorKind::Unavailable,
                    message: format!("server `{}` did not start: {reason}", self.name()),
                    suggestion: None,
                };
                connecting.failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    /// The tools of this connection, listed now unless they have been and did not change since.
    async fn listed(&self, connection: &Arc<Connection>) -> Result<Vec<Arc<CheckedTool>>, ToolError> {
        let changed = connection.take_list_changed();
        {
            let known = self.known();
            let current = known.listed_by.as_ref().is_some_and(|by| Arc::ptr_eq(by, connection));
            if let Some(tools) = known.tools.as_ref().filter(|_| current && !changed) {
                return Ok(tools.clone());
            }
        }
        let tools: Vec<Arc<Tool>> = connection.list().await?.into_iter().map(Arc::new).collect();
        self.shelf.write(&tools);
        let tools = arguments::checked(tools);
        let mut known = self.known();
        known.tools = Some(tools.clone());
        known.listed_by = Some(Arc::clone(connection));
        known.failed = None;
        Ok(tools)
    }

    /// Ends the connection once nobody else uses the server, or after a while.
    pub(super) async fn close_when_idle(self: Arc<Self>) {
        let begun = Instant::now();
        while Arc::strong_count(&self) > 1 && begun.elapsed() < LAST_CALLS {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        self.close().await;
    }

    /// Ends the connection, if there is one.
    pub(super) async fn close(&self) {
        let current = self.connection.lock().await.current.take();
        self.known().listed_by = None;
        if let Some(connection) = current {
            connection.close().await;
        }
    }
}
