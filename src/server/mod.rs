//! The MCP server: two tools towards a client, any number of downstream servers.
//!
//! # Layers
//! A module may import from modules of its own line and of the lines below; `tests/layers.rs` enforces this.
//!
//! | layer | modules |
//! |---|---|
//! | transports | `stdio`: the server of one client, on standard input and output or other streams. `http`: the server of many clients, and their authentication |
//! | assembly | `serve`: the options of a server, the state that its connections share, and signals |
//! | front ends | `protocol`: MCP towards a client, independent of the transport: the two tools, replies, progress, elicitation in a call and in its reply. `connections`: downstream tools for programs at a terminal |
//! | dry runs | `plans` and `rehearsals`: what a program would do, for a person to approve |
//! | evaluations | `evaluations`: runs programs, with the host that the language sees |
//! | calls | `calls`: the chain of layers through which every tool call goes |
//! | approvals | `approvals`: the runs that wait for a person, as that person sees them, and the decisions |
//! | runs | `runs`: the runs that wait for a person, and those that did not end well. `recordings`: whole runs, from which they are replayed |
//! | guards | `guards`: feeds the origins of values, by which the policy decides |
//! | sessions | `sessions`: sessions in memory, and their persistence in a store under leases |
//! | intake and tools | `admission`: reads requests, applies the limits of principals, limits concurrent evaluations, and refuses them during shutdown. `downstream`: downstream servers, and tools that need none |
//! | pins | `pins`: how the servers declared their tools when these were first seen, and which changes a person has accepted |
//! | rules and records | `config`: the configuration: files, their formats, and the servers in them. `audit`: the hash-chained record of all calls |
//! | policy | `policy`: the rules of the crate `lispbox-policy`. `approvals::consent` applies them to calls |
//! | shared | `quarantine`: detects third-party text that reads like instructions to a model. `fields`: reads JSON objects, with errors that show no credential. `telemetry`: logs, spans and metrics |
//! | secrets | `secrets`: redacts all output |
//! | base | `transport`: messages as lines of JSON, checked before they are decoded. `identity`: the principal and the evaluation, as consent, audit and logs report them. `system`: files, child processes, threads, random numbers. `text` |
//!
//! A feature has one room: `approvals`, `guards`, `plans`, `recordings` and `rehearsals` contain their layers of calls, their
//! part of an evaluation and their storage, each at the layer that its imports allow. `evaluations` knows a dry run and the
//! texts that a model may know, not which features use them.
//!
//! # The way of a tool call
//! 1. `lang::eval` calls the host of the evaluation; `lang::runs` answers what the log of the run has already.
//! 2. `evaluations::host` hands the call to `calls`, whose [chain](calls) has the following layers, in order.
//! 3. `lease`, `audit`, `progress`, `telemetry`, `guards`, `rehearsals`, `slots`: what surrounds a call.
//! 4. `server`, `retries`, `connection`: the server is found, started if necessary, and has listed the tool.
//! 5. `arguments`, `repeats`, `approvals`: the arguments as they will be sent, whether a program that failed has made the
//!    call already, and the decision on it.
//! 6. `rehearsals`, `lease`, `run_log`, `audit`, `approvals`: what has to be true and on record before anything is sent.
//! 7. `transport`: `downstream::tool_transport` redacts the reply, `downstream::connection` has the request.
//! 8. The thread of the call writes it to a pipe by `transport::lines`, whose reader hands the answer back; over HTTP, rmcp's
//!    task of the connection gives the message to `downstream::http`.
//!
//! What needs neither tokio nor rmcp to decide on a call is in the crate `lispbox-policy`: rules, guards, the origins of
//! values, and rehearsals. The other modules could also be crates, which would let the compiler enforce the order and build policy, configuration and
//! audit while rmcp is still compiling. It was not done: the library takes 55 s of a cold build whose critical path
//! passes through rmcp anyway, most items would have to become `pub`, and every crate would have to be published.
//!
//! The runtime's async threads hold bytes and sessions, never values of the language: those are created and dropped on
//! its blocking threads, where programs run. Nothing here is global: shared state is passed in.

mod admission;
mod approvals;
mod audit;
mod calls;
mod config;
mod connections;
mod downstream;
mod evaluations;
mod fields;
mod guards;
mod http;
mod identity;
mod pins;
mod plans;
mod policy;
mod protocol;
mod quarantine;
mod recordings;
mod rehearsals;
mod runs;
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
pub use approvals::grants::{Grant, GrantedCall, ListedGrant, StoredGrants};
pub use approvals::{Answer, Approver, LaterCalls, NoApprover, Question};
pub use audit::{
    AuditFailure, AuditLog, AuditOptions, Chain, Head, Kind, OpenIntents, Record, Redaction, Verified, chains,
};
pub use config::{
    Action, Concealed, Configuration, ConfigurationError, Dialect, Endpoint, Functions, HttpTransport, Inherit,
    LocalTool, Origin, Pinning, ServerConfig, Sources, Template, Words, find_command, read_document, server_namespace,
};
pub use connections::{CheckProgress, Checked, Connections, Sampled, SessionOrigins};
pub use downstream::{DownstreamOptions, Downstreams};
pub use evaluations::host::EvaluationHost;
pub use evaluations::keyed::{KeyedReply, KeyedRuns, RunCalls};
#[doc(hidden)]
pub use http::serve_handler;
pub use http::{CONNECTIONS_EACH, HttpOptions, Principals, REQUESTS_PER_MINUTE, serve_approvals, serve_http};
pub use lispbox_policy::internal::ChangeSet;
pub use lispbox_policy::{GrantTerms, LONGEST_GRANT, Rehearsal};
pub use pins::{DiffLine, PinReport, Pins, Review};
pub use policy::{Decision, Effect, Policy, ToolPattern, UnfitRule, Verdict};
pub use protocol::patience::ReplyWithin;
pub use protocol::replies::ReplyForm;
pub use quarantine::Quarantine;
pub use recordings::{RecordOptions, Recorded, fingerprint};
pub use runs::LONGEST_RUN_KEY;
pub use runs::attempts::EndedAttempt;
pub use runs::listing::{ListedRun, StoredRuns};
pub use runs::stored::{DecisionRecord, OpenCall, StoredRun};
pub use runs::summary::RunState;
pub use secrets::Secrets;
pub use serve::{ReplyOptions, ServeOptions, StorageOptions};
pub use sessions::SessionBounds;
pub use stdio::{serve_stdio, serve_streams};
pub use system::folders::{data_folder, data_folder_in, make_private, usual_folder, usual_folder_in};
pub use telemetry::log::{LogStream, LogWriter, SPANS};
pub use tokio_util::sync::CancellationToken;
