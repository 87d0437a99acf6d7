//! The MCP server, tested through the real binary: protocol, sessions, policy, audit, limits, faults and real peers.
#![cfg(feature = "cli")]

#[path = "../audit_log/mod.rs"]
mod audit_log;
#[cfg(unix)]
#[path = "../databases/mod.rs"]
mod databases;
#[path = "../http_client/mod.rs"]
mod http_client;
#[path = "../mcp_client/mod.rs"]
mod mcp_client;
#[path = "../peers/mod.rs"]
mod peers;
#[cfg(unix)]
#[path = "../relay/mod.rs"]
mod relay;
#[cfg(unix)]
#[path = "../steps/mod.rs"]
mod steps;

mod audit;
mod audit_faults;
mod bounds;
mod downstream;
mod events;
mod faults;
mod http;
mod intake;
mod leases;
mod lifetimes;
mod local_tools;
mod login;
mod logs;
mod lost_sessions;
mod lying_server;
mod metrics;
mod policy;
mod policy_names;
mod principals;
mod protocol;
mod quarantine;
mod real_peers;
mod revocation;
mod secrets;
mod sessions;
mod shares;
mod shutdown;
mod store;
mod store_faults;
mod together;
mod tokens;
mod unkept;
mod work;
