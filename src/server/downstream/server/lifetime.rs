//! The lifetime of a server: not yet started, connected, lost, reconnected.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::lang::ToolError;
use crate::server::downstream::connection::{Connection, InUse};
use crate::server::downstream::restarts::Restarts;
use crate::server::downstream::tool_transport::ToolTransport;

use super::Downstream;

/// Default idle time after which a server is stopped.
const IDLE: Duration = Duration::from_secs(600);

/// Grace period for running calls to a server that has been removed from the configuration.
const LAST_CALLS: Duration = Duration::from_secs(60);

/// Maximum time for which the end of a start is awaited that has been given up.
const LAST_START: Duration = Duration::from_secs(1);

/// Time within which a repeated listing answers, although a server is still starting.
const AGAIN: Duration = Duration::from_secs(2);

/// The connection to a server, and the history of its starts.
#[derive(Default)]
pub(super) struct Connecting {
    current: Option<Arc<Connection>>,
    restarts: Restarts,
    /// The error of the last start, if it failed.
    failed: Option<ToolError>,
    /// The start that is under way.
    starting: Option<Starting>,
}

/// The outcome of a start, once it has ended.
type Outcome = Option<Result<Arc<Connection>, ToolError>>;

/// A start that is under way, on a task of its own: whoever waits for it may stop waiting.
struct Starting {
    since: Instant,
    /// True once it is its turn to start.
    has_begun: Arc<AtomicBool>,
    outcome: watch::Receiver<Outcome>,
    /// Ends the start when it is cancelled.
    cancel: CancellationToken,
}

impl Downstream {
    /// True while a live connection exists; one that is being opened does not count.
    pub(in crate::server::downstream) async fn is_connected(&self) -> bool {
        self.local.is_some() || self.connection.lock().await.current.as_ref().is_some_and(|current| current.lives())
    }

    /// Returns the transport for calls, connecting first if necessary.
    pub(super) async fn transport(self: &Arc<Self>) -> Result<ToolTransport, ToolError> {
        match &self.local {
            Some(local) => Ok(ToolTransport::Local(Arc::clone(local))),
            None => self.connect().await.map(ToolTransport::Server),
        }
    }

    /// Returns the live connection, or opens a new one. Dropping the future does not end a start.
    async fn connect(self: &Arc<Self>) -> Result<InUse, ToolError> {
        let mut outcome = {
            let mut connecting = self.connection.lock().await;
            if let Some(starting) = &connecting.starting {
                starting.outcome.clone()
            } else {
                if let Some(connection) = connecting.current.clone() {
                    let is_fresh = connection.idle().is_none_or(|idle| idle < self.shared.options.ping_after);
                    if connection.lives() && (is_fresh || Box::pin(connection.answers()).await) {
                        return Ok(InUse::of(&connection));
                    }
                    connecting.current = None;
                    connecting.failed = None;
                    if connection.is_retired() {
                        connecting.restarts.broke(Instant::now(), connection.was_answered());
                        tokio::spawn(connection.close_when_unused());
                    } else {
                        connecting.restarts.died(connection.ended_at(), connection.age());
                        self.report(&connecting.restarts, "downstream server went away", "");
                        Box::pin(connection.close()).await;
                    }
                }
                if let Some(pause) = connecting.restarts.pause(Instant::now()) {
                    return Err(self.left_alone(&connecting, pause));
                }
                let starting = self.begin();
                connecting.starting.insert(starting).outcome.clone()
            }
        };
        let ended = match outcome.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone(),
            // The runtime is shutting down.
            Err(_) => None,
        };
        let ended = ended.unwrap_or_else(|| {
            Err(ToolError::unavailable(format!("server `{}` did not start: its start was given up", self.name())))
        });
        ended.map(|connection| InUse::of(&connection))
    }

    /// Begins a start, which ends with the list of the server's tools, on a task of its own.
    fn begin(self: &Arc<Self>) -> Starting {
        let (report, outcome) = watch::channel(None);
        let (cancel, has_begun) = (CancellationToken::new(), Arc::new(AtomicBool::new(false)));
        let starting =
            Starting { since: Instant::now(), has_begun: Arc::clone(&has_begun), outcome, cancel: cancel.clone() };
        let this = Arc::clone(self);
        tokio::spawn(async move {
            let opened = tokio::select! {
                biased;
                () = cancel.cancelled() => Err("its start was given up".to_owned()),
                opened = this.open(&has_begun) => opened,
            };
            this.shared.metrics.started(this.name(), opened.is_ok());
            // Held while the outcome is reported, so that this task is the first that lists the tools.
            let listing = this.listing.lock().await;
            let opened = this.opened(opened).await;
            let transport = opened.as_ref().ok().map(|connection| ToolTransport::Server(InUse::of(connection)));
            report.send_replace(Some(opened));
            if let Some(transport) = transport
                && let Err(failure) = this.list_anew(&transport, listing).await
            {
                tracing::debug!(server = this.name(), reason = failure.error().message, "the tools were not listed");
            }
        });
        starting
    }

    /// Opens a connection. Processes take turns.
    async fn open(&self, has_begun: &AtomicBool) -> Result<Connection, String> {
        let begins = || has_begun.store(true, Ordering::Relaxed);
        if self.start.is_of_process() {
            return self.shared.starts.run(begins, self.start.connect()).await;
        }
        begins();
        self.start.connect().await
    }

    /// Records the end of a start.
    async fn opened(self: &Arc<Self>, opened: Result<Connection, String>) -> Result<Arc<Connection>, ToolError> {
        let mut connecting = self.connection.lock().await;
        let is_wanted = connecting.starting.take().is_some_and(|starting| !starting.cancel.is_cancelled());
        let opened = match opened {
            Ok(connection) if !is_wanted => {
                connection.close().await;
                Err("its start was given up".to_owned())
            }
            opened => opened,
        };
        match opened {
            Ok(connection) => {
                tracing::info!(server = self.name(), "downstream server started");
                let connection = Arc::new(connection);
                connecting.current = Some(Arc::clone(&connection));
                let idle = self.start.config.idle.unwrap_or(IDLE);
                if !idle.is_zero() {
                    tokio::spawn(stop_when_idle(Arc::downgrade(self), Arc::downgrade(&connection), idle));
                }
                Ok(connection)
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

    /// Returns how long a listing waits for the server: `most`, or what is left of it if the server has been starting
    /// for some time.
    pub(super) async fn patience_of_listing(&self, most: Duration) -> Duration {
        let since = self.connection.lock().await.starting.as_ref().map(|starting| starting.since.elapsed());
        since.map_or(most, |since| most.saturating_sub(since).max(AGAIN.min(most)))
    }

    /// Describes the start that is under way, as a clause; `None` if there is none.
    pub(super) async fn progress(&self) -> Option<String> {
        let connecting = self.connection.lock().await;
        let starting = connecting.starting.as_ref()?;
        let seconds = starting.since.elapsed().as_secs();
        Some(if starting.has_begun.load(Ordering::Relaxed) {
            let most = self.start.patience().as_secs_f64();
            format!("starting, for {seconds} s so far; list again soon (`start_timeout_seconds` is {most})")
        } else {
            format!("starting, for {seconds} s so far: other servers start first; list again soon")
        })
    }

    /// Warns once per series of failures; repeats are logged at debug level.
    fn report(&self, restarts: &Restarts, event: &'static str, reason: &str) {
        if restarts.bad_ends() == 1 {
            tracing::warn!(server = self.name(), reason, "{event}");
        } else {
            tracing::debug!(server = self.name(), reason, "{event} again");
        }
    }

    /// The error that the server is not started during its back-off, and when it may be.
    fn left_alone(&self, connecting: &Connecting, pause: Duration) -> ToolError {
        let error = connecting.failed.clone().unwrap_or_else(|| {
            let (ends, broken) = (connecting.restarts.bad_ends(), connecting.restarts.broken());
            ToolError::unavailable(match ends {
                0 => format!("server `{}` broke off {broken} calls in a row", self.name()),
                _ => format!("server `{}` went away {ends} times in a row", self.name()),
            })
        });
        let suggestion = match pause.as_millis().div_ceil(1000) {
            0 => "The next call starts it again.".to_owned(),
            seconds => format!("It is started again by a call in {seconds} s."),
        };
        ToolError { suggestion: Some(suggestion), ..error }
    }

    /// Closes the connection once the server has no other users, or after [`LAST_CALLS`].
    pub(in crate::server::downstream) async fn close_when_idle(self: Arc<Self>) {
        let begun = Instant::now();
        while Arc::strong_count(&self) > 1 && begun.elapsed() < LAST_CALLS {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        self.close().await;
    }

    /// Closes a connection that has been idle for at least `idle`; returns false if it is in use again.
    async fn stop(&self, connection: &Arc<Connection>, idle: Duration) -> bool {
        let mut connecting = self.connection.lock().await;
        if connection.idle().is_none_or(|now| now < idle) {
            return false;
        }
        if connecting.current.take_if(|current| Arc::ptr_eq(current, connection)).is_some() {
            connecting.restarts = Restarts::default();
            self.known().listed_by = None;
            tracing::info!(server = self.name(), "downstream server stopped: idle");
        }
        drop(connecting);
        connection.close().await;
        true
    }

    /// Closes the connection, if one exists, and ends a start that is under way.
    pub(in crate::server::downstream) async fn close(self: &Arc<Self>) {
        let (current, starting) = {
            let mut connecting = self.connection.lock().await;
            let starting = connecting.starting.as_ref().map(|starting| {
                starting.cancel.cancel();
                starting.outcome.clone()
            });
            (connecting.current.take(), starting)
        };
        if let Some(mut outcome) = starting {
            // The process is killed when its start is dropped.
            let _ = tokio::time::timeout(LAST_START, outcome.wait_for(Option::is_some)).await;
        }
        self.known().listed_by = None;
        self.store_shapes(true).await;
        if let Some(connection) = current {
            connection.close().await;
        }
    }
}

/// Stops a server once its connection has been idle for `idle`.
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
