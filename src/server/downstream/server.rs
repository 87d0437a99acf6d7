//! One server over time: not yet started, connected, gone, connected again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use tokio::sync::Mutex as AsyncMutex;

use crate::lang::error::suggest::closest;
use crate::lang::{Tool, ToolCall, ToolError, ToolErrorKind, ToolReply};
use crate::server::config::{ServerConfig, cut};
use crate::server::policy::{Consent, Counts, Decision, Policy};

use super::arguments::{self, CheckedTool};
use super::connection::{Connection, Failure, InUse};
use super::link::Link;
use super::local::Local;
use super::restarts::Restarts;
use super::shelf::Shelf;
use super::start::Start;
use super::{Answered, Shared};

/// How long a failure to list the tools is remembered by the catalogue.
const FAILURE_KEPT: Duration = Duration::from_secs(60);

/// How long nobody calls a server until it is stopped, unless its configuration says otherwise.
const IDLE: Duration = Duration::from_secs(600);

/// How often a call is made again at most.
const RETRIES: u32 = 2;

/// How long what was seen of results waits at the least before it is written to disk again.
const KEEPING: Duration = Duration::from_secs(10);

/// How long calls go on of a server that is not in the configuration any more.
const LAST_CALLS: Duration = Duration::from_secs(60);

/// How long a look at the connection waits for who holds it: longer is held while a server starts.
const LOOK: Duration = Duration::from_millis(100);

/// One configured server.
pub(super) struct Downstream {
    start: Start,
    /// What may be done with its tools.
    policy: RwLock<Arc<Policy>>,
    shelf: Shelf,
    /// Held while the server is being started, so that it is started once.
    connection: AsyncMutex<Connecting>,
    /// What its calls go over where there is nothing to start.
    local: Option<Local>,
    known: Mutex<Known>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Connecting {
    current: Option<Arc<Connection>>,
    restarts: Restarts,
    /// Why it did not start the last time.
    failed: Option<ToolError>,
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
    /// When they were last written to disk, and whether there is something new since.
    kept: Option<Instant>,
    unkept: bool,
}

impl Downstream {
    pub(super) fn new(config: ServerConfig, shared: Arc<Shared>) -> Downstream {
        let options = &shared.options;
        let local = Local::of(&config, &shared.lifeline, options.largest_message);
        let known = Known { tools: local.as_ref().map(|local| arguments::checked(local.tools())), ..Known::default() };
        Downstream {
            local,
            known: Mutex::new(known),
            shelf: Shelf::new(options.cache.as_deref(), &config),
            policy: RwLock::default(),
            start: Start {
                config,
                lifeline: Arc::clone(&shared.lifeline),
                largest: options.largest_message,
                logins: options.logins.clone(),
            },
            connection: AsyncMutex::default(),
            shared,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.start.config.name
    }

    /// How it is configured.
    pub(super) fn config(&self) -> &ServerConfig {
        &self.start.config
    }

    /// Has a person log in; see [`super::Downstreams::log_in`].
    pub(super) async fn log_in(&self, show: impl FnOnce(&str)) -> Result<(), String> {
        self.start.log_in(show).await
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
        tools.iter().filter(|checked| !self.is_denied(&policy, checked)).map(|checked| checked.shown()).collect()
    }

    fn is_denied(&self, policy: &Policy, checked: &CheckedTool) -> bool {
        policy.denies(self.name(), &checked.tool.name, &checked.tool.hints)
    }

    /// The known tools that may not be called, each with the rule that says so.
    pub(super) fn denied(&self) -> Vec<(String, String)> {
        let Some(tools) = self.known_anyhow() else { return Vec::new() };
        let policy = self.policy();
        let denied = tools.iter().filter(|checked| self.is_denied(&policy, checked));
        denied.map(|checked| (checked.tool.name.clone(), self.decide(&checked.tool).rule)).collect()
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
    pub(super) async fn tools(self: &Arc<Self>) -> Result<Vec<Arc<Tool>>, ToolError> {
        let link = self.link().await?;
        Ok(self.allowed(&self.listed(&link).await.map_err(Failure::error)?))
    }

    /// The tools for the catalogue, or the reason why they are not to be had.
    pub(super) async fn list_within(self: &Arc<Self>, bound: Duration) -> Result<Vec<Arc<Tool>>, String> {
        if let Some((_, reason)) = self.known().failed.as_ref().filter(|(when, _)| when.elapsed() < FAILURE_KEPT) {
            return Err(reason.clone());
        }
        let listed = match tokio::time::timeout(bound, self.tools()).await {
            Ok(listed) => listed.map_err(|error| error.message),
            Err(_) => Err(format!("did not list its tools within {} s", bound.as_secs())),
        };
        listed.inspect_err(|reason| self.known().failed = Some((Instant::now(), reason.clone())))
    }

    /// Calls one tool, if it is decided so; see [`super::Downstreams::call`]. A call that was lost with its connection is
    /// made again where that cannot do any harm; what this takes counts as time of the call.
    pub(super) async fn call(self: &Arc<Self>, given: &ToolCall, consent: &Consent, counts: &Counts) -> Answered {
        let config = &self.start.config;
        let timeout = config.tool_timeouts.get(&*given.tool).copied().or(config.timeout).unwrap_or(given.timeout);
        let mut call =
            Call { given, timeout, consent, counts, asked: Instant::now(), begun: None, rule: None, note: None };
        let reply = self.attempts(&mut call).await;
        Answered { reply: reply.unwrap_or_else(ToolReply::Error), rule: call.rule, note: call.note }
    }

    async fn attempts(self: &Arc<Self>, call: &mut Call<'_>) -> Result<ToolReply, ToolError> {
        let tool = &*call.given.tool;
        // What is denied by its name does not start a server.
        if let Some(denied) = self.policy().decide_by_name(self.name(), tool).filter(Decision::denies) {
            call.rule = Some(denied.rule.clone());
            return Ok(ToolReply::Denied(denied.rule));
        }
        let mut lost: Option<ToolError> = None;
        for retries_left in (0..=RETRIES).rev() {
            let bound = call.begun.map(|begun| call.timeout.saturating_sub(begun.elapsed()));
            let attempt = self.attempt(call);
            let outcome = match bound {
                None => attempt.await,
                Some(bound) => tokio::time::timeout(bound, attempt).await.unwrap_or(Err(Failure::NotStarted(None))),
            };
            match (outcome, lost.take()) {
                (Ok(reply), _) => return Ok(reply),
                (Err(Failure::Unsent(error)), _) if retries_left > 0 => {
                    tracing::warn!(server = self.name(), tool, reason = error.message, "a call is made again");
                    lost = Some(error);
                }
                (Err(Failure::NotStarted(error)), Some(lost)) => {
                    return Err(ToolError { suggestion: error.and_then(|error| error.suggestion), ..lost });
                }
                (Err(failure), _) => return Err(failure.error()),
            }
        }
        unreachable!("the last attempt returns")
    }

    /// One attempt at a call.
    async fn attempt(self: &Arc<Self>, call: &mut Call<'_>) -> Result<ToolReply, Failure> {
        let tool = &*call.given.tool;
        let link = self.link().await.map_err(|error| Failure::NotStarted(Some(error)))?;
        let tools = self.listed(&link).await.map_err(Failure::harmless)?;
        let Some(checked) = tools.iter().find(|checked| checked.tool.name == tool) else {
            let names = tools.iter().map(|checked| checked.tool.name.as_str());
            return Err(Failure::Final(ToolError {
                kind: ToolErrorKind::Arguments,
                message: format!("server `{}` has no tool `{tool}`", self.name()),
                suggestion: closest(tool, names).map(|name| format!("Did you mean {}/{name}?", self.name())),
            }));
        };
        let (arguments, changed) = checked.check(&call.given.arguments).map_err(Failure::Final)?;
        call.note = changed;
        if call.rule.is_none()
            && let Some(refused) = self.refuses(call, &checked.tool, &arguments).await
        {
            return Ok(refused);
        }
        let left = match call.begun {
            Some(begun) => call.timeout.saturating_sub(begun.elapsed()),
            None => call.timeout,
        };
        call.begun.get_or_insert_with(Instant::now);
        let reply = link.call(&checked.tool, arguments, left, &self.shared.blobs).await?;
        if checked.learn(&reply) {
            self.remember(&tools, false);
        }
        Ok(reply)
    }

    /// Keeps what is known of the tools, unless that was done a moment ago and can wait.
    fn remember(&self, tools: &[Arc<CheckedTool>], at_once: bool) {
        let is_due = {
            let mut known = self.known();
            let is_due = at_once || known.kept.is_none_or(|when| when.elapsed() > KEEPING);
            known.unkept = !is_due;
            known.kept = if is_due { Some(Instant::now()) } else { known.kept };
            is_due
        };
        if is_due {
            self.shelf.write(&tools.iter().map(|checked| checked.shown()).collect::<Vec<_>>());
        }
    }

    /// Decides on a call, once for all attempts at it; gives the reply to one that is not made.
    async fn refuses(&self, call: &mut Call<'_>, tool: &Tool, arguments: &Map<String, Value>) -> Option<ToolReply> {
        let Call { given, consent, counts, asked, .. } = *call;
        let remaining = given.remaining.saturating_sub(asked.elapsed());
        let ruling = consent.to(tool, arguments, &self.policy(), counts, &self.start.config.file, remaining).await;
        call.rule = Some(ruling.rule);
        ruling.refused
    }

    /// True while there is a connection that lives; one that is being made is none yet.
    pub(super) async fn is_connected(&self) -> bool {
        if self.local.is_some() {
            return true;
        }
        let connecting = tokio::time::timeout(LOOK, self.connection.lock()).await;
        connecting.is_ok_and(|connecting| connecting.current.as_ref().is_some_and(|current| current.lives()))
    }

    /// What calls go over, made ready.
    async fn link(self: &Arc<Self>) -> Result<Link<'_>, ToolError> {
        match &self.local {
            Some(local) => Ok(Link::Local(local)),
            None => self.connect().await.map(Link::Server),
        }
    }

    /// The connection, made now unless there is one that lives.
    async fn connect(self: &Arc<Self>) -> Result<InUse, ToolError> {
        let mut connecting = self.connection.lock().await;
        if let Some(connection) = connecting.current.clone() {
            let is_fresh = connection.idle().is_none_or(|idle| idle < self.shared.options.ping_after);
            if connection.lives() && (is_fresh || connection.answers().await) {
                return Ok(InUse::of(&connection));
            }
            connecting.current = None;
            connecting.failed = None;
            connecting.restarts.died(Instant::now(), connection.age());
            self.report(&connecting.restarts, "downstream server went away", "");
            connection.close().await;
        }
        if let Some(pause) = connecting.restarts.pause(Instant::now()) {
            return Err(self.left_alone(&connecting, pause));
        }
        let outcome = self.start.connect().await;
        self.shared.metrics.started(self.name(), outcome.is_ok());
        match outcome {
            Ok(connection) => {
                tracing::info!(server = self.name(), "downstream server started");
                let connection = Arc::new(connection);
                connecting.current = Some(Arc::clone(&connection));
                let idle = self.start.config.idle.unwrap_or(IDLE);
                if !idle.is_zero() {
                    tokio::spawn(stop_when_idle(Arc::downgrade(self), Arc::downgrade(&connection), idle));
                }
                Ok(InUse::of(&connection))
            }
            Err(reason) => {
                connecting.restarts.failed(Instant::now());
                self.report(&connecting.restarts, "downstream server did not start", &reason);
                connecting.failed =
                    Some(ToolError::unavailable(format!("server `{}` did not start: {reason}", self.name())));
                let pause = connecting.restarts.pause(Instant::now()).unwrap_or_default();
                Err(self.left_alone(&connecting, pause))
            }
        }
    }

    /// Says in the log what became of the server: once, as long as it goes on like that.
    fn report(&self, restarts: &Restarts, event: &'static str, reason: &str) {
        if restarts.bad_ends() == 1 {
            tracing::warn!(server = self.name(), reason, "{event}");
        } else {
            tracing::debug!(server = self.name(), reason, "{event} again");
        }
    }

    /// Why the server is not started now, and when it is.
    fn left_alone(&self, connecting: &Connecting, pause: Duration) -> ToolError {
        let error = connecting.failed.clone().unwrap_or_else(|| {
            let times = connecting.restarts.bad_ends();
            ToolError::unavailable(format!("server `{}` went away {times} times in a row", self.name()))
        });
        let seconds = pause.as_millis().div_ceil(1000);
        ToolError { suggestion: Some(format!("It is started again by a call in {seconds} s.")), ..error }
    }

    /// The tools of this connection, listed now unless they have been and did not change since.
    async fn listed(&self, link: &Link<'_>) -> Result<Vec<Arc<CheckedTool>>, Failure> {
        let Link::Server(connection) = link else { return Ok(self.known_anyhow().unwrap_or_default()) };
        let changed = connection.take_list_changed();
        {
            let known = self.known();
            let current = known.listed_by.as_ref().is_some_and(|by| Arc::ptr_eq(by, connection));
            if let Some(tools) = known.tools.as_ref().filter(|_| current && !changed) {
                return Ok(tools.clone());
            }
        }
        let tools: Vec<Arc<Tool>> = connection.list().await?.into_iter().map(Arc::new).collect();
        let tools = arguments::checked(tools);
        let before = self.known_anyhow().unwrap_or_default();
        let before: HashMap<&str, &CheckedTool> =
            before.iter().map(|checked| (checked.tool.name.as_str(), &**checked)).collect();
        for tool in &tools {
            before.get(tool.tool.name.as_str()).into_iter().for_each(|before| tool.resume(before));
        }
        self.remember(&tools, true);
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

    /// Ends a connection that has been idle for so long; false when it is in use again.
    async fn stop(&self, connection: &Arc<Connection>, idle: Duration) -> bool {
        let mut connecting = self.connection.lock().await;
        if connection.idle().is_none_or(|now| now < idle) {
            return false;
        }
        if connecting.current.take_if(|current| Arc::ptr_eq(current, connection)).is_some() {
            connecting.restarts = Restarts::default();
            self.known().listed_by = None;
            tracing::info!(server = self.name(), "downstream server stopped: nobody calls it");
        }
        drop(connecting);
        connection.close().await;
        true
    }

    /// Ends the connection, if there is one.
    pub(super) async fn close(&self) {
        let current = self.connection.lock().await.current.take();
        let (tools, unkept) = {
            let mut known = self.known();
            known.listed_by = None;
            (known.tools.clone(), known.unkept)
        };
        if let Some(tools) = tools.filter(|_| unkept) {
            self.remember(&tools, true);
        }
        if let Some(connection) = current {
            connection.close().await;
        }
    }
}

/// A call, over all attempts at it.
struct Call<'a> {
    /// As the program makes it.
    given: &'a ToolCall,
    timeout: Duration,
    consent: &'a Consent,
    counts: &'a Counts,
    /// When the program made it.
    asked: Instant,
    /// When it was first sent.
    begun: Option<Instant>,
    /// The rule that has decided on it.
    rule: Option<String>,
    /// What was changed in its arguments.
    note: Option<String>,
}

/// Stops a server when nobody has called it for so long.
async fn stop_when_idle(server: Weak<Downstream>, connection: Weak<Connection>, idle: Duration) {
    let mut rest = idle;
    loop {
        tokio::time::sleep(rest).await;
        let (Some(server), Some(connection)) = (server.upgrade(), connection.upgrade()) else { return };
        if !connection.lives() || server.stop(&connection, idle).await {
            return;
        }
        rest = idle - connection.idle().unwrap_or_default().min(idle);
    }
}
