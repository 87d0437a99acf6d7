//! Calls of tools that are answered by the request that received them, past the protocol sessions of rmcp.
//!
//! rmcp hands a request from its connection to the worker of its session, from there to the loop of its service and on to
//! a task, and its reply back the same way as an event stream. A call on whose behalf nothing can be sent but its reply
//! needs none of that. A request that is not exactly in the usual form, whose client wants progress or can be asked by
//! requests of the server, or whose host has not been checked yet, is left to rmcp; so is one request of a session per
//! [`HEARD`], since rmcp ends sessions that it does not hear from.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use futures::stream;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientCapabilities, ClientRequest, ErrorData, Implementation,
    InitializeRequestParams, JsonRpcMessage, ProtocolVersion, RequestId, RequestMetaObject, ServerJsonRpcMessage,
    ServerResult,
};
use rmcp::service::{Peer, RequestContext, Service, serve_directly};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::server::evaluations::withdrawn::ReplyLost;
use crate::server::protocol::front::Front;
use crate::server::transport::frequent;

use super::accepted;
use super::protocol_sessions::{InUse, created};

/// The time after which a request of a session is passed to rmcp, which ends a session five minutes after the last one.
const HEARD: Duration = Duration::from_secs(60);

/// Maximum number of hosts that are known to be allowed.
const MOST_HOSTS: usize = 64;

/// The time after which the response begins, as a stream of events, though its reply is not there yet: less than the usual
/// time-outs of proxies, which are 30 seconds and more.
const PLAIN: Duration = Duration::from_secs(20);

/// The interval of comments in such a stream.
const ALIVE: Duration = Duration::from_secs(15);

const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Answers calls of tools directly.
pub(super) struct DirectCalls {
    /// Creates the front of a request that belongs to no protocol session.
    front: Box<dyn Fn() -> Front + Send + Sync>,
    /// The peer of requests that belong to no protocol session: nothing can be sent to it.
    nobody: Peer<RoleServer>,
    /// The values of `Host` that the protocol layer allows, as far as they are known.
    hosts: RwLock<HashSet<HeaderValue>>,
}

/// The front of a protocol session, for calls that are answered directly.
pub(super) struct DirectSession {
    front: Arc<Front>,
    /// The time of the last request that was passed to rmcp.
    heard: Mutex<Instant>,
    /// The calls under way, by a number of their own: a client may use an id twice.
    calls: Mutex<HashMap<u64, (RequestId, CancellationToken)>>,
    next: AtomicU64,
    closed: CancellationToken,
}

/// Where a call belongs.
enum Place {
    Session(Arc<DirectSession>, Peer<RoleServer>),
    /// To no session: all that it needs is in its metadata (2026-07-28).
    Itself,
}

/// A call that is answered directly.
pub(super) struct DirectCall {
    id: RequestId,
    meta: RequestMetaObject,
    params: CallToolRequestParams,
    place: Place,
}

impl DirectSession {
    /// Creates the entry of a protocol session.
    pub(super) fn new(front: Arc<Front>) -> DirectSession {
        DirectSession {
            front,
            heard: Mutex::new(Instant::now()),
            calls: Mutex::default(),
            next: AtomicU64::new(0),
            closed: CancellationToken::new(),
        }
    }

    /// Notes that rmcp has a message of this session.
    pub(super) fn is_heard(&self) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Cancels a call under way.
    pub(super) fn cancel(&self, id: &RequestId) {
        self.calls().values().filter(|(called, _)| called == id).for_each(|(_, cancelled)| cancelled.cancel());
    }

    /// Cancels the calls under way, and those that come too late: the session is closed.
    pub(super) fn close(&self) {
        self.closed.cancel();
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<u64, (RequestId, CancellationToken)>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the peer of the session if nothing can be sent to it on behalf of a call but the reply, and if rmcp has
    /// heard of the session lately.
    fn peer(&self) -> Option<Peer<RoleServer>> {
        if self.heard.lock().unwrap_or_else(PoisonError::into_inner).elapsed() > HEARD {
            return None;
        }
        let peer = self.front.peer()?;
        let client = peer.peer_info()?;
        (!can_be_asked(&client.capabilities)).then(|| peer.clone())
    }
}

/// True if the server may send requests to a client with these capabilities.
fn can_be_asked(capabilities: &ClientCapabilities) -> bool {
    capabilities.elicitation.is_some() || capabilities.sampling.is_some() || capabilities.roots.is_some()
}

impl DirectCalls {
    /// Creates the way past rmcp for the sessions of this server, whose fronts `front` creates.
    pub(super) fn new(front: impl Fn() -> Front + Send + Sync + 'static) -> DirectCalls {
        let client = InitializeRequestParams::new(ClientCapabilities::default(), Implementation::default())
            .with_protocol_version(ProtocolVersion::V_2026_07_28);
        // The streams have ended, so that every message to this peer fails.
        let streams = (tokio::io::empty(), tokio::io::sink());
        let nobody = serve_directly::<RoleServer, _, _, _, _>(front(), streams, Some(client)).peer().clone();
        DirectCalls { front: Box::new(front), nobody, hosts: RwLock::default() }
    }

    /// Creates the front of a protocol session that is being opened.
    pub(super) fn front(&self) -> Arc<Front> {
        let front = Arc::new((self.front)());
        created(&front);
        front
    }

    /// Notes that the protocol layer has answered a request, so that it allows its host.
    pub(super) fn allowed(&self, host: Option<HeaderValue>) {
        let Some(host) = host else { return };
        if self.knows(&host) {
            return;
        }
        let mut hosts = self.hosts.write().unwrap_or_else(PoisonError::into_inner);
        if hosts.len() < MOST_HOSTS {
            hosts.insert(host);
        }
    }

    fn knows(&self, host: &HeaderValue) -> bool {
        self.hosts.read().unwrap_or_else(PoisonError::into_inner).contains(host)
    }

    /// Returns the call in a message that can be answered directly.
    pub(super) fn call(&self, session: Option<&InUse>, parts: &Parts, bytes: &[u8]) -> Option<DirectCall> {
        let is_usual = parts.uri.authority().is_none()
            && !parts.headers.contains_key(header::ORIGIN)
            && only(&parts.headers, &header::HOST).is_some_and(|host| self.knows(host))
            && only(&parts.headers, &header::CONTENT_TYPE).is_some_and(|kind| kind == JSON)
            && accepted::is_both(&parts.headers);
        if !is_usual {
            return None;
        }
        let place = match session {
            Some(session) => {
                let direct = Arc::clone(session.direct.as_ref()?);
                let peer = direct.peer()?;
                Place::Session(direct, peer)
            }
            None => Place::Itself,
        };
        let (id, mut params) = frequent::tool_call(bytes)?;
        let meta = params.meta.take().unwrap_or_default();
        let is_negotiated = match session {
            Some(session) => is_of_session(session, &parts.headers, &meta),
            None => is_of_itself(&parts.headers, &meta, &params.name),
        };
        (is_negotiated && meta.get_progress_token().is_none()).then_some(DirectCall { id, meta, params, place })
    }

    /// Answers a call. Without a session it is cancelled if its client leaves; in a session it goes on then, but its reply is
    /// lost, as no event stream keeps it.
    pub(super) async fn answer(&self, call: DirectCall, parts: Parts) -> Response {
        let DirectCall { id, meta, params, place } = call;
        let (front, peer, session) = match place {
            Place::Session(session, peer) => (Arc::clone(&session.front), peer, Some(session)),
            Place::Itself => (Arc::new((self.front)()), self.nobody.clone(), None),
        };
        let cancelled = session.as_ref().map_or_else(CancellationToken::new, |session| session.closed.child_token());
        let left = session.is_none().then(|| cancelled.clone().drop_guard());
        let mut context = RequestContext::new(id.clone(), peer);
        context.ct = cancelled.clone();
        context.meta = meta;
        context.extensions.insert(parts);
        let lost = CancellationToken::new();
        context.extensions.insert(ReplyLost(lost.clone()));
        let lost = lost.drop_guard();
        let under_way = session.map(|session| UnderWay::new(session, id.clone(), cancelled.clone()));
        // In a task of its own: an evaluation ends in order, whatever becomes of the connection. A task moves its future
        // several times, which is large.
        let answering = tokio::spawn(Box::pin(async move {
            let _under_way = under_way;
            let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
            Service::handle_request(&*front, request, context).await
        }));
        let mut expected = Expected { id, answering, cancelled, _left: left, lost: Some(lost) };
        match tokio::time::timeout(PLAIN, expected.text()).await {
            Ok(Some(text)) => ([(header::CONTENT_TYPE, JSON)], Body::from(text)).into_response(),
            // The protocol wants no reply to a request that its client has cancelled.
            Ok(None) => (StatusCode::OK, [(header::CONTENT_TYPE, EVENTS)]).into_response(),
            Err(_) => ([(header::CONTENT_TYPE, EVENTS)], expected.events()).into_response(),
        }
    }
}

/// The reply to a call, which is being made.
struct Expected {
    id: RequestId,
    answering: JoinHandle<Result<ServerResult, ErrorData>>,
    cancelled: CancellationToken,
    /// Cancels the call when the connection goes.
    _left: Option<DropGuard>,
    /// Says that the reply is lost when the connection goes before.
    lost: Option<DropGuard>,
}

impl Expected {
    /// Waits for the reply; `None` if there is none, since the call was cancelled.
    async fn text(&mut self) -> Option<Bytes> {
        let outcome = (&mut self.answering).await;
        self.lost.take().map(DropGuard::disarm);
        if self.cancelled.is_cancelled() {
            return None;
        }
        let failure = |problem: String| {
            ServerJsonRpcMessage::error(ErrorData::internal_error(problem, None), Some(self.id.clone()))
        };
        let message = match outcome {
            Ok(Ok(result)) => ServerJsonRpcMessage::response(result, self.id.clone()),
            Ok(Err(error)) => JsonRpcMessage::error(error, Some(self.id.clone())),
            Err(_) => failure("the call ended without a reply; this is a bug in lispbox".to_owned()),
        };
        let text = serde_json::to_vec(&message);
        let text =
            text.or_else(|problem| serde_json::to_vec(&failure(format!("the reply cannot be written: {problem}"))));
        Some(Bytes::from(text.unwrap_or_default()))
    }

    /// Sends the reply as an event, and a comment now and then until it is there: proxies and clients give up on a response
    /// of which they hear nothing.
    fn events(self) -> Body {
        Body::from_stream(stream::unfold(Some(self), async |expected| {
            let mut expected = expected?;
            match tokio::time::timeout(ALIVE, expected.text()).await {
                Ok(text) => {
                    let event =
                        text.map(|text| [b"event: message\ndata: ", &*text, b"\n\n"].concat()).unwrap_or_default();
                    Some((Ok::<_, Infallible>(Bytes::from(event)), None))
                }
                Err(_) => Some((Ok(Bytes::from_static(b": still running\n\n")), Some(expected))),
            }
        }))
    }
}

/// Returns the only value of a header.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h HeaderValue> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())
}

/// True if a call belongs to the revision that its session has negotiated.
fn is_of_session(session: &InUse, headers: &HeaderMap, meta: &RequestMetaObject) -> bool {
    let Some(negotiated) = session.version.as_ref().map(ProtocolVersion::as_str) else { return false };
    negotiated < ProtocolVersion::V_2026_07_28.as_str()
        && meta.protocol_version().is_none()
        && (!headers.contains_key(VERSION) || only(headers, &VERSION).is_some_and(|version| version == negotiated))
}

/// True if a call without a session is one of revision 2026-07-28 whose headers agree with its body.
fn is_of_itself(headers: &HeaderMap, meta: &RequestMetaObject, tool: &str) -> bool {
    let version = ProtocolVersion::V_2026_07_28;
    only(headers, &VERSION).is_some_and(|named| named == version.as_str())
        && only(headers, &METHOD).is_some_and(|method| method == "tools/call")
        && only(headers, &NAME).is_some_and(|name| name == tool)
        && meta.protocol_version().is_some_and(|said| said == version)
        && meta.missing_required_keys(&version).is_empty()
}

/// A call of a session that can be cancelled by its id.
struct UnderWay {
    session: Arc<DirectSession>,
    number: u64,
}

impl UnderWay {
    fn new(session: Arc<DirectSession>, id: RequestId, cancelled: CancellationToken) -> UnderWay {
        let number = session.next.fetch_add(1, Ordering::Relaxed);
        session.calls().insert(number, (id, cancelled));
        UnderWay { session, number }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.session.calls().remove(&self.number);
    }
}
