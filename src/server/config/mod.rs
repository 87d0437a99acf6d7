//! The configuration file: `mcpServers` as Claude Desktop, Claude Code and other clients write it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

use super::variables;

/// The downstream servers of one lispbox, in the order in which the file names them.
#[derive(Clone, Debug, Default)]
pub struct Configuration {
    /// The servers, without those that are marked `disabled`.
    pub servers: Vec<ServerConfig>,
}

/// How one downstream server is reached.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Its name: the namespace of its tools.
    pub name: String,
    /// One line on what it is for; empty when the file says nothing.
    pub description: String,
    /// How to reach it, or the reason why this configuration cannot work. A server that cannot work
    /// does not keep the others from working; a program that names it sees the reason.
    pub endpoint: Result<Endpoint, String>,
    /// How long one call of its tools may take, where the file says so.
    pub timeout: Option<Duration>,
    /// How long it may take to start, where the file says so.
    pub start_timeout: Option<Duration>,
}

/// The two ways to reach a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A child process that speaks MCP on its standard input and output.
    Process {
        /// The program.
        command: String,
        /// Its arguments.
        arguments: Vec<String>,
        /// Variables added to the environment that it inherits.
        environment: BTreeMap<String, String>,
        /// Its working folder, where one is given.
        folder: Option<PathBuf>,
    },
    /// A streamable HTTP endpoint.
    Http {
        /// The address.
        url: String,
        /// Headers sent with every request.
        headers: BTreeMap<String, String>,
    },
}

/// Why a configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigurationError {
    /// The file, as the caller named it.
    pub file: String,
    /// The path of keys, such as `mcpServers.mail.args[1]`; empty for the file as a whole.
    pub path: String,
    /// What was expected and what came.
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
    /// Reads a configuration from its text: JSON, in which comments and trailing commas are accepted.
    /// `file` is what errors call it, and `variable` looks up the environment for `${NAME}`.
    ///
    /// # Errors
    /// When the text is no JSON or a value has the wrong shape; the message has the path of keys.
    pub fn parse(
        text: &str,
        file: &str,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Configuration, ConfigurationError> {
        let error =
            |path: &str, message: String| ConfigurationError { file: file.to_owned(), path: path.to_owned(), message };
        let root: Value = json5::from_str(text.trim_start_matches('\u{feff}'))
            .map_err(|problem| error("", format!("not readable as JSON: {problem}")))?;
        let Value::Object(root) = root else {
            return Err(error("", format!("expected an object with `mcpServers`, got {}", kind(&root))));
        };
        let servers = match root.get("mcpServers") {
            Some(Value::Object(servers)) => servers,
            Some(other) => {
                return Err(error("mcpServers", format!("expected an object of servers, got {}", kind(other))));
            }
            None => {
                let keys: Vec<&str> = root.keys().map(String::as_str).take(5).collect();
                let came = if keys.is_empty() { "nothing".into() } else { format!("`{}`", keys.join("`, `")) };
                return Err(error("", format!("expected the key `mcpServers`, got {came}")));
            }
        };
        let mut configuration = Configuration::default();
        for (name, value) in servers {
            let path = format!("mcpServers.{name}");
            let Value::Object(fields) = value else {
                return Err(error(&path, format!("expected an object, got {}", kind(value))));
            };
            let readable = namespace(name).map_err(|message| error(&path, message))?;
            if let Some(other) = configuration.servers.iter().find(|server| server.name == readable) {
                return Err(error(&path, format!("expected a name of its own, got that of `{}`", other.name)));
            }
            let entry = Entry { fields, variable };
            let server =
                entry.read(&readable).map_err(|wrong| error(&format!("{path}{}", wrong.path), wrong.message))?;
            configuration.servers.extend(server);
        }
        Ok(configuration)
    }
}

/// The namespace of a server's tools, as in `name/tool`: its name, with `-` for what cannot stand in a
/// symbol, since other clients take names such as `Sequential Thinking`.
fn namespace(name: &str) -> Result<String, String> {
    if name.is_empty() || name.chars().count() > 100 {
        return Err("expected a server name of 1 to 100 characters".into());
    }
    let unreadable = |c: char| c.is_whitespace() || c.is_control() || "()[]{}\"'`~@^;,/\\#".contains(c);
    Ok(name.trim().replace(unreadable, "-"))
}

/// A value of the wrong shape: where inside the server's entry, and what was wrong.
struct Wrong {
    path: String,
    message: String,
}

fn wrong<T>(path: impl Into<String>, expected: &str, came: &Value) -> Result<T, Wrong> {
    Err(Wrong { path: path.into(), message: format!("expected {expected}, got {}", kind(came)) })
}

/// One server's object. Keys that are not known here belong to some client and are left alone.
struct Entry<'a> {
    fields: &'a Map<String, Value>,
    variable: &'a dyn Fn(&str) -> Option<String>,
}

impl Entry<'_> {
    fn read(&self, name: &str) -> Result<Option<ServerConfig>, Wrong> {
        if self.boolean("disabled")? == Some(true) || self.boolean("enabled")? == Some(false) {
            return Ok(None);
        }
        let kind = self.text("type")?.or(self.text("transport")?);
        let command = self.text("command")?;
        let url = self.text("url")?;
        let arguments = self.texts("args")?;
        let environment = self.table("env")?;
        let headers = self.table("headers")?;
        let folder = self.text("cwd")?;
        let endpoint = match (kind.as_deref(), command, url) {
            (Some("sse"), ..) => Err(
                "the `sse` transport is not supported; use `\"type\": \"http\"` with the server's streamable HTTP address"
                    .to_owned(),
            ),
            (None | Some("stdio"), Some(command), None) => {
                self.process(command, arguments, environment, folder)
            }
            (None | Some("http" | "streamable-http" | "streamableHttp" | "streamable_http"), None, Some(url)) => {
                self.http(url, headers)
            }
            (Some("stdio"), None, _) => return Err(self.missing("command", "a server of type `stdio`")),
            (Some("http" | "streamable-http" | "streamableHttp" | "streamable_http"), _, None) => {
                return Err(self.missing("url", "a server of type `http`"));
            }
            (Some(kind), ..) if !matches!(kind, "stdio" | "http" | "streamable-http" | "streamableHttp" | "streamable_http") => {
                return Err(Wrong {
                    path: ".type".into(),
                    message: format!("expected `stdio`, `http` or `streamable-http`, got `{kind}`"),
                });
            }
            (_, Some(_), Some(_)) => {
                return Err(Wrong {
                    path: String::new(),
                    message: "expected either `command` or `url`, got both".into(),
                });
            }
            _ => return Err(self.missing("command` or `url", "a server")),
        };
        Ok(Some(ServerConfig {
            name: name.to_owned(),
            description: one_line(&self.text("description")?.unwrap_or_default()),
            endpoint,
            timeout: self.seconds("timeout_seconds")?,
            start_timeout: self.seconds("start_timeout_seconds")?,
        }))
    }

    fn missing(&self, key: &str, what: &str) -> Wrong {
        let keys: Vec<&str> = self.fields.keys().map(String::as_str).take(8).collect();
        let came = if keys.is_empty() { "an empty object".into() } else { format!("`{}`", keys.join("`, `")) };
        Wrong { path: String::new(), message: format!("{what} needs the key `{key}`, got {came}") }
    }

    fn process(
        &self,
        command: String,
        arguments: Vec<String>,
        environment: BTreeMap<String, String>,
        folder: Option<String>,
    ) -> Result<Endpoint, String> {
        Ok(Endpoint::Process {
            command: self.expand(&command)?,
            arguments: arguments.iter().map(|text| self.expand(text)).collect::<Result<_, _>>()?,
            environment: self.expand_all(environment)?,
            folder: folder.map(|folder| self.expand(&folder)).transpose()?.map(PathBuf::from),
        })
    }

    fn http(&self, url: String, headers: BTreeMap<String, String>) -> Result<Endpoint, String> {
        let url = self.expand(&url)?;
        if !(url.starts_with("http://") || url.starts_with("https://")) {
            return Err("expected a `url` that begins with `http://` or `https://`".into());
        }
        Ok(Endpoint::Http { url, headers: self.expand_all(headers)? })
    }

    fn expand(&self, text: &str) -> Result<String, String> {
        variables::expand(text, self.variable)
    }

    fn expand_all(&self, table: BTreeMap<String, String>) -> Result<BTreeMap<String, String>, String> {
        table.into_iter().map(|(key, text)| Ok((key, self.expand(&text)?))).collect()
    }

    /// A field, where `null` counts as absent.
    fn field(&self, key: &str) -> Option<&Value> {
        self.fields.get(key).filter(|value| !value.is_null())
    }

    fn text(&self, key: &str) -> Result<Option<String>, Wrong> {
        match self.field(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => wrong(format!(".{key}"), "text", other),
        }
    }

    fn boolean(&self, key: &str) -> Result<Option<bool>, Wrong> {
        match self.field(key) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(*value)),
            Some(other) => wrong(format!(".{key}"), "true or false", other),
        }
    }

    fn seconds(&self, key: &str) -> Result<Option<Duration>, Wrong> {
        let Some(value) = self.field(key) else { return Ok(None) };
        let duration = value
            .as_f64()
            .filter(|seconds| *seconds > 0.0)
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        match duration {
            Some(duration) => Ok(Some(duration)),
            None => wrong(format!(".{key}"), "a number of seconds above 0", value),
        }
    }

    fn texts(&self, key: &str) -> Result<Vec<String>, Wrong> {
        let items = match self.field(key) {
            None => return Ok(Vec::new()),
            Some(Value::Array(items)) => items,
            Some(other) => return wrong(format!(".{key}"), "an array of texts", other),
        };
        items
            .iter()
            .enumerate()
            .map(|(index, item)| scalar(item).map_or_else(|| wrong(format!(".{key}[{index}]"), "text", item), Ok))
            .collect()
    }

    fn table(&self, key: &str) -> Result<BTreeMap<String, String>, Wrong> {
        let items = match self.field(key) {
            None => return Ok(BTreeMap::new()),
            Some(Value::Object(items)) => items,
            Some(other) => return wrong(format!(".{key}"), "an object of texts", other),
        };
        items
            .iter()
            .map(|(name, item)| match scalar(item) {
                Some(text) => Ok((name.clone(), text)),
                None => wrong(format!(".{key}.{name}"), "text", item),
            })
            .collect()
    }
}

/// Numbers and booleans stand for their text, as people write `"env": {"PORT": 8080}`.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        _ => None,
    }
}

/// What a JSON value is, for the second half of "expected …, got …".
pub(super) fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(value) => format!("the boolean `{value}`"),
        Value::Number(number) => format!("the number `{number}`"),
        Value::String(text) => format!("the text {:?}", cut(text, 60)),
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(fields) => format!("an object of {}", fields.len()),
    }
}

/// At most `most` characters of a text, with a mark where it was cut.
pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A text on one line, cut to a length that fits into a listing.
pub(super) fn one_line(text: &str) -> String {
    cut(&text.split_whitespace().collect::<Vec<_>>().join(" "), 200)
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
