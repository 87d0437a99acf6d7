//! One connection to a server, from the handshake to its end.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientRequest, ErrorCode, JsonObject,
    PaginatedRequestParams, PingRequest, ProtocolVersion,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, Peer, RunningService, ServiceError, serve_client_with_lifecycle_and_ct,
};
use rmcp::transport::Transport;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::lang::{Tool, ToolError, ToolErrorKind, ToolHints};
use crate::server::config::{Endpoint, HttpTransport, ServerConfig, cut};
use crate::server::envelope::Envelope;
use crate::server::lines::{self, Lines};
use crate::server::platform::Lifeline;

use super::client::Client;
use super::process::ServerProcess;
use super::{http, sse};

/// How long a server may take to answer the handshake unless its configuration says otherwise.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long it may take to say that it is there.
const PING: Duration = Duration::from_secs(2);
/// How long one page of the list of tools may take.
const PAGE: Duration = Duration::from_secs(10);
/// More pages than this are a server that turns in circles.
const MOST_PAGES: usize = 200;
/// A list of tools is taken in up to this many bytes of names, descriptions and schemas.
const LARGEST_LIST: u64 = 8 << 20;

/// All that is needed to start a server, as often as it takes.
pub(super) struct Start {
    pub(super) config: ServerConfig,
    pub(super) lifeline: Arc<Lifeline>,
    pub(super) largest: usize,
}

/// Why a request has no answer.
pub(super) enum Failure {
    /// The server could not be started, or not in time.
    NotStarted(Option<ToolError>),
    /// The connection broke before the server got anything of the request.
    Unsent(ToolError),
    /// The connection broke, and nobody knows what the server has done.
    Lost(ToolError),
    /// Anything else.
    Final(ToolError),
}

impl Failure {
    /// The same where a server that got the request may get it again.
    pub(super) fn harmless(self) -> Failure {
        match self {
            Failure::Lost(error) => Failure::Unsent(error),
            other => other,
        }
    }

    /// What is said of it.
    pub(super) fn error(self) -> ToolError {
        match self {
            Failure::Unsent(error) | Failure::Lost(error) | Failure::Final(error) => error,
            Failure::NotStarted(error) => {
                error.unwrap_or_else(|| unavailable("the server did not start in time".to_owned()))
            }
        }
    }
}

/// A connection that is being used, until this is dropped.
pub(super) struct InUse(Arc<Connection>);

impl InUse {
    /// Takes a connection into use.
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

/// How a connection is used.
struct Uses {
    open: usize,
    last: Instant,
}

/// A connection that has had its handshake.
pub(super) struct Connection {
    name: String,
    peer: Peer<RoleClient>,
    running: Mutex<Option<RunningService<RoleClient, Client>>>,
    process: Option<ServerProcess>,
    /// True where a reply over the cap ends the connection without a word, as rmcp's streamable HTTP does.
    ends_silently: bool,
    /// Cancelled when the server closes its side, or when a call found the connection broken.
    ended: CancellationToken,
    list_changed: Arc<AtomicBool>,
    begun: Instant,
    uses: StdMutex<Uses>,
}

impl Start {
    /// Starts the server and shakes hands.
    ///
    /// # Errors
    /// The reason, with the last that the server said.
    pub(super) async fn connect(&self) -> Result<Connection, String> {
        match self.connect_as(ClientLifecycleMode::Initialize).await {
            // A server that knows only the protocol without a handshake refuses `initialize`.
            Err(Refusal::Protocol(reason)) => {
                let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
                self.connect_as(ClientLifecycleMode::Discover { preferred_versions }).await.map_err(|_| reason)
            }
            outcome => outcome.map_err(Refusal::reason),
        }
    }

    async fn connect_as(&self, lifecycle: ClientLifecycleMode) -> Result<Connection, Refusal> {
        let ended = CancellationToken::new();
        let endpoint = self.config.endpoint.as_ref().map_err(|reason| Refusal::Other(reason.clone()))?;
        match endpoint {
            Endpoint::Process { .. } => {
                let (process, output, input) = self.start_process().await.map_err(Refusal::Other)?;
                let transport = Lines::new(output, input, self.largest, ended.clone());
                match self.shake_hands(transport, lifecycle, ended).await {
                    Ok(connection) => Ok(Connection { process: Some(process), ..connection }),
                    Err(refusal) => Err(match (refusal, process.last_words().await) {
                        (refusal, None) => refusal,
                        (Refusal::Protocol(reason), Some(words)) => Refusal::Protocol(format!("{reason}; {words}")),
                        (other, Some(words)) => Refusal::Other(format!("{}; {words}", other.reason())),
                    }),
                }
            }
            Endpoint::Http { url, transport: HttpTransport::Sse, headers } => {
                self.connect_by_events(url, headers, lifecycle, ended).await
            }
            Endpoint::Http { url, transport, headers } => {
                let streamable = http::transport(url, headers, self.largest).map_err(Refusal::Other)?;
                match self.shake_hands(streamable, lifecycle.clone(), ended.clone()).await {
                    // MCP asks clients that want to reach older servers to take this for one.
                    Err(Refusal::Status(404 | 405, reason)) if *transport == HttpTransport::Unsaid => {
                        let older = self.connect_by_events(url, headers, lifecycle, ended).await;
                        older.map_err(|older| Refusal::Other(format!("{reason}; as `sse`: {}", older.reason())))
                    }
                    Ok(connection) => Ok(Connection { ends_silently: true, ..connection }),
                    refused => refused,
                }
            }
            Endpoint::Local(_) | Endpoint::Functions(_) => Err(Refusal::Other("it is no server".to_owned())),
        }
    }

    async fn connect_by_events(
        &self,
        url: &str,
        headers: &BTreeMap<String, String>,
        lifecycle: ClientLifecycleMode,
        ended: CancellationToken,
    ) -> Result<Connection, Refusal> {
        let opening = sse::transport(url, headers, self.largest, ended.clone());
        let opened = tokio::time::timeout(self.patience(), opening).await.map_err(|_| self.silence())?;
        self.shake_hands(opened.map_err(Refusal::Other)?, lifecycle, ended).await
    }

    /// How long the server may take to begin to speak, and again to shake hands.
    fn patience(&self) -> Duration {
        self.config.start_timeout.unwrap_or(HANDSHAKE)
    }

    fn silence(&self) -> Refusal {
        Refusal::Other(format!("it did not answer within {} s", self.patience().as_secs_f64()))
    }

    /// On Linux a child dies with the thread that started it: that has to be one of the runtime's own,
    /// whoever asks.
    async fn start_process(&self) -> Result<(ServerProcess, ChildStdout, ChildStdin), String> {
        let (config, lifeline) = (self.config.clone(), Arc::clone(&self.lifeline));
        let starting = tokio::spawn(async move { ServerProcess::start(&config, &lifeline) });
        starting.await.unwrap_or_else(|_| Err("the runtime is ending".into()))
    }

    async fn shake_hands<T>(
        &self,
        transport: T,
        lifecycle: ClientLifecycleMode,
        ended: CancellationToken,
    ) -> Result<Connection, Refusal>
    where
        T: Transport<RoleClient> + 'static,
    {
        let list_changed = Arc::new(AtomicBool::new(false));
        let client = Client { list_changed: Arc::clone(&list_changed) };
        let serving = serve_client_with_lifecycle_and_ct(client, transport, lifecycle, CancellationToken::new());
        let running = match tokio::time::timeout(self.patience(), serving).await {
            Ok(Ok(running)) => running,
            Ok(Err(problem)) => return Err(refusal(&problem)),
            Err(_) => return Err(self.silence()),
        };
        Ok(Connection {
            name: self.config.name.clone(),
            peer: running.peer().clone(),
            running: Mutex::new(Some(running)),
            process: None,
            ends_silently: false,
            ended,
            list_changed,
            begun: Instant::now(),
            uses: StdMutex::new(Uses { open: 0, last: Instant::now() }),
        })
    }
}

/// Why there is no connection: the server answered with an error, with an HTTP status, or anything else.
enum Refusal {
    Protocol(String),
    Status(u16, String),
    Other(String),
}

impl Refusal {
    fn reason(self) -> String {
        match self {
            Refusal::Protocol(reason) | Refusal::Status(_, reason) | Refusal::Other(reason) => reason,
        }
    }
}

fn refusal(problem: &ClientInitializeError) -> Refusal {
    match problem {
        ClientInitializeError::JsonRpcError(error) => {
            Refusal::Protocol(format!("it refused the handshake: {}", cut(&error.message, 300)))
        }
        ClientInitializeError::ConnectionClosed(_) => {
            Refusal::Other("it closed the connection before it answered".into())
        }
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            Refusal::Other("it speaks no version of MCP that is known here".into())
        }
        ClientInitializeError::TransportError { error, .. } => {
            let reason = http::problem(error.error.as_ref());
            match http::status(error.error.as_ref()) {
                Some(status) => Refusal::Status(status, reason),
                None => Refusal::Other(reason),
            }
        }
        _ => Refusal::Other("its answer to the handshake is not MCP".into()),
    }
}

impl Connection {
    /// False once the server has gone.
    pub(super) fn lives(&self) -> bool {
        !self.ended.is_cancelled() && !self.peer.is_transport_closed()
    }

    fn uses(&self) -> MutexGuard<'_, Uses> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long nobody has used it, unless somebody does.
    pub(super) fn idle(&self) -> Option<Duration> {
        let uses = self.uses();
        (uses.open == 0).then(|| uses.last.elapsed())
    }

    /// How long it has lasted.
    pub(super) fn age(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Asks the server whether it is there.
    pub(super) async fn answers(&self) -> bool {
        let ping = self.peer.send_request(ClientRequest::PingRequest(PingRequest::default()));
        match tokio::time::timeout(PING, ping).await {
            Ok(Ok(_)) => true,
            // From 2026-07-28 on there is no `ping`. Any other refusal is of one that has forgotten our session.
            Ok(Err(ServiceError::McpError(error))) => error.code == ErrorCode::METHOD_NOT_FOUND,
            Ok(Err(_)) | Err(_) => false,
        }
    }

    /// True once after the server said that its tools changed.
    pub(super) fn take_list_changed(&self) -> bool {
        self.list_changed.swap(false, Ordering::AcqRel)
    }

    /// All pages of the list of tools.
    pub(super) async fn list(&self) -> Result<Vec<Tool>, Failure> {
        let mut tools = Vec::new();
        let (mut bytes, mut marks) = (0, 0);
        let mut cursor = None;
        for _ in 0..MOST_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor.clone());
            let page = self.answered(self.peer.list_tools(Some(page)), PAGE, "tools/list").await?;
            for tool in page.tools {
                let tool = self.tool(tool);
                let schemas =
                    Envelope::of(serde_json::json!([tool.input_schema, tool.output_schema]).to_string().as_bytes());
                bytes += schemas.bytes() + (tool.name.len() + tool.description.len()) as u64;
                marks += schemas.marks();
                if bytes > LARGEST_LIST || marks > lines::MOST_MARKS {
                    tracing::warn!(
                        server = self.name,
                        tools = tools.len(),
                        "the list of tools is too long; the rest is left out"
                    );
                    return Ok(tools);
                }
                tools.push(tool);
            }
            if page.next_cursor.is_none() || page.next_cursor == cursor {
                return Ok(tools);
            }
            cursor = page.next_cursor;
        }
        tracing::warn!(server = self.name, "the list of tools has no end");
        Ok(tools)
    }

    fn tool(&self, tool: rmcp::model::Tool) -> Tool {
        let hints = tool.annotations.as_ref().map_or_else(ToolHints::default, |annotations| ToolHints {
            read_only: annotations.read_only_hint,
            destructive: annotations.destructive_hint,
            idempotent: annotations.idempotent_hint,
        });
        Tool {
            server: self.name.clone(),
            input_schema: tool.schema_as_json_value(),
            output_schema: tool.output_schema.map(|schema| serde_json::Value::Object((*schema).clone())),
            name: tool.name.into_owned(),
            description: tool.description.map(|text| text.into_owned()).or(tool.title).unwrap_or_default(),
            hints,
            seen: None,
        }
    }

    /// Calls a tool. Dropping the future cancels the call at the server.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        timeout: Duration,
    ) -> Result<CallToolResult, Failure> {
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let what = format!("{}/{tool}", self.name);
        match self.answered(self.peer.call_tool_once(request), timeout, &what).await? {
            CallToolResponse::Complete(result) => Ok(result),
            CallToolResponse::InputRequired(_) => {
                Err(failed(format!("`{what}` asks a person for input, which is not possible here")))
            }
            _ => Err(failed(format!("`{what}` answered with a task instead of a result, which is not supported"))),
        }
    }

    /// Waits for an answer, for at most `timeout`, and no longer than the connection lasts.
    async fn answered<T>(
        &self,
        request: impl Future<Output = Result<T, ServiceError>>,
        timeout: Duration,
        what: &str,
    ) -> Result<T, Failure> {
        if !self.lives() {
            return Err(Failure::Unsent(self.gone(what).await));
        }
        let problem = tokio::select! {
            biased;
            answer = tokio::time::timeout(timeout, request) => match answer {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(problem)) => problem,
                Err(_) => {
                    return Err(Failure::Final(ToolError {
                        kind: ToolErrorKind::Timeout,
                        message: format!("`{what}` did not answer within {} s", timeout.as_secs_f64()),
                        suggestion: None,
                    }));
                }
            },
            () = self.ended.cancelled() => ServiceError::TransportClosed,
        };
        Err(self.failure(problem, what).await)
    }

    async fn failure(&self, problem: ServiceError, what: &str) -> Failure {
        let (kind, message) = match problem {
            ServiceError::McpError(error) if error.code == lines::UNREADABLE => match lines::bytes_of(&error) {
                Some(bytes) => (ToolErrorKind::TooLarge, format!("the reply of `{what}` is too large: {bytes} bytes")),
                None => (ToolErrorKind::Failed, format!("the reply of `{what}` cannot be read: {}", error.message)),
            },
            ServiceError::McpError(error) => {
                (ToolErrorKind::Failed, format!("`{what}` failed: {}", cut(&error.message, 2000)))
            }
            ServiceError::UnexpectedResponse => {
                (ToolErrorKind::Failed, format!("the reply of `{what}` is not what MCP asks for"))
            }
            ServiceError::TransportSend(error) if http::is_too_large(error.error.as_ref()) => {
                (ToolErrorKind::TooLarge, format!("the reply of `{what}` is too large"))
            }
            ServiceError::TransportSend(error) => {
                let error = error.error.as_ref();
                let reason = http::problem(error);
                let problem = unavailable(format!("server `{}` cannot be reached: {reason}", self.name));
                return match http::status(error) {
                    // A server that is busy or stumbled is still there.
                    Some(429 | 500..) => Failure::Final(problem),
                    status => {
                        self.ended.cancel();
                        // An SSE server that does not know our session any more answers 404.
                        if http::is_unsent(error) || status == Some(404) {
                            Failure::Unsent(problem)
                        } else if http::is_lost(error) {
                            Failure::Lost(problem)
                        } else {
                            Failure::Final(problem)
                        }
                    }
                };
            }
            _ => return Failure::Lost(self.gone(what).await),
        };
        Failure::Final(ToolError { kind, message, suggestion: None })
    }

    /// The server has gone, with the last that it said.
    async fn gone(&self, what: &str) -> ToolError {
        self.ended.cancel();
        let words = match &self.process {
            Some(process) => process.last_words().await,
            None => None,
        };
        let words = match words {
            None if self.ends_silently => "; or its reply is larger than may be taken in".to_owned(),
            words => words.map(|words| format!("; {words}")).unwrap_or_default(),
        };
        unavailable(format!("server `{}` went away during `{what}`{words}", self.name))
    }

    /// Ends the connection: closes the server's input, and its process, if it does not end by itself.
    pub(super) async fn close(&self) {
        self.ended.cancel();
        if let Some(mut running) = self.running.lock().await.take() {
            // The bound is for a service that does not let go; the process is ended all the same.
            let _ = running.close_with_timeout(Duration::from_millis(300)).await;
        }
        if let Some(process) = &self.process {
            process.end().await;
        }
    }
}

fn failed(message: String) -> Failure {
    Failure::Final(ToolError { kind: ToolErrorKind::Failed, message, suggestion: None })
}

fn unavailable(message: String) -> ToolError {
    ToolError { kind: ToolErrorKind::Unavailable, message, suggestion: None }
}
