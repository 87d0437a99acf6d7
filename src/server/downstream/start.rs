//! Starting or reaching a server, and the handshake with it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, serve_client_with_lifecycle_and_ct};
use rmcp::transport::Transport;
use tokio::process::ChildStdin;
use tokio_util::sync::CancellationToken;

use crate::server::config::{Commands, Endpoint, HttpTransport, ServerConfig};
use crate::server::secrets::Secrets;
use crate::server::system::platform::Lifeline;
use crate::server::transport::lines::{self, Lines};

use super::asked::Reports;
use super::client::Client;
use super::connection::{Authorization, Connection};
use super::kept_connections::Reuse;
use super::login::Login;
use super::overheard::Overheard;
use super::problems::{self, quoted};
use super::process::ServerProcess;
use super::{http, sse};

/// Timeout of the handshake, unless the configuration of the server sets one. The first start of a server from a
/// registry downloads its packages; a process that ends earlier is noticed at once.
pub(super) const HANDSHAKE: Duration = Duration::from_secs(60);

/// Timeout of the second handshake, in frames, with a server that has not answered the first.
const IN_FRAMES: Duration = Duration::from_secs(10);

/// The advice for a server that is not found.
const WRONG_PATH: &str = "; the path of the `url` may be wrong";

/// The commands that download what they run.
const DOWNLOADERS: &[&str] =
    &["npx", "npm", "pnpm", "pnpx", "yarn", "bunx", "bun", "deno", "uvx", "uv", "pipx", "docker", "podman"];

/// The parameters for starting a server, reusable for each start.
pub(super) struct Start {
    pub(super) config: ServerConfig,
    pub(super) lifeline: Arc<Lifeline>,
    pub(super) commands: Arc<Commands>,
    pub(super) largest: usize,
    /// The folder in which logins are stored.
    pub(super) logins: Option<PathBuf>,
    /// The secrets that are redacted from everything that the server sends.
    pub(super) secrets: Secrets,
    /// True once the server was found to separate messages by headers.
    pub(super) is_framed: AtomicBool,
    /// How the server treats reused HTTP connections.
    pub(super) reuse: Arc<Reuse>,
}

impl Start {
    /// Starts the server and performs the handshake.
    ///
    /// # Errors
    /// Returns the reason, with the last output of the server.
    pub(super) async fn connect(&self) -> Result<Connection, String> {
        let latest = ProtocolVersion::LATEST_WITH_INITIALIZE;
        let outcome = match self.connect_as(ClientLifecycleMode::Initialize, latest.clone()).await {
            Err(Refusal::Protocol(reason)) => self.connect_otherwise(&reason).await.ok_or(reason),
            Err(Refusal::Status(400, reason)) if names_version(&reason) => {
                self.connect_otherwise(&reason).await.ok_or(reason)
            }
            outcome => outcome.map_err(Refusal::reason),
        };
        outcome.map_err(|reason| self.secrets.redact_own(reason))
    }

    /// Connects to a server that has refused the handshake for that reason: in an older version of the protocol if the
    /// reason is the version, and in the version without a handshake.
    async fn connect_otherwise(&self, reason: &str) -> Option<Connection> {
        for version in older_versions(reason) {
            if let Ok(connection) = self.connect_as(ClientLifecycleMode::Initialize, version).await {
                return Some(connection);
            }
        }
        let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
        let lifecycle = ClientLifecycleMode::Discover { preferred_versions };
        self.connect_as(lifecycle, ProtocolVersion::LATEST_WITH_INITIALIZE).await.ok()
    }

    async fn connect_as(
        &self,
        lifecycle: ClientLifecycleMode,
        version: ProtocolVersion,
    ) -> Result<Connection, Refusal> {
        let endpoint = self.config.endpoint.as_ref().map_err(|reason| Refusal::Other(reason.clone()))?;
        match endpoint {
            Endpoint::Process { arguments, .. } => self.connect_to_process(arguments, (lifecycle, version)).await,
            Endpoint::Http { url, transport: HttpTransport::Sse, headers } => {
                self.connect_by_events(url, headers, (lifecycle, version)).await
            }
            Endpoint::Http { url, transport, headers } => {
                let login = Login::new(self.logins.as_deref(), url, &self.secrets);
                let streamable = http::transport(url, headers, self.largest, &login, &self.reuse);
                let streamable = tokio::time::timeout(self.patience(), streamable).await.map_err(|_| self.silence())?;
                let (manner, ended) = ((lifecycle, version), CancellationToken::new());
                // A configured `Authorization` header means that no login is wanted.
                let is_authorized = headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
                let by = if is_authorized { Authorization::Configured } else { Authorization::ByLogin };
                match self.shake_hands(streamable.map_err(Refusal::Other)?, manner.clone(), ended).await {
                    // MCP requires clients that support older servers to take this status for one.
                    Err(Refusal::Status(404 | 405, reason)) if *transport == HttpTransport::Unsaid => {
                        let older = self.connect_by_events(url, headers, manner).await;
                        let reason = |older: Refusal| format!("{reason}; as `sse`: {}{WRONG_PATH}", older.reason());
                        older.map_err(|older| Refusal::Other(reason(older)))
                    }
                    Err(Refusal::Status(404, reason)) => Err(Refusal::Other(format!("{reason}{WRONG_PATH}"))),
                    Err(Refusal::Status(401, reason)) => {
                        Err(Refusal::Other(format!("{reason}{}", by.advice(&self.config.name))))
                    }
                    Ok(connection) => Ok(connection.over_http(by)),
                    refused => refused,
                }
            }
            Endpoint::Local(_) | Endpoint::Functions(_) => Err(Refusal::Other("it is not a server".to_owned())),
        }
    }

    /// Starts the process and performs the handshake with it: in lines, or, if it reads none, with the headers by which
    /// the Language Server Protocol separates messages.
    async fn connect_to_process(&self, arguments: &[String], manner: Manner) -> Result<Connection, Refusal> {
        let is_framed = self.is_framed.load(Ordering::Relaxed);
        let refusal = match self.connect_in_frames(is_framed, arguments, manner.clone()).await {
            Err(Refusal::Unread(reason)) if !is_framed => Refusal::Other(reason),
            outcome => return outcome,
        };
        let framed = self.connect_in_frames(true, arguments, manner);
        match tokio::time::timeout(IN_FRAMES, framed).await {
            Ok(Ok(connection)) => {
                tracing::info!(server = self.config.name, "it separates messages by `Content-Length` headers");
                self.is_framed.store(true, Ordering::Relaxed);
                Ok(connection)
            }
            _ => Err(refusal),
        }
    }

    async fn connect_in_frames(
        &self,
        is_framed: bool,
        arguments: &[String],
        manner: Manner,
    ) -> Result<Connection, Refusal> {
        let ended = CancellationToken::new();
        let (process, output, input) = self.start_process().await.map_err(Refusal::Other)?;
        let transport = Lines::new(output, input, self.largest, ended.clone());
        let transport = if is_framed { transport.in_frames() } else { transport };
        let direct = transport.direct();
        let refusal = match self.shake_hands(transport, manner, ended).await {
            Ok(connection) => return Ok(connection.to(process, direct)),
            Err(refusal) => refusal,
        };
        let is_silent = matches!(refusal, Refusal::Silence(_)) && process.is_silent();
        let words = process.last_words().await;
        let has_ended = !process.runs();
        let advice = if has_ended { unexpanded(arguments).unwrap_or_default() } else { "" };
        let is_protocol = matches!(refusal, Refusal::Protocol(_));
        let reason = match (refusal, words) {
            // Its end says more.
            (Refusal::Closed, Some(words)) if has_ended => words,
            (refusal, Some(words)) => format!("{}; {words}", refusal.reason()),
            (refusal, None) => refusal.reason(),
        };
        Err(match is_protocol {
            true => Refusal::Protocol(reason),
            false if is_silent || process.names_frames() => Refusal::Unread(reason),
            false => Refusal::Other(format!("{reason}{advice}")),
        })
    }

    async fn connect_by_events(
        &self,
        url: &str,
        headers: &BTreeMap<String, String>,
        manner: Manner,
    ) -> Result<Connection, Refusal> {
        let ended = CancellationToken::new();
        let opening = sse::transport(url, headers, self.largest, ended.clone(), &self.secrets);
        let opened = tokio::time::timeout(self.patience(), opening).await.map_err(|_| self.silence())?;
        self.shake_hands(opened.map_err(Refusal::Other)?, manner, ended).await
    }

    /// Lets a person log in; see [`Login::log_in`].
    ///
    /// # Errors
    /// Returns the reason if the login fails.
    pub(super) async fn log_in(&self, show: impl FnOnce(&str)) -> Result<(), String> {
        match self.config.endpoint.as_ref().map_err(Clone::clone)? {
            Endpoint::Http { url, .. } => Login::new(self.logins.as_deref(), url, &self.secrets).log_in(show).await,
            Endpoint::Process { .. } | Endpoint::Local(_) | Endpoint::Functions(_) => {
                Err("only a server with a `url` can ask for a login".into())
            }
        }
    }

    /// Timeout for opening the transport, and again for the handshake.
    pub(super) fn patience(&self) -> Duration {
        self.config.start_timeout.unwrap_or(HANDSHAKE)
    }

    /// True if the start is work for this machine.
    pub(super) fn is_of_process(&self) -> bool {
        matches!(self.config.endpoint, Ok(Endpoint::Process { .. }))
    }

    fn silence(&self) -> Refusal {
        let seconds = self.patience().as_secs_f64();
        let loading = self
            .downloader()
            .map_or_else(String::new, |command| format!("; `{command}` downloads what it runs at the first start"));
        Refusal::Silence(format!("it did not answer within {seconds} s (`start_timeout_seconds` allows more){loading}"))
    }

    /// Returns the name of the command if it downloads what it runs.
    fn downloader(&self) -> Option<&'static str> {
        let Ok(Endpoint::Process { command, .. }) = &self.config.endpoint else { return None };
        let name = command.rsplit(['/', '\\']).next().unwrap_or_default();
        let name = name.trim_end_matches(".exe").trim_end_matches(".cmd");
        DOWNLOADERS.iter().copied().find(|known| *known == name)
    }

    /// On Linux a child dies with the thread that started it, so the server is started on a thread of the runtime,
    /// whichever thread calls this.
    async fn start_process(&self) -> Result<(ServerProcess, Overheard, ChildStdin), String> {
        let (config, lifeline, secrets) = (self.config.clone(), Arc::clone(&self.lifeline), self.secrets.clone());
        let (commands, patience) = (Arc::clone(&self.commands), self.patience());
        let starting = tokio::spawn(async move {
            let Ok(Endpoint::Process { command, environment, .. }) = &config.endpoint else {
                return Err("it is not a process".to_owned());
            };
            let finding = tokio::time::timeout(patience, commands.find(command, environment, true));
            let late = |_| {
                let seconds = patience.as_secs_f64();
                format!(
                    "the login shell did not say within {seconds} s where it is (`start_timeout_seconds` allows more)"
                )
            };
            let taken = finding.await.map_err(late)?;
            ServerProcess::start(&config, &taken, &lifeline, &secrets)
        });
        starting.await.unwrap_or_else(|_| Err("the runtime is ending".into()))
    }

    async fn shake_hands<T>(
        &self,
        transport: T,
        (lifecycle, version): Manner,
        ended: CancellationToken,
    ) -> Result<Connection, Refusal>
    where
        T: Transport<RoleClient> + 'static,
    {
        let reports = Arc::<Reports>::default();
        let client = Client { reports: Arc::clone(&reports), version };
        let serving = serve_client_with_lifecycle_and_ct(client, transport, lifecycle, CancellationToken::new());
        let running = match tokio::time::timeout(self.patience(), serving).await {
            Ok(Ok(running)) => running,
            Ok(Err(problem)) => return Err(refusal(&problem, &self.secrets)),
            Err(_) => return Err(self.silence()),
        };
        Ok(Connection::new(&self.config.name, running, reports, ended, self.secrets.clone()))
    }
}

/// The way in which a connection is opened, and the version of the protocol that is proposed in a handshake.
type Manner = (ClientLifecycleMode, ProtocolVersion);

/// The older versions of the protocol, the latest first.
const OLDER: [ProtocolVersion; 3] =
    [ProtocolVersion::V_2025_06_18, ProtocolVersion::V_2025_03_26, ProtocolVersion::V_2024_11_05];

/// Returns whether a server refuses the version of the protocol for that reason.
fn names_version(reason: &str) -> bool {
    reason.to_lowercase().contains("version")
}

/// Returns the older versions to try with a server that has refused ours: those that it names, or else all.
fn older_versions(reason: &str) -> Vec<ProtocolVersion> {
    if !names_version(reason) {
        return Vec::new();
    }
    let named: Vec<ProtocolVersion> = OLDER.into_iter().filter(|version| reason.contains(version.as_str())).collect();
    if named.is_empty() { OLDER.to_vec() } else { named }
}

/// The reason why there is no connection.
enum Refusal {
    /// An error reply of the server.
    Protocol(String),
    /// An HTTP status.
    Status(u16, String),
    /// The end of the connection.
    Closed,
    /// No answer in time.
    Silence(String),
    /// It may not have read what was sent, because it expects other frames.
    Unread(String),
    Other(String),
}

impl Refusal {
    fn reason(self) -> String {
        match self {
            Refusal::Closed => "it closed the connection before it answered".to_owned(),
            Refusal::Protocol(reason)
            | Refusal::Status(_, reason)
            | Refusal::Silence(reason)
            | Refusal::Unread(reason)
            | Refusal::Other(reason) => reason,
        }
    }
}

/// Returns the advice for arguments that other clients may expand; shells expand variables themselves.
fn unexpanded(arguments: &[String]) -> Option<&'static str> {
    let has_variable = |text: &String| {
        text.split('$').skip(1).any(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase() || c == '_'))
    };
    if arguments.iter().any(|text| text.starts_with("~/")) {
        return Some("; `~` is not expanded in `args`; `${HOME}` is");
    }
    let is_script = arguments.iter().any(|text| text.starts_with("-") && text.ends_with('c'));
    (!is_script && arguments.iter().any(has_variable)).then_some("; `$NAME` is not expanded in `args`; `${NAME}` is")
}

fn refusal(problem: &ClientInitializeError, secrets: &Secrets) -> Refusal {
    match problem {
        ClientInitializeError::JsonRpcError(error) if error.code == lines::UNREADABLE => {
            Refusal::Other(format!("its answer to the handshake cannot be read: {}", quoted(&error.message, secrets)))
        }
        ClientInitializeError::JsonRpcError(error) => {
            Refusal::Protocol(format!("it refused the handshake: {}", quoted(&error.message, secrets)))
        }
        ClientInitializeError::ConnectionClosed(_) => Refusal::Closed,
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            Refusal::Other("it supports no known version of MCP".into())
        }
        ClientInitializeError::TransportError { error, .. } if http::is_closed(error.error.as_ref()) => Refusal::Closed,
        ClientInitializeError::TransportError { error, .. } => {
            let reason = problems::problem(error.error.as_ref(), secrets);
            match problems::status(error.error.as_ref()) {
                Some(status) => Refusal::Status(status, reason),
                None => {
                    let advice = problems::advice_on_scheme(error.error.as_ref());
                    Refusal::Other(format!("{reason}{advice}"))
                }
            }
        }
        _ => Refusal::Other("its answer to the handshake is not MCP".into()),
    }
}
