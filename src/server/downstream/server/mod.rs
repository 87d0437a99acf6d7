//! One downstream server: its tools, its rules and the calls to it.

mod calls;
mod lifetime;
mod listed;
mod pinned;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tokio::sync::Mutex as AsyncMutex;

use crate::lang::Tool;
use crate::lang::internal::foreign_text;
use crate::server::config::ServerConfig;
use crate::server::identity::LOCAL;
use crate::server::pins::{PinReport, ServerPins, Vetted};
use crate::server::policy::{Decision, Known as KnownNames, Names, Policy, Timeouts, ToolName};
use crate::server::system::offload;

use super::Shared;
use super::arguments::{self, CheckedTool};
use super::connection::Connection;
use super::freshness::Freshness;
use super::list_cache::{KnownList, ListCache};
use super::local::Local;
use super::shapes::Shapes;
use super::start::Start;
use lifetime::Connecting;

/// Timeout for compiling the schemas of all tools of a server, for a report about them.
const SCHEMAS: Duration = Duration::from_secs(30);

/// One configured server and the state of its connection and tools.
pub(in crate::server) struct Downstream {
    start: Start,
    /// The rules for its tools.
    rules: RwLock<Arc<Rules>>,
    timeouts: Timeouts,
    list_cache: ListCache,
    /// The pins of its tools; `None` if they come from no server.
    pins: Option<ServerPins>,
    shapes: Shapes,
    connection: AsyncMutex<Connecting>,
    /// Locked while the server lists its tools, so that it is asked once at a time.
    listing: AsyncMutex<()>,
    /// The in-process endpoint of its calls, if there is nothing to start.
    local: Option<Arc<Local>>,
    known: Mutex<Known>,
    shared: Arc<Shared>,
}

/// The rules for the tools of a server, and the server names that its name is matched against.
#[derive(Default)]
struct Rules {
    policy: Policy,
    servers: Arc<Names>,
}

/// The known tools of a server.
#[derive(Default)]
struct Known {
    tools: Option<Vec<Arc<CheckedTool>>>,
    /// The version of the server that has listed them.
    version: String,
    /// The names of these tools.
    names: Option<Arc<Names>>,
    /// Why other tools that the server has listed are left out.
    left_out: Vec<String>,
    /// What the server says about its use, as it may be shown.
    instructions: Option<String>,
    /// The outcome of the comparison of these tools with their pins.
    pins: PinReport,
    /// True if the server itself has listed the tools; false if they were read from disk.
    is_own_list: bool,
    /// The connection over which they were listed; `None` for those from disk.
    listed_by: Option<Arc<Connection>>,
    freshness: Freshness,
    cache_was_read: bool,
}

impl Known {
    fn set(&mut self, tools: Vec<Arc<CheckedTool>>, is_own_list: bool) {
        self.names = Some(Arc::new(Names::of(tools.iter().map(|checked| checked.tool.name.as_str()))));
        self.tools = Some(tools);
        self.is_own_list = is_own_list;
    }

    /// Returns whether the server at the other end of a connection is to be asked for its tools.
    fn is_due(&mut self, connection: &Arc<Connection>) -> bool {
        let now = Instant::now();
        if connection.take_list_changed() {
            self.listed_by = None;
        }
        if connection.take_list_doubted() {
            self.freshness.doubt(now);
        }
        !self.is_listed_by(connection) || self.freshness.is_due(now)
    }

    fn is_listed_by(&self, connection: &Arc<Connection>) -> bool {
        self.listed_by.as_ref().is_some_and(|by| Arc::ptr_eq(by, connection))
    }
}

impl Downstream {
    pub(super) fn new(config: ServerConfig, shared: Arc<Shared>) -> Downstream {
        let options = &shared.options;
        let children = (Arc::clone(&shared.lifeline), Arc::clone(&shared.commands));
        let (largest, secrets) = (options.largest_message, &options.secrets);
        let local = Local::of(&config, &children, largest, secrets).map(Arc::new);
        let mut known = Known::default();
        if let Some(local) = &local {
            known.set(arguments::checked(local.tools()), true);
        }
        Downstream {
            local,
            known: Mutex::new(known),
            list_cache: ListCache::new(&shared.cache, &config),
            pins: options.pins.of(&config),
            shapes: Shapes::new(&shared.cache, &config),
            rules: RwLock::default(),
            timeouts: Timeouts::of(&config.tool_timeouts),
            start: Start {
                config,
                lifeline: Arc::clone(&shared.lifeline),
                commands: Arc::clone(&shared.commands),
                largest: options.largest_message,
                logins: options.logins.clone(),
                secrets: options.secrets.clone(),
                is_framed: AtomicBool::new(false),
                reuse: Arc::default(),
            },
            connection: AsyncMutex::default(),
            listing: AsyncMutex::default(),
            shared,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.start.config.name
    }

    /// Its configuration.
    pub(super) fn config(&self) -> &ServerConfig {
        &self.start.config
    }

    /// Lets a person log in; see [`super::Downstreams::log_in`].
    pub(super) async fn log_in(&self, show: impl FnOnce(&str)) -> Result<(), String> {
        self.start.log_in(show).await
    }

    /// Replaces the rules for its tools; `servers` are the names of all servers.
    pub(super) fn set_policy(&self, policy: Policy, servers: &Arc<Names>) {
        let rules = Rules { policy, servers: Arc::clone(servers) };
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
    }

    fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.rules.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The names of its tools as last listed, in this process or in an earlier one.
    fn names(&self) -> Option<Arc<Names>> {
        if self.is_unread() {
            self.known_anyhow();
        }
        self.known().names.clone()
    }

    /// The names of its tools as the server itself has listed them.
    pub(super) fn listed_names(&self) -> Option<Arc<Names>> {
        let known = self.known();
        known.names.clone().filter(|_| known.is_own_list)
    }

    pub(super) fn timeouts(&self) -> &Timeouts {
        &self.timeouts
    }

    /// Returns the policy's decision on one of its tools.
    pub(super) fn decide(&self, tool: &Tool) -> Decision {
        let (rules, names) = (self.rules(), self.names());
        rules.policy.decide_on(&self.named(&tool.name, &rules, names.as_deref()), &tool.hints)
    }

    /// Returns the verb in the name of one of its tools that nobody is asked about, although it seems to do more than
    /// read; see [`Policy::unasked`](crate::server::policy::Policy::unasked).
    pub(super) fn unasked(&self, tool: &Tool) -> Option<&'static str> {
        let (rules, names) = (self.rules(), self.names());
        rules.policy.unasked(&self.named(&tool.name, &rules, names.as_deref()), &tool.hints)
    }

    fn named<'n>(&'n self, tool: &'n str, rules: &'n Rules, names: Option<&'n Names>) -> ToolName<'n> {
        let known = names.map_or(KnownNames::Nothing, KnownNames::Tools);
        ToolName::among(self.name(), tool, &rules.servers, known)
    }

    /// Returns the tools that may be called, with the result shapes that a principal has seen.
    fn allowed(&self, tools: &[Arc<CheckedTool>], principal: &str) -> Vec<Arc<Tool>> {
        let (rules, names) = (self.rules(), self.names());
        let is_denied = |checked: &CheckedTool| self.is_denied(&rules, names.as_deref(), checked);
        tools.iter().filter(|checked| !is_denied(checked)).map(|checked| checked.shown(principal)).collect()
    }

    fn is_denied(&self, rules: &Rules, names: Option<&Names>, checked: &CheckedTool) -> bool {
        rules.policy.denies_it(&self.named(&checked.tool.name, rules, names), &checked.tool.hints)
    }

    /// Returns the known tools that may not be called, each with the rule that denies it.
    pub(super) fn denied(&self) -> Vec<(String, String)> {
        let Some(tools) = self.known_anyhow() else { return Vec::new() };
        let (rules, names) = (self.rules(), self.names());
        let denied = tools.iter().filter(|checked| self.is_denied(&rules, names.as_deref(), checked));
        denied.map(|checked| (checked.tool.name.clone(), self.decide(&checked.tool).rule)).collect()
    }

    /// Returns why tools that the server has listed cannot be called, a clause each.
    pub(super) fn left_out(&self) -> Vec<String> {
        self.known().left_out.clone()
    }

    /// Returns which arguments of its known tools are not validated, a clause each.
    pub(super) async fn unchecked(&self) -> Vec<String> {
        let (tools, schemas) = (self.known_anyhow().unwrap_or_default(), Arc::clone(&self.shared.schemas));
        let look = move || tools.iter().flat_map(|checked| schemas.unchecked(&checked.tool)).collect();
        let deadline = Instant::now() + SCHEMAS;
        match self.shared.offload.run(LOCAL, deadline, look).await {
            Ok(unchecked) => unchecked,
            Err(_) => vec![format!(
                "the schemas of server {} could not be compiled within {} s",
                foreign_text::name(self.name()),
                SCHEMAS.as_secs()
            )],
        }
    }

    /// Returns what the server says about its use, in its own words.
    pub(super) fn instructions(&self) -> Option<String> {
        self.known().instructions.clone()
    }

    /// Returns the configured description, on one line.
    pub(super) fn description(&self) -> String {
        self.shared.options.secrets.redact(&self.start.config.description).into_owned()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the allowed tools as last listed, in this process or in an earlier one.
    pub(super) fn known_tools(&self, principal: &str) -> Option<Vec<Arc<Tool>>> {
        self.known_anyhow().map(|tools| self.allowed(&tools, principal))
    }

    /// Returns all tools as last listed, including denied ones.
    pub(super) fn known_anyhow(&self) -> Option<Vec<Arc<CheckedTool>>> {
        if self.is_unread() {
            // Not under the lock: the file may be large.
            let kept = self.list_cache.read(self.name());
            // The list may have been written before a text in it was known to be a secret.
            let secrets = &self.shared.options.secrets;
            let harmless = |Vetted { tool, mut standing }: Vetted| {
                let tool = secrets.redact_tool(Arc::unwrap_or_clone(tool))?;
                standing.pinned_schema = standing.pinned_schema.map(|schema| secrets.redact_value(schema));
                Some(Vetted { tool: Arc::new(tool), standing })
            };
            let read = kept.map(|KnownList { version, tools }| {
                (version, arguments::vetted(tools.into_iter().filter_map(harmless)))
            });
            let mut known = self.known();
            known.cache_was_read = true;
            if let Some((version, tools)) = read.filter(|_| known.tools.is_none()) {
                known.set(tools, false);
                known.version = version;
            }
        }
        self.known().tools.clone()
    }

    /// True if the list on disk has not been read and the tools are unknown.
    fn is_unread(&self) -> bool {
        let known = self.known();
        known.tools.is_none() && !known.cache_was_read
    }

    /// Reads the list on disk if that has not been done, on a thread for blocking work.
    async fn recall_list(self: &Arc<Self>) {
        if self.is_unread() {
            let this = Arc::clone(self);
            offload::linear(usize::MAX, move || drop(this.known_anyhow())).await;
        }
    }

    /// Reads from disk, unless that has been done, the list of tools and the result shapes that a principal has seen.
    pub(super) async fn recall(self: &Arc<Self>, principal: &str) {
        self.recall_list().await;
        if self.known().tools.is_some() && self.shapes.claim(principal) {
            let (this, principal) = (Arc::clone(self), principal.to_owned());
            let read = move || {
                let KnownList { version, tools } = this.known_list();
                let secrets = &this.shared.options.secrets;
                this.shapes.give(&principal, &version, &tools, |shape| secrets.redact_value(shape));
            };
            offload::linear(usize::MAX, read).await;
        }
    }

    fn known_list(&self) -> KnownList<Arc<CheckedTool>> {
        let known = self.known();
        KnownList { version: known.version.clone(), tools: known.tools.clone().unwrap_or_default() }
    }

    /// Writes new result shapes to disk: at once, or if the last time is long enough ago.
    async fn store_shapes(self: &Arc<Self>, at_once: bool) {
        let principals = self.shapes.due(at_once);
        if principals.is_empty() {
            return;
        }
        let this = Arc::clone(self);
        let write = move || {
            let KnownList { version, tools } = this.known_list();
            principals.iter().for_each(|principal| this.shapes.write(principal, &version, &tools));
        };
        offload::linear(usize::MAX, write).await;
    }
}
