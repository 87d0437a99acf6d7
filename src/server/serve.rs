//! The server of one client, over standard input and output or any other streams, from start to shutdown.

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
use super::mcp::{Front, Manner};
use super::platform;
use super::quarantine::Quarantine;
use super::replies::{Replies, ReplyForm};
use super::sessions::{SessionBounds, Sessions};
use super::shutdown::{Shutdown, Stop};

/// Timeout of writing the last replies.
const LAST_REPLIES: Duration = Duration::from_millis(500);
/// The time for which replies may stay unread after all requests are answered and the input has ended.
const UNREAD: Duration = Duration::from_secs(1);
/// The interval at which we check, during shutdown, that our output can still be read.
const LOOK: Duration = Duration::from_millis(50);

/// The options of a server.
#[derive(Clone)]
pub struct ServeOptions {
    /// The downstream servers.
    pub configuration: Configuration,
    /// The form of a successful reply.
    pub reply: ReplyForm,
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
    /// The store that keeps sessions beyond the life of the process, if any.
    pub store: Option<Arc<dyn Store>>,
    /// Options of the connections to the downstream servers.
    pub downstream: DownstreamOptions,
    /// The rules that replies are checked against before a model reads them.
    pub quarantine: Quarantine,
    /// The address at which metrics are served, at `/metrics`, to anyone who can reach it. Without one, [`serve_http`]
    /// serves them to its own clients.
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
            grace,
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
            .field("grace", grace)
            // The debug output of a store may contain a password.
            .field("store", &store.as_ref().map(|_| format_args!("…")))
            .field("downstream", downstream)
            .field("quarantine", quarantine)
            .field("metrics", metrics)
            .finish()
    }
}

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
        ServeOptions {
            configuration,
            reply: ReplyForm::default(),
            limits,
            most,
            largest_message: LARGEST_LINE,
            admission: Admission::default(),
            sessions: SessionBounds::default(),
            grace: Duration::from_secs(7),
            store: None,
            downstream: DownstreamOptions::default(),
            quarantine: Quarantine::default(),
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

/// Serves one client, whose programs run in `sandbox`, on standard input and output, until it closes our input or a
/// signal (SIGTERM, SIGINT, SIGHUP) requests shutdown. Accepted requests are answered first, within
/// [`ServeOptions::grace`]; a second signal ends that at once. Everything that was started is closed when this returns;
/// the thread that reads standard input may still block there, so the process should exit then.
///
/// # Errors
/// Fails if the runtime cannot be created, or if the client's first message is not MCP.
pub fn serve_stdio(sandbox: Arc<dyn Sandbox>, options: ServeOptions) -> io::Result<()> {
    until_told_to_end(async |stop| {
        let (input, output) = rmcp::transport::stdio_pipes();
        let pipes = Pipes { input_hung_up: platform::input_hung_up, output_is_closed: platform::output_is_closed };
        serve(sandbox, options, input, output, stop, pipes).await
    })
}

/// Serves on a dedicated runtime until a signal requests shutdown; a second signal ends it at once.
pub(super) fn until_told_to_end(serving: impl AsyncFnOnce(Stop) -> io::Result<()>) -> io::Result<()> {
    let runtime = connections::runtime()?;
    let outcome = runtime.block_on(async {
        let mut signals = Signals::new()?;
        let stop = Stop::default();
        let serving = serving(stop.clone());
        let telling = async {
            // Not inside the macro, which evaluates no arguments if the level is disabled.
            let signal = signals.next().await;
            tracing::info!(signal, "told to end");
            stop.told.cancel();
            let signal = signals.next().await;
            tracing::info!(signal, "told to end at once");
            stop.at_once.cancel();
            std::future::pending().await
        };
        tokio::select! {
            outcome = serving => outcome,
            outcome = telling => outcome,
        }
    });
    runtime.shutdown_timeout(Duration::from_millis(300));
    outcome
}

/// Serves one client over a pair of streams (a socket, a pipe inside the process), in the runtime that awaits this
/// future, until the client closes its side or `stop` is cancelled. Accepted requests are answered first, within
/// [`ServeOptions::grace`]. Evaluations and downstream servers that were started are closed when this returns.
///
/// # Errors
/// Fails if the client's first message is not MCP.
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
    // For other streams only reading and writing detect the end.
    let pipes = Pipes { input_hung_up: || false, output_is_closed: || false };
    let stop = Stop { told: stop, ..Stop::default() };
    serve(sandbox, options, input, output, stop, pipes).await
}

/// State shared by all connections.
pub(super) struct Assembled {
    pub(super) evaluations: Arc<Evaluations>,
    pub(super) manner: Arc<Manner>,
    pub(super) downstreams: Arc<Downstreams>,
}

/// Assembles the shared state of the connections of those principals.
pub(super) fn assemble(sandbox: Arc<dyn Sandbox>, options: ServeOptions, allowances: Arc<Allowances>) -> Assembled {
    let downstreams = Arc::new(Downstreams::new(options.configuration, options.downstream));
    let keeper = options.store.map(|store| Keeper::new(store, &options.sessions, Arc::clone(&allowances)));
    let evaluations = Arc::new(Evaluations::new(
        sandbox,
        Arc::clone(&downstreams),
        Sessions::new(options.sessions, Arc::clone(&allowances)),
        keeper,
        tokio::runtime::Handle::current(),
        Gate::new(options.admission, Arc::clone(&allowances)),
        Shutdown::new(options.grace),
    ));
    let room = options.admission.most_memory(allowances.are_of_several());
    let mut most = options.most;
    most.memory = most.memory.min(room);
    let mut usual = options.limits;
    usual.clamp_to(&most);
    let replies =
        Replies { downstreams: Arc::clone(&downstreams), form: options.reply, quarantine: options.quarantine };
    let manner = Arc::new(Manner { replies, usual, most, allowances });
    Assembled { evaluations, manner, downstreams }
}

/// System-level checks on the streams to a client, beside reading and writing.
struct Pipes {
    /// True if the client has closed our input, even while unread data remains in it.
    input_hung_up: fn() -> bool,
    /// True if our output can no longer be read.
    output_is_closed: fn() -> bool,
}

async fn serve<Read, Write>(
    sandbox: Arc<dyn Sandbox>,
    options: ServeOptions,
    input: Read,
    output: Write,
    stop: Stop,
    pipes: Pipes,
) -> io::Result<()>
where
    Read: AsyncRead + Send + Unpin + 'static,
    Write: AsyncWrite + Send + Unpin + 'static,
{
    let (largest, places, metrics) = (options.largest_message, options.admission.places(), options.metrics);
    let grace = options.grace;
    let Assembled { evaluations, manner, downstreams } = assemble(sandbox, options, Arc::default());
    let shutdown = Arc::clone(evaluations.shutdown());
    if let Some(address) = metrics {
        serve_metrics(address, Arc::clone(&evaluations), shutdown.over().clone()).await?;
    }
    let front = Front::over_streams(evaluations, manner);

    let (ended, finish) = (CancellationToken::new(), CancellationToken::new());
    let transport = Lines::new(input, output, largest, ended.clone());
    let gone = transport.gone();
    let transport = transport.serving(places + MOST_REQUESTS, pipes.input_hung_up, finish.clone());
    let backlog = transport.backlog();
    let connection = async {
        match serve_server_with_ct(front, transport, CancellationToken::new()).await {
            Ok(running) => running.waiting().await.map(|_| ()).map_err(io::Error::other),
            // A client that disconnects before its first message is not an error.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(problem) => Err(io::Error::other(format!("the client's first message is not MCP: {problem}"))),
        }
    };
    tracing::info!(version = env!("CARGO_PKG_VERSION"), servers = downstreams.names().len(), "serving one client");

    let unread = async {
        let is_closed = async {
            while !(pipes.output_is_closed)() {
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::select! {
            () = gone.cancelled() => {}
            () = is_closed => {}
        }
    };
    let ending = async {
        tokio::select! {
            () = stop.told.cancelled() => shutdown.run(unread, &stop.at_once).await,
            () = ended.cancelled() => {
                // No more input can arrive and all requests are answered, so the connection ends by itself. A caller
                // that also requests shutdown does not want to wait.
                let answered = async {
                    while !backlog.is_answered() {
                        tokio::time::sleep(LOOK).await;
                    }
                    tokio::time::sleep(UNREAD).await;
                };
                tokio::select! {
                    () = tokio::time::sleep(grace) => {}
                    () = answered => {}
                    () = unread => {}
                    () = stop.told.cancelled() => {}
                }
                shutdown.run(std::future::ready(()), &stop.at_once).await;
            }
        }
        finish.cancel();
    };
    tokio::pin!(connection);
    let outcome = tokio::select! {
        outcome = &mut connection => outcome,
        () = ending => tokio::time::timeout(LAST_REPLIES, &mut connection).await.unwrap_or(Ok(())),
    };
    // Ends evaluations whose client does not wait for them.
    shutdown.run(std::future::ready(()), &stop.at_once).await;
    downstreams.close().await;
    tracing::info!("ended");
    outcome
}

/// The signals by which the system requests shutdown.
#[cfg(unix)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next signal and returns its name.
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.hangup.recv() => "SIGHUP",
        }
    }
}

/// The signals by which the system requests shutdown.
#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> io::Result<Signals> {
        Ok(Signals)
    }

    /// Waits for the next signal and returns its name.
    async fn next(&mut self) -> &'static str {
        match tokio::signal::ctrl_c().await {
            Ok(()) => "Ctrl-C",
            Err(_) => std::future::pending().await,
        }
    }
}
