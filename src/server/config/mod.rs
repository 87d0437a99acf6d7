//! The configuration of the operator: servers, which of their tools may be called, and how programs run.
//!
//! [`Configuration::parse`] reads the text of one file, in the formats that users already have: `mcpServers` as written
//! by Claude Desktop, Claude Code and Cursor, `servers` of VS Code, and the native format, with a list of `servers`,
//! `tools`, `policy` and `execution`, in YAML, TOML or JSON. `document` parses texts to values, `entry` reads one
//! server, whose keys `dialect` has translated from those of other clients, and `env_file` its variables; `local` reads
//! the tools without a server, with `template`s for their arguments, `variables` expands `${…}`, and `conceal` finds
//! secrets; the rules about tools are read by [`Policy`]. [`Sources`] are the files and folders of a
//! configuration; an [`Origin`] detects when they have changed. `commands` finds the programs that are started.

mod commands;
mod conceal;
mod dialect;
mod document;
mod entry;
mod env_file;
mod functions;
mod inherit;
mod local;
mod pinning;
mod presence;
mod sources;
mod template;
mod variables;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::lang::{Limits, Tools};
use crate::server::policy::Policy;

use super::fields::{Wrong, kind, known_keys, scalar, wrong};
use super::text::one_line;
use entry::Entry;
use variables::Scope;

pub use commands::find_command;
pub(in crate::server) use commands::{Commands, Taken};
pub use conceal::Concealed;
pub use dialect::Dialect;
pub use document::read_document;
pub use entry::namespace as server_namespace;
pub use functions::Functions;
pub(in crate::server) use functions::{Answering, Function};
pub use inherit::Inherit;
pub(in crate::server) use local::same_origin;
pub use local::{Action, LocalTool, Words};
pub use pinning::Pinning;
pub use sources::{Origin, Sources};
pub use template::Template;
pub(in crate::server) use template::{Round, rounds};

/// Expands `${NAME}` in a text outside a configuration file.
///
/// # Errors
/// As for [`variables::expand`].
pub(in crate::server) fn expand(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    variables::expand(text, &Scope::new("", variable))
}

/// The downstream servers of one lispbox, in the order of the file, and the rules about their tools.
#[derive(Clone, Debug, Default)]
pub struct Configuration {
    /// The servers, without those marked `disabled`.
    pub servers: Vec<ServerConfig>,
    /// The rules about the tools of all servers; each server can add its own.
    pub policy: Policy,
    /// Limits of every program, by name.
    pub limits: BTreeMap<String, String>,
    /// Idle time after which a server without a setting of its own is stopped; zero means never.
    pub idle: Option<Duration>,
    /// The treatment of changed tools of a server without a setting of its own.
    pub pinning: Option<Pinning>,
    /// False if servers are started by the first call only, also if their tools are not known.
    pub prefetch: Option<bool>,
    /// Descriptions of what was ignored, one sentence each.
    pub warnings: Vec<String>,
    /// The names of the files that were skipped.
    pub unusable: Vec<String>,
    /// Why entries of other clients' files are not used.
    pub wrong_entries: Vec<ConfigurationError>,
    /// Environment variables that all child processes inherit in addition to the usual ones.
    pub inherit: Inherit,
    /// The origin of the configuration, if it can be reloaded.
    pub origin: Option<Origin>,
}

/// The configuration of one downstream server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerConfig {
    /// The name, which is the namespace of its tools.
    pub name: String,
    /// A one-line description; empty if the file has none.
    pub description: String,
    /// The endpoint, or the reason why this configuration cannot work. An unusable server does not affect the others; a
    /// program that names it gets the reason.
    pub endpoint: Result<Endpoint, String>,
    /// The rules about its tools.
    pub policy: Policy,
    /// The timeout of a call of its tools, if configured.
    pub timeout: Option<Duration>,
    /// Timeouts of individual tools, by the name of the tool in any spelling, or a pattern.
    pub tool_timeouts: BTreeMap<String, Duration>,
    /// The timeout of its start, if configured.
    pub start_timeout: Option<Duration>,
    /// Idle time after which it is stopped, if configured; zero means never.
    pub idle: Option<Duration>,
    /// The treatment of its tools that were changed, if configured.
    pub pinning: Option<Pinning>,
    /// Environment variables that its processes inherit in addition to the usual ones.
    pub inherit: Inherit,
    /// The secrets in its configuration.
    pub secrets: Concealed,
    /// The file that defines it, as named by the caller.
    pub file: String,
}

/// The ways to reach a server, or its replacement.
#[derive(Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// A child process that speaks MCP on standard input and output.
    Process {
        /// The program.
        command: String,
        /// The arguments.
        arguments: Vec<String>,
        /// Variables added to the inherited ones.
        environment: BTreeMap<String, String>,
        /// The working folder, if given.
        folder: Option<PathBuf>,
    },
    /// An HTTP address.
    Http {
        /// The address.
        url: String,
        /// The protocol used at the address.
        transport: HttpTransport,
        /// Headers sent with every request.
        headers: BTreeMap<String, String>,
    },
    /// No server: commands and endpoints described in the configuration.
    Local(Vec<LocalTool>),
    /// No server: functions of the host program.
    Functions(Functions),
}

/// Omits the values of variables and headers, which may be secret.
impl fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Process { command, arguments, environment, folder } => formatter
                .debug_struct("Process")
                .field("command", command)
                .field("arguments", arguments)
                .field("environment", &environment.keys())
                .field("folder", folder)
                .finish(),
            Endpoint::Http { url, transport, headers } => formatter
                .debug_struct("Http")
                .field("url", url)
                .field("transport", transport)
                .field("headers", &headers.keys())
                .finish(),
            Endpoint::Local(tools) => formatter.debug_list().entries(tools.iter().map(|tool| &tool.tool.name)).finish(),
            Endpoint::Functions(functions) => functions.fmt(formatter),
        }
    }
}

/// The transports of MCP over HTTP.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum HttpTransport {
    /// Streamable HTTP.
    Streamable,
    /// HTTP with SSE, of revision 2024-11-05: an event stream, and a separate address for sending.
    Sse,
    /// Not configured: streamable HTTP, or the older transport if that is refused.
    Unsaid,
}

/// Reason why a configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigurationError {
    /// The file, as named by the caller.
    pub file: String,
    /// The path of keys, such as `mcpServers.mail.args[1]`; empty for the file as a whole.
    pub path: String,
    /// A description of the expected and the actual value.
    pub message: String,
}

impl fmt::Display for ConfigurationError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            write!(formatter, "{}: {}", self.file, self.message)
        } else {
            write!(formatter, "{}: `{}`: {}", self.file, self.path, self.message)
        }
    }
}

impl std::error::Error for ConfigurationError {}

impl Configuration {
    /// Reads a configuration from the text of a file. The file name determines the format: YAML (`.yaml`, `.yml`), TOML
    /// (`.toml`), or otherwise JSON, with comments and trailing commas allowed. `file` is also the name of the file in
    /// errors, and the base of relative paths in it; `variable` looks up environment variables for `${NAME}`.
    ///
    /// # Errors
    /// Returns an error with the path of keys if the text cannot be parsed or a value has the wrong shape.
    pub fn parse(
        text: &str,
        file: &str,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Configuration, ConfigurationError> {
        let error =
            |path: &str, message: String| ConfigurationError { file: file.to_owned(), path: path.to_owned(), message };
        let root = read_document(text, file).map_err(|message| error("", message))?;
        let Value::Object(root) = root else {
            return Err(error("", format!("expected an object with `mcpServers` or `servers`, got {}", kind(&root))));
        };
        let is_ours = is_ours(&root, file);
        let mut scope = Scope::new(file, variable);
        let mut configuration = Configuration::default();
        let mut found = false;
        for (place, fields) in [("", Some(&root)), ("mcp.", root.get("mcp").and_then(Value::as_object))] {
            let Some(fields) = fields else { continue };
            scope.add_inputs(fields.get("inputs"));
            for key in SERVERS {
                let Some(servers) = fields.get(*key).filter(|servers| !servers.is_null()) else { continue };
                found = true;
                let dialect = Dialect::of(file, key, &root);
                let path = format!("{place}{key}");
                for Listed { path, name, fields } in
                    listed(servers, &path, "server").map_err(|wrong| error(&wrong.path, wrong.message))?
                {
                    if let Some(excluding) = dialect.excludes(&root, &name) {
                        let warning = format!("{file}: server `{name}` is left out, as `{excluding}` says");
                        configuration.warnings.push(warning);
                        continue;
                    }
                    let read = fields.and_then(|fields| {
                        let translated = if is_ours { Ok(fields.clone()) } else { dialect.translated(fields) };
                        let entry = Entry { name: &name, fields: &translated?, scope: &scope, is_ours };
                        entry.read(&mut configuration.warnings)
                    });
                    let read = read.map_err(|wrong| error(&format!("{path}{}", wrong.path), wrong.message));
                    let server = match read {
                        Ok(None) => continue,
                        Ok(Some(server)) => server,
                        Err(error) if is_ours => return Err(error),
                        // The other servers of a client's file are used.
                        Err(error) => match configuration.without(error, &name) {
                            Some(server) => server,
                            None => continue,
                        },
                    };
                    if let Some(other) = configuration.servers.iter().find(|other| other.name == server.name) {
                        let error = error(&path, format!("expected a unique name, got that of `{}`", other.name));
                        if is_ours {
                            return Err(error);
                        }
                        configuration.without(error, "");
                        continue;
                    }
                    configuration.servers.push(server);
                }
            }
        }
        for server in local::read(root.get("local"), &scope).map_err(|wrong| error(&wrong.path, wrong.message))? {
            if configuration.servers.iter().any(|other| other.name == server.name) {
                return Err(error("local", format!("expected a unique name, got that of server `{}`", server.name)));
            }
            configuration.servers.push(server);
        }
        if !found && !OURS.iter().any(|key| root.contains_key(*key)) {
            let keys: Vec<&str> = root.keys().map(String::as_str).take(5).collect();
            let came = if keys.is_empty() { "nothing".into() } else { format!("`{}`", keys.join("`, `")) };
            return Err(error("", format!("expected the key `mcpServers` or `servers`, got {came}")));
        }
        match configuration.policy.read_tools(root.get("tools"), "tools", file) {
            Err(_) if is_a_clients(&root) => {
                configuration.warnings.push(format!("{file}: ignored `tools`, which belongs to the client"));
            }
            read => read.map_err(Wrong::from).map_err(|wrong| error(&wrong.path, wrong.message))?,
        }
        let read = configuration.policy.read_policy(root.get("policy"), "policy", file);
        read.map_err(Wrong::from).map_err(|wrong| error(&wrong.path, wrong.message))?;
        let idle = root.get("execution").and_then(|fields| fields.get("idle_seconds")).filter(|value| !value.is_null());
        let idle = idle.map(|value| entry::idle_seconds("execution.idle_seconds", value)).transpose();
        configuration.idle = idle.map_err(|wrong| error(&wrong.path, wrong.message))?;
        configuration.prefetch = match root.get("execution").and_then(|fields| fields.get("prefetch")) {
            None | Some(Value::Null) => None,
            Some(Value::Bool(prefetch)) => Some(*prefetch),
            Some(other) => {
                let message = format!("expected true or false, got {}", kind(other));
                return Err(error("execution.prefetch", message));
            }
        };
        let inherit = root.get("execution").and_then(|fields| fields.get("inherit"));
        configuration.inherit =
            Inherit::read(inherit, "execution.inherit").map_err(|wrong| error(&wrong.path, wrong.message))?;
        let pinning = root.get("pinning").filter(|value| !value.is_null());
        configuration.pinning = pinning
            .map(|value| Pinning::read("pinning", value))
            .transpose()
            .map_err(|wrong| error(&wrong.path, wrong.message))?;
        configuration.limits = execution(root.get("execution")).map_err(|wrong| error(&wrong.path, wrong.message))?;
        if is_ours {
            let known = SERVERS.iter().chain(OURS).chain(&["inputs", "mcp", "$schema"]).copied();
            known_keys(&root, known, "").map_err(|wrong| error(&wrong.path, wrong.message))?;
        }
        Ok(configuration)
    }

    /// Records that an entry cannot be used; returns a server in its place that says so, unless its name is unusable.
    fn without(&mut self, error: ConfigurationError, name: &str) -> Option<ServerConfig> {
        self.warnings.push(format!("{error}; this server is not used"));
        let reason = match error.path.as_str() {
            "" => error.message.clone(),
            path => format!("`{path}`: {}", error.message),
        };
        let file = error.file.clone();
        self.wrong_entries.push(error);
        let name = entry::namespace(name).ok()?;
        Some(ServerConfig::without_server(name, String::new(), Err(reason), &file))
    }

    /// Adds tools of the host program; they are kept on reload.
    ///
    /// ```
    /// # use lispbox::lang::{Call, Tools};
    /// # use lispbox::server::Configuration;
    /// # #[derive(serde::Deserialize)]
    /// # struct Sum { numbers: Vec<f64> }
    /// let mut tools = Tools::new();
    /// tools.tool("shop/sum", |sum: Sum, _: &Call| Ok(sum.numbers.iter().sum::<f64>())).doc("Adds numbers.");
    /// let mut configuration = Configuration::default();
    /// configuration.add_tools(tools).unwrap();
    /// ```
    ///
    /// # Errors
    /// Returns an error if the name of a server is invalid, or if a server of that name exists. Nothing is added then.
    pub fn add_tools(&mut self, tools: Tools<'static>) -> Result<(), String> {
        let mut added = Vec::new();
        for (server, entries) in tools.into_servers() {
            let name = entry::namespace(&server.name)?;
            if self.servers.iter().any(|other| other.name == name) {
                return Err(format!("expected a unique name, got that of server `{name}`"));
            }
            let endpoint = Ok(Endpoint::Functions(Functions::of(entries)));
            added.push(ServerConfig::without_server(name, one_line(&server.description), endpoint, "this program"));
        }
        self.servers.extend(added);
        Ok(())
    }

    /// Merges the configuration of another file, which takes precedence.
    pub fn merge(&mut self, other: Configuration) {
        for server in other.servers {
            match self.servers.iter_mut().find(|known| known.name == server.name) {
                Some(known) => {
                    let (name, file, before) = (&server.name, &server.file, &known.file);
                    self.warnings.push(format!("{file}: `{name}` overrides the one in {before}"));
                    *known = server;
                }
                None => self.servers.push(server),
            }
        }
        self.policy.merge(other.policy);
        self.limits.extend(other.limits);
        self.idle = other.idle.or(self.idle);
        self.pinning = other.pinning.or(self.pinning);
        self.prefetch = other.prefetch.or(self.prefetch);
        self.inherit.extend(&other.inherit);
        self.warnings.extend(other.warnings);
        self.wrong_entries.extend(other.wrong_entries);
    }
}

/// The keys of server collections: those of other clients, and the native one.
const SERVERS: &[&str] = &["mcpServers", "mcp_servers", "servers"];

/// The other keys of a native file.
const OURS: &[&str] = &["local", "tools", "policy", "pinning", "execution"];

/// True for a file of another client, in which other keys may have any value.
fn is_a_clients(root: &Map<String, Value>) -> bool {
    root.contains_key("mcpServers") || root.contains_key("mcp_servers")
}

/// True for a native file, written for lispbox alone, in which an unknown key is an error.
fn is_ours(root: &Map<String, Value>, file: &str) -> bool {
    let is_list = root.get("servers").is_some_and(Value::is_array);
    let has_ours = OURS.iter().any(|key| root.contains_key(*key));
    !is_a_clients(root) && (is_list || has_ours || document::is_yaml_or_toml(file))
}

/// A server in a file: the path of keys to it, its name and its fields, or why it has none.
struct Listed<'v> {
    path: String,
    name: String,
    fields: Result<&'v Map<String, Value>, Wrong>,
}

/// Returns the servers, or other entries called `what`, of an object or a list.
fn listed<'v>(servers: &'v Value, path: &str, what: &str) -> Result<Vec<Listed<'v>>, Wrong> {
    let fields = |value: &'v Value| match value {
        Value::Object(fields) => Ok(fields),
        other => Err(Wrong { path: String::new(), message: format!("expected an object, got {}", kind(other)) }),
    };
    match servers {
        Value::Object(servers) => {
            let entry = |(name, value): (&String, &'v Value)| Listed {
                path: format!("{path}.{name}"),
                name: name.clone(),
                fields: fields(value),
            };
            Ok(servers.iter().map(entry).collect())
        }
        Value::Array(servers) => servers
            .iter()
            .enumerate()
            .map(|(index, value)| {
                let path = format!("{path}[{index}]");
                let fields = fields(value).map_err(|wrong| Wrong { path: path.clone(), ..wrong })?;
                match fields.get("name") {
                    Some(Value::String(name)) => Ok(Listed { path, name: name.clone(), fields: Ok(fields) }),
                    Some(other) => wrong(format!("{path}.name"), "a string", other),
                    None => Err(Wrong { path, message: format!("a {what} in a list needs the key `name`") }),
                }
            })
            .collect(),
        other => wrong(path, &format!("an object or a list of {what}s"), other),
    }
}

/// Reads the limits from `execution`, by name.
fn execution(value: Option<&Value>) -> Result<BTreeMap<String, String>, Wrong> {
    let mut limits = BTreeMap::new();
    let fields = match value {
        None | Some(Value::Null) => return Ok(limits),
        Some(Value::Object(fields)) => fields,
        Some(other) => return wrong("execution", "an object", other),
    };
    known_keys(
        fields,
        ["timeout_seconds", "max_output_bytes", "idle_seconds", "prefetch", "inherit", "limits"],
        "execution.",
    )?;
    let mut set = |path: String, name: &str, text: String| -> Result<(), Wrong> {
        Limits::default().set(name, &text).map_err(|message| Wrong { path, message })?;
        limits.insert(name.to_owned(), text);
        Ok(())
    };
    for (key, value) in fields {
        let path = format!("execution.{key}");
        match (key.as_str(), value) {
            (_, Value::Null) => {}
            ("timeout_seconds", Value::Number(seconds)) => set(path, "total", format!("{seconds}s"))?,
            ("timeout_seconds", other) => return wrong(path, "a number of seconds", other),
            ("max_output_bytes", Value::Number(bytes)) => set(path, "output", bytes.to_string())?,
            ("max_output_bytes", other) => return wrong(path, "a number of bytes", other),
            ("limits", Value::Object(given)) => {
                for (name, value) in given {
                    let path = format!("execution.limits.{name}");
                    match scalar(value) {
                        Some(text) => set(path, name, text)?,
                        None => return wrong(path, "a number or a string such as `64MiB`", value),
                    }
                }
            }
            ("limits", other) => return wrong(path, "an object of limits", other),
            _ => {}
        }
    }
    Ok(limits)
}

#[cfg(test)]
mod tests;
