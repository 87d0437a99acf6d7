//! The text for a person who types `lispbox serve` at a terminal.

use lispbox::server::Secrets;
use serde_json::json;

use crate::clients::CLIENTS;
use crate::output::errln;

/// Says what the process is, which configuration lets a client start it, and that it waits. Written to standard error,
/// since standard output carries the protocol.
pub fn show(secrets: &Secrets) {
    let program =
        std::env::current_exe().map_or_else(|_| "lispbox".to_owned(), |program| program.display().to_string());
    let arguments: Vec<String> = std::env::args().skip(1).map(|argument| secrets.redact_own(argument)).collect();
    let entry = json!({"mcpServers": {"lispbox": {"command": program, "args": arguments}}});
    let clients: Vec<&str> = CLIENTS.iter().map(|client| client.name).collect();
    errln!(
        "lispbox {} is an MCP server: an MCP client starts it and speaks MCP with it on standard input and output.\n\
         It now waits here for a client. Ctrl-C ends it.\n\n\
         `lispbox setup CLIENT` adds it to a client: {}.\n\
         Any other client needs this configuration:\n\n{entry:#}\n\n\
         `lispbox repl` runs programs at a terminal, and `lispbox serve --http ADDRESS` serves over HTTP.",
        env!("CARGO_PKG_VERSION"),
        clients.join(", ")
    );
}
