//! Request intake: authentication, rate limits, admission by available buffer space, and checks that the body can be
//! decoded.

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use rmcp::model::{ErrorCode, RequestId};
use serde::de::IgnoredAny;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::server::admission::allowances::Allowances;
use crate::server::admission::shutdown::{Shutdown, UnderWay};
use crate::server::identity::Principal;
use crate::server::text::cut;
use crate::server::transport::batch;
use crate::server::transport::buffer_space::BufferSpace;
use crate::server::transport::cursor;
use crate::server::transport::envelope::Envelope;
use crate::server::transport::lines;
use crate::server::transport::unfit;

use super::accepted::{self, JsonAlone};
use super::connections::Peer;
use super::direct::DirectCalls;
use super::heads;
use super::principals::Known;
use super::protocol_sessions::{InUse, Kind, ProtocolSessions, as_beginner};
use super::rates::Rates;
use super::refusal::{RetryLater, Unauthorized, failed, no_such_session};
use super::shares::Shares;
use super::slots::SlotHandle;
use super::tokens::Directory;
use super::{HttpOptions, REQUESTS_PER_MINUTE, batches};

/// Budget for the bytes of messages that are received at the same time, in units of [`UNIT`] bytes; later messages
/// wait. With several principals, each of them may use at most half of it.
const ROOM: usize = 64 << 10;
const UNIT: usize = 1 << 10;

/// Number of values and keys above which decoding a message takes much more memory than the message has bytes. All
/// messages above it that are being decoded have together at most as many values and keys as a single message may have.
const MANY: u64 = 50_000;

/// The header that names a protocol session.
const SESSION: &str = "mcp-session-id";

/// State shared by the checks of all requests.
pub(super) struct Intake {
    directory: Arc<Directory>,
    sessions: Arc<ProtocolSessions>,
    allowances: Arc<Allowances>,
    rates: Rates,
    shares: Shares,
    /// True if requests from this machine are rate-limited like those from others.
    counts_this_machine: bool,
    largest: usize,
    arrival: Duration,
    room: Room,
    decoding: Arc<Semaphore>,
    shutdown: Arc<Shutdown>,
    /// Answers calls of tools, unless the server has another handler.
    direct: Option<Arc<DirectCalls>>,
}

/// The buffer space for messages, in units of [`UNIT`] bytes.
struct Room {
    all: Arc<Semaphore>,
    /// The shares of the principals, if there are several.
    each: Mutex<HashMap<Arc<str>, Arc<Semaphore>>>,
}

/// Keeps a session from becoming idle until its request has been handled.
#[derive(Clone)]
struct SessionGuard {
    _session: Option<Arc<InUse>>,
}

impl Intake {
    pub(super) fn new(
        http: &HttpOptions,
        directory: Arc<Directory>,
        sessions: Arc<ProtocolSessions>,
        allowances: Arc<Allowances>,
        largest: usize,
        shutdown: Arc<Shutdown>,
    ) -> Intake {
        Intake {
            directory,
            sessions,
            rates: Rates::new(Arc::clone(&allowances), http.requests_per_minute.unwrap_or(REQUESTS_PER_MINUTE)),
            shares: Shares::new(http.connections, Arc::clone(&allowances)),
            allowances,
            counts_this_machine: http.requests_per_minute.is_some(),
            largest,
            arrival: http.arrival,
            room: Room { all: Arc::new(Semaphore::new(ROOM)), each: Mutex::default() },
            decoding: Arc::new(Semaphore::new(usize::try_from(lines::MOST_MARKS).expect("a million"))),
            shutdown,
            direct: None,
        }
    }

    /// Answers calls of tools directly.
    pub(super) fn with_direct(self, direct: Arc<DirectCalls>) -> Intake {
        Intake { direct: Some(direct), ..self }
    }

    /// Maximum size of a message, in bytes.
    pub(super) fn largest(&self) -> usize {
        self.largest
    }

    /// Returns the protocol sessions.
    pub(super) fn sessions(&self) -> Arc<ProtocolSessions> {
        Arc::clone(&self.sessions)
    }

    /// Authenticates a request and counts it against its rate limit: that of the principal, or that of the peer address
    /// if the request has no known token.
    ///
    /// # Errors
    /// Returns `RetryLater` if the rate limit is exceeded.
    fn counted(&self, request: &Request) -> Result<Result<Known, Unauthorized>, RetryLater> {
        let known = self.known(request.headers());
        match (&known, request.extensions().get::<Peer>()) {
            (Ok(known), _) if self.directory.needs_token() => {
                if let Some(slot) = request.extensions().get::<SlotHandle>() {
                    slot.belongs_to(&known.principal);
                }
                self.rates.of_principal(&known.principal)?;
            }
            (_, Some(Peer(address))) if self.counts_this_machine || !address.is_loopback() => {
                self.rates.of_address(*address)?;
            }
            _ => {}
        }
        Ok(known)
    }

    /// Counts a request as [`Intake::counted`] does; returns the refusal of one beyond the limit.
    pub(super) fn excess(&self, request: &Request) -> Option<Response> {
        self.counted(request).err().map(|later| later.response(None))
    }

    fn known(&self, headers: &HeaderMap) -> Result<Known, Unauthorized> {
        if !self.directory.needs_token() {
            return Ok(Known::everybody());
        }
        let mut values = headers.get_all(header::AUTHORIZATION).iter();
        let value = values.next().ok_or(Unauthorized::NoToken)?;
        if values.next().is_some() {
            return Err(Unauthorized::Ambiguous);
        }
        let Some(token) = value.to_str().ok().map(bearer) else { return Err(Unauthorized::InvalidToken) };
        self.directory.find(token.ok_or(Unauthorized::NoToken)?).ok_or(Unauthorized::InvalidToken)
    }

    /// Returns the protocol session that a request names, marked as in use.
    ///
    /// # Errors
    /// Returns the response to send if the principal has no such session, or if the request names more than one.
    fn session(&self, request: &Request, principal: &str) -> Result<Option<InUse>, Box<Response>> {
        let kind = if request.method() == Method::GET { Kind::Stream } else { Kind::Request };
        let mut named = Vec::new();
        for value in request.headers().get_all(SESSION) {
            let session = value.to_str().ok().and_then(|id| self.sessions.enter(principal, id, kind));
            named.push(session.ok_or_else(|| Box::new(no_such_session()))?);
        }
        if named.len() > 1 {
            let message = format!("expected one `Mcp-Session-Id` header, got {}", named.len());
            return Err(Box::new(failed(StatusCode::BAD_REQUEST, ErrorCode::INVALID_REQUEST, None, &message)));
        }
        Ok(named.pop())
    }

    /// Waits for buffer space for a message of `size` bytes.
    async fn room(&self, principal: &Arc<str>, size: usize) -> BufferSpace {
        let units = |most: usize| u32::try_from(size / UNIT + 1).unwrap_or(u32::MAX).min(most as u32);
        let mut permits = Vec::new();
        if self.allowances.are_of_several() {
            let own = {
                let mut rooms = self.room.each.lock().unwrap_or_else(PoisonError::into_inner);
                let new = || Arc::new(Semaphore::new(ROOM / 2));
                Arc::clone(rooms.entry(Arc::clone(principal)).or_insert_with(new))
            };
            permits.push(own.acquire_many_owned(units(ROOM / 2)).await.expect("the room is never closed"));
        }
        let all = Arc::clone(&self.room.all).acquire_many_owned(units(ROOM)).await;
        permits.push(all.expect("the room is never closed"));
        BufferSpace::new(permits)
    }
}

/// Returns the token of a `Bearer …` value; `None` for any other scheme.
fn bearer(value: &str) -> Option<&str> {
    let value = value.trim();
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Rate-limits a request that needs no token.
pub(super) async fn count(State(intake): State<Arc<Intake>>, request: Request, next: Next) -> Response {
    match intake.counted(&request) {
        Ok(_) => next.run(request).await,
        Err(later) => later.response(None),
    }
}

/// Passes on a request of an authenticated principal if there is capacity for it and it can be decoded. The request
/// ends when its token is revoked.
pub(super) async fn take_in(State(intake): State<Arc<Intake>>, mut request: Request, next: Next) -> Response {
    let known = match intake.counted(&request) {
        Ok(Ok(known)) => known,
        Ok(Err(unauthorized)) => return unauthorized.into_response(),
        Err(later) => return later.response(None),
    };
    let open = match intake.shares.request(&known.principal) {
        Ok(open) => open,
        Err(later) => return later.response(None),
    };
    let session = match intake.session(&request, &known.principal) {
        Ok(session) => session.map(Arc::new),
        Err(response) => return *response,
    };
    let stream = match *request.method() == Method::GET && session.is_some() {
        true => match intake.shares.stream(&known.principal) {
            Ok(stream) => Some(stream),
            Err(later) => return later.response(None),
        },
        false => None,
    };
    if let Some(alone) = accepted::complete(&request.method().clone(), request.headers_mut()) {
        request.extensions_mut().insert(alone);
    }
    request.extensions_mut().insert(Principal(known.principal.to_string()));
    request.extensions_mut().insert(SessionGuard { _session: session.clone() });
    let handling = async {
        match *request.method() == Method::POST {
            true => post(&intake, &known.principal, session.as_deref(), request, next).await,
            false => (next.run(request).await, None),
        }
    };
    let (response, under_way) = tokio::select! {
        biased;
        () = known.revoked.cancelled() => return Unauthorized::InvalidToken.into_response(),
        outcome = handling => outcome,
    };
    let is_stream = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream");
    if !is_stream {
        return response;
    }
    let evicted = stream.as_ref().map(|stream| stream.evicted.clone());
    ending(response, (open, session, stream, under_way), known.revoked, evicted)
}

/// Returns a response whose body ends when the token is revoked or the stream is evicted, and which keeps `held` alive
/// until then.
fn ending<T: Send + 'static>(
    response: Response,
    held: T,
    revoked: CancellationToken,
    evicted: Option<CancellationToken>,
) -> Response {
    let end = async move {
        match evicted {
            Some(evicted) => tokio::select! {
                () = revoked.cancelled() => {}
                () = evicted.cancelled() => {}
            },
            None => revoked.cancelled().await,
        }
    };
    let (parts, body) = response.into_parts();
    let chunks = body.into_data_stream().take_until(Box::pin(end)).map(move |chunk| {
        let _held = &held;
        chunk
    });
    Response::from_parts(parts, Body::from_stream(chunks))
}

/// Passes on a message or a batch of messages. The guard returned with the response keeps the server running until the
/// response has been sent.
async fn post(
    intake: &Intake,
    principal: &Arc<str>,
    session: Option<&InUse>,
    request: Request,
    next: Next,
) -> (Response, Option<UnderWay>) {
    let (parts, body) = request.into_parts();
    let message = tokio::select! {
        biased;
        message = message(intake, principal, &parts.headers, body) => message,
        () = intake.shutdown.closing() => Err(Box::new(RetryLater::shutting_down().response(None))),
    };
    let (bytes, envelope, room) = match message {
        Ok(message) => message,
        Err(refused) => return (*refused, None),
    };
    // A message that is not a request cancels one in progress, or is a response to a request of the server.
    let is_request = envelope.is_batch() || (envelope.has_method() && envelope.has_id());
    let under_way = intake.shutdown.admit();
    if is_request && under_way.is_none() {
        let mut response = RetryLater::shutting_down().response(envelope.id());
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        return (response, None);
    }
    (answer(intake, principal, session, (parts, bytes, envelope, room), next).await, under_way)
}

/// Receives a message: returns its bytes, its envelope, and the buffer space that it holds until it is decoded.
///
/// # Errors
/// Returns the response to send if the message is too large, does not arrive in time, or cannot be decoded.
async fn message(
    intake: &Intake,
    principal: &Arc<str>,
    headers: &HeaderMap,
    body: Body,
) -> Result<(Bytes, Envelope, BufferSpace), Box<Response>> {
    if let Some(response) = encoded(headers) {
        return Err(Box::new(response));
    }
    let said = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    let largest = said.unwrap_or(intake.largest);
    let unreadable = |status, id, message: &str| Box::new(failed(status, lines::UNREADABLE, id, message));
    let too_large = || {
        let message = format!("expected a message of at most {} bytes", intake.largest);
        unreadable(StatusCode::PAYLOAD_TOO_LARGE, None, &message)
    };
    if largest > intake.largest {
        return Err(too_large());
    }
    let Ok(room) = tokio::time::timeout(intake.arrival, intake.room(principal, largest)).await else {
        let reason = "too many messages are arriving";
        return Err(Box::new(RetryLater::in_a_moment(StatusCode::SERVICE_UNAVAILABLE, reason).response(None)));
    };
    let bytes = match tokio::time::timeout(intake.arrival, to_bytes(body, intake.largest)).await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(problem)) => match broken_off(&problem) {
            Some(cause) => {
                let message = format!("the message cannot be read: {cause}");
                return Err(unreadable(StatusCode::BAD_REQUEST, None, &message));
            }
            None => return Err(too_large()),
        },
        Err(_) => return Err(unreadable(StatusCode::REQUEST_TIMEOUT, None, "the message did not arrive in time")),
    };
    let envelope = Envelope::of(&bytes);
    if let Some(problem) = lines::problem_of(&envelope) {
        return Err(unreadable(StatusCode::BAD_REQUEST, envelope.id(), &problem.message));
    }
    if let Err(problem) = parse(&bytes) {
        let message = format!("the message is not JSON: {problem}");
        return Err(Box::new(failed(StatusCode::BAD_REQUEST, ErrorCode::PARSE_ERROR, None, &message)));
    }
    if envelope.marks() > MANY {
        let marks = u32::try_from(envelope.marks().min(lines::MOST_MARKS)).expect("at most a million");
        let permit =
            Arc::clone(&intake.decoding).acquire_many_owned(marks).await.expect("the permits are never closed");
        room.add(permit);
    }
    Ok((bytes, envelope, room))
}

/// Returns the error response to a message that has a content encoding.
fn encoded(headers: &HeaderMap) -> Option<Response> {
    let is_encoded = |value: &&HeaderValue| !value.as_bytes().eq_ignore_ascii_case(b"identity");
    let encoding = headers.get_all(header::CONTENT_ENCODING).iter().find(is_encoded)?;
    let encoding = cut(&String::from_utf8_lossy(encoding.as_bytes()), 40);
    let message = format!("expected a message without `Content-Encoding`, got `{encoding}`: send it as it is");
    let mut response = failed(StatusCode::UNSUPPORTED_MEDIA_TYPE, ErrorCode::INVALID_REQUEST, None, &message);
    response.headers_mut().insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    Some(response)
}

/// Returns why the transport broke off a body; `None` if the body was only too large.
fn broken_off(problem: &axum::Error) -> Option<String> {
    let mut cause: &(dyn Error + 'static) = problem;
    let mut is_of_transport = false;
    while let Some(next) = cause.source() {
        cause = next;
        is_of_transport |= cause.is::<hyper::Error>();
    }
    is_of_transport.then(|| cause.to_string())
}

/// Passes on a received message or batch of messages.
async fn answer(
    intake: &Intake,
    principal: &Arc<str>,
    session: Option<&InUse>,
    (mut parts, bytes, envelope, room): (http::request::Parts, Bytes, Envelope, BufferSpace),
    next: Next,
) -> Response {
    parts.extensions.insert(room);
    if envelope.is_batch() {
        let count = || intake.rates.of_principal(principal);
        return match takes_batches(session, &parts.headers) {
            true => batches::answer(parts, &bytes, next, count).await,
            false => failed(StatusCode::BAD_REQUEST, ErrorCode::INVALID_REQUEST, None, batch::NO_BATCHES),
        };
    }
    if let Some(direct) = &intake.direct
        && let Some(call) = direct.call(session, &parts, &bytes)
    {
        return direct.answer(call, parts).await;
    }
    let id = envelope.id();
    if let Some(problem) = cursor::problem(&bytes) {
        return failed(StatusCode::OK, ErrorCode::INVALID_PARAMS, id, problem);
    }
    let host = parts.headers.get(header::HOST).cloned();
    let response = one(parts, bytes, id, principal, next).await;
    if let Some(direct) = intake.direct.as_ref().filter(|_| response.status() == StatusCode::OK) {
        direct.allowed(host);
    }
    response
}

/// Passes on a single message.
async fn one(
    parts: http::request::Parts,
    bytes: Bytes,
    id: Option<RequestId>,
    principal: &Arc<str>,
    next: Next,
) -> Response {
    let is_json = is_json(&parts.headers);
    let host = parts.headers.get(header::HOST).cloned();
    let is_json_alone = parts.extensions.get::<JsonAlone>().is_some();
    let explained = if bytes.len() <= unfit::LARGEST { bytes.clone() } else { Bytes::new() };
    let request = Request::from_parts(parts, Body::from(bytes));
    match as_beginner(principal, next.run(request)).await {
        Ok(response) if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE && is_json => {
            failed(StatusCode::BAD_REQUEST, ErrorCode::INVALID_REQUEST, id, &unfit::reason(&explained))
        }
        // rmcp takes a malformed `initialize` for a request of another kind.
        Ok(response) if response.status() == StatusCode::BAD_REQUEST => match unfit::lack(&explained) {
            Some(lack) => failed(StatusCode::BAD_REQUEST, ErrorCode::INVALID_PARAMS, id, &lack),
            None => response,
        },
        Ok(response) if response.status() == StatusCode::FORBIDDEN => heads::named(host.as_ref(), response).await,
        Ok(response) if is_json_alone => accepted::as_json(response, id.as_ref()).await,
        Ok(response) => response,
        Err(later) => later.response(id),
    }
}

/// True if the content type is JSON, in which case rmcp answers 415 only to a message that it cannot decode.
fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json"))
}

/// Checks that the bytes are valid JSON, without keeping any value.
fn parse(bytes: &[u8]) -> Result<(), String> {
    let text = std::str::from_utf8(bytes).map_err(|problem| problem.to_string())?;
    serde_json::from_str::<IgnoredAny>(text).map(drop).map_err(|problem| problem.to_string())
}

/// True in a session of the only protocol revision that supports batches.
fn takes_batches(session: Option<&InUse>, headers: &HeaderMap) -> bool {
    let negotiated = session.and_then(|session| session.version.as_ref());
    let mut named = headers.get_all("mcp-protocol-version").iter();
    negotiated.is_some_and(|version| batch::are_known_to(version.as_str()))
        && named.all(|version| version.to_str().is_ok_and(batch::are_known_to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_follows_its_scheme() {
        assert_eq!(bearer("Bearer abc"), Some("abc"));
        assert_eq!(bearer("bEARER   abc "), Some("abc"));
        assert_eq!(bearer("Bearer"), Some(""), "a token that is unknown");
        assert_eq!(bearer("Basic abc"), None);
        assert_eq!(bearer("Bearerabc"), None);
        assert_eq!(bearer(""), None);
    }
}
