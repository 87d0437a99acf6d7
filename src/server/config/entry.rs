//! Parsing of one server of a configuration.
//!
//! Clients add keys of their own to those that describe how a server is reached. Keys that lispbox understands apply,
//! others are ignored with a warning. In a native file an unknown key is an error, as is a misspelled key in any file
//! if it resembles one that only lispbox has.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::lang::internal::closest;
use crate::server::fields::{Wrong, given, known_keys, scalar, wrong};
use crate::server::policy::{ToolPattern, is_unreadable};
use crate::server::text::one_line;

use super::env_file;
use super::variables::{Scope, expand};
use super::{Concealed, Endpoint, HttpTransport, Inherit, Pinning, Policy, ServerConfig};

/// The keys that a server may have in a native file.
const KEYS: &[&str] = &[
    "name",
    "description",
    "type",
    "transport",
    "command",
    "args",
    "env",
    "envFile",
    "inherit",
    "env_file",
    "cwd",
    "url",
    "headers",
    "tools",
    "policy",
    "timeout_seconds",
    "start_timeout_seconds",
    "tool_timeout_seconds",
    "idle_seconds",
    "pinning",
    "disabled",
    "enabled",
];

/// The keys among them that no other client has.
const OURS: &[&str] = &[
    "description",
    "inherit",
    "policy",
    "timeout_seconds",
    "start_timeout_seconds",
    "tool_timeout_seconds",
    "idle_seconds",
    "pinning",
];

/// The supported keys of other clients.
const UNDERSTOOD: &[&str] = &["httpUrl", "serverUrl", "disabledTools", "excludeTools", "includeTools", "enabledTools"];

/// The keys of other clients that are ignored without a warning, because they have no effect on calls.
const IDLE: &[&str] = &["gallery", "id", "icon", "displayName", "version"];

/// The object of one server.
pub(super) struct Entry<'a> {
    /// The name, as in the file.
    pub(super) name: &'a str,
    pub(super) fields: &'a Map<String, Value>,
    pub(super) scope: &'a Scope<'a>,
    /// True in a native file.
    pub(super) is_ours: bool,
}

impl Entry<'_> {
    /// Reads the server, unless it is marked as disabled; adds ignored keys to the warnings.
    pub(super) fn read(&self, warnings: &mut Vec<String>) -> Result<Option<ServerConfig>, Wrong> {
        let name = namespace(self.name).map_err(|message| Wrong { path: String::new(), message })?;
        if self.is_left_out()? {
            return Ok(None);
        }
        self.check_keys(warnings)?;
        let mut policy = Policy::default();
        policy.read_tools(self.field("tools"), ".tools", self.scope.file)?;
        policy.read_policy(self.field("policy"), ".policy", self.scope.file)?;
        for (key, only) in
            [("includeTools", true), ("enabledTools", true), ("excludeTools", false), ("disabledTools", false)]
        {
            if let Some(list) = self.field(key) {
                policy.read_list(only, list, key, self.scope.file)?;
            }
        }
        let endpoint = self.endpoint()?;
        warnings.extend(self.scope.take_notes());
        Ok(Some(ServerConfig {
            name,
            description: one_line(&self.text("description")?.unwrap_or_default()),
            inherit: Inherit::read(self.field("inherit"), ".inherit")?,
            secrets: Concealed::of(&endpoint, self.scope.take_secrets()),
            endpoint,
            policy,
            timeout: self.seconds("timeout_seconds")?,
            tool_timeouts: self.tool_timeouts()?,
            start_timeout: self.seconds("start_timeout_seconds")?,
            idle: self.field("idle_seconds").map(|value| idle_seconds(".idle_seconds", value)).transpose()?,
            pinning: self.field("pinning").map(|value| Pinning::read(".pinning", value)).transpose()?,
            file: self.scope.file.to_owned(),
        }))
    }

    /// True if it is marked as disabled and must be ignored.
    pub(super) fn is_left_out(&self) -> Result<bool, Wrong> {
        Ok(self.boolean("disabled")? == Some(true) || self.boolean("enabled")? == Some(false))
    }

    fn check_keys(&self, warnings: &mut Vec<String>) -> Result<(), Wrong> {
        let known = KEYS.iter().copied();
        if self.is_ours {
            return known_keys(self.fields, known.chain(UNDERSTOOD.iter().copied()), ".");
        }
        let is_known = |key: &str| [KEYS, UNDERSTOOD, IDLE].iter().any(|keys| keys.contains(&key));
        let mut passed = Vec::new();
        for (key, _) in self.fields.iter().filter(|(key, value)| !is_known(key) && !value.is_null()) {
            if key != "timeout"
                && let Some(meant) = closest(key, OURS.iter().copied())
            {
                let message = format!("there is no such key; did you mean `{meant}`?");
                return Err(Wrong { path: format!(".{key}"), message });
            }
            passed.push(match (key.as_str(), closest(key, KEYS.iter().copied())) {
                ("timeout", _) => "`timeout` (its unit differs by client: `timeout_seconds` is ours)".to_owned(),
                ("autoApprove" | "alwaysAllow" | "trust", _) | (_, None) => format!("`{key}`"),
                (_, Some(meant)) => format!("`{key}` (did you mean `{meant}`?)"),
            });
        }
        if !passed.is_empty() {
            warnings.push(format!("{}: server `{}`: ignored {}", self.scope.file, self.name, passed.join(", ")));
        }
        Ok(())
    }

    fn endpoint(&self) -> Result<Result<Endpoint, String>, Wrong> {
        let kind = match self.text("type")? {
            Some(kind) => Some(("type", kind)),
            None => self.text("transport")?.map(|kind| ("transport", kind)),
        };
        let (key, kind) = kind.unzip();
        let command = self.text("command")?;
        let mut url = self.text("url")?;
        for key in ["httpUrl", "serverUrl"] {
            url = url.or(self.text(key)?);
        }
        let process = self.process_parts()?;
        let headers = self.table("headers")?;
        const HTTP: &[&str] = &["http", "streamable-http", "streamableHttp", "streamable_http"];
        Ok(match (kind.as_deref(), command, url) {
            (None | Some("stdio"), Some(command), None) => self.process(command, process),
            (None, None, Some(url)) => self.http(url, HttpTransport::Unsaid, headers),
            (Some("stdio"), None, _) => return Err(self.missing("command", "a server of type `stdio`")),
            (Some(kind), _, None) if HTTP.contains(&kind) => {
                return Err(self.missing("url", "a server of type `http`"));
            }
            (Some("sse"), _, None) => return Err(self.missing("url", "a server of type `sse`")),
            (Some("sse"), None, Some(url)) => self.http(url, HttpTransport::Sse, headers),
            (Some(kind), None, Some(url)) if HTTP.contains(&kind) => self.http(url, HttpTransport::Streamable, headers),
            (Some(kind), ..) if !["stdio", "sse"].contains(&kind) && !HTTP.contains(&kind) => {
                return Err(Wrong {
                    path: format!(".{}", key.unwrap_or_default()),
                    message: format!("expected `stdio`, `http`, `streamable-http` or `sse`, got `{kind}`"),
                });
            }
            (_, Some(_), Some(_)) => {
                let message = "expected either `command` or `url`, got both".into();
                return Err(Wrong { path: String::new(), message });
            }
            _ => return Err(self.missing("command` or `url", "a server")),
        })
    }

    fn missing(&self, key: &str, what: &str) -> Wrong {
        let keys: Vec<&str> = self.fields.keys().map(String::as_str).take(8).collect();
        let came = if keys.is_empty() { "an empty object".into() } else { format!("`{}`", keys.join("`, `")) };
        Wrong { path: String::new(), message: format!("{what} needs the key `{key}`, got {came}") }
    }

    fn process_parts(&self) -> Result<Process, Wrong> {
        Ok(Process {
            arguments: self.texts("args")?,
            environment: self.table("env")?,
            variables: self.text("envFile")?.or(self.text("env_file")?),
            folder: self.text("cwd")?,
        })
    }

    fn process(&self, command: String, parts: Process) -> Result<Endpoint, String> {
        let mut environment = BTreeMap::new();
        if let Some(file) = parts.variables {
            let path = self.scope.path(&expand(&file, self.scope)?);
            // Omit the folder, since programs see why a server cannot be used.
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let read = env_file::read(&path).map_err(|problem| format!("its `envFile` {name}: {problem}"))?;
            if let Some(note) = read.note() {
                self.scope.note(format!("{}: server `{}`: `envFile` {name}: {note}", self.scope.file, self.name));
            }
            environment.extend(read.values);
        }
        environment.extend(self.expand_all(parts.environment)?);
        Ok(Endpoint::Process {
            command: expand(&command, self.scope)?,
            arguments: parts.arguments.iter().map(|text| expand(text, self.scope)).collect::<Result<_, _>>()?,
            environment,
            folder: parts.folder.map(|folder| expand(&folder, self.scope)).transpose()?.map(PathBuf::from),
        })
    }

    fn http(
        &self,
        url: String,
        transport: HttpTransport,
        headers: BTreeMap<String, String>,
    ) -> Result<Endpoint, String> {
        let url = expand(&url, self.scope)?.trim().to_owned();
        if !(url.starts_with("http://") || url.starts_with("https://")) {
            return Err("expected a `url` that begins with `http://` or `https://`".into());
        }
        Ok(Endpoint::Http { url, transport, headers: self.expand_all(headers)? })
    }

    pub(super) fn expand_all(&self, table: BTreeMap<String, String>) -> Result<BTreeMap<String, String>, String> {
        table.into_iter().map(|(key, text)| Ok((key, expand(&text, self.scope)?))).collect()
    }

    fn tool_timeouts(&self) -> Result<BTreeMap<String, Duration>, Wrong> {
        let fields = match self.field("tool_timeout_seconds") {
            None => return Ok(BTreeMap::new()),
            Some(Value::Object(fields)) => fields,
            Some(other) => return wrong(".tool_timeout_seconds", "an object from tools to seconds", other),
        };
        let timeouts = fields.iter().filter(|(_, value)| !value.is_null());
        let timeout = |(tool, value): (&String, &Value)| {
            let path = format!(".tool_timeout_seconds.{tool}");
            ToolPattern::new(tool).map_err(|message| Wrong { path: path.clone(), message })?;
            Ok((tool.clone(), seconds(&path, value)?))
        };
        timeouts.map(timeout).collect()
    }

    /// Returns a field; `null` counts as absent.
    pub(super) fn field(&self, key: &str) -> Option<&Value> {
        given(self.fields, key)
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<String>, Wrong> {
        match self.field(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => wrong(format!(".{key}"), "a string", other),
        }
    }

    pub(super) fn boolean(&self, key: &str) -> Result<Option<bool>, Wrong> {
        match self.field(key) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(*value)),
            Some(other) => wrong(format!(".{key}"), "true or false", other),
        }
    }

    pub(super) fn seconds(&self, key: &str) -> Result<Option<Duration>, Wrong> {
        self.field(key).map(|value| seconds(&format!(".{key}"), value)).transpose()
    }

    fn texts(&self, key: &str) -> Result<Vec<String>, Wrong> {
        let items = match self.field(key) {
            None => return Ok(Vec::new()),
            Some(Value::Array(items)) => items,
            Some(other) => return wrong(format!(".{key}"), "an array of strings", other),
        };
        items
            .iter()
            .enumerate()
            .map(|(index, item)| scalar(item).map_or_else(|| wrong(format!(".{key}[{index}]"), "a string", item), Ok))
            .collect()
    }

    pub(super) fn table(&self, key: &str) -> Result<BTreeMap<String, String>, Wrong> {
        let items = match self.field(key) {
            None => return Ok(BTreeMap::new()),
            Some(Value::Object(items)) => items,
            Some(other) => return wrong(format!(".{key}"), "an object of strings", other),
        };
        items
            .iter()
            .map(|(name, item)| match scalar(item) {
                Some(text) => Ok((name.clone(), text)),
                None => wrong(format!(".{key}.{name}"), "a string", item),
            })
            .collect()
    }
}

/// The parameters of a process, before variables are expanded.
struct Process {
    arguments: Vec<String>,
    environment: BTreeMap<String, String>,
    /// A file of further variables.
    variables: Option<String>,
    folder: Option<String>,
}

/// Parses an idle time; 0 means no limit.
pub(super) fn idle_seconds(path: &str, value: &Value) -> Result<Duration, Wrong> {
    match value.as_f64().map(Duration::try_from_secs_f64) {
        Some(Ok(duration)) => Ok(duration),
        _ => wrong(path, "a number of seconds, or 0 for never", value),
    }
}

fn seconds(path: &str, value: &Value) -> Result<Duration, Wrong> {
    let seconds = value.as_f64().filter(|seconds| *seconds > 0.0);
    match seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()) {
        Some(duration) => Ok(duration),
        None => wrong(path, "a number of seconds above 0", value),
    }
}

/// Returns the namespace of a server's tools, as in `name/tool`: its name, with `-` in place of characters that a
/// symbol cannot contain, since other clients accept names such as `Sequential Thinking`.
///
/// # Errors
/// Returns an error if the name is empty or too long.
pub fn namespace(name: &str) -> Result<String, String> {
    let name = name.trim();
    if name.is_empty() || name.chars().count() > 100 {
        return Err("expected a server name of 1 to 100 characters".into());
    }
    Ok(name.replace(is_unreadable, "-"))
}
