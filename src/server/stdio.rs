//! The server of one client, over standard input and output or any other streams, from start to shutdown.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rmcp::service::{ServerInitializeError, serve_server_with_ct};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::lang::Sandbox;
use crate::server::admission::shutdown::Stop;
use crate::server::http::serve_metrics;
use crate::server::protocol::front::Front;
use crate::server::serve::signals::until_told_to_end;
use crate::server::serve::{Assembled, ServeOptions, assemble};
use crate::server::system::platform;
use crate::server::transport::backlog::MOST_REQUESTS;
use crate::server::transport::lines::Lines;

/// Timeout of writing the last replies.
const LAST_REPLIES: Duration = Duration::from_millis(500);
/// The time for which replies may stay unread after all requests are answered and the input has ended.
const UNREAD: Duration = Duration::from_secs(1);
/// The interval at which we check, during shutdown, that our output can still be read.
const LOOK: Duration = Duration::from_millis(50);

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
    let Assembled { evaluations, settings, downstreams } = assemble(sandbox, options, Arc::default());
    let shutdown = Arc::clone(evaluations.shutdown());
    if let Some(address) = metrics {
        serve_metrics(address, Arc::clone(&evaluations), shutdown.over().clone()).await?;
    }
    let front = Front::over_streams(evaluations, settings);

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
            () = stop.told.cancelled() => {
                // The two may come in either order.
                let hurry = async {
                    tokio::select! {
                        () = unread => {}
                        () = ended.cancelled() => {}
                    }
                };
                shutdown.run(hurry, &stop.at_once).await;
            }
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
