//! The parts of an evaluation that its calls need.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::server::downstream::Downstreams;
use crate::server::identity::Identity;
use crate::server::policy::Consent;
use crate::server::runs::Repeats;
use crate::server::sessions::requests::SessionRequests;
use lispbox_policy::Rehearsal;

use super::activity::Activity;
use super::guarded::Guarded;

/// The parts of an evaluation that its calls need.
#[derive(Clone)]
pub(in crate::server) struct Parts {
    pub(in crate::server) downstreams: Arc<Downstreams>,
    pub(in crate::server) runtime: Handle,
    /// Cancelled when the evaluation is to end.
    pub(in crate::server) cancel: CancellationToken,
    /// The number of calls that may be under way at once.
    pub(in crate::server) slots: u32,
    pub(in crate::server) identity: Arc<Identity>,
    pub(in crate::server) activity: Arc<Activity>,
    /// The permissions of the evaluation.
    pub(in crate::server) consent: Arc<Consent>,
    /// The requests of the program for its session, with its lease and the log of its run, if it has a session.
    pub(in crate::server) requests: Option<Arc<SessionRequests>>,
    /// The origins of values, if there are guards.
    pub(in crate::server) guarded: Option<Guarded>,
    /// Collects the calls that may change something, if they are not made.
    pub(in crate::server) rehearsal: Option<Arc<Rehearsal>>,
    /// The calls of earlier programs that did not end well, before which the evaluation is stopped.
    pub(in crate::server) repeats: Option<Arc<Repeats>>,
}
