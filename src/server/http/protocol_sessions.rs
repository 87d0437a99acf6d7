//! Sessions of protocol revisions before 2026-07-28, each bound to the principal that created it.
//!
//! rmcp finds such a session by its `Mcp-Session-Id` alone. This table records the owner of each session, so that
//! another principal cannot use its id, and distributes the number of sessions fairly among the principals.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use futures::Stream;
use http::StatusCode;
use rmcp::model::{ClientJsonRpcMessage, ClientNotification, ProtocolVersion, ServerJsonRpcMessage, ServerResult};
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, LocalSessionManagerError};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId, SessionManager};

use crate::server::protocol::front::Front;

use super::direct::DirectSession;
use super::refusal::RetryLater;

/// Maximum number of concurrent protocol sessions of all principals together.
const MOST: usize = 1_000;

tokio::task_local! {
    /// The creator of sessions while a request that may create one is handled.
    static BEGINNER: Beginner;
}

#[derive(Clone)]
struct Beginner {
    principal: Arc<str>,
    /// The refusal, if the session could not be created.
    refused: Arc<Mutex<Option<RetryLater>>>,
    /// The front of the session.
    front: Arc<Mutex<Option<Arc<Front>>>>,
}

/// Notes the front of the session that is being created.
pub(super) fn created(front: &Arc<Front>) {
    // Requests that create no session have fronts too.
    let _ = BEGINNER.try_with(|beginner| {
        *beginner.front.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(front));
    });
}

/// Runs `handling`, in which new protocol sessions belong to `principal`.
///
/// # Errors
/// Returns `RetryLater` if a session could not be created for lack of room.
pub(super) async fn as_beginner<T>(principal: &Arc<str>, handling: impl Future<Output = T>) -> Result<T, RetryLater> {
    let beginner = Beginner { principal: Arc::clone(principal), refused: Arc::default(), front: Arc::default() };
    let refused = Arc::clone(&beginner.refused);
    let outcome = BEGINNER.scope(beginner, handling).await;
    match refused.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(later) => Err(later),
        None => Ok(outcome),
    }
}

/// The sessions of rmcp, with a table of their owners.
#[derive(Default)]
pub(super) struct ProtocolSessions {
    inner: LocalSessionManager,
    table: Arc<Mutex<Table>>,
}

#[derive(Default)]
struct Table {
    sessions: HashMap<SessionId, Bound>,
}

/// A session and its owner.
struct Bound {
    principal: Arc<str>,
    /// The negotiated revision, once the handshake is complete.
    version: Option<ProtocolVersion>,
    /// Its front, for calls that are answered directly.
    direct: Option<Arc<DirectSession>>,
    /// The number of requests and notifications that are being handled.
    requests: usize,
    /// The number of open event streams (GET).
    streams: usize,
    used: Instant,
}

impl Bound {
    fn is_idle(&self) -> bool {
        self.requests == 0 && self.streams == 0
    }
}

/// The kind of use of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A message is being handled.
    Request,
    /// An event stream is open.
    Stream,
}

/// A use of a session, which is not idle until this is dropped.
pub(super) struct InUse {
    table: Arc<Mutex<Table>>,
    id: SessionId,
    kind: Kind,
    /// The negotiated revision.
    pub(super) version: Option<ProtocolVersion>,
    /// The front of the session, for calls that are answered directly.
    pub(super) direct: Option<Arc<DirectSession>>,
}

impl Drop for InUse {
    fn drop(&mut self) {
        let mut table = lock(&self.table);
        if let Some(bound) = table.sessions.get_mut(&self.id) {
            match self.kind {
                Kind::Request => bound.requests -= 1,
                Kind::Stream => bound.streams -= 1,
            }
            bound.used = Instant::now();
        }
    }
}

fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Table {
    /// Makes room for one more session of a principal: returns the session to evict, if one must be evicted.
    ///
    /// Evicts the longest-idle session of the principal with the most sessions, and never one of a principal that has
    /// no more than the newcomer, except the newcomer's own. If no session is idle, evicts one that has only an open
    /// event stream, of another principal that has at least two more.
    ///
    /// # Errors
    /// Returns `RetryLater` if no session may be evicted.
    fn make_room(&self, principal: &Arc<str>, most: usize) -> Result<Option<SessionId>, RetryLater> {
        if self.sessions.len() < most {
            return Ok(None);
        }
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for bound in self.sessions.values() {
            *counts.entry(&bound.principal).or_default() += 1;
        }
        let count = |name: &str| counts.get(name).copied().unwrap_or(0);
        let own = count(principal);
        let longest_unused = |may_go: &dyn Fn(&Bound) -> bool| {
            let going = self.sessions.iter().filter(|(_, bound)| may_go(bound));
            // Among principals with equal counts, the newcomer's own sessions are evicted first.
            going
                .max_by_key(|(_, bound)| (count(&bound.principal), bound.principal == *principal, bound.used.elapsed()))
                .map(|(id, _)| Arc::clone(id))
        };
        let idle = longest_unused(&|bound| {
            bound.is_idle() && (bound.principal == *principal || count(&bound.principal) > own)
        });
        let streaming = || longest_unused(&|bound| bound.requests == 0 && count(&bound.principal) > own + 1);
        if let Some(id) = idle.or_else(streaming) {
            return Ok(Some(id));
        }
        let message = format!(
            "{} sessions of protocols before 2026-07-28 are open, the maximum for this server; {own} of them belong \
             to `{principal}`, and none can be evicted",
            self.sessions.len()
        );
        let status = if own > 0 { StatusCode::TOO_MANY_REQUESTS } else { StatusCode::SERVICE_UNAVAILABLE };
        Err(RetryLater::in_a_moment(status, &message))
    }
}

impl ProtocolSessions {
    /// Marks a session of that principal as in use; `None` if it does not exist or belongs to another principal.
    pub(super) fn enter(&self, principal: &str, id: &str, kind: Kind) -> Option<InUse> {
        let mut table = lock(&self.table);
        let (id, _) = table.sessions.get_key_value(id)?;
        let id = Arc::clone(id);
        let bound = table.sessions.get_mut(&id).filter(|bound| *bound.principal == *principal)?;
        match kind {
            Kind::Request => bound.requests += 1,
            Kind::Stream => bound.streams += 1,
        }
        bound.used = Instant::now();
        let (version, direct) = (bound.version.clone(), bound.direct.clone());
        Some(InUse { table: Arc::clone(&self.table), id, kind, version, direct })
    }

    /// Closes all sessions except those of the principals for which `is_known` is true.
    pub(super) async fn keep_only(&self, is_known: impl Fn(&str) -> bool) {
        let gone: Vec<SessionId> = {
            let table = lock(&self.table);
            let gone = table.sessions.iter().filter(|(_, bound)| !is_known(&bound.principal));
            gone.map(|(id, _)| Arc::clone(id)).collect()
        };
        for id in gone {
            self.close_quietly(&id).await;
        }
    }

    fn direct(&self, id: &SessionId) -> Option<Arc<DirectSession>> {
        lock(&self.table).sessions.get(id)?.direct.clone()
    }

    async fn close_quietly(&self, id: &SessionId) {
        if let Err(problem) = self.close_session(id).await {
            tracing::warn!(%problem, "a session of the protocol could not be closed");
        }
    }
}

/// Reason why rmcp gets no session.
#[derive(Debug)]
pub(super) enum SessionProblem {
    /// There is no room for the session, or no principal that creates it.
    Refused,
    /// The error of rmcp.
    Inner(LocalSessionManagerError),
}

impl fmt::Display for SessionProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SessionProblem::Refused => formatter.write_str("there is no room for another session"),
            SessionProblem::Inner(problem) => problem.fmt(formatter),
        }
    }
}

impl std::error::Error for SessionProblem {}

impl From<LocalSessionManagerError> for SessionProblem {
    fn from(problem: LocalSessionManagerError) -> SessionProblem {
        SessionProblem::Inner(problem)
    }
}

impl SessionManager for ProtocolSessions {
    type Error = SessionProblem;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), SessionProblem> {
        // A session without an owner would be open to all principals.
        let beginner = BEGINNER.try_with(Clone::clone).map_err(|_| SessionProblem::Refused)?;
        let (id, transport) = self.inner.create_session().await?;
        let front = beginner.front.lock().unwrap_or_else(PoisonError::into_inner).take();
        let evicted = {
            let mut table = lock(&self.table);
            let room = table.make_room(&beginner.principal, MOST);
            if let Ok(evicted) = &room {
                if let Some(evicted) = evicted {
                    table.sessions.remove(evicted);
                }
                let bound = Bound {
                    principal: Arc::clone(&beginner.principal),
                    version: None,
                    direct: front.map(|front| Arc::new(DirectSession::new(front))),
                    requests: 0,
                    streams: 0,
                    used: Instant::now(),
                };
                table.sessions.insert(Arc::clone(&id), bound);
            }
            room
        };
        match evicted {
            Ok(None) => Ok((id, transport)),
            Ok(Some(evicted)) => {
                tracing::debug!("an idle session of the protocol was closed for a newer one");
                self.close_quietly(&evicted).await;
                Ok((id, transport))
            }
            Err(later) => {
                self.inner.close_session(&id).await?;
                *beginner.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(later);
                Err(SessionProblem::Refused)
            }
        }
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionProblem> {
        let answer = self.inner.initialize_session(id, message).await?;
        if let ServerJsonRpcMessage::Response(response) = &answer
            && let ServerResult::InitializeResult(result) = &response.result
            && let Some(bound) = lock(&self.table).sessions.get_mut(id)
        {
            bound.version = Some(result.protocol_version.clone());
        }
        Ok(answer)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, SessionProblem> {
        Ok(lock(&self.table).sessions.contains_key(id) && self.inner.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), SessionProblem> {
        let removed = lock(&self.table).sessions.remove(id);
        if let Some(direct) = removed.and_then(|bound| bound.direct) {
            direct.close();
        }
        Ok(self.inner.close_session(id).await?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionProblem> {
        if let Some(direct) = self.direct(id) {
            direct.is_heard();
        }
        Ok(self.inner.create_stream(id, message).await?)
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), SessionProblem> {
        if let Some(direct) = self.direct(id) {
            direct.is_heard();
            if let ClientJsonRpcMessage::Notification(notification) = &message
                && let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                && let Some(request) = &cancelled.params.request_id
            {
                direct.cancel(request);
            }
        }
        Ok(self.inner.accept_message(id, message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionProblem> {
        Ok(self.inner.create_standalone_stream(id).await?)
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionProblem> {
        Ok(self.inner.resume(id, last_event_id).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a table of sessions: for each principal, the number of idle ones, of those with a stream, and of those
    /// with a request.
    fn table(principals: &[(&str, usize, usize, usize)]) -> Table {
        let mut table = Table::default();
        for (name, idle, streaming, busy) in principals {
            let kinds = [(idle, 0, 0, "idle"), (streaming, 0, 1, "stream"), (busy, 1, 0, "busy")];
            for (count, requests, streams, kind) in kinds {
                for index in 0..*count {
                    let bound = Bound {
                        principal: (*name).into(),
                        version: None,
                        direct: None,
                        requests,
                        streams,
                        used: Instant::now(),
                    };
                    table.sessions.insert(format!("{name}-{kind}-{index}").into(), bound);
                }
            }
        }
        table
    }

    fn evicted(table: &Table, newcomer: &str) -> String {
        match table.make_room(&newcomer.into(), table.sessions.len()) {
            Ok(Some(id)) => id.rsplit_once('-').map(|(start, _)| start.to_owned()).unwrap_or_default(),
            Ok(None) => "nothing".to_owned(),
            Err(later) => later.status.as_u16().to_string(),
        }
    }

    #[test]
    fn an_idle_session_of_the_principal_with_the_most_goes_first() {
        assert_eq!(evicted(&table(&[("ann", 5, 0, 0), ("bob", 2, 0, 0)]), "bob"), "ann-idle");
        assert_eq!(evicted(&table(&[("ann", 5, 0, 0), ("bob", 2, 0, 0)]), "ann"), "ann-idle");
        assert_eq!(evicted(&table(&[("ann", 3, 0, 0), ("bob", 3, 0, 0)]), "bob"), "bob-idle");
        assert_eq!(evicted(&table(&[("ann", 1, 4, 0), ("bob", 1, 0, 0)]), "carol"), "ann-idle");
    }

    #[test]
    fn a_principal_never_evicts_from_one_that_has_no_more() {
        assert_eq!(evicted(&table(&[("ann", 0, 0, 3), ("bob", 3, 0, 0)]), "ann"), "429");
        assert_eq!(evicted(&table(&[("ann", 0, 3, 3), ("bob", 2, 0, 0)]), "ann"), "429");
    }

    #[test]
    fn a_principal_with_fewer_gets_room_also_where_nothing_is_idle() {
        assert_eq!(evicted(&table(&[("ann", 0, 5, 1), ("bob", 0, 2, 0)]), "bob"), "ann-stream");
        assert_eq!(evicted(&table(&[("ann", 0, 0, 5)]), "bob"), "503", "requests that are handled are never ended");
        assert_eq!(evicted(&table(&[("ann", 0, 5, 0)]), "ann"), "429");
    }
}
