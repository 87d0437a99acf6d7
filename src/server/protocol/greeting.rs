//! The beginning of a connection: the client is told what this server is and which tools are known, and the servers whose
//! tools are not known start.

use rmcp::RoleServer;
use rmcp::model::ServerConfig;
use rmcp::service::RequestContext;

use crate::server::identity::LOCAL;

use super::front::Front;
use super::tools;

impl Front {
    /// Adds the instructions for the principal of a request.
    pub(super) async fn instructed(&self, answer: ServerConfig, context: &RequestContext<RoleServer>) -> ServerConfig {
        let Ok(principal) = self.principal(context) else { return answer };
        let downstreams = self.evaluations.downstreams();
        downstreams.refresh();
        let (told, cut) = downstreams.told_to(&principal).await;
        let (usual, _) = self.settings.allowances.of(&principal).within(&self.settings.usual, &self.settings.most);
        let lines = tools::instructions(&downstreams.servers(), &told, &cut, &usual);
        let lines = self.settings.replies.warned(downstreams.secrets().redact_own(lines));
        answer.with_instructions(tools::within(&lines))
    }

    /// Starts the servers whose tools are not known, once for the client of a pair of streams. Over HTTP there may be many
    /// clients, none of whom may want them.
    pub(super) fn prefetch(&self) {
        if !self.over_http {
            self.prefetched.call_once(|| self.evaluations.downstreams().prefetch(LOCAL));
        }
    }
}
