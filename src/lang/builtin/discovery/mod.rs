//! Discovery of servers and their tools, the language's functions, and the session's definitions. Programs (`dir`,
//! `doc`, `source`, `apropos`) and the MCP tool `lisp_env` share these answers.

mod argument;
mod code;
pub(crate) mod overview;
mod places;
mod search;
mod sentences;
pub(crate) mod shape;
mod signature;
pub mod vocabulary;

use super::entry::Entry;
use crate::error::{Error, Outcome};
use crate::eval::Realised;
use crate::foreign_text;
use crate::host::Tool;
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;
use crate::value::list::List;
use crate::value::names::canonical_tool;
use crate::value::print::{print_within, shown_name};
use places::{namespace_named, namespaces};
use std::fmt::Write;
use std::sync::Arc;

/// Builtins defined in this module, which the macros `dir`, `doc`, `source` and `apropos` expand to.
pub const TABLE: &[Builtin] = &[
    Builtin::new("dir*", &["[]", "[name]"], "Expansion of `dir`.", &[], dir),
    Builtin::new("doc*", &["[name]", "[name part]"], "Expansion of `doc`.", &[], doc),
    Builtin::new("source*", &["[name]"], "Expansion of `source`.", &[], code::source),
    Builtin::new("apropos*", &["[word]"], "Expansion of `apropos`.", &[], apropos),
];

/// Maximum length of the preview of a value, in bytes.
const PREVIEW: usize = 60;

/// Maximum number of lines in a list of servers, tools or definitions; a search finds the rest.
const LISTED: usize = 40;

/// Maximum length of the part of a name or query that is considered, in bytes.
const ASKED: usize = 256;

fn dir(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let text = match arguments.first() {
        None => overview::overview(machine)?,
        Some(name) => {
            let name = name_of(machine, name)?;
            one_place(machine, &name)?
        }
    };
    machine.core.print(&text);
    Ok(Value::Nil)
}

fn doc(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let name = name_of(machine, &arguments[0])?;
    let text = match arguments.get(1) {
        None => explain(machine, &name)?,
        Some(part) if part.as_name().is_some_and(|part| part.as_str() == "quoted") => explain_place(machine, &name)?,
        Some(part) => match part.as_text() {
            Some(part) => part_of(machine, &name, part)?,
            None => return Err(Error::expected("`:schema`, or the name of an argument such as `:body`", part).into()),
        },
    };
    machine.core.print(&text);
    Ok(Value::Nil)
}

/// Returns the text that `(doc name)` prints.
///
/// # Errors
/// Returns `UnknownName` with a suggestion of a similar name, or `NotAvailable` with advice on what to use instead.
pub fn explain(machine: &mut Machine, name: &str) -> Outcome<String> {
    let name = cut(name);
    if let Some((name, part)) = name.split_once(char::is_whitespace)
        && let Some(part) = part.trim().strip_prefix(':')
    {
        return part_of(machine, name, part);
    }
    if let Some(text) = documentation(machine, name)? {
        return Ok(text);
    }
    if machine.core.host.servers().iter().any(|server| server.name == name) {
        return server_text(machine, name);
    }
    Err(nothing_called(machine, name).into())
}

/// Returns the text that `(doc 'name)` prints: of a name that is also that of a namespace, both are documented.
fn explain_place(machine: &mut Machine, name: &str) -> Outcome<String> {
    let registry = machine.core.registry.clone();
    let namespace = match registry.entry(name) {
        Some(_) if machine.core.globals.find(name).is_none() => namespace_named(&registry, name),
        _ => None,
    };
    match (namespace, registry.entry(name)) {
        (Some(namespace), Some(entry)) => {
            Ok(format!("{}\n{}", entry_text(&entry), places::description(&registry, namespace)))
        }
        _ => explain(machine, name),
    }
}

/// Returns the text that `(doc name :schema)` prints.
fn schemas(machine: &mut Machine, name: &str) -> Outcome<String> {
    match machine.tool_named(name)? {
        Some(tool) => Ok(signature::schemas(&tool)),
        None => {
            Err(Error::new("UnknownName", format!("there is no tool called `{name}`, and only tools have schemas"))
                .about(name)
                .suggest(format!("see (doc {name})"))
                .into())
        }
    }
}

/// Returns the text that `(doc name :part)` prints.
fn part_of(machine: &mut Machine, name: &str, part: &str) -> Outcome<String> {
    if part == "instructions" && machine.core.host.servers().iter().any(|server| server.name == name) {
        let host = machine.core.host.clone();
        // It says so when it is started.
        let _ = machine.waiting(|| host.tools(name));
        let said = instructions(machine, name, true);
        return Ok(if said.is_empty() { format!("{} has no instructions\n", foreign_text::name(name)) } else { said });
    }
    if part == "schema" { schemas(machine, name) } else { argument(machine, name, part) }
}

/// Returns the text that `(doc name :body)` prints: an argument of a tool, or a field in it.
fn argument(machine: &mut Machine, name: &str, path: &str) -> Outcome<String> {
    match machine.tool_named(name)? {
        Some(tool) => {
            machine.charge(1_000)?;
            Ok(argument::describe(&tool, cut(path))?)
        }
        None => {
            let message = format!("there is no tool called `{name}`, and only tools have arguments to show");
            Err(Error::new("UnknownName", message).about(name).suggest(format!("see (doc {name})")).into())
        }
    }
}

/// Formats the first [`LISTED`] items as lines; a final line refers to the search for the rest.
fn listed<T>(items: &[T], line: impl Fn(&T) -> String) -> String {
    let mut out: String = items.iter().take(LISTED).map(|item| line(item) + "\n").collect();
    if items.len() > LISTED {
        let _ = writeln!(out, "… and {} more, search with (apropos \"word\")", items.len() - LISTED);
    }
    out
}

/// Builds the error for an unknown name.
fn nothing_called(machine: &mut Machine, name: &str) -> Error {
    let mut error = machine.unknown(name, &[]);
    if error.code == "UnboundVariable" {
        error.code = "UnknownName".into();
        error.message = format!("there is nothing called `{name}`");
        error.suggestion.get_or_insert_with(|| format!("search with (apropos \"{name}\")"));
    }
    error
}

fn apropos(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let word = name_of(machine, &arguments[0])?;
    let text = search::search(machine, &word)?;
    machine.core.print(&text);
    Ok(Value::Nil)
}

/// Returns a name given as a symbol, string or keyword, or as the function itself.
fn name_of(machine: &mut Machine, value: &Value) -> Outcome<String> {
    machine.charge(1)?;
    Ok(match value {
        named if let Some(name) = named.as_name() => cut(name.as_str()).to_string(),
        Value::Str(text) => cut(text.as_str()).to_string(),
        Value::Builtin(builtin) => builtin.name.to_string(),
        Value::Native(native) => native.about.name.to_string(),
        Value::Tool(tool) => tool.qualified_name(),
        Value::Var(name) => shown_name(name.as_str()).to_string(),
        Value::Closure(closure) => {
            closure.group.lambdas[closure.index as usize].name.clone().unwrap_or_else(|| "fn".to_string())
        }
        other => return Err(Error::expected("a name, such as `'mail` or `\"mail\"`", other).into()),
    })
}

/// Truncates a name or query to [`ASKED`] bytes.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(ASKED)]
}

/// Returns the answer of `lisp_env`: the definitions and servers, or the result of a query.
///
/// # Errors
/// Returns an error if a queried name is unknown; halts if a resource limit is exceeded.
pub fn describe_environment(machine: &mut Machine, query: Option<&str>) -> Outcome<String> {
    let Some(query) = query.map(str::trim).map(cut).filter(|query| !query.is_empty()) else {
        let mut out = bindings(machine)?;
        out.push_str(&overview::overview(machine)?);
        return Ok(out);
    };
    // REPL users may write `(doc f)` or `'f` here.
    let plain = query.trim_start_matches(['(', '\'']).trim_end_matches(')');
    let (verb, name) = plain.split_once(char::is_whitespace).unwrap_or(("", plain));
    let name = name.trim_matches(['\'', '"', ' ']);
    match verb {
        "dir" => return one_place(machine, name),
        "apropos" => return search::search(machine, name),
        "doc"
            if let Some((name, part)) = name.split_once(char::is_whitespace)
                && let Some(part) = part.trim().strip_prefix(':') =>
        {
            return part_of(machine, name, part);
        }
        "doc" => {}
        _ if verb.is_empty() => {}
        tool if let Some(part) = name.strip_prefix(':') => return part_of(machine, tool, part),
        _ => return search::search(machine, plain),
    }
    if let Some(text) = documentation(machine, name)? {
        return Ok(text);
    }
    let registry = machine.core.registry.clone();
    let is_place =
        machine.core.host.servers().iter().any(|server| server.name == name) || namespaces(&registry).contains(&name);
    if is_place { one_place(machine, name) } else { search::search(machine, name) }
}

/// Lists the session's definitions: name, kind, size, preview.
fn bindings(machine: &mut Machine) -> Outcome<String> {
    let bound = vocabulary::definitions(machine)?;
    if bound.is_empty() {
        return Ok("Nothing is defined in this session yet.\n".to_string());
    }
    let lines =
        listed(&bound, |word| format!("  {}  {}", foreign_text::symbol(&word.name), foreign_text::line(&word.summary)));
    Ok(format!("Defined in this session:\n{lines}"))
}

/// Summarizes a value on one line: kind, size, preview.
fn summary(machine: &mut Machine, value: &Value) -> Outcome<String> {
    let kind = value.kind().trim_start_matches("an ").trim_start_matches("a ");
    let size = match value {
        Value::Vector(items) => format!(" of {}", items.len()),
        Value::Map(map) => format!(" of {} entries", map.len()),
        Value::Set(set) => format!(" of {}", set.len()),
        Value::List(list) => match &**list {
            List::View(view) => view.left().map_or_else(String::new, |count| format!(" of {count}")),
            list => list.as_slice().map_or_else(String::new, |items| format!(" of {}", items.len())),
        },
        Value::Str(text) => format!(" of {} bytes", text.as_str().len()),
        Value::Closure(closure) => {
            let arities = &closure.group.lambdas[closure.index as usize].arities;
            let shown: Vec<&str> = arities.iter().map(|arity| arity.parameters.as_str()).collect();
            return Ok(format!("function {}", shown.join(" ")));
        }
        _ => String::new(),
    };
    let preview = print_within(value, PREVIEW, true, &mut Realised(machine))?;
    Ok(format!("{kind}{size}: {}", preview.text))
}

/// Implements `(dir 'mail)`: lists the tools of a server, or the functions of a namespace.
fn one_place(machine: &mut Machine, name: &str) -> Outcome<String> {
    let host = machine.core.host.clone();
    let servers = host.servers();
    let named = |fits: &dyn Fn(&str) -> bool| servers.iter().map(|server| &server.name).find(|server| fits(server));
    let name = named(&|server| server == name)
        .or_else(|| named(&|server| canonical_tool(server) == canonical_tool(name)))
        .map_or_else(|| name.to_string(), |server| server.to_string());
    if servers.iter().any(|server| server.name == name) {
        let tools = machine.waiting(|| host.tools(&name));
        return match &*tools {
            Ok(tools) => Ok(listed(tools, |tool| tool.signature()) + &instructions(machine, &name, false)),
            Err(error) => Err(Error::new(error.kind.code(), error.message.clone()).about(&name).into()),
        };
    }
    let registry = machine.core.registry.clone();
    let Some(namespace) = namespace_named(&registry, &name) else {
        let namespaces = namespaces(&registry);
        let known: Vec<&str> = servers.iter().map(|server| server.name.as_str()).chain(namespaces).collect();
        let error = Error::new("UnknownName", format!("there is no server or namespace `{name}`")).about(&name);
        let nearest = crate::error::suggest::closest(&name, known.iter().copied());
        return Err(match nearest {
            Some(nearest) => error.suggest(crate::error::suggest::did_you_mean(nearest)),
            None => error.suggest(format!("there are {}", known.join(", "))),
        }
        .into());
    };
    Ok(places::listing(&registry, namespace))
}

/// Maximum length of a server's instructions where they are not asked for, in bytes with our words.
const INSTRUCTIONS: usize = 400;

/// Returns what a server says about its use, as its words; empty if it says nothing. Without `is_whole` only the beginning.
fn instructions(machine: &mut Machine, server: &str, is_whole: bool) -> String {
    let host = machine.core.host.clone();
    let said = machine.waiting(|| host.instructions(server));
    let Some(said) = said.as_deref().filter(|said| !said.trim().is_empty()) else { return String::new() };
    let name = foreign_text::name(server);
    if is_whole {
        let lines: String = foreign_text::lines(said).into_iter().map(|line| format!("  {line}\n")).collect();
        return format!("The server {name} says, in its own words:\n{lines}");
    }
    let line = foreign_text::line(said);
    let before = format!("The server {name} says: \"");
    let whole = format!("{before}{line}\"\n");
    if whole.len() <= INSTRUCTIONS {
        return whole;
    }
    let after = format!("…\"  (doc {name} :instructions) shows the rest\n");
    let room = INSTRUCTIONS.saturating_sub(before.len() + after.len());
    format!("{before}{}{after}", &line[..line.floor_char_boundary(room)])
}

/// Documents a server: its description, the number of its tools, and what it says.
fn server_text(machine: &mut Machine, name: &str) -> Outcome<String> {
    let host = machine.core.host.clone();
    let description = host.servers().iter().find(|server| server.name == name).map(|server| server.description.clone());
    let tools = machine.waiting(|| host.tools(name));
    let count = match &*tools {
        Ok(tools) => tools.len(),
        Err(error) => return Err(Error::new(error.kind.code(), error.message.clone()).about(name).into()),
    };
    let shown = foreign_text::name(name);
    let mut out = format!("{shown}\n");
    if let Some(line) = foreign_text::lines(&description.unwrap_or_default()).into_iter().next() {
        let _ = writeln!(out, "  {line}");
    }
    let plural = if count == 1 { "" } else { "s" };
    let _ = writeln!(out, "  a server with {count} tool{plural}: (dir '{shown})");
    out.push_str(&instructions(machine, name, false));
    Ok(out)
}

/// Implements `(doc name)`: documents a definition, tool, builtin or form of the language.
fn documentation(machine: &mut Machine, name: &str) -> Outcome<Option<String>> {
    let plain = name.strip_prefix("session/").unwrap_or(name);
    if let Some(index) = machine.core.globals.find(plain) {
        let global = machine.core.globals.get(index).clone();
        let value = global.value.unwrap_or_default();
        let mut out =
            format!("{}\n  {}\n", foreign_text::symbol(plain), foreign_text::line(&summary(machine, &value)?));
        for line in foreign_text::lines(global.doc.as_deref().unwrap_or_default()) {
            let _ = writeln!(out, "{}", format!("  {line}").trim_end());
        }
        return Ok(Some(out));
    }
    let registry = machine.core.registry.clone();
    if let Some(entry) = registry.entry(name) {
        let note = places::library_namespace(&registry, name).map(places::note).unwrap_or_default();
        return Ok(Some(entry_text(&entry) + &note));
    }
    let tool = machine.tool_named(name)?;
    // A name that a tool and functions have is documented for all of them.
    let functions =
        if tool.is_some() { registry.in_namespaces(name).to_vec() } else { machine.functions_meant(name)? };
    let mut texts: Vec<String> =
        functions.iter().filter_map(|name| registry.entry(name)).map(|entry| entry_text(&entry)).collect();
    texts.extend(tool.map(|tool| signature::full(&tool)));
    if !texts.is_empty() {
        return Ok(Some(texts.join("\n")));
    }
    let is_server = machine.core.host.servers().iter().any(|server| server.name == name);
    let namespace = namespace_named(&registry, name).filter(|_| !is_server);
    Ok(namespace.map(|namespace| places::description(&registry, namespace)))
}

/// Formats the documentation of a function or form of the language.
fn entry_text(entry: &Entry<'_>) -> String {
    let mut out: String = entry.calls().map(|call| call + "\n").collect();
    for line in entry.doc.lines() {
        let _ = writeln!(out, "  {}", line.trim());
    }
    for (program, value) in &entry.examples {
        let _ = writeln!(out, "  {program} => {value}");
    }
    out
}

impl Machine {
    /// Finds a tool by name.
    fn tool_named(&mut self, name: &str) -> Outcome<Option<Arc<Tool>>> {
        Ok(self.find_tool(name)?.map(|function| function.tool.clone()))
    }
}
