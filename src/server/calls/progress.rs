//! Shows the calls of an evaluation as its activity, for progress notifications.

use std::sync::Arc;

use super::activity::Activity;
use super::layer::{Answer, Call, Layer, Next};

pub(super) struct Shown(pub(super) Arc<Activity>);

impl Layer for Shown {
    fn call(&self, call: &mut Call<'_>, next: Next<'_>) -> Answer {
        self.0.calls(&call.given.server, &call.given.tool);
        next.call(call)
    }
}
