//! The MCP server: two tools towards a client, any number of servers behind it.
//!
//! - `config`: the configuration: files and folders, their forms, the servers and rules in them.
//! - `serve`: the server of one client, on standard input and output or other streams; `mcp` speaks the protocol, `tools` is what
//!   the client sees of our two tools, `request` reads their arguments, `toon` writes tables.
//! - `evaluations`: runs programs in `sessions`, with the `host` that the language sees; `keeper` takes sessions up from a
//!   store and writes them there; `progress` tells a client how one goes on, `wishes` are a program's for its own session.
//! - `admission`: how many evaluations there may be at once, and how principals share what there is; `allowances` are what
//!   the operator lets one of them have.
//! - `policy`: which tools may be called, whether a person is asked, and how often; `audit` keeps a record of all that was
//!   called, `secrets` are taken out of all that leaves; `identity` is what both say of an evaluation.
//! - `quarantine`: replies that read like instructions to the model are announced as such.
//! - `http`: the server of many clients, over HTTP, and who may use it.
//! - `downstream`: the servers behind us, and tools that need none; `connections` offers them to programs at a terminal.
//! - `lines`: the transport over lines of JSON, with `envelope` for what cannot be decoded and
//!   `backlog` for what is owed to a peer; `batch` takes batches of messages apart, `cursor`
//!   looks for cursors that rmcp passes over.
//! - `shutdown`: how the server ends: requests under way are answered first.
//! - `blobs`: what tools answer that is no text, kept for a while for the client.
//! - `metrics`: what is counted for Prometheus, which `http` serves.
//! - `platform`: no child process outlives us. `folders`, `log`, `random`.
//! - `offload`: work that may take long, off the threads of the runtime.
//!
//! The runtime's threads for what does not block hold bytes and sessions, never values of the language: those
//! are made and dropped on its threads for what blocks, where programs run. Nothing here is global: what is
//! shared is passed in.

mod admission;
mod allowances;
mod audit;
mod backlog;
mod batch;
mod blobs;
mod config;
mod connections;
mod cursor;
mod downstream;
mod envelope;
mod evaluations;
mod folders;
mod handles;
mod host;
mod http;
mod identity;
mod keeper;
mod leases;
mod lines;
mod log;
mod mcp;
mod metrics;
mod offload;
mod platform;
mod policy;
mod progress;
mod quarantine;
mod random;
mod replies;
mod request;
mod secrets;
mod serve;
mod sessions;
mod shutdown;
mod tools;
mod toon;
mod wishes;

pub use admission::Admission;
pub use allowances::Allowance;
pub use audit::{
    AuditFailure, AuditLog, AuditOptions, Chain, Head, Kind, OpenIntents, Record, Redaction, Verified, chains,
};
pub use config::{
    Action, Concealed, Configuration, ConfigurationError, Endpoint, HttpTransport, Inherit, LocalTool, Origin,
    ServerConfig, Sources, Template, Words, read_document, server_namespace,
};
pub use connections::{Checked, Connections};
pub use downstream::{Answering, DownstreamOptions, Downstreams, Function, Functions, blocking};
pub use folders::usual_folder;
pub use host::EvaluationHost;
#[doc(hidden)]
pub use http::serve_handler;
pub use http::{CONNECTIONS_EACH, HttpOptions, Principals, REQUESTS_PER_MINUTE, serve_http};
pub use log::{LogStream, LogWriter, SPANS};
pub use mcp::ReplyForm;
pub use policy::{Answer, Approver, Decision, Effect, Nobody, Policy, Question, ToolPattern, UnfitRule, Verdict};
pub use quarantine::Quarantine;
pub use secrets::Secrets;
pub use serve::{ServeOptions, serve_stdio, serve_streams};
pub use sessions::SessionBounds;
pub use tokio_util::sync::CancellationToken;
