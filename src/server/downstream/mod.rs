//! The servers behind us: started when first named, shared by all evaluations, closed together.
//!
//! [`Downstreams`] is the set of them and answers for the catalogue of their tools; [`server`] is one of them with its
//! state over time, [`link`] what its calls go over: a connection, or [`local`], where there is no server. [`start`] makes a
//! [`connection`], on which [`client`] is our face: through [`process`], [`http`] or [`sse`], with a [`login`] where one is
//! asked for; [`restarts`] says when that may be done again. [`arguments`] checks what goes out and [`coercion`] mends it,
//! in a [`trial`] whose work [`expansion`] bounds, [`result`] unwraps what comes in and [`seen`] learns its shape, [`index`]
//! serves searches, [`shelf`] remembers lists of tools on disk, and [`unfit`] reports rules that fit no tool.

mod arguments;
mod client;
mod coercion;
mod connection;
mod expansion;
mod http;
mod index;
mod link;
mod listing;
mod local;
mod login;
mod patterns;
mod process;
mod restarts;
mod result;
mod schemas;
mod seen;
mod server;
mod shelf;
mod sse;
mod start;
mod trial;
mod unfit;
mod words;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use crate::lang::error::suggest::closest;
use crate::lang::{CallId, Catalogue, Found, Server, Tool, ToolCall, ToolError, ToolErrorKind, ToolReply};

use super::audit::{Announcer, AuditLog, AuditedCall, Outcome, Redaction};
use super::blobs::Blobs;
use super::config::{Configuration, Endpoint, Origin};
use super::folders;
use super::http::LOCAL;
use super::identity::Identity;
use super::metrics::Metrics;
use super::offload::{self, Offload};
use super::platform::Lifeline;
use super::policy::{Consent, Counts, Decision, Names, Policy, nobody};
use super::secrets::Secrets;
use index::KeptIndex;
pub use local::{Answering, Function, Functions, blocking};
use schemas::Schemas;
use server::Downstream;
use unfit::Unfit;

/// How long the servers that the catalogue lacks may take to list their tools.
const LISTING: Duration = Duration::from_secs(10);

/// How much of a tool is indexed for searches, at the most, in bytes.
const INDEXED: usize = 12_000;

/// How the connections behave, apart from what the configuration says of each.
#[derive(Clone, Debug)]
pub struct DownstreamOptions {
    /// The largest message that is taken in from a server, in bytes.
    pub largest_message: usize,
    /// The folder in which lists of tools are remembered; `None` for not at all.
    pub cache: Option<PathBuf>,
    /// The folder in which logins at servers are kept; `None` for nowhere.
    pub logins: Option<PathBuf>,
    /// What may be done with tools, beside what the configuration says, which may change.
    pub policy: Policy,
    /// Secrets that are taken out of all that leaves, at first those in the environment of this process; those of the
    /// configuration are added.
    pub secrets: Secrets,
    /// Where calls are recorded.
    pub audit: Option<Arc<AuditLog>>,
    /// A connection that was idle for longer is asked whether it still works before it is used.
    pub ping_after: Duration,
}

impl Default for DownstreamOptions {
    fn default() -> Self {
        DownstreamOptions {
            largest_message: super::lines::LARGEST_LINE,
            cache: folders::cache(),
            logins: folders::usual_folder().map(|folder| folder.join("logins")),
            policy: Policy::default(),
            secrets: Secrets::of_environment(),
            audit: None,
            ping_after: Duration::from_secs(30),
        }
    }
}

/// What came of a call.
pub(super) struct Answered {
    pub(super) reply: ToolReply,
    /// The rule that decided on it, where one did.
    pub(super) rule: Option<String>,
    /// What was changed in the arguments.
    pub(super) note: Option<String>,
}

/// What all servers of a process have together.
struct Shared {
    options: DownstreamOptions,
    lifeline: Arc<Lifeline>,
    blobs: Arc<Blobs>,
    metrics: Metrics,
    unfit: Unfit,
    offload: Offload,
    schemas: Arc<Schemas>,
}

/// All configured servers. Its methods need the runtime in which they are called to stay alive for as
/// long as the connections do.
pub struct Downstreams {
    servers: RwLock<Vec<Arc<Downstream>>>,
    shared: Arc<Shared>,
    /// Where the configuration was read, if it is looked at again.
    origin: Mutex<Option<Origin>>,
    /// What may be done with the tools of all servers, as the configuration says.
    policy: Mutex<Policy>,
    /// The calls that quotas count.
    counts: Counts,
    index: Arc<Mutex<KeptIndex>>,
    /// True once it is known which rules of the audit log fit no argument.
    redaction_is_reported: AtomicBool,
}

impl Downstreams {
    /// The servers of a configuration; none is started yet.
    pub fn new(mut configuration: Configuration, options: DownstreamOptions) -> Downstreams {
        let origin = Mutex::new(configuration.origin.take());
        let downstreams = Downstreams {
            servers: RwLock::default(),
            shared: Arc::new(Shared {
                options,
                lifeline: Lifeline::new(),
                blobs: Arc::default(),
                metrics: Metrics::default(),
                unfit: Unfit::default(),
                offload: Offload::default(),
                schemas: Arc::default(),
            }),
            origin,
            policy: Mutex::default(),
            counts: Counts::default(),
            index: Arc::default(),
            redaction_is_reported: AtomicBool::new(false),
        };
        downstreams.take_up(configuration);
        downstreams
    }

    /// Looks whether the files of the configuration have changed, and takes them up if so: servers that are as they
    /// were stay connected. Files that cannot be used leave what they said before as it is. To be called in the runtime.
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

    /// Makes the servers those of a configuration; gives those that are not among them any more.
    fn take_up(&self, mut configuration: Configuration) -> Vec<Arc<Downstream>> {
        let mut servers = self.servers.write().unwrap_or_else(PoisonError::into_inner);
        self.shared.options.secrets.add(configuration.servers.iter().flat_map(|server| server.secrets.texts()));
        let mut before = std::mem::take(&mut *servers);
        // What a file said that cannot be used now holds on, and what no file said.
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
        for mut config in configuration.servers {
            config.idle = config.idle.or(configuration.idle);
            config.inherit.extend(&configuration.inherit);
            let mut rules = policy.clone();
            rules.merge(self.shared.options.policy.clone());
            rules.merge(config.policy.clone());
            let server = match before.iter().position(|server| *server.config() == config) {
                Some(at) => before.swap_remove(at),
                None => Arc::new(Downstream::new(config, Arc::clone(&self.shared))),
            };
            server.set_policy(rules, &names);
            servers.push(server);
        }
        self.shared.unfit.look_again();
        before
    }

    /// What is counted of these servers, and of who calls them.
    pub(super) fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// Counts a call that has ended. The name of a server that is not there is a program's own.
    pub(super) fn counted(&self, server: &str, took: Duration, reply: &ToolReply) {
        let server = if self.find(server).is_ok() { server } else { "unknown" };
        self.shared.metrics.tool_call(server, took, reply);
    }

    /// The servers, each with whether it is connected now.
    pub(super) async fn connected(&self) -> Vec<(String, bool)> {
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

    /// The servers with a line on each, from the configuration or from what is remembered of them.
    pub fn servers(&self) -> Vec<Server> {
        let server =
            |server: &Arc<Downstream>| Server { name: server.name().to_owned(), description: server.description() };
        self.all().iter().map(server).collect()
    }

    fn find(&self, name: &str) -> Result<Arc<Downstream>, ToolError> {
        self.all().into_iter().find(|server| server.name() == name).ok_or_else(|| ToolError {
            kind: ToolErrorKind::Unavailable,
            message: format!("there is no server `{name}`"),
            suggestion: closest(name, self.names().iter().map(String::as_str))
                .map(|name| format!("Did you mean {name}?")),
        })
    }

    /// The tools of one server that may be called; the server is started for it.
    ///
    /// # Errors
    /// When there is no such server or it cannot be started.
    pub async fn tools(&self, name: &str) -> Result<Vec<Arc<Tool>>, ToolError> {
        self.tools_for(LOCAL, name).await
    }

    /// [`Downstreams::tools`], with the shapes that a principal has seen of their results.
    pub(super) async fn tools_for(&self, principal: &str, name: &str) -> Result<Vec<Arc<Tool>>, ToolError> {
        let tools = self.find(name)?.tools(principal).await;
        self.log_unfit_rules();
        tools
    }

    /// The tools of one server that are known and may not be called, each with the rule that says so.
    pub fn denied(&self, name: &str) -> Vec<(String, String)> {
        self.find(name).map(|server| server.denied()).unwrap_or_default()
    }

    /// Why tools of a server are not among those that it has, though it has listed them: a clause each, such as "the tools
    /// send are left out: several have this name, with different annotations".
    pub fn left_out(&self, name: &str) -> Vec<String> {
        self.find(name).map(|server| server.left_out()).unwrap_or_default()
    }

    /// What of the arguments of a server's tools is not checked, as their schemas cannot be used.
    pub(super) async fn unchecked(&self, name: &str) -> Vec<String> {
        match self.find(name) {
            Ok(server) => server.unchecked().await,
            Err(_) => Vec::new(),
        }
    }

    /// What is taken out of all that leaves.
    pub fn secrets(&self) -> &Secrets {
        &self.shared.options.secrets
    }

    /// Where calls are recorded, if anywhere.
    pub(super) fn audit(&self) -> Option<&Arc<AuditLog>> {
        self.shared.options.audit.as_ref()
    }

    /// What is done when a program calls that tool; nothing where its server is not there.
    pub fn decide(&self, tool: &Tool) -> Option<Decision> {
        self.find(&tool.server).ok().map(|server| server.decide(tool))
    }

    /// The tools of all servers that may be called. Servers of which nothing is known yet are started and listed side
    /// by side; one that fails is not tried again here for a minute.
    pub async fn catalogue(&self) -> Catalogue {
        self.catalogue_for(LOCAL).await
    }

    /// [`Downstreams::catalogue`], with the shapes that a principal has seen of results.
    pub(super) async fn catalogue_for(&self, principal: &str) -> Catalogue {
        let servers = self.all();
        let lists = futures::future::join_all(servers.iter().map(|server| async move {
            server.recall().await;
            match server.known_tools(principal) {
                Some(tools) => Ok(tools),
                None => server.list_within(principal, LISTING).await,
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

    /// The tools of all servers that may be called and fit a query best, at most so many.
    pub async fn search(&self, query: &str, most: usize) -> Found {
        self.search_for(LOCAL, query, most).await
    }

    /// [`Downstreams::search`], with the shapes that a principal has seen of results.
    pub(super) async fn search_for(&self, principal: &str, query: &str, most: usize) -> Found {
        let catalogue = self.catalogue_for(principal).await;
        let (index, query) = (Arc::clone(&self.index), query.to_owned());
        let tools = catalogue.tools.len();
        // Up to some kilobytes of text are indexed for each tool.
        let search = move || {
            let index = index.lock().unwrap_or_else(PoisonError::into_inner).of(&catalogue.tools);
            Found::by(&index, catalogue, &query, most)
        };
        offload::linear(tools.saturating_mul(INDEXED), search).await
    }

    /// The rules of a redaction that fit no argument of any known tool, each as a clause; nothing while the tools of a server are not known.
    pub fn without_effect(&self, redaction: &Redaction) -> Option<Vec<String>> {
        let lists: Option<Vec<_>> = self.all().iter().map(|server| server.known_anyhow()).collect();
        let lists = lists?;
        let tools: Vec<&Tool> = lists.iter().flatten().map(|checked| &*checked.tool).collect();
        Some(redaction.without_effect(&tools))
    }

    /// Logs the rules for the audit log that fit no argument, once all tools are known.
    pub(super) fn report_redaction(&self) {
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

    /// Calls a tool with the text of a JSON object. `timeout` holds where the configuration of the server has none;
    /// starting the server does not count into it. Dropping the future cancels the call downstream. Nobody is asked: what
    /// the policy asks about is refused.
    pub async fn call(&self, server: &str, tool: &str, arguments: &str, timeout: Duration) -> ToolReply {
        let (server, tool, arguments) = (server.into(), tool.into(), arguments.to_owned());
        let call = ToolCall { id: CallId::default(), server, tool, arguments, remaining: timeout, timeout };
        let consent = Consent::new(Arc::default(), Arc::new(nobody()));
        let Some(audit) = self.audit() else { return self.call_as_decided(&call, &consent, None).await.reply };
        let begun = Instant::now();
        let audited = Arc::new(Mutex::new(AuditedCall::new(audit, self.secrets(), &Identity::default(), &call)));
        let announced = Arc::clone(&audited);
        let announcer = Announcer::new(move |announcement| {
            announcement.write(&mut announced.lock().unwrap_or_else(PoisonError::into_inner));
        });
        let Answered { reply, rule, .. } = self.call_as_decided(&call, &consent, Some(&announcer)).await;
        let reply = self.secrets().redact_reply(reply);
        let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let audited = audited.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // An outcome that cannot be written keeps the next call from being made.
        let _ = audited.end(Outcome { reply: &reply, rule, ms });
        reply
    }

    /// The same for an evaluation, with that consent; asking a person does not count into the time-out either. The
    /// announcer has the intent written before anything is sent; a call of which it cannot be written is denied.
    pub(super) async fn call_as_decided(
        &self,
        call: &ToolCall,
        consent: &Consent,
        announcer: Option<&Announcer>,
    ) -> Answered {
        match self.find(&call.server) {
            Ok(server) => {
                let answered = server.call(call, consent, &self.counts, announcer).await;
                self.log_unfit_rules();
                answered
            }
            Err(error) => Answered { reply: ToolReply::Error(error), rule: None, note: None },
        }
    }

    /// Has a person log in to a server that asks for it (OAuth): `show` is given the address to open in a browser.
    ///
    /// # Errors
    /// When there is no such server, or nobody logs in within five minutes, or the server refuses.
    pub async fn log_in(&self, server: &str, show: impl FnOnce(&str)) -> Result<(), String> {
        self.find(server).map_err(|error| error.message)?.log_in(show).await
    }

    /// What tools answered that is no text.
    pub(super) fn blobs(&self) -> &Arc<Blobs> {
        &self.shared.blobs
    }

    /// Closes all connections, side by side, within about a second.
    pub async fn close(&self) {
        let servers = self.all();
        futures::future::join_all(servers.iter().map(|server| server.close())).await;
    }
}
