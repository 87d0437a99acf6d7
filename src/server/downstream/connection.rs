//! One connection to a server, from its handshake to its end, and the requests on it.

use std::error::Error;
use std::ops::Deref;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientRequest, ErrorCode, JsonObject, ListToolsRequest,
    ListToolsResult, PaginatedRequestParams, PingRequest,
};
use rmcp::service::{Peer, RunningService, ServiceError};
use serde_json::{Value, json};
use tokio::process::ChildStdin;
use tokio::sync::{Mutex, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::lang::internal::foreign_text;
use crate::lang::{ToolError, ToolErrorKind, ToolReply};
use crate::server::identity::sha256;
use crate::server::secrets::Secrets;
use crate::server::system::{blocking, offload};
use crate::server::text::cut;
use crate::server::transport::backlog::MOST_SAID;
use crate::server::transport::lines::{self, Direct, Stream};

use super::asked::{Asked, DirectCalls, Reports};
use super::client::Client;
use super::http;
use super::lifetime::Lifetime;
use super::list::{List, NO_TOOLS};
use super::listing;
use super::problems::{self, quoted};
use super::process::ServerProcess;
use super::refusals;
use super::result::{add_weight, late, stalled};
use super::uncertain;

/// Interval at which an end of the requests on a connection is looked for.
const LOOK: Duration = Duration::from_millis(100);
/// Timeout of a ping.
const PING: Duration = Duration::from_secs(2);
/// Timeout for one page of the tool list.
const PAGE: Duration = Duration::from_secs(10);
/// Maximum number of pages of the tool list; a server with more is assumed to repeat them endlessly.
const MOST_PAGES: usize = 200;

/// Maximum length of what a server says about its use, in bytes.
const LONGEST_INSTRUCTIONS: usize = 16_000;

/// The reason why a request has no answer.
pub(in crate::server) enum Failure {
    /// The call is to end: its evaluation is over, was cancelled, or has lost its session.
    Stopped,
    /// The server could not be started, or not in time.
    NotStarted(Option<ToolError>),
    /// The connection broke before the server received any part of the request.
    Unsent(ToolError),
    /// The connection broke, and it is unknown whether the server has carried out the request.
    Lost(ToolError),
    /// Any other failure.
    Final(ToolError),
}

impl Failure {
    /// Makes a lost request retryable; for requests that a server may safely receive twice.
    pub(super) fn harmless(self) -> Failure {
        match self {
            Failure::Lost(error) => Failure::Unsent(error),
            other => other,
        }
    }

    /// Returns the reply to the program.
    pub(in crate::server) fn reply(self) -> ToolReply {
        match self {
            Failure::Stopped => ToolReply::Stopped,
            failure => ToolReply::Error(failure.error()),
        }
    }

    /// The error to report.
    pub(super) fn error(self) -> ToolError {
        match self {
            Failure::Unsent(error) | Failure::Lost(error) | Failure::Final(error) => error,
            Failure::Stopped => ToolError::unavailable("the evaluation was stopped"),
            Failure::NotStarted(error) => {
                error.unwrap_or_else(|| ToolError::unavailable("the server did not start in time"))
            }
        }
    }
}

/// A lease on a connection: the connection counts as used until this is dropped.
pub(in crate::server) struct InUse(Arc<Connection>);

impl InUse {
    /// Marks a connection as used.
    pub(super) fn of(connection: &Arc<Connection>) -> InUse {
        connection.uses().open += 1;
        InUse(Arc::clone(connection))
    }
}

impl Deref for InUse {
    type Target = Arc<Connection>;

    fn deref(&self) -> &Arc<Connection> {
        &self.0
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        let mut uses = self.0.uses();
        uses.open -= 1;
        uses.last = Instant::now();
    }
}

/// The authorization of a connection's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Authorization {
    /// By a header of the configuration.
    Configured,
    /// By a login, if there is one.
    ByLogin,
}

impl Authorization {
    /// Returns the next step, as a clause, if the server named so asks for authorization.
    pub(super) fn advice(self, server: &str) -> String {
        match self {
            Authorization::Configured => problems::NOT_ACCEPTED.to_owned(),
            Authorization::ByLogin => format!("; log in with `lispbox login {server}`"),
        }
    }
}

/// Usage of a connection.
struct Uses {
    open: usize,
    last: Instant,
}

/// The transport of a connection, as far as requests depend on it.
enum Link {
    /// The pipes of a process, with the sender of calls that bypasses rmcp's task of the connection.
    Process(ServerProcess, DirectCalls),
    /// Streamable HTTP, on which no two requests under way share a connection.
    Http(Authorization),
    /// HTTP, with all answers in one stream of events.
    Events,
}

impl Link {
    fn process(&self) -> Option<&ServerProcess> {
        match self {
            Link::Process(process, _) => Some(process),
            Link::Http(_) | Link::Events => None,
        }
    }

    fn direct_calls(&self) -> Option<&DirectCalls> {
        match self {
            Link::Process(_, calls) => Some(calls),
            Link::Http(_) | Link::Events => None,
        }
    }
}

/// A connection whose handshake is complete.
pub(in crate::server) struct Connection {
    name: String,
    peer: Peer<RoleClient>,
    running: Mutex<Option<RunningService<RoleClient, Client>>>,
    link: Link,
    lifetime: Lifetime,
    /// True once a call was answered.
    was_answered: AtomicBool,
    reports: Arc<Reports>,
    /// True once the server has refused a call in a way that its tools may have changed.
    list_doubted: AtomicBool,
    uses: StdMutex<Uses>,
    /// Room for the arguments of the calls that are under way, in bytes. Calls wait for it, so that a server that reads slowly
    /// is not taken for one that does not read.
    room: Semaphore,
    /// The secrets that are redacted from everything that the server sends.
    secrets: Secrets,
}

impl Connection {
    /// Creates a connection to the named server. The connection is broken once `ended` is cancelled.
    pub(super) fn new(
        name: &str,
        running: RunningService<RoleClient, Client>,
        reports: Arc<Reports>,
        ended: CancellationToken,
        secrets: Secrets,
    ) -> Connection {
        Connection {
            name: name.to_owned(),
            peer: running.peer().clone(),
            running: Mutex::new(Some(running)),
            link: Link::Events,
            lifetime: Lifetime::until(ended),
            was_answered: AtomicBool::new(false),
            reports,
            list_doubted: AtomicBool::new(false),
            uses: StdMutex::new(Uses { open: 0, last: Instant::now() }),
            room: Semaphore::new(MOST_SAID),
            secrets,
        }
    }

    /// Attaches the server process of the connection, and what makes requests on its pipes.
    pub(super) fn to(self, process: ServerProcess, direct: Direct<Stream<ChildStdin>>) -> Connection {
        let calls = DirectCalls::new(direct, &self.peer);
        Connection { link: Link::Process(process, calls), ..self }
    }

    /// Marks the connection as one over streamable HTTP.
    pub(super) fn over_http(self, authorization: Authorization) -> Connection {
        Connection { link: Link::Http(authorization), ..self }
    }

    /// False once the server has gone, or no further request may begin.
    pub(super) fn lives(&self) -> bool {
        self.lifetime.goes_on() && !self.peer.is_transport_closed()
    }

    /// True if no further request may begin, but those that are under way go on.
    pub(super) fn is_retired(&self) -> bool {
        self.lifetime.is_retired()
    }

    /// True once a call was answered.
    pub(super) fn was_answered(&self) -> bool {
        self.was_answered.load(Ordering::Acquire)
    }

    /// Returns the time at which the server was found gone.
    pub(super) fn ended_at(&self) -> Instant {
        self.lifetime.ended_at()
    }

    /// Ends the connection because a request was lost. Over HTTP the others are on other connections, and go on.
    fn breaks(&self) {
        match self.link {
            Link::Http(_) => self.lifetime.retire(),
            Link::Process(..) | Link::Events => self.lifetime.end(),
        }
    }

    /// Ends the connection once nothing is under way on it.
    pub(super) async fn close_when_unused(self: Arc<Self>) {
        while self.idle().is_none() {
            tokio::time::sleep(LOOK).await;
        }
        self.close().await;
    }

    fn uses(&self) -> MutexGuard<'_, Uses> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how long the connection has been unused; `None` while it is in use.
    pub(super) fn idle(&self) -> Option<Duration> {
        let uses = self.uses();
        (uses.open == 0).then(|| uses.last.elapsed())
    }

    /// The time for which the server was connected.
    pub(super) fn age(&self) -> Duration {
        self.lifetime.age()
    }

    /// Pings the server; returns whether it is usable: it answers, or it is a process that runs, with its state.
    pub(super) async fn answers(&self) -> bool {
        let ping = self.peer.send_request(ClientRequest::PingRequest(PingRequest::default()));
        match (tokio::time::timeout(PING, ping).await, self.link.process()) {
            (Ok(Ok(_)), _) => true,
            // A process has no sessions that it can forget: any answer is a sign of life, and so is the process.
            (Ok(Err(ServiceError::McpError(_) | ServiceError::UnexpectedResponse)), Some(_)) => true,
            (Err(_), Some(process)) => process.runs(),
            // MCP versions from 2026-07-28 on have no `ping`. Any other refusal means that the server has forgotten
            // our session.
            (Ok(Err(ServiceError::McpError(error))), None) => error.code == ErrorCode::METHOD_NOT_FOUND,
            (Ok(Err(_)) | Err(_), _) => false,
        }
    }

    /// Returns the SHA-256 of the server's name and version, as it reports them. Its reports may contain secrets.
    pub(super) fn version(&self) -> String {
        let peer = self.peer.peer_info();
        let about = peer.as_ref().and_then(|peer| peer.server_info.as_ref());
        let about = about.map_or_else(Value::default, |about| json!([about.name, about.version]));
        sha256(about.to_string().as_bytes())
    }

    /// Returns what the server says about its use, with its secrets redacted.
    pub(super) fn instructions(&self) -> Option<String> {
        let peer = self.peer.peer_info();
        let said = peer
            .as_ref()
            .and_then(|peer| peer.instructions.as_deref())
            .map(str::trim)
            .filter(|said| !said.is_empty())?;
        Some(cut(&self.secrets.redact(said), LONGEST_INSTRUCTIONS))
    }

    /// Returns true once after the server has reported a change of its tools.
    pub(super) fn take_list_changed(&self) -> bool {
        self.reports.take_list_changed()
    }

    /// Returns true once after the server has refused a call as one of an unknown tool or with wrong arguments.
    pub(super) fn take_list_doubted(&self) -> bool {
        self.list_doubted.swap(false, Ordering::AcqRel)
    }

    /// Fetches all pages of the tool list, each within `patience`, or a shorter time by default.
    pub(super) async fn list(&self, patience: Option<Duration>) -> Result<List, Failure> {
        let mut tools = List::default();
        let mut cursor = None;
        for _ in 0..MOST_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor.clone());
            let page = self.answered(self.page(page, patience.is_some()), patience.unwrap_or(PAGE), "tools/list");
            let (page, unreadable) = match page.await {
                Err(Failure::Final(error)) if error.kind == ToolErrorKind::Timeout => {
                    // A server that has listed tools has them, whatever it says.
                    if patience.is_some() && !self.offers_tools() {
                        return Ok(List::without_tools(&self.name));
                    }
                    let advice = patience.map(|_| "`start_timeout_seconds` of the server allows more".to_owned());
                    return Err(Failure::Final(ToolError { suggestion: advice, ..error }));
                }
                page => page?,
            };
            tools.is_fresh_for(page.ttl_ms);
            let (name, secrets, mut so_far) = (self.name.clone(), self.secrets.clone(), tools);
            let taken = offload::linear(usize::MAX, move || {
                unreadable.iter().for_each(|problem| so_far.leave_out(&name, secrets.redact(problem).into_owned()));
                let is_all = so_far.add(&name, page.tools, &secrets);
                (so_far, is_all)
            });
            let is_all;
            (tools, is_all) = taken.await;
            if !is_all {
                tracing::warn!(
                    server = self.name,
                    tools = tools.tools.len(),
                    "the list of tools is too long; the rest is left out"
                );
                return Ok(tools.without_twins(&self.name));
            }
            if page.next_cursor.is_none() || page.next_cursor == cursor {
                return Ok(tools.without_twins(&self.name));
            }
            cursor = page.next_cursor;
        }
        tracing::warn!(server = self.name, "the list of tools does not end");
        Ok(tools.without_twins(&self.name))
    }

    /// Fetches one page of the tool list, with the reasons why tools on it are unreadable. One such tool makes rmcp's
    /// typed parse of the reply fail, so the page is requested once more, and each tool on it is parsed separately.
    async fn page(
        &self,
        page: PaginatedRequestParams,
        is_first_list: bool,
    ) -> Result<(ListToolsResult, Vec<String>), ServiceError> {
        match self.peer.list_tools(Some(page.clone())).await {
            Err(ServiceError::UnexpectedResponse) => {
                let again = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(page));
                let reply = self.peer.send_request(again).await?;
                let read = offload::linear(usize::MAX, move || listing::readable(reply)).await;
                read.ok_or(ServiceError::UnexpectedResponse)
            }
            // A server may offer prompts or resources alone.
            Err(ServiceError::McpError(error)) if is_first_list && !self.offers_tools() => {
                let reason = match error.code {
                    ErrorCode::METHOD_NOT_FOUND => NO_TOOLS.to_owned(),
                    _ => format!("it offers no tools, and lists none: {}", quoted(&error.message, &self.secrets)),
                };
                Ok((ListToolsResult::default(), vec![reason]))
            }
            page => page.map(|page| (page, Vec::new())),
        }
    }

    /// Returns whether the server says that it has tools.
    fn offers_tools(&self) -> bool {
        self.peer.peer_info().is_some_and(|peer| peer.capabilities.tools.is_some())
    }

    /// Calls a tool. Dropping the future cancels the call at the server. A call that is harmless may reach it twice.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        timeout: Duration,
        is_harmless: bool,
    ) -> Result<CallToolResult, Failure> {
        let mut bytes = 1;
        arguments.values().for_each(|value| add_weight(value, (1, MOST_SAID), &mut bytes));
        let bytes = bytes.min(MOST_SAID);
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let what = foreign_text::qualified(&self.name, tool);
        let asked = Asked::new(&self.peer, self.link.direct_calls(), &self.reports);
        let request = async {
            // It is never closed, and has as much room as is asked for.
            let _room = self.room.acquire_many(u32::try_from(bytes).unwrap_or(u32::MAX)).await;
            let answer = asked.answer(request, is_harmless).await;
            if refusals::is_of_list(&answer) {
                self.list_doubted.store(true, Ordering::Release);
            }
            answer
        };
        let within = self.within(request, timeout, &what, || asked.last_progress());
        let answer = within.await.map_err(|failure| match failure {
            Failure::Final(error) if error.kind == ToolErrorKind::Timeout => Failure::Final(with_more_time(error)),
            failure => failure,
        })?;
        self.was_answered.store(true, Ordering::Release);
        match answer {
            CallToolResponse::Complete(result) => Ok(result),
            CallToolResponse::InputRequired(_) => {
                Err(failed(format!("`{what}` asks a person for input, which is not possible here")))
            }
            // The task may be carried out.
            _ => {
                let message = format!("`{what}` answered with a task instead of a result, which is not supported");
                Err(Failure::Final(ToolError::new(ToolErrorKind::Unreadable, message)))
            }
        }
    }

    /// Waits for an answer, for at most `timeout`, and no longer than the connection lasts.
    async fn answered<T>(
        &self,
        request: impl Future<Output = Result<T, ServiceError>>,
        timeout: Duration,
        what: &str,
    ) -> Result<T, Failure> {
        self.within(request, timeout, what, || None).await
    }

    /// Waits for an answer as [`Connection::answered`] does; `timeout` begins again at each progress.
    async fn within<T>(
        &self,
        request: impl Future<Output = Result<T, ServiceError>>,
        timeout: Duration,
        what: &str,
        last_progress: impl Fn() -> Option<Instant>,
    ) -> Result<T, Failure> {
        if !self.lives() {
            return Err(Failure::Unsent(self.gone(what).await));
        }
        let mut request = pin!(request);
        let mut left = timeout;
        let problem = loop {
            tokio::select! {
                biased;
                answer = blocking::within(left, &mut request) => match answer {
                    Some(Ok(answer)) => return Ok(answer),
                    Some(Err(problem)) => break problem,
                    None => match last_progress() {
                        None => return Err(Failure::Final(late(what, timeout))),
                        Some(at) => match timeout.checked_sub(at.elapsed()).filter(|left| !left.is_zero()) {
                            Some(more) => left = more,
                            None => return Err(Failure::Final(stalled(what, timeout))),
                        },
                    },
                },
                () = self.lifetime.ended() => break ServiceError::TransportClosed,
            }
        };
        Err(self.failure(problem, what).await)
    }

    async fn failure(&self, problem: ServiceError, what: &str) -> Failure {
        let (kind, message) = match problem {
            ServiceError::McpError(error) if error.code == lines::UNREADABLE => match lines::bytes_of(&error) {
                Some(bytes) => (ToolErrorKind::TooLarge, format!("the reply of `{what}` is too large: {bytes} bytes")),
                None => (
                    ToolErrorKind::Unreadable,
                    format!(
                        "the reply of `{what}` cannot be read: {}",
                        cut(&self.secrets.redact(&error.message), 2000)
                    ),
                ),
            },
            ServiceError::McpError(error) => (
                uncertain::kind(&error.message),
                format!("`{what}` failed: {}", cut(&self.secrets.redact(&error.message), 2000)),
            ),
            ServiceError::UnexpectedResponse => {
                (ToolErrorKind::Unreadable, format!("the reply of `{what}` is not valid MCP"))
            }
            ServiceError::TransportSend(error) if http::is_too_large(error.error.as_ref()) => {
                (ToolErrorKind::TooLarge, format!("the reply of `{what}` is too large"))
            }
            ServiceError::TransportSend(error) => return self.unsent(error.error.as_ref(), what),
            _ => return Failure::Lost(self.gone(what).await),
        };
        Failure::Final(ToolError::new(kind, message))
    }

    /// Returns the failure of a request that was not sent, or refused by an HTTP status.
    fn unsent(&self, error: &(dyn Error + 'static), what: &str) -> Failure {
        let (status, reason) = (problems::status(error), problems::problem(error, &self.secrets));
        let login = match self.link {
            Link::Http(by) if status == Some(401) => by.advice(&self.name),
            Link::Process(..) | Link::Http(_) | Link::Events => String::new(),
        };
        let cannot = if status.is_some() { "used" } else { "reached" };
        let problem = ToolError::unavailable(format!("server `{}` cannot be {cannot}: {reason}{login}", self.name));
        match status {
            // Such a status concerns only this call: the server is still reachable and has not forgotten our session.
            Some(status @ (300..=399 | 402 | 405..)) => {
                let details =
                    problems::refused(error).map(|refused| refused.details(&self.secrets)).unwrap_or_default();
                let message = format!("server `{}` answered `{what}` with HTTP status {status}{details}", self.name);
                let kind = match status {
                    429 | 503 => ToolErrorKind::Busy,
                    502 | 504 => ToolErrorKind::Unavailable,
                    status => uncertain::kind_of_status(status),
                };
                Failure::Final(ToolError::new(kind, message))
            }
            status => {
                self.breaks();
                // An SSE server that does not know our session any more answers 404.
                if http::is_unsent(error) || status == Some(404) {
                    Failure::Unsent(problem)
                } else if http::is_lost(error) {
                    Failure::Lost(problem)
                } else {
                    Failure::Final(problem)
                }
            }
        }
    }

    /// Returns the error that the server has gone, with its last output.
    async fn gone(&self, what: &str) -> ToolError {
        self.breaks();
        let words = match &self.link {
            Link::Process(process, _) => {
                process.last_words().await.map(|words| format!("; {words}")).unwrap_or_default()
            }
            Link::Http(_) => {
                "; the stream of its reply ended without one, or the reply is larger than the maximum".to_owned()
            }
            Link::Events => String::new(),
        };
        ToolError::unavailable(format!("server `{}` went away during `{what}`{words}", self.name))
    }

    /// Ends the connection: closes the server's input, and kills its process if it does not exit on its own.
    pub(super) async fn close(&self) {
        self.lifetime.end();
        if let Some(mut running) = self.running.lock().await.take() {
            // The bound is for a service that does not stop; the process is ended all the same.
            let _ = running.close_with_timeout(Duration::from_millis(300)).await;
        }
        if let Some(process) = self.link.process() {
            process.end().await;
        }
    }
}

/// Adds how a call gets more time.
fn with_more_time(error: ToolError) -> ToolError {
    let advice = "`timeout_seconds` of the server, or else `limits {\"tool\": …}` of the evaluation, allows more";
    ToolError { suggestion: Some(advice.to_owned()), ..error }
}

fn failed(message: String) -> Failure {
    Failure::Final(ToolError::failed(message))
}
