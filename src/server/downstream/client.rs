//! The MCP client that a server sees: our identity, and the answers to the server's requests.
//!
//! A server may send requests too. Each is answered at once: `ping` is acknowledged, `roots/list` returns no folders,
//! and requests to sample a model or to ask a person are refused. The call during which it asked continues, and the
//! program receives the tool's result. Progress of a call gives it more time. Of the server's other notifications, log
//! messages and changes of resources and prompts are ignored.

#![expect(deprecated, reason = "older servers ask for what newer ones may not")]

use std::sync::Arc;

use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
    ElicitResult, ErrorCode, ErrorData, Implementation, ProgressNotificationParam, ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};

use super::asked::Reports;

/// The MCP client that a server sees.
pub(super) struct Client {
    /// Receives the reports of the server.
    pub(super) reports: Arc<Reports>,
    /// The version of the protocol that is proposed in a handshake.
    pub(super) version: ProtocolVersion,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        config(self.version.clone())
    }

    async fn create_message(
        &self,
        _params: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        Err(refused("no model can be asked here"))
    }

    async fn create_elicitation(
        &self,
        _params: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Err(refused("no one can be asked here: the call comes from a program"))
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.reports.list_changes();
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        self.reports.progresses(&params.progress_token);
    }
}

/// Returns what a client of this version of the protocol says of itself.
pub(super) fn config(version: ProtocolVersion) -> ClientConfig {
    ClientConfig::new(ClientCapabilities::default(), Implementation::new("lispbox", env!("CARGO_PKG_VERSION")))
        .with_protocol_version(version)
}

/// The error for a server's request that this client does not support.
fn refused(reason: &'static str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, reason, None)
}
