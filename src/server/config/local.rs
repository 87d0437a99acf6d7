//! Tools of a configuration without a server: a command or an HTTP endpoint, with the schema of its arguments.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::lang::internal::closest;
use crate::lang::{Tool, ToolHints};
use crate::server::fields::{Wrong, known_keys, wrong};

use super::entry::{Entry, namespace};
use super::template::Template;
use super::variables::{Scope, expand};
use super::{Endpoint, Inherit, Listed, ServerConfig, listed};

/// The namespace of tools whose names have none.
const NAMESPACE: &str = "local";

const KEYS: &[&str] = &[
    "name",
    "description",
    "parameters",
    "command",
    "args",
    "env",
    "inherit",
    "cwd",
    "stdin",
    "url",
    "method",
    "query",
    "headers",
    "body",
    "timeout_seconds",
    "max_output_bytes",
    "read_only",
    "destructive",
    "idempotent",
    "disabled",
    "enabled",
];

/// The keys that only a command has, and those that only an endpoint has.
const OF_COMMANDS: &[&str] = &["args", "env", "inherit", "cwd", "stdin"];
const OF_ENDPOINTS: &[&str] = &["method", "query", "headers", "body"];

/// The HTTP methods that an endpoint may use.
const METHODS: &[&str] = &["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"];

/// Headers that determine the target host or the length of a request.
const FIXED_HEADERS: &[&str] = &["host", "connection", "content-length", "transfer-encoding"];

/// The error message about an address that is not [settled](is_settled).
const UNSETTLED: &str = "expected an address that begins with `http://` or `https://` and a host without arguments";

/// A tool without a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalTool {
    /// The description of the tool, as visible to programs.
    pub tool: Tool,
    /// The action of a call.
    pub action: Action,
    /// Maximum size of its output, in bytes; `None` means the limit for servers.
    pub most_output: Option<usize>,
}

/// The action of a call of a tool without a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Runs a command, without a shell.
    Command {
        /// The program.
        program: String,
        /// The arguments.
        words: Vec<Words>,
        /// Variables added to the inherited ones.
        environment: BTreeMap<String, String>,
        /// Variables that it inherits in addition to the usual ones.
        inherit: Inherit,
        /// The working folder, if given.
        folder: Option<PathBuf>,
        /// True if the arguments without a placeholder are passed as JSON on standard input.
        takes_json: bool,
    },
    /// Sends a request to an HTTP endpoint.
    Request {
        /// `GET`, `POST`, ….
        method: String,
        /// The address.
        url: Template,
        /// Parameters appended to the address after `?`.
        query: Vec<(String, Template)>,
        /// Headers.
        headers: Vec<(String, Template)>,
        /// True if the arguments without a placeholder are sent as the body, as JSON.
        takes_json: bool,
    },
}

/// Words of a command that are included or omitted together, and repeated for each item of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    /// The argument that must be true for the words to be included.
    pub condition: Option<String>,
    /// The words.
    pub templates: Vec<Template>,
}

impl Words {
    /// Returns the arguments without which the words are omitted.
    pub(in crate::server) fn arguments(&self) -> impl Iterator<Item = &str> {
        self.templates.iter().flat_map(Template::arguments)
    }
}

impl Action {
    /// Returns the arguments that have a placeholder.
    pub(in crate::server) fn placed(&self) -> Vec<&str> {
        match self {
            Action::Command { words, .. } => {
                let conditions = words.iter().filter_map(|words| words.condition.as_deref());
                conditions.chain(words.iter().flat_map(Words::arguments)).collect()
            }
            Action::Request { url, query, headers, .. } => {
                let named = query.iter().chain(headers).map(|(_, template)| template);
                std::iter::once(url).chain(named).flat_map(Template::arguments).collect()
            }
        }
    }

    fn takes_json(&self) -> bool {
        let (Action::Command { takes_json, .. } | Action::Request { takes_json, .. }) = self;
        *takes_json
    }
}

/// Reads the tools and groups them by namespace; a tool that is unusable makes its namespace unusable, with the reason.
pub(super) fn read(tools: Option<&Value>, scope: &Scope<'_>) -> Result<Vec<ServerConfig>, Wrong> {
    let mut servers: Vec<ServerConfig> = Vec::new();
    let Some(tools) = tools.filter(|tools| !tools.is_null()) else { return Ok(servers) };
    for Listed { path, name, fields } in listed(tools, "local", "tool")? {
        let within = |wrong: Wrong| Wrong { path: format!("{path}{}", wrong.path), ..wrong };
        let fields = fields.map_err(within)?;
        let (server, tool) = name.split_once('/').unwrap_or((NAMESPACE, &name));
        let entry = Entry { name: tool, fields, scope, is_ours: true };
        if entry.is_left_out().map_err(within)? {
            continue;
        }
        let at_fault = |message| within(Wrong { path: String::new(), message });
        let server = namespace(server).map_err(at_fault)?;
        if tool.is_empty() || tool.contains(|c: char| c == '/' || c.is_whitespace() || c.is_control()) {
            return Err(at_fault(format!("expected a name such as `git/log`, got `{name}`")));
        }
        let timeout = entry.seconds("timeout_seconds").map_err(within)?;
        let read = Reading { entry, server: server.clone() }.read().map_err(within)?;
        let at = servers.iter().position(|known| known.name == server).unwrap_or_else(|| {
            let none = Ok(Endpoint::Local(Vec::new()));
            servers.push(ServerConfig::without_server(server.clone(), String::new(), none, scope.file));
            servers.len() - 1
        });
        let known = &mut servers[at];
        known.secrets.add(read.as_ref().ok().map(|tool| &tool.action), scope.take_secrets());
        known.tool_timeouts.extend(timeout.map(|timeout| (tool.to_owned(), timeout)));
        match (&mut known.endpoint, read) {
            (Ok(Endpoint::Local(tools)), Ok(read)) if tools.iter().any(|other| other.tool.name == read.tool.name) => {
                return Err(at_fault(format!("expected a unique name, got that of another tool: `{server}/{tool}`")));
            }
            (Ok(Endpoint::Local(tools)), Ok(read)) => tools.push(read),
            (endpoint @ Ok(_), Err(reason)) => *endpoint = Err(format!("`{server}/{tool}`: {reason}")),
            (Err(_), _) | (Ok(_), Ok(_)) => {}
        }
    }
    Ok(servers)
}

impl ServerConfig {
    /// Creates a namespace of tools without a server.
    pub(super) fn without_server(
        name: String,
        description: String,
        endpoint: Result<Endpoint, String>,
        file: &str,
    ) -> ServerConfig {
        ServerConfig {
            name,
            description,
            endpoint,
            policy: Default::default(),
            timeout: None,
            tool_timeouts: BTreeMap::new(),
            start_timeout: None,
            idle: None,
            pinning: None,
            inherit: Inherit::default(),
            secrets: Default::default(),
            file: file.to_owned(),
        }
    }
}

/// Parses the object of one tool.
struct Reading<'a> {
    entry: Entry<'a>,
    server: String,
}

impl Reading<'_> {
    fn read(&self) -> Result<Result<LocalTool, String>, Wrong> {
        let entry = &self.entry;
        known_keys(entry.fields, KEYS.iter().copied(), ".")?;
        let (command, url) = (entry.text("command")?, entry.text("url")?);
        let (action, others, what) = match (command, url) {
            (Some(program), None) => (self.command(&program)?, OF_ENDPOINTS, "a command"),
            (None, Some(url)) => (self.request(&url)?, OF_COMMANDS, "an endpoint"),
            (Some(_), Some(_)) => return Err(self.wrong("", "expected either `command` or `url`, got both")),
            (None, None) => return Err(self.wrong("", "a tool needs the key `command` or `url`")),
        };
        if let Some(other) = others.iter().find(|key| entry.field(key).is_some()) {
            return Err(self.wrong(&format!(".{other}"), &format!("{what} has no `{other}`")));
        }
        let most_output = match entry.field("max_output_bytes") {
            None => None,
            Some(value) => {
                match value.as_u64().and_then(|bytes| usize::try_from(bytes).ok()).filter(|bytes| *bytes > 0) {
                    Some(bytes) => Some(bytes),
                    None => return wrong(".max_output_bytes", "a number of bytes above 0", value),
                }
            }
        };
        let input_schema = self.schema(&action)?;
        let tool = Tool {
            server: self.server.clone(),
            name: entry.name.to_owned(),
            description: entry.text("description")?.unwrap_or_default().trim().to_owned(),
            input_schema,
            hints: ToolHints {
                read_only: entry.boolean("read_only")?,
                destructive: entry.boolean("destructive")?,
                idempotent: entry.boolean("idempotent")?,
            },
            ..Tool::default()
        };
        Ok(self.expanded(action).map(|action| LocalTool { tool, action, most_output }))
    }

    /// Returns the schema of the arguments, which must declare every placeholder. By default it forbids other
    /// arguments, unless the tool takes those without a placeholder as JSON.
    fn schema(&self, action: &Action) -> Result<Value, Wrong> {
        let mut schema = match self.entry.field("parameters") {
            None => Map::new(),
            Some(Value::Object(schema)) => schema.clone(),
            Some(other) => return wrong(".parameters", "a JSON Schema of an object", other),
        };
        let kind = schema.entry("type").or_insert_with(|| json!("object"));
        if kind != "object" {
            let message = format!("expected the `type` of all arguments to be `object`, got {kind}");
            return Err(self.wrong(".parameters.type", &message));
        }
        let properties = schema.entry("properties").or_insert_with(|| json!({}));
        let Some(properties) = properties.as_object().cloned() else {
            return wrong(".parameters.properties", "an object from arguments to their schemas", properties);
        };
        if let Some(name) = action.placed().into_iter().find(|name| !properties.contains_key(*name)) {
            let close = closest(name, properties.keys().map(String::as_str));
            let meant = close.map_or_else(String::new, |close| format!("; did you mean `{{{close}}}`?"));
            return Err(self.wrong("", &format!("`{{{name}}}` is not one of the `properties` of `parameters`{meant}")));
        }
        if !action.takes_json() {
            schema.entry("additionalProperties").or_insert(Value::Bool(false));
        }
        if let Action::Request { url, .. } = action {
            let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
            let is_there = |name: &str| {
                required.iter().any(|one| one == name)
                    || properties.get(name).is_some_and(|one| one.get("default").is_some())
            };
            if let Some(name) = url.arguments().find(|name| !is_there(name)) {
                let message = format!("the address needs `{name}`: expected it in `required`, or with a `default`");
                return Err(self.wrong(".parameters", &message));
            }
        }
        let schema = Value::Object(schema);
        match jsonschema::options().should_validate_formats(false).build(&schema) {
            Ok(_) => Ok(schema),
            Err(problem) => Err(self.wrong(".parameters", &format!("expected a JSON Schema: {problem}"))),
        }
    }

    fn command(&self, program: &str) -> Result<Action, Wrong> {
        let items = match self.entry.field("args") {
            None => &[][..],
            Some(Value::Array(items)) => items,
            Some(other) => return wrong(".args", "a list of words", other),
        };
        let words = items.iter().enumerate().map(|(index, item)| self.words(item, &format!(".args[{index}]")));
        Ok(Action::Command {
            program: program.to_owned(),
            words: words.collect::<Result<_, _>>()?,
            environment: self.entry.table("env")?,
            inherit: Inherit::read(self.entry.field("inherit"), ".inherit")?,
            folder: self.entry.text("cwd")?.map(PathBuf::from),
            takes_json: self.takes_json("stdin")?,
        })
    }

    /// Parses a word, words that belong together, or `{argument: words}` for words that are included if the argument is
    /// true.
    fn words(&self, item: &Value, path: &str) -> Result<Words, Wrong> {
        match item {
            Value::Array(items) => {
                let templates = items.iter().map(|item| self.template(item, path)).collect::<Result<_, _>>()?;
                Ok(Words { condition: None, templates })
            }
            Value::Object(fields) => match fields.iter().next().filter(|_| fields.len() == 1) {
                Some((name, words @ (Value::Array(_) | Value::String(_)))) => {
                    Ok(Words { condition: Some(name.clone()), ..self.words(words, path)? })
                }
                _ => wrong(path, "one argument with the words to add when it is true, such as `{all: --all}`", item),
            },
            word => Ok(Words { condition: None, templates: vec![self.template(word, path)?] }),
        }
    }

    fn request(&self, url: &str) -> Result<Action, Wrong> {
        let url = Template::parse(url).map_err(|message| self.wrong(".url", &message))?;
        // An address with variables is checked after their expansion.
        if !url.has_variables() && !is_settled(&url) {
            return Err(self.wrong(".url", UNSETTLED));
        }
        let takes_json = self.takes_json("body")?;
        let method = self.entry.text("method")?.unwrap_or_else(|| if takes_json { "POST" } else { "GET" }.to_owned());
        if !METHODS.contains(&method.as_str()) {
            return Err(self.wrong(".method", &format!("expected `{}`, got `{method}`", METHODS.join("`, `"))));
        }
        Ok(Action::Request { method, url, query: self.templates("query")?, headers: self.headers()?, takes_json })
    }

    /// Returns the headers. Those that determine the target or the length of a request must not have placeholders.
    fn headers(&self) -> Result<Vec<(String, Template)>, Wrong> {
        let headers = self.templates("headers")?;
        let is_fixed = |name: &str| FIXED_HEADERS.iter().any(|fixed| name.trim().eq_ignore_ascii_case(fixed));
        match headers.iter().find(|(name, template)| is_fixed(name) && template.arguments().next().is_some()) {
            Some((name, _)) => Err(self.wrong(&format!(".headers.{name}"), "expected a header without arguments")),
            None => Ok(headers),
        }
    }

    fn takes_json(&self, key: &str) -> Result<bool, Wrong> {
        match self.entry.text(key)?.as_deref() {
            None => Ok(false),
            Some("json") => Ok(true),
            Some(other) => Err(self.wrong(&format!(".{key}"), &format!("expected `json`, got `{other}`"))),
        }
    }

    fn templates(&self, key: &str) -> Result<Vec<(String, Template)>, Wrong> {
        let fields = match self.entry.field(key) {
            None => return Ok(Vec::new()),
            Some(Value::Object(fields)) => fields,
            Some(other) => return wrong(format!(".{key}"), "an object of strings", other),
        };
        let fields = fields.iter();
        fields.map(|(name, item)| Ok((name.clone(), self.template(item, &format!(".{key}.{name}"))?))).collect()
    }

    fn template(&self, item: &Value, path: &str) -> Result<Template, Wrong> {
        let Some(text) = crate::server::fields::scalar(item) else { return wrong(path, "a string", item) };
        Template::parse(&text).map_err(|message| self.wrong(path, &message))
    }

    /// Returns the action with its variables expanded.
    fn expanded(&self, action: Action) -> Result<Action, String> {
        let scope = self.entry.scope;
        let variable = |text: &str| expand(text, scope);
        let named = |templates: Vec<(String, Template)>| -> Result<Vec<(String, Template)>, String> {
            templates.into_iter().map(|(name, template)| Ok((name, template.expanded(&variable)?))).collect()
        };
        match action {
            Action::Command { program, words, environment, inherit, folder, takes_json } => {
                let words = words.into_iter().map(|words| {
                    let templates = words.templates.into_iter().map(|template| template.expanded(&variable));
                    Ok(Words { templates: templates.collect::<Result<_, String>>()?, ..words })
                });
                let program = expand(&program, scope)?;
                let is_path = program.starts_with("./") || program.starts_with("../") || program.starts_with("~/");
                Ok(Action::Command {
                    program: if is_path { absolute(scope, &program).display().to_string() } else { program },
                    words: words.collect::<Result<_, String>>()?,
                    environment: self.entry.expand_all(environment)?,
                    inherit,
                    folder: folder
                        .map(|folder| Ok::<_, String>(absolute(scope, &expand(&folder.to_string_lossy(), scope)?)))
                        .transpose()?,
                    takes_json,
                })
            }
            Action::Request { method, url, query, headers, takes_json } => {
                let url = url.expanded(&variable)?;
                if !is_settled(&url) {
                    return Err(format!("`url`: {UNSETTLED}; a `/` after the host and its port ends them"));
                }
                Ok(Action::Request { method, url, query: named(query)?, headers: named(headers)?, takes_json })
            }
        }
    }

    fn wrong(&self, path: &str, message: &str) -> Wrong {
        Wrong { path: path.to_owned(), message: message.to_owned() }
    }
}

/// True for addresses with the same scheme, user, password, host and port.
pub(in crate::server) fn same_origin(one: &reqwest::Url, other: &reqwest::Url) -> bool {
    let parts = |url: &reqwest::Url| {
        let user = (url.username().to_owned(), url.password().map(str::to_owned));
        (url.scheme().to_owned(), user, url.host_str().map(str::to_owned), url.port_or_known_default())
    };
    parts(one) == parts(other)
}

/// True for an address with the same scheme, user, host and port for all values of its arguments.
fn is_settled(url: &Template) -> bool {
    let beginning = url.beginning();
    let parsed = |behind: &str| reqwest::Url::parse(&format!("{beginning}{behind}")).ok();
    let Some(base) = parsed("").filter(|base| matches!(base.scheme(), "http" | "https")) else { return false };
    // Prefixes of an argument that would extend the host, the port or the user if one of them were not terminated.
    let stays = |behind: &str| parsed(behind).is_some_and(|url| same_origin(&base, &url));
    url.arguments().next().is_none() || ["a", "1", ".a", ":1", "@a"].into_iter().all(stays)
}

/// Makes a path of a file absolute, so that it does not depend on the current folder.
fn absolute(scope: &Scope<'_>, path: &str) -> PathBuf {
    let path = scope.path(path);
    std::path::absolute(&path).unwrap_or(path)
}
