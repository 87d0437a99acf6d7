//! Tools as functions: name look-up, argument handling and calls.

mod arguments;
mod values;

use super::Machine;
use crate::convert;
use crate::error::suggest::{closest, did_you_mean};
use crate::error::{Error, Halt, Outcome};
use crate::foreign_text;
use crate::host::{CallId, CallRecord, Catalogue, Decision, Happened, Tool, ToolCall, ToolError, ToolReply};
use crate::json::{self, Layout};
use crate::meter::Outside;
use crate::value::Value;
use crate::value::function::ToolFunction;
use crate::value::names::canonical_tool;
use arguments::{told_apart, tool_arguments};
use std::sync::{Arc, OnceLock};

/// Most times that a person is asked about one call.
const MOST_ASKED: u32 = 3;

/// Maximum length of the reason why a call failed in the list of failed calls, in characters.
const REASON: usize = 72;

impl Machine {
    /// Finds a tool by name: `server/tool`, `mcp__server__tool`, or a bare name that is unique among the servers.
    ///
    /// # Errors
    /// Returns `AmbiguousTool` if several tools match; `ServerUnavailable` or `UnknownTool` if the server is known
    /// but the tool is not available, or if a server that could not be asked may have a tool of that bare name as well;
    /// `ToolDenied` if it may not be called.
    pub(crate) fn find_tool(&mut self, name: &str) -> Outcome<Option<Arc<ToolFunction>>> {
        let splits = splits(name);
        if splits.is_empty() {
            return self.find_bare_tool(name);
        }
        let host = self.core.host.clone();
        let servers = host.servers();
        let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
        let mut found: Vec<(bool, Arc<Tool>)> = Vec::new();
        let mut problem = None;
        for (server, tool) in splits {
            let at = match pick(server, &names) {
                Pick::One(at) => at,
                Pick::Several(several) => {
                    let several = several.iter().map(|at| format!("`{}`", names[*at])).collect::<Vec<_>>();
                    let message = format!("`{server}` may mean the servers {}", several.join(" and "));
                    problem = problem.or(Some(Error::new("AmbiguousTool", message).about(name)));
                    continue;
                }
                Pick::None => continue,
            };
            match self.find_tool_of(names[at], tool, name) {
                Ok(tools) => {
                    let is_literal = |one: &Tool| one.server == server && one.name == tool;
                    found.extend(tools.into_iter().map(|one| (is_literal(&one), one)));
                }
                Err(error) => problem = problem.or(Some(error)),
            }
        }
        if found.iter().any(|(is_literal, _)| *is_literal) {
            found.retain(|(is_literal, _)| *is_literal);
        }
        match (&found[..], problem) {
            ([], None) => Ok(None),
            ([], Some(problem)) => Err(problem.into()),
            ([(_, tool)], _) => Ok(Some(Arc::new(ToolFunction::new(tool.clone())))),
            (several, _) => Err(ambiguous(name, several.iter().map(|(_, tool)| tool)).into()),
        }
    }

    /// Returns the tools of a server that a spelling may refer to, at least one. `name` is the whole name.
    fn find_tool_of(&mut self, server: &str, tool: &str, name: &str) -> Result<Vec<Arc<Tool>>, Error> {
        let host = self.core.host.clone();
        let tools = self.waiting(|| host.tools(server));
        let tools = tools.as_ref().map_err(|error| tool_error(error, server))?;
        if let Some(found) = self.named_among(tools, server, tool)? {
            return Ok(found);
        }
        // The server may have it by now.
        let anew = self.waiting(|| host.tools_anew(server));
        if let Some(found) = (*anew).as_ref().map(|tools| self.named_among(tools, server, tool)).transpose()?.flatten()
        {
            return Ok(found);
        }
        let names = (*anew).as_ref().unwrap_or(tools).iter().map(|tool| tool.name.as_str());
        let error = Error::new("UnknownTool", format!("server `{server}` has no tool `{tool}`")).about(name);
        Err(match closest(tool, names) {
            Some(nearest) => error.suggest(did_you_mean(&foreign_text::qualified(server, nearest))),
            None => error.suggest(format!("see (dir '{server})")),
        })
    }

    /// Returns those of a server's tools to which a spelling may refer; `None` if there is none.
    ///
    /// # Errors
    /// Returns `ToolDenied` if it refers to a tool that may not be called.
    fn named_among(&mut self, tools: &[Arc<Tool>], server: &str, tool: &str) -> Result<Option<Vec<Arc<Tool>>>, Error> {
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let is_exact = names.contains(&tool);
        match pick(tool, &names) {
            // A denied tool is not replaced by another one with a similar name.
            Pick::One(_) | Pick::Several(_) if !is_exact && let Some(denied) = self.denied_exactly(server, tool) => {
                Err(self.refusal(server, &denied))
            }
            Pick::One(at) => Ok(Some(vec![tools[at].clone()])),
            Pick::Several(found) => Ok(Some(found.iter().map(|at| tools[*at].clone()).collect())),
            Pick::None => {
                let host = self.core.host.clone();
                let denied = self.waiting(|| host.denied(server));
                let names: Vec<&str> = denied.iter().map(|(name, _)| name.as_str()).collect();
                match pick(tool, &names) {
                    Pick::One(at) => Err(self.refusal(server, &denied[at])),
                    _ => Ok(None),
                }
            }
        }
    }

    /// Collects the arguments of a call. Before any are refused, the server is asked whether it has changed the tool.
    fn arguments_of(&mut self, tool: &ToolFunction, arguments: &mut [Value]) -> Outcome<Value> {
        let refused = match tool_arguments(tool, arguments) {
            Ok(collected) => return Ok(collected),
            Err(refused) => refused,
        };
        let host = self.core.host.clone();
        let anew = self.waiting(|| host.tools_anew(&tool.server));
        let is_changed = |one: &&Arc<Tool>| *one.name == *tool.name && one.input_schema != tool.tool.input_schema;
        match (*anew).as_ref().and_then(|tools| tools.iter().find(is_changed)) {
            Some(changed) => tool_arguments(&ToolFunction::new(changed.clone()), arguments),
            None => Err(refused),
        }
    }

    fn find_bare_tool(&mut self, name: &str) -> Outcome<Option<Arc<ToolFunction>>> {
        let host = self.core.host.clone();
        if host.servers().is_empty() {
            return Ok(None);
        }
        let catalogue = self.waiting(|| host.catalogue());
        let Catalogue { tools, missing } = &*catalogue;
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let picked = pick(name, &names);
        if !matches!(picked, Pick::None) && !names.contains(&name) {
            // A denied tool is not replaced by another one with a similar name.
            for server in host.servers().iter() {
                if let Some(denied) = self.denied_exactly(&server.name, name) {
                    return Err(self.refusal(&server.name, &denied).into());
                }
            }
        }
        match picked {
            // A tool does not take the place of one of a server that is down.
            Pick::One(at) if !missing.is_empty() => Err(unasked(name, &tools[at], missing).into()),
            Pick::One(at) => Ok(Some(Arc::new(ToolFunction::new(tools[at].clone())))),
            Pick::Several(found) => Err(ambiguous(name, found.iter().map(|at| &tools[*at])).into()),
            Pick::None => Ok(None),
        }
    }

    /// The error for a bare name that matches only a denied tool.
    pub(super) fn denied_by_bare_name(&mut self, name: &str) -> Option<Error> {
        let host = self.core.host.clone();
        for server in host.servers().iter() {
            let denied = self.waiting(|| host.denied(&server.name));
            let names: Vec<&str> = denied.iter().map(|(name, _)| name.as_str()).collect();
            if let Pick::One(at) = pick(name, &names) {
                return Some(self.refusal(&server.name, &denied[at]));
            }
        }
        None
    }

    /// Returns the tool of exactly that name with the rule that denies it, if it is denied.
    fn denied_exactly(&mut self, server: &str, tool: &str) -> Option<(String, String)> {
        let host = self.core.host.clone();
        let denied = self.waiting(|| host.denied(server));
        denied.iter().find(|(name, _)| name == tool).cloned()
    }

    /// The error for a denied tool, with its rule. Reports the attempt to the host.
    fn refusal(&mut self, server: &str, (tool, rule): &(String, String)) -> Error {
        let host = self.core.host.clone();
        self.waiting(|| host.refused(server, tool));
        denial(&foreign_text::qualified(server, tool), rule)
    }

    /// Runs host work other than a tool call. Its time counts as waiting.
    pub(crate) fn waiting<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let before = self.core.host.monotonic();
        let result = work();
        let after = self.core.host.monotonic();
        self.core.meter.wait(after.saturating_sub(before));
        result
    }

    /// Resolves a tool of which only the name is known, such as one deserialized from a snapshot.
    ///
    /// # Errors
    /// As [`Machine::find_tool`].
    #[cold]
    fn ask_for_tool(&mut self, tool: &ToolFunction, known: &OnceLock<Arc<ToolFunction>>) -> Outcome<Arc<ToolFunction>> {
        if let Some(known) = known.get() {
            return Ok(known.clone());
        }
        let found = self.find_tool_of(&tool.server, &tool.name, &tool.qualified_name())?;
        match &found[..] {
            [only] => Ok(known.get_or_init(|| Arc::new(ToolFunction::new(only.clone()))).clone()),
            several => Err(ambiguous(&tool.qualified_name(), several.iter()).into()),
        }
    }

    /// Returns the description of a tool, asking its server if only the name is known.
    ///
    /// # Errors
    /// As [`Machine::find_tool`].
    pub(crate) fn known_tool(&mut self, tool: &ToolFunction) -> Outcome<Arc<Tool>> {
        match tool.asked() {
            None => Ok(tool.tool.clone()),
            Some(known) => Ok(self.ask_for_tool(tool, known)?.tool.clone()),
        }
    }

    /// Calls a tool. The arguments are a map, keywords with values, or positional.
    pub(super) fn call_tool(&mut self, tool: &ToolFunction, arguments: &mut [Value]) -> Outcome<Value> {
        let asked;
        let tool = match tool.asked() {
            None => tool,
            Some(known) => {
                asked = self.ask_for_tool(tool, known)?;
                &*asked
            }
        };
        // How arguments are named depends on what they are.
        arguments.iter().for_each(Value::touch);
        self.check_unknown()?;
        let arguments = self.arguments_of(tool, arguments)?;
        let text = json::write(self, &arguments, &Layout::default());
        self.check_unknown()?;
        let mut text = text?;
        let host = self.core.host.clone();
        let values = if host.takes_values() { Some(convert::plain(self, &arguments)?) } else { None };
        // A run that has been cancelled makes no further call.
        self.check_time()?;
        self.core.meter.call()?;
        let id = self.branch.next_call(self.core.form);
        let record = self.core.calls.len();
        self.core.calls.push(CallRecord {
            server: tool.server.clone(),
            tool: tool.name.clone(),
            ms: 0,
            outcome: "running".into(),
            note: None,
            failed: None,
        });
        let started = host.monotonic();
        let mut asked = 0;
        let reply = loop {
            let call = ToolCall {
                id: id.clone(),
                server: tool.server.clone(),
                tool: tool.name.clone(),
                arguments: text,
                remaining: self.core.meter.remaining(host.monotonic()),
                timeout: self.core.meter.limits.tool,
                fuel: self.core.meter.fuel_spent(),
                memory: crate::meter::live(),
                approved: None,
                values: values.clone(),
                room: self.core.meter.limits.memory.saturating_sub(crate::meter::live()),
            };
            let reply = self.call_host(&call);
            let ToolReply::Ask(question) = &*reply else { break reply };
            asked += 1;
            let refusal = match self.decide((**question).clone()) {
                // The arguments to be sent may have changed since a person approved them, but not over and over.
                Ok(Decision::Approved | Decision::Covered(_)) if asked < MOST_ASKED => None,
                Ok(Decision::Approved | Decision::Covered(_)) => {
                    Some(ToolReply::Unapproved("it was asked about too often".to_owned()))
                }
                Ok(Decision::Pending) => return Err(Halt::Suspended.into()),
                Ok(decision @ (Decision::Denied(_) | Decision::Unavailable(_))) => decision.refusal(),
                Err(signal) => {
                    if let Some(record) = self.core.calls.get_mut(record) {
                        record.outcome = reply.outcome().into();
                    }
                    return Err(signal);
                }
            };
            if let Some(refusal) = refusal {
                break Outside::of(|| refusal.clone());
            }
            text = json::write(self, &arguments, &Layout::default())?;
        };
        if self.core.counted.are_counted() {
            self.count(tool, &id, &reply);
        }
        if host.was_made_before(&id) {
            self.core.meter.give_back_call();
        }
        let note = host.note(&id);
        let took = host.monotonic().saturating_sub(started);
        let value = self.take_reply(tool, &reply);
        let outcome = match (&value, &*reply) {
            (Err(_), reply) if reply.text().is_some() => "unreadable",
            _ => reply.outcome(),
        };
        if reply.outcome() == "ok" || matches!(&*reply, ToolReply::Rehearsed) {
            self.core.look_ups.unnamed(|| values::unnamed(tool, &arguments));
        }
        let failed =
            if let ToolReply::Error(error) = &*reply { Some(self.failed(tool, &arguments, error)) } else { None };
        if let Some(record) = self.core.calls.get_mut(record) {
            record.ms = took.as_millis() as u64;
            record.outcome = outcome.into();
            record.note = note.clone();
            record.failed = failed;
        }
        // A limit that passed during the call, or a cancellation, ends the evaluation even if the tool succeeded.
        self.check_time()?;
        value
    }

    /// Counts a call that was answered, if it has changed something, or may have. One that does no harm if it is made again
    /// changes nothing that has to be known.
    #[cold]
    fn count(&mut self, tool: &ToolFunction, id: &CallId, reply: &ToolReply) {
        let hints = &tool.tool.hints;
        if hints.read_only == Some(true) || hints.idempotent == Some(true) {
            return;
        }
        let happened = reply.happened(self.core.host.was_sent(id));
        if happened != Happened::No {
            self.core.counted.add((id.form, &id.branch, id.ordinal), happened == Happened::Yes);
        }
    }

    /// Describes a failed call by its first arguments and the reason, in one line.
    #[cold]
    fn failed(&mut self, tool: &ToolFunction, arguments: &Value, error: &ToolError) -> String {
        let text = json::write(self, arguments, &Layout::default()).unwrap_or_default();
        // The tool is named before its arguments.
        let name = format!("`{}` failed: ", foreign_text::qualified(&tool.server, &tool.name));
        let reason = error.message.strip_prefix(&name).unwrap_or(&error.message);
        format!("{}({})", told_apart(&text), foreign_text::begun(reason, REASON))
    }

    /// Converts a reply to a value, or to an error that a program can catch.
    fn take_reply(&mut self, tool: &ToolFunction, reply: &ToolReply) -> Outcome<Value> {
        let name = || foreign_text::qualified(&tool.server, &tool.name);
        match reply {
            ToolReply::Json(text) => {
                self.reserve(text.len() as u64)?;
                json::parse(self, text)
            }
            ToolReply::Text(text) => {
                self.reserve(text.len() as u64)?;
                Ok(Value::string(text))
            }
            ToolReply::Marked(text) => {
                self.reserve(text.len() as u64)?;
                json::parse_marked(self, text)
            }
            ToolReply::Rehearsed => Ok(self.unknown_result(&name())),
            ToolReply::Error(error) => Err(tool_error(error, &name()).into()),
            ToolReply::Denied(rule) => Err(denial(&name(), rule).into()),
            ToolReply::Diverged(how) => Err(Halt::Diverged(how.clone()).into()),
            ToolReply::Unplanned(how) => Err(Halt::Unplanned(how.clone()).into()),
            ToolReply::Repeated(how) => Err(Halt::Repeated(how.clone()).into()),
            ToolReply::Ask(_) => Err(Halt::Suspended.into()),
            ToolReply::Unapproved(what) => {
                let name = name();
                Err(Error::new(
                    "ToolNeedsApproval",
                    format!("`{name}` needs a person's approval: {}", foreign_text::printable(what)),
                )
                .about(&name)
                .into())
            }
            ToolReply::Stopped => {
                self.check_time()?;
                Err(Halt::Cancelled.into())
            }
        }
    }
}

/// The error for a call that the operator denies.
fn denial(name: &str, rule: &str) -> Error {
    Error::new("ToolDenied", format!("`{name}` may not be called: {}", foreign_text::printable(rule))).about(name)
}

/// Converts a host's failure to an error about `name`. Its words may be those of a page or of a process.
fn tool_error(error: &ToolError, name: &str) -> Error {
    let made = Error::new(error.kind.code(), foreign_text::printable(&error.message)).about(name);
    match &error.suggestion {
        Some(suggestion) => made.suggest(foreign_text::printable(suggestion)),
        None => made,
    }
}

fn ambiguous<'t>(name: &str, tools: impl Iterator<Item = &'t Arc<Tool>>) -> Error {
    let names: Vec<String> =
        tools.map(|tool| format!("`{}`", foreign_text::qualified(&tool.server, &tool.name))).collect();
    Error::new("AmbiguousTool", format!("`{name}` may mean {}", names.join(" or ")))
        .about(name)
        .suggest("write the qualified name")
}

/// The error for a bare name that one known tool has, while the tools of other servers are unknown.
fn unasked(name: &str, tool: &Tool, missing: &[(String, String)]) -> Error {
    let found = foreign_text::qualified(&tool.server, &tool.name);
    let servers: Vec<String> = missing.iter().map(|(server, _)| format!("`{}`", foreign_text::name(server))).collect();
    let reason = missing.first().map(|(_, reason)| foreign_text::line(reason)).unwrap_or_default();
    let message = format!(
        "`{name}` may mean `{found}`, or a tool of {}, whose tools are not known: {reason}",
        servers.join(" or ")
    );
    Error::new("ServerUnavailable", message).about(name).suggest("write the qualified name")
}

/// The result of matching a name against several candidates.
enum Pick {
    One(usize),
    Several(Vec<usize>),
    None,
}

/// Picks the exact match among the names of tools or servers; without one, those with the same [`canonical_tool`] form.
fn pick(name: &str, names: &[&str]) -> Pick {
    pick_by(name, names, canonical_tool)
}

/// Picks the exact match; without one, the candidates with the same canonical form.
fn pick_by(name: &str, names: &[&str], canonical: fn(&str) -> String) -> Pick {
    let exact: Vec<usize> = (0..names.len()).filter(|at| names[*at] == name).collect();
    let found = if exact.is_empty() {
        let wanted = canonical(name);
        (0..names.len()).filter(|at| canonical(names[*at]) == wanted).collect()
    } else {
        exact
    };
    match found.len() {
        0 => Pick::None,
        1 => Pick::One(found[0]),
        _ => Pick::Several(found),
    }
}

/// The server and tool names that a qualified name may denote: one pair for `server/tool`; one pair per `__` for
/// `mcp__server__tool`, since names may contain it; none for a bare name.
fn splits(name: &str) -> Vec<(&str, &str)> {
    let rest = name.strip_prefix("mcp__").unwrap_or_default();
    let at = (1..rest.len()).filter(|at| rest.as_bytes()[*at..].starts_with(b"__"));
    let long = at.map(|at| (&rest[..at], &rest[at + 2..]));
    long.chain(name.split_once('/')).filter(|(server, tool)| !server.is_empty() && !tool.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_name_that_an_unknown_server_may_have_is_refused_with_its_name() {
        let tool = Tool { server: "notes".into(), name: "send".into(), ..Tool::default() };
        let missing = |servers: &[&str]| -> Vec<(String, String)> {
            servers.iter().map(|server| ((*server).to_owned(), "it does not\nstart".to_owned())).collect()
        };
        for (servers, expected) in [
            (
                &["mail"][..],
                "`send` may mean `notes/send`, or a tool of `mail`, whose tools are not known: it does not start",
            ),
            (
                &["mail", "a b"],
                "`send` may mean `notes/send`, or a tool of `mail` or `\"a b\"`, whose tools are not known: it does not start",
            ),
        ] {
            let error = unasked("send", &tool, &missing(servers));
            assert_eq!((&*error.code, error.message.as_str()), ("ServerUnavailable", expected));
        }
    }
}
