//! The list of a server's tools: asked for when it may have changed, by one task at a time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::MutexGuard;

use crate::lang::{Tool, ToolError};
use crate::server::downstream::arguments::{self, CheckedTool};
use crate::server::downstream::connection::Failure;
use crate::server::downstream::tool_transport::ToolTransport;
use crate::server::system::offload;

use super::Downstream;

impl Downstream {
    /// Lists the tools that may be called, from the server itself.
    pub(in crate::server::downstream) async fn tools(
        self: &Arc<Self>,
        principal: &str,
    ) -> Result<Vec<Arc<Tool>>, ToolError> {
        let transport = self.transport().await?;
        let tools = self.listed(&transport).await.map_err(Failure::error)?;
        self.recall(principal).await;
        Ok(self.allowed(&tools, principal))
    }

    /// Lists the tools for the catalogue, or returns the reason why they are unavailable. A start goes on when the time
    /// is over.
    pub(in crate::server::downstream) async fn list_within(
        self: &Arc<Self>,
        principal: &str,
        bound: Duration,
    ) -> Result<Vec<Arc<Tool>>, String> {
        let bound = self.patience_of_listing(bound).await;
        match tokio::time::timeout(bound, self.tools(principal)).await {
            Ok(listed) => listed.map_err(|error| error.message),
            Err(_) => match self.progress().await {
                Some(progress) => Err(progress),
                None => Err(format!("did not list its tools within {} s", bound.as_secs())),
            },
        }
    }

    /// Returns the tools of this connection: the known list if it is from this connection and unchanged, or else a new
    /// one.
    pub(super) async fn listed(self: &Arc<Self>, transport: &ToolTransport) -> Result<Vec<Arc<CheckedTool>>, Failure> {
        if let Some(tools) = self.still_listed(transport) {
            return Ok(tools);
        }
        let turn = self.listing.lock().await;
        // Large and rare: the futures of calls, which are moved several times, stay small.
        Box::pin(self.list_anew(transport, turn)).await
    }

    /// Returns the known list if it is from this connection and unchanged.
    fn still_listed(&self, transport: &ToolTransport) -> Option<Vec<Arc<CheckedTool>>> {
        let ToolTransport::Server(connection) = transport else { return Some(self.known_anyhow().unwrap_or_default()) };
        let mut known = self.known();
        let is_due = known.is_due(connection);
        known.tools.clone().filter(|_| !is_due)
    }

    /// Returns whether the server is connected, and is to be asked for its tools once more.
    pub(in crate::server::downstream) fn is_list_due(&self) -> bool {
        let mut known = self.known();
        let connection = known.listed_by.clone().filter(|by| by.lives());
        connection.is_some_and(|connection| known.is_due(&connection))
    }

    /// Asks the server for its tools once more, because the known list may be out of date; `None` if it cannot be, or
    /// was renewed a short time ago.
    pub(super) async fn renewed(self: &Arc<Self>, transport: &ToolTransport) -> Option<Vec<Arc<CheckedTool>>> {
        let is_due = matches!(transport, ToolTransport::Server(_)) && self.known().freshness.doubt(Instant::now());
        if is_due { self.listed(transport).await.ok() } else { None }
    }

    /// As [`Downstream::renewed`]; the tools that may be called.
    pub(in crate::server::downstream) async fn tools_anew(self: &Arc<Self>, principal: &str) -> Option<Vec<Arc<Tool>>> {
        let transport = self.transport().await.ok()?;
        let tools = self.renewed(&transport).await?;
        self.recall(principal).await;
        Some(self.allowed(&tools, principal))
    }

    /// Asks the server for its tools, unless another task has done so while this one waited for its turn.
    pub(super) async fn list_anew(
        self: &Arc<Self>,
        transport: &ToolTransport,
        _turn: MutexGuard<'_, ()>,
    ) -> Result<Vec<Arc<CheckedTool>>, Failure> {
        if let Some(tools) = self.still_listed(transport) {
            return Ok(tools);
        }
        let ToolTransport::Server(connection) = transport else { return Ok(Vec::new()) };
        let renewing = {
            let mut known = self.known();
            let tools = known.tools.clone().filter(|_| known.is_listed_by(connection));
            tools.inspect(|_| known.freshness.renewed(Instant::now()))
        };
        // A first list is a part of the start; calls wait for a further one.
        let patience = renewing.is_none().then(|| self.start.patience());
        let list = match (connection.list(patience).await, renewing) {
            (Ok(list), _) => list,
            // A list that may be out of date is better than none.
            (Err(Failure::Final(error)), Some(tools)) => {
                tracing::debug!(server = self.name(), reason = error.message, "the list of tools was not renewed");
                return Ok(tools);
            }
            (Err(failure), _) => return Err(failure),
        };
        let (this, declared, said) = (Arc::clone(self), list.tools, connection.instructions());
        let (vetted, instructions, report) = offload::linear(usize::MAX, move || this.vet(declared, said)).await;
        self.recall_list().await;
        // Another version of the server may return something else.
        let version = connection.version();
        let before = self.known_list();
        let before = if before.version == version { before.tools } else { Vec::new() };
        let tools = offload::linear(usize::MAX, move || {
            let tools = arguments::vetted(vetted);
            let before: HashMap<&str, &CheckedTool> =
                before.iter().map(|checked| (checked.tool.name.as_str(), &**checked)).collect();
            for tool in &tools {
                before.get(tool.tool.name.as_str()).into_iter().for_each(|before| tool.resume(before));
            }
            tools
        })
        .await;
        {
            let mut known = self.known();
            known.set(tools.clone(), true);
            known.version = version;
            known.listed_by = Some(Arc::clone(connection));
            known.freshness.listed(Instant::now(), list.fresh);
            known.left_out = list.left_out;
            known.instructions = instructions;
            known.pins = report;
        }
        self.shapes.read_again();
        self.shared.unfit.look_again();
        let this = Arc::clone(self);
        offload::linear(usize::MAX, move || this.list_cache.write(|| this.known_list())).await;
        Ok(tools)
    }
}
