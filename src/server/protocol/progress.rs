//! Progress notifications to a client that requested them for an evaluation.

use std::convert::Infallible;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::RequestContext;
use tokio::time::{Instant, interval_at};

use crate::server::calls::activity::Activity;

/// Interval of the notifications; progress is the number of seconds since the call arrived.
const EVERY: Duration = Duration::from_secs(1);

/// Waits for the work, and sends progress to the client if it has requested that.
pub(in crate::server) async fn reporting<T>(
    context: &RequestContext<RoleServer>,
    activity: &Activity,
    work: impl Future<Output = T> + Unpin,
) -> T {
    let Some(token) = context.meta.get_progress_token() else { return work.await };
    tokio::select! {
        biased;
        outcome = work => outcome,
        never = Box::pin(reports(token, context, activity)) => match never {},
    }
}

async fn reports(token: ProgressToken, context: &RequestContext<RoleServer>, activity: &Activity) -> Infallible {
    let begun = Instant::now();
    let mut interval = interval_at(begun + EVERY, EVERY);
    loop {
        let seconds = interval.tick().await.duration_since(begun).as_secs_f64();
        let progress = ProgressNotificationParam::new(token.clone(), seconds).with_message(activity.message());
        // A client that does not read misses notifications, and its call continues.
        let _ = context.peer.notify_progress(progress).await;
    }
}
