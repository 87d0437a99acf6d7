//! Progress notifications to a client that requested them for an evaluation.

use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::ProgressNotificationParam;
use rmcp::service::RequestContext;
use tokio::time::{Instant, interval_at};

use crate::lang::foreign_text;

/// Interval of the notifications; progress is the number of seconds since the call arrived.
const EVERY: Duration = Duration::from_secs(1);

/// The current activity of an evaluation.
#[derive(Default)]
pub(super) struct Activity(Mutex<Stage>);

#[derive(Default)]
enum Stage {
    #[default]
    Waiting,
    Running,
    /// The number of tools called so far, and the last of them.
    Called(u64, String),
}

impl Activity {
    /// Records that its turn has come.
    pub(super) fn begins(&self) {
        *self.stage() = Stage::Running;
    }

    /// Records that it calls a tool.
    pub(super) fn calls(&self, server: &str, tool: &str) {
        let mut stage = self.stage();
        let before = if let Stage::Called(count, _) = &*stage { *count } else { 0 };
        *stage = Stage::Called(before + 1, foreign_text::qualified(server, tool));
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn message(&self) -> String {
        match &*self.stage() {
            Stage::Waiting => "waiting for its turn".to_owned(),
            Stage::Running => "computing; no tool calls so far".to_owned(),
            Stage::Called(1, tool) => format!("1 tool call so far, to `{tool}`"),
            Stage::Called(count, tool) => format!("{count} tool calls so far, the last to `{tool}`"),
        }
    }
}

/// Waits for the work, and sends progress to the client if it has requested that.
pub(super) async fn reporting<T>(
    context: &RequestContext<RoleServer>,
    activity: &Activity,
    work: impl Future<Output = T>,
) -> T {
    tokio::select! {
        biased;
        outcome = work => outcome,
        never = reports(context, activity) => match never {},
    }
}

async fn reports(context: &RequestContext<RoleServer>, activity: &Activity) -> Infallible {
    let Some(token) = context.meta.get_progress_token() else { return std::future::pending().await };
    let begun = Instant::now();
    let mut interval = interval_at(begun + EVERY, EVERY);
    loop {
        let seconds = interval.tick().await.duration_since(begun).as_secs_f64();
        let progress = ProgressNotificationParam::new(token.clone(), seconds).with_message(activity.message());
        // A client that does not read misses notifications, and its call continues.
        let _ = context.peer.notify_progress(progress).await;
    }
}
