//! The options of a server, and the state that its connections share, whatever their transport.

pub(in crate::server) mod signals;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::lang::{Limits, Sandbox, parse_size};
use crate::server::admission::allowances::Allowances;
use crate::server::admission::shutdown::Shutdown;
use crate::server::admission::{Admission, Gate};
use crate::server::config::Configuration;
use crate::server::downstream::{DownstreamOptions, Downstreams};
use crate::server::evaluations::Evaluations;
use crate::server::pins::Pins;
use crate::server::protocol::card::Cards;
use crate::server::protocol::front::ServerSettings;
use crate::server::protocol::multi_round::Rounds;
use crate::server::protocol::patience::ReplyWithin;
use crate::server::protocol::replies::{Replies, ReplyForm};
use crate::server::protocol::unfinished::UnfinishedPrograms;
use crate::server::quarantine::Quarantine;
use crate::server::recordings::RecordOptions;
use crate::server::runs::Runs;
use crate::server::sessions::persistence::Persistence;
use crate::server::sessions::{SessionBounds, Sessions};
use crate::server::transport::lines::LARGEST_LINE;
use crate::store::Store;

/// The options of a server.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// The downstream servers.
    pub configuration: Configuration,
    /// Options of the replies to a client.
    pub replies: ReplyOptions,
    /// The default limits of a call.
    pub limits: Limits,
    /// The maximum limits of a call, whatever it requests.
    pub most: Limits,
    /// Maximum size of a message from the client, in bytes.
    pub largest_message: usize,
    /// Limits on the number and size of evaluations.
    pub admission: Admission,
    /// Limits on the number and lifetime of sessions.
    pub sessions: SessionBounds,
    /// Grace period of running evaluations during shutdown. After it they are cancelled, which may take two more
    /// seconds.
    pub grace: Duration,
    /// Options of the storage beyond the life of the process.
    pub storage: StorageOptions,
    /// True if clients that show no forms have the tool `lisp_approve`, whose prompt decides on waiting calls.
    pub approve_tool: bool,
    /// Options of the connections to the downstream servers.
    pub downstream: DownstreamOptions,
    /// The address at which metrics are served, at `/metrics`, to anyone who can reach it. Without one, [`serve_http`]
    /// serves them to its own clients.
    ///
    /// [`serve_http`]: crate::server::serve_http
    pub metrics: Option<SocketAddr>,
}

/// Options of the replies to a client.
#[derive(Clone, Debug, Default)]
pub struct ReplyOptions {
    /// The form of a successful reply.
    pub form: ReplyForm,
    /// The time after which the call of a program is answered that is still running.
    pub within: ReplyWithin,
    /// The rules that replies are checked against before a model reads them.
    pub quarantine: Quarantine,
}

/// Options of the storage beyond the life of the process. By default, there is none.
#[derive(Clone, Default)]
pub struct StorageOptions {
    /// The store that keeps sessions, if any.
    pub store: Option<Arc<dyn Store>>,
    /// True if the store is the one that commands at a terminal use without being told. The pins of tools then stay where
    /// [`DownstreamOptions::pins`] says; otherwise they are in the store too.
    pub is_usual: bool,
    /// The options for recording whole runs in the store; `None` records none.
    pub record: Option<RecordOptions>,
}

impl fmt::Debug for StorageOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StorageOptions { store, is_usual, record } = self;
        formatter
            .debug_struct("StorageOptions")
            // The debug output of a store may contain a password.
            .field("store", &store.as_ref().map(|_| format_args!("…")))
            .field("is_usual", is_usual)
            .field("record", record)
            .finish()
    }
}

/// Size of the values and prints of a reply from which a model is shown a preview, in bytes, unless its call names the
/// limit `output`.
const PREVIEW: u64 = 4 << 10;

impl ServeOptions {
    /// Returns the default options for these servers.
    pub fn new(configuration: Configuration) -> ServeOptions {
        let limits = Limits::default();
        let most = Limits {
            fuel: 20 * limits.fuel,
            memory: 1 << 30,
            compute: Duration::from_secs(60),
            total: Duration::from_secs(600),
            calls: 5_000,
            tool: Duration::from_secs(300),
            output: 256 << 10,
            program: 1 << 20,
            ..limits.clone()
        };
        let prefetch = configuration.prefetch.unwrap_or(true);
        ServeOptions {
            configuration,
            replies: ReplyOptions::default(),
            limits,
            most,
            largest_message: LARGEST_LINE,
            admission: Admission::default(),
            sessions: SessionBounds::default(),
            grace: Duration::from_secs(7),
            storage: StorageOptions::default(),
            approve_tool: false,
            downstream: DownstreamOptions { prefetch, ..DownstreamOptions::default() },
            metrics: None,
        }
    }

    /// Sets a limit for the operator: both the default of a call and the maximum that it can request.
    ///
    /// # Errors
    /// Fails like [`Limits::set`].
    pub fn set_limit(&mut self, name: &str, text: &str) -> Result<(), String> {
        self.limits.set(name, text)?;
        self.most.set(name, text)
    }

    /// Sets the memory of the whole server, such as `4GiB`. One half is for concurrent evaluations, whose memory limits
    /// together never exceed it; the other is for the sessions that are kept.
    ///
    /// # Errors
    /// Fails like [`parse_size`].
    pub fn set_total_memory(&mut self, text: &str) -> Result<(), String> {
        let bytes = parse_size(text, "the total memory")?;
        self.admission.memory = bytes / 2;
        self.sessions.bytes = bytes / 2;
        Ok(())
    }
}

/// State shared by all connections.
pub(in crate::server) struct Assembled {
    pub(in crate::server) evaluations: Arc<Evaluations>,
    pub(in crate::server) settings: Arc<ServerSettings>,
    pub(in crate::server) downstreams: Arc<Downstreams>,
}

/// Assembles the shared state of the connections of those principals.
pub(in crate::server) fn assemble(
    sandbox: Arc<dyn Sandbox>,
    mut options: ServeOptions,
    allowances: Arc<Allowances>,
) -> Assembled {
    let StorageOptions { store, is_usual: is_usual_store, record } = options.storage;
    if let Some(store) = store.as_ref().filter(|_| !is_usual_store) {
        options.downstream.pins = Pins::in_store(Arc::clone(store));
    }
    let downstreams = Arc::new(Downstreams::new(options.configuration, options.downstream));
    let persistence = store.map(|store| {
        let kept = Persistence::new(store, &options.sessions, Arc::clone(&allowances));
        if is_usual_store { kept.optional() } else { kept }
    });
    let evaluations = Arc::new(Evaluations::new(
        sandbox,
        Arc::clone(&downstreams),
        Sessions::new(options.sessions, Arc::clone(&allowances)),
        Runs::new(persistence, record),
        tokio::runtime::Handle::current(),
        Gate::new(options.admission, Arc::clone(&allowances)),
        Shutdown::new(options.grace),
    ));
    evaluations.runs().look_for_failed();
    let room = options.admission.most_memory(allowances.are_of_several());
    let mut most = options.most;
    most.memory = most.memory.min(room);
    let mut usual = options.limits;
    usual.clamp_to(&most);
    usual.preview.get_or_insert(PREVIEW);
    let ReplyOptions { form, within: reply_within, quarantine } = options.replies;
    let replies = Replies { downstreams: Arc::clone(&downstreams), form, quarantine };
    let settings = Arc::new(ServerSettings {
        replies,
        usual,
        most,
        allowances,
        rounds: Rounds::default(),
        is_usual_store,
        approve_tool: options.approve_tool,
        reply_within,
        unfinished: UnfinishedPrograms::default(),
        cards: Cards::default(),
    });
    Assembled { evaluations, settings, downstreams }
}
