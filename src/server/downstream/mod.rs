//! Downstream servers: started on first use, shared by all evaluations, closed together.
//!
//! [`Downstreams`] is the set of servers and builds the catalogue of their tools. [`server`] is one server with its
//! state over time; [`tool_transport`] is the transport of its calls: a connection, or [`local`] where no server process exists.
//! [`start`] opens a [`connection`] with its [`lifetime`], on which [`client`] is our MCP client, over [`process`] (its words are [`overheard`]), [`http`] with [`streamable`], or [`sse`],
//! with a [`login`] where the server requires one, and [`problems`] explains failures; [`starts`] bounds concurrent starts
//! and [`restarts`] rate-limits new ones. Tools come as a [`list`], whose pages [`listing`] reads. [`freshness`] decides when a list of tools is asked for once more, also after [`refusals`] of calls.
//! [`arguments`] validates outgoing arguments and [`coercion`] repairs them in a [`validation`] whose work [`expansion`] bounds;
//! [`nullable`] reads schemas in the way of OpenAPI. [`result`] unwraps results and [`learned_shape`] learns their shape. [`index`]
//! serves searches. [`list_cache`] caches tool lists on disk and [`shapes`] what was learned, both in the [`cache`]. [`unfit`]
//! reports rules that match no tool.

mod arguments;
mod asked;
mod blobs;
mod cache;
mod client;
mod coercion;
mod connection;
mod expansion;
mod field_names;
mod freshness;
mod http;
mod index;
mod kept_connections;
mod learned_shape;
mod lifetime;
mod list;
mod list_cache;
mod listing;
mod local;
mod login;
mod nullable;
mod overheard;
mod patterns;
mod problems;
mod process;
mod refusals;
mod restarts;
mod result;
mod schemas;
mod server;
mod shapes;
mod sse;
mod start;
mod starts;
mod streamable;
mod told;
mod tool_transport;
mod uncertain;
mod unfit;
mod validation;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use crate::lang::internal::closest;
use crate::lang::{Catalogue, Found, Server, Tool, ToolError, ToolErrorKind, ToolReply};
use crate::server::audit::{AuditLog, Redaction};
use crate::server::config::{Commands, Configuration, Endpoint, Origin};
use crate::server::identity::LOCAL;
use crate::server::pins::{PinReport, Pins, Review};
use crate::server::policy::{Counts, Decision, Names, Policy, ToolName};
use crate::server::secrets::Secrets;
use crate::server::system::folders;
use crate::server::system::offload::{self, Offload};
use crate::server::system::platform::Lifeline;
use crate::server::telemetry::metrics::Metrics;

use blobs::Blobs;
use cache::Cache;
use index::KeptIndex;
use schemas::Schemas;

pub(in crate::server) use arguments::{Checked, CheckedTool};
pub(in crate::server) use connection::Failure;
pub(in crate::server) use server::Downstream;
use starts::Starts;
pub(in crate::server) use tool_transport::ToolTransport;
use unfit::Unfit;

/// Maximum number of bytes of one tool that are indexed for searches.
const INDEXED: usize = 12_000;

/// Options of the connections, apart from the per-server configuration.
#[derive(Clone, Debug)]
pub struct DownstreamOptions {
    /// Maximum size of a message from a server, in bytes.
    pub largest_message: usize,
    /// The folder in which tool lists and learned result shapes are stored, in files that only their owner can read;
    /// `None` disables that.
    pub cache: Option<PathBuf>,
    /// The place where it is kept how the servers declared their tools. [`serve_stdio`](crate::server::serve_stdio) and
    /// [`serve_http`](crate::server::serve_http) with a store use that.
    pub pins: Pins,
    /// The folder in which logins at servers are stored; `None` disables storing them.
    pub logins: Option<PathBuf>,
    /// The policy for tools that applies in addition to the configuration, which may change.
    pub policy: Policy,
    /// Secrets that are redacted from all output: initially those in the environment of this process; those of the
    /// configuration are added.
    pub secrets: Secrets,
    /// The audit log in which calls are recorded.
    pub audit: Option<Arc<AuditLog>>,
    /// A connection that has been idle for longer is pinged before it is used.
    pub ping_after: Duration,
    /// Time within which a listing of all servers answers with what is known. Servers that are still starting then go
    /// on; a process that ends after the listing should wait for them.
    pub listing: Duration,
    /// True if servers whose tools are not known are started as soon as the client of a pair of streams has connected.
    pub prefetch: bool,
}

impl Default for DownstreamOptions {
    fn default() -> Self {
        DownstreamOptions {
            largest_message: crate::server::transport::lines::LARGEST_LINE,
            cache: folders::cache(),
            pins: folders::pins().map_or_else(Pins::none, Pins::in_folder),
            logins: folders::usual_folder().map(|folder| folder.join("logins")),
            policy: Policy::default(),
            secrets: Secrets::of_environment(),
            audit: None,
            ping_after: Duration::from_secs(30),
            listing: Duration::from_secs(10),
            prefetch: true,
        }
    }
}

/// State shared by all servers of a process.
struct Shared {
    options: DownstreamOptions,
    cache: Arc<Cache>,
    lifeline: Arc<Lifeline>,
    commands: Arc<Commands>,
    blobs: Arc<Blobs>,
    metrics: Metrics,
    unfit: Unfit,
    offload: Offload,
    schemas: Arc<Schemas>,
    /// Counts of calls, for limits.
    counts: Counts,
    starts: Starts,
}

/// All configured servers. Its methods require that the Tokio runtime in which they are called outlives the
/// connections.
pub struct Downstreams {
    servers: RwLock<Vec<Arc<Downstream>>>,
    shared: Arc<Shared>,
    /// The source of the configuration, if it is checked for changes.
    origin: Mutex<Option<Origin>>,
    /// The configured policy for the tools of all servers.
    policy: Mutex<Policy>,
    /// The policies of all servers, if they have guards.
    guarding: RwLock<Option<Arc<Policy>>>,
    index: Arc<Mutex<KeptIndex>>,
    /// True once the rules of the audit log that match no argument have been reported.
    redaction_is_reported: AtomicBool,
}

impl Downstreams {
    /// Creates the servers of a configuration; none is started yet.
    pub fn new(mut configuration: Configuration, options: DownstreamOptions) -> Downstreams {
        let origin = Mutex::new(configuration.origin.take());
        let downstreams = Downstreams {
            servers: RwLock::default(),
            shared: Arc::new(Shared {
                cache: Arc::new(Cache::new(options.cache.clone())),
                options,
                lifeline: Lifeline::new(),
                commands: Arc::new(Commands::of_environment()),
                blobs: Arc::default(),
                metrics: Metrics::default(),
                unfit: Unfit::default(),
                offload: Offload::default(),
                schemas: Arc::default(),
                counts: Counts::default(),
                starts: Starts::default(),
            }),
            origin,
            policy: Mutex::default(),
            guarding: RwLock::default(),
            index: Arc::default(),
            redaction_is_reported: AtomicBool::new(false),
        };
        downstreams.take_up(configuration);
        downstreams
    }

    /// Checks whether the configuration files have changed and applies them if so. Servers whose configuration is
    /// unchanged stay connected. A file that cannot be used leaves its previous content in force. Must be called
    /// within the Tokio runtime.
    pub fn refresh(&self) {
        let mut origin = self.origin.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(origin) = &mut *origin else { return };
        match origin.reread() {
            Ok(None) => {}
            Ok(Some(configuration)) => {
                configuration.warnings.iter().for_each(|warning| tracing::warn!("{}", self.secrets().redact(warning)));
                tracing::info!(servers = configuration.servers.len(), "the configuration has changed");
                for gone in self.take_up(configuration) {
                    tokio::spawn(async move { gone.close_when_idle().await });
                }
            }
            Err(problem) => {
                let problem = self.secrets().redact_own(problem.to_string());
                tracing::warn!(problem, "the configuration has changed and cannot be used");
            }
        }
    }

    /// Replaces the servers by those of a configuration; returns the servers that it no longer contains.
    fn take_up(&self, mut configuration: Configuration) -> Vec<Arc<Downstream>> {
        let mut servers = self.servers.write().unwrap_or_else(PoisonError::into_inner);
        self.shared.options.secrets.add(configuration.servers.iter().flat_map(|server| server.secrets.texts()));
        let mut before = std::mem::take(&mut *servers);
        // Rules from files that are unusable now stay in force, as do rules that came from no file.
        let mut policy = self.policy.lock().unwrap_or_else(PoisonError::into_inner);
        configuration.policy.merge(std::mem::take(&mut *policy).of_files(&configuration.unusable));
        *policy = configuration.policy;
        for config in before.iter().map(|server| server.config()) {
            let is_known = configuration.servers.iter().any(|server| server.name == config.name);
            let is_ours = matches!(config.endpoint, Ok(Endpoint::Functions(_)));
            if !is_known && (is_ours || configuration.unusable.contains(&config.file)) {
                configuration.servers.push(config.clone());
            }
        }
        let names = configuration.servers.iter().map(|server| server.name.as_str());
        let names = Arc::new(Names::of(names));
        let mut all = policy.clone();
        all.merge(self.shared.options.policy.clone());
        for mut config in configuration.servers {
            config.idle = config.idle.or(configuration.idle);
            config.pinning = config.pinning.or(configuration.pinning);
            config.inherit.extend(&configuration.inherit);
            let mut rules = policy.clone();
            rules.merge(self.shared.options.policy.clone());
            rules.merge(config.policy.clone());
            all.merge(config.policy.clone());
            let server = match before.iter().position(|server| *server.config() == config) {
                Some(at) => before.swap_remove(at),
                None => Arc::new(Downstream::new(config, Arc::clone(&self.shared))),
            };
            server.set_policy(rules, &names);
            servers.push(server);
        }
        *self.guarding.write().unwrap_or_else(PoisonError::into_inner) = all.has_guards().then(|| Arc::new(all));
        self.shared.unfit.look_again();
        before
    }

    /// Returns the arguments that guards name and that these tools of a server do not have, a clause each.
    pub(in crate::server) fn unguarded(&self, server: &str, tools: &[Arc<Tool>]) -> Vec<String> {
        let Some(policy) = self.guarding() else { return Vec::new() };
        let of_tool =
            |tool: &Arc<Tool>| policy.unfit_arguments(&ToolName::alone(server, &tool.name), &tool.input_schema);
        tools.iter().flat_map(of_tool).collect()
    }

    /// Returns the guards, a sentence each.
    pub fn guard_lines(&self) -> Vec<String> {
        self.guarding().map_or_else(Vec::new, |policy| policy.guard_lines())
    }

    /// Returns the policies of all servers together, if they have guards.
    pub(in crate::server) fn guarding(&self) -> Option<Arc<Policy>> {
        self.guarding.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The metrics of these servers and of their callers.
    pub(in crate::server) fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// Counts a call that has ended. A name without a server is counted as `unknown`, since programs choose it freely.
    pub(in crate::server) fn counted(&self, server: &str, took: Duration, reply: &ToolReply) {
        let server = if self.find(server).is_ok() { server } else { "unknown" };
        self.shared.metrics.tool_call(server, took, reply);
    }

    /// Returns each server's name and whether it is connected now.
    pub(in crate::server) async fn connected(&self) -> Vec<(String, bool)> {
        let servers = self.all();
        let state = async |server: &Arc<Downstream>| (server.name().to_owned(), server.is_connected().await);
        futures::future::join_all(servers.iter().map(state)).await
    }

    fn all(&self) -> Vec<Arc<Downstream>> {
        self.servers.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The names of the servers, in the order of the configuration.
    pub fn names(&self) -> Vec<String> {
        self.all().iter().map(|server| server.name().to_owned()).collect()
    }

    /// Returns the servers with a one-line description each, from the configuration or from the cached tool list.
    pub fn servers(&self) -> Vec<Server> {
        let server =
            |server: &Arc<Downstream>| Server { name: server.name().to_owned(), description: server.description() };
        self.all().iter().map(server).collect()
    }

    /// Finds a server by its name.
    ///
    /// # Errors
    /// Returns an error with the closest name if there is no such server.
    pub(in crate::server) fn find(&self, name: &str) -> Result<Arc<Downstream>, ToolError> {
        self.all().into_iter().find(|server| server.name() == name).ok_or_else(|| ToolError {
            kind: ToolErrorKind::Unavailable,
            message: format!("there is no server `{name}`"),
            suggestion: closest(name, self.names().iter().map(String::as_str))
                .map(|name| format!("Did you mean {name}?")),
        })
    }

    /// Returns the tools of one server that may be called; starts the server if necessary.
    ///
    /// # Errors
    /// Returns an error if no such server exists or it cannot be started.
    pub async fn tools(&self, name: &str) -> Result<Vec<Arc<Tool>>, ToolError> {
        self.tools_for(LOCAL, name).await
    }

    /// Like [`Downstreams::tools`], with the result shapes that a principal has seen.
    pub(in crate::server) async fn tools_for(&self, principal: &str, name: &str) -> Result<Vec<Arc<Tool>>, ToolError> {
        let tools = self.find(name)?.tools(principal).await;
        self.log_unfit_rules();
        tools
    }

    /// Asks a server for its tools once more, before a program is told that a tool or an argument does not exist; `None`
    /// if its list cannot be out of date, or was renewed a short time ago.
    pub(in crate::server) async fn tools_anew(&self, principal: &str, name: &str) -> Option<Vec<Arc<Tool>>> {
        self.find(name).ok()?.tools_anew(principal).await
    }

    /// Returns what a server says about its use, in its own words, if it was started and says anything.
    pub(in crate::server) fn instructions(&self, name: &str) -> Option<String> {
        self.find(name).ok()?.instructions()
    }

    /// Returns the file that is started for a server and where it was found, such as `/usr/bin/npx, on PATH`; `None` if
    /// there is no such command, or its configuration names the file.
    pub async fn command_of(&self, name: &str) -> Option<String> {
        let server = self.find(name).ok()?;
        let Ok(Endpoint::Process { command, environment, .. }) = &server.config().endpoint else { return None };
        self.shared.commands.find(command, environment, true).await.line()
    }

    /// Returns why local tools of a namespace cannot work on this machine, a clause each.
    pub async fn unusable(&self, name: &str) -> Vec<String> {
        let Ok(server) = self.find(name) else { return Vec::new() };
        let Ok(Endpoint::Local(tools)) = &server.config().endpoint else { return Vec::new() };
        let mut problems = Vec::new();
        for tool in tools {
            let problem = tool.problem(&self.shared.commands).await;
            problems.extend(problem.map(|problem| format!("`{}`: {problem}", tool.tool.name)));
        }
        problems
    }

    /// Returns the known tools of one server that may not be called, each with the rule that denies it.
    pub fn denied(&self, name: &str) -> Vec<(String, String)> {
        self.find(name).map(|server| server.denied()).unwrap_or_default()
    }

    /// Returns why tools that a server has listed are left out: a clause each, such as "the tools send are left out:
    /// several have this name, with different annotations".
    pub fn left_out(&self, name: &str) -> Vec<String> {
        self.find(name).map(|server| server.left_out()).unwrap_or_default()
    }

    /// Returns how the tools that a server has listed last compare with their pins.
    pub fn pin_report(&self, name: &str) -> PinReport {
        self.find(name).map(|server| server.pin_report()).unwrap_or_default()
    }

    /// Returns the changed and new tools of a server that no person has reviewed. Blocks.
    ///
    /// # Errors
    /// Returns an error if no such server exists or its pins cannot be read.
    pub fn reviews(&self, name: &str) -> Result<Vec<Review>, String> {
        self.find(name).map_err(|error| error.message)?.reviews()
    }

    /// Accepts changed and new tools of a server as they were reviewed: they are pinned as they are now, and calls of
    /// them go on in all processes. Returns the names of those that have changed again, which are not accepted. Blocks.
    ///
    /// # Errors
    /// Returns an error if no such server exists or its pins cannot be written.
    pub fn accept(&self, name: &str, reviewed: &[Review]) -> Result<Vec<String>, String> {
        self.find(name).map_err(|error| error.message)?.accept(reviewed)
    }

    /// Returns which arguments of a server's tools are not validated because their schemas cannot be used.
    pub(in crate::server) async fn unchecked(&self, name: &str) -> Vec<String> {
        match self.find(name) {
            Ok(server) => server.unchecked().await,
            Err(_) => Vec::new(),
        }
    }

    /// The secrets that are redacted from all output.
    pub fn secrets(&self) -> &Secrets {
        &self.shared.options.secrets
    }

    /// The audit log, if calls are recorded.
    pub(in crate::server) fn audit(&self) -> Option<&Arc<AuditLog>> {
        self.shared.options.audit.as_ref()
    }

    /// Returns the policy's decision on a tool; `None` if its server does not exist.
    pub fn decide(&self, tool: &Tool) -> Option<Decision> {
        self.find(&tool.server).ok().map(|server| server.decide(tool))
    }

    /// Returns the verb in the name of a tool that nobody is asked about: its server does not say what it does, but by its
    /// name it does more than read.
    pub fn unasked(&self, tool: &Tool) -> Option<&'static str> {
        self.find(&tool.server).ok().and_then(|server| server.unasked(tool))
    }

    /// Returns the tools of all servers that may be called. Servers whose tools are unknown are started and listed
    /// concurrently. One that is still starting after [`DownstreamOptions::listing`] is reported as such and goes on.
    pub async fn catalogue(&self) -> Catalogue {
        self.catalogue_for(LOCAL).await
    }

    /// Like [`Downstreams::catalogue`], with the result shapes that a principal has seen.
    pub(in crate::server) async fn catalogue_for(&self, principal: &str) -> Catalogue {
        let servers = self.all();
        let lists = futures::future::join_all(servers.iter().map(|server| async move {
            server.recall(principal).await;
            match server.known_tools(principal) {
                Some(tools) if !server.is_list_due() => Ok(tools),
                known => {
                    let listed = server.list_within(principal, self.shared.options.listing).await;
                    listed.or_else(|reason| known.ok_or(reason))
                }
            }
        }))
        .await;
        self.log_unfit_rules();
        let mut catalogue = Catalogue::default();
        for (server, list) in servers.iter().zip(lists) {
            match list {
                Ok(tools) => catalogue.tools.extend(tools),
                Err(reason) => catalogue.missing.push((server.name().to_owned(), reason)),
            }
        }
        catalogue
    }

    /// Starts the servers whose tools are not known, in the background and with the turns of all starts, unless
    /// [`DownstreamOptions::prefetch`] is off. Must be called within the Tokio runtime.
    pub(in crate::server) fn prefetch(&self, principal: &str) {
        if !self.shared.options.prefetch {
            return;
        }
        for server in self.all() {
            let principal = principal.to_owned();
            tokio::spawn(async move {
                server.recall(&principal).await;
                // Why a server does not start is logged, and said to whoever calls it.
                if server.known_tools(&principal).is_none() {
                    let _ = server.tools(&principal).await;
                }
            });
        }
    }

    /// Returns the tools that are known without starting a server as they may be quoted in the instructions for a client,
    /// with the result shapes that a principal has seen, and the names of the servers that have others.
    pub(in crate::server) async fn told_to(&self, principal: &str) -> (Catalogue, Vec<String>) {
        let (mut catalogue, mut cut) = (Catalogue::default(), Vec::new());
        for server in self.all() {
            server.recall(principal).await;
            let name = server.name().to_owned();
            let (principal, count) = (principal.to_owned(), server.known_anyhow().map_or(0, |tools| tools.len()));
            let work = move || server.told(&principal);
            let (tools, is_cut) = offload::linear(count.saturating_mul(INDEXED), work).await;
            catalogue.tools.extend(tools);
            cut.extend(is_cut.then_some(name));
        }
        (catalogue, cut)
    }

    /// Returns the allowed tools of all servers that match a query best, at most `most` of them.
    pub async fn search(&self, query: &str, most: usize) -> Found {
        self.search_for(LOCAL, query, most).await
    }

    /// Like [`Downstreams::search`], with the result shapes that a principal has seen.
    pub(in crate::server) async fn search_for(&self, principal: &str, query: &str, most: usize) -> Found {
        let catalogue = self.catalogue_for(principal).await;
        let (index, query) = (Arc::clone(&self.index), query.to_owned());
        let tools = catalogue.tools.len();
        // Up to `INDEXED` bytes of text are indexed for each tool.
        let search = move || {
            let index = index.lock().unwrap_or_else(PoisonError::into_inner).of(&catalogue.tools);
            Found::by(&index, catalogue, &query, most)
        };
        offload::linear(tools.saturating_mul(INDEXED), search).await
    }

    /// Returns the rules of a redaction that match no argument of any known tool, each as a clause; `None` while the
    /// tools of any server are unknown.
    pub fn without_effect(&self, redaction: &Redaction) -> Option<Vec<String>> {
        let lists: Option<Vec<_>> = self.all().iter().map(|server| server.known_anyhow()).collect();
        let lists = lists?;
        let tools: Vec<&Tool> = lists.iter().flatten().map(|checked| &*checked.tool).collect();
        Some(redaction.without_effect(&tools))
    }

    /// Logs once the audit redaction rules that match no argument, as soon as all tools are known.
    pub(in crate::server) fn report_redaction(&self) {
        if let Some(audit) = self.audit()
            && !self.redaction_is_reported.load(Ordering::Relaxed)
            && let Some(rules) = self.without_effect(audit.redaction())
            && !self.redaction_is_reported.swap(true, Ordering::Relaxed)
        {
            for rule in rules {
                tracing::warn!("the redaction rule {rule}");
            }
        }
    }

    /// Lets a person log in to a server that requires it (OAuth): `show` is passed the address to open in a browser.
    ///
    /// # Errors
    /// Returns an error if no such server exists, no login is completed within five minutes, or the server refuses.
    pub async fn log_in(&self, server: &str, show: impl FnOnce(&str)) -> Result<(), String> {
        self.find(server).map_err(|error| error.message)?.log_in(show).await
    }

    /// The non-text content of tool results.
    pub(in crate::server) fn blobs(&self) -> &Arc<Blobs> {
        &self.shared.blobs
    }

    /// Closes all connections concurrently, within about a second.
    pub async fn close(&self) {
        let servers = self.all();
        futures::future::join_all(servers.iter().map(|server| server.close())).await;
    }
}
