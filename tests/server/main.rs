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

mod approvals_page;
mod asking_clients;
mod attempts;
mod audit;
mod audit_faults;
#[cfg(unix)]
mod awaited_runs;
mod bounds;
mod broken_calls;
mod cut_off_runs;
#[cfg(unix)]
mod desktop_schedules;
mod direct_calls;
mod downstream;
#[cfg(unix)]
mod effect_schedules;
#[cfg(unix)]
mod endings;
mod events;
mod failed_runs;
mod faults;
#[cfg(unix)]
mod forks;
#[cfg(unix)]
mod grant_schedules;
mod grants;
mod guards;
mod http;
mod intake;
mod kept_connections;
mod leases;
mod lifetimes;
mod local_tools;
mod login;
mod logs;
mod lost_sessions;
mod lying_server;
mod metrics;
mod odd_framing;
mod odd_replies;
mod paging;
mod pins;
#[cfg(unix)]
mod plans;
mod policy;
mod policy_names;
mod previews;
mod principals;
mod protocol;
mod quarantine;
mod real_peers;
mod recorded_runs;
mod refused_requests;
mod rehearsals;
mod revocation;
mod rounds;
#[cfg(unix)]
mod running_programs;
mod secrets;
mod server_instructions;
mod sessions;
#[cfg(unix)]
mod settled_effects;
mod shapes;
#[cfg(unix)]
mod shared_cards;
mod shares;
mod shutdown;
mod stale_lists;
#[cfg(unix)]
mod start_messages;
mod store;
mod store_faults;
mod ten_servers;
mod together;
mod tokens;
#[cfg(unix)]
mod uncertain_outcomes;
mod unkept;
#[cfg(unix)]
mod waiting_runs;
mod work;

/// The revisions of the protocol in which a client opens a protocol session.
const REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// The metadata of each request in the revisions without a protocol session.
fn meta() -> serde_json::Value {
    serde_json::json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}
