//! Shutdown by signals of the system.

use std::io;
use std::time::Duration;

use crate::server::admission::shutdown::Stop;
use crate::server::system;

/// Serves on a dedicated runtime until a signal requests shutdown; a second signal ends it at once.
pub(in crate::server) fn until_told_to_end(serving: impl AsyncFnOnce(Stop) -> io::Result<()>) -> io::Result<()> {
    let runtime = system::runtime()?;
    let outcome = runtime.block_on(async {
        let mut signals = Signals::new()?;
        let stop = Stop::default();
        let serving = serving(stop.clone());
        let telling = async {
            // Not inside the macro, which evaluates no arguments if the level is disabled.
            let signal = signals.next().await;
            tracing::info!(signal, "received a termination signal");
            stop.told.cancel();
            let signal = signals.next().await;
            tracing::info!(signal, "received a second termination signal");
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
