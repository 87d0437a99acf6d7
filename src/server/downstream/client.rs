//! Our face towards a server: what it is told of us, and the answers to what it asks.
//!
//! A server may ask for more than that its tools are called. It is answered at once, whatever it asks: that it is heard
//! (`ping`), that there are no folders (`roots/list`), that neither a model nor a person can be asked. The call in which
//! it asked goes on, and what the tool says of it is what the program gets. Of what it tells us, log lines and changes of
//! its resources and prompts are passed over.

#![expect(deprecated, reason = "older servers ask for what newer ones may not")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
    ElicitResult, ErrorCode, ErrorData, Implementation, ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};

/// Our face towards a server.
pub(super) struct Client {
    /// Set when the server says that its tools have changed.
    pub(super) list_changed: Arc<AtomicBool>,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(ClientCapabilities::default(), Implementation::new("lispbox", env!("CARGO_PKG_VERSION")))
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
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
        Err(refused("nobody can be asked here: the call comes from a program"))
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.list_changed.store(true, Ordering::Release);
    }
}

/// The answer to a request of a server that is for another client.
fn refused(reason: &'static str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, reason, None)
}
