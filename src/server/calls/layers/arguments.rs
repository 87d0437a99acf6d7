//! Checks the arguments of a call against the schema of its tool, and repairs what has an unambiguous repair.

use std::sync::Arc;

use crate::lang::{ToolError, ToolErrorKind};
use crate::server::approvals::Consent;
use crate::server::downstream::{Checked as CheckedArguments, Failure};

use crate::server::calls::layer::{Answer, Arguments, Call, Layer, Next};

pub(in crate::server::calls) struct Checked(pub(in crate::server::calls) Arc<Consent>);

impl Checked {
    fn check(&self, call: &Call<'_>) -> Result<Result<CheckedArguments, ToolError>, Failure> {
        let left = call.remaining().min(call.times.timeout);
        let (server, tool) = (call.server(), call.tool());
        call.wait.run(server.check(self.0.principal(), &tool, &call.given.arguments, left))
    }
}

/// Returns whether the server has changed the tool of a call, which then goes to the changed one.
fn is_changed(call: &mut Call<'_>) -> Result<bool, Failure> {
    let server = call.server();
    let Some((tool, transport)) = &mut call.target else { return Ok(false) };
    let Some(changed) = call.wait.run(server.changed((&**tool, &*transport)))?? else { return Ok(false) };
    *tool = changed;
    Ok(true)
}

impl Layer for Checked {
    fn call(&self, call: &mut Call<'_>, next: Next<'_>) -> Answer {
        let checked = match self.check(call)? {
            Err(error) if error.kind == ToolErrorKind::Arguments && is_changed(call)? => self.check(call)?,
            checked => checked,
        };
        let checked = checked.map_err(Failure::Final)?;
        call.note = checked.note;
        call.arguments = Arguments { given: checked.arguments, unchecked: checked.unchecked };
        next.call(call)
    }
}
