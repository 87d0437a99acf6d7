//! Tools as functions: finding them by name, putting arguments together, calling them.

use super::Machine;
use crate::lang::error::suggest::{closest, did_you_mean};
use crate::lang::error::{Error, Outcome};
use crate::lang::host::{Catalogue, Tool, ToolCall, ToolError, ToolReply};
use crate::lang::json;
use crate::lang::meter;
use crate::lang::reply::CallRecord;
use crate::lang::value::Value;
use crate::lang::value::function::ToolFunction;
use crate::lang::value::map::{Map, kebab};
use crate::lang::value::text::Name;
use std::sync::Arc;

impl Machine {
    /// The tool of that name: `server/tool`, `mcp__server__tool`, or a bare name that one server has.
    ///
    /// # Errors
    /// `AmbiguousTool` where several fit; `ServerUnavailable` and `UnknownTool` where the server is
    /// known but the tool cannot be had.
    pub(crate) fn find_tool(&mut self, name: &str) -> Outcome<Option<Arc<ToolFunction>>> {
        let long = name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
        let (server, tool) = match long.or_else(|| name.split_once('/')) {
            Some((server, tool)) if !server.is_empty() && !tool.is_empty() => (server, tool),
            _ => return self.find_bare_tool(name),
        };
        let host = self.core.host.clone();
        let servers = host.servers();
        let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
        let server = match pick(server, &names) {
            Pick::One(at) => names[at],
            Pick::Several(found) => {
                let several = found.iter().map(|at| format!("`{}`", names[*at])).collect::<Vec<_>>().join(" and ");
                return Err(Error::new("AmbiguousTool", format!("`{server}` may mean the servers {several}"))
                    .about(name)
                    .into());
            }
            Pick::None => return Ok(None),
        };
        let tools = self.waiting(|| host.tools(server)).map_err(|error| tool_error(&error, server))?;
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        match pick(tool, &names) {
            Pick::One(at) => Ok(Some(Arc::new(ToolFunction::new(tools[at].clone())))),
            Pick::Several(found) => Err(ambiguous(name, found.iter().map(|at| &tools[*at])).into()),
            Pick::None => {
                let denied = self.waiting(|| host.denied(server));
                let denied_names: Vec<&str> = denied.iter().map(|(name, _)| name.as_str()).collect();
                if let Pick::One(at) = pick(tool, &denied_names) {
                    return Err(denial(&format!("{server}/{}", denied[at].0), &denied[at].1).into());
                }
                let error = Error::new("UnknownTool", format!("server `{server}` has no tool `{tool}`")).about(name);
                let nearest = closest(tool, names.iter().copied());
                Err(match nearest {
                    Some(nearest) => error.suggest(did_you_mean(&format!("{server}/{nearest}"))),
                    None => error.suggest(format!("see (dir '{server})")),
                }
                .into())
            }
        }
    }

    fn find_bare_tool(&mut self, name: &str) -> Outcome<Option<Arc<ToolFunction>>> {
        let host = self.core.host.clone();
        if host.servers().is_empty() {
            return Ok(None);
        }
        let Catalogue { tools, .. } = self.waiting(|| host.catalogue());
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        match pick(name, &names) {
            Pick::One(at) => Ok(Some(Arc::new(ToolFunction::new(tools[at].clone())))),
            Pick::Several(found) => Err(ambiguous(name, found.iter().map(|at| &tools[*at])).into()),
            Pick::None => Ok(None),
        }
    }

    /// Runs host work that is not a tool call: its time is waiting, its memory the host's.
    pub(crate) fn waiting<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let before = self.core.host.monotonic();
        let result = meter::outside(work);
        let after = self.core.host.monotonic();
        self.core.meter.wait(after.saturating_sub(before));
        result
    }

    /// Calls a tool with a map, with keywords and values, or by position.
    pub(super) fn call_tool(&mut self, tool: &ToolFunction, arguments: &mut [Value]) -> Outcome<Value> {
        let arguments = tool_arguments(tool, arguments)?;
        let text = json::write(self, &arguments, false)?;
        self.core.meter.call()?;
        let id = self.branch.next_call(self.core.form);
        let made = id.clone();
        let record = self.core.calls.len();
        self.core.calls.push(CallRecord {
            server: tool.server.clone(),
            tool: tool.name.clone(),
            ms: 0,
            outcome: "running".into(),
            note: None,
        });
        let host = self.core.host.clone();
        let started = host.monotonic();
        let call = ToolCall {
            id,
            server: tool.server.clone(),
            tool: tool.name.clone(),
            arguments: text,
            remaining: self.core.meter.remaining(started),
            timeout: self.core.meter.limits.tool,
        };
        let reply = self.call_host(call);
        let note = meter::outside(|| host.note(&made));
        let took = host.monotonic().saturating_sub(started);
        let value = self.take_reply(tool, &reply);
        let outcome = match (&value, &reply) {
            (Err(_), ToolReply::Json(_) | ToolReply::Text(_)) => "unreadable",
            _ => reply.outcome(),
        };
        if let Some(record) = self.core.calls.get_mut(record) {
            record.ms = took.as_millis() as u64;
            record.outcome = outcome.into();
            record.note = note;
        }
        // The reply's bytes were the host's, so letting go of them is charged to nobody.
        meter::outside(move || drop(reply));
        value
    }

    /// A reply as a value, or as the error that a program can catch.
    fn take_reply(&mut self, tool: &ToolFunction, reply: &ToolReply) -> Outcome<Value> {
        let name = || tool.qualified_name();
        match reply {
            ToolReply::Json(text) => {
                self.reserve(text.len() as u64)?;
                json::parse(self, text)
            }
            ToolReply::Text(text) => {
                self.reserve(text.len() as u64)?;
                Ok(Value::string(text))
            }
            ToolReply::Error(error) => Err(tool_error(error, &name()).into()),
            ToolReply::Denied(rule) => Err(denial(&name(), rule).into()),
            ToolReply::Ask(what) => {
                let name = name();
                Err(Error::new("ToolNeedsApproval", format!("`{name}` needs a person's approval: {what}"))
                    .about(&name)
                    .into())
            }
            ToolReply::Stopped => {
                self.check_time()?;
                Err(crate::lang::error::Halt::Cancelled.into())
            }
        }
    }
}

/// The error of a call that the operator does not allow.
fn denial(name: &str, rule: &str) -> Error {
    Error::new("ToolDenied", format!("`{name}` may not be called: {rule}")).about(name)
}

/// A host's failure as an error that names server and tool.
fn tool_error(error: &ToolError, name: &str) -> Error {
    let made = Error::new(error.kind.code(), error.message.clone()).about(name);
    match &error.suggestion {
        Some(suggestion) => made.suggest(suggestion.clone()),
        None => made,
    }
}

fn ambiguous<'t>(name: &str, tools: impl Iterator<Item = &'t Arc<Tool>>) -> Error {
    let names: Vec<String> = tools.map(|tool| format!("`{}/{}`", tool.server, tool.name)).collect();
    Error::new("AmbiguousTool", format!("`{name}` may mean {}", names.join(" or ")))
        .about(name)
        .suggest("write the qualified name")
}

/// Which of several names is meant.
enum Pick {
    One(usize),
    Several(Vec<usize>),
    None,
}

/// The exact name wins, else the only one that agrees up to `_`, `-` and case.
fn pick(name: &str, names: &[&str]) -> Pick {
    let exact: Vec<usize> = (0..names.len()).filter(|at| names[*at] == name).collect();
    let found = if exact.is_empty() {
        let wanted = kebab(name);
        let loose = wanted.replace('-', "");
        (0..names.len()).filter(|at| kebab(names[*at]).replace('-', "") == loose).collect()
    } else {
        exact
    };
    match found.len() {
        0 => Pick::None,
        1 => Pick::One(found[0]),
        _ => Pick::Several(found),
    }
}

/// The arguments of a call as one map under the schema's own names.
fn tool_arguments(function: &ToolFunction, arguments: &mut [Value]) -> Outcome<Value> {
    let (tool, parameters) = (&function.tool, &*function.parameters);
    let is_parameter = |key: &Value| {
        let name = key.as_name().map(Name::as_str);
        parameters.is_empty() || parameters.iter().any(|(known, _)| Some(known.as_str()) == name)
    };
    if let [map @ Value::Map(_)] = arguments
        && let Value::Map(entries) = &*map
        && entries.iter().all(|(key, _)| matches!(key, Value::Keyword(_)) && is_parameter(key))
    {
        // Written as the schema has them: that is how a keyword is written as JSON.
        return Ok(std::mem::take(map));
    }
    let mut out = Map::default();
    let keywords = arguments.len().is_multiple_of(2)
        && !arguments.is_empty()
        && arguments.iter().step_by(2).all(|key| names_argument(parameters, key));
    if let [Value::Map(map)] = arguments {
        for (key, value) in map.iter() {
            let name = parameter_name(parameters, key)?;
            out.insert(Value::string(&name), value.clone());
        }
    } else if keywords {
        for pair in arguments.chunks_exact_mut(2) {
            let name = parameter_name(parameters, &pair[0])?;
            out.insert(Value::string(&name), std::mem::take(&mut pair[1]));
        }
    } else {
        if arguments.len() > parameters.len() {
            let error = Error::new(
                "ToolArgumentError",
                format!(
                    "`{}/{}` takes {} arguments, got {}",
                    tool.server,
                    tool.name,
                    parameters.len(),
                    arguments.len()
                ),
            );
            return Err(error.suggest(signature_hint(tool, parameters)).into());
        }
        for ((name, _), value) in parameters.iter().zip(arguments.iter_mut()) {
            out.insert(Value::string(name), std::mem::take(value));
        }
    }
    Ok(Value::Map(Arc::new(out)))
}

/// True for a keyword, and for a quoted symbol that is the name of an argument: `'status "open"`.
fn names_argument(parameters: &[(String, bool)], key: &Value) -> bool {
    let is_one = |name: &Name| {
        let names: Vec<&str> = parameters.iter().map(|(name, _)| name.as_str()).collect();
        matches!(pick(name.as_str(), &names), Pick::One(_))
    };
    matches!(key, Value::Keyword(_)) || key.as_symbol().is_some_and(is_one)
}

fn signature_hint(tool: &Tool, parameters: &[(String, bool)]) -> String {
    let shown: Vec<String> = parameters
        .iter()
        .map(|(name, required)| if *required { format!(":{}", kebab(name)) } else { format!(":{}?", kebab(name)) })
        .collect();
    format!("call it as ({}/{} {})", tool.server, tool.name, shown.join(" "))
}

/// The schema's name for an argument that a program named in its own spelling; a name that the schema
/// does not have is left to the host, which checks arguments before it sends them.
fn parameter_name(parameters: &[(String, bool)], key: &Value) -> Outcome<String> {
    let Some(name) = key.as_name().map(Name::as_str).or(key.as_str()) else {
        return Err(Error::expected("a keyword as the name of an argument", key).into());
    };
    let names: Vec<&str> = parameters.iter().map(|(name, _)| name.as_str()).collect();
    Ok(match pick(name, &names) {
        Pick::One(at) => names[at].to_string(),
        _ => name.to_string(),
    })
}
