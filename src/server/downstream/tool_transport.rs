//! The transport of calls to the tools of a server: a connection to it, or direct calls of local tools.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::lang::Tool;
use crate::server::policy::Effect;
use crate::server::secrets::Secrets;
use crate::server::system::offload;

use super::blobs::Owned;
use super::connection::{Failure, InUse};
use super::local::Local;
use super::result::{self, Noted};

/// The transport of calls.
pub(in crate::server) enum ToolTransport {
    /// A connection to a server.
    Server(InUse),
    /// Local tools, which need no connection.
    Local(Arc<Local>),
}

impl ToolTransport {
    /// Calls a tool with validated arguments. Dropping the future cancels the call. The secrets in the reply are
    /// redacted. The note says how the reply was read.
    pub(super) async fn call(
        &self,
        tool: &Arc<Tool>,
        arguments: Map<String, Value>,
        timeout: Duration,
        blobs: &Owned,
        secrets: &Secrets,
    ) -> Result<Noted, Failure> {
        let connection = match self {
            ToolTransport::Server(connection) => connection,
            ToolTransport::Local(local) => {
                let reply = local.call(tool, arguments, timeout).await.map_err(Failure::Final)?;
                let (secrets, bytes) = (secrets.clone(), usize::try_from(reply.bytes()).unwrap_or(usize::MAX));
                return Ok((offload::linear(bytes, move || secrets.redact_reply(reply)).await, None));
            }
        };
        let is_harmless = Effect::is_harmless(&tool.hints);
        let answer = connection.call(&tool.name, arguments, timeout, is_harmless).await;
        let answer = answer.map_err(|failure| if is_harmless { failure.harmless() } else { failure })?;
        let (tool, blobs, secrets) = (Arc::clone(tool), blobs.clone(), secrets.clone());
        let bytes = result::weight(&answer);
        let unwrap = move || {
            let (reply, note) = result::unwrap(answer, &tool, &blobs, &secrets)?;
            Ok((secrets.redact_reply(reply), note))
        };
        offload::linear(bytes, unwrap).await.map_err(Failure::Final)
    }
}
