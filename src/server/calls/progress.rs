//! Shows the calls of an evaluation as its activity, for progress notifications.

use std::sync::Arc;

use super::activity::Activity;
use super::layer::{Answer, Call, Layer, Next};

pub(super) struct Shown(pub(super) Arc<Activity>);

impl Layer for Shown {
    fn call(&self, call: &mut Call<'_>, next: Next<'_>) -> Answer {
        let number = self.0.calls(&call.given.server, &call.given.tool);
        let answer = next.call(call);
        self.0.called(number);
        answer
    }
}
