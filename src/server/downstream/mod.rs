//! The servers behind us: started when first named, shared by all evaluations, closed together.
//!
//! [`Downstreams`] is the set of them and answers for the catalogue of their tools; [`server`] is one of
//! them with its state over time, [`connection`] one connection to it while it lasts. [`process`] and
//! [`http`] reach it, [`arguments`] checks what goes out, [`result`] unwraps what comes in, and
//! [`shelf`] remembers lists of tools on disk.

mod arguments;
mod connection;
mod http;
mod process;
mod result;
mod server;
mod shelf;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::lang::error::suggest::closest;
use crate::lang::{Catalogue, Server, Tool, ToolError, ToolErrorKind, ToolReply};

use super::config::Configuration;
use super::platform::Lifeline;
use server::Downstream;

/// How long the servers that the catalogue lacks may take to list their tools.
const LISTING: Duration = Duration::from_secs(10);

/// How the connections behave, apart from what the configuration says of each.
#[derive(Clone, Debug)]
pub struct DownstreamOptions {
    /// The largest message that is taken in from a server, in bytes.
    pub largest_message: usize,
    /// The folder in which lists of tools are remembered; `None` for not at all.
    pub cache: Option<PathBuf>,
}

impl Default for DownstreamOptions {
    fn default() -> Self {
        DownstreamOptions { largest_message: super::lines::LARGEST_LINE, cache: shelf::default_folder() }
    }
}

/// All configured servers. Its methods need the runtime in which they are called to stay alive for as
/// long as the connections do.
pub struct Downstreams {
    servers: Vec<Arc<Downstream>>,
}

impl Downstreams {
    /// The servers of a configuration; none is started yet.
    pub fn new(configuration: Configuration, options: DownstreamOptions) -> Downstreams {
        let lifeline = Lifeline::new();
        let servers = configuration
            .servers
            .into_iter()
            .map(|config| Arc::new(Downstream::new(config, &options, Arc::clone(&lifeline))))
            .collect();
        Downstreams { servers }
    }

    /// The names of the servers, in the order of the configuration.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.servers.iter().map(|server| server.name())
    }

    /// The servers with a line on each, from the configuration or from what is remembered of them.
    pub fn servers(&self) -> Vec<Server> {
        self.servers
            .iter()
            .map(|server| Server { name: server.name().to_owned(), description: server.description() })
            .collect()
    }

    fn find(&self, name: &str) -> Result<&Arc<Downstream>, ToolError> {
        self.servers.iter().find(|server| server.name() == name).ok_or_else(|| ToolError {
            kind: ToolErrorKind::Unavailable,
            message: format!("there is no server `{name}`"),
            suggestion: closest(name, self.names()).map(|name| format!("Did you mean {name}?")),
        })
    }

    /// The tools of one server, which is started for it.
    ///
    /// # Errors
    /// When there is no such server or it cannot be started.
    pub async fn tools(&self, name: &str) -> Result<Vec<Arc<Tool>>, ToolError> {
        self.find(name)?.tools().await
    }

    /// The tools of all servers. Those of which nothing is known yet are started and listed side by
    /// side; one that fails is not tried again here for a minute.
    pub async fn catalogue(&self) -> Catalogue {
        let lists = futures::future::join_all(self.servers.iter().map(|server| async move {
            match server.known_tools() {
                Some(tools) => Ok(tools),
                None => server.list_within(LISTING).await,
            }
        }))
        .await;
        let mut catalogue = Catalogue::default();
        for (server, list) in self.servers.iter().zip(lists) {
            match list {
                Ok(tools) => catalogue.tools.extend(tools),
                Err(reason) => catalogue.missing.push((server.name().to_owned(), reason)),
            }
        }
        catalogue
    }

    /// Calls a tool with the text of a JSON object. `timeout` holds where the configuration of the
    /// server has none; starting the server does not count into it. Dropping the future cancels the
    /// call downstream.
    pub async fn call(&self, server: &str, tool: &str, arguments: &str, timeout: Duration) -> ToolReply {
        let outcome = async { self.find(server)?.call(tool, arguments, timeout).await };
        outcome.await.unwrap_or_else(ToolReply::Error)
    }

    /// Closes all connections, side by side, within about a second.
    pub async fn close(&self) {
        futures::future::join_all(self.servers.iter().map(|server| server.close())).await;
    }
}
