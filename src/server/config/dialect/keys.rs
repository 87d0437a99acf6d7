//! The keys of a server in the files of other clients.
//!
//! Sources: Codex `codex-rs/config/src/mcp_types.rs`; Gemini CLI `docs/tools/mcp-server.md`; VS Code "MCP configuration
//! reference"; Claude Code and Cursor, their documentation of MCP. `docs/configuration.md` has the table for users.

use super::Dialect;

/// The effect of a key.
#[derive(Clone, Copy)]
pub(super) enum Means {
    /// No effect on calls.
    Nothing,
    /// Seconds, under our name.
    Seconds(&'static str),
    /// Milliseconds, under our name.
    Millis(&'static str),
    /// Headers.
    Headers,
    /// Headers whose values are names of environment variables.
    VariableHeaders,
    /// The name of the environment variable that holds a bearer token.
    Bearer,
    /// Names of environment variables that the process inherits.
    Variables,
    /// The only tools that may be called.
    Only,
    /// Tools that may not be called.
    Block,
    /// The approval mode of all tools.
    Approval,
    /// The approval modes of single tools.
    Approvals,
    /// Nothing for these values, for an empty one and for one with `enabled: false`; otherwise the entry is refused. The
    /// second text says why, beginning with a colon or parenthesis.
    Unless(&'static [&'static str], &'static str),
}

/// A key of one client, or of any.
pub(super) struct Key {
    pub(super) key: &'static str,
    client: Option<Dialect>,
    pub(super) means: Means,
}

impl Key {
    /// True if the key has this meaning in files of a client.
    pub(super) fn is_of(&self, dialect: Dialect) -> bool {
        self.client.is_none_or(|client| client == dialect)
    }
}

const fn any(key: &'static str, means: Means) -> Key {
    Key { key, client: None, means }
}

const fn of(client: Dialect, key: &'static str, means: Means) -> Key {
    Key { key, client: Some(client), means }
}

const LOGIN: &str = ": `lispbox login` chooses client and scopes itself, or a header can carry a token";
const SANDBOX: &str = ": there is no sandbox for servers here";
const TRANSPORT: &str = ": expected a `command` or an HTTP address";

/// The keys. Those with the same meaning wherever they occur belong to any client, since people copy entries.
pub(super) const KEYS: &[Key] = &[
    // Codex.
    any("startup_timeout_sec", Means::Seconds("start_timeout_seconds")),
    any("startup_timeout_ms", Means::Millis("start_timeout_seconds")),
    any("tool_timeout_sec", Means::Seconds("timeout_seconds")),
    any("enabled_tools", Means::Only),
    any("disabled_tools", Means::Block),
    any("env_vars", Means::Variables),
    any("http_headers", Means::Headers),
    any("env_http_headers", Means::VariableHeaders),
    any("bearer_token_env_var", Means::Bearer),
    any("bearer_token", Means::Unless(&[], ": Codex refuses it as well; use `bearer_token_env_var` or `headers`")),
    any("default_tools_approval_mode", Means::Approval),
    any("required", Means::Nothing),
    any("supports_parallel_tool_calls", Means::Nothing),
    any("experimental_environment", Means::Unless(&["local"], ": servers run on this machine")),
    any("oauth_resource", Means::Unless(&[], LOGIN)),
    of(Dialect::Codex, "scopes", Means::Unless(&[], LOGIN)),
    of(Dialect::Codex, "name", Means::Nothing),
    of(Dialect::Codex, "tools", Means::Approvals),
    // Gemini CLI.
    of(Dialect::Gemini, "timeout", Means::Millis("timeout_seconds")),
    of(Dialect::Gemini, "extension", Means::Nothing),
    of(Dialect::Gemini, "extensionName", Means::Nothing),
    any("authProviderType", Means::Unless(&["dynamic_discovery"], LOGIN)),
    any("targetAudience", Means::Unless(&[], LOGIN)),
    any("targetServiceAccount", Means::Unless(&[], LOGIN)),
    any("tcp", Means::Unless(&[], TRANSPORT)),
    // Claude Code.
    of(Dialect::ClaudeCode, "timeout", Means::Millis("timeout_seconds")),
    any("alwaysLoad", Means::Nothing),
    any("headersHelper", Means::Unless(&[], ": it is a command that prints headers; write `${NAME}` in `headers`")),
    // VS Code.
    of(Dialect::VsCode, "dev", Means::Nothing),
    any("sandboxEnabled", Means::Unless(&["false"], SANDBOX)),
    any("sandbox", Means::Unless(&[], SANDBOX)),
    // Cursor, and several.
    any("auth", Means::Unless(&[], LOGIN)),
    any("oauth", Means::Unless(&[], LOGIN)),
];
