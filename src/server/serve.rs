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
use super::shutdown::{Shutdown, Stop};

/// How long the last replies may take to be written.
const LAST_REPLIES: Duration = Duration::from_millis(500);
/// How long replies may be left unread once all requests are answered and the input has ended.
const UNREAD: Duration = Duration::from_secs(1);
/// How often we look whether somebody reads what we write, while the server ends.
const LOOK: Duration = Duration::from_millis(50);

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
    /// How long evaluations may go on once the server is told to end; then they are cancelled, which may take two
    /// seconds more.
    pub grace: Duration,
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
            grace: Duration::from_secs(7),
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
/// input or we are told to end (SIGTERM, SIGINT, SIGHUP). Requests that were taken in are answered before, within
/// [`ServeOptions::grace`]; a second signal ends that at once. All that was started is closed when this returns; the
/// thread that reads standard input may still hang there, so the process should exit then.
///
/// # Errors
/// When the runtime cannot be made, or the client's first message is not MCP.
pub fn serve_stdio(sandbox: Arc<dyn Sandbox>, options: ServeOptions) -> io::Result<()> {
    until_told_to_end(async |stop| {
        let (input, output) = rmcp::transport::stdio_pipes();
        let pipes = Pipes { input_hung_up: platform::input_hung_up, output_is_closed: platform::output_is_closed };
        serve(sandbox, options, input, output, stop, pipes).await
    })
}

/// Serves on a runtime of its own until it is told to end, the second time at once.
pub(super) fn until_told_to_end(serving: impl AsyncFnOnce(Stop) -> io::Result<()>) -> io::Result<()> {
    let runtime = connections::runtime()?;
    let outcome = runtime.block_on(async {
        let mut signals = Signals::new()?;
        let stop = Stop::default();
        let serving = serving(stop.clone());
        let telling = async {
            // Not within the macro, which evaluates nothing where the level is off.
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

/// Serves one client over a pair of streams (a socket, a pipe inside the process), in the runtime that it
/// is awaited in, until the client closes its side or `stop` is cancelled. Requests that were taken in are answered
/// before, within [`ServeOptions::grace`]. What was started is closed when this returns: evaluations, and the servers
/// behind us.
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
    // Only reading and writing tell that another stream has ended.
    let pipes = Pipes { input_hung_up: || false, output_is_closed: || false };
    let stop = Stop { told: stop, ..Stop::default() };
    serve(sandbox, options, input, output, stop, pipes).await
}

/// What connections have in common.
pub(super) struct Assembled {
    pub(super) evaluations: Arc<Evaluations>,
    pub(super) manner: Arc<Manner>,
    pub(super) downstreams: Arc<Downstreams>,
}

/// Puts together what serves connections of those principals.
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
    let manner = Arc::new(Manner { form: options.reply, usual, most, allowances, quarantine: options.quarantine });
    Assembled { evaluations, manner, downstreams }
}

/// What the system says of the streams to a client, beside reading and writing.
struct Pipes {
    /// Whether the client has closed our input, even while there is something left in it to be read.
    input_hung_up: fn() -> bool,
    /// Whether nobody can read our output any more.
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
            // A client that goes away before it says anything is no error.
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
                // Nothing more can come, and what has come is answered: the connection ends by itself behind that.
                // Who tells us to end as well does not want to wait.
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
    // Evaluations whose client does not wait for them.
    shutdown.run(std::future::ready(()), &stop.at_once).await;
    downstreams.close().await;
    tracing::info!("ended");
    outcome
}

/// The signals by which the system tells us to end.
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

    /// Waits for the next signal; gives its name.
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.hangup.recv() => "SIGHUP",
        }
    }
}

/// The signals by which the system tells us to end.
#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> io::Result<Signals> {
        Ok(Signals)
    }

    /// Waits for the next signal; gives its name.
    async fn next(&mut self) -> &'static str {
        match tokio::signal::ctrl_c().await {
            Ok(()) => "Ctrl-C",
            Err(_) => std::future::pending().await,
        }
    }
}
