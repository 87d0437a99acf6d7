//! Shows the calls of an evaluation as its activity, for progress notifications.

use std::sync::Arc;

use crate::server::calls::activity::Activity;
use crate::server::calls::layer::{Answer, Call, Layer, Next};

pub(in crate::server::calls) struct Shown(pub(in crate::server::calls) Arc<Activity>);

impl Layer for Shown {
    fn call(&self, call: &mut Call<'_>, next: Next<'_>) -> Answer {
        let number = self.0.calls(&call.given.server, &call.given.tool);
        let answer = next.call(call);
        self.0.called(number);
        answer
    }
}
