//! The server of one client, over standard input and output or any other streams, from its start to its end.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rmcp::service::{ServerInitializeError, serve_server_with_ct};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::lang::{Limits, Sandbox, parse_size};
use crate::store::Store;

use super::admission::{Admission, Gate};
use super::allowances::Allowances;
use super::backlog::MOST_REQUESTS;
use super::config::Configuration;
use super::connections;
use super::downstream::{DownstreamOptions, Downstreams};
use super::evaluations::Evaluations;
use super::http::serve_metrics;
use super::keeper::Keeper;
use super::lines::{LARGEST_LINE, Lines};
use super::mcp::{Front, Manner, ReplyForm};
use super::platform;
use super::quarantine::Quarantine;
use super::sessions::{SessionBounds, Sessions};

/// How long evaluations that are under way may still take once the client has closed our input.
const GRACE: Duration = Duration::from_millis(1500);
/// How long the replies of stopped evaluations may take to be written.
const LAST_REPLIES: Duration = Duration::from_millis(500);
/// How long evaluations that were told to stop may take until their records are written.
pub(super) const LAST_RECORDS: Duration = Duration::from_secs(2);

/// How to serve.
#[derive(Clone)]
pub struct ServeOptions {
    /// The servers behind us.
    pub configuration: Configuration,
    /// What a successful reply consists of.
    pub reply: ReplyForm,
    /// The limits of a call that asks for none.
    pub limits: Limits,
    /// The limits that no call exceeds, whatever it asks for.
    pub most: Limits,
    /// The largest message that is taken in from the client, in bytes.
    pub largest_message: usize,
    /// How many evaluations there may be, and how large.
    pub admission: Admission,
    /// How many sessions there may be, and for how long.
    pub sessions: SessionBounds,
    /// Where sessions are kept beyond the life of the process, if anywhere.
    pub store: Option<Arc<dyn Store>>,
    /// How the connections to the servers behave.
    pub downstream: DownstreamOptions,
    /// What replies are held against, before a model reads them.
    pub quarantine: Quarantine,
    /// Where metrics are served to whoever reaches that address, at `/metrics`. Without one, [`serve_http`] serves them
    /// to its own clients.
    ///
    /// [`serve_http`]: super::serve_http
    pub metrics: Option<SocketAddr>,
}

impl fmt::Debug for ServeOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ServeOptions {
            configuration,
            reply,
            limits,
            most,
            largest_message,
            admission,
            sessions,
            store,
            downstream,
            quarantine,
            metrics,
        } = self;
        formatter
            .debug_struct("ServeOptions")
            .field("configuration", configuration)
            .field("reply", reply)
            .field("limits", limits)
            .field("most", most)
            .field("largest_message", largest_message)
            .field("admission", admission)
            .field("sessions", sessions)
            // What a store knows of itself may have a password in it.
            .field("store", &store.as_ref().map(|_| format_args!("…")))
            .field("downstream", downstream)
            .field("quarantine", quarantine)
            .field("metrics", metrics)
            .finish()
    }
}

impl ServeOptions {
    /// The defaults, for these servers.
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
        ServeOptions {
            configuration,
            reply: ReplyForm::default(),
            limits,
            most,
            largest_message: LARGEST_LINE,
            admission: Admission::default(),
            sessions: SessionBounds::default(),
            store: None,
            downstream: DownstreamOptions::default(),
            quarantine: Quarantine::default(),
            metrics: None,
        }
    }

    /// Sets a limit as the operator wants it: what a call gets, and the most that it can ask for.
    ///
    /// # Errors
    /// As [`Limits::set`].
    pub fn set_limit(&mut self, name: &str, text: &str) -> Result<(), String> {
        self.limits.set(name, text)?;
        self.most.set(name, text)
    }

    /// Sets the memory of the server as a whole, such as `4GiB`. One half is for the evaluations that
    /// run at a time, whose limits of memory together never exceed it; the other is for the sessions
    /// that are kept.
    ///
    /// # Errors
    /// As [`parse_size`].
    pub fn set_total_memory(&mut self, text: &str) -> Result<(), String> {
        let bytes = parse_size(text, "the total memory")?;
        self.admission.memory = bytes / 2;
        self.sessions.bytes = bytes / 2;
        Ok(())
    }
}

/// Serves one client, whose programs run in that sandbox, on standard input and output, until it closes our
/// input or we are told to end (SIGTERM, SIGINT, SIGHUP). All that was started is closed when this returns,
/// within a few seconds; the thread that reads standard input may still hang there, so the process should
/// exit then.
///
/// # Errors
/// When the runtime cannot be made, or the client's first message is not MCP.
pub fn serve_stdio(sandbox: Arc<dyn Sandbox>, options: ServeOptions) -> io::Result<()> {
    until_told_to_end(async |stop| {
        let (input, output) = rmcp::transport::stdio_pipes();
        serve(sandbox, options, input, output, stop, platform::input_hung_up).await
    })
}

/// Serves on a runtime of its own; `stop` is cancelled when we are told to end.
pub(super) fn until_told_to_end(serving: impl AsyncFnOnce(CancellationToken) -> io::Result<()>) -> io::Result<()> {
    let runtime = connections::runtime()?;
    let outcome = runtime.block_on(async {
        let told = told_to_end()?;
        let stop = CancellationToken::new();
        let serving = serving(stop.clone());
        tokio::pin!(serving);
        tokio::select! {
            outcome = &mut serving => outcome,
            signal = told => {
                tracing::info!(signal, "told to end");
                stop.cancel();
                serving.await
            }
        }
    });
    runtime.shutdown_timeout(Duration::from_millis(300));
    outcome
}

/// Serves one client over a pair of streams (a socket, a pipe inside the process), in the runtime that it
/// is awaited in, until the client closes its side or `stop` is cancelled. What was started is closed when
/// this returns: evaluations, and the servers behind us.
///
/// # Errors
/// When the client's first message is not MCP.
pub async fn serve_streams<Read, Write>(
    sandbox: Arc<dyn Sandbox>,
    options: ServeOptions,
    input: Read,
    output: Write,
    stop: CancellationToken,
) -> io::Result<()>
where
    Read: AsyncRead + Send + Unpin + 'static,
    Write: AsyncWrite + Send + Unpin + 'static,
{
    // Only reading tells that another stream has ended.
    serve(sandbox, options, input, output, stop, || false).await
}

/// What connections have in common.
pub(super) struct Assembled {
    pub(super) evaluations: Arc<Evaluations>,
    pub(super) manner: Arc<Manner>,
    pub(super) downstreams: Arc<Downstreams>,
}

/// Puts together what serves connections of those principals; evaluations end when `stop` is cancelled.
pub(super) fn assemble(
    sandbox: Arc<dyn Sandbox>,
    options: ServeOptions,
    allowances: Arc<Allowances>,
    stop: CancellationToken,
) -> Assembled {
    let downstreams = Arc::new(Downstreams::new(options.configuration, options.downstream));
    let keeper = options.store.map(|store| Keeper::new(store, &options.sessions, Arc::clone(&allowances)));
    let evaluations = Arc::new(Evaluations::new(
        sandbox,
        Arc::clone(&downstreams),
        Sessions::new(options.sessions, Arc::clone(&allowances)),
        keeper,
        tokio::runtime::Handle::current(),
        Gate::new(options.admission, Arc::clone(&allowances)),
        stop,
    ));
    let room = options.admission.most_memory(allowances.are_of_several());
    let mut most = options.most;
    most.memory = most.memory.min(room);
    let mut usual = options.limits;
    usual.clamp_to(&most);
    let manner = Arc::new(Manner { form: options.reply, usual, most, allowances, quarantine: options.quarantine });
    Assembled { evaluations, manner, downstreams }
}

async fn serve<Read, Write>(
    sandbox: Arc<dyn Sandbox>,
    options: ServeOptions,
    input: Read,
    output: Write,
    stop: CancellationToken,
    hung_up: fn() -> bool,
) -> io::Result<()>
where
    Read: AsyncRead + Send + Unpin + 'static,
    Write: AsyncWrite + Send + Unpin + 'static,
{
    let (largest, places, metrics) = (options.largest_message, options.admission.places(), options.metrics);
    // Ours to cancel when the client has gone, and cancelled with the caller's.
    let stop = stop.child_token();
    let Assembled { evaluations, manner, downstreams } = assemble(sandbox, options, Arc::default(), stop.clone());
    if let Some(address) = metrics {
        serve_metrics(address, Arc::clone(&evaluations), stop.clone()).await?;
    }
    let front = Front::over_streams(Arc::clone(&evaluations), manner);

    let ended = CancellationToken::new();
    let transport = Lines::new(input, output, largest, ended.clone()).serving(places + MOST_REQUESTS, hung_up);
    let connection = async {
        match serve_server_with_ct(front, transport, CancellationToken::new()).await {
            Ok(running) => running.waiting().await.map(|_| ()).map_err(io::Error::other),
            // A client that goes away before it says anything is no error.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(problem) => Err(io::Error::other(format!("the client's first message is not MCP: {problem}"))),
        }
    };
    tracing::info!(version = env!("CARGO_PKG_VERSION"), servers = downstreams.names().len(), "serving one client");

    tokio::pin!(connection);
    let grace = async {
        ended.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    let outcome = tokio::select! {
        outcome = &mut connection => outcome,
        () = stop.cancelled() => Ok(()),
        () = grace => {
            stop.cancel();
            tokio::time::timeout(LAST_REPLIES, &mut connection).await.unwrap_or(Ok(()))
        }
    };
    stop.cancel();
    tokio::join!(evaluations.all_ended(LAST_RECORDS), downstreams.close());
    tracing::info!("ended");
    outcome
}

/// Waits until the system tells us to end; gives the name of the signal.
#[cfg(unix)]
fn told_to_end() -> io::Result<impl Future<Output = &'static str>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
            _ = hangup.recv() => "SIGHUP",
        }
    })
}

/// Waits until the system tells us to end; gives the name of the signal.
#[cfg(not(unix))]
fn told_to_end() -> io::Result<impl Future<Output = &'static str>> {
    Ok(async {
        match tokio::signal::ctrl_c().await {
            Ok(()) => "Ctrl-C",
            Err(_) => std::future::pending().await,
        }
    })
}
