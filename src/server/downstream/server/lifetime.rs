//! The lifetime of a server: not yet started, connected, lost, reconnected.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::lang::ToolError;
use crate::server::downstream::connection::{Connection, InUse};
use crate::server::downstream::link::Link;
use crate::server::downstream::restarts::Restarts;

use super::Downstream;

/// Default idle time after which a server is stopped.
const IDLE: Duration = Duration::from_secs(600);

/// Grace period for running calls to a server that has been removed from the configuration.
const LAST_CALLS: Duration = Duration::from_secs(60);

/// Timeout for the connection lock in a status query; the lock is held for longer while a server starts.
const LOOK: Duration = Duration::from_millis(100);

/// The connection to a server, and the history of its starts.
#[derive(Default)]
pub(super) struct Connecting {
    current: Option<Arc<Connection>>,
    restarts: Restarts,
    /// The error of the last start, if it failed.
    failed: Option<ToolError>,
}

impl Downstream {
    /// True while a live connection exists; one that is being opened does not count.
    pub(in crate::server::downstream) async fn is_connected(&self) -> bool {
        if self.local.is_some() {
            return true;
        }
        let connecting = tokio::time::timeout(LOOK, self.connection.lock()).await;
        connecting.is_ok_and(|connecting| connecting.current.as_ref().is_some_and(|current| current.lives()))
    }

    /// Returns the link for calls, connecting first if necessary.
    pub(super) async fn link(self: &Arc<Self>) -> Result<Link, ToolError> {
        match &self.local {
            Some(local) => Ok(Link::Local(Arc::clone(local))),
            None => self.connect().await.map(Link::Server),
        }
    }

    /// Returns the live connection, or opens a new one.
    async fn connect(self: &Arc<Self>) -> Result<InUse, ToolError> {
        let mut connecting = self.connection.lock().await;
        if let Some(connection) = connecting.current.clone() {
            let is_fresh = connection.idle().is_none_or(|idle| idle < self.shared.options.ping_after);
            if connection.lives() && (is_fresh || connection.answers().await) {
                return Ok(InUse::of(&connection));
            }
            connecting.current = None;
            connecting.failed = None;
            connecting.restarts.died(Instant::now(), connection.age());
            self.report(&connecting.restarts, "downstream server went away", "");
            connection.close().await;
        }
        if let Some(pause) = connecting.restarts.pause(Instant::now()) {
            return Err(self.left_alone(&connecting, pause));
        }
        let outcome = self.start.connect().await;
        self.shared.metrics.started(self.name(), outcome.is_ok());
        match outcome {
            Ok(connection) => {
                tracing::info!(server = self.name(), "downstream server started");
                let connection = Arc::new(connection);
                connecting.current = Some(Arc::clone(&connection));
                let idle = self.start.config.idle.unwrap_or(IDLE);
                if !idle.is_zero() {
                    tokio::spawn(stop_when_idle(Arc::downgrade(self), Arc::downgrade(&connection), idle));
                }
                Ok(InUse::of(&connection))
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
            let times = connecting.restarts.bad_ends();
            ToolError::unavailable(format!("server `{}` went away {times} times in a row", self.name()))
        });
        let seconds = pause.as_millis().div_ceil(1000);
        ToolError { suggestion: Some(format!("It is started again by a call in {seconds} s.")), ..error }
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

    /// Closes the connection, if one exists.
    pub(in crate::server::downstream) async fn close(self: &Arc<Self>) {
        let current = self.connection.lock().await.current.take();
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
