//! The one door out of the language: what a program may ask of the world around it.
//!
//! The language itself has no clock, no randomness, no files and no network. Whoever runs a program
//! hands in a [`Host`]; the MCP server implements it over downstream servers, tests use a scripted one,
//! an embedder writes their own. Every method may block and may be called from several threads at
//! once (the branches of `pmap` wait here side by side).
//!
//! Tool calls cross the door as JSON text, so that a host can just as well be the other end of a pipe:
//! values never leave the evaluation that made them. What a host computes itself, at once, is better a function
//! that it adds to the language ([`EngineBuilder::functions`](crate::lang::EngineBuilder::functions)).

use super::builtin::discovery::index::{Hits, Index};
use super::value::map::{canonical, kebab};
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// Where in an evaluation a host call was made: stable between runs of the same program on the same
/// data, so that a run can be recorded and replayed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CallId {
    /// Ordinal of the top-level form, from 0.
    pub form: u32,
    /// Path of `pmap`/`pcalls` branches that led here; empty outside of them.
    pub branch: Vec<u32>,
    /// Ordinal of the host call within that branch of that form, from 0.
    pub ordinal: u32,
}

/// One call of a tool, with its names exactly as the downstream server gave them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ToolCall {
    /// Identity of this call within the evaluation.
    pub id: CallId,
    /// The server's name.
    pub server: Arc<str>,
    /// The tool's name.
    pub tool: Arc<str>,
    /// The arguments, the text of a JSON object.
    pub arguments: String,
    /// What is left of the evaluation's total time; a host gives up and answers
    /// [`ToolReply::Stopped`] when it is used up.
    pub remaining: Duration,
    /// How long this call may take unless the host is configured otherwise for this tool.
    pub timeout: Duration,
}

/// What a tool call came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ToolReply {
    /// A result that is JSON text.
    Json(String),
    /// A result that is plain text.
    Text(String),
    /// The call failed; the program can catch this.
    Error(ToolError),
    /// Policy forbids the call; the text says by which rule. The program can catch this.
    Denied(String),
    /// A person has to be asked first; the text says what. Until approval by replay exists the program
    /// sees it as a denial that says so.
    Ask(String),
    /// The evaluation was cancelled, or its total time ran out, while the host waited.
    Stopped,
}

impl ToolReply {
    /// How large a result is, in bytes of its text; 0 for anything else.
    pub fn bytes(&self) -> u64 {
        match self {
            ToolReply::Json(text) | ToolReply::Text(text) => text.len() as u64,
            _ => 0,
        }
    }

    /// What a record of the call says of it: `ok`, or a stable code.
    pub fn outcome(&self) -> &'static str {
        match self {
            ToolReply::Json(_) | ToolReply::Text(_) => "ok",
            ToolReply::Error(error) => error.kind.code(),
            ToolReply::Denied(_) => "ToolDenied",
            ToolReply::Ask(_) => "ToolNeedsApproval",
            ToolReply::Stopped => "stopped",
        }
    }
}

/// Why a tool call failed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ToolError {
    /// What kind of failure it was.
    pub kind: ToolErrorKind,
    /// What went wrong, naming server and tool but neither paths nor addresses of the host; lower case,
    /// no full stop.
    pub message: String,
    /// A correction, such as `Did you mean limit?`.
    pub suggestion: Option<String>,
}

impl ToolError {
    /// A failure of that kind, with that message and without a suggestion.
    pub fn new(kind: ToolErrorKind, message: impl Into<String>) -> ToolError {
        ToolError { kind, message: message.into(), suggestion: None }
    }

    /// That the tool itself failed, for that reason.
    pub fn failed(message: impl Into<String>) -> ToolError {
        ToolError::new(ToolErrorKind::Failed, message)
    }

    /// That the server could not be started or has gone, for that reason.
    pub fn unavailable(message: impl Into<String>) -> ToolError {
        ToolError::new(ToolErrorKind::Unavailable, message)
    }
}

/// The kinds of [`ToolError`]; each is an error code of its own for the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToolErrorKind {
    /// The tool answered with an error.
    Failed,
    /// The arguments do not fit the tool's schema; nothing was sent.
    Arguments,
    /// The tool took longer than its time-out.
    Timeout,
    /// The server could not be started, or went away.
    Unavailable,
    /// The reply was larger than may be taken in.
    TooLarge,
}

impl ToolErrorKind {
    /// The stable error code that a program and a client see.
    pub const fn code(self) -> &'static str {
        match self {
            ToolErrorKind::Failed => "ToolError",
            ToolErrorKind::Arguments => "ToolArgumentError",
            ToolErrorKind::Timeout => "ToolTimeout",
            ToolErrorKind::Unavailable => "ServerUnavailable",
            ToolErrorKind::TooLarge => "ToolResultTooLarge",
        }
    }
}

/// A downstream server as a program sees it in `(dir)`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// Its name in the configuration.
    pub name: String,
    /// One line on what it is for; empty when nothing is known.
    pub description: String,
}

/// A tool as its server describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tool {
    /// The server's name.
    pub server: String,
    /// The tool's exact name.
    pub name: String,
    /// What the tool does, as the server says it.
    pub description: String,
    /// The JSON Schema of its arguments, an object schema.
    pub input_schema: serde_json::Value,
    /// The JSON Schema of its result, where the server gives one.
    pub output_schema: Option<serde_json::Value>,
    /// What the server says of the tool's effects.
    pub hints: ToolHints,
    /// The JSON Schema of what calls have returned so far, where the server gives none and the host keeps it. The next
    /// result may be another.
    pub seen: Option<serde_json::Value>,
}

/// What a server says of a tool's effects; nothing where it does not say. A server may be wrong.
///
/// The names and meanings are those of MCP's tool annotations, without their defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolHints {
    /// The tool changes nothing.
    pub read_only: Option<bool>,
    /// What the tool changes may be lost by it.
    pub destructive: Option<bool>,
    /// Calling it again with the same arguments changes nothing more.
    pub idempotent: Option<bool>,
}

impl Tool {
    /// The names of its parameters, each with whether it is required: required ones first, both parts in
    /// the order of the schema. Signatures show this order, and positions in a call are counted in it.
    ///
    /// A name that `required` lists and `properties` lacks is the last of the required ones.
    pub fn parameters(&self) -> Vec<(&str, bool)> {
        let list = self.input_schema.get("required").and_then(serde_json::Value::as_array);
        let mut required: HashSet<&str> = HashSet::new();
        let in_order: Vec<&str> = list
            .into_iter()
            .flatten()
            .filter_map(serde_json::Value::as_str)
            .filter(|name| required.insert(name))
            .collect();
        let properties = self.input_schema.get("properties").and_then(serde_json::Value::as_object);
        let declared = || properties.into_iter().flat_map(|properties| properties.keys()).map(String::as_str);
        let is_declared = |name: &str| properties.is_some_and(|properties| properties.contains_key(name));
        let needed = declared().filter(|name| required.contains(name));
        let undeclared = in_order.iter().copied().filter(|name| !is_declared(name));
        let optional = declared().filter(|name| !required.contains(name));
        needed.chain(undeclared).map(|name| (name, true)).chain(optional.map(|name| (name, false))).collect()
    }
}

/// The names of parameters as a program writes them: in kebab case, or just as they are where that, up to spelling, is
/// the name of several.
pub(crate) fn written_names<'n>(names: impl Iterator<Item = &'n str> + Clone) -> Vec<Cow<'n, str>> {
    let mut spelled: HashMap<String, usize> = HashMap::new();
    names.clone().for_each(|name| *spelled.entry(canonical(name)).or_default() += 1);
    let is_shared = |name: &str| spelled.get(&canonical(name)).is_some_and(|count| *count > 1);
    names.map(|name| if is_shared(name) { Cow::Borrowed(name) } else { Cow::Owned(kebab(name)) }).collect()
}

/// All the tools that are known, and the servers whose tools are not.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// The tools, server by server in the order of the configuration.
    pub tools: Vec<Arc<Tool>>,
    /// Servers that did not answer, each with the reason.
    pub missing: Vec<(String, String)>,
}

/// What a search for tools found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The tools that fit, each with how well ([`Index::search`]), best first.
    pub tools: Vec<(Arc<Tool>, f64)>,
    /// How many others fit.
    pub more: usize,
    /// How many tools were gone through.
    pub searched: usize,
    /// Servers that did not answer, each with the reason.
    pub missing: Vec<(String, String)>,
}

impl Found {
    /// What a search finds in a catalogue by the index of its tools.
    pub fn by(index: &Index, catalogue: Catalogue, query: &str, most: usize) -> Found {
        let Hits { best, more } = index.search(query, most);
        let tools = best.into_iter().map(|(at, score)| (Arc::clone(&catalogue.tools[at]), score)).collect();
        Found { tools, more, searched: index.len(), missing: catalogue.missing }
    }
}

/// Why a session can neither be copied nor be closed.
pub(crate) const NO_HANDLES: &str = "sessions have no handles here; this one ends with the process";

/// What runs a program's requests to the outside; see the module's text.
pub trait Host: Any + Send + Sync {
    /// The servers that stand behind this host, without starting any.
    fn servers(&self) -> Vec<Server> {
        Vec::new()
    }

    /// The tools of one server, by its exact name; may start it. An error says why it cannot be used.
    fn tools(&self, server: &str) -> Result<Vec<Arc<Tool>>, ToolError> {
        Err(ToolError::unavailable(format!("there is no server `{server}`")))
    }

    /// The tools that a server has and that may not be called, each with the rule that says so, as a clause. They are
    /// not among its [`tools`](Host::tools).
    fn denied(&self, _server: &str) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Takes down that the program named a tool that is among the [`denied`](Host::denied) ones, and got an error for it.
    fn refused(&self, _server: &str, _tool: &str) {}

    /// The tools of all servers: used for bare names, suggestions and searches. Here one server is asked
    /// after the other; a host whose servers take their time lists those that are not known yet once, in
    /// parallel and within a bound.
    fn catalogue(&self) -> Catalogue {
        let mut catalogue = Catalogue::default();
        for server in self.servers() {
            match self.tools(&server.name) {
                Ok(tools) => catalogue.tools.extend(tools),
                Err(error) => catalogue.missing.push((server.name, error.message)),
            }
        }
        catalogue
    }

    /// The tools that fit a query best, at most so many. Here an index of the whole catalogue is made for each search; a
    /// host with many tools keeps one.
    fn search(&self, query: &str, most: usize) -> Found {
        let catalogue = self.catalogue();
        Found::by(&Index::of_tools(&catalogue.tools), catalogue, query, most)
    }

    /// Calls a tool and waits for its reply. The host checks the arguments against the tool's schema
    /// before it sends anything: their names are the schema's own where the program's spelling fits one.
    fn call(&self, call: ToolCall) -> ToolReply;

    /// What there is to say about how a call was made that has just been answered, such as that its arguments were changed
    /// to fit; asked once.
    fn note(&self, _call: &CallId) -> Option<String> {
        None
    }

    /// Gives up a call because a branch beside its own has failed: its [`call`](Host::call), which may just be about
    /// to begin, is to answer [`ToolReply::Stopped`] soon. Where a host does nothing here, the call is waited for.
    fn give_up(&self, _call: &CallId) {}

    /// Passes on one piece of printed text as it is printed. It is in the reply all the same.
    fn print(&self, _text: &str) {}

    /// The time of day: milliseconds since 1970-01-01T00:00:00Z.
    fn now_millis(&self) -> i64;

    /// The handle of a new session, which is to have what this one has when the evaluation ends, for `session/fork`.
    ///
    /// # Errors
    /// Why there is none, as a clause.
    fn fork_session(&self) -> Result<String, String> {
        Err(NO_HANDLES.to_owned())
    }

    /// Has the session end with the evaluation, for `session/close`.
    ///
    /// # Errors
    /// Why it does not, as a clause.
    fn close_session(&self) -> Result<(), String> {
        Err(NO_HANDLES.to_owned())
    }

    /// Sixty-four random bits, for `rand` and its kin.
    fn random(&self) -> u64;

    /// A clock that only moves forward, for the time limits. Its origin does not matter.
    fn monotonic(&self) -> Duration;

    /// True once the evaluation should stop: the client has gone, the request was cancelled, the
    /// process is shutting down. Asked every few hundred steps, so it must be cheap.
    fn cancelled(&self) -> bool {
        false
    }
}
