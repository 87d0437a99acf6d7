//! What the calls of a server's tools go over: a connection to it, or nothing, where the tools are here.

use std::time::Duration;

use serde_json::{Map, Value};

use super::connection::{Failure, InUse};
use super::local::Local;
use super::result;
use crate::lang::{Tool, ToolReply};
use crate::server::blobs::Blobs;

/// What calls go over.
pub(super) enum Link<'s> {
    /// A connection to a server.
    Server(InUse),
    /// Tools without one.
    Local(&'s Local),
}

impl Link<'_> {
    /// Calls a tool with arguments that have been checked. Dropping the future ends the call where it is made.
    pub(super) async fn call(
        &self,
        tool: &Tool,
        arguments: Map<String, Value>,
        timeout: Duration,
        blobs: &Blobs,
    ) -> Result<ToolReply, Failure> {
        let connection = match self {
            Link::Server(connection) => connection,
            Link::Local(local) => return local.call(tool, arguments, timeout).await.map_err(Failure::Final),
        };
        let answer = connection.call(&tool.name, arguments, timeout).await.map_err(|failure| {
            let is_harmless = tool.hints.read_only == Some(true) || tool.hints.idempotent == Some(true);
            if is_harmless { failure.harmless() } else { failure }
        })?;
        result::unwrap(answer, tool, blobs).map_err(Failure::Final)
    }
}
