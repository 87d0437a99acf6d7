//! Checks the arguments of a call against the schema of its tool, and repairs what has an unambiguous repair.

use std::sync::Arc;

use crate::server::downstream::Failure;
use crate::server::policy::Consent;

use super::layer::{Answer, Arguments, Call, Layer, Next};

pub(super) struct Checked(pub(super) Arc<Consent>);

impl Layer for Checked {
    fn call(&self, call: &mut Call<'_>, next: Next<'_>) -> Answer {
        let (server, tool) = (call.server(), call.tool());
        let left = call.remaining().min(call.timeout);
        let checking = server.check(self.0.principal(), &tool, &call.given.arguments, left);
        let checked = call.wait.run(checking)?.map_err(Failure::Final)?;
        call.note = checked.note;
        call.arguments = Arguments { given: checked.arguments, unchecked: checked.unchecked };
        next.call(call)
    }
}
