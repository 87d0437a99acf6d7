//! Refuses calls in a session whose lease is lost: another process may have it.

use std::sync::Arc;

use crate::server::downstream::Failure;
use crate::server::sessions::requests::SessionRequests;

use super::layer::{Answer, Call, Layer, Next};

pub(super) struct Leased(pub(super) Arc<SessionRequests>);

impl Layer for Leased {
    fn call(&self, call: &mut Call<'_>, next: Next<'_>) -> Answer {
        if self.0.is_lost() { Err(Failure::Stopped) } else { next.call(call) }
    }
}
