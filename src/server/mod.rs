//! The MCP server: two tools towards a client, any number of downstream servers.
//!
//! - `config`: the configuration: files and folders, their forms, the servers and rules in them.
//! - `serve`: the server of one client, on standard input and output or other streams; `mcp` implements the protocol,
//!   `tools` defines our two tools for the client, `request` parses their arguments, `toon` writes tables.
//! - `evaluations`: runs programs in `sessions`, with the `host` that the language sees; `keeper` loads sessions from a
//!   store and writes them to it; `progress` reports progress to a client, `wishes` holds a program's requests for its
//!   session.
//! - `admission`: limits concurrent evaluations and shares resources between principals; `allowances` are the limits
//!   that the operator sets for individual principals.
//! - `policy`: decides which tools may be called, whether a person is asked, and how often; `audit` records all calls,
//!   `secrets` redacts all output; `identity` identifies an evaluation to both.
//! - `quarantine`: marks replies that read like instructions to the model.
//! - `http`: the server of many clients, over HTTP, and their authentication.
//! - `downstream`: the downstream servers, and tools that need none; `connections` offers them to programs at a
//!   terminal.
//! - `lines`: the transport over lines of JSON, with `envelope` for messages that cannot be decoded and `backlog` for
//!   back-pressure; `batch` splits batches of messages, `cursor` detects cursors that rmcp ignores.
//! - `shutdown`: shuts the server down; requests under way are answered first.
//! - `blobs`: non-text results of tools, kept for a while for the client.
//! - `metrics`: counters for Prometheus, which `http` serves.
//! - `platform`: ensures that no child process outlives us. `folders`, `log`, `random`.
//! - `offload`: runs long work off the threads of the runtime.
//!
//! The runtime's async threads hold bytes and sessions, never values of the language: those are created and dropped on
//! its blocking threads, where programs run. Nothing here is global: shared state is passed in.

mod admission;
mod audit;
mod config;
mod connections;
mod downstream;
mod evaluations;
mod fields;
mod http;
mod identity;
mod policy;
mod protocol;
mod secrets;
mod serve;
mod sessions;
mod stdio;
mod system;
mod telemetry;
mod text;
mod transport;

pub use admission::Admission;
pub use admission::allowances::Allowance;
pub use audit::{
    AuditFailure, AuditLog, AuditOptions, Chain, Head, Kind, OpenIntents, Record, Redaction, Verified, chains,
};
pub use config::{
    Action, Answering, Concealed, Configuration, ConfigurationError, Endpoint, Function, Functions, HttpTransport,
    Inherit, LocalTool, Origin, ServerConfig, Sources, Template, Words, blocking, read_document, server_namespace,
};
pub use connections::{Checked, Connections};
pub use downstream::{DownstreamOptions, Downstreams};
pub use evaluations::host::EvaluationHost;
#[doc(hidden)]
pub use http::serve_handler;
pub use http::{CONNECTIONS_EACH, HttpOptions, Principals, REQUESTS_PER_MINUTE, serve_http};
pub use policy::{Answer, Approver, Decision, Effect, Nobody, Policy, Question, ToolPattern, UnfitRule, Verdict};
pub use protocol::quarantine::Quarantine;
pub use protocol::replies::ReplyForm;
pub use secrets::Secrets;
pub use serve::ServeOptions;
pub use sessions::SessionBounds;
pub use stdio::{serve_stdio, serve_streams};
pub use system::folders::usual_folder;
pub use telemetry::log::{LogStream, LogWriter, SPANS};
pub use tokio_util::sync::CancellationToken;
