//! The only interface between the language and the outside world.
//!
//! A program has no clock, no randomness, no files and no network but those of its host. The caller that runs a program provides a
//! [`Host`]: the MCP server implements it over downstream servers, tests use a scripted one, and an embedder writes
//! their own. Every method may block and may be called from several threads at once (the branches of `pmap` wait here
//! concurrently).
//!
//! Tool calls cross this interface as JSON text, so that a host can also be the other end of a pipe. A host within the
//! process may ask for the [values](Host::takes_values) as well, since JSON has neither decimals nor dates. An operation that the host computes by itself, without blocking, is better a
//! function that it adds to the language ([`EngineBuilder::function`](crate::EngineBuilder::function)).

mod access;
mod call;
mod clock;
mod failure;
mod parameters;

pub use access::{HostAccess, NoHost};
pub use call::{CallId, CallIdError, Decision, Question};
pub use clock::{OsRandom, SeededRandom, SystemClock, TestClock};
pub use failure::{ToolError, ToolErrorKind, panic_text};
pub(crate) use parameters::Alternative;
pub use parameters::meant;

use crate::index::{Hits, Index};
use crate::value::Value;
use crate::value::map::kebab;
use crate::value::names::canonical;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// One call of a tool, with the exact names of the downstream server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ToolCall {
    /// Identity of this call within the evaluation.
    pub id: CallId,
    /// The server's name.
    pub server: Arc<str>,
    /// The tool's name.
    pub tool: Arc<str>,
    /// The arguments: the text of a JSON object.
    pub arguments: String,
    /// The remaining total time of the evaluation. When it has elapsed, the host gives up and returns
    /// [`ToolReply::Stopped`].
    pub remaining: Duration,
    /// The timeout of this call, unless the host is configured otherwise for this tool.
    pub timeout: Duration,
    /// The steps that the evaluation has spent so far.
    pub fuel: u64,
    /// The live bytes of the evaluation and its session.
    pub memory: u64,
    /// The arguments that a person has approved for this call, as they will be sent. The evaluation never sets them.
    pub approved: Option<Arc<str>>,
    /// The arguments as a map without lazy parts, for a host that [takes values](Host::takes_values).
    #[serde(skip)]
    pub values: Option<Value>,
    /// The number of bytes that the result may take.
    #[serde(skip, default = "unbounded")]
    pub room: u64,
}

/// The room for the result of a call that came from another process, which bounds messages itself.
fn unbounded() -> u64 {
    u64::MAX
}

impl ToolCall {
    /// Copies the call with its texts, which a clone would share.
    pub(crate) fn apart(&self) -> ToolCall {
        let approved = self.approved.as_deref().map(Arc::from);
        ToolCall { server: Arc::from(&*self.server), tool: Arc::from(&*self.tool), approved, ..self.clone() }
    }
}

/// The outcome of a tool call, as a [`Layer`](crate::Layer) sees it.
///
/// ```
/// use lispbox::lang::ToolReply;
///
/// let reply = ToolReply::Json("[1, 2]".to_owned());
/// assert_eq!((reply.outcome(), reply.bytes(), reply.text()), ("ok", 6, Some("[1, 2]")));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToolReply {
    /// A result that is JSON text.
    Json(String),
    /// A result that is plain text.
    Text(String),
    /// A result that is JSON text with marks for data that JSON lacks, from a host that takes values.
    Marked(String),
    /// The call failed; the program can catch this.
    Error(ToolError),
    /// Policy denies the call; the text names the rule. The program can catch this.
    Denied(String),
    /// A person must decide on the call, which was not made. The evaluation asks the host for the
    /// [decisions](Host::decide) on all such calls once it can do nothing else, and makes the call again if it is
    /// approved.
    Ask(Box<Question>),
    /// A person would have to decide on the call, but none can be asked; the text describes why. The program can catch
    /// this.
    Unapproved(String),
    /// The run is replayed, and the call differs from the recorded one, as the text describes. Nothing was sent. The
    /// program cannot catch this.
    Diverged(String),
    /// The run is held to a plan, and the call is not part of it, as the text describes. Nothing was sent. The program
    /// cannot catch this.
    Unplanned(String),
    /// An earlier program has made the call, as the text describes. Nothing was sent. The program cannot catch this.
    Repeated(String),
    /// The call was not made, because the evaluation is a rehearsal. The program gets a value that it can pass on, but
    /// that it cannot look into.
    Rehearsed,
    /// The evaluation was cancelled, or its total time elapsed, while the host waited.
    Stopped,
}

/// Tells if a call has changed something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// It has.
    Yes,
    /// It has not: it was not sent, its tool answered that it failed, or it may change nothing.
    No,
    /// It was sent, and its outcome is not known.
    Unknown,
}

impl ToolReply {
    /// Returns whether a call with this reply, of a tool that may change something, has changed it.
    pub(crate) fn happened(&self, is_sent: bool) -> Happened {
        use ToolErrorKind::{
            Arguments, Busy, Changed, Failed, Panicked, Timeout, TooLarge, Unavailable, Uncertain, Unreadable,
        };
        let unknown = if is_sent { Happened::Unknown } else { Happened::No };
        match self {
            ToolReply::Json(_) | ToolReply::Text(_) | ToolReply::Marked(_) => Happened::Yes,
            ToolReply::Stopped => unknown,
            ToolReply::Error(error) => match error.kind {
                TooLarge => Happened::Yes,
                Timeout | Unavailable | Panicked | Unreadable | Uncertain => unknown,
                Failed | Arguments | Busy | Changed => Happened::No,
            },
            _ => Happened::No,
        }
    }

    /// Returns the text of a result, whatever it holds; `None` for any other reply.
    pub fn text(&self) -> Option<&str> {
        match self {
            ToolReply::Json(text) | ToolReply::Text(text) | ToolReply::Marked(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the size of a result, in bytes of its text; 0 for any other reply.
    pub fn bytes(&self) -> u64 {
        self.text().map_or(0, str::len) as u64
    }

    /// Returns the outcome for a record of the call: `ok`, or a stable code.
    pub fn outcome(&self) -> &'static str {
        match self {
            ToolReply::Json(_) | ToolReply::Text(_) | ToolReply::Marked(_) => "ok",
            ToolReply::Error(error) => error.kind.code(),
            ToolReply::Denied(_) => "ToolDenied",
            ToolReply::Ask(_) => "asked",
            ToolReply::Unapproved(_) => "ToolNeedsApproval",
            ToolReply::Diverged(_) => "ReplayDiverged",
            ToolReply::Unplanned(_) => "PlanExceeded",
            ToolReply::Repeated(_) => "EffectRepeated",
            ToolReply::Rehearsed => "rehearsed",
            ToolReply::Stopped => "stopped",
        }
    }
}

/// A downstream server as shown by `(dir)`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// Its name in the configuration.
    pub name: String,
    /// One line on its purpose; empty if unknown.
    pub description: String,
}

/// A tool, as described by its server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// The server's name.
    pub server: String,
    /// The tool's exact name.
    pub name: String,
    /// The server's description of the tool.
    pub description: String,
    /// The JSON Schema of its arguments: an object schema.
    pub input_schema: serde_json::Value,
    /// The JSON Schema of its result, if the server provides one.
    pub output_schema: Option<serde_json::Value>,
    /// The server's claims about the tool's effects.
    pub hints: ToolHints,
    /// The JSON Schema inferred from past results, if the server provides none and the host keeps it. The next result
    /// may not match it.
    pub seen: Option<serde_json::Value>,
}

/// A server's claims about a tool's effects; `None` where it makes none. A server may be wrong.
///
/// The names and meanings are those of MCP's tool annotations, without their defaults.
///
/// ```
/// use lispbox::lang::ToolHints;
///
/// assert_eq!(ToolHints::default(), ToolHints { read_only: None, destructive: None, idempotent: None });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolHints {
    /// The tool modifies nothing.
    pub read_only: Option<bool>,
    /// The tool may destroy the data that it modifies.
    pub destructive: Option<bool>,
    /// The tool is idempotent: another call with the same arguments has no further effect.
    pub idempotent: Option<bool>,
}

impl Tool {
    /// Returns the names of the parameters, each with whether it is required. Required parameters come first; both
    /// groups are in the order of the schema. Signatures show this order, and positional arguments follow it.
    ///
    /// A name that `required` lists and `properties` lacks comes last among the required ones. Parameters that are
    /// declared in alternatives come last of all; they are required if each alternative requires them.
    pub fn parameters(&self) -> Vec<(&str, bool)> {
        parameters::parameters(&self.input_schema)
    }

    /// Returns the schema of a parameter: that at the top, or else those of the alternatives.
    pub(crate) fn parameter(&self, name: &str) -> Option<Cow<'_, serde_json::Value>> {
        parameters::parameter(&self.input_schema, name)
    }

    /// Returns the alternatives of the arguments as a whole. `None` if there are none, or if one of them has no parameter
    /// by which it is recognised.
    pub(crate) fn alternatives(&self) -> Option<Vec<Alternative<'_>>> {
        parameters::alternatives(&self.input_schema)
    }
}

/// Returns parameter names as a program writes them: in kebab case, or unchanged if several names have the same
/// canonical spelling.
pub(crate) fn written_names<'n>(names: impl Iterator<Item = &'n str> + Clone) -> Vec<Cow<'n, str>> {
    let mut spelled: HashMap<String, usize> = HashMap::new();
    names.clone().for_each(|name| *spelled.entry(canonical(name)).or_default() += 1);
    let is_shared = |name: &str| spelled.get(&canonical(name)).is_some_and(|count| *count > 1);
    names.map(|name| if is_shared(name) { Cow::Borrowed(name) } else { Cow::Owned(kebab(name)) }).collect()
}

/// All known tools, and the servers whose tools are unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Catalogue {
    /// The tools, server by server in the order of the configuration.
    pub tools: Vec<Arc<Tool>>,
    /// Servers that did not respond, each with the reason.
    pub missing: Vec<(String, String)>,
}

/// The result of a search for tools.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The matching tools, best first, each with its score ([`Index::search`]).
    pub tools: Vec<(Arc<Tool>, f64)>,
    /// The number of further matches.
    pub more: usize,
    /// The number of tools searched.
    pub searched: usize,
    /// Servers that did not respond, each with the reason.
    pub missing: Vec<(String, String)>,
}

impl Found {
    /// Searches a catalogue through the index of its tools.
    pub fn by(index: &Index, catalogue: Catalogue, query: &str, most: usize) -> Found {
        let Hits { best, more } = index.search(query, most);
        let tools = best.into_iter().map(|(at, score)| (Arc::clone(&catalogue.tools[at]), score)).collect();
        Found { tools, more, searched: index.len(), missing: catalogue.missing }
    }
}

/// The reason why a session can neither be forked nor be closed.
pub const NO_HANDLES: &str = "sessions have no handles here; this one ends with the process";

/// The reason why there are no runs to ask about.
pub const NO_RUNS: &str = "runs are not stored here; a server with `--store` stores them";

/// The reader of messages that say how to change what a program may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Audience {
    /// An embedder, who registers tools and sets limits in Rust.
    #[default]
    Embedder,
    /// A model, or a person at a terminal; tools come from a configuration.
    User,
}

/// The environment that serves a program's requests to the outside; see the module documentation.
pub trait Host: Send + Sync {
    /// Returns the reader of messages.
    fn audience(&self) -> Audience {
        Audience::Embedder
    }

    /// Returns whether calls need their arguments as [values](ToolCall::values) too.
    fn takes_values(&self) -> bool {
        false
    }

    /// Returns the downstream servers of this host, without starting any.
    fn servers(&self) -> Vec<Server> {
        Vec::new()
    }

    /// Returns the tools of one server, given its exact name; may start it. The error states why it cannot be used.
    fn tools(&self, server: &str) -> Result<Vec<Arc<Tool>>, ToolError> {
        Err(ToolError::unavailable(format!("there is no server `{server}`")))
    }

    /// Asks a server for its tools once more, before a program is told that a tool or an argument does not exist; `None`
    /// if the known list cannot be out of date, or was renewed a short time ago.
    fn tools_anew(&self, _server: &str) -> Option<Vec<Arc<Tool>>> {
        None
    }

    /// Returns what a server says about its use as a whole, in its own words; `None` if it says nothing, or is not started.
    fn instructions(&self, _server: &str) -> Option<String> {
        None
    }

    /// Returns the tools of a server that may not be called, each with the rule that denies it, as a clause. They are
    /// not among its [`tools`](Host::tools).
    fn denied(&self, _server: &str) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Records that the program named one of the [`denied`](Host::denied) tools and received an error for it.
    fn refused(&self, _server: &str, _tool: &str) {}

    /// Returns the tools of all servers, for bare names, suggestions and searches. The default implementation queries
    /// the servers one after the other. A host with slow servers should query those whose tools are not cached once, in
    /// parallel and with a deadline.
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

    /// Returns the tools that match a query best, at most `most` of them. The default implementation indexes the whole
    /// catalogue for each search; a host with many tools should keep an index.
    fn search(&self, query: &str, most: usize) -> Found {
        let catalogue = self.catalogue();
        Found::by(&Index::of_tools(&catalogue.tools), catalogue, query, most)
    }

    /// Calls a tool and waits for its reply. The host validates the arguments against the tool's schema before it sends
    /// anything, and maps their names to those of the schema where the program's spelling differs.
    ///
    /// The default implementation has no tools. A panic in a call is an error of that call.
    fn call(&self, call: ToolCall) -> ToolReply {
        ToolReply::Error(ToolError::unavailable(format!("there is no server `{}`", call.server)))
    }

    /// Decides on the calls that were answered by [`ToolReply::Ask`], in the order in which they were asked; returns a
    /// decision on each. The evaluation calls this when all its branches have ended or wait for a decision, so that a
    /// person is asked about their calls together. If a decision is [`Decision::Pending`], the run is suspended.
    ///
    /// The default implementation has no person to ask.
    fn decide(&self, questions: &[Question]) -> Vec<Decision> {
        questions.iter().map(|question| Decision::Unavailable(question.reason.clone())).collect()
    }

    /// Records that a top-level form begins; all forms before it are committed.
    fn begin_form(&self, _form: u32) {}

    /// Returns false if a call that has just been answered was surely not sent to its tool. The default implementation
    /// does not know, and returns true.
    fn was_sent(&self, _call: &CallId) -> bool {
        true
    }

    /// Returns true if a call that has just been answered was made by an earlier attempt of its run, and not again: it
    /// does not count towards the limit of calls. The default implementation has no attempts, and returns false.
    fn was_made_before(&self, _call: &CallId) -> bool {
        false
    }

    /// Returns a remark about a call that has just been answered, such as that its arguments were changed to fit;
    /// called once per call.
    fn note(&self, _call: &CallId) -> Option<String> {
        None
    }

    /// Abandons a call because a sibling branch has failed: its [`call`](Host::call), which may be just about to begin,
    /// should return [`ToolReply::Stopped`] soon. The default implementation does nothing, so that the caller waits for
    /// the call.
    fn give_up(&self, _call: &CallId) {}

    /// Forwards one piece of printed text as it is printed. The reply contains it as well.
    fn print(&self, _text: &str) {}

    /// Returns the time of day, in milliseconds since 1970-01-01T00:00:00Z; by default that of [`SystemClock`].
    fn now_millis(&self) -> i64 {
        SystemClock.now_millis()
    }

    /// Creates a session that receives the state of this one when the evaluation ends, and returns its handle, for
    /// `session/fork`.
    ///
    /// # Errors
    /// Returns the reason why it cannot, as a clause.
    fn fork_session(&self) -> Result<String, String> {
        Err(NO_HANDLES.to_owned())
    }

    /// Marks the session to be closed at the end of the evaluation, for `session/close`.
    ///
    /// # Errors
    /// Returns the reason why it cannot, as a clause.
    fn close_session(&self) -> Result<(), String> {
        Err(NO_HANDLES.to_owned())
    }

    /// Describes the runs of this user that wait or were cut off, or one run, for `run/status`: the text of a JSON array
    /// or object.
    ///
    /// # Errors
    /// Returns the reason why it cannot, as a clause.
    fn runs(&self, _run: Option<&str>) -> Result<String, String> {
        Err(NO_RUNS.to_owned())
    }

    /// Returns 64 random bits, for `rand` and its kin; by default those of [`OsRandom`].
    fn random(&self) -> u64 {
        OsRandom.bits()
    }

    /// Returns the time of a monotonic clock, for the time limits; by default that of [`SystemClock`]. Its origin does
    /// not matter.
    fn monotonic(&self) -> Duration {
        SystemClock.monotonic()
    }

    /// Returns the time for which a processor has run the calling thread, for the limit `compute`: an evaluation that
    /// waits for a busy machine does not compute. By default it is not known, and all time counts in which the
    /// evaluation does not wait for the host. Asked at most every 50 ms, or where a limit seems to be exceeded.
    fn processor_time(&self) -> Option<Duration> {
        None
    }

    /// Returns the number of bytes that the host keeps for the evaluation, such as the log of its run. They count towards
    /// its memory. Polled every few hundred steps, so it must be cheap.
    fn held(&self) -> u64 {
        0
    }

    /// Returns true once the evaluation should stop: the client has disconnected, the request was cancelled, or the
    /// process is shutting down. Polled every few hundred steps, so it must be cheap.
    fn cancelled(&self) -> bool {
        false
    }
}

/// The record of one tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallRecord {
    /// The exact name of the server.
    pub server: Arc<str>,
    /// The exact name of the tool.
    pub tool: Arc<str>,
    /// The duration in milliseconds.
    pub ms: u64,
    /// `ok`, or the error code.
    pub outcome: Cow<'static, str>,
    /// A remark on how the call was made, such as that its arguments were changed to fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The first arguments of a call that has failed, and why, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

impl CallRecord {
    /// Copies the record with its texts, which a clone would share.
    pub(crate) fn apart(&self) -> CallRecord {
        CallRecord { server: Arc::from(&*self.server), tool: Arc::from(&*self.tool), ..self.clone() }
    }
}
