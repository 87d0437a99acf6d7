//! The parts of an evaluation that its calls need.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::server::approvals::Consent;
use crate::server::downstream::Downstreams;
use crate::server::guards::{Guarded, KnownTexts};
use crate::server::identity::Identity;
use crate::server::runs::Repeats;
use crate::server::sessions::requests::SessionRequests;
use lispbox_policy::Rehearsal;
use lispbox_policy::internal::Origins;

use super::activity::Activity;

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
    pub(in crate::server) features: Features,
}

/// What is switched on for the calls of an evaluation; each adds its layers to the chain.
#[derive(Clone, Default)]
pub(in crate::server) struct Features {
    /// The origins of values, if there are guards.
    pub(in crate::server) guarded: Option<Guarded>,
    /// Collects the calls that may change something, if they are not made.
    pub(in crate::server) rehearsal: Option<Arc<Rehearsal>>,
    /// The calls of earlier programs that did not end well, before which the evaluation is stopped.
    pub(in crate::server) repeats: Option<Arc<Repeats>>,
}

impl Features {
    /// Returns the features of a program that knows these texts, and follows these calls.
    pub(in crate::server) fn new(known: &KnownTexts, repeats: Option<Arc<Repeats>>) -> Features {
        Features { guarded: known.guarded().cloned(), rehearsal: None, repeats }
    }

    /// Returns the origins of values, if they are recorded.
    pub(in crate::server) fn origins(&self) -> Option<Arc<Origins>> {
        self.guarded.as_ref().map(|guarded| Arc::clone(guarded.origins()))
    }

    /// Checks that the program may fork or close its session.
    ///
    /// # Errors
    /// Returns why it may not, as a clause that ends with `refusal`.
    pub(in crate::server) fn may_change_sessions(&self, refusal: &str) -> Result<(), String> {
        if self.rehearsal.is_some() { Err(format!("a rehearsal {refusal}")) } else { Ok(()) }
    }
}
