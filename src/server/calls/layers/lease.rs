//! Refuses calls in a session whose lease is lost: another process may have it.

use std::sync::Arc;

use crate::server::downstream::Failure;
use crate::server::sessions::requests::SessionRequests;

use crate::server::calls::layer::{Answer, Call, Layer, Next};

pub(in crate::server::calls) struct Leased(pub(in crate::server::calls) Arc<SessionRequests>);

impl Layer for Leased {
    fn call(&self, call: &mut Call<'_>, next: Next<'_>) -> Answer {
        if self.0.is_lost() { Err(Failure::Stopped) } else { next.call(call) }
    }
}
