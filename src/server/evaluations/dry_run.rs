//! Dry runs: ways to find out what a program would do, in place of running it.

use std::sync::Arc;

use crate::lang::{Environment, Host, Reply, Request, Sandbox};
use crate::server::admission::request::Refused;
use crate::server::calls::Features;
use crate::server::guards::KnownTexts;
use crate::server::runs::{RunKey, Runs};
use crate::server::sessions::Entry;

/// A way to find out what a program would do. It has no effects, changes no session, and takes the lease of none.
pub(in crate::server) trait DryRun: Send + Sync {
    /// Returns the name of this way, which tells the runs of one key apart.
    fn name(&self) -> &'static str;

    /// Switches on what the calls of the program need.
    fn prepare(&self, _: &mut Features) {}

    /// Returns the reply to the program. Its session is as the store has it. Blocks.
    ///
    /// # Errors
    /// Refuses if nothing can be said about the program.
    fn reply(&self, program: DryProgram, session: &mut dyn Environment, host: Arc<dyn Host>) -> Result<Reply, Refused>;
}

/// A program that is not run.
pub(in crate::server) struct DryProgram {
    pub(in crate::server) request: Request,
    pub(in crate::server) entry: Arc<Entry>,
    pub(in crate::server) sandbox: Arc<dyn Sandbox>,
    pub(in crate::server) known: KnownTexts,
    pub(in crate::server) runs: Arc<Runs>,
    /// The key of the run that makes its calls later.
    pub(in crate::server) key: Option<RunKey>,
}
